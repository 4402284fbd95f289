// Slack rescaling on forests and junction trees: argmax_y (costs'y + constant) (margin + scores'y), exactly.
//
// Forests with costs in units (Hamming loss) are left to tree/slack_units.hpp. The rest is max-product in which a
// message entry is not one score but a front of labeled subtrees (base/fronts.hpp); their union is a merge, and
// subtrees are joined by sums of every pair of entries. With Hamming loss a front has at most one entry per number of
// errors, so a cluster with s nodes below costs up to s times its entries.
//
// Other costs may give fronts of any length. Where one was thinned the value found is an upper bound, the output is
// feasible, and the status INEXACT.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "maxmargin/base/fronts.hpp"
#include "maxmargin/tree/max_product.hpp"
#include "maxmargin/tree/slack_units.hpp"

namespace maxmargin::tree {

class SlackSearch {
   public:
    // Example i: labels of the best output, its product or a bound of it into value.
    Status run(int width, const Plan& plan, std::int64_t i, const Scores& scores, double margin, const Scores& costs,
               double constant, Scratch& scratch, double& value) {
        value = 0.0;
        if (!std::isfinite(margin) || !std::isfinite(constant)) return Status::nonfinite;
        if (nodes_refused<Vec2>(plan, i, scores, scratch.h.data())) return Status::nonfinite;
        if (!prepare(plan, i, costs)) return Status::nonfinite;
        const Status found = on_nodes_ && units_.prepare(plan, i, cost_)
                                 ? by_units(width, plan, i, scores, margin, constant, scratch, value)
                                 : by_fronts(plan, i, scores, margin, costs, constant, scratch, value);
        if (found == Status::absent) value = NEG_INF;
        if (found != Status::ok || value == 0.0) return found;
        // The product again from the output itself, whatever the order of the sums was.
        double loss = constant, good = margin;
        each_part(
            plan, i, scratch.labels.data(), [&](std::int64_t at) { loss += costs.nodes[at], good += scores.nodes[at]; },
            [&](std::int64_t at) { loss += costs.edges[at], good += scores.edges[at]; },
            [&](std::int64_t at) { loss += costs.cliques[at], good += scores.cliques[at]; });
        value = std::max(0.0, loss * good);
        return std::isfinite(value) ? Status::ok : Status::nonfinite;
    }

   private:
    // The best product of an entry so far; where none is positive, the entry of the best score, an output of loss zero
    // if one has a margin.
    struct Choice {
        double product = 0.0, score = NEG_INF;
        std::int64_t best = -1, highest = -1;

        // False if the score is NaN or +inf.
        bool offer(std::int64_t at, double loss, double score_here, double margin) {
            if (!(score_here <= std::numeric_limits<double>::max())) return false;
            const double good = margin + score_here;
            if (loss > 0.0 && good > 0.0 && loss * good > product) {
                product = loss * good;
                best = at;
            }
            if (score_here > score) {
                score = score_here;
                highest = at;
            }
            return true;
        }
        std::int64_t chosen() const { return best < 0 ? highest : best; }
    };

    Status by_units(int width, const Plan& plan, std::int64_t i, const Scores& scores, double margin, double constant,
                    Scratch& scratch, double& value) {
        if (!fill_units(width, plan, i, scores, scratch.h.data(), units_)) return Status::nonfinite;
        Choice choice;
        for (std::int64_t c = 0; c <= units_.n_total; ++c) {
            const double loss = constant + units_.costs.base + static_cast<double>(c) * units_.costs.unit;
            if (!choice.offer(c, loss, units_.numbers[units_.total + c], margin)) return Status::nonfinite;
        }
        if (choice.chosen() < 0) return Status::absent;
        labels_of_units(plan, i, scores, units_, choice.chosen(), scratch.labels.data());
        value = choice.product;
        return Status::ok;
    }

    Status by_fronts(const Plan& plan, std::int64_t i, const Scores& scores, double margin, const Scores& costs,
                     double constant, Scratch& scratch, double& value) {
        const std::int64_t first = plan.nodes[i], n = plan.nodes[i + 1] - first;
        for (std::int64_t t = 0; t < n; ++t) {
            const std::int32_t node = plan.order[first + t];
            if (tables_refused<Vec2>(plan, first + node, scores)) return Status::nonfinite;
            eliminate(plan, first, node, scores, costs, scratch);
        }
        Front all = single(0.0, 0.0);
        for (const Front& root : roots_) all = joined(all, root);
        Choice choice;
        for (std::int64_t at = all.begin; at < all.end; ++at)
            if (!choice.offer(at, constant + arena_[at].loss, arena_[at].score, margin)) return Status::nonfinite;
        if (choice.chosen() < 0) return Status::absent;
        trace(choice.chosen(), scratch.labels.data());
        value = choice.product;
        return merge_.thinned ? Status::inexact : Status::ok;
    }

    // A labeled subtree. From a message: `node` takes label `one` and goes on as entry `two`. Else the sum of entries
    // `one` and `two` (-1: nothing).
    struct Entry {
        double loss, score;
        std::int64_t one, two;
        std::int32_t node;
    };
    struct Front {
        std::int64_t begin, end;  // entries of the arena
    };

    std::vector<Entry> arena_;
    FrontMerge<Entry> merge_;
    std::vector<Front> messages_, own_, roots_;
    std::vector<double> cost_;  // of node parts, cliques of one node included
    std::vector<std::int64_t> stack_;
    bool on_nodes_ = true;  // nothing but nodes has costs
    UnitTables units_;

    // False if a cost is not finite.
    bool prepare(const Plan& plan, std::int64_t i, const Scores& costs) {
        const std::int64_t n_parts = plan.node_parts[i + 1] - plan.node_parts[i];
        cost_.assign(costs.nodes, costs.nodes + n_parts);
        each_single(plan, i, [&](std::int64_t v, std::int64_t table) {
            for (std::int64_t x = 0; x < plan.labels[v]; ++x) cost_[plan.part[v] + x] += costs.cliques[table + x];
        });
        double size = 0.0, on_tables = 0.0;
        for (const double c : cost_) size += std::fabs(c);
        for (std::int64_t j = 0; j < plan.edge_parts[i + 1] - plan.edge_parts[i]; ++j)
            on_tables += std::fabs(costs.edges[j]);
        for (std::int64_t j = 0; j < plan.clique_parts[i + 1] - plan.clique_parts[i]; ++j)
            on_tables += std::fabs(costs.cliques[j]);
        on_nodes_ = on_tables == 0.0;
        size += on_tables;
        merge_.begin(FrontMerge<Entry>::limit_for(plan.n_messages[i] + n_parts), 1e-15 * size);
        arena_.clear();
        roots_.clear();
        messages_.assign(static_cast<std::size_t>(plan.n_messages[i]), {0, 0});
        return std::isfinite(size);
    }

    Front single(double loss, double score) {
        arena_.push_back({loss, score, -1, -1, -1});
        return {static_cast<std::int64_t>(arena_.size()) - 1, static_cast<std::int64_t>(arena_.size())};
    }

    Front kept() {
        const auto begin = static_cast<std::int64_t>(arena_.size());
        arena_.insert(arena_.end(), merge_.front.begin(), merge_.front.end());
        return {begin, static_cast<std::int64_t>(arena_.size())};
    }

    // The front of all sums of an entry of one and an entry of two.
    Front joined(const Front& one, const Front& two) {
        const bool swap = one.end - one.begin > two.end - two.begin;
        const Front &few = swap ? two : one, &many = swap ? one : two;
        merge_.front.clear();
        for (std::int64_t p = few.begin; p < few.end; ++p) {
            merge_.other.clear();
            for (std::int64_t q = many.begin; q < many.end; ++q)
                merge_.other.push_back({arena_[p].loss + arena_[q].loss, arena_[p].score + arena_[q].score, p, q, -1});
            merge_.merge();
        }
        return kept();
    }

    void eliminate(const Plan& plan, std::int64_t first, std::int32_t node, const Scores& scores, const Scores& costs,
                   Scratch& scratch) {
        const std::int64_t v = first + node, k = plan.labels[v], s = plan.separators[v + 1] - plan.separators[v];
        own_.assign(static_cast<std::size_t>(k), {0, 0});
        for (std::int64_t x = 0; x < k; ++x) {
            const double score = scratch.h[plan.part[v] + x];
            if (score == NEG_INF) continue;
            Front front = single(cost_[plan.part[v] + x], score);
            for (std::int64_t c = plan.children[v]; c < plan.children[v + 1]; ++c) {
                const std::int64_t child = first + plan.child[c];
                if (plan.as_term[child] < 0) front = joined(front, messages_[plan.message[child] + x]);
            }
            own_[x] = front;
        }
        std::fill(scratch.digits.begin(), scratch.digits.begin() + s, 0);
        for (std::int64_t row = 0; row < plan.rows[v]; ++row) {
            const Front made = message(plan, first, node, scores, costs, scratch.digits.data());
            if (plan.parent[v] < 0) roots_.push_back(made);
            else messages_[plan.message[v] + row] = made;
            for (std::int64_t d = s - 1; d >= 0; --d) {
                if (++scratch.digits[d] < plan.labels[first + plan.separator[plan.separators[v] + d]]) break;
                scratch.digits[d] = 0;
            }
        }
    }

    // The union over the labels of a node, given those of its separator.
    Front message(const Plan& plan, std::int64_t first, std::int32_t node, const Scores& scores, const Scores& costs,
                  const std::int64_t* digits) {
        const std::int64_t v = first + node, s = plan.separators[v + 1] - plan.separators[v];
        bool wide = false;
        for (std::int64_t t = plan.terms[v]; t < plan.terms[v + 1]; ++t) wide |= plan.term[t].source == Source::message;
        if (wide) wider_.assign(own_.begin(), own_.end());
        for (std::int64_t c = plan.children[v]; wide && c < plan.children[v + 1]; ++c) {
            const std::int64_t child = first + plan.child[c];
            if (plan.as_term[child] < 0) continue;
            const Term& term = plan.term[plan.as_term[child]];
            for (std::int64_t x = 0; x < plan.labels[v]; ++x) {
                std::int64_t row = x * term.own;
                for (std::int64_t d = 0; d < s; ++d) row += digits[d] * plan.stride[term.strides + d];
                wider_[x] = joined(wider_[x], messages_[plan.message[child] + row]);
            }
        }
        const std::vector<Front>& fronts = wide ? wider_ : own_;
        merge_.front.clear();
        for (std::int64_t x = 0; x < plan.labels[v]; ++x) {
            double loss = 0.0, score = 0.0;
            for (std::int64_t t = plan.terms[v]; t < plan.terms[v + 1]; ++t) {
                const Term& term = plan.term[t];
                if (term.source == Source::message) continue;
                std::int64_t at = x * term.own;
                for (std::int64_t d = 0; d < s; ++d) at += digits[d] * plan.stride[term.strides + d];
                loss += table_of<const double>(term, costs, nullptr)[at];
                score += table_of<const double>(term, scores, nullptr)[at];
            }
            if (score == NEG_INF) continue;
            merge_.other.clear();
            for (std::int64_t at = fronts[x].begin; at < fronts[x].end; ++at)
                merge_.other.push_back({arena_[at].loss + loss, arena_[at].score + score, x, at, node});
            merge_.merge();
        }
        return kept();
    }

    void trace(std::int64_t from, std::int32_t* labels) {
        stack_.assign(1, from);
        while (!stack_.empty()) {
            const Entry& entry = arena_[stack_.back()];
            stack_.pop_back();
            if (entry.node >= 0) labels[entry.node] = static_cast<std::int32_t>(entry.one);
            else if (entry.one >= 0) stack_.push_back(entry.one);
            if (entry.two >= 0) stack_.push_back(entry.two);
        }
    }

    std::vector<Front> wider_;
};

// z must be zero on entry.
inline void slack_argmax(const Plan& plan, std::span<const double> scores, std::span<const double> margin,
                         std::span<const double> costs, std::span<const double> constants, std::span<double> z,
                         std::span<double> value, std::span<std::int8_t> status, int threads) {
    const int width = lanes_in_use();
    ScratchLease<Scratch> scratch(threads, [&](Scratch& own) { own.resize(plan); });
    auto searches = per_thread<SlackSearch>(threads);
    parallel_each(plan.n_examples(), 1, threads, [&](int thread, std::int64_t i) {
        Scratch& mine = scratch[thread];
        const Status found = searches[thread].run(width, plan, i, parts_of(plan, i, scores.data()), margin[i],
                                                  parts_of(plan, i, costs.data()), constants[i], mine, value[i]);
        if (found == Status::ok || found == Status::inexact) mark(plan, i, mine.labels.data(), z.data());
        if (found == Status::nonfinite) value[i] = std::numeric_limits<double>::quiet_NaN();
        status[i] = static_cast<std::int8_t>(found);
    });
}

}  // namespace maxmargin::tree
