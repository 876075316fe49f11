// The rows of a problem of LargestK, and where its kernels keep what they sort.
#pragma once

#include <cstdint>

#include "ops/largest_k/largest_k.hpp"
#include "ops/workspace_parts.hpp"

namespace graft::ops {

/// A row is what lies along the axis: its elements are `stride` apart.
struct LargestRows {
  LargestRows(const LargestK& op, const Problem& problem) {
    const Extents& x = problem.inputs[0].extents;
    const int along = op.axis_of(x.rank());
    length = x[along];
    kept = op.k;
    for (int axis = 0; axis < along; ++axis) rows *= x[axis];
    for (int axis = along + 1; axis < x.rank(); ++axis) stride *= x[axis];
    rows *= stride;
  }

  std::int64_t rows = 1;
  std::int64_t stride = 1;
  std::int64_t length = 0;
  std::int64_t kept = 0;
};

/// Byte offsets in the workspace.
struct LargestPlan : WorkspaceParts {
  LargestPlan(const LargestRows& rows, DType dtype) {
    const std::int64_t elements = rows.rows * rows.length;
    for (std::int64_t& each : keys) each = add(elements * static_cast<std::int64_t>(size_of(dtype)));
    for (std::int64_t& each : places) each = add(elements * 4);
    offsets = add((rows.rows + 1) * 4);
    // CUB asks for half a byte for each element and some tables.
    constexpr std::int64_t tables = 128 * 1024;
    sort_bytes = elements + tables;
    sort = add(sort_bytes);
  }

  std::int64_t keys[2] = {};
  std::int64_t places[2] = {};
  std::int64_t offsets = 0;
  std::int64_t sort = 0;
  std::int64_t sort_bytes = 0;
};

}  // namespace graft::ops
