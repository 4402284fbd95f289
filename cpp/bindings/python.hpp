// Python objects that are read in place: lists, tuples, bytes and strings.
//
// Wheels for Python 3.12 and newer use the stable ABI (CMakeLists.txt), so that one wheel serves all versions to come.
// It hides how objects are laid out, and has functions where the API of a single version, which other builds use, has
// macros. This is the one place that tells them apart.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace maxmargin::python {

namespace nb = nanobind;

// The name of an object's class.
inline std::string type_name(PyObject* object) {
    const nb::str name = nb::steal<nb::str>(PyType_GetName(Py_TYPE(object)));
    if (!name.is_valid()) throw nb::python_error();
    return name.c_str();
}

// Items are borrowed, and their numbers are not checked.
#ifdef Py_LIMITED_API
inline Py_ssize_t list_size(PyObject* list) { return PyList_Size(list); }
inline PyObject* list_item(PyObject* list, Py_ssize_t i) { return PyList_GetItem(list, i); }
inline Py_ssize_t tuple_size(PyObject* tuple) { return PyTuple_Size(tuple); }
inline PyObject* tuple_item(PyObject* tuple, Py_ssize_t i) { return PyTuple_GetItem(tuple, i); }
inline std::string_view bytes_of(PyObject* bytes) {
    return {PyBytes_AsString(bytes), static_cast<std::size_t>(PyBytes_Size(bytes))};
}
inline double float_of(PyObject* number) { return PyFloat_AsDouble(number); }
#else
inline Py_ssize_t list_size(PyObject* list) { return PyList_GET_SIZE(list); }
inline PyObject* list_item(PyObject* list, Py_ssize_t i) { return PyList_GET_ITEM(list, i); }
inline Py_ssize_t tuple_size(PyObject* tuple) { return PyTuple_GET_SIZE(tuple); }
inline PyObject* tuple_item(PyObject* tuple, Py_ssize_t i) { return PyTuple_GET_ITEM(tuple, i); }
inline std::string_view bytes_of(PyObject* bytes) {
    return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}
inline double float_of(PyObject* number) { return PyFloat_AS_DOUBLE(number); }
#endif

// The UTF-8 of a string, which lives as long as it; no data with a Python error for lone surrogates.
inline std::string_view utf8_of(PyObject* text) {
#ifndef Py_LIMITED_API
    if (PyUnicode_IS_COMPACT_ASCII(text))
        return {static_cast<const char*>(PyUnicode_DATA(text)), static_cast<std::size_t>(PyUnicode_GET_LENGTH(text))};
#endif
    Py_ssize_t size = 0;
    const char* data = PyUnicode_AsUTF8AndSize(text, &size);
    return {data, data ? static_cast<std::size_t>(size) : 0};
}

// Calls body(code points, length) for a string. `room` is memory that may be used for them.
template <class Body>
void code_points(PyObject* text, [[maybe_unused]] std::vector<Py_UCS4>& room, Body&& body) {
#ifdef Py_LIMITED_API
    const auto size = static_cast<std::size_t>(PyUnicode_GetLength(text));
    if (room.size() < size) room.resize(size);
    if (size && !PyUnicode_AsUCS4(text, room.data(), static_cast<Py_ssize_t>(room.size()), 0)) throw nb::python_error();
    body(static_cast<const Py_UCS4*>(room.data()), size);
#else
    const auto size = static_cast<std::size_t>(PyUnicode_GET_LENGTH(text));
    switch (PyUnicode_KIND(text)) {
        case PyUnicode_1BYTE_KIND: body(PyUnicode_1BYTE_DATA(text), size); break;
        case PyUnicode_2BYTE_KIND: body(PyUnicode_2BYTE_DATA(text), size); break;
        default: body(PyUnicode_4BYTE_DATA(text), size); break;
    }
#endif
}

}  // namespace maxmargin::python
