// Padding: enlarges or crops a tensor along any axes.
#pragma once

#include "graft/operator/define_operator.hpp"
#include "graft/operator/function.hpp"
#include "graft/operator/quantization.hpp"

namespace graft::ops {

/// The values of the elements of y that lie outside x.
enum class PaddingMode : std::uint8_t {
  constant,
  reflect,    ///< The axis continues mirrored without the border element: b c [a b c] b a.
  symmetric,  ///< The axis continues mirrored with the border element: b a [a b c] c b.
  edge,       ///< The border element is repeated: a a [a b c] c c.
  wrap,       ///< The axis continues periodically: b c [a b c] a b.
};
constexpr std::array<Choice<PaddingMode>, 5> choices(PaddingMode /*tag*/) {
  return {{{"constant", PaddingMode::constant},
           {"reflect", PaddingMode::reflect},
           {"symmetric", PaddingMode::symmetric},
           {"edge", PaddingMode::edge},
           {"wrap", PaddingMode::wrap}}};
}

struct Padding {
  static constexpr auto name = "Padding";
  static constexpr int version = 1;
  static constexpr auto doc =
      "y[i] = x[i - begin], where x is continued outside its axes: by `value` (constant), mirrored at its outermost "
      "elements without repeating them (reflect) or with them (symmetric), by its outermost elements (edge), or from "
      "its other end (wrap). Mirrors and wraps repeat where pads are larger than the axis. Negative pads crop.";
  static constexpr auto source = "numpy.pad, torch.nn.functional.pad, tf.pad; ONNX Pad";
  static constexpr auto why_plugin =
      "TensorRT's padding has no symmetric mode and no int8 input and output; plugins named ReflectPad are not part of "
      "TensorRT";
  static constexpr auto why_plugin_for_floats =
      "TensorRT's padding has no symmetric mode; plugins named ReflectPad are not part of TensorRT";
  // TensorRT times the variants, because "rows" or "tiles" were faster than "fastest" in 2 of 60 random problems on an
  // H200: .88 to .92 of its time.
  static constexpr bool timed_variants = true;

  PaddingMode mode = PaddingMode::constant;
  std::vector<std::int64_t> pads;
  float value = 0;
  float x_scale = 1;
  float y_scale = 1;

  static constexpr auto attributes() {
    constexpr Range pad_range{.lowest = -2147483647., .highest = 2147483647.};
    return std::tuple{attribute("mode", &Padding::mode, "the rule by which x continues outside its axes"),
                      required_attribute("pads", &Padding::pads,
                                         "the number of elements to add before each axis, followed by the number to "
                                         "add after each axis; negative values crop",
                                         pad_range),
                      attribute("value", &Padding::value, "the value outside x in the mode constant"),
                      attribute("x_scale", &Padding::x_scale, x_scale_doc, positive_and_finite()),
                      attribute("y_scale", &Padding::y_scale, y_scale_doc, positive_and_finite())};
  }
  static constexpr auto ports() {
    return std::array{input("x", "T", "any", "a tensor of any rank up to 8").scaled_by("x_scale"),
                      output("y", "T", "x + pads", "same type as x").scaled_by("y_scale")};
  }
  static constexpr auto types() { return std::array{every_format_and_f8}; }
  /// Returns false for a channel-vector layout whose channels are padded, and for f8e4m3fn with two different scales.
  [[nodiscard]] bool accepts(const TypeRow& row, std::span<const int> input_ranks) const;
  [[nodiscard]] bool is_data_movement() const { return mode != PaddingMode::constant || value == 0; }
  [[nodiscard]] std::vector<Shape> infer_shapes(std::span<const Shape> inputs) const;
  [[nodiscard]] Status check_attributes() const;
  [[nodiscard]] Status check(const Problem& problem) const;
  [[nodiscard]] std::optional<Function> function(const FunctionInputs& inputs) const;
  [[nodiscard]] std::optional<std::string> native_form(const FunctionInputs& inputs) const;
  [[nodiscard]] static std::vector<DropIn> drop_ins();

  [[nodiscard]] int rank() const { return static_cast<int>(pads.size() / 2); }
  [[nodiscard]] std::int64_t begin(int axis) const { return pads[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] std::int64_t end(int axis) const { return begin(axis + rank()); }
  [[nodiscard]] bool pads_axis(int axis) const { return begin(axis) != 0 || end(axis) != 0; }
};

[[nodiscard]] Status run(const Padding& op, const Problem& problem, const Buffers& buffers, const CpuContext& context);
[[nodiscard]] std::span<const Variant<Padding>> cuda_kernels(const Padding& op);

}  // namespace graft::ops
