// Turns a model into one that OpenVINO can read.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"

namespace graft::runtime {

/// The node that stands for one of Graft's operators; its attribute `index` says which of PreparedModel::operators.
inline constexpr std::string_view engine_domain = "graft.engine";
inline constexpr std::string_view engine_operator = "Operator";
/// Rounds to the type whose ONNX code is its attribute `to`; the type of its input stays.
inline constexpr std::string_view engine_rounding = "Round";

/// An operator and where it was, for messages.
struct PlacedOperator {
  std::shared_ptr<const Operator> op;
  std::string node;
  bool in_declared_types = true;  ///< Its kernel runs in these, whatever the plugin makes of f16 and bf16.
};

/// No function is called any more, and every operator of Graft that is left runs by its own kernel.
struct PreparedModel {
  onnx::Model model;
  std::vector<PlacedOperator> operators;
  bool integers = false;  ///< Nodes of integer_arithmetic.hpp are in it.
};

/// Works on a copy. Extra outputs are appended to the outputs unless they are outputs already. Throws Error for an
/// extra output that does not exist, and as make_operator and inline_functions do.
[[nodiscard]] PreparedModel prepare(const onnx::Model& model, const runtime::CompileOptions& options);

}  // namespace graft::runtime
