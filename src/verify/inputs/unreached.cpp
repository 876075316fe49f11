// Finds weights, attributes and branches that no run exercised: replaces the weights of the reference that differ in
// the candidate, compares nodes, and counts the executions of branches.
#include "verify/inputs/unreached.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "graft/error.hpp"
#include "onnx/branches.hpp"
#include "onnx/extract.hpp"
#include "onnx/functions.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/shape_inference.hpp"
#include "verify/compare/pieces.hpp"
#include "verify/inputs/changed_nodes.hpp"

namespace graft::verify {
namespace {

using Weights = std::map<std::string, onnx::Value*, std::less<>>;

/// Adds the initializers of a graph and of its subgraphs to `weights`, by name. Of several with the same name, only the
/// first one is added.
void collect_weights(const onnx::Graph& graph, Weights& weights) {
  for (onnx::Value* value : graph.initializers()) {
    if (!value->is_input) weights.emplace(value->name, value);
  }
  for (const onnx::Node* node : graph.nodes()) {
    for (const onnx::Graph* inner : node->subgraphs()) collect_weights(*inner, weights);
  }
}

std::int64_t count_differing(const onnx::TensorData& left, const onnx::TensorData& right) {
  if (left.bytes.view() == right.bytes.view()) return 0;
  std::int64_t differing = 0;
  for_each_piece(left.element_count(), [&](std::int64_t begin, std::int64_t count) {
    const auto ours = piece_of(left, begin, count).numbers();
    const auto others = piece_of(right, begin, count).numbers();
    for (std::size_t i = 0; i < ours->size(); ++i) {
      const double a = (*ours)[i];
      const double b = (*others)[i];
      if (a != b && !(std::isnan(a) && std::isnan(b))) ++differing;
    }
  });
  return differing;
}

/// Returns the reference's weight with each differing element replaced by candidate + r * (candidate - reference),
/// where r is a random number in [0, 1) for each element. Random numbers are used so that changes of several weights do
/// not cancel each other, as they do in equalized layers. Integer weights, which may be indices, get the candidate's
/// values.
onnx::TensorData move_differing(const onnx::TensorData& reference, const onnx::TensorData& candidate) {
  if (!is_floating_point(reference.type)) return candidate;
  std::vector<double> numbers = *reference.numbers();
  const std::vector<double> others = *candidate.numbers();
  std::mt19937_64 generator(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double share = std::ldexp(static_cast<double>(generator() >> 11), -53);
    if (numbers[i] != others[i]) numbers[i] = others[i] + share * (others[i] - numbers[i]);
  }
  return onnx::TensorData::from_numbers(reference.type, reference.dims, numbers);
}

/// A weight whose elements differ between both models, and its changed version (move_differing).
struct ChangedWeight {
  std::string name;
  onnx::TensorData moved;
  std::int64_t differing = 0;
  std::int64_t elements = 0;
};

std::vector<ChangedWeight> find_changed_weights(const onnx::Model& reference, const onnx::Model& candidate) {
  Weights ours;
  Weights others;
  collect_weights(reference.graph(), ours);
  collect_weights(candidate.graph(), others);
  std::vector<ChangedWeight> changed;
  for (const auto& [name, value] : ours) {
    const auto other = others.find(name);
    if (other == others.end()) continue;
    const onnx::TensorData& left = *value->initializer;
    const onnx::TensorData& right = *other->second->initializer;
    if (left.type != right.type || left.dims != right.dims || !is_real(left.type)) continue;
    const std::int64_t differing = count_differing(left, right);
    if (differing == 0) continue;
    changed.push_back(
        {.name = name, .moved = move_differing(left, right), .differing = differing, .elements = left.element_count()});
  }
  return changed;
}

bool are_same(const runtime::TensorMap& left, const runtime::TensorMap& right) {
  return left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin(), [](auto& a, auto& b) {
           return a.first == b.first && a.second.same_as(b.second);
         });
}

/// A branch of an If or a body of a Loop, and a value of the main graph that contains the number of its executions in a
/// run.
struct CountedBody {
  /// The description of the branch or body, such as "then_branch of node 'choose' (If)". It need not be unique.
  std::string name;
  const onnx::Graph* graph = nullptr;
  std::vector<const onnx::Graph*> outer;  ///< The counted branches and bodies that contain it, outermost first.
  onnx::Value* executions = nullptr;
};

/// Adds nodes to a graph that count how often each branch of an If and each body of a Loop is executed, if that depends
/// on a computed value. A body returns the counts of the bodies inside it as additional outputs; a Loop or Scan returns
/// their sums over its iterations.
class BodyCounters {
 public:
  explicit BodyCounters(onnx::Graph& graph) : graph_(graph) {}

  std::vector<CountedBody> add() {
    for (onnx::Node* node : graph_.nodes()) {
      if (node->is("If")) add_to_if(*node);
      if (node->is("Loop")) add_to_loop(*node);
      if (node->is("Scan")) add_inner(*node, onnx::subgraph(*node, "body"), false);
    }
    return std::move(found_);
  }

 private:
  void add_to_if(onnx::Node& node) {
    onnx::Value* condition = node.input(0);
    if (condition == nullptr) return;
    const auto constant = condition->constant();
    const std::string_view taken = constant ? onnx::taken_branch(constant->numbers()) : "";
    for (const std::string_view branch : {"then_branch", "else_branch"}) {
      if (constant && branch != taken) continue;
      onnx::Graph* body = onnx::subgraph(node, branch);
      if (!constant) {
        onnx::Value* runs = branch == "then_branch" ? condition : add_node("Not", {condition});
        found_.push_back({.name = fmt::format("{} of {}", branch, describe(node)),
                          .graph = body,
                          .outer = {},
                          .executions = sum(as_integer(runs))});
      }
      add_inner(node, body, !constant);
    }
  }

  void add_to_loop(onnx::Node& node) {
    std::vector<onnx::Value*> factors;  // The factors are 0 if the loop has no iteration.
    const auto is_computed = [](const onnx::Value* value) { return value != nullptr && !value->constant(); };
    if (is_computed(node.input(0))) {
      onnx::Value* zero = graph_.add_constant("zero", integer(0));
      factors.push_back(as_integer(add_node("Greater", {node.input(0), zero})));
    }
    if (is_computed(node.input(1))) factors.push_back(as_integer(node.input(1)));
    onnx::Graph* body = onnx::subgraph(node, "body");
    if (!factors.empty()) {
      onnx::Value* runs = factors.size() == 1 ? factors.front() : add_node("Mul", factors);
      found_.push_back(
          {.name = fmt::format("the body of {}", describe(node)), .graph = body, .outer = {}, .executions = sum(runs)});
    }
    add_inner(node, body, !factors.empty());
  }

  /// Adds counters for the bodies inside `body`, a subgraph of `node`. If `is_counted` is true, `body` has a counter
  /// too and is recorded as an outer body of the bodies inside it.
  void add_inner(onnx::Node& node, onnx::Graph* body, bool is_counted) {
    if (body == nullptr || body->outputs().size() != node.outputs.size() + (node.is("Loop") ? 1 : 0)) return;
    for (CountedBody& inner : BodyCounters(*body).add()) {
      if (is_counted) inner.outer.insert(inner.outer.begin(), body);
      inner.executions = return_from(node, *body, *inner.executions);
      found_.push_back(std::move(inner));
    }
  }

  /// Adds `count`, a value of `body`, as an output of `body` and of `node`, and returns that output of `node`. The
  /// other subgraphs of the node return 0.
  onnx::Value* return_from(onnx::Node& node, onnx::Graph& body, onnx::Value& count) {
    body.add_output(count);
    for (onnx::Graph* other : node.subgraphs()) {
      if (other == &body) continue;
      onnx::Node* none = other->add_node("Identity", {other->add_constant("zero", integer(0))}, {"executions"});
      none->output()->type = onnx::ElementType::i64;
      other->add_output(*none->output());
    }
    onnx::Value* counts = graph_.add_output_to(node, "executions");
    counts->type = onnx::ElementType::i64;
    for (const char* list : {"scan_output_axes", "scan_output_directions"}) {
      auto values = node.ints(list);
      if (!values) continue;
      values->push_back(0);
      node.attributes.insert_or_assign(list, onnx::NodeAttribute(onnx::AttributeData(*std::move(values))));
    }
    return sum(counts);
  }

  static onnx::TensorData integer(double value) { return onnx::TensorData::scalar_of(onnx::ElementType::i64, value); }

  onnx::Value* add_node(std::string_view op_type, std::vector<onnx::Value*> inputs) {
    return graph_.add_node(std::string(op_type), std::move(inputs), {"executions"})->output();
  }

  onnx::Value* as_integer(onnx::Value* condition) {
    onnx::Value* result = add_node("Cast", {condition});
    const auto type = static_cast<std::int64_t>(onnx::ElementType::i64);
    result->producer->attributes.emplace("to", onnx::NodeAttribute(onnx::AttributeData(type)));
    return result;
  }

  /// Adds a ReduceSum of all elements, and returns its result.
  onnx::Value* sum(onnx::Value* counts) {
    onnx::Value* result = add_node("ReduceSum", {counts});
    result->producer->attributes.emplace("keepdims", onnx::NodeAttribute(onnx::AttributeData(std::int64_t{0})));
    result->type = onnx::ElementType::i64;
    return result;
  }

  onnx::Graph& graph_;
  std::vector<CountedBody> found_;
};

class UnreachedSearch {
 public:
  UnreachedSearch(const runtime::Engine& engine, ModelThatRan reference, ModelThatRan candidate, std::size_t runs)
      : engine_(engine.unchecked()), reference_(std::move(reference)), candidate_(std::move(candidate)), runs_(runs) {
    reference_.options.extra_outputs.clear();
    candidate_.options.extra_outputs.clear();
  }

  std::vector<std::string> find() {
    find_weights();
    for (const std::string& text : find_changed_nodes(reference_.model, candidate_.model)) {
      found_.push_back(fmt::format("{}, and no output shows this difference: the inputs may not reach the node", text));
    }
    find_bodies(reference_, "");
    find_bodies(candidate_, " of the candidate");
    return std::move(found_);
  }

 private:
  /// Reports changed weights that have no effect on the outputs. Tests all changed weights at once, and then each half
  /// of a group that changes the outputs, up to a maximum number of tests.
  void find_weights() {
    const std::vector<ChangedWeight> changed = find_changed_weights(reference_.model, candidate_.model);
    if (changed.empty()) return;
    constexpr std::size_t most_models = 8;
    using Group = std::vector<const ChangedWeight*>;
    std::deque<Group> groups(1);
    for (const ChangedWeight& weight : changed) groups.front().push_back(&weight);
    std::set<std::string> unreached;
    for (std::size_t models = 0; !groups.empty() && models < most_models; ++models) {
      const Group group = std::move(groups.front());
      groups.pop_front();
      if (!changes_outputs(group)) {
        for (const ChangedWeight* weight : group) unreached.insert(weight->name);
      } else if (group.size() > 1) {
        const auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
        groups.emplace_back(group.begin(), middle);
        groups.emplace_back(middle, group.end());
      }
    }
    for (const ChangedWeight& weight : changed) {
      if (!unreached.contains(weight.name)) continue;
      found_.push_back(
          fmt::format("the weights '{}' differ in {} of {} elements, and no output shows this difference: the inputs "
                      "may not reach these weights",
                      weight.name, weight.differing, weight.elements));
    }
  }

  /// Returns whether the reference returns other outputs if these weights have changed values. Also returns true if the
  /// reference does not run with them, because the test then shows nothing.
  [[nodiscard]] bool changes_outputs(const std::vector<const ChangedWeight*>& group) {
    onnx::Model model = reference_.model.clone();
    Weights weights;
    collect_weights(model.graph(), weights);
    for (const ChangedWeight* weight : group) {
      onnx::Value& value = *weights.at(weight->name);
      value.graph->set_initializer(value, weight->moved);
    }
    try {
      if (!compiled_) compiled_ = engine_.compile(reference_.model, reference_.options);
      const std::unique_ptr<runtime::CompiledModel> changed = engine_.compile(model, reference_.options);
      for (std::size_t run = 0; run < runs_; ++run) {
        const runtime::TensorMap inputs = reference_.inputs_of(run);
        if (!are_same(compiled_->run(inputs), changed->run(inputs))) return true;
      }
    } catch (const Error& refused) {
      if (refused.kind() == Error::Kind::internal) throw;
      return true;
    }
    return false;
  }

  /// Reports the branches and bodies that no run executed. `owner` follows their names in the sentence: "" for the
  /// reference, " of the candidate" for the candidate. Nested branches and bodies are counted in a separate model,
  /// because an engine may refuse it.
  void find_bodies(const ModelThatRan& ran, const char* owner) {
    onnx::Model counting = ran.model.clone();
    std::vector<CountedBody> bodies;
    try {
      inline_functions(counting);
      bodies = BodyCounters(counting.graph()).add();
      if (bodies.empty()) return;
      infer_shapes(counting);
    } catch (const Error& refused) {
      if (refused.kind() == Error::Kind::internal) throw;
      return;
    }
    std::set<const onnx::Graph*> skipped;
    for (const bool nested : {false, true}) {
      std::vector<const CountedBody*> group;
      for (const CountedBody& body : bodies) {
        if (body.outer.empty() != nested) group.push_back(&body);
      }
      if (!group.empty()) report_bodies(ran, counting, group, owner, skipped);
    }
  }

  /// Adds the branches and bodies in `group` that no run executed to `skipped`. Reports those of them that do not lie
  /// inside another one in `skipped`. `counting` is the model with the counters.
  void report_bodies(const ModelThatRan& ran, const onnx::Model& counting, const std::vector<const CountedBody*>& group,
                     const char* owner, std::set<const onnx::Graph*>& skipped) {
    std::vector<double> executions;
    try {
      executions = count_executions(ran, counting, group);
    } catch (const Error& refused) {
      if (refused.kind() == Error::Kind::internal) throw;
      return;
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      const CountedBody& body = *group[i];
      if (executions[i] != 0) continue;
      const bool is_inside = std::any_of(body.outer.begin(), body.outer.end(),
                                         [&](const onnx::Graph* outer) { return skipped.contains(outer); });
      skipped.insert(body.graph);
      if (is_inside || !bodies_.insert(body.name).second) continue;
      found_.push_back(fmt::format("no run executed {}{}, so nothing in it was compared", body.name, owner));
    }
  }

  /// Returns, for each branch or body in `group`, the number of its executions in all runs together.
  [[nodiscard]] std::vector<double> count_executions(const ModelThatRan& ran, const onnx::Model& counting,
                                                     const std::vector<const CountedBody*>& group) {
    std::vector<const onnx::Value*> counts;
    for (const CountedBody* body : group) counts.push_back(body->executions);
    std::vector<const onnx::Value*> read = onnx::region_before(counts, [](const onnx::Value&) { return false; }).inputs;
    const runtime::TensorMap first = ran.inputs_of(0);
    std::erase_if(read, [&](const onnx::Value* value) { return value->initializer && !first.contains(value->name); });
    const std::unique_ptr<runtime::CompiledModel> compiled =
        engine_.compile(extract(counting, read, counts), ran.options);
    std::vector<double> executions(group.size(), 0);
    for (std::size_t run = 0; run < runs_; ++run) {
      const runtime::TensorMap inputs = ran.inputs_of(run);
      runtime::TensorMap given;
      for (const onnx::Value* value : read) given.emplace(value->name, inputs.at(value->name));
      const runtime::TensorMap computed = compiled->run(given);
      for (std::size_t i = 0; i < group.size(); ++i) {
        executions[i] += computed.at(counts[i]->name).scalar().value_or(1);
      }
    }
    return executions;
  }

  const runtime::Engine& engine_;
  ModelThatRan reference_;
  ModelThatRan candidate_;
  std::size_t runs_;
  std::unique_ptr<runtime::CompiledModel> compiled_;  ///< The compiled reference; null until it is needed.
  std::vector<std::string> found_;
  std::set<std::string> bodies_;  ///< The names in `found_`. A second body with the same name is not reported again.
};

}  // namespace

std::vector<std::string> find_unreached(const runtime::Engine& engine, ModelThatRan reference, ModelThatRan candidate,
                                        std::size_t runs) {
  return UnreachedSearch(engine, std::move(reference), std::move(candidate), runs).find();
}

}  // namespace graft::verify
