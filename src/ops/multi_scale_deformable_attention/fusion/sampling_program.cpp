// Compiles the graph that computes samples into a formula, and evaluates the formula.
#include "ops/multi_scale_deformable_attention/fusion/sampling_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "ops/multi_scale_deformable_attention/fusion/ancestors.hpp"

namespace graft::passes::deformable_attention {
namespace {

/// Returns whether the product of each axis' factors equals its size, which is not true if the axis was expanded. An
/// axis of pixels with factors may have an unknown size.
bool accounts_for(const AxisLayout& layout, const onnx::Value& value) {
  for (std::size_t axis = 0; axis < layout.axes().size(); ++axis) {
    const std::int64_t size = fixed_size(&value, axis);
    std::int64_t product = 1;
    for (const AxisFactor& factor : layout.axes()[axis]) product *= factor.size;
    const bool is_unknown = size == 0 && !layout.axes()[axis].empty();
    if (product != size && !is_unknown) return false;
  }
  return true;
}

/// Returns the size of the dimension that a Gather reads from a Shape; 0 if it is dynamic or if the node is not such a
/// Gather.
std::int64_t asked_dimension(const onnx::Node& gather) {
  const onnx::Node* shape = gather.is("Gather") && gather.input(0) != nullptr ? gather.input(0)->producer : nullptr;
  const auto which = constant_ints(gather.input(1));
  const bool is_asked = shape != nullptr && shape->is("Shape") && shape->attribute("start") == nullptr;
  if (!is_asked || !which || which->size() != 1) return 0;
  const auto rank = static_cast<std::int64_t>(rank_of(shape->input(0)));
  const std::int64_t axis = which->front() < 0 ? which->front() + rank : which->front();
  return axis < 0 ? 0 : fixed_size(shape->input(0), static_cast<std::size_t>(axis));
}

/// Returns the axis along which the elements of a constant tensor are 0, step, 2 * step ..., if they are equal along
/// all other axes; nothing if no axis has this property.
std::optional<std::size_t> counted_axis(const std::vector<std::int64_t>& dims, const std::vector<double>& numbers,
                                        double step) {
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    std::int64_t stride = 1;
    for (std::size_t i = axis + 1; i < dims.size(); ++i) stride *= dims[i];
    bool is_counted = true;
    for (std::int64_t i = 0; i < std::ssize(numbers) && is_counted; ++i) {
      is_counted = numbers[static_cast<std::size_t>(i)] == step * static_cast<double>(i / stride % dims[axis]);
    }
    if (is_counted) return axis;
  }
  return std::nullopt;
}

std::vector<AxisFactor> factors_but_coordinates(const AxisLayout& layout) {
  std::vector<AxisFactor> all;
  for (const auto& factors : layout.axes()) {
    for (const AxisFactor& factor : factors) {
      if (factor.axis != coordinate) all.push_back(factor);
    }
  }
  return all;
}

bool has_coordinates(const AxisLayout& layout) {
  return std::any_of(layout.axes().begin(), layout.axes().end(), [](const auto& factors) {
    return std::any_of(factors.begin(), factors.end(),
                       [](const AxisFactor& factor) { return factor.axis == coordinate; });
  });
}

/// Returns the layout of the result of an elementwise operation on tensors of two layouts, or nothing if it would
/// combine elements of different points.
std::optional<AxisLayout> broadcast(const AxisLayout& a, const AxisLayout& b) {
  AxisLayout::Axes axes(std::max(a.axes().size(), b.axes().size()));
  for (std::size_t i = 0; i < axes.size(); ++i) {  // Starts from the last axis.
    const auto factors_of = [&](const AxisLayout& layout) {
      return i < layout.axes().size() ? layout.axes()[layout.axes().size() - 1 - i] : std::vector<AxisFactor>{};
    };
    const auto of_a = factors_of(a);
    const auto of_b = factors_of(b);
    if (!of_a.empty() && !of_b.empty() && of_a != of_b) return std::nullopt;
    axes[axes.size() - 1 - i] = of_a.empty() ? of_b : of_a;
  }
  return AxisLayout(std::move(axes), {});
}

std::vector<PixelWeight> sum_of(const std::vector<PixelWeight>& a, const std::vector<PixelWeight>& b, double sign) {
  std::vector<PixelWeight> all = a;
  for (const PixelWeight& each : b) all.push_back({each.pixel, sign * each.weight});
  return all;
}

std::vector<PixelWeight> scaled_pixels(std::vector<PixelWeight> pixels, double scale) {
  for (PixelWeight& each : pixels) each.weight *= scale;
  return pixels;
}

/// Returns the image that a Pad surrounds with zeros, with the widths of the padding; nothing if the Pad adds other
/// values or pads other axes.
std::optional<PixelSource> padded_image(const onnx::Node& pad) {
  constexpr std::size_t rank = 4;
  const auto given = constant_ints(pad.input(1));
  std::vector<std::int64_t> axes{0, 1, 2, 3};
  if (pad.input(3) != nullptr) axes = constant_ints(pad.input(3)).value_or(std::vector<std::int64_t>{});
  const auto filling = pad.input(2) == nullptr ? std::nullopt : pad.input(2)->constant();
  const bool is_zero = pad.input(2) == nullptr || (filling && filling->scalar() == 0.0);
  if (pad.string_or("mode", "constant") != "constant" || !is_zero || !given || axes.empty()) return std::nullopt;
  if (given->size() != 2 * axes.size() || rank_of(pad.input(0)) != rank) return std::nullopt;
  std::array<std::int64_t, 2 * rank> pads{};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + static_cast<std::int64_t>(rank) : axes[i];
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return std::nullopt;
    pads[static_cast<std::size_t>(axis)] = (*given)[i];
    pads[static_cast<std::size_t>(axis) + rank] = (*given)[i + axes.size()];
  }
  if (*std::min_element(pads.begin(), pads.end()) < 0 || pads[0] + pads[1] + pads[4] + pads[5] != 0) {
    return std::nullopt;
  }
  return PixelSource{.image = pad.input(0), .top = pads[2], .left = pads[3], .bottom = pads[6], .right = pads[7]};
}

/// Returns an image [N,C,H,W] as a source of pixels, with the zeros that a Pad adds to it; nothing if its height or
/// width is dynamic.
std::optional<PixelSource> source_of_image(onnx::Value* image) {
  if (rank_of(image) != 4 || fixed_size(image, 2) <= 0 || fixed_size(image, 3) <= 0) return std::nullopt;
  std::optional<PixelSource> source(PixelSource{.image = image});
  if (image->producer != nullptr && image->producer->is("Pad")) source = padded_image(*image->producer);
  if (!source) return std::nullopt;
  source->height = fixed_size(image, 2);
  source->width = fixed_size(image, 3);
  source->count = source->height * source->width;
  return source;
}

bool only_reshapes(const onnx::Value& value) {
  const onnx::Node* node = value.producer;
  return node != nullptr && (node->is("Reshape") || node->is("Flatten"));
}

/// Returns an image whose pixels lie along one axis, [N,C,S], as a source of pixels. Height and width are known only if
/// the tensor is a reshaped image [N,C,H,W].
std::optional<PixelSource> source_of_rows(onnx::Value* rows) {
  const std::int64_t count = fixed_size(rows, 2);
  if (rank_of(rows) != 3 || fixed_size(rows, 1) <= 0 || count <= 0) return std::nullopt;
  if (only_reshapes(*rows)) {
    onnx::Value* image = rows->producer->input(0);
    const bool is_image = rank_of(image) == 4 && fixed_size(image, 1) == fixed_size(rows, 1) &&
                          fixed_size(image, 2) * fixed_size(image, 3) == count;
    if (is_image) return source_of_image(image);
  }
  return PixelSource{.image = rows, .count = count};
}

/// Returns an image [N,H,W,C] as a source of pixels; nothing unless it is a Transpose of an image [N,C,H,W].
std::optional<PixelSource> source_of_channels_last(const onnx::Value* value) {
  const onnx::Node* node = value->producer;
  if (node == nullptr || !node->is("Transpose") || node->ints("perm") != std::vector<std::int64_t>{0, 2, 3, 1}) {
    return std::nullopt;
  }
  return source_of_image(node->input(0));
}

}  // namespace

/// Compiles a tensor of samples into a SamplingProgram, beginning with the last node. Each tensor becomes one
/// instruction.
class SamplingCompiler {
 public:
  SamplingCompiler(onnx::Value& grid, std::string& why_not) : grid_(grid), why_not_(why_not) {}

  std::optional<SamplingProgram> compile(onnx::Value& samples) {
    const auto last = operand(&samples);
    if (!last) return std::nullopt;
    if (!last->is_pixels || has_coordinates(last->layout)) return refuse("'{}' is not a sum of pixels", samples.name);
    program_.instructions_.push_back({Operation::copy, {last->index}});
    program_.layout_ = last->layout;
    return std::move(program_);
  }

 private:
  using Operation = SamplingProgram::Operation;
  struct Operand {
    std::size_t index = 0;
    AxisLayout layout{{}, {}};
    bool is_pixels = false;
  };

  template <class... Parts>
  std::nullopt_t refuse(fmt::format_string<Parts...> text, Parts&&... parts) {
    if (why_not_.empty()) why_not_ = fmt::format(text, std::forward<Parts>(parts)...);
    return std::nullopt;
  }

  Operand add(Operation operation, std::array<std::size_t, 3> inputs, AxisLayout layout, bool is_pixels = false,
              std::array<double, 2> value = {}) {
    program_.instructions_.push_back({operation, inputs, value});
    return {program_.instructions_.size() - 1, std::move(layout), is_pixels};
  }

  std::optional<Operand> operand(onnx::Value* value) {
    if (value == nullptr) return refuse("an input is missing");
    if (const auto known = known_.find(value); known != known_.end()) return known->second;
    constexpr std::size_t most = 2000;
    if (program_.instructions_.size() > most)
      return refuse("'{}' is computed by more nodes than the fusion follows", value->name);
    const std::optional<Operand> result = compiled(value);
    known_.emplace(value, result);
    return result;
  }

  std::optional<Operand> compiled(onnx::Value* value) {
    if (value == &grid_) {
      const auto layout = AxisLayout::of(grid_, {item, query, point, coordinate});
      return layout ? std::optional(add(Operation::place, {}, *layout)) : std::nullopt;
    }
    if (const auto constant = value->constant()) return compiled_constant(*value, *constant);
    if (value->producer == nullptr) return refuse("it depends on the input '{}'", value->name);
    onnx::Node& node = *value->producer;
    if (node.is("GatherElements")) return compiled_gather_elements(node);
    if (node.is("GatherND")) return compiled_gather_nd(node);
    if (node.is("Gather") && !node.input(1)->constant()) return compiled_gather(node);
    if (const auto size = static_cast<double>(asked_dimension(node)); size > 0) {
      return add(Operation::constant, {}, AxisLayout(AxisLayout::Axes(rank_of(value)), {}), false, {size, size});
    }
    if (node.is("Unsqueeze")) return compiled_unsqueeze(node, *value);
    if (moves_elements(node)) return compiled_movement(node, *value);
    if (node.is("Expand")) return compiled_expand(node, *value);
    if (node.is("ConstantOfShape")) return compiled_filling(node, *value);
    if (node.is("Range")) return compiled_range(node, *value);
    if (node.is("Cast")) return compiled_cast(node);
    if (node.is("Clip")) return compiled_clip(node);
    if (node.is("Where")) return compiled_where(node);
    return compiled_elements(node);
  }

  std::optional<Operand> compiled_constant(const onnx::Value& value, const onnx::TensorData& constant) {
    constexpr std::int64_t most = 1 << 20;
    const auto numbers = constant.element_count() <= most ? constant.numbers() : std::nullopt;
    if (!numbers || numbers->empty())
      return refuse("it depends on the constant '{}', which is empty or too large to be evaluated", value.name);
    AxisLayout::Axes axes(constant.dims.size());
    const double first = numbers->front();
    if (std::all_of(numbers->begin(), numbers->end(), [&](double number) { return number == first; })) {
      return add(Operation::constant, {}, AxisLayout(std::move(axes), {}), false, {first, first});
    }
    const std::int64_t count = std::ssize(*numbers);
    if (constant.dims.back() == count && count == 2) {
      axes.back() = {{coordinate, 1, 2}};
      return add(Operation::constant, {}, AxisLayout(std::move(axes), {}), false, {first, numbers->back()});
    }
    const std::int64_t items = fixed_size(&grid_, 0);
    const double step = items > 1 ? numbers->back() / static_cast<double>(items - 1) : 0;
    const auto counted = counted_axis(constant.dims, *numbers, step);
    if (!counted || constant.dims[*counted] != items)
      return refuse(
          "it depends on the constant '{}', whose elements are neither equal, nor two coordinates, nor proportional to "
          "the index of the item",
          value.name);
    axes[*counted] = {{item, 1, items}};
    return add(Operation::item_index, {}, AxisLayout(std::move(axes), {}), false, {step, step});
  }

  std::optional<Operand> compiled_filling(const onnx::Node& node, const onnx::Value& value) {
    const onnx::NodeAttribute* attribute = node.attribute("value");
    const auto* tensor = attribute == nullptr ? nullptr : attribute->get<onnx::TensorData>();
    const double number = tensor == nullptr ? 0 : tensor->scalar().value_or(0);
    return add(Operation::constant, {}, AxisLayout(AxisLayout::Axes(rank_of(&value)), {}), false, {number, number});
  }

  std::optional<Operand> compiled_range(const onnx::Node& node, const onnx::Value& value) {
    const auto is = [&](std::size_t i, double wanted) {
      const auto constant = node.input(i) == nullptr ? std::nullopt : node.input(i)->constant();
      return constant && constant->scalar() == wanted;
    };
    if (!is(0, 0) || !is(2, 1))
      return refuse("it depends on '{}', a Range that does not begin with 0 and increase by 1", value.name);
    return add(Operation::item_index, {}, AxisLayout({{{item, 1, fixed_size(&grid_, 0)}}}, {}), false, {1, 1});
  }

  std::optional<Operand> compiled_movement(const onnx::Node& node, const onnx::Value& value) {
    const auto input = operand(node.input(0));
    if (!input) return std::nullopt;
    const bool takes_a_part = node.is("Slice") || node.is("Split") || node.is("Gather");
    const bool is_exact = node.is("Transpose") || takes_a_part || accounts_for(input->layout, *node.input(0));
    const auto layout = is_exact ? input->layout.after(node, value) : std::nullopt;
    if (!layout) return refuse("{} moves elements in a way that the fusion does not support", onnx::describe(node));
    AxisLayout::Starts others = layout->starts();
    const std::int64_t which = std::exchange(others[coordinate], 0);
    const bool takes_all = !takes_a_part || factors_but_coordinates(*layout) == factors_but_coordinates(input->layout);
    if (!takes_all || others != AxisLayout::Starts{})
      return refuse("{} selects only a part of the elements", onnx::describe(node));
    AxisLayout clean(layout->axes(), {});
    Operation operation = Operation::copy;
    if (has_coordinates(input->layout) && !has_coordinates(clean)) {
      operation = which == 0 ? Operation::first_coordinate : Operation::second_coordinate;
    }
    return add(operation, {input->index}, std::move(clean), input->is_pixels);
  }

  std::optional<Operand> compiled_unsqueeze(const onnx::Node& node, const onnx::Value& value) {
    const auto input = operand(node.input(0));
    auto wanted = node.ints("axes");
    if (const auto constant = node.input(1) == nullptr ? std::nullopt : node.input(1)->constant()) {
      wanted = constant->ints();
    }
    if (!input || !wanted) return std::nullopt;
    const auto rank = static_cast<std::int64_t>(rank_of(&value));
    for (std::int64_t& axis : *wanted) axis += axis < 0 ? rank : 0;
    std::sort(wanted->begin(), wanted->end());
    AxisLayout::Axes axes = input->layout.axes();
    for (const std::int64_t axis : *wanted) {
      if (axis < 0 || axis > std::ssize(axes)) return std::nullopt;
      axes.insert(axes.begin() + axis, std::vector<AxisFactor>{});
    }
    return add(Operation::copy, {input->index}, AxisLayout(std::move(axes), {}), input->is_pixels);
  }

  std::optional<Operand> compiled_expand(const onnx::Node& node, const onnx::Value& value) {
    const auto input = operand(node.input(0));
    if (!input || rank_of(&value) < input->layout.axes().size()) return std::nullopt;
    AxisLayout::Axes axes = input->layout.axes();
    axes.insert(axes.begin(), rank_of(&value) - axes.size(), {});
    return add(Operation::copy, {input->index}, AxisLayout(std::move(axes), {}), input->is_pixels);
  }

  std::optional<Operand> compiled_cast(const onnx::Node& node) {
    const auto input = operand(node.input(0));
    if (!input) return std::nullopt;
    const auto to = static_cast<onnx::ElementType>(node.int_or("to", 0));
    const bool is_real = onnx::is_floating_point(to);
    if (!is_real && (!onnx::is_integer(to) || input->is_pixels))
      return refuse("the fusion does not support {}", describe(node));
    const bool was_real = node.input(0)->type && onnx::is_floating_point(*node.input(0)->type);
    return add(was_real && !is_real ? Operation::truncate : Operation::copy, {input->index}, input->layout,
               input->is_pixels);
  }

  std::optional<Operand> compiled_clip(const onnx::Node& node) {
    auto result = operand(node.input(0));
    for (const std::size_t i : {1, 2}) {
      if (!result || node.input(i) == nullptr) continue;
      const auto limit = operand(node.input(i));
      result = limit ? combined(i == 1 ? Operation::maximum : Operation::minimum, *result, *limit) : std::nullopt;
    }
    return result;
  }

  std::optional<Operand> compiled_where(const onnx::Node& node) {
    const auto condition = operand(node.input(0));
    auto chosen = operand(node.input(1));
    auto other = operand(node.input(2));
    if (!condition || condition->is_pixels || !chosen || !other) return std::nullopt;
    // A zero is an empty sum of pixels.
    const auto is_zero = [&](const Operand& each) {
      const auto& made_by = program_.instructions_[each.index];
      return made_by.operation == Operation::constant && made_by.value == std::array<double, 2>{};
    };
    if (chosen->is_pixels != other->is_pixels && !is_zero(chosen->is_pixels ? *other : *chosen)) return std::nullopt;
    const auto both = broadcast(chosen->layout, other->layout);
    const auto layout = both ? broadcast(*both, condition->layout) : std::nullopt;
    if (!layout) return refuse("{} combines elements of different points", onnx::describe(node));
    return add(Operation::select, {condition->index, chosen->index, other->index}, *layout,
               chosen->is_pixels || other->is_pixels);
  }

  std::optional<Operand> combined(Operation operation, const Operand& a, const Operand& b) {
    const auto layout = broadcast(a.layout, b.layout);
    const bool is_sum = operation == Operation::add || operation == Operation::subtract;
    const bool is_product = operation == Operation::multiply || (operation == Operation::divide && !b.is_pixels);
    bool is_linear = !a.is_pixels && !b.is_pixels;
    if (is_sum) is_linear = a.is_pixels == b.is_pixels;
    if (is_product) is_linear = !a.is_pixels || !b.is_pixels;
    if (!layout) return refuse("elements of different points are combined");
    if (!is_linear) return refuse("it is not a weighted sum of pixels");
    return add(operation, {a.index, b.index}, *layout, a.is_pixels || b.is_pixels);
  }

  std::optional<Operand> compiled_elements(const onnx::Node& node) {
    struct Known {
      std::string_view type;
      Operation operation;
      bool is_swapped = false;  ///< The comparison a > b is compiled as b < a.
    };
    constexpr std::array two_inputs{Known{"Add", Operation::add},
                                    Known{"Sub", Operation::subtract},
                                    Known{"Mul", Operation::multiply},
                                    Known{"Div", Operation::divide},
                                    Known{"Min", Operation::minimum},
                                    Known{"Max", Operation::maximum},
                                    Known{"Less", Operation::less},
                                    Known{"LessOrEqual", Operation::less_or_equal},
                                    Known{"Greater", Operation::less, true},
                                    Known{"GreaterOrEqual", Operation::less_or_equal, true},
                                    Known{"And", Operation::minimum},
                                    Known{"Or", Operation::maximum}};
    constexpr std::array one_input{Known{"Neg", Operation::negate},  Known{"Abs", Operation::absolute},
                                   Known{"Floor", Operation::floor}, Known{"Ceil", Operation::ceil},
                                   Known{"Round", Operation::round}, Known{"Not", Operation::logical_not}};
    const auto is_of_type = [&](const Known& known) { return node.is(known.type); };
    if (const auto* one = std::find_if(one_input.begin(), one_input.end(), is_of_type); one != one_input.end()) {
      const auto input = operand(node.input(0));
      if (!input) return std::nullopt;
      if (input->is_pixels) return refuse("it is not a weighted sum of pixels");
      return add(one->operation, {input->index}, input->layout);
    }
    const auto* two = std::find_if(two_inputs.begin(), two_inputs.end(), is_of_type);
    if (two == two_inputs.end() || node.inputs.size() < 2)
      return refuse("it depends on {}, an operator that the fusion does not support", onnx::describe(node));
    auto result = operand(node.input(0));
    for (std::size_t i = 1; i < node.inputs.size() && result; ++i) {
      const auto next = operand(node.input(i));
      if (!next) return std::nullopt;
      result = combined(two->operation, two->is_swapped ? *next : *result, two->is_swapped ? *result : *next);
    }
    return result;
  }

  bool reads(const std::optional<PixelSource>& source) {
    if (!source || source->image == nullptr) return false;
    if (program_.source_.image != nullptr && program_.source_ != *source) return false;
    program_.source_ = *source;
    return true;
  }

  /// Compiles a GatherElements that reads the same pixels of all channels from [N,C,S], item by item. Returns nothing
  /// for any other GatherElements.
  std::optional<Operand> compiled_gather_elements(const onnx::Node& node) {
    onnx::Value* rows = node.input(0);
    const std::int64_t axis = node.int_or("axis", 0);
    const auto source = source_of_rows(rows);
    if ((axis != 2 && axis != -1) || !reads(source)) return refuse("{} does not gather pixels", onnx::describe(node));
    const auto at = operand(node.input(1));
    if (!at) return std::nullopt;
    const std::vector<AxisFactor> items{{item, 1, fixed_size(&grid_, 0)}};
    AxisLayout::Axes axes = at->layout.axes();
    const bool is_of_all = axes.size() == 3 && AxisLayout({axes[0]}, {}) == AxisLayout({items}, {}) &&
                           axes[1].empty() && fixed_size(rows, 0) == fixed_size(&grid_, 0) &&
                           (fixed_size(node.input(1), 1) == fixed_size(rows, 1) || fixed_size(node.input(1), 1) == 0);
    if (!is_of_all || at->is_pixels || has_coordinates(at->layout)) {
      return refuse("{} does not gather the same pixels of all channels", onnx::describe(node));
    }
    axes[1] = {{channel, 1, fixed_size(rows, 1)}};
    return add(Operation::pixel, {at->index}, AxisLayout(std::move(axes), {}), true);
  }

  /// Compiles a Gather from [N*H*W,C], the pixels of all items. Returns nothing for any other Gather.
  std::optional<Operand> compiled_gather(const onnx::Node& node) {
    onnx::Value* rows = node.input(0);
    const bool is_table = rank_of(rows) == 2 && node.int_or("axis", 0) == 0 && only_reshapes(*rows) &&
                          fixed_size(rows, 1) > 0 && rank_of(rows->producer->input(0)) == 4 &&
                          fixed_size(rows->producer->input(0), 3) == fixed_size(rows, 1);
    if (!is_table || !reads(source_of_channels_last(rows->producer->input(0)))) {
      return refuse("{} does not gather pixels", onnx::describe(node));
    }
    const auto at = operand(node.input(1));
    if (!at || at->is_pixels || has_coordinates(at->layout)) return std::nullopt;
    AxisLayout::Axes axes = at->layout.axes();
    axes.push_back({{channel, 1, fixed_size(rows, 1)}});
    return add(Operation::pixel_of_item, {at->index}, AxisLayout(std::move(axes), {}), true);
  }

  /// Compiles a GatherND from [N,H,W,C] by item, row and column. Returns nothing for any other GatherND.
  std::optional<Operand> compiled_gather_nd(const onnx::Node& node) {
    const onnx::Value* image = node.input(0);
    const onnx::Node* indices = node.input(1)->producer;
    const bool is_apart =
        indices != nullptr && indices->is("Concat") && indices->inputs.size() == 3 && node.int_or("batch_dims", 0) == 0;
    if (!is_apart || !reads(source_of_channels_last(image))) {
      return refuse("{} does not gather pixels", onnx::describe(node));
    }
    const std::int64_t axis = indices->int_or("axis", 0);
    const auto last = static_cast<std::int64_t>(rank_of(node.input(1))) - 1;
    if (axis != -1 && axis != last) return refuse("the fusion does not support {}", onnx::describe(*indices));
    std::array<std::size_t, 3> parts{};
    std::optional<AxisLayout> layout(AxisLayout({}, {}));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto part = operand(indices->input(i));
      layout = part && !part->is_pixels ? broadcast(*layout, part->layout) : std::nullopt;
      if (!layout) return std::nullopt;
      parts[i] = part->index;
    }
    AxisLayout::Axes axes = layout->axes();
    if (axes.empty() || !axes.back().empty()) return std::nullopt;
    axes.back() = {{channel, 1, fixed_size(image, 3)}};
    return add(Operation::pixel_in_row, parts, AxisLayout(std::move(axes), {}), true);
  }

  onnx::Value& grid_;
  std::string& why_not_;
  SamplingProgram program_;
  std::unordered_map<const onnx::Value*, std::optional<Operand>> known_;
};

std::optional<SamplingProgram> SamplingProgram::of(onnx::Value& samples, onnx::Value& grid, std::string& why_not) {
  return SamplingCompiler(grid, why_not).compile(samples);
}

bool SamplingProgram::run_gather(const Instruction& instruction, std::int64_t of_item,
                                 std::vector<Number>& numbers) const {
  const auto whole_number = [&](std::size_t i) {
    return static_cast<std::int64_t>(std::llround(numbers[instruction.inputs[i]].values[0]));
  };
  std::int64_t pixel = whole_number(0);
  if (instruction.operation == Operation::pixel_of_item) pixel -= of_item * source_.count;
  if (instruction.operation == Operation::pixel_in_row) {
    const bool is_inside = whole_number(0) == of_item && whole_number(1) >= 0 && whole_number(1) < source_.height &&
                           whole_number(2) >= 0 && whole_number(2) < source_.width;
    if (!is_inside) return false;
    pixel = whole_number(1) * source_.width + whole_number(2);
  }
  numbers.back().pixels = {{pixel, 1}};
  return pixel >= 0 && pixel < source_.count;
}

std::optional<std::vector<SamplingProgram::Number>> SamplingProgram::run(std::array<double, 2> place,
                                                                         std::int64_t of_item) const {
  std::vector<Number> numbers;
  numbers.reserve(instructions_.size());
  for (const Instruction& instruction : instructions_) {
    numbers.emplace_back();
    Number& y = numbers.back();
    const Number& a = numbers[instruction.inputs[0]];
    const Number& b = numbers[instruction.inputs[1]];
    const Number& c = numbers[instruction.inputs[2]];
    const auto each = [&](const auto& f) {
      for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = f(a.values[i], b.values[i]);
    };
    switch (instruction.operation) {
      case Operation::constant: y.values = instruction.value; break;
      case Operation::place: y.values = place; break;
      case Operation::item_index: y.values.fill(static_cast<double>(of_item) * instruction.value[0]); break;
      case Operation::first_coordinate: y.values.fill(a.values[0]); break;
      case Operation::second_coordinate: y.values.fill(a.values[1]); break;
      case Operation::copy: y = a; break;
      case Operation::add:
        each([](double left, double right) { return left + right; });
        y.pixels = sum_of(a.pixels, b.pixels, 1);
        break;
      case Operation::subtract:
        each([](double left, double right) { return left - right; });
        y.pixels = sum_of(a.pixels, b.pixels, -1);
        break;
      case Operation::multiply:
        each([](double left, double right) { return left * right; });
        y.pixels = a.pixels.empty() ? scaled_pixels(b.pixels, a.values[0]) : scaled_pixels(a.pixels, b.values[0]);
        break;
      case Operation::divide:
        each([](double left, double right) { return left / right; });
        y.pixels = scaled_pixels(a.pixels, 1 / b.values[0]);
        break;
      case Operation::minimum: each([](double left, double right) { return std::min(left, right); }); break;
      case Operation::maximum: each([](double left, double right) { return std::max(left, right); }); break;
      case Operation::negate: each([](double left, double) { return -left; }); break;
      case Operation::absolute: each([](double left, double) { return std::abs(left); }); break;
      case Operation::floor: each([](double left, double) { return std::floor(left); }); break;
      case Operation::ceil: each([](double left, double) { return std::ceil(left); }); break;
      case Operation::round: each([](double left, double) { return std::nearbyint(left); }); break;
      case Operation::truncate: each([](double left, double) { return std::trunc(left); }); break;
      case Operation::less: each([](double left, double right) { return left < right ? 1.0 : 0.0; }); break;
      case Operation::less_or_equal: each([](double left, double right) { return left <= right ? 1.0 : 0.0; }); break;
      case Operation::logical_not: each([](double left, double) { return 1 - left; }); break;
      case Operation::select:
        for (std::size_t i = 0; i < y.values.size(); ++i) {
          y.values[i] = a.values[i] != 0 ? b.values[i] : c.values[i];
        }
        y.pixels = a.values[0] != 0 ? b.pixels : c.pixels;
        break;
      case Operation::pixel:
      case Operation::pixel_of_item:
      case Operation::pixel_in_row:
        if (!run_gather(instruction, of_item, numbers)) return std::nullopt;
        break;
    }
  }
  return numbers;
}

std::optional<std::vector<PixelWeight>> SamplingProgram::weights_at(std::array<double, 2> place,
                                                                    std::int64_t of_item) const {
  auto numbers = run(place, of_item);
  if (!numbers) return std::nullopt;
  return std::move(numbers->back().pixels);
}

std::optional<std::array<PixelPosition, 2>> SamplingProgram::positions() const {
  const auto origin = run({0, 0}, 0);
  const auto across = run({1, 0}, 0);
  const auto down = run({0, 1}, 0);
  if (!origin || !across || !down) return std::nullopt;
  std::array<std::optional<PixelPosition>, 2> found;
  for (const Instruction& instruction : instructions_) {
    constexpr std::array of_position{Operation::floor, Operation::ceil, Operation::round, Operation::truncate};
    const bool is_position =
        std::find(of_position.begin(), of_position.end(), instruction.operation) != of_position.end();
    if (!is_position) continue;
    for (std::size_t i = 0; i < 2; ++i) {
      const double offset = (*origin)[instruction.inputs[0]].values[i];
      const double by_x = (*across)[instruction.inputs[0]].values[i] - offset;
      const double by_y = (*down)[instruction.inputs[0]].values[i] - offset;
      if (by_x != 0 && by_y == 0 && !found[0]) found[0] = PixelPosition{by_x, offset};
      if (by_y != 0 && by_x == 0 && !found[1]) found[1] = PixelPosition{by_y, offset};
    }
  }
  if (!found[0] || !found[1]) return std::nullopt;
  return std::array{*found[0], *found[1]};
}

}  // namespace graft::passes::deformable_attention
