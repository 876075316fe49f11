// Definition of Padding: checks, shapes, ONNX function, drop-ins.
#include "ops/padding/padding.hpp"

#include <algorithm>
#include <stdexcept>

namespace graft::ops {
namespace {

std::string mode_name(PaddingMode mode) {
  for (const auto& choice : choices(mode)) {
    if (choice.value == mode) return std::string(choice.name);
  }
  return {};
}

/// Replaces each # in the text with the axis, and each @ with the index of the pad after the axis.
std::string for_axis(std::string_view text, int axis, int rank) {
  std::string result;
  for (const char c : text) {
    if (c == '#') {
      result += std::to_string(axis);
    } else if (c == '@') {
      result += std::to_string(axis + rank);
    } else {
      result += c;
    }
  }
  return result;
}

/// Returns lines of an ONNX function that compute `index_<axis>`, the index into x for each element of y along one
/// axis. The function uses Gather, because ONNX's Pad has no symmetric mode, wraps only from opset 19 on, and refuses
/// to reflect by more than the size of the axis.
std::string index_lines(PaddingMode mode, int axis, int rank) {
  const char* continuation = "";
  switch (mode) {
    case PaddingMode::constant: break;
    case PaddingMode::edge:
      continuation = R"(
last_# = Sub(size_#, one)
above_# = Max(at_#, nothing)
index_# = Min(above_#, last_#)
)";
      break;
    case PaddingMode::wrap: continuation = "\nindex_# = Mod(at_#, size_#)\n"; break;
    case PaddingMode::symmetric:
      continuation = R"(
period_# = Mul(size_#, two)
turn_# = Mod(at_#, period_#)
last_# = Sub(period_#, one)
back_# = Sub(last_#, turn_#)
index_# = Min(turn_#, back_#)
)";
      break;
    case PaddingMode::reflect:
      continuation = R"(
twice_# = Mul(size_#, two)
round_# = Sub(twice_#, two)
period_# = Max(round_#, one)
turn_# = Mod(at_#, period_#)
back_# = Sub(period_#, turn_#)
index_# = Min(turn_#, back_#)
)";
      break;
  }
  return for_axis(R"(axis_# = Constant<value=int64(#)>()
after_# = Constant<value=int64(@)>()
begin_# = Gather(pads, axis_#)
end_# = Gather(pads, after_#)
size_# = Gather(shape, axis_#)
first_# = Neg(begin_#)
limit_# = Add(size_#, end_#)
at_# = Range(first_#, limit_#, one))",
                  axis, rank) +
         for_axis(continuation, axis, rank);
}

Status to_pads(std::span<const NamedAttribute> own_fields, std::vector<NamedAttribute>& attributes) {
  for (const NamedAttribute& field : own_fields) {
    std::vector<std::int64_t> given;
    if (const auto* one = std::get_if<std::int64_t>(&field.value)) given = {*one};
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&field.value)) given = *list;
    switch (given.size()) {
      case 1:
        attributes.push_back({"pads", std::vector<std::int64_t>{0, 0, given[0], given[0], 0, 0, given[0], given[0]}});
        break;
      case 4:
        attributes.push_back({"pads", std::vector<std::int64_t>{0, 0, given[2], given[0], 0, 0, given[3], given[1]}});
        break;
      case 8: attributes.push_back({"pads", given}); break;
      default:
        return invalid_argument("attribute `padding` has " + std::to_string(given.size()) +
                                " elements; it must have 1 (all sides of H and W), 4 (left, right, top, bottom) or 8 "
                                "(as in ONNX, for N,C,H,W)");
    }
  }
  return {};
}

}  // namespace

bool Padding::accepts(const TypeRow& row, std::span<const int> /*input_ranks*/) const {
  if (row.formats[0].dtype == DType::f8e4m3fn) return x_scale == y_scale;
  return row.formats[0].layout == Layout::linear || (rank() == 4 && !pads_axis(1));
}

std::vector<Shape> Padding::infer_shapes(std::span<const Shape> inputs) const {
  Shape shape = inputs[0];
  if (pads.size() != 2 * shape.size()) {
    throw std::invalid_argument("attribute `pads` has " + std::to_string(pads.size()) + " elements; it must have " +
                                std::to_string(2 * shape.size()) + " for rank " + std::to_string(shape.size()));
  }
  for (int axis = 0; axis < rank(); ++axis) {
    Dim& dim = shape[static_cast<std::size_t>(axis)];
    dim = dim + (begin(axis) + end(axis));
    if (dim.is_constant() && dim.value() < 0) {
      throw std::invalid_argument("attribute `pads` crops axis " + std::to_string(axis) +
                                  " by more elements than the axis has");
    }
  }
  return {shape};
}

Status Padding::check_attributes() const {
  if (pads.size() % 2 == 0 && rank() <= Extents::max_rank) return {};
  return invalid_argument("attribute `pads` has " + std::to_string(pads.size()) +
                          " elements; it must have two for each axis, and at most 16");
}

Status Padding::check(const Problem& problem) const {
  const Extents& x = problem.inputs[0].extents;
  if (mode == PaddingMode::constant || problem.outputs[0].extents.element_count() == 0) return {};
  for (int axis = 0; axis < rank(); ++axis) {
    if (x[axis] == 0) {
      return invalid_argument("attribute `mode` is " + mode_name(mode) + ", which cannot pad axis " +
                              std::to_string(axis) +
                              ", because this axis has no elements; only the mode constant can pad it");
    }
  }
  return {};
}

std::optional<Function> Padding::function(const FunctionInputs& inputs) const {
  const std::string base = std::string(name) + "_" + mode_name(mode);
  const std::string pads_line = "pads = Constant<value_ints=@pads>()\n";
  if (pads.empty()) return function_in_f32(std::string(name) + "_scalar", inputs.dtype, "y32 = Identity(x32)");
  if (mode == PaddingMode::constant) {
    return function_in_f32(base, inputs.dtype,
                           pads_line +
                               "outside = Constant<value_float=@value>()\n"
                               "y32 = Pad<mode=\"constant\">(x32, pads, outside)");
  }
  // The body depends on the rank and on the padded axes; the sizes of the pads are read from the attribute.
  std::string axes;
  std::string lines = pads_line +
                      "shape = Shape(x32)\n"
                      "nothing = Constant<value=int64(0)>()\n"
                      "one = Constant<value=int64(1)>()\n"
                      "two = Constant<value=int64(2)>()\n";
  std::string from = "x32";
  for (int axis = 0; axis < rank(); ++axis) {
    if (!pads_axis(axis)) continue;
    const std::string a = std::to_string(axis);
    axes += "_" + a;
    lines += index_lines(mode, axis, rank());
    lines += for_axis("padded_# = Gather<axis=#>(", axis, rank()) + from + for_axis(", index_#)\n", axis, rank());
    from = "padded_" + a;
  }
  return function_in_f32(base + "_rank" + std::to_string(rank()) + "_axes" + axes, inputs.dtype,
                         lines + "y32 = Identity(" + from + ")");
}

std::optional<std::string> Padding::native_form(const FunctionInputs& inputs) const {
  const bool grows = std::none_of(pads.begin(), pads.end(), [](std::int64_t pad) { return pad < 0; });
  if (!is_floating_point(inputs.dtype) || !grows || pads.empty()) return std::nullopt;
  const std::string pads_line = "pads = Constant<value_ints=@pads>()\n";
  switch (mode) {
    case PaddingMode::constant:
      return pads_line +
             "real = Constant<value_float=@value>()\n"
             "outside = CastLike(real, x)\n"
             "y = Pad<mode=\"constant\">(x, pads, outside)";
    case PaddingMode::reflect: return pads_line + "y = Pad<mode=\"reflect\">(x, pads)";
    case PaddingMode::edge: return pads_line + "y = Pad<mode=\"edge\">(x, pads)";
    case PaddingMode::symmetric:  // ONNX has no such mode.
    case PaddingMode::wrap:       // ONNX has this mode from opset 19 on; the bodies are written in opset 17.
      return std::nullopt;
  }
  return std::nullopt;
}

std::vector<DropIn> Padding::drop_ins() {
  return {{.plugin_name = "ReflectPad",
           .version = "1",
           .fields = {{.name = "padding",
                       .attribute = {},
                       .type = AttributeType::integers,
                       .doc = "for N,C,H,W: one integer for all sides of H and W; four for left, right, top, bottom as "
                              "in PyTorch; or eight as in ONNX"}},
           .doc = "the plugin that exported style-transfer and depth networks use",
           .defaults = {{"mode", std::string("reflect")}},
           .translate = to_pads}};
}

}  // namespace graft::ops
