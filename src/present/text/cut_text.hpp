// A network in two halves, in words.
#pragma once

#include <string>
#include <vector>

#include "graft/toolkit/cut.hpp"
#include "present/text/table.hpp"

namespace graft::present {

/// "Cut before 3 nodes that TensorRT does not run: NonMaxSuppression".
[[nodiscard]] std::string cut_title(const toolkit::CutResult& result);

/// "f32 1 x ? x 4".
[[nodiscard]] std::string type_text(const toolkit::Port& port);

/// "12 nodes, 99.4 % of the arithmetic".
[[nodiscard]] std::string tensorrt_text(const toolkit::CutResult& result);
[[nodiscard]] std::string host_text(const toolkit::CutResult& result);

/// What a detector does with its last tensors.
[[nodiscard]] std::string tail_text(const toolkit::DetectionTail& tail);

/// "both halves together are the whole, in 3 runs"; empty where they were not found to be.
[[nodiscard]] std::string verified_text(const toolkit::CutResult& result);

/// Both halves in the order in which they run, what is handed over, and how a detector ends.
[[nodiscard]] Table cut_table(const toolkit::CutResult& result, const toolkit::CutFiles& files);

/// What a warning says where the halves were not found to be the whole; empty where they were, or were not asked about.
[[nodiscard]] std::string cut_warning(const toolkit::CutResult& result);

}  // namespace graft::present
