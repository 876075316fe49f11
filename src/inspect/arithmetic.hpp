// Estimates from shapes how much a node computes and how much memory a value takes.
#pragma once

#include <optional>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns the number of arithmetic operations of a node. Nodes in branches and bodies count once; nodes that only move
/// data or read shapes count 0. A dynamic dimension counts as 1, so the number is only useful to compare nodes of one
/// model.
[[nodiscard]] double arithmetic_of(const onnx::Node& node);

/// Returns the size of a tensor in bytes, or nothing if its type or rank is unknown. A dynamic dimension counts as 1.
[[nodiscard]] std::optional<double> bytes_of(const onnx::Value& value);

}  // namespace graft::inspect
