// Finds weights and branches that no run reached: replaces the weights of the reference that differ in the candidate,
// and computes the conditions of branches.
#include "verify/inputs/unreached.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "graft/error.hpp"
#include "onnx/extract.hpp"
#include "onnx/functions.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/shape_inference.hpp"
#include "verify/compare/pieces.hpp"

namespace graft::verify {
namespace {

using Weights = std::map<std::string, onnx::Value*, std::less<>>;

/// Adds the initializers of a graph and of its inner graphs by name; the first one if several have the same name.
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

/// Returns the reference's weight with its differing elements moved to the candidate's and beyond, by up to the same
/// distance again. The distance is a different random number for each element, so that changes of several weights do
/// not cancel each other, as they do in equalized layers. Integers, which may be indices, become the candidate's.
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

/// A weight that both models have with different numbers.
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

class UnreachedSearch {
 public:
  UnreachedSearch(const runtime::Engine& engine, ModelThatRan reference, ModelThatRan candidate, std::size_t runs)
      : engine_(engine.unchecked()), reference_(std::move(reference)), candidate_(std::move(candidate)), runs_(runs) {
    reference_.options.extra_outputs.clear();
    candidate_.options.extra_outputs.clear();
  }

  std::vector<std::string> find() {
    find_weights();
    find_bodies(reference_, "");
    find_bodies(candidate_, " of the candidate");
    return std::move(found_);
  }

 private:
  /// Tests all changed weights at once, then each half of a group that changes the outputs.
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
      found_.push_back(fmt::format(
          "the weights '{}' differ in {} of {} elements, and no output shows it: the inputs may not reach them",
          weight.name, weight.differing, weight.elements));
    }
  }

  /// Whether different weights change the outputs. True also if the reference does not run with these weights, since
  /// nothing is known about them then.
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

  /// Reports the branches and bodies that no run executed. `owner` is a part of the sentence.
  void find_bodies(const ModelThatRan& ran, const char* owner) {
    onnx::Model inferred = ran.model.clone();
    try {
      inline_functions(inferred);
    } catch (const Error& refused) {
      if (refused.kind() == Error::Kind::internal) throw;
      return;
    }
    std::vector<const onnx::Node*> nodes;
    std::vector<const onnx::Value*> conditions;
    for (const onnx::Node* node : std::as_const(inferred).graph().nodes()) {
      if (!node->is("If") && !node->is("Loop")) continue;
      nodes.push_back(node);
      for (std::size_t i = 0; i < (node->is("If") ? 1U : 2U); ++i) {
        const onnx::Value* value = node->input(i);
        const bool is_known = value == nullptr || value->constant() ||
                              std::find(conditions.begin(), conditions.end(), value) != conditions.end();
        if (!is_known) conditions.push_back(value);
      }
    }
    if (conditions.empty()) return;
    std::vector<runtime::TensorMap> values;
    try {
      infer_shapes(inferred);
      values = run_conditions(ran, inferred, conditions);
    } catch (const Error& refused) {
      if (refused.kind() == Error::Kind::internal) throw;
      return;
    }
    for (const onnx::Node* node : nodes) report_bodies(*node, owner, values);
  }

  [[nodiscard]] std::vector<runtime::TensorMap> run_conditions(const ModelThatRan& ran, const onnx::Model& model,
                                                               const std::vector<const onnx::Value*>& conditions) {
    std::vector<const onnx::Value*> computed = conditions;
    std::erase_if(computed, [](const onnx::Value* value) { return value->producer == nullptr; });
    std::vector<const onnx::Value*> read;
    std::unique_ptr<runtime::CompiledModel> compiled;
    if (!computed.empty()) {
      read = onnx::region_before(computed, [](const onnx::Value&) { return false; }).inputs;
      std::erase_if(read, [](const onnx::Value* value) { return value->initializer.has_value(); });
      compiled = engine_.compile(extract(model, read, computed), ran.options);
    }
    std::vector<runtime::TensorMap> values;
    for (std::size_t run = 0; run < runs_; ++run) {
      const runtime::TensorMap inputs = ran.inputs_of(run);
      runtime::TensorMap given;
      for (const onnx::Value* value : read) given.emplace(value->name, inputs.at(value->name));
      values.push_back(compiled ? compiled->run(given) : runtime::TensorMap{});
      for (const onnx::Value* value : conditions) {
        const auto input = inputs.find(value->name);
        if (value->producer == nullptr && input != inputs.end()) values.back().emplace(value->name, input->second);
      }
    }
    return values;
  }

  /// Returns the value in each run, or `absent` if the node has no such input.
  [[nodiscard]] static std::vector<double> numbers_of(const onnx::Value* value, double absent,
                                                      const std::vector<runtime::TensorMap>& values) {
    std::vector<double> numbers(values.size(), absent);
    if (value == nullptr) return numbers;
    const auto constant = value->constant();
    for (std::size_t run = 0; run < values.size(); ++run) {
      const auto computed = values[run].find(value->name);
      const auto number = constant                        ? constant->scalar()
                          : computed != values[run].end() ? computed->second.scalar()
                                                          : std::nullopt;
      numbers[run] = number.value_or(absent);
    }
    return numbers;
  }

  void report_bodies(const onnx::Node& node, const char* owner, const std::vector<runtime::TensorMap>& values) {
    const auto none = [](const std::vector<double>& numbers, bool executes) {
      return std::none_of(numbers.begin(), numbers.end(), [&](double number) { return (number > 0) == executes; });
    };
    const auto report = [&](const char* body) {
      const std::string name = fmt::format("{} of {}", body, onnx::describe(node));
      if (!bodies_.insert(name).second) return;
      found_.push_back(fmt::format("no run executed {}{}, so nothing in it was compared", name, owner));
    };
    if (node.is("If")) {
      if (node.input(0) == nullptr || node.input(0)->constant()) return;
      const std::vector<double> conditions = numbers_of(node.input(0), 1, values);
      if (none(conditions, true)) report("then_branch");
      if (none(conditions, false)) report("else_branch");
      return;
    }
    std::vector<double> iterations = numbers_of(node.input(0), 1, values);
    const std::vector<double> conditions = numbers_of(node.input(1), 1, values);
    for (std::size_t run = 0; run < iterations.size(); ++run)
      iterations[run] = std::min(iterations[run], conditions[run]);
    if (none(iterations, true)) report("the body");
  }

  const runtime::Engine& engine_;
  ModelThatRan reference_;
  ModelThatRan candidate_;
  std::size_t runs_;
  std::unique_ptr<runtime::CompiledModel> compiled_;  ///< The compiled reference; null until it is needed.
  std::vector<std::string> found_;
  std::set<std::string> bodies_;  ///< The branches and bodies in `found_`, which the other model may have too.
};

}  // namespace

std::vector<std::string> find_unreached(const runtime::Engine& engine, ModelThatRan reference, ModelThatRan candidate,
                                        std::size_t runs) {
  return UnreachedSearch(engine, std::move(reference), std::move(candidate), runs).find();
}

}  // namespace graft::verify
