// Loop and Scan with a number of iterations that is known before the network runs, and the two forms of them that
// TensorRT refuses although it has the layer.
//
//   y = Loop<body = {h -> Mul(h, half)}>(3, true, x)   becomes   y = Mul(Mul(Mul(x, half), half), half)
//   y = Scan<body = {e -> Neg(e)}>(x)                  becomes   y = Concat(Unsqueeze(Neg(Gather(x, 0))), ...)
//   y = Loop(n, , x)                                   becomes   y = Loop(n, true, x)
//   y = Scan<body = {e -> Neg(e)}>(x)                  becomes   , y = Scan<body = {s, e -> s, Neg(e)}>(0, x)
//
// In copies of a body, tensors may grow from iteration to iteration, sequences have known tensors, and TensorRT builds
// plugins. ONNX defines a Loop and a Scan by such copies.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "graft/setting.hpp"
#include "onnx/branches.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/loop_condition.hpp"
#include "passes/cleanup/inline_branch.hpp"
#include "passes/comparison.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/pipeline.hpp"

namespace graft::passes {
namespace {

using Values = std::vector<onnx::Value*>;

/// Returns the number of nodes of a body, including the nodes in nested bodies.
std::int64_t count_nodes(const onnx::Graph& body) {
  std::int64_t count = 0;
  body.for_each_node([&](const onnx::Node& node) { count += node.is("Constant") ? 0 : 1; });
  return count;
}

onnx::TensorData bool_tensor(std::vector<std::int64_t> dims, bool value) {
  return onnx::TensorData::from_numbers(onnx::ElementType::boolean, std::move(dims), {value ? 1.0 : 0.0});
}

/// Returns whether all inputs from index `first` on are present.
bool has_inputs_from(const onnx::Node& node, std::ptrdiff_t first) {
  return std::find(node.inputs.begin() + first, node.inputs.end(), nullptr) == node.inputs.end();
}

/// Returns the shape that a body declares for a scalar: {1} if it declares one axis of size 1, which some exporters
/// write and ONNX Runtime accepts, otherwise {}.
std::vector<std::int64_t> declared_sizes(const onnx::Value& scalar) {
  return scalar.shape && scalar.shape->size() == 1 ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>();
}

/// Returns whether `iterations` copies of a body of `nodes` nodes stay within ConvertOptions::unroll. Otherwise stores
/// the reason.
bool can_copy(Site& site, std::int64_t iterations, std::int64_t nodes) {
  const std::int64_t most = site.shapes().options().unroll;
  if (most == 0) {
    site.no(fmt::format("unrolling is disabled ({})", setting_name(Setting::unroll)));
    return false;
  }
  std::int64_t copied = 0;
  if (__builtin_mul_overflow(iterations, std::max<std::int64_t>(nodes, 1), &copied)) copied = INT64_MAX;
  return is_within_limit(site, copied, most, fmt::format("its {} iterations of {} nodes are", iterations, nodes));
}

Replacement copies_of_body(std::int64_t iterations, std::int64_t nodes) {
  Replacement result;
  result.summary =
      fmt::format("{} {} of its body, {} nodes", iterations, iterations == 1 ? "copy" : "copies", iterations * nodes);
  result.reason =
      "the number of its iterations is known; outside of a body TensorRT builds tensors that grow, sequences of known "
      "tensors and plugins";
  result.by_definition = "by definition: each iteration computes the nodes of the body once";
  return result;
}

/// Returns an empty tensor in the shape of `result` with an additional `axis` of size 0, for a Loop or Scan without
/// iterations. Returns nothing if the other sizes or the type are not known.
std::optional<onnx::TensorData> empty_result(const onnx::Value& result, std::int64_t axis) {
  if (!result.type || result.type == onnx::ElementType::string || !onnx::has_known_sizes(result)) return std::nullopt;
  std::vector<std::int64_t> dims = *onnx::known_sizes(*result.shape);
  const auto rank = static_cast<std::int64_t>(dims.size()) + 1;
  const std::int64_t place = axis < 0 ? axis + rank : axis;
  if (place < 0 || place >= rank) return std::nullopt;
  dims.insert(dims.begin() + place, 0);
  return onnx::TensorData::from_numbers(*result.type, std::move(dims), {});
}

/// An output of a Loop or Scan that stacks the results of all iterations along an axis.
struct Scanned {
  std::size_t index = 0;  ///< The index of the output of the body.
  std::int64_t axis = 0;
  bool backwards = false;  ///< Whether the result of the last iteration comes first.
};

/// Returns whether the outputs that stack the results of all iterations can be computed. They cannot if there are no
/// iterations and the sizes of the results are not known; the reason is then stored with site.no().
bool can_join(Site& site, const onnx::Graph& body, const std::vector<Scanned>& scanned, std::int64_t iterations) {
  for (const Scanned& each : scanned) {
    if (iterations != 0 || empty_result(*body.outputs()[each.index], each.axis)) continue;
    site.no(fmt::format("it has no iterations, and the sizes of '{}' are not known", body.outputs()[each.index]->name));
    return false;
  }
  return true;
}

/// Adds the nodes that stack the results of all iterations (Unsqueeze and Concat), and returns the stacked tensor.
/// `name` is the prefix of the new names.
onnx::Value* join(onnx::Graph& graph, const std::string& name, Values results, const Scanned& scanned) {
  if (scanned.backwards) std::reverse(results.begin(), results.end());
  onnx::Value* axes = graph.add_constant(name + "/axis", onnx::TensorData::from_ints({scanned.axis}));
  for (onnx::Value*& result : results) {
    result = graph.add_node("Unsqueeze", {result, axes}, {name + "/iteration"})->output();
  }
  if (results.size() == 1) return results.front();
  onnx::Node* concat = graph.add_node("Concat", results, {name + "/joined"});
  concat->attributes["axis"] = onnx::AttributeData(scanned.axis);
  return concat->output();
}

/// The number of iterations of a Loop or Scan, and which inputs and outputs of its body are carried from one to the
/// next.
struct Iterations {
  std::int64_t count = 0;
  std::size_t carried = 0;         ///< The number of values that one iteration passes to the next.
  std::size_t first_received = 0;  ///< The index of the first carried value among the inputs of node and body.
  std::size_t first_returned = 0;  ///< The index of the first carried value among the outputs of the body.
  std::vector<Scanned> scanned = {};
};

/// Replaces a Loop or Scan by copies of its body. inputs_of(i, carried) returns the inputs of the body in iteration i,
/// given the values that the previous iteration returned.
template <class InputsOf>
void unroll(onnx::Node& node, const onnx::Graph& body, const Iterations& iterations, NodeNames& names,
            const InputsOf& inputs_of) {
  onnx::Graph& graph = *node.graph;
  const std::string name = onnx::ref_of(node).id;
  const auto first = node.inputs.begin() + static_cast<std::ptrdiff_t>(iterations.first_received);
  Values results(first, first + static_cast<std::ptrdiff_t>(iterations.carried));
  std::vector<Values> rows(iterations.scanned.size());
  std::vector<std::optional<onnx::TensorData>> empty;
  for (const Scanned& each : iterations.scanned) empty.push_back(empty_result(*body.outputs()[each.index], each.axis));

  BodyCopies copies(node, body, BodyCopies::Shapes::inferred, names);
  for (std::int64_t i = 0; i < iterations.count; ++i) {
    const Values outputs = copies.add(inputs_of(i, results));
    const auto returned = outputs.begin() + static_cast<std::ptrdiff_t>(iterations.first_returned);
    results.assign(returned, returned + static_cast<std::ptrdiff_t>(iterations.carried));
    for (std::size_t k = 0; k < rows.size(); ++k) rows[k].push_back(outputs[iterations.scanned[k].index]);
  }
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const onnx::Value* output = node.output(iterations.carried + k);
    if (output == nullptr || output->is_unused()) {
      results.push_back(nullptr);
    } else if (iterations.count == 0) {
      results.push_back(graph.add_constant(name + "/empty", *empty[k]));
    } else {
      results.push_back(join(graph, name, std::move(rows[k]), iterations.scanned[k]));
    }
  }
  copies.finish(results);
}

/// Evaluates scalar integers and booleans in the body of a Loop as far as they are computed from constants. This
/// determines the number of iterations of a loop such as `while i < 3`.
class Counters {
 public:
  explicit Counters(const onnx::Graph& body) : body_(body) {}

  /// Starts iteration `number`. `carried` holds the scalars that the previous iteration returned, or the initial ones;
  /// nothing for a value that is not known.
  void begin(std::int64_t number, const std::vector<std::optional<std::int64_t>>& carried) {
    known_.clear();
    known_[body_.inputs()[0]] = number;
    known_[body_.inputs()[1]] = 1;
    for (std::size_t i = 0; i < carried.size(); ++i) known_[body_.inputs()[i + 2]] = carried[i];
  }

  /// Returns a scalar of the current iteration, or nothing if it does not follow from constants.
  std::optional<std::int64_t> of(const onnx::Value* value) {
    constexpr std::size_t most = 256;  // so that a long chain does not exhaust the stack
    if (value == nullptr || known_.size() > body_.inputs().size() + most) return std::nullopt;
    if (const auto found = known_.find(value); found != known_.end()) return found->second;
    known_[value] = std::nullopt;
    const auto computed =
        value->graph == &body_ && value->producer != nullptr ? result_of(*value) : constant_of(*value);
    known_[value] = computed;
    return computed;
  }

  static std::optional<std::int64_t> constant_of(const onnx::Value& value) {
    const auto ints = onnx::constant_ints(&value);
    return ints && ints->size() == 1 ? std::optional(ints->front()) : std::nullopt;
  }

 private:
  std::optional<std::int64_t> result_of(const onnx::Value& value) {
    const onnx::Node& node = *value.producer;
    if (node.is("Constant")) return constant_of(value);
    if (!node.domain.empty() || !value.type || node.inputs.empty()) return std::nullopt;
    const bool is_boolean = value.type == onnx::ElementType::boolean;
    if (!is_boolean && value.type != onnx::ElementType::i64 && value.type != onnx::ElementType::i32)
      return std::nullopt;
    const auto a = of(node.input(0));
    if (!a) return std::nullopt;
    std::int64_t result = 0;
    if (node.is("Identity") || node.is("Not") || (node.is("Cast") && node.input(0)->type)) {
      result = node.is("Not") || is_boolean ? static_cast<std::int64_t>((*a != 0) != node.is("Not")) : *a;
    } else {
      const auto b = node.inputs.size() == 2 ? of(node.input(1)) : std::nullopt;
      if (!b || !combine(node, *a, *b, result)) return std::nullopt;
    }
    constexpr std::int64_t most_i32 = (std::int64_t{1} << 31) - 1;
    if (value.type == onnx::ElementType::i32 && (result > most_i32 || result < -most_i32 - 1)) return std::nullopt;
    return result;
  }

  static bool combine(const onnx::Node& node, std::int64_t a, std::int64_t b, std::int64_t& result) {
    if (node.is("Add")) return !__builtin_add_overflow(a, b, &result);
    if (node.is("Sub")) return !__builtin_sub_overflow(a, b, &result);
    if (node.is("Mul")) return !__builtin_mul_overflow(a, b, &result);
    std::optional<bool> holds = compare(node, a, b);
    if (node.is("And")) holds = a != 0 && b != 0;
    if (node.is("Or")) holds = a != 0 || b != 0;
    if (!holds) return false;
    result = *holds ? 1 : 0;
    return true;
  }

  const onnx::Graph& body_;
  std::unordered_map<const onnx::Value*, std::optional<std::int64_t>> known_;
};

/// Returns the number of iterations of a Loop whose continue condition is computed from counters, at most `most`.
/// Returns nothing, and stores the reason with site.no(), if the condition depends on data or the limit of copies is
/// exceeded.
std::optional<std::int64_t> count_until_false(Site& site, const onnx::Graph& body, std::optional<std::int64_t> most) {
  const onnx::Node& node = site.node();
  std::vector<std::optional<std::int64_t>> carried;
  for (std::size_t i = 2; i < node.inputs.size(); ++i) carried.push_back(Counters::constant_of(*node.input(i)));
  Counters counters(body);
  for (std::int64_t i = 0; i <= std::max<std::int64_t>(1, site.shapes().options().unroll); ++i) {
    if (most && i == *most) return i;
    counters.begin(i, carried);
    const auto goes_on = counters.of(body.outputs()[0]);
    if (!goes_on) {
      return site.no(fmt::format("whether it continues, '{}', depends on data, or on more than integers without axes",
                                 body.outputs()[0]->name));
    }
    if (*goes_on == 0) return i + 1;
    for (std::size_t k = 0; k < carried.size(); ++k) carried[k] = counters.of(body.outputs()[k + 1]);
  }
  return site.no(fmt::format("it has more than {} iterations; set {} to a larger number",
                             site.shapes().options().unroll, setting_name(Setting::unroll)));
}

/// Returns the number of iterations of a Loop. Returns nothing, and stores the reason with site.no(), if it is not
/// known.
std::optional<std::int64_t> count_iterations(Site& site, const onnx::Graph& body) {
  const auto begins = site.numbers(1);
  if (site.has_input(1) && (!begins || begins->size() != 1)) {
    return site.no(
        fmt::format("whether it begins depends on '{}', which is not a constant", site.node().input(1)->name));
  }
  if (begins && begins->front() == 0) return 0;
  const auto given = site.ints(0);
  if (site.has_input(0) && (!given || given->size() != 1)) {
    return site.no(fmt::format("its number of iterations, '{}', is not a constant", site.node().input(0)->name));
  }
  const auto count = given ? std::optional(std::max<std::int64_t>(0, given->front())) : std::nullopt;
  if (count == 0) return 0;
  if (!onnx::keeps_condition(body)) return count_until_false(site, body, count);
  if (!count) return site.no("it has no number of iterations, and nothing in its body ends it");
  return count;
}

std::optional<Replacement> unroll_loop(Site& site, const onnx::Graph& body) {
  const onnx::Node& node = site.node();
  const auto count = count_iterations(site, body);
  if (!count) return std::nullopt;
  Iterations iterations{.count = *count, .carried = node.inputs.size() - 2, .first_received = 2, .first_returned = 1};
  for (std::size_t i = iterations.carried + 1; i < body.outputs().size(); ++i)
    iterations.scanned.push_back({.index = i});
  const std::int64_t nodes = count_nodes(body) + static_cast<std::int64_t>(iterations.scanned.size());
  if (!can_copy(site, *count, nodes) || !can_join(site, body, iterations.scanned, *count)) return std::nullopt;
  Replacement result = copies_of_body(*count, nodes);
  result.edit = [iterations, &shapes = site.shapes()](onnx::Node& loop) {
    const onnx::Graph& inside = *onnx::subgraph(loop, "body");
    onnx::Graph& graph = *loop.graph;
    const std::string name = onnx::ref_of(loop).id;
    onnx::Value* go = graph.add_constant(name + "/condition", bool_tensor(declared_sizes(*inside.inputs()[1]), true));
    unroll(loop, inside, iterations, shapes.names_in(graph), [&](std::int64_t i, const Values& carried) {
      Values inputs{graph.add_constant(name + "/number", ints_tensor(declared_sizes(*inside.inputs()[0]), {i})), go};
      inputs.insert(inputs.end(), carried.begin(), carried.end());
      return inputs;
    });
  };
  return result;
}

/// Adds the missing initial condition (true) to a Loop, and makes the iteration number of its body a scalar, as
/// TensorRT requires.
void complete_loop(onnx::Node& loop) {
  onnx::Graph& body = *onnx::subgraph(loop, "body");
  if (loop.input(1) == nullptr) {
    loop.graph->set_input(loop, 1,
                          loop.graph->add_constant(onnx::ref_of(loop).id + "/condition", bool_tensor({}, true)));
  }
  onnx::Value& number = *body.inputs()[0];
  if (declared_sizes(number).empty()) return;
  number.shape = Shape{};
  onnx::Value* axes = body.add_constant(number.name + "/axis", onnx::TensorData::from_ints({0}));
  onnx::Node* row = body.add_node("Unsqueeze", {&number, axes}, {number.name + "/row"},
                                  body.nodes().empty() ? nullptr : body.nodes().front());
  row->output()->type = number.type;
  row->output()->shape = Shape{Dim(1)};
  body.replace_all_uses(number, *row->output(), row);
  for (std::size_t i = 0; i < body.outputs().size(); ++i) {
    if (body.outputs()[i] == &number) body.replace_output(i, *row->output());
  }
}

/// The plan for unrolling a Scan: the axis and the direction of each scanned input, the number of iterations, and the
/// outputs that stack the results of all iterations.
struct ScanPlan {
  std::vector<std::int64_t> input_axes;
  std::vector<std::int64_t> input_directions;
  Iterations iterations;
};

std::optional<ScanPlan> plan_of_scan(Site& site, const onnx::Graph& body) {
  const onnx::Node& node = site.node();
  const auto scanned = static_cast<std::size_t>(node.int_or("num_scan_inputs", 0));
  ScanPlan plan;
  plan.iterations.carried = node.inputs.size() - scanned;
  const std::size_t joined = node.outputs.size() - plan.iterations.carried;
  plan.input_axes = site.ints_or("scan_input_axes", scanned, 0);
  plan.input_directions = site.ints_or("scan_input_directions", scanned, 0);
  const auto axes = site.ints_or("scan_output_axes", joined, 0);
  const auto directions = site.ints_or("scan_output_directions", joined, 0);
  for (std::size_t i = 0; i < joined; ++i) {
    plan.iterations.scanned.push_back({plan.iterations.carried + i, axes[i], directions[i] != 0});
  }
  std::optional<std::int64_t> length;
  for (std::size_t i = 0; i < scanned && !length; ++i) {
    length = site.size(plan.iterations.carried + i, plan.input_axes[i]);
  }
  if (!length) return site.no_size("the length of the tensors that it scans is dynamic");
  plan.iterations.count = *length;
  const std::int64_t nodes = count_nodes(body) + static_cast<std::int64_t>(scanned + joined);
  if (!can_copy(site, *length, nodes) || !can_join(site, body, plan.iterations.scanned, *length)) {
    return std::nullopt;
  }
  return plan;
}

std::optional<Replacement> unroll_scan(Site& site, const onnx::Graph& body) {
  const auto plan = plan_of_scan(site, body);
  if (!plan) return std::nullopt;
  const std::size_t more = plan->input_axes.size() + plan->iterations.scanned.size();
  Replacement result = copies_of_body(plan->iterations.count, count_nodes(body) + static_cast<std::int64_t>(more));
  result.edit = [plan = *plan, &shapes = site.shapes()](onnx::Node& scan) {
    onnx::Graph& graph = *scan.graph;
    const std::string name = onnx::ref_of(scan).id;
    const std::size_t carried = plan.iterations.carried;
    Values positions;
    for (std::int64_t i = 0; i < plan.iterations.count; ++i) {
      positions.push_back(graph.add_constant(name + "/number", ints_tensor({}, {i})));
    }
    const Values tensors(scan.inputs.begin() + static_cast<std::ptrdiff_t>(carried), scan.inputs.end());
    unroll(scan, *onnx::subgraph(scan, "body"), plan.iterations, shapes.names_in(graph),
           [&](std::int64_t i, const Values& values) {
             Values inputs = values;
             for (std::size_t k = 0; k < tensors.size(); ++k) {
               const std::int64_t position = plan.input_directions[k] == 0 ? i : plan.iterations.count - 1 - i;
               onnx::Node* gather = graph.add_node(
                   "Gather", {tensors[k], positions[static_cast<std::size_t>(position)]}, {name + "/element"});
               gather->attributes["axis"] = onnx::AttributeData(plan.input_axes[k]);
               inputs.push_back(gather->output());
             }
             return inputs;
           });
  };
  return result;
}

/// Adds a scalar state variable to a Scan, which its body returns unchanged.
void add_state(onnx::Node& scan) {
  onnx::Graph& graph = *scan.graph;
  const std::string name = onnx::ref_of(scan).id;
  onnx::Graph& body = *onnx::subgraph(scan, "body");
  // Inputs are only added at the end, so the others are removed and added again.
  const Values received = body.inputs();
  for (onnx::Value* input : received) body.set_is_input(*input, false);
  onnx::Value* state = body.add_input(body.unique_name(name + "/state"));
  state->type = onnx::ElementType::f32;
  state->shape = Shape{};
  for (onnx::Value* input : received) body.set_is_input(*input, true);
  const Values returned = body.outputs();
  onnx::Value* same = body.add_node("Identity", {state}, {name + "/state_after"})->output();
  same->type = state->type;
  same->shape = state->shape;
  body.add_output(*same);
  for (std::size_t i = 0; i < returned.size(); ++i) body.replace_output(i + 1, *returned[i]);
  body.replace_output(0, *same);

  Values inputs{graph.add_constant(name + "/start", f32_tensor({}, {0}))};
  inputs.insert(inputs.end(), scan.inputs.begin(), scan.inputs.end());
  Values outputs{graph.make_value(name + "/state_after")};
  const std::size_t count = scan.outputs.size();
  for (std::size_t i = 0; i < count; ++i) {
    outputs.push_back(scan.outputs[i]);
    if (scan.outputs[i] != nullptr) graph.detach_output(scan, i);
  }
  onnx::Node* made = graph.add_node_with_outputs("Scan", inputs, outputs, &scan);
  made->name = scan.name;
  made->doc = scan.doc;
  made->metadata = scan.metadata;
  made->attributes = std::move(scan.attributes);
  scan.attributes.clear();
  graph.remove_node(scan);
}

}  // namespace

std::optional<Replacement> lower_loop(Site& site) {
  const onnx::Node& node = site.node();
  const onnx::Graph* body = onnx::subgraph(node, "body");
  if (body == nullptr || node.inputs.size() < 2 || !has_inputs_from(node, 2) ||
      body->inputs().size() != node.inputs.size() || body->outputs().size() < node.outputs.size() + 1 ||
      body->outputs().size() + 1 < node.inputs.size()) {
    return std::nullopt;
  }
  if (auto unrolled = unroll_loop(site, *body)) return unrolled;
  const bool has_axis = !declared_sizes(*body->inputs()[0]).empty();
  if (site.has_input(1) && !has_axis) return std::nullopt;
  const std::string number = has_axis ? "an iteration number without axes" : "";
  const std::string condition = site.has_input(1) ? "" : "the condition true";
  const std::string both = number.empty() || condition.empty() ? "" : " and ";
  Replacement result;
  result.keeps_node = true;
  result.summary = fmt::format("the same Loop with {}{}{}", condition, both, number);
  result.reason = "TensorRT requires a condition, and its iteration number has no axes";
  result.by_definition = site.has_input(1) ? "by definition: the iteration number is a scalar"
                                           : "by definition: an absent condition is true";
  result.edit = complete_loop;
  return result;
}

std::optional<Replacement> lower_scan(Site& site) {
  constexpr std::int64_t since_batches_are_gone = 9;
  const onnx::Node& node = site.node();
  const onnx::Graph* body = onnx::subgraph(node, "body");
  const std::int64_t scanned = node.int_or("num_scan_inputs", 0);
  const auto given = static_cast<std::int64_t>(node.inputs.size());
  if (body == nullptr || site.opset() < since_batches_are_gone || scanned < 1 || scanned > given ||
      !has_inputs_from(node, 0) || body->inputs().size() != node.inputs.size() ||
      body->outputs().size() != node.outputs.size() ||
      static_cast<std::int64_t>(node.outputs.size()) < given - scanned) {
    return std::nullopt;
  }
  if (auto unrolled = unroll_scan(site, *body)) return unrolled;
  if (scanned < given) return std::nullopt;
  Replacement result;
  result.keeps_node = true;
  result.summary = "the same Scan with a state that its body returns unchanged";
  result.reason = "TensorRT requires a state";
  result.by_definition = "by definition: nothing reads the state";
  result.edit = add_state;
  return result;
}

}  // namespace graft::passes
