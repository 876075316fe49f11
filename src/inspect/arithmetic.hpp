// Estimates from shapes how much a node computes and how much memory a value takes.
#pragma once

#include <optional>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Returns the number of arithmetic operations of a node. Nodes in branches and bodies count once; a node that only
/// moves data or reads shapes counts 0. An unknown dimension counts as 1, so the figure only compares nodes of one
/// model.
[[nodiscard]] double arithmetic_of(const onnx::Node& node);

/// Returns the bytes of a tensor, or nothing if its type or rank is unknown. An unknown dimension counts as 1.
[[nodiscard]] std::optional<double> bytes_of(const onnx::Value& value);

}  // namespace graft::inspect
