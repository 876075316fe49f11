// How much a node computes and how much memory a value takes, as far as shapes say.
#pragma once

#include <optional>

#include "onnx/model.hpp"

namespace graft::inspect {

/// Multiplications, additions and other operations on numbers, those in branches and bodies once; 0 of what only moves
/// data or reads shapes. A dimension that is not known counts as 1: the figure is for comparing the nodes of a model.
[[nodiscard]] double arithmetic_of(const onnx::Node& node);

/// Bytes of a tensor, a dimension that is not known as 1; nothing where type or rank is not known.
[[nodiscard]] std::optional<double> bytes_of(const onnx::Value& value);

}  // namespace graft::inspect
