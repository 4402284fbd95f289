// An elimination order of the nodes of a graph with little fill: nested dissection by breadth-first levels (George and
// Liu 1978). The middle level separates the lower ones from the upper ones and comes after both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "maxmargin/cut/graph.hpp"

namespace maxmargin::cut {

class CutOrder {
   public:
    // Writes a permutation of the nodes, first eliminated first. O(edges log nodes) on meshes.
    void run(const CutExample& graph, std::int32_t* order) {
        const std::int32_t n = graph.nodes;
        part_.assign(n, 0);
        level_.assign(n, -1);
        for (std::int32_t j = 0; j < n; ++j) order[j] = j;
        queue_.resize(n);
        pieces_.clear();
        pieces_.push_back({0, n});
        std::int32_t name = 0;
        while (!pieces_.empty()) {
            const Piece piece = pieces_.back();
            pieces_.pop_back();
            if (piece.end - piece.begin <= small) continue;
            ++name;
            for (std::int32_t i = piece.begin; i < piece.end; ++i) part_[order[i]] = name;
            split(graph, order, piece, name);
        }
    }

   private:
    static constexpr std::int32_t small = 6;
    struct Piece {
        std::int32_t begin, end;
    };

    // Breadth-first levels of the part of `name` that hangs together with `root`; returns how many nodes it has.
    std::int32_t levels(const CutExample& g, std::int32_t root, std::int32_t name) {
        std::int32_t first = 0, last = 0;
        queue_[last++] = root;
        level_[root] = 0;
        while (first < last) {
            const std::int32_t node = queue_[first++];
            for (std::int32_t a = g.first_arc(node), end = g.first_arc(node + 1); a < end; ++a) {
                const std::int32_t other = g.ends[g.arcs[a] ^ 1];
                if (part_[other] != name || level_[other] >= 0) continue;
                level_[other] = level_[node] + 1;
                queue_[last++] = other;
            }
        }
        return last;
    }

    void split(const CutExample& g, std::int32_t* order, const Piece& piece, std::int32_t name) {
        std::int32_t root = order[piece.begin], reached = 0, depth = -1;
        for (int walk = 0; walk < 4; ++walk) {  // walk to an end of the graph, for many thin levels
            reached = levels(g, root, name);
            const std::int32_t far = queue_[reached - 1];
            if (level_[far] <= depth || walk == 3) break;
            depth = level_[far];
            root = far;
            for (std::int32_t i = 0; i < reached; ++i) level_[queue_[i]] = -1;
        }
        depth = level_[queue_[reached - 1]];
        const std::int32_t middle = level_[queue_[reached / 2]];
        // Order: lower levels, upper levels with what was not reached, separator.
        const bool whole = reached == piece.end - piece.begin;
        auto rank = [&](std::int32_t node) {
            const std::int32_t l = level_[node];
            if (!whole) return l >= 0 ? 0 : 1;
            return l < middle ? 0 : l > middle ? 1 : 2;
        };
        std::int32_t count[3] = {0, 0, 0};
        for (std::int32_t i = piece.begin; i < piece.end; ++i) ++count[rank(order[i])];
        std::int32_t at[3] = {0, count[0], count[0] + count[1]};
        for (std::int32_t i = piece.begin; i < piece.end; ++i) queue_[at[rank(order[i])]++] = order[i];
        for (std::int32_t i = piece.begin; i < piece.end; ++i) {
            order[i] = queue_[i - piece.begin];
            level_[order[i]] = -1;
        }
        if (whole && depth < 2) return;  // so dense that no level separates anything
        const std::int32_t cut = piece.begin + count[0];
        pieces_.push_back({piece.begin, cut});
        pieces_.push_back({cut, cut + count[1]});
    }

    std::vector<std::int32_t> part_, level_, queue_;
    std::vector<Piece> pieces_;
};

}  // namespace maxmargin::cut
