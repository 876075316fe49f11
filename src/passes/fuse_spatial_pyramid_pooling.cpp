// Pass fuse_spatial_pyramid_pooling: pools of several sizes over one image, flattened and concatenated, become one
// SpatialPyramidPooling.
//
// Exporters write the windows that follow from the image's size, not the rule that they follow from. With the size
// known, the bins of each pool are compared with those of each rule.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graft/registry.hpp"
#include "ops/spatial_pyramid_pooling/bins.hpp"
#include "passes/fuse.hpp"
#include "passes/passes.hpp"

namespace graft {
namespace {

constexpr std::array<std::pair<Binning, std::string_view>, 3> binnings{
    {{Binning::adaptive, "adaptive"}, {Binning::window, "window"}, {Binning::caffe, "caffe"}}};
constexpr std::size_t image_rank = 4;
/// Of a level along one axis. Pyramids have a handful; a few bytes of a hostile file may make billions.
constexpr std::int64_t most_bins = 4096;

/// The bins of a pool along one axis.
using Bins = std::vector<Bin>;

struct Level {
  Value* x = nullptr;
  bool is_max = false;
  std::array<Bins, 2> bins;             ///< Of H and W; empty where the pool takes the whole axis.
  std::array<std::int64_t, 2> sizes{};  ///< Of the image; 0 where it is not known.
  std::string windows;                  ///< For messages.
};

std::int64_t size_of(const Value& x, std::size_t axis) {
  const Dim& dim = (*x.shape)[axis];
  return dim.is_constant() ? dim.value() : 0;
}

bool is_whole_image(const Node& node) {
  if (node.is("GlobalMaxPool") || node.is("GlobalAveragePool")) return true;
  if (!node.is("ReduceMean") && !node.is("ReduceMax")) return false;
  auto axes = node.ints("axes");
  if (!axes && node.input(1) != nullptr) {
    const auto constant = node.input(1)->constant();
    axes = constant ? constant->ints() : std::nullopt;
  }
  if (!axes || axes->size() != 2) return false;
  for (std::int64_t& axis : *axes) axis += axis < 0 ? static_cast<std::int64_t>(image_rank) : 0;
  std::sort(axes->begin(), axes->end());
  return *axes == std::vector<std::int64_t>{2, 3};
}

/// The level that a pool of an image is; `why_not` says what is unusual about it.
std::optional<Level> read_pool(const Node& node, std::string& why_not) {
  Value* x = node.input(0);
  if (x == nullptr || !x->shape || x->shape->size() != image_rank) return std::nullopt;
  Level level{x, node.is("MaxPool") || node.is("GlobalMaxPool") || node.is("ReduceMax"), {}, {}, ""};
  for (std::size_t axis = 0; axis < 2; ++axis) level.sizes[axis] = size_of(*x, axis + 2);
  if (is_whole_image(node)) {
    level.windows = "the whole image";
    return level;
  }
  if (!node.is("MaxPool") && !node.is("AveragePool")) return std::nullopt;
  if (node.output(1) != nullptr) return std::nullopt;
  const Value& y = *node.output();
  const auto kernel = node.ints("kernel_shape").value_or(std::vector<std::int64_t>{});
  const auto stride = node.ints("strides").value_or(std::vector<std::int64_t>{1, 1});
  const auto pads = node.ints("pads").value_or(std::vector<std::int64_t>{0, 0, 0, 0});
  const auto dilations = node.ints("dilations").value_or(std::vector<std::int64_t>{1, 1});
  level.windows = fmt::format("kernel [{}], stride [{}], pads [{}]", fmt::join(kernel, ", "), fmt::join(stride, ", "),
                              fmt::join(pads, ", "));
  if (kernel.size() != 2 || stride.size() != 2 || pads.size() != 4 || !y.shape || y.shape->size() != image_rank ||
      node.string_or("auto_pad", "NOTSET") != "NOTSET" || dilations != std::vector<std::int64_t>{1, 1}) {
    why_not = "the pool is dilated or padded by a rule";
    return std::nullopt;
  }
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t size = level.sizes[axis];
    const std::int64_t count = size_of(y, axis + 2);
    if (size < 1 || count < 1) {
      why_not = fmt::format("height and width of '{}' are not fixed, and windows that follow from them are", x->name);
      return std::nullopt;
    }
    if (count > most_bins) {
      why_not = fmt::format("{} windows along one axis, and a level has at most {}", count, most_bins);
      return std::nullopt;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t first = i * stride[axis] - pads[axis];
      const Bin bin{std::max<std::int64_t>(first, 0), std::min(first + kernel[axis], size), kernel[axis]};
      const bool over_the_padding = first + kernel[axis] > size + pads[axis + 2];
      if (!level.is_max && over_the_padding) {
        why_not = "an average over a window that reaches beyond the padding";
        return std::nullopt;
      }
      level.bins[axis].push_back(bin);
      if (node.int_or("count_include_pad", 0) == 0) level.bins[axis].back().divisor = bin.end - bin.begin;
    }
  }
  return level;
}

/// From an input of the concatenation back to the pool that it is the flat result of.
const Node* pool_behind(const Value* value) {
  while (value != nullptr && value->producer != nullptr) {
    const Node& node = *value->producer;
    const bool only_reshapes = node.is("Reshape") || node.is("Flatten") || node.is("Squeeze") || node.is("Identity");
    if (!only_reshapes) return &node;
    value = node.input(0);
  }
  return nullptr;
}

bool has_bins(const Level& level, std::int64_t count, Binning binning) {
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const Bins& bins = level.bins[axis];
    const std::int64_t size = level.sizes[axis];
    if (bins.empty()) continue;  // the whole axis, which one bin of every rule is
    if (static_cast<std::int64_t>(bins.size()) != count || !can_bin(binning, size, count)) return false;
    for (std::int64_t i = 0; i < count; ++i) {
      const Bin& here = bins[static_cast<std::size_t>(i)];
      const Bin wanted = bin_at(binning, size, count, i);
      if (here.begin != wanted.begin || here.end != wanted.end) return false;
      if (!level.is_max && here.divisor != wanted.divisor) return false;
    }
  }
  return true;
}

/// [N, C n n], in the order of C x n x n.
bool is_flat(const Value& value, const Value& x, std::int64_t count) {
  const auto channels = size_of(x, 1);
  return value.shape && value.shape->size() == 2 && channels > 0 && (*value.shape)[1].is_constant() &&
         (*value.shape)[1].value() == channels * count * count;
}

struct Pyramid {
  Value* x = nullptr;
  std::shared_ptr<Operator> op;
  std::size_t pools = 0;
  std::string obstacle;
};

Pyramid read(const Node& concat) {
  Pyramid found;
  const auto fail = [&](std::string why) {
    found.obstacle = std::move(why);
    return found;
  };
  std::vector<Level> levels;
  std::string why_not;
  for (const Value* input : concat.inputs) {
    const Node* pool = pool_behind(input);
    auto level = pool == nullptr ? std::nullopt : read_pool(*pool, why_not);
    if (!level) {
      if (why_not.empty()) why_not = fmt::format("'{}' is no pool of an image", input == nullptr ? "" : input->name);
      continue;
    }
    levels.push_back(std::move(*level));
  }
  found.pools = levels.size();
  if (found.pools < 2 && why_not.empty()) return found;
  if (levels.size() != concat.inputs.size()) return fail(why_not);
  found.x = levels[0].x;
  const Value& x = *found.x;

  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const Level& level = levels[i];
    if (level.x != &x) return fail(fmt::format("'{}' and '{}' are pooled, not one tensor", x.name, level.x->name));
    if (level.is_max != levels[0].is_max) return fail("one level takes the maximum, another one the average");
    const std::size_t height = std::max<std::size_t>(level.bins[0].size(), 1);
    const std::size_t width = std::max<std::size_t>(level.bins[1].size(), 1);
    if (height != width) return fail(fmt::format("a level has {} x {} bins, not n x n", height, width));
    counts.push_back(static_cast<std::int64_t>(height));
    if (!is_flat(*concat.inputs[i], x, counts.back())) {
      return fail(fmt::format("'{}' is not the pooled image as one vector for each item", concat.inputs[i]->name));
    }
  }
  const std::int64_t axis = concat.int_or("axis", 0);
  if (axis != 1 && axis != -1) return fail(fmt::format("the levels are concatenated along axis {}", axis));

  for (const auto& [binning, name] : binnings) {
    bool all = true;
    for (std::size_t i = 0; i < levels.size(); ++i) all = all && has_bins(levels[i], counts[i], binning);
    if (!all) continue;
    found.op = find_operator("SpatialPyramidPooling")->create();
    const std::vector<NamedAttribute> attributes{{"levels", counts},
                                                 {"mode", std::string(levels[0].is_max ? "max" : "average")},
                                                 {"binning", std::string(name)}};
    if (const Status status = found.op->set(attributes); !status.ok()) return fail(status.message());
    return found;
  }
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const bool none = std::none_of(binnings.begin(), binnings.end(),
                                   [&](const auto& rule) { return has_bins(levels[i], counts[i], rule.first); });
    if (none) {
      return fail(fmt::format("no rule makes {} x {} bins of {} x {} with {}", counts[i], counts[i], levels[i].sizes[0],
                              levels[i].sizes[1], levels[i].windows));
    }
  }
  return fail("the levels follow different rules of binning");
}

}  // namespace

void fuse_spatial_pyramid_pooling(Rewriter& rewriter) {
  for (Graph* graph : rewriter.graphs()) {
    for (Node* node : graph->nodes()) {
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
        near(fmt::format("'{}' has no type that SpatialPyramidPooling takes", found.x->name));
        continue;
      }
      if (!is_wanted(rewriter, *found.op, *found.x)) continue;
      std::string why_not;
      const auto nodes = nodes_between({found.x}, *node->output(), why_not);
      if (!nodes) {
        near(why_not);
        continue;
      }
      rewriter.apply({.nodes = *nodes,
                      .inputs = {found.x},
                      .outputs = {node->output()},
                      .replacement = to_text(*found.op),
                      .reason = fmt::format("{} pools of '{}', flattened and concatenated", found.pools, found.x->name),
                      .by_definition = "",
                      .edit = operator_edit(found.op, {found.x->name}, node->output()->name)});
    }
  }
}

}  // namespace graft
