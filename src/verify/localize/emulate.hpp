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

/// Returns the largest number of a type: 65504 for f16, 127 (steps) for int8. Throws Error (internal) for f8.
[[nodiscard]] double largest_of(Precision precision);

/// The size of an int8 step of each tensor, by tensor name.
using Scales = std::map<std::string, double, std::less<>>;

/// Runs a model and returns the int8 scale of each f32 tensor that it computes and of each f32 input: the largest
/// absolute value divided by 127, or 1 if all elements are 0. `memory` limits the size, in bytes, of the tensors that
/// are held at once.
[[nodiscard]] Scales int8_scales(const runtime::Engine& engine, const onnx::Model& model,
                                 const runtime::TensorMap& inputs, runtime::OperatorKernels kernels, int threads,
                                 std::int64_t memory);

/// Returns a copy of the model in an opset that emulate() supports, with local functions inlined, so that the tensors
/// inside them can be compared. Graft's operators stay single nodes.
[[nodiscard]] onnx::Model with_open_functions(const onnx::Model& model);

/// Returns a copy of the model that computes in f32 what the model would compute in f16, bf16 or int8, with standard
/// operators and inlined functions.
///
/// y = Op(x) becomes y = Cast(Cast(Op(x), f16), f32) in f16, likewise in bf16, and y = Mul(Clip(Round(Div(Op(x),
/// scale)), -128, 127), scale) in int8. Every f32 tensor, also in the bodies of If, Loop and Scan, is rounded after the
/// node that computes it, and so are inputs and weights. The rounded tensor keeps its name. Operators compute in f32
/// internally, as Graft's and TensorRT's do. In f16 and bf16, values beyond the range become infinite; in int8 they
/// saturate, each tensor with its scale in `scales`. In int8, weights of Conv, ConvTranspose, Gemm and MatMul have one
/// scale per channel; other constants, and tensors in bodies, are not rounded.
[[nodiscard]] onnx::Model emulate(const onnx::Model& model, Precision precision, const Scales& scales = {});

/// Returns the f32 constants, including those in subgraphs, with elements that become infinite in f16 or bf16. Returns
/// an empty list for int8, whose scales cover the range of the elements.
[[nodiscard]] std::vector<LargeConstant> large_constants(const onnx::Model& model, Precision precision);

/// Returns the original node whose result `node`, a node added by emulate(), rounds. Returns any other node unchanged.
[[nodiscard]] const onnx::Node& computing_node(const onnx::Node& node);

/// Returns the error of rounding a tensor to a type. `scale` is the size of a step and is used only for int8.
[[nodiscard]] RoundingEffect rounding_effect(const onnx::TensorData& tensor, Precision precision, double scale = 1);

/// The range of a tensor's elements, and the effect of rounding them to f16 or bf16.
struct TypeEffect {
  TensorRange range;
  RoundingEffect rounding;
  bool all_whole = true;
  bool changed = false;  ///< Whether rounding changes an element. Counted only while all elements are integers.

  [[nodiscard]] bool counts_wrongly() const { return all_whole && changed; }
  /// Adds the elements of the same tensor in another run.
  void add(const TypeEffect& other);
};

/// Returns the range of a tensor and the effect of rounding it to f16 or bf16, in one pass over the elements.
[[nodiscard]] TypeEffect type_effect(const onnx::TensorData& tensor, Precision precision);

}  // namespace graft::verify
