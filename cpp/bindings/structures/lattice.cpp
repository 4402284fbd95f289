#include <nanobind/stl/pair.h>

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "maxmargin/lattice/best_path.hpp"
#include "maxmargin/lattice/envelope.hpp"
#include "maxmargin/lattice/good_paths.hpp"
#include "maxmargin/lattice/k_best.hpp"
#include "maxmargin/lattice/projection.hpp"
#include "maxmargin/lattice/slack.hpp"
#include "maxmargin/lattice/sum_product.hpp"
#include "maxmargin/lattice/words.hpp"
#include "owned.hpp"
#include "solvers/online.hpp"
#include "structures/vectors.hpp"

namespace maxmargin {

namespace {

// Checks offsets, the ends of all edges, and where the examples start and end.
lattice::Graphs graphs_of(const In<std::int64_t>& nodes, const In<std::int64_t>& edges, const In<std::int32_t>& ends,
                          const In<std::int32_t>& start, const In<std::int32_t>& end) {
    const lattice::Graphs graphs{view(nodes), view(edges), view(ends), view(start), view(end)};
    require(rises_from_zero(graphs.nodes) && graphs.nodes.back() <= most_claimed,
            "node offsets must rise from 0 to no more than 2^30");
    require(graphs.nodes.size() == graphs.edges.size() && graphs.ends.size() % 2 == 0 &&
                rises_to(graphs.edges, graphs.ends.size() / 2),
            "edge offsets must rise from 0 to the number of edges, which have two ends each");
    require(graphs.start.size() + 1 == graphs.nodes.size() && graphs.end.size() + 1 == graphs.nodes.size(),
            "start and end must have one entry per example");
    for (std::int64_t i = 0; i < graphs.n_examples(); ++i) {
        const std::int64_t n = graphs.n_nodes(i), most = std::int64_t{1} << 30;
        require(n < most && graphs.n_edges(i) < most, "an example has too many nodes or edges");
        require(graphs.start[i] >= 0 && graphs.start[i] < n && graphs.end[i] >= 0 && graphs.end[i] < n,
                "start and end must be nodes of their example");
        require(within(graphs.ends.subspan(2 * graphs.edges[i], 2 * graphs.n_edges(i)), 0, n),
                "an edge must join two nodes of its example");
    }
    return graphs;
}

// A batch whose arrays are checked and whose nodes are sorted on construction.
class LatticeBatch {
   public:
    LatticeBatch(In<std::int64_t> nodes, In<std::int64_t> edges, In<std::int32_t> ends, In<std::int32_t> start,
                 In<std::int32_t> end, Threads threads)
        : batch_(made(graphs_of(nodes, edges, ends, start, end), threads)) {
        for (std::int64_t i = batch_.size() - 1; i >= 0; --i)
            if (batch_.fault(i) != lattice::Fault::none) fault_ = {i, static_cast<int>(batch_.fault(i))};
    }

    // The first example that has a cycle (1) or no path (2), and which of them; (-1, 0) if there is none.
    std::pair<std::int64_t, int> fault() const { return fault_; }

    void positions(Out<std::int32_t> out) const {
        require(out.size() == batch_.positions().size(), "positions must have one entry per node");
        std::copy(batch_.positions().begin(), batch_.positions().end(), out.data());
    }

    void argmax(In<double> scores, Out<double> z, Out<double> value, Out<std::int8_t> status, Threads threads) const {
        check(scores, z, value, status);
        const NoGil release;
        lattice::argmax(batch_, view(scores), view(z), view(value), view(status), threads);
    }

    void marginals(In<double> potentials, Out<double> z, Out<double> value, Out<std::int8_t> status,
                   Threads threads) const {
        check(potentials, z, value, status);
        const NoGil release;
        lattice::marginals(batch_, view(potentials), view(z), view(value), view(status), threads);
    }

    void k_best(std::int64_t k, In<double> scores, Out<double> z, Out<double> value, Out<std::int8_t> status,
                Threads threads) const {
        check(scores, z, value, status, checked_ranks(k));
        const NoGil release;
        lattice::k_best(batch_, k, view(scores), view(z), view(value), view(status), threads);
    }

    void k_best_words(std::int64_t k, In<double> scores, In<std::int64_t> words, Out<double> z, Out<double> value,
                      Out<std::int8_t> status, Threads threads) const {
        check(scores, z, value, status, checked_ranks(k));
        require(words.size() == scores.size(), "words must have one entry per edge");
        const NoGil release;
        lattice::k_best_words(batch_, k, view(scores), view(words), view(z), view(value), view(status), threads);
    }

    void slack_argmax(In<double> scores, In<double> margin, In<double> costs, In<double> constants, Out<double> z,
                      Out<double> value, Out<std::int8_t> status, Threads threads) const {
        check(scores, z, value, status);
        require_slack(scores, batch_.size(), margin, costs, constants);
        const NoGil release;
        lattice::slack_argmax(batch_, view(scores), view(margin), view(costs), view(constants), view(z), view(value),
                              view(status), threads);
    }

    void project(In<double> point, double tol, bool warm, Out<double> potentials, Out<double> z, Out<double> value,
                 Out<std::int8_t> status, Out<std::int32_t> steps, Threads threads) const {
        check(point, z, value, status);
        require(tol >= 0 && std::isfinite(tol), "tol must be finite and not negative");
        require(potentials.size() == batch_.positions().size() && steps.size() == value.size(),
                "potentials must have one entry per node, and steps one per example");
        const NoGil release;
        lattice::project(batch_, view(point), tol, warm, view(potentials), view(z), view(value), view(status),
                         view(steps), threads);
    }

    // Numbers of paths as offsets of examples, where each begins, and offsets and numbers of their edges.
    nb::tuple envelopes(In<double> scores, In<double> slopes, Out<std::int8_t> status, Threads threads) const {
        const std::int64_t n = batch().size();
        require(scores.size() == static_cast<std::size_t>(batch_.n_parts()) && slopes.size() == scores.size(),
                "scores and slopes must have one entry per edge");
        require(status.size() == static_cast<std::size_t>(n), "status must have one entry per example");
        std::vector<std::int64_t> paths(static_cast<std::size_t>(n) + 1, 0);
        lattice::BestPaths all;
        {
            const NoGil release;
            std::vector<lattice::BestPaths> own(static_cast<std::size_t>(n));
            auto search = per_thread<lattice::PathEnvelope>(threads);
            parallel_each(n, 1, threads, [&](int thread, std::int64_t i) {
                const std::int64_t at = batch_.begin(i);
                status.data()[i] = static_cast<std::int8_t>(
                    search[thread].run(batch_[i], scores.data() + at, slopes.data() + at, own[i]));
            });
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int64_t before = all.end.back();
                all.begin.insert(all.begin.end(), own[i].begin.begin(), own[i].begin.end());
                all.edges.insert(all.edges.end(), own[i].edges.begin(), own[i].edges.end());
                for (std::size_t p = 1; p < own[i].end.size(); ++p) all.end.push_back(before + own[i].end[p]);
                paths[i + 1] = static_cast<std::int64_t>(all.begin.size());
            }
        }
        return nb::make_tuple(owned(std::move(paths)), owned(std::move(all.begin)), owned(std::move(all.end)),
                              owned(std::move(all.edges)));
    }

    void most_violated_pairs(In<std::int64_t> starts, In<std::int64_t> offsets, In<std::int32_t> edges,
                             In<std::int64_t> chosen, In<double> scores, Out<double> pairs, Out<double> value,
                             Threads threads) const {
        const lattice::GoodPaths paths{view(starts), view(offsets), view(edges), view(chosen)};
        check(paths);
        require(scores.size() == static_cast<std::size_t>(batch_.n_parts()) && pairs.size() == scores.size() &&
                    value.size() == static_cast<std::size_t>(batch_.size()),
                "vectors do not fit the batch");
        const NoGil release;
        lattice::most_violated_pairs(batch_, paths, view(scores), view(pairs), view(value), threads);
    }

    // Checks that every example has a good path, and that paths have edges of their examples.
    void check(const lattice::GoodPaths& paths) const {
        const std::int64_t n = batch().size();
        require(!paths.offsets.empty() && rises_to(paths.offsets, paths.edges.size()),
                "offsets of good paths must rise from 0 to the number of their edges");
        require(
            static_cast<std::int64_t>(paths.starts.size()) == n + 1 && rises_to(paths.starts, paths.offsets.size() - 1),
            "starts must have n_examples + 1 entries and rise from 0 to the number of good paths");
        require(paths.chosen.empty() || static_cast<std::int64_t>(paths.chosen.size()) == n,
                "one chosen path per example, or none");
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t begin = paths.starts[i], end = paths.starts[i + 1];
            require(begin < end, "every example must have a good path");
            require(paths.chosen.empty() || (paths.chosen[i] >= begin && paths.chosen[i] < end),
                    "a chosen path must be a good one of its example");
            for (std::int64_t p = begin; p < end; ++p)
                require(within(paths.path(p), 0, batch_[i].n_parts), "an edge of a good path is out of range");
        }
    }

    // The batch for kernels, none of whose examples has a fault.
    const lattice::Batch& batch() const {
        require(fault_.first < 0, "an example has a cycle or no path");
        return batch_;
    }

   private:
    static lattice::Batch made(const lattice::Graphs& graphs, Threads threads) {
        const NoGil release;
        return {graphs, threads};
    }

    void check(const In<double>& input, const Out<double>& z, const Out<double>& value, const Out<std::int8_t>& status,
               std::int64_t ranks = 1) const {
        require_vectors(input, batch().n_parts(), batch_.size(), z, value, status, ranks);
    }

    lattice::Batch batch_;
    std::pair<std::int64_t, int> fault_{-1, 0};
};

// Best paths, the k best, and slack rescaling, for one example at a time.
class LatticeOracle final : public RankedOracle {
   public:
    LatticeOracle(const LatticeBatch& checked, std::int64_t ranks)
        : RankedOracle(checked_ranks(ranks)), batch_(checked.batch()) {}
    std::unique_ptr<online::Oracle> another() const override { return std::make_unique<LatticeOracle>(*this); }
    std::int64_t n_examples() const override { return batch_.size(); }
    std::int64_t size(std::int64_t i) const override { return batch_[i].n_parts; }
    online::Status argmax(std::int64_t i, const double* scores, hull::Sparse& vertex) override {
        double value;
        const online::Status found = lattice::best_path(batch_[i], scores, passes_, value);
        if (found == online::Status::ok) lattice::vertex_of(passes_.path, vertex);
        return found;
    }
    std::optional<online::Status> slack_argmax(std::int64_t i, const online::SlackProduct& product,
                                               hull::Sparse& vertex, double& value) override {
        const online::Status found =
            slack_.run(batch_[i], product.scores, product.margin, product.costs, product.constant, value);
        if (found == online::Status::ok || found == online::Status::inexact) lattice::vertex_of(slack_.path, vertex);
        return found;
    }

   protected:
    online::Status begin(std::int64_t i, const double* scores) override { return k_best_.begin(batch_[i], scores); }
    bool next(hull::Sparse& vertex) override {
        double value;
        const std::vector<std::int32_t>* path = k_best_.next(&value);
        if (path) lattice::vertex_of(*path, vertex);
        return path;
    }

   private:
    const lattice::Batch& batch_;
    lattice::Passes passes_;
    lattice::KBest k_best_;
    lattice::SlackSearch slack_;
};

// The most violated pair of a bad and a good path as the point gold + bad - good; the gold one if none violates its
// margin. Costs, with the example weights, are the margins; without them it is 1.
class PathPairsHinge final : public online::Hinge {
   public:
    PathPairsHinge(const LatticeBatch& checked, In<std::int64_t> starts, In<std::int64_t> offsets,
                   In<std::int32_t> edges, In<std::int64_t> chosen, In<std::int64_t> gold_starts,
                   In<std::int64_t> gold_index, In<double> costs, In<double> scale)
        : batch_(checked.batch()), starts_(copied(starts)), offsets_(copied(offsets)), edges_(copied(edges)),
          chosen_(copied(chosen)), gold_starts_(copied(gold_starts)), gold_(copied(gold_index)), costs_(copied(costs)),
          scale_(copied(scale)) {
        checked.check(paths());
        const auto n = static_cast<std::size_t>(batch_.size()), parts = static_cast<std::size_t>(batch_.n_parts());
        require(costs_.empty() || costs_.size() == parts, "one cost per edge, or none");
        require(scale_.size() == n && gold_starts_.size() == n + 1 &&
                    rises_to(std::span<const std::int64_t>(gold_starts_), gold_.size()),
                "one weight and one gold path per example");
        for (std::int64_t i = 0; i < batch_.size(); ++i)
            require(within(gold(i), batch_.begin(i), batch_.begin(i) + batch_[i].n_parts),
                    "a gold edge is out of range");
    }
    std::unique_ptr<online::Hinge> another() const override { return std::make_unique<PathPairsHinge>(*this); }
    void most_violated(std::int64_t i, std::span<const double> scores, hull::Sparse& z) override {
        require(i >= 0 && i < batch_.size() && static_cast<std::int64_t>(scores.size()) == batch_[i].n_parts,
                "scores do not fit the example");
        if (!all_finite(scores)) throw online::NonFinite();
        const std::int64_t at = batch_.begin(i);
        if (!costs_.empty()) {
            augmented_.resize(scores.size());
            for (std::size_t e = 0; e < scores.size(); ++e) augmented_[e] = scale_[i] * scores[e] + costs_[at + e];
            scores = augmented_;
        }
        double value;
        const online::Status found = search_.run(batch_[i], paths(), i, scores.data(), value);
        if (found == online::Status::nonfinite) throw online::NonFinite();
        steps_.clear();
        for (const std::int64_t e : gold(i)) steps_.push_back({static_cast<std::int32_t>(e - at), 1.0});
        if (found == online::Status::ok && value + (costs_.empty() ? 1.0 : 0.0) > 0.0) {
            for (const std::int32_t e : search_.bad) steps_.push_back({e, 1.0});
            for (const std::int32_t e : search_.good) steps_.push_back({e, -1.0});
        }
        std::ranges::sort(steps_, {}, &std::pair<std::int32_t, double>::first);
        z.clear();
        for (std::size_t j = 0; j < steps_.size();) {
            const std::int32_t e = steps_[j].first;
            double sum = 0.0;
            for (; j < steps_.size() && steps_[j].first == e; ++j) sum += steps_[j].second;
            if (sum != 0.0) z.add(e, sum);
        }
    }

   private:
    lattice::GoodPaths paths() const { return {starts_, offsets_, edges_, chosen_}; }
    std::span<const std::int64_t> gold(std::int64_t i) const {
        return std::span<const std::int64_t>(gold_).subspan(gold_starts_[i], gold_starts_[i + 1] - gold_starts_[i]);
    }
    const lattice::Batch& batch_;
    std::vector<std::int64_t> starts_, offsets_;
    std::vector<std::int32_t> edges_;
    std::vector<std::int64_t> chosen_, gold_starts_, gold_;
    std::vector<double> costs_, scale_, augmented_;
    std::vector<std::pair<std::int32_t, double>> steps_;
    lattice::PairSearch search_;
};

}  // namespace

void bind_lattice(nb::module_& module) {
    auto batch = nb::class_<LatticeBatch>(module, "LatticeBatch");
    batch
        .def(nb::init<In<std::int64_t>, In<std::int64_t>, In<std::int32_t>, In<std::int32_t>, In<std::int32_t>,
                      Threads>(),
             "nodes"_array, "edges"_array, "ends"_array, "start"_array, "end"_array, "threads"_a)
        .def("fault", &LatticeBatch::fault)
        .def("positions", &LatticeBatch::positions, "out"_array)
        .def("k_best_words", apart(&LatticeBatch::k_best_words), "k"_a, "scores"_array, "words"_array, "z"_array,
             "value"_array, "status"_array, "threads"_a)
        .def("envelopes", apart(&LatticeBatch::envelopes), "scores"_array, "slopes"_array, "status"_array, "threads"_a)
        .def("project", apart(&LatticeBatch::project), "point"_array, "tol"_a, "warm"_a, "potentials"_array, "z"_array,
             "value"_array, "status"_array, "steps"_array, "threads"_a)
        .def("most_violated_pairs", apart(&LatticeBatch::most_violated_pairs), "starts"_array, "offsets"_array,
             "edges"_array, "chosen"_array, "scores"_array, "pairs"_array, "value"_array, "threads"_a);
    bind_kernels(batch);
    nb::class_<LatticeOracle, online::Oracle>(module, "LatticeOracle")
        .def(nb::init<const LatticeBatch&, std::int64_t>(), "batch"_a, "ranks"_a, nb::keep_alive<1, 2>());
    nb::class_<PathPairsHinge, online::Hinge>(module, "PathPairsHinge")
        .def(nb::init<const LatticeBatch&, In<std::int64_t>, In<std::int64_t>, In<std::int32_t>, In<std::int64_t>,
                      In<std::int64_t>, In<std::int64_t>, In<double>, In<double>>(),
             "batch"_a, "starts"_array, "offsets"_array, "edges"_array, "chosen"_array, "gold_starts"_array,
             "gold_index"_array, "costs"_array, "scale"_array, nb::keep_alive<1, 2>());
}

}  // namespace maxmargin
