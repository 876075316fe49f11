// What a narrower type would do to a network, found out without a device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/node_ref.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/figures.hpp"

namespace graft::verify {

enum class Precision : std::uint8_t { f16, bf16, int8 };
/// "f16", "bf16", "int8".
[[nodiscard]] std::string_view to_string(Precision precision);
[[nodiscard]] std::optional<Precision> parse_precision(std::string_view text);

/// The largest number of the type; of int8 in steps.
[[nodiscard]] double largest_of(Precision precision);

/// By tensor; the step of int8 numbers.
using Scales = std::map<std::string, double, std::less<>>;

/// Of each tensor of numbers that a model computes from f32, and of its inputs: its largest absolute value divided by
/// 127, or 1 where it is all 0.
[[nodiscard]] Scales int8_scales(const runtime::Engine& engine, const onnx::Model& model,
                                 const runtime::TensorMap& inputs, runtime::OperatorKernels kernels, int threads,
                                 std::int64_t memory);

/// A copy in an operator set that `emulate` works in, with the bodies of local functions in the place of their calls,
/// so that each tensor of theirs can be looked at. Graft's operators stay single nodes.
[[nodiscard]] onnx::Model with_open_functions(const onnx::Model& model);

/// The model as it would run in that type, in standard operators and with open functions: every f32 tensor, also in the
/// bodies of If, Loop and Scan, is rounded where it is made, and so are inputs and weights; operators compute in f32
/// inside, as Graft's and TensorRT's do. In f16 and bf16 by a Cast there and one back, so that numbers beyond the range
/// become infinite. In int8 to one of 255 steps of the tensor's own scale, saturating; weights of Conv, ConvTranspose,
/// Gemm and MatMul have one for each channel, other constants stay as they are, and so do bodies, whose tensors have no
/// scales. A tensor keeps its name for what it is after rounding.
[[nodiscard]] onnx::Model emulate(const onnx::Model& model, Precision precision, const Scales& scales = {});

/// A constant with numbers that the type alone makes infinite.
struct LargeConstant {
  std::string name;
  NodeRef node;  ///< One that reads it.
  double largest = 0;
  std::int64_t overflow = 0;
  std::int64_t elements = 0;
};

/// Those of f32, in sub-graphs too; none in int8, whose steps reach as far as the numbers do.
[[nodiscard]] std::vector<LargeConstant> large_constants(const onnx::Model& model, Precision precision);

/// The node whose result an emulated model rounds here; the node itself in any other place.
[[nodiscard]] const onnx::Node& computing_node(const onnx::Node& node);

/// What the type alone does to a tensor's numbers.
struct RoundingEffect {
  std::int64_t overflow = 0;   ///< Finite, and too large: infinite afterwards.
  std::int64_t saturated = 0;  ///< The same in int8: the largest or smallest step afterwards.
  std::int64_t underflow = 0;  ///< Not 0, and 0 afterwards.
  std::int64_t subnormal = 0;  ///< So small that it loses digits, and not 0 afterwards.
  std::optional<double> snr_db;
  /// Adds the counts of another run, and keeps the lower ratio.
  void add(const RoundingEffect& other);
  /// "12 overflow, 3 underflow"; empty where nothing is lost but digits.
  [[nodiscard]] std::string to_string() const;
};

/// `scale` is of int8.
[[nodiscard]] RoundingEffect rounding_effect(const onnx::TensorData& tensor, Precision precision, double scale = 1);

/// What is in a tensor, and what a type does to it.
struct TypeEffect {
  TensorRange range;
  RoundingEffect rounding;
  bool all_whole = true;
  bool changed = false;  ///< Of integers: some of them would become others.

  [[nodiscard]] bool counts_wrongly() const { return all_whole && changed; }
  /// Adds what another run gave for the same tensor.
  void add(const TypeEffect& other);
};

/// All of it in one walk over the tensor; f16 or bf16.
[[nodiscard]] TypeEffect type_effect(const onnx::TensorData& tensor, Precision precision);

}  // namespace graft::verify
