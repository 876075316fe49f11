// Definition of Padding: rules, shapes, ONNX function, drop-ins.
#include "ops/padding/padding.hpp"

#include <algorithm>
#include <stdexcept>

namespace graft {
namespace {

std::string mode_name(PaddingMode mode) {
  for (const auto& choice : choices(mode)) {
    if (choice.value == mode) return std::string(choice.name);
  }
  return {};
}

/// Lines that make the index `index_<axis>` into x for each element of y along one axis. The ONNX operator Pad has no
/// symmetric mode, wraps from operator set 19 on only, and refuses to reflect by more than the axis, so the body
/// gathers.
std::string index_lines(PaddingMode mode, int axis, int rank) {
  const std::string a = std::to_string(axis);
  const auto integer = [](const std::string& name, const std::string& value) {
    return name + " = Constant<value=int64(" + value + ")>()\n";
  };
  std::string lines = integer("axis_" + a, a) + integer("after_" + a, std::to_string(axis + rank)) + "begin_" + a +
                      " = Gather(pads, axis_" + a + ")\n" + "end_" + a + " = Gather(pads, after_" + a + ")\n" +
                      "size_" + a + " = Gather(shape, axis_" + a + ")\n" + "first_" + a + " = Neg(begin_" + a + ")\n" +
                      "limit_" + a + " = Add(size_" + a + ", end_" + a + ")\n" + "at_" + a + " = Range(first_" + a +
                      ", limit_" + a + ", one)\n";
  switch (mode) {
    case PaddingMode::constant: break;
    case PaddingMode::edge:
      return lines + "last_" + a + " = Sub(size_" + a + ", one)\n" + "above_" + a + " = Max(at_" + a + ", nothing)\n" +
             "index_" + a + " = Min(above_" + a + ", last_" + a + ")\n";
    case PaddingMode::wrap: return lines + "index_" + a + " = Mod(at_" + a + ", size_" + a + ")\n";
    case PaddingMode::symmetric:
      return lines + "period_" + a + " = Mul(size_" + a + ", two)\n" + "turn_" + a + " = Mod(at_" + a + ", period_" +
             a + ")\n" + "last_" + a + " = Sub(period_" + a + ", one)\n" + "back_" + a + " = Sub(last_" + a +
             ", turn_" + a + ")\n" + "index_" + a + " = Min(turn_" + a + ", back_" + a + ")\n";
    case PaddingMode::reflect:
      return lines + "twice_" + a + " = Mul(size_" + a + ", two)\n" + "round_" + a + " = Sub(twice_" + a + ", two)\n" +
             "period_" + a + " = Max(round_" + a + ", one)\n" + "turn_" + a + " = Mod(at_" + a + ", period_" + a +
             ")\n" + "back_" + a + " = Sub(period_" + a + ", turn_" + a + ")\n" + "index_" + a + " = Min(turn_" + a +
             ", back_" + a + ")\n";
  }
  return {};
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
        return invalid_argument("attribute `padding`: found " + std::to_string(given.size()) +
                                " integers, allowed are 1 (all sides of H and W), 4 (left, right, top, bottom) and 8 "
                                "(as ONNX has them, for N,C,H,W)");
    }
  }
  return {};
}

}  // namespace

bool Padding::accepts(const TypeRow& row, std::span<const int> /*input_ranks*/) const {
  return row.formats[0].layout == Layout::linear || (rank() == 4 && !pads_axis(1));
}

std::vector<Shape> Padding::infer_shapes(std::span<const Shape> inputs) const {
  Shape shape = inputs[0];
  if (pads.size() != 2 * shape.size()) {
    throw std::invalid_argument("attribute `pads`: found " + std::to_string(pads.size()) + " integers, allowed is " +
                                std::to_string(2 * shape.size()) + " for rank " + std::to_string(shape.size()));
  }
  for (int axis = 0; axis < rank(); ++axis) {
    Dim& dim = shape[static_cast<std::size_t>(axis)];
    dim = dim + (begin(axis) + end(axis));
    if (dim.is_constant() && dim.value() < 0) {
      throw std::invalid_argument("attribute `pads`: axis " + std::to_string(axis) +
                                  " loses more elements than it has");
    }
  }
  return {shape};
}

Status Padding::check_attributes() const {
  if (pads.size() % 2 == 0 && rank() <= Extents::max_rank) return {};
  return invalid_argument("attribute `pads`: found " + std::to_string(pads.size()) +
                          " integers, allowed are two for each of at most 8 axes");
}

Status Padding::check(const Problem& problem) const {
  const Extents& x = problem.inputs[0].extents;
  if (mode == PaddingMode::constant || problem.outputs[0].extents.element_count() == 0) return {};
  for (int axis = 0; axis < rank(); ++axis) {
    if (x[axis] == 0) {
      return invalid_argument("attribute `mode`: " + mode_name(mode) + " finds nothing in axis " +
                              std::to_string(axis) + ", which has no elements; constant is allowed");
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
  // The axes that are padded, and the rank, shape the body; how far, it takes from the attribute.
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
    lines += "padded_" + a + " = Gather<axis=" + a + ">(" + from + ", index_" + a + ")\n";
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
    case PaddingMode::symmetric:  // not in ONNX
    case PaddingMode::wrap:       // in ONNX from operator set 19 on, and these texts are in 17
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
                       .doc = "for N,C,H,W: one integer for all sides of H and W; left, right, top, bottom as PyTorch "
                              "has them; or all eight as ONNX has them"}},
           .doc = "the plugin that exports of style-transfer and depth networks ask for",
           .defaults = {{"mode", std::string("reflect")}},
           .translate = to_pads}};
}

}  // namespace graft
