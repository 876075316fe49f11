// Converts a model to one that OpenVINO can read.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/operator.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"

namespace graft::runtime {

/// The domain of the engine's own nodes. An "Operator" node stands for one of Graft's operators; its attribute `index`
/// is the index in PreparedModel::operators.
inline constexpr std::string_view engine_domain = "graft.engine";
inline constexpr std::string_view engine_operator = "Operator";
/// The operator that rounds to the type whose ONNX code is the attribute `to`. The type of the tensor does not change.
inline constexpr std::string_view engine_rounding = "Round";

/// An operator and the description of its node, for messages.
struct PlacedOperator {
  std::shared_ptr<const Operator> op;
  std::string node;
  /// Whether the kernel runs in the types that the model declares, although OpenVINO's CPU plugin stores f16 and bf16
  /// as f32.
  bool in_declared_types = true;
};

/// A model without function calls, in which every remaining operator of Graft runs its own kernel.
struct PreparedModel {
  onnx::Model model;
  std::vector<PlacedOperator> operators;
  bool integers = false;  ///< Whether the model contains nodes of integer_arithmetic.hpp.
};

/// Returns a prepared copy of the model. Extra outputs are appended to the outputs unless they are outputs already.
/// Throws Error for an extra output that does not exist, for invalid operators and functions (see make_operator and
/// inline_functions), and for known faults of OpenVINO.
[[nodiscard]] PreparedModel prepare(const onnx::Model& model, const runtime::CompileOptions& options);

}  // namespace graft::runtime
