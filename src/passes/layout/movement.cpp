// Finds regions that only move elements, and learns their axis maps by running them on numbered elements.
//
// Frameworks write a reflection or a repetition in dozens of ways, with slices, flips, gathers, tiles, expansions and
// reshapes in any order. The ways have only the result in common, so the result is compared.
#include "passes/layout/movement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "graft/error.hpp"
#include "onnx/extract.hpp"
#include "onnx/schema.hpp"
#include "passes/fuse.hpp"
#include "passes/pipeline.hpp"
#include "passes/region_text.hpp"
#include "runtime/budget.hpp"
#include "runtime/engine.hpp"
#include "verify/inputs/inputs.hpp"
#include "verify/prove/prove.hpp"

namespace graft::passes {
namespace {

constexpr std::size_t most_nodes = 256;          // the most nodes of one movement; larger regions are not padding
constexpr std::int64_t most_elements = 1 << 24;  // the most elements of x or y in a run

/// Returns whether a node only copies elements to other positions. Pad counts as one, because running it on numbered
/// elements shows which elements are constants.
bool is_mover(const onnx::Node& node) { return has_trait(node, onnx::trait::moves_data) || node.is("Pad"); }

/// Returns whether a value is a constant or the result of a ConstantOfShape.
bool is_filling(const onnx::Value& value) {
  return value.constant().has_value() || (value.producer != nullptr && value.producer->is("ConstantOfShape"));
}

/// Returns the inputs from which a node that moves elements copies: all inputs of a Concat, otherwise input 0.
/// Constants and results of ConstantOfShape are left out.
std::vector<onnx::Value*> data_inputs(const onnx::Node& node) {
  std::vector<onnx::Value*> result;
  const std::size_t count = node.is("Concat") ? node.inputs.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    onnx::Value* value = node.input(i);
    if (value != nullptr && !is_filling(*value)) result.push_back(value);
  }
  return result;
}

/// Returns whether y may be x with at least one axis made longer. Both must have the same known rank. No axis of y may
/// be known to be shorter than in x, and `may_become(size in x, size in y)` must return true for each axis with known
/// sizes.
bool may_grow(const onnx::Value& x, const onnx::Value& y, bool (*may_become)(std::int64_t, std::int64_t)) {
  if (!x.shape || !y.shape || x.shape->size() != y.shape->size()) return false;
  bool grows = false;
  for (std::size_t axis = 0; axis < x.shape->size(); ++axis) {
    const Dim& before = (*x.shape)[axis];
    const Dim& after = (*y.shape)[axis];
    if (before.is_constant() && after.is_constant()) {
      if (after.value() < before.value() || !may_become(before.value(), after.value())) return false;
      grows = grows || after.value() > before.value();
    } else if (!(before == after)) {
      grows = true;
    }
  }
  return grows;
}

/// Returns the values from which y may be computed by moving elements: each of them, together with constants, is enough
/// to compute y. The value farthest from y comes first. `order` holds the topological position of each node.
std::vector<onnx::Value*> sources_of(onnx::Value& y, const std::unordered_map<const onnx::Node*, std::size_t>& order) {
  std::vector<onnx::Value*> result;
  // The values that are left to expand, ordered by the position of their producers. The last one is expanded first, so
  // that all paths to y pass through a value that is the only one left. The outputs of a Split have one position and
  // are expanded together.
  std::set<std::pair<std::size_t, onnx::Value*>> open;
  const auto place = [&](const onnx::Value& value) {
    const auto found = value.graph == y.graph ? order.find(value.producer) : order.end();
    return found == order.end() ? 0 : found->second + 1;  // an input, or the result of a node that a fusion has added
  };
  open.emplace(place(y), &y);
  for (std::size_t opened = 0; opened < most_nodes; ++opened) {
    const auto [last, value] = *open.rbegin();
    if (value != &y && open.size() == 1) result.push_back(value);
    if (value->producer == nullptr || value->graph != y.graph || !is_mover(*value->producer)) break;
    const onnx::Node& node = *value->producer;
    const auto first_of_last = open.lower_bound({last, nullptr});
    const bool of_one_node =
        std::all_of(first_of_last, open.end(), [&](const auto& entry) { return entry.second->producer == &node; });
    if (!of_one_node) break;  // values of two producers
    open.erase(first_of_last, open.end());
    for (onnx::Value* input : data_inputs(node)) open.emplace(place(*input), input);
    if (open.empty()) break;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

/// Changes values and constants of this type, and Casts to it, to f32, so that element indices are exact in the runs.
/// Moving elements gives the same result in every type.
void use_f32(onnx::Model& region, onnx::ElementType type) {
  if (type == onnx::ElementType::f32) return;
  const auto converted = [](const onnx::TensorData& tensor) {
    return onnx::TensorData::from_numbers(onnx::ElementType::f32, tensor.dims, tensor.numbers().value());
  };
  for (onnx::Value* value : region.graph().values()) {
    if (value->type == type) value->type = onnx::ElementType::f32;
    if (value->initializer && value->initializer->type == type) {
      region.graph().set_initializer(*value, converted(*value->initializer));
    }
  }
  for (onnx::Node* node : region.graph().nodes()) {
    for (auto& [name, attribute] : node->attributes) {
      const auto* tensor = attribute.get<onnx::TensorData>();
      if (tensor != nullptr && tensor->type == type)
        attribute = onnx::NodeAttribute(onnx::AttributeData(converted(*tensor)));
    }
  }
}

/// Returns whether the positions to which elements move do not depend on values of x: every node that reads data of x
/// is a mover, and reads it only as the data to copy, never as indices.
bool moves_blindly(const onnx::Value& x, const std::vector<onnx::Node*>& nodes) {
  std::unordered_set<const onnx::Value*> data{&x};
  for (const onnx::Node* node : nodes) {
    if (has_trait(*node, onnx::trait::reads_shape)) continue;
    const auto is_data = [&](const onnx::Value* value) { return value != nullptr && data.contains(value); };
    if (std::none_of(node->inputs.begin(), node->inputs.end(), is_data)) continue;
    if (!is_mover(*node)) return false;
    if (!node->is("Concat") && std::any_of(node->inputs.begin() + 1, node->inputs.end(), is_data)) return false;
    data.insert(node->outputs.begin(), node->outputs.end());
  }
  return true;
}

std::int64_t count_of(const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) {
    if (__builtin_mul_overflow(count, dim, &count)) return std::numeric_limits<std::int64_t>::max();
  }
  return count;
}

/// Thrown if running the nodes of a movement would take too much memory or time.
class TooLarge : public Error {
 public:
  using Error::Error;
};

std::int64_t check_count(const std::vector<std::int64_t>& dims) {
  const std::int64_t count = count_of(dims);
  if (count <= most_elements) return count;
  throw TooLarge(fmt::format("a tensor of [{}] has more than {} elements, the limit for analyzing data movement",
                             fmt::join(dims, ", "), most_elements));
}

std::vector<float> floats_of(const onnx::TensorData& tensor) {
  std::vector<float> result(tensor.bytes.size() / sizeof(float));
  std::copy_n(tensor.bytes.data(), result.size() * sizeof(float), reinterpret_cast<char*>(result.data()));
  return result;
}

/// The source of each element of y: sources[i] is the row-major index in x of element i of y, or -1 if element i is a
/// constant.
struct MovedElements {
  std::vector<std::int64_t> x_dims;
  std::vector<std::int64_t> y_dims;
  std::vector<std::int64_t> sources;
  std::vector<float> numbers;  ///< The elements of y in the first run, which holds the constants.
};

/// Returns the nodes of the movement, from x to y, as a separate model that computes in f32.
onnx::Model region_of(const onnx::Model& model, const Movement& movement) {
  onnx::Model region = extract(model, {movement.x}, {movement.y});
  use_f32(region, *movement.x->type);
  return region;
}

class Runner {
 public:
  Runner(const runtime::Engine& engine, const onnx::Model& region)
      : x_(region.graph().inputs().front()->name),
        y_(region.graph().outputs().front()->name),
        region_(region),
        compiled_(engine.compile(region)) {}

  /// Runs the nodes of the movement and returns where each element of y comes from. `batch` is the size for a dynamic
  /// first axis, `size` the size for other dynamic axes, and `dims` the sizes of named symbols. Throws Error if the
  /// nodes do not accept these sizes, and TooLarge if they need too much memory.
  MovedElements run(std::int64_t batch, std::int64_t size, std::map<std::string, std::int64_t, std::less<>> dims) {
    verify::InputOptions options;
    options.dims = std::move(dims);
    options.first_size = batch;
    options.size = size;
    const auto sizes = input_shapes(region_, options);
    if (const std::string why = refusal_of(*compiled_, sizes); !why.empty()) throw TooLarge(why);
    MovedElements found;
    found.x_dims = sizes.at(x_);
    const std::int64_t count = check_count(found.x_dims);
    // Two runs hold the index in base `digit`, so that both digits are exact in f32. A third run with negative values
    // distinguishes an index from a constant.
    constexpr std::int64_t digit = 4096;
    const auto low = numbered(found.x_dims, count, [](std::int64_t i) { return 1 + i % digit; });
    const auto high = numbered(found.x_dims, count, [](std::int64_t i) { return 1 + i / digit; });
    const auto negative = numbered(found.x_dims, count, [](std::int64_t i) { return -(1 + i % digit); });
    const onnx::TensorData first = compiled_->run({{x_, low}}).at(y_);
    found.y_dims = first.dims;
    check_count(found.y_dims);
    found.numbers = floats_of(first);
    const auto upper = floats_of(compiled_->run({{x_, high}}).at(y_));
    const auto mirrored = floats_of(compiled_->run({{x_, negative}}).at(y_));
    found.sources.reserve(found.numbers.size());
    for (std::size_t i = 0; i < found.numbers.size(); ++i) {
      const bool is_constant = !(found.numbers[i] > 0 && mirrored[i] == -found.numbers[i]);
      const auto part = [](float number) { return static_cast<std::int64_t>(number) - 1; };
      found.sources.push_back(is_constant ? -1 : part(upper[i]) * digit + part(found.numbers[i]));
    }
    return found;
  }

  [[nodiscard]] bool has_symbols() const { return !verify::symbols_of_inputs(region_).empty(); }

 private:
  template <class Number>
  static onnx::TensorData numbered(const std::vector<std::int64_t>& dims, std::int64_t count, Number number) {
    std::string bytes(static_cast<std::size_t>(count) * sizeof(float), '\0');
    auto* out = bytes.data();
    for (std::int64_t i = 0; i < count; ++i, out += sizeof(float)) {
      const auto value = static_cast<float>(number(i));
      std::copy_n(reinterpret_cast<const char*>(&value), sizeof(float), out);
    }
    onnx::TensorData tensor;
    tensor.type = onnx::ElementType::f32;
    tensor.dims = dims;
    tensor.bytes = onnx::Bytes(std::move(bytes));
    return tensor;
  }

  std::string x_;
  std::string y_;
  const onnx::Model& region_;
  std::unique_ptr<runtime::CompiledModel> compiled_;
};

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

/// Returns, for each axis of y, the index on the same axis of x from which the elements come. Returns nothing if an
/// element's index on one axis of x depends on its indices on other axes of y, and sets `reason` if this can be
/// explained to the user.
std::optional<AxisMaps> separate(const MovedElements& elements, std::string& reason) {
  const std::size_t rank = elements.x_dims.size();
  if (elements.y_dims.size() != rank) return std::nullopt;
  const auto inner = std::find_if(elements.sources.begin(), elements.sources.end(), [](auto s) { return s >= 0; });
  if (inner == elements.sources.end()) return std::nullopt;
  const auto base = inner - elements.sources.begin();
  const auto x_strides = strides_of(elements.x_dims);
  const auto y_strides = strides_of(elements.y_dims);
  AxisMaps maps;
  maps.x_dims = elements.x_dims;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t here = base / y_strides[axis] % elements.y_dims[axis];
    std::vector<std::int64_t> map;
    for (std::int64_t i = 0; i < elements.y_dims[axis]; ++i) {
      const std::int64_t source = elements.sources[static_cast<std::size_t>(base + (i - here) * y_strides[axis])];
      map.push_back(source < 0 ? AxisMaps::outside : source / x_strides[axis] % elements.x_dims[axis]);
    }
    maps.axes.push_back(std::move(map));
  }
  std::optional<float> constant;
  std::vector<std::int64_t> at(rank, 0);
  for (std::size_t i = 0; i < elements.sources.size(); ++i) {
    std::int64_t expected = 0;
    for (std::size_t axis = 0; axis < rank && expected >= 0; ++axis) {
      const std::int64_t source = maps.axes[axis][static_cast<std::size_t>(at[axis])];
      expected = source < 0 ? AxisMaps::outside : expected + source * x_strides[axis];
    }
    if (expected != elements.sources[i]) {
      reason =
          fmt::format("the source of element [{}] of the result does not follow from its position on each axis alone",
                      fmt::join(at, ", "));
      return std::nullopt;
    }
    if (expected < 0) {
      if (constant && *constant != elements.numbers[i]) {
        reason = fmt::format("the padding contains both {} and {}", *constant, elements.numbers[i]);
        return std::nullopt;
      }
      constant = elements.numbers[i];
    }
    for (std::size_t axis = rank; axis-- > 0;) {
      if (++at[axis] < elements.y_dims[axis]) break;
      at[axis] = 0;
    }
  }
  maps.constant = constant.value_or(0);
  return maps;
}

/// The nodes of a movement as a separate model, in which large fixed sizes are replaced by the symbols `opened`. Each
/// symbol may have any value from `least_opened` on. Large images can then be run at small sizes, and movements that
/// differ only in these sizes are run once.
struct Sized {
  onnx::Model region;
  std::vector<std::string> opened = {};
  std::int64_t least_opened = 0;
};

Sized sized(onnx::Model region) {
  constexpr std::int64_t few_elements = 1 << 14;
  constexpr std::int64_t most_named = 64;
  verify::InputOptions ones;
  for (const std::string& symbol : verify::symbols_of_inputs(region)) ones.dims[symbol] = 1;
  const auto dims = input_shapes(region, ones).at(region.graph().inputs().front()->name);
  auto opened = count_of(dims) > few_elements ? verify::with_open_sizes(region, region) : std::nullopt;
  if (!opened || opened->largest_named > most_named) return {.region = std::move(region)};
  // Slices and borders are then shorter than the sizes, as they are in the network.
  return {.region = std::move(opened->before),
          .opened = std::move(opened->symbols),
          .least_opened = 2 * opened->largest_named + 1};
}

/// Runs the nodes of a movement at up to three sets of sizes, or once if all sizes are fixed, and returns the axis maps
/// that result. `runs` of the result is empty if the nodes cannot be run or do not move whole axes.
LearnedMovement learn(const runtime::Engine& engine, const Sized& movement) {
  LearnedMovement learned;
  try {
    for (const onnx::Graph& graph = movement.region.graph();
         const onnx::Value* end : {graph.inputs().front(), graph.outputs().front()}) {
      std::vector<std::int64_t> fixed;
      for (const Dim& dim : end->shape.value_or(Shape{})) fixed.push_back(dim.is_constant() ? dim.value() : 1);
      check_count(fixed);
    }
    Runner runner(engine, movement.region);
    // Odd and even lengths, so that no coincidence at one length is learned as a rule, and the shortest length, at
    // which slices return fewer elements than requested.
    constexpr std::array<std::pair<std::int64_t, std::int64_t>, 3> sizes{{{2, 11}, {3, 16}, {1, 1}}};
    for (const auto& [batch, size] : sizes) {
      MovedElements found;
      try {
        std::map<std::string, std::int64_t, std::less<>> dims;
        for (const std::string& symbol : movement.opened) dims.emplace(symbol, movement.least_opened + size);
        found = runner.run(batch, size, std::move(dims));
      } catch (const Error&) {
        if (learned.runs.size() < 2) throw;
        break;  // the last size may be too short, as one element is for a reflection
      }
      learned.elements += found.sources.size();
      auto maps = separate(found, learned.reason);
      if (!maps) return {.runs = {}, .reason = std::move(learned.reason), .elements = learned.elements};
      learned.runs.push_back(std::move(*maps));
      if (!runner.has_symbols()) break;
    }
  } catch (const TooLarge& error) {
    return {.runs = {}, .reason = error.what(), .elements = learned.elements};
  } catch (const Error&) {
    return {};  // the engine cannot run it alone: no rewrite could be proven either
  }
  return learned;
}

/// Returns whether an axis had size 1 in x and was repeated in every run. Such a movement is a broadcast and is not
/// matched as padding or upsampling.
bool broadcasts(const std::vector<AxisMaps>& runs) {
  for (std::size_t axis = 0; axis < runs[0].axes.size(); ++axis) {
    const bool always_one = std::all_of(runs.begin(), runs.end(), [&](const AxisMaps& run) {
      const std::vector<std::int64_t>& map = run.axes[axis];
      return run.x_dims[axis] == 1 && map.size() > 1 && std::count(map.begin(), map.end(), AxisMaps::outside) == 0;
    });
    if (always_one) return true;
  }
  return false;
}

bool is_real(const onnx::Value& value) {
  return value.type && to_dtype(*value.type) && is_floating_point(*value.type) && value.shape;
}

/// The maximum total number of nodes in movements that were run but led to no rewrite. In a chain of n nodes that move
/// elements, every part of the chain is a movement that is run: 240 nodes of a hostile file took 50 s with a limit of
/// 20'000 nodes.
constexpr std::size_t most_in_vain = 3'000;
/// The maximum total number of elements of y in all runs of movements. One element takes about 60 ns: a chain of 26
/// nodes that each double a tensor took 30 s without a limit.
constexpr std::size_t most_elements_learned = std::size_t{1} << 25U;

class Finder {
 public:
  Finder(Rewriter& rewriter, std::string pattern, bool (*may_become)(std::int64_t, std::int64_t),
         const ReadMovement& read)
      : rewriter_(rewriter),
        pattern_(std::move(pattern)),
        may_become_(may_become),
        read_(read),
        nodes_(rewriter.model().graph().nodes()) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) order_.emplace(nodes_[i], i);
  }

  void run() {
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      onnx::Node& node = *nodes_[i];
      if (!is_mover(node) || taken_.contains(&node) || node.output() == nullptr || !is_real(*node.output())) continue;
      try_from(*node.output());
    }
  }

 private:
  void try_from(onnx::Value& y) {
    std::string reason;
    std::size_t size = 0;
    for (onnx::Value* x : sources_of(y, order_)) {
      if (!is_real(*x) || x->type != y.type || !may_grow(*x, y, may_become_)) continue;
      std::string why_not;
      if (in_vain_ > most_in_vain) {
        reason = fmt::format("regions of {} nodes were analyzed without a result, which is the limit", most_in_vain);
        break;
      }
      if (elements_learned_ > most_elements_learned) {
        reason = fmt::format("regions with results of {} elements were run, which is the limit", most_elements_learned);
        break;
      }
      auto nodes = nodes_between({x}, y, why_not);
      if (nodes && !moves_blindly(*x, *nodes)) continue;
      auto movement = nodes ? std::optional(Movement{x, &y, std::move(*nodes)}) : std::nullopt;
      // A single node is already one layer of TensorRT. Only a Gather is worth replacing, because it reads an index for
      // each element.
      const bool is_asked_for = y.producer->is("Pad") && rewriter_.options().plugins == Plugins::always;
      if (movement && movement->nodes.size() == 1 && !y.producer->is("Gather") && !is_asked_for) continue;
      if (movement && fuse(*movement, why_not)) return;
      if (reason.empty() && !why_not.empty()) {
        reason = why_not;
        size = movement ? movement->nodes.size() : 2;
      }
    }
    if (reason.empty()) return;
    rewriter_.near_miss(pattern_, {.node = y.producer, .matched_nodes = size, .pattern_nodes = size, .reason = reason});
  }

  bool fuse(const Movement& movement, std::string& reason) {
    const LearnedMovement& learned = learned_of(movement);
    const std::vector<AxisMaps>& maps = learned.runs;
    reason = learned.reason;
    in_vain_ += movement.nodes.size();
    if (maps.empty() || broadcasts(maps)) return false;
    const MovementFusion found = read_(movement, maps);
    reason = found.obstacle;
    if (!found.edit) return false;
    const std::vector<onnx::Node*> nodes = movement.nodes;
    const bool done = rewriter_.apply({.nodes = nodes,
                                       .inputs = {movement.x},
                                       .outputs = {movement.y},
                                       .replacement = found.replacement,
                                       .reason = found.why,
                                       .by_definition = "",
                                       .edit = found.edit});
    if (!done) return false;
    taken_.insert(nodes.begin(), nodes.end());
    in_vain_ -= nodes.size();
    return true;
  }

  /// Returns the axis maps of a movement. They are computed by learn(), or read from the cache of the Rewriter if a
  /// movement with equal nodes was run before. `runs` of the result is empty if the nodes cannot be extracted from the
  /// model.
  const LearnedMovement& learned_of(const Movement& movement) {
    static const LearnedMovement none;
    try {
      const Sized alone = sized(region_of(rewriter_.model(), movement));
      const auto [known, is_new] = rewriter_.learned_movements().try_emplace(region_text(alone.region));
      if (is_new) known->second = learn(rewriter_.engine(), alone);
      if (is_new) elements_learned_ += known->second.elements;
      return known->second;
    } catch (const Error&) {
      return none;  // the region cannot be extracted, so it has no known movement
    }
  }

  Rewriter& rewriter_;
  std::string pattern_;
  bool (*may_become_)(std::int64_t, std::int64_t);
  const ReadMovement& read_;
  std::vector<onnx::Node*> nodes_;
  std::unordered_map<const onnx::Node*, std::size_t> order_;
  std::unordered_set<const onnx::Node*> taken_;
  std::size_t in_vain_ = 0;           // nodes in the regions that were run and not rewritten
  std::size_t elements_learned_ = 0;  // the elements in the results of all regions that were run
};

}  // namespace

void fuse_movements(Rewriter& rewriter, const std::string& pattern, bool (*may_become)(std::int64_t, std::int64_t),
                    const ReadMovement& read) {
  Finder(rewriter, pattern, may_become, read).run();
}

}  // namespace graft::passes
