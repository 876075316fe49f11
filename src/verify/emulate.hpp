// What a narrower type would do to a network, found out without a device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "adapters/openvino/cpu_engine.hpp"
#include "graph/model.hpp"
#include "verify/figures.hpp"

namespace graft {

enum class Precision : std::uint8_t { f16, bf16, int8 };
/// "f16", "bf16", "int8".
[[nodiscard]] std::string_view to_string(Precision precision);
[[nodiscard]] std::optional<Precision> parse_precision(std::string_view text);

/// The largest number of the type; of int8 in steps.
[[nodiscard]] double largest_of(Precision precision);

/// By tensor; the step of int8 numbers.
using Scales = std::map<std::string, double, std::less<>>;

/// Of each tensor of numbers that a model calculates from f32, and of its inputs: its largest absolute value divided by
/// 127, or 1 where it is all 0.
[[nodiscard]] Scales int8_scales(const Model& model, const TensorMap& inputs, OperatorKernels kernels, int threads,
                                 std::int64_t memory);

/// The model as it would run in that type, in standard operators: every f32 tensor of the main graph is rounded where
/// it is made, and so are inputs and weights; operators calculate in f32 inside, as Graft's and TensorRT's do. In f16
/// and bf16 by a Cast there and one back, so that numbers beyond the range become infinite. In int8 to one of 255 steps
/// of the tensor's own scale, saturating; weights of Conv, ConvTranspose, Gemm and MatMul have one for each channel,
/// other constants stay as they are. A tensor keeps its name for what it is after rounding.
[[nodiscard]] Model emulate(const Model& model, Precision precision, const Scales& scales = {});

/// The node whose result an emulated model rounds here; the node itself in any other place.
[[nodiscard]] const Node& calculating_node(const Node& node);

/// What the type alone does to a tensor's numbers.
struct RoundingEffect {
  std::int64_t overflow = 0;   ///< Finite, and too large: infinite afterwards.
  std::int64_t saturated = 0;  ///< The same in int8: the largest or smallest step afterwards.
  std::int64_t underflow = 0;  ///< Not 0, and 0 afterwards.
  std::int64_t subnormal = 0;  ///< So small that it loses digits, and not 0 afterwards.
  std::optional<double> snr_db;
  /// "12 overflow, 3 underflow"; empty where nothing is lost but digits.
  [[nodiscard]] std::string to_string() const;
};

/// `scale` is of int8.
[[nodiscard]] RoundingEffect rounding_effect(const TensorData& tensor, Precision precision, double scale = 1);

}  // namespace graft
