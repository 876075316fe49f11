// The result of cutting a network into two halves, in words.
#pragma once

#include <string>
#include <vector>

#include "graft/toolkit/cut.hpp"
#include "present/text/table.hpp"

namespace graft::present {

/// Returns the cause of the cut: "Cut before 3 nodes that TensorRT does not run: NonMaxSuppression".
[[nodiscard]] std::string cut_title(const toolkit::CutResult& result);

/// Returns the type and shape of a tensor: "f32 1 x ? x 4".
[[nodiscard]] std::string type_text(const toolkit::Port& port);

/// Returns the size of TensorRT's half: "12 nodes, 99.4 % of the arithmetic".
[[nodiscard]] std::string tensorrt_text(const toolkit::CutResult& result);
[[nodiscard]] std::string host_text(const toolkit::CutResult& result);

/// Returns how a detector selects boxes: its tensors, operator and thresholds.
[[nodiscard]] std::string tail_text(const toolkit::DetectionTail& tail);

/// Returns "both halves together equal the whole network, in 3 runs", or an empty string if the comparison did not show
/// this.
[[nodiscard]] std::string verified_text(const toolkit::CutResult& result);

/// Returns both halves in the order in which they run, the tensors between them, and the box selection of detectors.
[[nodiscard]] Table cut_table(const toolkit::CutResult& result);

/// Returns a warning if the halves differ from the whole network or could not be compared with it; empty if they are
/// the same or if no comparison was requested.
[[nodiscard]] std::string cut_warning(const toolkit::CutResult& result);

}  // namespace graft::present
