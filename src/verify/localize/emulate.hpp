// Determines the effect that a narrower type would have on a network, without a device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/layers.hpp"
#include "graft/report/precision.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/figures.hpp"

namespace graft::verify {

using report::LargeConstant;
using report::Precision;
using report::RoundingEffect;

/// Returns the largest number of the type; for int8 the largest step, 127. Throws Error (internal) for f8.
[[nodiscard]] double largest_of(Precision precision);

/// The size of an int8 step, by the name of the tensor.
using Scales = std::map<std::string, double, std::less<>>;

/// Returns the int8 scale of each tensor that a model computes from f32, and of each of its inputs: its largest
/// absolute value divided by 127, or 1 if all its elements are 0.
[[nodiscard]] Scales int8_scales(const runtime::Engine& engine, const onnx::Model& model,
                                 const runtime::TensorMap& inputs, runtime::OperatorKernels kernels, int threads,
                                 std::int64_t memory);

/// Returns a copy of the model in an opset that `emulate` supports, with local functions inlined, so that each of their
/// tensors can be inspected. Graft's operators stay single nodes.
[[nodiscard]] onnx::Model with_open_functions(const onnx::Model& model);

/// Returns the model as it would run in f16, bf16 or int8, in standard operators and with inlined functions.
///
/// y = Op(x) becomes y = Cast(Cast(Op(x), f16), f32) in f16, likewise in bf16, and y = Mul(Clip(Round(Div(Op(x),
/// scale)), -128, 127), scale) in int8. Every f32 tensor, also in the bodies of If, Loop and Scan, is rounded after the
/// node that computes it, and so are inputs and weights. Operators compute in f32 internally, as Graft's and TensorRT's
/// do. In f16 and bf16, values beyond the range become infinite; in int8 they saturate, each tensor with its own
/// scale. In int8, weights of Conv, ConvTranspose, Gemm and MatMul have one scale per channel; other constants are not
/// rounded, and neither are bodies, whose tensors have no scales. The rounded tensor keeps the name.
[[nodiscard]] onnx::Model emulate(const onnx::Model& model, Precision precision, const Scales& scales = {});

/// Returns the f32 constants, including those in subgraphs, with elements that become infinite in the type. Returns
/// none for int8, whose steps cover the range of the elements.
[[nodiscard]] std::vector<LargeConstant> large_constants(const onnx::Model& model, Precision precision);

/// Returns the node whose result a rounding node of an emulated model rounds, or the node itself if it is not a
/// rounding node.
[[nodiscard]] const onnx::Node& computing_node(const onnx::Node& node);

/// Returns the effect of rounding a tensor to a type. `scale` is the size of a step and is used only for int8.
[[nodiscard]] RoundingEffect rounding_effect(const onnx::TensorData& tensor, Precision precision, double scale = 1);

/// The elements of a tensor, and the effect of a type on them.
struct TypeEffect {
  TensorRange range;
  RoundingEffect rounding;
  bool all_whole = true;
  bool changed = false;  ///< Whether rounding changes an element. Counted only while all elements are integers.

  [[nodiscard]] bool counts_wrongly() const { return all_whole && changed; }
  /// Adds the result of another run for the same tensor.
  void add(const TypeEffect& other);
};

/// Returns the effect of f16 or bf16 in one pass over the tensor.
[[nodiscard]] TypeEffect type_effect(const onnx::TensorData& tensor, Precision precision);

}  // namespace graft::verify
