// Active sets of projections, which serve one projection each.
#pragma once

#include "arrays.hpp"
#include "maxmargin/hull/batch.hpp"

namespace maxmargin {

inline void require_fresh(const hull::HullBatch& sets) {
    require(!sets.begun, "these active sets have been used; make new ones, and load what is to be kept into them");
}
inline void require_begun(const hull::HullBatch& sets) { require(sets.begun, "call begin first"); }

}  // namespace maxmargin
