#include <limits>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/base/parallel.hpp"
#include "maxmargin/base/scratch.hpp"
#include "maxmargin/pairing/batch.hpp"
#include "maxmargin/pairing/k_best.hpp"
#include "owned.hpp"
#include "solvers/online.hpp"
#include "structures/vectors.hpp"

namespace maxmargin {

namespace {

using pairing::Int;

constexpr Int most_nodes = Int{1} << 15;  // of one example, whose weights are a matrix

void vertex_of(const std::vector<std::int32_t>& edges, hull::Sparse& vertex) {
    vertex.clear();
    for (const std::int32_t e : edges) vertex.add(e, 1.0);
}

// The best pairing of one example after the other.
struct Best {
    pairing::Pairer pairer;
    std::vector<std::int32_t> edges;

    pairing::Status find(const pairing::Example& example, const double* scores) {
        const pairing::Status now = pairer.begin(example, scores);
        return now == pairing::Status::ok ? pairer.solve(nullptr, edges) : now;
    }
    pairing::Status find(const pairing::Example& example, const double* scores, hull::Sparse& vertex) {
        const pairing::Status now = find(example, scores);
        if (now == pairing::Status::ok) vertex_of(edges, vertex);
        return now;
    }
};

// A batch whose arrays are checked on construction; it owns copies of them.
class PairingBatch {
   public:
    PairingBatch(In<Int> node_start, In<Int> edge_start, In<std::int32_t> ends, bool perfect)
        : node_start_(copied(node_start)), edge_start_(copied(edge_start)), ends_(copied(ends)), perfect_(perfect) {
        const pairing::Batch batch = view();
        require(rises_from_zero(batch.node_start) && batch.node_start.back() <= most_claimed,
                "node offsets must rise from 0 to no more than 2^30");
        require(batch.node_start.size() == batch.edge_start.size() && batch.ends.size() % 2 == 0 &&
                    rises_to(batch.edge_start, batch.ends.size() / 2),
                "edge offsets must rise from 0 to the number of edges, which have two ends each");
        for (Int i = 0; i < batch.size(); ++i) {
            require(batch.n_nodes(i) <= most_nodes, "an example has more than 2^15 nodes");
            const auto ends_of = batch.ends.subspan(2 * batch.edge_start[i], 2 * batch.n_edges(i));
            require(within(ends_of, 0, batch.n_nodes(i)), "an edge must join two nodes of its example");
            for (std::size_t e = 0; e < ends_of.size(); e += 2)
                require(ends_of[e] != ends_of[e + 1], "an edge must join two different nodes");
        }
    }

    pairing::Batch view() const { return {node_start_, edge_start_, ends_, perfect_}; }

    void argmax(In<double> scores, Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) const {
        const pairing::Batch batch = check(scores);
        require_outputs(scores.size(), batch.size(), z, value, status);
        const NoGil release;
        auto scratch = per_thread<Best>(threads);
        parallel_each(batch.size(), grain(), threads, [&](int thread, Int i) {
            Best& best = scratch[thread];
            const Int at = batch.edge_start[i];
            const pairing::Status now = best.find(pairing::example(batch, i), scores.data() + at);
            fill(now, best.edges, now == pairing::Status::ok ? best.pairer.score(best.edges) : 0.0, z.data() + at,
                 value.data() + i, status.data() + i);
        });
    }

    // Rank r of example i goes to z[r][..], value[r][i] and status[r][i]; z must be zero on entry.
    void k_best(Int k, In<double> scores, Out<double> z, Out<double> value, Out<std::int8_t> status,
                Threads threads) const {
        const pairing::Batch batch = check(scores);
        require_outputs(scores.size(), batch.size(), z, value, status, checked_ranks(k));
        const NoGil release;
        auto searches = per_thread<pairing::KBest>(threads);
        const auto n = static_cast<std::size_t>(batch.size()), parts = scores.size();
        parallel_each(batch.size(), 1, threads, [&](int thread, Int i) {
            const Int at = batch.edge_start[i];
            pairing::Status now = searches[thread].begin(pairing::example(batch, i), scores.data() + at);
            for (std::size_t r = 0; r < static_cast<std::size_t>(k); ++r) {
                double score = 0;
                const auto* found = now == pairing::Status::ok ? searches[thread].next(&score) : nullptr;
                if (now == pairing::Status::ok && !found) now = pairing::Status::absent;
                fill(now, found ? *found : none_, score, z.data() + r * parts + at, value.data() + r * n + i,
                     status.data() + r * n + i);
            }
        });
    }

    // Euclidean projection of every example, the active sets fed by the argmax.
    void project(hull::HullBatch& sets, In<double> point, Out<double> z, Out<double> value, Out<std::int8_t> status,
                 Threads threads) const {
        const pairing::Batch batch = check(point);
        require_outputs(point.size(), batch.size(), z, value, status);
        require_fresh(sets, batch.size(), [&](Int i) { return batch.n_edges(i); });
        const NoGil release;
        auto scratch = per_thread<Best>(threads);
        const auto find = [&](int thread, Int i, const std::vector<double>& scores, hull::Sparse& vertex) {
            return scratch[thread].find(pairing::example(batch, i), scores.data(), vertex);
        };
        const auto blocks = [&](Int i, auto&& block) {
            block(point.data() + batch.edge_start[i], batch.edge_start[i], batch.n_edges(i));
        };
        sets.project(maxmargin::view(z), maxmargin::view(value), maxmargin::view(status), threads, blocks, find);
    }

    // Duals of the nodes; and the odd sets of each example as offsets, their duals, and offsets and numbers of their
    // nodes.
    nb::tuple duals(In<double> scores, Out<double> nodes, Out<std::int8_t> status, Threads threads) const {
        const pairing::Batch batch = check(scores);
        require(static_cast<Int>(nodes.size()) == batch.node_start.back() &&
                    static_cast<Int>(status.size()) == batch.size(),
                "there must be one dual per node and one status per example");
        std::vector<Int> starts(static_cast<std::size_t>(batch.size()) + 1, 0), offsets{0}, members;
        std::vector<double> values;
        {
            const NoGil release;
            struct Sets {
                std::vector<double> values;
                std::vector<Int> sizes, members;
            };
            std::vector<Sets> own(static_cast<std::size_t>(batch.size()));
            auto scratch = per_thread<Best>(threads);
            parallel_each(batch.size(), grain(), threads, [&](int thread, Int i) {
                const pairing::Pairer& pairer = scratch[thread].pairer;
                const pairing::Status now =
                    scratch[thread].find(pairing::example(batch, i), scores.data() + batch.edge_start[i]);
                status.data()[i] = static_cast<std::int8_t>(now);
                double* dual = nodes.data() + batch.node_start[i];
                for (Int v = 0; v < batch.n_nodes(i); ++v) dual[v] = now == pairing::Status::ok ? pairer.dual(v) : 0.0;
                if (now != pairing::Status::ok) return;
                pairer.odd_sets([&](double z, const std::vector<Int>& inside) {
                    own[i].values.push_back(z);
                    own[i].sizes.push_back(static_cast<Int>(inside.size()));
                    own[i].members.insert(own[i].members.end(), inside.begin(), inside.end());
                });
            });
            for (Int i = 0; i < batch.size(); ++i) {
                values.insert(values.end(), own[i].values.begin(), own[i].values.end());
                members.insert(members.end(), own[i].members.begin(), own[i].members.end());
                for (const Int size : own[i].sizes) offsets.push_back(offsets.back() + size);
                starts[i + 1] = static_cast<Int>(values.size());
            }
        }
        return nb::make_tuple(owned(std::move(starts)), owned(std::move(values)), owned(std::move(offsets)),
                              owned(std::move(members)));
    }

   private:
    pairing::Batch check(const In<double>& given) const {
        const pairing::Batch batch = view();
        require(static_cast<Int>(given.size()) == batch.edge_start.back(), "there must be one number per edge");
        return batch;
    }

    // Examples per block of work: enough edges to pay for handing the block out.
    Int grain() const {
        const Int n = view().size(), edges = edge_start_.back() / std::max<Int>(n, 1);
        return std::clamp<Int>(1000 / (edges + 1), 1, 64);
    }

    static void fill(pairing::Status found, const std::vector<std::int32_t>& edges, double score, double* z,
                     double* value, std::int8_t* status) {
        *status = static_cast<std::int8_t>(found);
        *value = found == pairing::Status::ok       ? score
                 : found == pairing::Status::absent ? -std::numeric_limits<double>::infinity()
                                                    : std::numeric_limits<double>::quiet_NaN();
        if (found != pairing::Status::ok) return;
        for (const std::int32_t e : edges) z[e] = 1.0;
    }

    std::vector<Int> node_start_, edge_start_;
    std::vector<std::int32_t> ends_, none_;
    bool perfect_;
};

// The best pairing, or the k best, of one example at a time.
class PairingOracle final : public RankedOracle {
   public:
    PairingOracle(const PairingBatch& checked, Int ranks)
        : RankedOracle(checked_ranks(ranks)), batch_(checked.view()) {}
    std::unique_ptr<online::Oracle> another() const override { return std::make_unique<PairingOracle>(*this); }
    std::int64_t n_examples() const override { return batch_.size(); }
    std::int64_t size(std::int64_t i) const override { return batch_.n_edges(i); }
    online::Status argmax(std::int64_t i, const double* scores, hull::Sparse& vertex) override {
        return best_.find(pairing::example(batch_, i), scores, vertex);
    }

   protected:
    online::Status begin(std::int64_t i, const double* scores) override {
        return k_best_.begin(pairing::example(batch_, i), scores);
    }
    bool next(hull::Sparse& vertex) override {
        double value;
        const std::vector<std::int32_t>* edges = k_best_.next(&value);
        if (edges) vertex_of(*edges, vertex);
        return edges;
    }

   private:
    pairing::Batch batch_;
    Best best_;
    pairing::KBest k_best_;
};

}  // namespace

void bind_pairing(nb::module_& module) {
    auto batch = nb::class_<PairingBatch>(module, "PairingBatch");
    batch
        .def(nb::init<In<Int>, In<Int>, In<std::int32_t>, bool>(), "node_start"_array, "edge_start"_array, "ends"_array,
             "perfect"_a)
        .def("duals", apart(&PairingBatch::duals), "scores"_array, "nodes"_array, "status"_array, "threads"_a);
    bind_kernels(batch);
    bind_project(batch);
    nb::class_<PairingOracle, online::Oracle>(module, "PairingOracle")
        .def(nb::init<const PairingBatch&, Int>(), "batch"_a, "ranks"_a, nb::keep_alive<1, 2>());
}

}  // namespace maxmargin
