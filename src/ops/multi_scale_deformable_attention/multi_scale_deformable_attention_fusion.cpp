// Pass fuse_multi_scale_deformable_attention:
//   ReduceSum(Mul(Concat(GridSample(map_0, grid_0), ...), weights))
// becomes
//   MultiScaleDeformableAttention(value, spatial_shapes, sampling_locations, weights)
//
// Deformable DETR and its family (Grounding DINO, RT-DETR, D-FINE) are exported in this form:
//
//   value     [B,S,M,D]            - the pixels of a map, heads to the batch -  [B*M,D,H,W]
//   locations [B,Q,M,L,P,2]        - 2 * x - 1, the points of a map, heads to the batch -  [B*M,Q,P,2]
//   weights   [B,Q,M,L,P]          - heads to the batch -  [B*M,1,Q,L*P]
//   GridSample of each map, Concat - [B*M,D,Q,L*P] -  Mul by the weights, ReduceSum  - to [B,Q,M*D] -
//
// Equivalent sampling with gathers may replace a GridSample, see fusion/grid_sampling.hpp.
//
// The nodes between " - " only move elements, and each network moves them in its own way. The pass therefore searches
// the ancestors of each of the three inputs for a tensor whose axes, followed through all movements, have the order of
// the operator's input. Points and weights of queries that do not depend on the image are constants, and become
// constant inputs of the operator.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graft/operator/registry.hpp"
#include "onnx/operator_node.hpp"
#include "ops/multi_scale_deformable_attention/fusion/ancestors.hpp"
#include "ops/multi_scale_deformable_attention/fusion/axis_layout.hpp"
#include "ops/multi_scale_deformable_attention/fusion/grid_sampling.hpp"
#include "passes/fuse.hpp"
#include "passes/operator_fusion.hpp"

namespace graft::passes {
namespace {

using namespace deformable_attention;

constexpr std::string_view attention_name = "MultiScaleDeformableAttention";

/// Returns the layout of the first tensor in `ancestors` in terms of the axes of ancestor `index`, which has the layout
/// `layout`; nothing if it cannot be expressed.
std::optional<AxisLayout> followed(const std::vector<Ancestor>& ancestors, std::size_t index,
                                   std::optional<AxisLayout> layout) {
  for (; index > 0 && layout; --index) {
    const onnx::Value& next = *ancestors[index - 1].value;
    if (moves_elements(*next.producer)) layout = layout->after(*next.producer, next);
  }
  return layout;
}

/// The axes of a tensor x that common_source() searches for: `first`, then any number of `point` axes if `has_points`
/// is true, then `last`. Other tensors are computed from x as scale * x + offset.
struct SourceAxes {
  std::vector<std::size_t> first;
  std::vector<std::size_t> last = {};
  bool has_points = true;
  double scale = 1;
  double offset = 0;
};
/// Returns the nearest tensor with the axes `axes` from which all of `levels` are computed as scale * x + offset, or
/// null. `fits` returns whether a candidate has the right sizes; `layout_in` returns the layout that its axes must have
/// in a level.
template <class Fits, class LayoutIn>
onnx::Value* common_source(const std::vector<std::vector<Ancestor>>& levels, const SourceAxes& axes, const Fits& fits,
                           const LayoutIn& layout_in) {
  for (const Ancestor& candidate : levels.front()) {
    const std::size_t rank = rank_of(candidate.value);
    const std::size_t least = axes.first.size() + axes.last.size() + (axes.has_points ? 1 : 0);
    if (rank < least || (rank > least && !axes.has_points) || !fits(*candidate.value)) continue;
    std::vector<std::size_t> names = axes.first;
    names.resize(rank - axes.last.size(), point);
    names.insert(names.end(), axes.last.begin(), axes.last.end());
    const auto layout = AxisLayout::of(*candidate.value, names);
    if (!layout) continue;
    bool is_common = true;
    for (std::size_t level = 0; level < levels.size() && is_common; ++level) {
      const auto& all = levels[level];
      const auto at = std::find_if(all.begin(), all.end(), [&](const Ancestor& each) {
        constexpr double close_enough = 1e-6;
        return each.value == candidate.value && std::abs(each.scale - axes.scale) < close_enough &&
               std::abs(each.offset - axes.offset) < close_enough;
      });
      is_common = at != all.end() && followed(all, static_cast<std::size_t>(at - all.begin()), layout) ==
                                         layout_in(*candidate.value, level);
    }
    if (is_common) return candidate.value;
  }
  return nullptr;
}

/// A sum of weighted samples, and the inputs of the attention that it may be.
struct Attention {
  std::vector<GridSampling> samples;  ///< The samples of each map; empty if the sum is not an attention.
  std::string obstacle;
  std::vector<std::int64_t> points;  ///< The number of points in each map.
  std::vector<std::int64_t> sizes;   ///< The height and width of each map.
  onnx::Value* value = nullptr;
  /// The sampling locations; null if the grids are constants because the queries do not depend on the image.
  onnx::Value* locations = nullptr;
  onnx::Value* weights = nullptr;  ///< The weights; null if they are constants.
  std::optional<onnx::TensorData> constant_locations;
  std::optional<onnx::TensorData> constant_weights;
  std::int64_t queries = 0;  ///< The number of queries; 0 if it is dynamic.
  onnx::Value* y = nullptr;
  bool keeps_heads = false;  ///< Whether y is [B,Q,M,D] instead of [B,Q,M*D].

  [[nodiscard]] std::int64_t point_count() const {
    return std::accumulate(points.begin(), points.end(), std::int64_t{0});
  }
};

/// Returns the samples that are concatenated in `value`, or an empty list if `value` contains anything else.
std::vector<GridSampling> samples_in(onnx::Value* value) {
  const auto source = [](onnx::Value* of) -> const onnx::Node* {
    const auto all = ancestors_of({of});
    return all.empty() ? nullptr : all.back().value->producer;
  };
  const onnx::Node* node = source(value);
  if (node == nullptr) return {};
  const std::vector<onnx::Value*> each = node->is("Concat") ? node->inputs : std::vector{value};
  std::vector<GridSampling> samples;
  for (onnx::Value* input : each) {
    const onnx::Node* last = source(input);
    auto sampling = last == nullptr ? std::nullopt : read_grid_sampling(*last);
    if (!sampling) return {};
    samples.push_back(std::move(*sampling));
  }
  return samples;
}

std::string read_maps(Attention& found) {
  for (const GridSampling& sample : found.samples) {
    if (!sample.obstacle.empty()) return sample.obstacle;
    found.points.push_back(fixed_size(sample.grid, 2));
    found.sizes.insert(found.sizes.end(), {sample.height, sample.width});
    if (std::min({found.points.back(), sample.height, sample.width}) > 0) continue;
    return fmt::format("the sizes of the map '{}' or the points of '{}' are dynamic", sample.image->name,
                       sample.grid->name);
  }
  return "";
}

/// Returns whether `samples`, [B*M,D,Q,T], contains the samples of all maps, map after map.
bool are_side_by_side(const Attention& found, onnx::Value* samples) {
  const std::vector<std::size_t> names{item, channel, query, point};
  const auto lies_in = [](const std::vector<Ancestor>& all, const std::optional<AxisLayout>& layout,
                          const std::vector<std::size_t>& of_first) {
    const auto wanted = AxisLayout::of(*all.front().value, of_first);
    return layout && wanted && followed(all, all.size() - 1, layout) == wanted;
  };
  const auto all = ancestors_of({samples});
  const onnx::Node& last = *all.back().value->producer;
  if (!last.is("Concat")) return lies_in(all, found.samples.front().layout, names);
  const std::size_t rank = rank_of(all.back().value);
  std::vector<std::size_t> of_concat = names;
  of_concat.resize(std::max(rank, names.size()), point);
  const std::int64_t axis = last.int_or("axis", 0);
  const auto points_axis = static_cast<std::int64_t>(names.size()) - 1;
  if (axis != points_axis && axis + static_cast<std::int64_t>(rank) != points_axis) return false;
  for (std::size_t level = 0; level < found.samples.size(); ++level) {
    if (!lies_in(ancestors_of({last.input(level)}), found.samples[level].layout, of_concat)) return false;
  }
  return lies_in(all, AxisLayout::of(*all.back().value, of_concat), names);
}

AxisFactor whole(std::size_t axis, const onnx::Value& value, std::size_t axis_of_value) {
  return {axis, 1, fixed_size(&value, axis_of_value)};
}

/// Returns the numbers of constants in the operator's order [B,Q,M,T...]. The constants are one of shape [B*M,1,Q,T],
/// or one of shape [B*M,Q,P,2] for each map. `read` converts each number. Returns nothing if the shapes do not fit.
template <class Read>
std::optional<onnx::TensorData> by_queries(const Attention& found, const std::vector<const onnx::Value*>& constants,
                                           std::int64_t of_point, const Read& read) {
  const std::int64_t items = fixed_size(found.value, 0);
  const std::int64_t heads = fixed_size(found.value, 2);
  const std::int64_t points = found.point_count();
  std::vector<double> numbers(static_cast<std::size_t>(items * found.queries * heads * points * of_point));
  std::int64_t first = 0;
  for (const onnx::Value* constant : constants) {
    const auto tensor = constant->constant();
    const auto given = tensor ? tensor->numbers() : std::nullopt;
    if (!given || items * heads * found.queries == 0) return std::nullopt;
    const std::int64_t row = std::ssize(*given) / (items * heads * found.queries);
    if (row * items * heads * found.queries != std::ssize(*given) || first + row > points * of_point) {
      return std::nullopt;
    }
    for (std::int64_t i = 0; i < std::ssize(*given); ++i) {
      const std::int64_t of_batch = i / row / found.queries;
      const std::int64_t at = ((of_batch / heads * found.queries + i / row % found.queries) * heads + of_batch % heads);
      numbers[static_cast<std::size_t>(at * points * of_point + first + i % row)] =
          read((*given)[static_cast<std::size_t>(i)]);
    }
    first += row;
  }
  if (first != points * of_point) return std::nullopt;
  std::vector<std::int64_t> dims{items, found.queries, heads, points};
  if (of_point > 1) dims.push_back(of_point);
  return onnx::TensorData::from_numbers(*found.value->type, std::move(dims), numbers);
}

std::string find_inputs(Attention& found, onnx::Value* weights) {
  std::vector<std::vector<Ancestor>> maps;
  std::vector<std::vector<Ancestor>> grids;
  std::vector<AxisLayout::Starts> starts;
  AxisLayout::Starts start{};
  for (std::size_t level = 0; level < found.samples.size(); ++level) {
    const GridSampling& sample = found.samples[level];
    maps.push_back(ancestors_of({sample.image}));
    grids.push_back(ancestors_of({sample.grid, sample.scale, sample.offset}, true));
    starts.push_back(start);
    start[pixel] += found.sizes[2 * level] * found.sizes[2 * level + 1];
    start[point] += found.points[level];
  }
  const std::int64_t points = found.point_count();
  const auto start_of = [&](AttentionAxis axis, std::size_t level) {
    AxisLayout::Starts only{};
    only[axis] = starts[level][axis];
    return only;
  };

  found.value = common_source(
      maps, {.first = {item, pixel, head, channel}, .has_points = false},
      [](const onnx::Value& value) { return fixed_size(&value, 2) > 0 && fixed_size(&value, 3) > 0; },
      [&](const onnx::Value& value, std::size_t level) {
        const std::int64_t height = found.sizes[2 * level];
        const std::int64_t width = found.sizes[2 * level + 1];
        AxisLayout::Axes axes{{whole(item, value, 0), whole(head, value, 2)}, {whole(channel, value, 3)}};
        if (rank_of(found.samples[level].image) == 4) {
          axes.insert(axes.end(), {{{pixel, width, height}}, {{pixel, 1, width}}});
        } else {
          axes.push_back({{pixel, 1, height * width}});
        }
        return AxisLayout(std::move(axes), start_of(pixel, level));
      });
  if (found.value == nullptr) return "the maps are not parts of one tensor of items, pixels, heads, channels";
  const std::int64_t heads = fixed_size(found.value, 2);
  const auto has_points = [&](const onnx::Value& value, std::size_t end) {
    std::int64_t count = 1;
    for (std::size_t axis = 3; axis < end; ++axis) count *= fixed_size(&value, axis);
    return fixed_size(&value, 2) == heads && count == points;
  };

  found.locations = common_source(
      grids, {.first = {item, query, head}, .last = {coordinate}, .scale = 2, .offset = -1},
      [&](const onnx::Value& locations) { return has_points(locations, rank_of(&locations) - 1); },
      [&](const onnx::Value& locations, std::size_t level) {
        return AxisLayout({{whole(item, locations, 0), whole(head, locations, 2)},
                           {whole(query, locations, 1)},
                           {{point, 1, found.points[level]}},
                           {{coordinate, 1, 2}}},
                          start_of(point, level));
      });
  if (found.locations != nullptr) {
    found.queries = fixed_size(found.locations, 1);
  } else if (found.value->type) {
    std::vector<const onnx::Value*> constants;
    for (const GridSampling& sample : found.samples) constants.push_back(sample.grid);
    found.queries = fixed_size(constants.front(), 1);
    found.constant_locations = by_queries(found, constants, 2, [](double place) { return (place + 1) / 2; });
  }
  if (found.locations == nullptr && !found.constant_locations) {
    return fmt::format("the grids are not 2 * x - 1 of one tensor of items, queries, {} heads, {} points, 2", heads,
                       points);
  }

  found.weights = common_source(
      {ancestors_of({weights})}, {.first = {item, query, head}},
      [&](const onnx::Value& of) { return has_points(of, rank_of(&of)); },
      [&](const onnx::Value& of, std::size_t /*level*/) {
        return AxisLayout({{whole(item, of, 0), whole(head, of, 2)}, {}, {whole(query, of, 1)}, {{point, 1, points}}},
                          {});
      });
  const bool is_of_all = rank_of(weights) == 4 && fixed_size(weights, 1) == 1 && fixed_size(weights, 3) == points &&
                         fixed_size(weights, 2) == found.queries;
  if (found.weights == nullptr && is_of_all && found.value->type) {
    found.constant_weights = by_queries(found, {weights}, 1, [](double weight) { return weight; });
  }
  if (found.weights != nullptr || found.constant_weights) return "";
  return fmt::format("'{}' is not computed from one tensor of items, queries, {} heads, {} points", weights->name,
                     heads, points);
}

/// Follows the sum, [B*M,D,Q], to the first value that is computed from it and whose axes are ordered as in the
/// operator's output, and sets the output of the attention to that value. Returns why there is no such value, or an
/// empty string.
std::string find_output(Attention& found, const onnx::Node& sum) {
  const std::vector<AxisFactor> of_item{whole(item, *found.value, 0)};
  const std::vector<AxisFactor> of_head{whole(head, *found.value, 2)};
  const std::vector<AxisFactor> of_channel{whole(channel, *found.value, 3)};
  const std::vector<AxisFactor> of_query{{query, 1, found.queries}};
  const auto both = [](std::vector<AxisFactor> a, const std::vector<AxisFactor>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const AxisLayout apart({of_item, of_query, of_head, of_channel}, {});
  const AxisLayout joined({of_item, of_query, both(of_head, of_channel)}, {});
  AxisLayout::Axes axes{both(of_item, of_head), of_channel, of_query};
  axes.resize(rank_of(sum.output()));
  std::optional<AxisLayout> layout(AxisLayout(std::move(axes), {}));
  for (onnx::Value* value = sum.output(); layout;) {
    found.keeps_heads = layout == apart;
    if (found.keeps_heads || layout == joined) {
      found.y = value;
      return "";
    }
    const onnx::Node* next = value->uses.size() == 1 && !value->is_output() ? value->uses.front().node : nullptr;
    if (next == nullptr || !moves_elements(*next) || next->input(0) != value) break;
    value = next->output();
    layout = layout->after(*next, *value);
  }
  return fmt::format("the sum '{}' is not reshaped to items, queries and channels", sum.output()->name);
}

bool sums_points(const onnx::Node& node) {
  auto axes = node.ints("axes");
  if (!axes) axes = constant_ints(node.input(1));
  constexpr std::int64_t rank = 4;
  return rank_of(node.input(0)) == rank && rank_of(node.output()) >= rank - 1 && axes && axes->size() == 1 &&
         (axes->front() == -1 || axes->front() == rank - 1);
}

Attention read_attention(const onnx::Node& sum) {
  Attention found;
  const onnx::Node* product = sum.input(0) == nullptr ? nullptr : sum.input(0)->producer;
  if (product == nullptr || !product->is("Mul")) return found;
  std::size_t side = 0;
  found.samples = samples_in(product->input(0));
  if (found.samples.empty()) found.samples = samples_in(product->input(side = 1));
  if (found.samples.empty()) return found;
  if (!sums_points(sum)) found.obstacle = "the sum is not over the last of four axes, the points";
  if (found.obstacle.empty()) found.obstacle = read_maps(found);
  if (found.obstacle.empty() && !are_side_by_side(found, product->input(side))) {
    found.obstacle = "the samples of the maps are not concatenated along the points";
  }
  if (found.obstacle.empty()) found.obstacle = find_inputs(found, product->input(1 - side));
  if (found.obstacle.empty()) found.obstacle = find_output(found, sum);
  return found;
}

/// Returns `input`, cast to f32 if it is f64. Exporters compute reference points in f64, which GridSample accepts,
/// while the operator has one type for all inputs.
onnx::Value* narrow_f64(onnx::Graph& graph, onnx::Value* input, onnx::Node* before) {
  if (input->type != onnx::ElementType::f64) return input;
  onnx::Node* cast = graph.add_node("Cast", {input}, {input->name + "/f32"}, before);
  cast->attributes["to"] = onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(onnx::ElementType::f32)));
  return cast->output();
}

std::function<void(onnx::Graph&)> attention_edit(const Attention& found, std::shared_ptr<const Operator> op) {
  // The nodes are found by name, because the edit is also applied to copies of the graph.
  const auto name_of = [](const onnx::Value* input) { return input == nullptr ? std::string() : input->name; };
  return [op = std::move(op), x = found.value->name, locations = name_of(found.locations),
          weights = name_of(found.weights), constant_locations = found.constant_locations,
          constant_weights = found.constant_weights, y = found.y->name, sizes = found.sizes,
          keeps_heads = found.keeps_heads,
          channels = fixed_size(found.value, 2) * fixed_size(found.value, 3)](onnx::Graph& graph) {
    onnx::Value* value = graph.find(y);
    onnx::Node* old = value->producer;
    const auto levels = static_cast<std::int64_t>(sizes.size() / 2);
    onnx::Value* shapes = graph.add_constant(
        y + "/shapes", onnx::TensorData::from_numbers(onnx::ElementType::i64, {levels, 2},
                                                      std::vector<double>(sizes.begin(), sizes.end())));
    onnx::Value* points = constant_locations ? graph.add_constant(y + "/locations", *constant_locations)
                                             : narrow_f64(graph, graph.find(locations), old);
    onnx::Value* parts = constant_weights ? graph.add_constant(y + "/weights", *constant_weights)
                                          : narrow_f64(graph, graph.find(weights), old);
    onnx::Node* last = add_operator_node(graph, *op, {graph.find(x), shapes, points, parts}, {y + "/heads"}, old);
    last->name = old->name;
    if (!keeps_heads) {
      onnx::Value* joined = graph.add_constant(y + "/joined", onnx::TensorData::from_ints({0, 0, channels}));
      last = graph.add_node("Reshape", {last->output(), joined}, {y}, old);
    }
    graph.move_output(*old, value->output_index, *last, 0);
  };
}

void fuse_multi_scale_deformable_attention(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      if (!node->is("ReduceSum") || node->output() == nullptr) continue;
      const Attention found = read_attention(*node);
      if (found.samples.empty()) continue;
      const auto near = [&](const std::string& reason) {
        rewriter.near_miss(std::string(attention_name), {.node = node,
                                                         .matched_nodes = found.samples.size() + 2,
                                                         .pattern_nodes = found.samples.size() + 2,
                                                         .reason = reason});
      };
      if (!found.obstacle.empty()) {
        near(found.obstacle);
        continue;
      }
      std::shared_ptr<Operator> op = find_operator(attention_name)->create();
      if (const Status status = op->set("points", found.points); !status.ok()) {
        near(status.message());
        continue;
      }
      const auto dtype = found.value->type ? to_dtype(*found.value->type) : std::nullopt;
      if (!dtype || !is_floating_point(*dtype)) {
        near(fmt::format("'{}' has a type that {} does not support", found.value->name, attention_name));
        continue;
      }
      constexpr std::size_t inputs = 4;
      if (!is_wanted(rewriter, *op, *found.value, *found.y, inputs)) continue;
      std::string why_not;
      std::vector<onnx::Value*> read{found.value};
      if (found.locations != nullptr) read.push_back(found.locations);
      if (found.weights != nullptr) read.push_back(found.weights);
      // Layers that attend to the same tensor may share the nodes that split it into maps and pad them with zeros.
      const auto may_stay = [](const onnx::Node& other) { return moves_elements(other) || other.is("Pad"); };
      const auto nodes = nodes_between({read.begin(), read.end()}, *found.y, why_not, may_stay);
      if (!nodes) {
        near(why_not);
        continue;
      }
      rewriter.apply({.nodes = *nodes,
                      .inputs = read,
                      .outputs = {found.y},
                      .replacement = to_text(*op),
                      .reason = fmt::format("a sum of weighted samples of {} maps of '{}'", found.samples.size(),
                                            found.value->name),
                      .by_definition = "",
                      .edit = attention_edit(found, op)});
    }
  }
}

}  // namespace

extern const OperatorFusion multi_scale_deformable_attention_fusion{
    .pass = {"fuse_multi_scale_deformable_attention", "runs before other fusions replace some of its nodes",
             fuse_multi_scale_deformable_attention}};

}  // namespace graft::passes
