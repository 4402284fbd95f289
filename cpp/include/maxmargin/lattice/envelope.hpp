// The best paths of a lattice along a line of scores a + gamma b of its edges (Macherey et al. 2008).
//
// The paths that end in a node are lines in gamma; only those on their upper envelope can be part of a best path. The
// envelope of a node is that of the lines of its incoming edges, each one the envelope of the edge's tail moved by the
// edge's own line. Every step drops whatever is below, so the numbers of lines stay far below those of paths.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "maxmargin/base/envelope.hpp"
#include "maxmargin/lattice/batch.hpp"

namespace maxmargin::lattice {

// Best paths of examples, one after the other: path p is best from begin[p] on, to that of the next path of its
// example.
struct BestPaths {
    std::vector<double> begin;
    std::vector<std::int64_t> end{
        0};  // path p has the edges end[p] : end[p + 1], numbers in the example, in path order
    std::vector<std::int64_t> edges;
};

// The paths of one example at a time; keeps its memory.
class PathEnvelope {
   public:
    // Adds the best paths in rising order of gamma; of equal lines the one with the first edge into a node is kept.
    Status run(const Example& ex, const double* scores, const double* slopes, BestPaths& found) {
        bool finite = true;
        for (std::int64_t e = 0; e < ex.n_parts; ++e) finite &= std::isfinite(scores[e]) && std::isfinite(slopes[e]);
        if (!finite) return Status::nonfinite;
        lines_.assign(1, {0.0, 0.0, -1, -1});
        first_.assign(1, 0);
        for (std::int64_t v = 1; v < ex.n_nodes; ++v) {
            first_.push_back(static_cast<std::int32_t>(lines_.size()));
            moved_.clear();
            source_.clear();
            for (std::int64_t j = ex.first[v]; j < ex.first[v + 1]; ++j) {
                const std::int32_t u = ex.tail[j], e = ex.edge[j];
                for (std::int32_t l = first_[u]; l < first_[u + 1]; ++l) {
                    moved_.push_back({0.0, lines_[l].slope + slopes[e], lines_[l].score + scores[e],
                                      static_cast<std::int32_t>(source_.size())});
                    source_.push_back({e, l});
                }
            }
            const auto& segments = envelope_.of_lines(moved_);
            for (const Segment& segment : segments) {
                const auto [edge, before] = source_[segment.line];
                lines_.push_back({segment.slope, segment.score, edge, before});
                if (v == ex.last()) found.begin.push_back(segment.from);
            }
        }
        if (ex.n_nodes == 1) found.begin.push_back(-std::numeric_limits<double>::infinity());
        for (std::size_t last = static_cast<std::size_t>(first_.back()); last < lines_.size(); ++last) {
            const std::size_t from = found.edges.size();
            for (const Line* line = &lines_[last]; line->edge >= 0; line = &lines_[line->before])
                found.edges.push_back(line->edge);
            std::reverse(found.edges.begin() + static_cast<std::ptrdiff_t>(from), found.edges.end());
            found.end.push_back(static_cast<std::int64_t>(found.edges.size()));
        }
        return Status::ok;
    }

   private:
    // A path to a node: its last edge, and the line of the path before it.
    struct Line {
        double slope, score;
        std::int32_t edge, before;
    };
    struct Source {
        std::int32_t edge, before;
    };

    Envelope envelope_;
    std::vector<Line> lines_;
    std::vector<std::int32_t> first_;  // of each node
    std::vector<Segment> moved_;
    std::vector<Source> source_;
};

}  // namespace maxmargin::lattice
