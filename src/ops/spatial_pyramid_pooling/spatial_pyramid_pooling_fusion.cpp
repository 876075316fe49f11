// Pass fuse_spatial_pyramid_pooling fuses pools of several sizes over one image:
//   Concat(Flatten(MaxPool(x)), Flatten(MaxPool(x)), Flatten(GlobalMaxPool(x))) -> SpatialPyramidPooling(x)
//
// Exporters write the windows that follow from the size of the image, not the rule from which they follow. If the size
// is known, the bins of each pool are compared with the bins of each rule. If the size was made dynamic after the
// export, the windows of the old size remain. The pass then finds the size at which the windows are a pyramid of the
// length that the network continues with, proves the rewrite at that size, and reports what is assumed of other sizes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graft/operator/registry.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "ops/spatial_pyramid_pooling/bins.hpp"
#include "passes/fuse.hpp"
#include "passes/operator_fusion.hpp"

namespace graft::passes {
namespace {

constexpr std::array<std::pair<ops::Binning, std::string_view>, 3> binnings{
    {{ops::Binning::adaptive, "adaptive"}, {ops::Binning::window, "window"}, {ops::Binning::caffe, "caffe"}}};
constexpr std::size_t image_rank = 4;
/// The maximum number of bins of a level along one axis. Usual pyramids have few bins, but a malicious file of a few
/// bytes may request billions.
constexpr std::int64_t most_bins = 4096;

/// The bins of a pool along one axis.
using Bins = std::vector<ops::Bin>;

using Sizes = std::array<std::int64_t, 2>;  ///< The height and width of an image.

/// The kernel size, stride and padding of a pool along one axis.
struct Windows {
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;
};

struct Level {
  onnx::Value* x = nullptr;
  const onnx::Value* y = nullptr;
  bool is_max = false;
  bool includes_padding = false;  ///< Whether the divisor of an average counts padding.
  bool by_cells = false;          ///< Whether the level is flattened in the order of n x n x C.
  std::array<Windows, 2> windows;
  std::array<Bins, 2> bins;  ///< The bins along H and W; empty if the pool covers the whole axis.
  Sizes sizes{};             ///< The height and width of the image; 0 if unknown.
  std::string text;          ///< A description of the windows, for messages.

  [[nodiscard]] bool is_whole_image() const { return windows[0].kernel == 0; }
};

std::int64_t size_of(const onnx::Value& x, std::size_t axis) {
  const Dim& dim = (*x.shape)[axis];
  return dim.is_constant() ? dim.value() : 0;
}

bool is_whole_image(const onnx::Node& node) {
  if (node.is("GlobalMaxPool") || node.is("GlobalAveragePool")) return true;
  if (!node.is("ReduceMean") && !node.is("ReduceMax")) return false;
  auto axes = node.ints("axes");
  if (!axes) axes = constant_ints(node.input(1));
  if (!axes || axes->size() != 2) return false;
  for (std::int64_t& axis : *axes) axis += axis < 0 ? static_cast<std::int64_t>(image_rank) : 0;
  std::sort(axes->begin(), axes->end());
  return *axes == std::vector<std::int64_t>{2, 3};
}

/// Returns the level that a pooling node computes, without its bins; nothing if the node does not pool an image. If the
/// pool has unsupported attributes, `why_not` is set to the reason.
std::optional<Level> read_pool(const onnx::Node& node, std::string& why_not) {
  onnx::Value* x = node.input(0);
  if (x == nullptr || !x->shape || x->shape->size() != image_rank) return std::nullopt;
  Level level;
  level.x = x;
  level.y = node.output();
  level.is_max = node.is("MaxPool") || node.is("GlobalMaxPool") || node.is("ReduceMax");
  level.includes_padding = node.int_or("count_include_pad", 0) != 0;
  for (std::size_t axis = 0; axis < 2; ++axis) level.sizes[axis] = size_of(*x, axis + 2);
  if (is_whole_image(node)) {
    level.text = "the whole image";
    return level;
  }
  if (!node.is("MaxPool") && !node.is("AveragePool")) return std::nullopt;
  if (node.output(1) != nullptr) return std::nullopt;
  const onnx::Value& y = *node.output();
  const auto kernel = node.ints("kernel_shape").value_or(std::vector<std::int64_t>{});
  const auto stride = node.ints("strides").value_or(std::vector<std::int64_t>{1, 1});
  const auto pads = node.ints("pads").value_or(std::vector<std::int64_t>{0, 0, 0, 0});
  const auto dilations = node.ints("dilations").value_or(std::vector<std::int64_t>{1, 1});
  level.text = fmt::format("kernel [{}], stride [{}], pads [{}]", fmt::join(kernel, ", "), fmt::join(stride, ", "),
                           fmt::join(pads, ", "));
  if (kernel.size() != 2 || stride.size() != 2 || pads.size() != 4 || !y.shape || y.shape->size() != image_rank ||
      node.string_or("auto_pad", "NOTSET") != "NOTSET" || dilations != std::vector<std::int64_t>{1, 1}) {
    why_not = "the pool is dilated or has auto_pad";
    return std::nullopt;
  }
  for (std::size_t axis = 0; axis < 2; ++axis) {
    level.windows[axis] = {kernel[axis], stride[axis], pads[axis], pads[axis + 2]};
  }
  return level;
}

/// Returns the elements that each of `count` windows covers on an axis of this size, or nothing if a window of an
/// average reaches beyond the padding.
std::optional<Bins> bins_of(const Level& level, std::size_t axis, std::int64_t size, std::int64_t count) {
  const Windows& windows = level.windows[axis];
  Bins bins;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = i * windows.stride - windows.pad_begin;
    const std::int64_t end = first + windows.kernel;
    if (!level.is_max && end > size + windows.pad_end) return std::nullopt;
    bins.push_back({std::max<std::int64_t>(first, 0), std::min(end, size), windows.kernel});
    if (!level.includes_padding) bins.back().divisor = bins.back().end - bins.back().begin;
  }
  return bins;
}

/// Sets the bins of a level over an image of fixed size. Returns why they cannot be set, or an empty string.
std::string set_bins(Level& level) {
  for (std::size_t axis = 0; axis < 2 && !level.is_whole_image(); ++axis) {
    const std::int64_t count = size_of(*level.y, axis + 2);
    if (count < 1) return fmt::format("the size of '{}' is unknown", level.y->name);
    if (count > most_bins) {
      return fmt::format("there are {} windows along one axis; a level may have at most {}", count, most_bins);
    }
    auto bins = bins_of(level, axis, level.sizes[axis], count);
    if (!bins) return "a window of an average reaches beyond the padding";
    level.bins[axis] = *std::move(bins);
  }
  return "";
}

/// Returns the node that computes an input of the concatenation, skipping any reshapes and one Transpose to
/// channels-last order; null if no node computes it. `by_cells` is set to whether there is such a Transpose.
const onnx::Node* pool_behind(const onnx::Value* value, bool& by_cells) {
  by_cells = false;
  while (value != nullptr && value->producer != nullptr) {
    const onnx::Node& node = *value->producer;
    const bool only_reshapes = has_trait(node, onnx::trait::view);
    const bool moves_channels =
        !by_cells && node.is("Transpose") && node.ints("perm") == std::vector<std::int64_t>{0, 2, 3, 1};
    if (!only_reshapes && !moves_channels) return &node;
    by_cells = by_cells || moves_channels;
    value = node.input(0);
  }
  return nullptr;
}

/// Returns whether `bins` are the `count` bins of the rule `binning` along an axis of `size` elements. Divisors are
/// compared for averages only.
bool has_bins(const Bins& bins, bool is_max, std::int64_t size, std::int64_t count, ops::Binning binning) {
  if (static_cast<std::int64_t>(bins.size()) != count || !can_bin(binning, size, count)) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    const ops::Bin& here = bins[static_cast<std::size_t>(i)];
    const ops::Bin wanted = bin_at(binning, size, count, i);
    if (here.begin != wanted.begin || here.end != wanted.end) return false;
    if (!is_max && here.divisor != wanted.divisor) return false;
  }
  return true;
}

bool has_bins(const Level& level, std::int64_t count, ops::Binning binning) {
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (level.bins[axis].empty()) continue;  // the whole axis is the single bin of every rule
    if (!has_bins(level.bins[axis], level.is_max, level.sizes[axis], count, binning)) return false;
  }
  return true;
}

/// Returns whether `value` has the shape [N, C * count * count], where C is the number of channels of x: `count` x
/// `count` bins of each channel in one row.
bool is_flat(const onnx::Value& value, const onnx::Value& x, std::int64_t count) {
  const auto channels = size_of(x, 1);
  return value.shape && value.shape->size() == 2 && channels > 0 && (*value.shape)[1].is_constant() &&
         (*value.shape)[1].value() == channels * count * count;
}

/// Returns n of a level of n x n bins, from the length of its flattened result; 0 if the length is unknown or is not C
/// * n * n.
std::int64_t count_by_length(const onnx::Value& flat, const onnx::Value& x) {
  const std::int64_t channels = size_of(x, 1);
  if (!flat.shape || flat.shape->size() != 2 || !(*flat.shape)[1].is_constant() || channels < 1) return 0;
  const std::int64_t length = (*flat.shape)[1].value();
  for (std::int64_t n = 1; n <= most_bins && n * n * channels <= length; ++n) {
    if (n * n * channels == length) return n;
  }
  return 0;
}

/// Returns the sizes of axis `axis` of the image for which the windows of all levels are the bins of the rule
/// `binning`. counts[i] is the number of bins of level i along the axis. Empty if there is no such size.
std::vector<std::int64_t> frozen_sizes(const std::vector<Level>& levels, const std::vector<std::int64_t>& counts,
                                       std::size_t axis, ops::Binning binning) {
  // There are as many windows as bins. Because of the stride, this leaves a range of sizes.
  std::int64_t lowest = 1;
  std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (levels[i].is_whole_image()) continue;
    const Windows& windows = levels[i].windows[axis];
    std::int64_t first = 0;
    if (__builtin_mul_overflow(counts[i] - 1, windows.stride, &first) ||
        __builtin_add_overflow(first, windows.kernel - windows.pad_begin - windows.pad_end, &first)) {
      return {};
    }
    constexpr std::int64_t largest_size = std::int64_t{1} << 31;
    if (first > largest_size) return {};
    lowest = std::max(lowest, first);
    highest = std::min(highest, first + std::min(windows.stride, most_bins) - 1);
  }
  const std::int64_t known = levels[0].sizes[axis];
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = lowest; size <= highest && highest - lowest < most_bins; ++size) {
    if (known != 0 && size != known) continue;
    bool all = true;
    for (std::size_t i = 0; i < levels.size() && all; ++i) {
      if (levels[i].is_whole_image()) continue;
      const auto bins = bins_of(levels[i], axis, size, counts[i]);
      all = bins && has_bins(*bins, levels[i].is_max, size, counts[i], binning);
    }
    if (all) sizes.push_back(size);
  }
  return sizes;
}

struct Pyramid {
  onnx::Value* x = nullptr;
  std::shared_ptr<Operator> op;
  std::size_t pools = 0;
  /// The result of order_of(): the index of each element in the result of the operator; empty if the order is the same.
  std::vector<std::int64_t> order;
  /// The size of the image for which the windows were computed, if the size is dynamic now.
  std::optional<Sizes> frozen;
  std::vector<std::string_view> binnings;  ///< All rules that yield these bins; the operator uses the first one.
  std::string obstacle;
};

/// Returns, for each element of the concatenation, its index in the result of the operator. Level i has counts[i] x
/// counts[i] bins for each of the `channels` channels. Returns an empty list if no level is flattened in channels-last
/// order, because the indices are then equal.
std::vector<std::int64_t> order_of(const std::vector<Level>& levels, const std::vector<std::int64_t>& counts,
                                   std::int64_t channels) {
  if (std::none_of(levels.begin(), levels.end(), [](const Level& level) { return level.by_cells; })) return {};
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const auto start = static_cast<std::int64_t>(order.size());
    const std::int64_t cells = counts[i] * counts[i];
    for (std::int64_t at = 0; at < cells * channels; ++at) {
      order.push_back(start + (levels[i].by_cells ? at % channels * cells + at / channels : at));
    }
  }
  return order;
}

void read_levels(Pyramid& found, const onnx::Node& concat, std::vector<Level>& levels) {
  std::string why_not;
  for (const onnx::Value* input : concat.inputs) {
    bool by_cells = false;
    const onnx::Node* pool = pool_behind(input, by_cells);
    auto level = pool == nullptr ? std::nullopt : read_pool(*pool, why_not);
    const bool is_fixed = level && level->sizes[0] > 0 && level->sizes[1] > 0;
    // For an image of fixed size, layers of TensorRT compute this order without moving elements.
    if (level && is_fixed && by_cells) level.reset();
    if (level && is_fixed) {
      if (std::string unusual = set_bins(*level); !unusual.empty()) {
        why_not = std::move(unusual);
        level.reset();
      }
    }
    if (!level) {
      if (why_not.empty()) why_not = fmt::format("'{}' is not a pooled image", input == nullptr ? "" : input->name);
      continue;
    }
    level->by_cells = by_cells;
    levels.push_back(std::move(*level));
  }
  found.pools = levels.size();
  if (found.pools < 2 && why_not.empty()) return;
  if (levels.size() != concat.inputs.size()) found.obstacle = why_not;
}

Pyramid read(const onnx::Node& concat) {
  Pyramid found;
  const auto fail = [&](std::string why) {
    found.obstacle = std::move(why);
    return found;
  };
  std::vector<Level> levels;
  read_levels(found, concat, levels);
  if (levels.size() != concat.inputs.size()) return found;
  found.x = levels[0].x;
  const onnx::Value& x = *found.x;
  for (const Level& level : levels) {
    if (level.x != &x)
      return fail(fmt::format("'{}' and '{}' are pooled; all levels must pool one tensor", x.name, level.x->name));
    if (level.is_max != levels[0].is_max) return fail("one level computes the maximum, another level the average");
  }
  const bool has_windows =
      std::any_of(levels.begin(), levels.end(), [](const Level& level) { return !level.is_whole_image(); });
  const bool is_frozen = has_windows && (levels[0].sizes[0] < 1 || levels[0].sizes[1] < 1);

  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const Level& level = levels[i];
    if (is_frozen) {
      counts.push_back(count_by_length(*concat.inputs[i], x));
      if (counts.back() == 0) {
        return fail(
            fmt::format("height and width of '{}' are dynamic, but the windows that depend on them are fixed", x.name));
      }
      continue;
    }
    const std::size_t height = std::max<std::size_t>(level.bins[0].size(), 1);
    const std::size_t width = std::max<std::size_t>(level.bins[1].size(), 1);
    if (height != width) return fail(fmt::format("a level has {} x {} bins, not n x n", height, width));
    counts.push_back(static_cast<std::int64_t>(height));
    if (!is_flat(*concat.inputs[i], x, counts.back())) {
      return fail(
          fmt::format("'{}' does not contain the pooled image as one vector for each item", concat.inputs[i]->name));
    }
  }
  const std::int64_t axis = concat.int_or("axis", 0);
  if (axis != 1 && axis != -1) return fail(fmt::format("the levels are concatenated along axis {}", axis));
  found.order = order_of(levels, counts, size_of(x, 1));

  for (const auto& [binning, name] : binnings) {
    if (is_frozen) {
      const auto heights = frozen_sizes(levels, counts, 0, binning);
      const auto widths = frozen_sizes(levels, counts, 1, binning);
      if (heights.empty() || widths.empty()) continue;
      const Sizes sizes{heights.front(), widths.front()};
      if (found.frozen && *found.frozen != sizes) continue;
      found.frozen = sizes;
    } else {
      bool all = true;
      for (std::size_t i = 0; i < levels.size(); ++i) all = all && has_bins(levels[i], counts[i], binning);
      if (!all) continue;
    }
    found.binnings.push_back(name);
  }
  if (!found.binnings.empty()) {
    found.op = find_operator("SpatialPyramidPooling")->create();
    const std::vector<NamedAttribute> attributes{{"levels", counts},
                                                 {"mode", std::string(levels[0].is_max ? "max" : "average")},
                                                 {"binning", std::string(found.binnings.front())}};
    if (const Status status = found.op->set(attributes); !status.ok()) {
      found.op.reset();
      return fail(status.message());
    }
    return found;
  }
  if (is_frozen) {
    return fail(fmt::format("height and width of '{}' are dynamic, and the windows do not form a pyramid for any size",
                            x.name));
  }
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const bool none = std::none_of(binnings.begin(), binnings.end(),
                                   [&](const auto& rule) { return has_bins(levels[i], counts[i], rule.first); });
    if (none) {
      return fail(fmt::format("no binning rule results in {} x {} bins of {} x {} with {}", counts[i], counts[i],
                              levels[i].sizes[0], levels[i].sizes[1], levels[i].text));
    }
  }
  return fail("the levels follow different rules of binning");
}

/// Returns a function that adds the operator and a Gather before the node that computes `y`. The Gather changes the
/// order of the elements to that of channels-last levels.
std::function<void(onnx::Graph&)> ordered_edit(const Pyramid& found, const onnx::Value& y) {
  return [op = std::shared_ptr<const Operator>(found.op), x = found.x->name, y = y.name,
          order = found.order](onnx::Graph& graph) {
    onnx::Value* value = graph.find(y);
    onnx::Node* old = value->producer;
    onnx::Node* pyramid = add_operator_node(graph, *op, {graph.find(x)}, {y + "/by_channels"}, old);
    pyramid->name = old->name;
    onnx::Value* indices = graph.add_constant(y + "/order", onnx::TensorData::from_ints(order));
    onnx::Node* gather = graph.add_node("Gather", {pyramid->output(), indices}, {y}, old);
    gather->attributes.emplace("axis", onnx::NodeAttribute(onnx::AttributeData(std::int64_t{1})));
    graph.move_output(*old, value->output_index, *gather, 0);
  };
}

/// Returns a sentence for messages that states what the rewrite assumes if the windows fit only one image size.
std::string assumption(const Pyramid& found) {
  const std::string size = fmt::format("{} x {}", (*found.frozen)[0], (*found.frozen)[1]);
  std::string others;
  for (std::size_t i = 1; i < found.binnings.size(); ++i) {
    others += fmt::format("{}{}", i == 1 ? "" : " and ", found.binnings[i]);
  }
  return fmt::format(
      "the windows are for an image of {}, whose size is now dynamic; the rewrite is proven at {}, and for other sizes "
      "a pyramid over the whole image is assumed, binning {}{}",
      size, size, found.binnings.front(),
      others.empty() ? "" : fmt::format(" ({} would be the same at {})", others, size));
}

void fuse_spatial_pyramid_pooling(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      if (!node->is("Concat") || node->inputs.size() < 2 || node->output() == nullptr) continue;
      Pyramid found = read(*node);
      if (found.pools == 0) continue;
      const auto near = [&](const std::string& reason) {
        rewriter.near_miss("SpatialPyramidPooling", {.node = node,
                                                     .matched_nodes = found.pools + 1,
                                                     .pattern_nodes = node->inputs.size() + 1,
                                                     .reason = reason});
      };
      if (!found.op) {
        if (found.pools + 1 >= 2 && !found.obstacle.empty()) near(found.obstacle);
        continue;
      }
      const auto dtype = found.x->type ? to_dtype(*found.x->type) : std::nullopt;
      if (!dtype || !is_floating_point(*dtype)) {
        near(fmt::format("'{}' has a type that SpatialPyramidPooling does not support", found.x->name));
        continue;
      }
      if (!is_wanted(rewriter, *found.op, *found.x, *node->output())) continue;
      std::string why_not;
      const auto nodes = nodes_between({found.x}, *node->output(), why_not);
      if (!nodes) {
        near(why_not);
        continue;
      }
      std::string reason = fmt::format("{} pools of '{}', flattened and concatenated", found.pools, found.x->name);
      std::map<std::string, Shape, std::less<>> proof_shapes;
      if (found.frozen) {
        reason += "; " + assumption(found);
        Shape shape = *found.x->shape;
        for (std::size_t axis = 0; axis < 2; ++axis) shape[axis + 2] = (*found.frozen)[axis];
        proof_shapes.emplace(found.x->name, std::move(shape));
      }
      const std::string name = onnx::describe(*node);
      onnx::Value& y = *node->output();
      const bool done = rewriter.apply(
          {.nodes = *nodes,
           .inputs = {found.x},
           .outputs = {&y},
           .replacement = to_text(*found.op),
           .reason = std::move(reason),
           .by_definition = "",
           .edit = found.order.empty() ? operator_edit(found.op, {found.x->name}, y.name) : ordered_edit(found, y),
           .proof_shapes = std::move(proof_shapes)});
      if (done && found.frozen) rewriter.warn(fmt::format("{}: {}", name, assumption(found)));
    }
  }
}

}  // namespace

extern const OperatorFusion spatial_pyramid_pooling_fusion{
    .pass = {"fuse_spatial_pyramid_pooling",
             "pools of one image, flattened and concatenated; runs while the pools are still ONNX nodes",
             fuse_spatial_pyramid_pooling},
    .after = "fuse_padding",
    .lifts_frozen_sizes = true};

}  // namespace graft::passes
