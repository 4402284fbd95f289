// Feature dictionaries, as users of python-crfsuite have them, to numbered attributes.
//
// The walk only copies text into a buffer, straight from the strings' own UTF-8; every few thousand attributes are
// numbered together, without the GIL. So the table is never locked while Python code may run.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/text/string_table.hpp"
#include "owned.hpp"
#include "python.hpp"

namespace maxmargin {

namespace {

using python::type_name;
using strings::Byte;
using strings::StringTable;

// The problem with a value; the walker adds its location.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Attribute {
    std::int32_t column;
    double value;
};

class Walker {
   public:
    Walker(StringTable& table, bool grow) : table_(table), grow_(grow) {}

    void sentences(nb::handle all) {
        each(all.ptr(), [&](PyObject* sentence) {
            const std::int64_t before = n_tokens_;
            token_ = 0;
            if (is_text(sentence) || PyDict_Check(sentence)) fail(place() + type_name(sentence));

            each(sentence, [&](PyObject* token) {
                try {
                    item(token);
                } catch (const Refused& problem) {
                    fail(where() + problem.what());
                }
                token_end_.push_back(static_cast<std::int64_t>(values_.size()));
                ++n_tokens_;
                ++token_;
                if (values_.size() >= batch) number();
            });
            token_ = -1;
            lengths.push_back(n_tokens_ - before);
            ++sentence_;
        });
        number();
    }

    std::vector<std::int64_t> starts{0}, lengths;
    std::vector<std::int32_t> columns;
    std::vector<double> weights;  // empty as long as all are 1
    bool ones = true;

   private:
    static constexpr std::size_t batch = 4096;

    static bool is_text(PyObject* object) { return PyUnicode_Check(object) || PyBytes_Check(object); }

    std::string where() const {
        return "sentence " + std::to_string(sentence_) + ", token " + std::to_string(token_) + ": ";
    }
    // The expected items of a list: tokens inside a sentence, sentences elsewhere.
    std::string place() const {
        return token_ < 0 ? "expected a list of sentences, got "
                          : "sentence " + std::to_string(sentence_) + ": expected a list of tokens, got ";
    }
    [[noreturn]] static void fail(const std::string& message) { throw nb::value_error(message.c_str()); }

    // Lists and tuples without an iterator. Values may run Python code, which may shorten a list: the size is asked
    // each time.
    template <class Body>
    void each(PyObject* all, Body&& body) {
        if (PyList_Check(all)) {
            for (Py_ssize_t i = 0; i < python::list_size(all); ++i) {
                const nb::object one = nb::borrow(python::list_item(all, i));
                body(one.ptr());
            }
        } else if (PyTuple_Check(all)) {
            for (Py_ssize_t i = 0; i < python::tuple_size(all); ++i) body(python::tuple_item(all, i));
        } else {
            PyObject* raw = PyObject_GetIter(all);
            if (!raw) {
                if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
                PyErr_Clear();
                fail(place() + type_name(all));
            }
            const nb::object iterator = nb::steal(raw);
            while (PyObject* next = PyIter_Next(raw)) {
                const nb::object one = nb::steal(next);
                body(one.ptr());
            }
            if (PyErr_Occurred()) throw nb::python_error();
        }
    }

    static std::string_view text_of(PyObject* object) {
        if (PyBytes_Check(object)) {
            const std::string_view text = python::bytes_of(object);
            PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
            if (!decoded) {
                PyErr_Clear();
                throw Refused("bytes that are not UTF-8; decode them into text");
            }
            Py_DECREF(decoded);
            return text;
        }
        const std::string_view text = python::utf8_of(object);
        if (!text.data()) {
            if (!PyErr_ExceptionMatches(PyExc_UnicodeError)) throw nb::python_error();
            PyErr_Clear();
            throw Refused("text with a lone surrogate, which no file can hold; replace it, for example by U+FFFD");
        }
        return text;
    }

    // Adds an attribute; its name stands behind the prefix.
    void emit(std::initializer_list<std::string_view> name, double value) {
        const auto append = [&](std::string_view text) {
            const auto* data = reinterpret_cast<const Byte*>(text.data());
            text_.insert(text_.end(), data, data + text.size());
        };
        append(prefix_);
        for (const std::string_view piece : name) append(piece);
        end_.push_back(static_cast<std::int64_t>(text_.size()));
        values_.push_back(value);
    }

    void item(PyObject* token) {
        if (PyDict_Check(token)) {
            dictionary(token);
        } else if (is_text(token)) {
            emit({text_of(token)}, 1.0);
        } else if (PyList_Check(token) || PyTuple_Check(token) || PyAnySet_Check(token)) {
            names(token);
        } else {
            throw Refused("expected a dictionary or a list of texts, got " + type_name(token));
        }
    }

    // Texts, each an attribute behind the prefix; sets in the order of their bytes, independent of hashing.
    void names(PyObject* all) {
        const auto one = [&](PyObject* name) {
            if (!is_text(name)) throw Refused("expected texts in a " + type_name(all) + ", got " + type_name(name));
            return text_of(name);
        };
        if (PyAnySet_Check(all)) {
            std::vector<std::string_view> sorted;
            const nb::object list = nb::steal(PySequence_List(all));
            if (!list.is_valid()) throw nb::python_error();
            for (Py_ssize_t i = 0; i < python::list_size(list.ptr()); ++i)
                sorted.push_back(one(python::list_item(list.ptr(), i)));
            std::sort(sorted.begin(), sorted.end());
            for (const auto text : sorted) emit({text}, 1.0);
            return;
        }
        const bool list = PyList_Check(all);
        const Py_ssize_t size = list ? python::list_size(all) : python::tuple_size(all);
        for (Py_ssize_t i = 0; i < size; ++i)  // no Python code runs in here
            emit({one(list ? python::list_item(all, i) : python::tuple_item(all, i))}, 1.0);
    }

    void dictionary(PyObject* all) {
        if (Py_EnterRecursiveCall(" in a dictionary of attributes")) {
            PyErr_Clear();
            throw Refused("dictionaries that contain themselves or are nested too deeply");
        }
        struct Leave {
            ~Leave() { Py_LeaveRecursiveCall(); }
        } leave;
        Py_ssize_t at = 0;
        PyObject *key = nullptr, *value = nullptr;
        while (PyDict_Next(all, &at, &key, &value)) {
            if (!is_text(key)) throw Refused("the name of an attribute must be text, got " + type_name(key));
            const std::string_view name = text_of(key);
            if (is_text(value)) {
                emit({name, ":", text_of(value)}, 1.0);
            } else if (PyDict_Check(value) || PyList_Check(value) || PyTuple_Check(value) || PyAnySet_Check(value)) {
                const nb::object kept = nb::borrow(value);
                const std::size_t before = prefix_.size();
                prefix_.append(name).push_back(':');
                if (PyDict_Check(value)) dictionary(value);
                else names(value);
                prefix_.resize(before);
            } else {
                number_of(name, key, value);
            }
        }
    }

    void number_of(std::string_view name, PyObject* key, PyObject* value) {
        double weight = 0.0;
        if (PyFloat_CheckExact(value)) {
            weight = python::float_of(value);
        } else if (PyBool_Check(value)) {
            weight = value == Py_True ? 1.0 : 0.0;
        } else {
            // May run code of the value's own, after which its dictionary may have changed.
            const nb::object kept = nb::borrow(value), kept_key = nb::borrow(key);
            weight = PyFloat_AsDouble(value);
            if (weight == -1.0 && PyErr_Occurred()) {
                const bool type = PyErr_ExceptionMatches(PyExc_TypeError);
                const bool overflow = PyErr_ExceptionMatches(PyExc_OverflowError);
                if (!type && !overflow) throw nb::python_error();
                PyErr_Clear();
                throw Refused("attribute '" + prefix_ + std::string(name) + "': " +
                              (overflow ? "the value is too large for a float"
                                        : "expected text, a number, or a list or dictionary of them, got " +
                                              type_name(value) + "; leave it out where there is no value"));
            }
        }
        if (!std::isfinite(weight))
            throw Refused("attribute '" + prefix_ + std::string(name) +
                          "': the value is NaN or infinite; give a number");
        if (weight == 0.0) return;  // has no effect on scores
        emit({name}, weight);
    }

    // Numbers what has been gathered, and adds the rows of its tokens: sorted, each column once.
    void number() {
        numbers_.resize(end_.size());
        begin_.resize(end_.size());
        std::int64_t wrong = -1;
        {
            const NoGil unlocked;
            for (std::size_t i = 0; i < end_.size(); ++i) begin_[i] = i ? end_[i - 1] : 0;
            table_.locked(grow_, [&] { table_.number(text_.data(), begin_, end_, grow_, numbers_.data()); });
            std::size_t first = 0;
            for (std::size_t t = 0; t < token_end_.size(); ++t) {
                const auto last = static_cast<std::size_t>(token_end_[t]);
                if (!row(first, last) && wrong < 0) wrong = static_cast<std::int64_t>(t);
                first = last;
            }
        }
        if (wrong >= 0) {
            std::int64_t token = n_tokens_ - static_cast<std::int64_t>(token_end_.size()) + wrong;
            std::int64_t sentence = 0;
            for (const std::int64_t length : lengths) {
                if (token < length) break;
                token -= length;
                ++sentence;
            }
            fail("sentence " + std::to_string(sentence) + ", token " + std::to_string(token) +
                 ": the values of an attribute that comes twice add up to infinity; give smaller ones");
        }
        text_.clear();
        end_.clear();
        values_.clear();
        token_end_.clear();
    }

    bool row(std::size_t first, std::size_t last) {
        row_.clear();
        for (std::size_t i = first; i < last; ++i)
            if (numbers_[i] != strings::unknown) row_.push_back({numbers_[i], values_[i]});
        const auto less = [](const Attribute& a, const Attribute& b) { return a.column < b.column; };
        if (!std::is_sorted(row_.begin(), row_.end(), less)) std::stable_sort(row_.begin(), row_.end(), less);
        bool finite = true;
        for (std::size_t i = 0; i < row_.size();) {
            double sum = row_[i].value;
            std::size_t next = i + 1;
            for (; next < row_.size() && row_[next].column == row_[i].column; ++next) sum += row_[next].value;
            finite = finite && std::isfinite(sum);
            if (ones && sum != 1.0) {
                ones = false;
                weights.assign(columns.size(), 1.0);
            }
            columns.push_back(row_[i].column);
            if (!ones) weights.push_back(sum);
            i = next;
        }
        starts.push_back(static_cast<std::int64_t>(columns.size()));
        return finite;
    }

    StringTable& table_;
    const bool grow_;
    std::int64_t sentence_ = 0, token_ = -1, n_tokens_ = 0;
    std::string prefix_;
    // Attributes that are not numbered yet, and how many there were after each of their tokens.
    std::vector<Byte> text_;
    std::vector<std::int64_t> begin_, end_, token_end_;
    std::vector<double> values_;
    std::vector<std::int32_t> numbers_;
    std::vector<Attribute> row_;
};

nb::tuple items(StringTable& table, nb::handle sentences, bool grow) {
    const std::int64_t before = table.size();
    Walker walker(table, grow);
    try {
        walker.sentences(sentences);
    } catch (...) {
        if (grow) {
            const NoGil unlocked;
            const std::unique_lock lock(table.mutex);
            table.truncate(before);
        }
        throw;
    }
    nb::object values = walker.ones ? nb::none() : nb::cast(owned(std::move(walker.weights)));
    return nb::make_tuple(owned(std::move(walker.starts)), owned(std::move(walker.columns)), values,
                          owned(std::move(walker.lengths)));
}

}  // namespace

void bind_items(nb::module_& module) {
    module.def(
        "attributes_of_items", &items, "table"_a, "sentences"_a, "grow"_a,
        "Attributes of sentences of dictionaries or lists of texts: starts of the tokens' rows, columns (sorted), "
        "values (None if all are 1), and tokens per sentence. ValueError leaves the table as it was.");
}

}  // namespace maxmargin
