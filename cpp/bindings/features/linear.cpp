#include "arrays.hpp"
#include "maxmargin/linear/indicator_rows.hpp"
#include "maxmargin/linear/sparse.hpp"
#include "owned.hpp"

namespace maxmargin {

namespace {

struct Shape {
    std::int64_t n, d;
};

Shape shape_of(const In<double>& x) {
    require(x.ndim() == 2, "a dense matrix must have two dimensions");
    return {static_cast<std::int64_t>(x.shape(0)), static_cast<std::int64_t>(x.shape(1))};
}

std::int64_t length(std::size_t size) { return static_cast<std::int64_t>(size); }

void require_sizes(std::int64_t rows, std::int64_t columns, std::int64_t k, std::int64_t size_rows,
                   std::int64_t size_columns) {
    checked_count("k", k, 1, most_claimed);
    require(size_rows % k == 0 && size_rows / k == rows, "the array of the rows must have n * k entries");
    require(size_columns % k == 0 && size_columns / k == columns, "the array of the columns must have d * k entries");
}

const double* initial_of(const In<double>& initial, std::int64_t k) {
    require(initial.size() == 0 || length(initial.size()) == k, "initial must have k entries or none");
    return initial.size() == 0 ? nullptr : initial.data();
}

void dense_forward(const In<double>& x, const In<double>& w, std::int64_t k, const In<double>& initial,
                   Out<double>& out, Threads threads) {
    const Shape s = shape_of(x);
    require_sizes(s.n, s.d, k, length(out.size()), length(w.size()));
    const double* from = initial_of(initial, k);
    NoGil release;
    if (k == 1 && from == nullptr) {
        const double* weights = w.data();
        double* target = out.data();
        linear::dense_forward_vectors(x.data(), s.n, s.d, &weights, &target, 1, threads);
    } else {
        linear::dense_forward(x.data(), s.n, s.d, k, w.data(), from, out.data(), threads);
    }
}

void dense_forward_pair(const In<double>& x, const In<double>& first, const In<double>& second, Out<double>& out_first,
                        Out<double>& out_second, Threads threads) {
    const Shape s = shape_of(x);
    require_sizes(s.n, s.d, 1, length(out_first.size()), length(first.size()));
    require_sizes(s.n, s.d, 1, length(out_second.size()), length(second.size()));
    const double* w[2] = {first.data(), second.data()};
    double* out[2] = {out_first.data(), out_second.data()};
    NoGil release;
    linear::dense_forward_vectors(x.data(), s.n, s.d, w, out, 2, threads);
}

void dense_adjoint(const In<double>& x, const In<double>& z, std::int64_t k, Out<double>& out, Threads threads) {
    const Shape s = shape_of(x);
    require_sizes(s.n, s.d, k, length(z.size()), length(out.size()));
    NoGil release;
    if (k == 1) {
        const double* values = z.data();
        linear::dense_adjoint_vectors(x.data(), s.n, s.d, &values, out.data(), 1, threads);
    } else {
        linear::dense_adjoint(x.data(), s.n, s.d, k, z.data(), out.data(), threads);
    }
}

void dense_adjoint_pair(const In<double>& x, const In<double>& first, const In<double>& second, Out<double>& out,
                        Threads threads) {
    const Shape s = shape_of(x);
    require(length(first.size()) == s.n && length(second.size()) == s.n, "both vectors must have n entries");
    require(length(out.size()) % 2 == 0 && length(out.size()) / 2 == s.d, "out must have 2 * d entries");
    const double* z[2] = {first.data(), second.data()};
    NoGil release;
    linear::dense_adjoint_vectors(x.data(), s.n, s.d, z, out.data(), 2, threads);
}

template <class Index>
linear::Compressed<Index> compressed(const In<Index>& starts, const In<Index>& columns, const In<double>& values) {
    require(columns.size() == values.size(), "columns and values do not fit together");
    require(rises_to(view(starts), columns.size()), "starts must rise from 0 to the number of non-zeros");
    return {starts.data(), columns.data(), values.data()};
}

constexpr const char* kOutOfRange = "a column index of the sparse matrix is out of range";

template <class Index>
void sparse_forward(const In<Index>& starts, const In<Index>& columns, const In<double>& values, std::int64_t d,
                    const In<double>& w, std::int64_t k, const In<double>& initial, Out<double>& out, Threads threads) {
    const auto x = compressed(starts, columns, values);
    const std::int64_t n = length(starts.size()) - 1;
    require_sizes(n, d, k, length(out.size()), length(w.size()));
    const double* from = initial_of(initial, k);
    const linear::ToRows to{out.data(), k};
    require(unlocked([&] { return linear::sparse_forward(x, n, d, k, w.data(), from, to, threads); }), kOutOfRange);
}

template <class Index>
void sparse_forward_pair(const In<Index>& starts, const In<Index>& columns, const In<double>& values, std::int64_t d,
                         const In<double>& w, Out<double>& first, Out<double>& second, Threads threads) {
    const auto x = compressed(starts, columns, values);
    const std::int64_t n = length(starts.size()) - 1;
    require_sizes(n, d, 2, 2 * length(first.size()), length(w.size()));
    require(second.size() == first.size(), "both outputs must have n entries");
    const linear::ToPair to{first.data(), second.data()};
    require(unlocked([&] { return linear::sparse_forward(x, n, d, 2, w.data(), nullptr, to, threads); }), kOutOfRange);
}

template <class Index>
void sparse_adjoint(const In<Index>& starts, const In<Index>& columns, const In<double>& values, std::int64_t d,
                    const In<double>& z, std::int64_t k, Out<double>& out, Threads threads) {
    const auto x = compressed(starts, columns, values);
    const std::int64_t n = length(starts.size()) - 1;
    require_sizes(n, d, k, length(z.size()), length(out.size()));
    require(unlocked([&] { return linear::sparse_adjoint(x, n, d, k, z.data(), out.data(), threads); }), kOutOfRange);
}

// The features of all rows; `lists` has one row per list and one column per row of the result.
template <class Index>
auto indicator_rows(const In<std::int64_t>& lists, std::int64_t width, Out<Index>& starts) {
    require(lists.ndim() == 2 && starts.size() == lists.shape(1) + 1,
            "starts must have an entry per row, and one more");
    checked_count("width", width, 0, std::numeric_limits<Index>::max());
    for (const std::int64_t feature : view(lists)) require(feature < width, "a feature is out of range");
    std::vector<Index> chosen;
    require(unlocked([&] { return linear::indicator_rows(view(lists), view(starts), chosen); }),
            "there are too many features for numbers of this size");
    return owned(std::move(chosen));
}

template <class Index>
void bind_sparse(nb::module_& module) {
    module.def("linear_sparse_forward", apart(&sparse_forward<Index>), "starts"_array, "columns"_array, "values"_array,
               "d"_a, "w"_array, "k"_a, "initial"_array, "out"_array, "threads"_a);
    module.def("linear_sparse_forward_pair", apart(&sparse_forward_pair<Index>), "starts"_array, "columns"_array,
               "values"_array, "d"_a, "w"_array, "first"_array, "second"_array, "threads"_a);
    module.def("indicator_rows", apart(&indicator_rows<Index>), "lists"_array, "width"_a, "starts"_array);
    module.def("linear_sparse_adjoint", apart(&sparse_adjoint<Index>), "starts"_array, "columns"_array, "values"_array,
               "d"_a, "z"_array, "k"_a, "out"_array, "threads"_a);
}

}  // namespace

void bind_linear(nb::module_& module) {
    module.def("linear_dense_forward", apart(&dense_forward), "x"_array, "w"_array, "k"_a, "initial"_array, "out"_array,
               "threads"_a);
    module.def("linear_dense_forward_pair", apart(&dense_forward_pair), "x"_array, "first"_array, "second"_array,
               "out_first"_array, "out_second"_array, "threads"_a);
    module.def("linear_dense_adjoint", apart(&dense_adjoint), "x"_array, "z"_array, "k"_a, "out"_array, "threads"_a);
    module.def("linear_dense_adjoint_pair", apart(&dense_adjoint_pair), "x"_array, "first"_array, "second"_array,
               "out"_array, "threads"_a);
    bind_sparse<std::int32_t>(module);
    bind_sparse<std::int64_t>(module);
}

}  // namespace maxmargin
