// Dynamic programs as deduction systems (Shieber, Schabes and Pereira 1995; Goodman 1999).
//
// A system has items, numbered in topological order; the last one is the goal. An item is made in one of several ways:
// from none, one or two items before it, the antecedents, and with at most one part of the output. Items may have a
// part that all their ways use. A derivation of the goal is an output, whose parts are those used, each as often as it
// is used. Different derivations must be different outputs, so that the best derivations are the best outputs, and sums
// over derivations are sums over outputs. A class is a system if it has
//
//     std::int64_t n_items() const;
//     std::int64_t n_parts() const;                    // parts count from 0 in the example, block after block
//     std::int64_t part_of(std::int64_t item) const;   // the part of all ways of an item, or NONE
//     template <class Take>
//     void ways(std::int64_t item, Take&& take) const; // calls take(left, right, part) for every way; NONE where
//     absent
//
// and it may have a faster way to find the largest score of every item, with the bits that the ways give,
//
//     void fill(const double* scores, double* best) const;
//
// Ways without antecedents are axioms; an item without ways cannot be made. With one antecedent it is the left one.
// Write NONE as a constant where it is one: the loops of the searches are compiled into each call of take.
//
// The kernels of this folder are written once for all systems. Cost of an example with W ways: argmax W additions and
// maxima, marginals W exponentials, or 2 W beyond a million; k best outputs (k_best.hpp) and slack rescaling
// (slack.hpp) are said there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "maxmargin/hull/projection.hpp"

namespace maxmargin::deduction {

using hull::Sparse;
using hull::Status;

inline constexpr std::int64_t NONE = -1;
inline constexpr double NEG_INF = -std::numeric_limits<double>::infinity();

// The number at a place, or zero at NONE.
inline double at(const double* values, std::int64_t place) { return place == NONE ? 0.0 : values[place]; }

// The value of an example without a point.
inline double no_value(Status found) {
    return found == Status::nonfinite ? std::numeric_limits<double>::quiet_NaN() : NEG_INF;
}

// Parts, each as often as it is used, as a vector in rising order.
inline void vertex_of(std::vector<std::int32_t>& parts, Sparse& vertex) {
    std::sort(parts.begin(), parts.end());
    vertex.clear();
    for (const std::int32_t part : parts) {
        if (!vertex.index.empty() && vertex.index.back() == part) vertex.value.back() += 1.0;
        else vertex.add(part, 1.0);
    }
}

}  // namespace maxmargin::deduction
