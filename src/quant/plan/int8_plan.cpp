// Plans backwards from the nodes that read int8, each in its form (int8_forms.hpp), then forwards for the nodes that
// are fused after them.
#include "quant/plan/int8_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "onnx/schema.hpp"
#include "quant/plan/int8_forms.hpp"
#include "quant/plan/typed.hpp"

namespace graft::quant {
namespace {

/// Returns whether TensorRT can fuse a node into the kernel before it because each output element depends on one
/// element of each input. This is a list of operators, because no trait of the schemas marks them: it includes
/// BatchNormalization and excludes some elementwise operators.
bool is_pointwise(const onnx::Node& node) {
  return is_any_of(node, {"Abs",       "Add",         "BatchNormalization",
                          "Celu",      "Clip",        "Div",
                          "Elu",       "Erf",         "Exp",
                          "Gelu",      "HardSigmoid", "HardSwish",
                          "LeakyRelu", "Max",         "Min",
                          "Mish",      "Mul",         "Neg",
                          "PRelu",     "Pow",         "Relu",
                          "Selu",      "Sigmoid",     "Softplus",
                          "Softsign",  "Sqrt",        "Sub",
                          "Sum",       "Tanh"});
}

/// Returns whether a node is an activation function that TensorRT fuses into the convolution or matrix product before
/// it, so that the result is computed in f32 and then stored in int8.
bool is_activation_function(const onnx::Node& node) {
  return is_any_of(node, {"Clip", "LeakyRelu", "PRelu", "Relu"}) ||
         (is_any_of(node, {"Add", "Mul"}) && activations_of(node).size() == 1);
}

/// Groups of tensors that must share a scale, as a union-find structure over tensor names.
class Groups {
 public:
  void join(const std::string& a, const std::string& b) { parents_[root(a)] = root(b); }
  std::string root(const std::string& name) {
    const auto found = parents_.find(name);
    if (found == parents_.end() || found->second == name) return name;
    std::string top = root(found->second);
    parents_[name] = top;
    return top;
  }

 private:
  std::map<std::string, std::string, std::less<>> parents_;
};

class Planner {
 public:
  Planner(const onnx::Graph& graph, const Int8Choice& choice) : graph_(graph), choice_(choice) {}

  Int8Plan run() {
    const std::vector<onnx::Node*> nodes = graph_.nodes();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      order_.emplace(nodes[i], i);
      forms_.emplace(nodes[i], form_of(*nodes[i], choice_.type, forms_));
    }
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) decide(**node);
    for (const onnx::Node* node : nodes) {
      if (!node->is("Constant")) plan_.nodes.push_back(describe_node(*node));
    }
    for (const onnx::Value* value : graph_.values()) {
      if (wanted_.contains(value)) plan_.tensors.emplace(value->name, groups_.root(value->name));
    }
    plan_.type = choice_.type;
    plan_.candidates = candidates(nodes);
    return std::move(plan_);
  }

 private:
  using What = Int8Form::What;

  // ---- Readers and producers of values

  [[nodiscard]] bool takes_int8(const onnx::Use& use) const {
    const auto found = inputs_.find(use.node);
    return found != inputs_.end() &&
           std::find(found->second.begin(), found->second.end(), use.index) != found->second.end();
  }

  /// Returns whether a value has readers, all of them read it in int8, and it is not an output of the graph.
  [[nodiscard]] bool is_only_wanted_in_int8(const onnx::Value& value) const {
    return value.output_count == 0 && !value.uses.empty() &&
           std::all_of(value.uses.begin(), value.uses.end(), [&](const onnx::Use& use) { return takes_int8(use); });
  }

  /// Returns whether all readers of a value read it in int8, directly or after an activation function. If a value is
  /// also read in f32, as the residual stream of a transformer is, TensorRT stores it in f32, and this returns false.
  [[nodiscard]] bool ends_in_int8(const onnx::Value& value) const {
    if (is_only_wanted_in_int8(value)) return true;
    if (value.output_count != 0 || value.uses.size() != 1) return false;
    const onnx::Node& reader = *value.uses.front().node;
    return reader.graph == &graph_ && is_activation_function(reader) && ends_in_int8(*reader.output());
  }

  /// Returns the convolution or matrix product that computes a value, possibly followed by Adds of constants. Returns
  /// null if another node computes the value, if the node is kept in f32, or if the value has more than one reader.
  [[nodiscard]] const onnx::Node* sums_for(const onnx::Value& value) const {
    const onnx::Node* maker = value.producer;
    if (maker == nullptr || value.uses.size() != 1 || value.output_count != 0) return nullptr;
    if (forms_.at(maker).what == What::weighted && !choice_.kept.contains(key_of(*maker))) return maker;
    const std::vector<std::size_t> given = activations_of(*maker);
    if (!maker->is("Add") || given.size() != 1) return nullptr;
    return sums_for(*maker->inputs[given[0]]);
  }

  /// Returns 1 plus the index, in topological order, of the node that computes input 0, or 0 for an input of the
  /// network.
  [[nodiscard]] std::size_t place_of_input(const onnx::Node& node) const {
    const onnx::Node* maker = node.input(0)->producer;
    return maker == nullptr ? 0 : order_.at(maker) + 1;
  }

  // ---- Decisions, from the last node to the first

  void decide(const onnx::Node& node) {
    const Int8Form& form = forms_.at(&node);
    if (form.what == What::none || choice_.kept.contains(key_of(node))) return;
    switch (form.what) {
      case What::weighted: take(node, {0}); return;
      case What::adds: decide_sum(node); return;
      case What::moves:
      case What::averages:
      case What::graft: decide_by_outputs(node, form); return;
      case What::none: return;
    }
  }

  void decide_by_outputs(const onnx::Node& node, const Int8Form& form) {
    const bool all = std::all_of(node.outputs.begin(), node.outputs.end(), [&](const onnx::Value* value) {
      return value == nullptr || value->is_unused() || is_only_wanted_in_int8(*value);
    });
    if (!all || node.used_outputs().empty()) return;
    const std::vector<std::size_t> given = activations_of(node);
    take(node, form.what == What::moves ? given : std::vector<std::size_t>{0});
    if (form.what == What::graft) wanted_.insert(node.output());
    if (!form.shares_scale) return;
    for (const std::size_t input : inputs_.at(&node)) {
      for (const onnx::Value* output : node.outputs) {
        if (output != nullptr) groups_.join(node.inputs[input]->name, output->name);
      }
    }
  }

  void decide_sum(const onnx::Node& node) {
    if (!ends_in_int8(*node.output())) return;
    const std::vector<std::size_t> given = activations_of(node);
    const onnx::Node* first = sums_for(*node.inputs[given[0]]);
    const onnx::Node* second = sums_for(*node.inputs[given[1]]);
    if (first == nullptr && second == nullptr) {
      take(node, given);
    } else if (first != nullptr && second != nullptr) {
      // The longer branch stays in the kernel. The shorter branch, which can be computed earlier, is stored in int8.
      take(node, {place_of_input(*first) <= place_of_input(*second) ? given[0] : given[1]});
    } else {
      take(node, {first != nullptr ? given[1] : given[0]});
    }
  }

  void take(const onnx::Node& node, std::vector<std::size_t> inputs) {
    for (const std::size_t input : inputs) wanted_.insert(node.inputs[input]);
    inputs_.emplace(&node, std::move(inputs));
  }

  // ---- Descriptions

  /// Returns whether TensorRT can fuse an elementwise node into the kernel of an int8 node that computes one of its
  /// inputs.
  [[nodiscard]] bool follows_int8(const onnx::Node& node) const {
    if (!is_pointwise(node)) return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const onnx::Value* value) {
      if (!is_activation(value) || value->producer == nullptr || wanted_.contains(value)) return false;
      const auto maker = kinds_.find(value->producer);
      if (maker == kinds_.end()) return false;
      const What what = forms_.at(value->producer).what;
      const bool sums = maker->second == Int8Kind::computes && (what == What::weighted || what == What::adds);
      return sums || maker->second == Int8Kind::follows;
    });
  }

  Int8Node describe_node(const onnx::Node& node) {
    const Int8Form& form = forms_.at(&node);
    Int8Node told{.node = ref_of(node),
                  .kind = Int8Kind::none,
                  .reason = {},
                  .by_form = false,
                  .inputs = {},
                  .axis = {},
                  .has_int8_form = false};
    const auto taken = inputs_.find(&node);
    const bool has_f32 = std::any_of(node.outputs.begin(), node.outputs.end(), is_f32) && !activations_of(node).empty();
    if (taken != inputs_.end()) {
      told.kind = form.what == What::moves ? Int8Kind::moves : Int8Kind::computes;
      told.inputs = taken->second;
      told.axis = form.axis;
      told.has_int8_form = form.what == What::graft;
      told.reason = remark_on(node);
    } else if (const auto asked = choice_.kept.find(told.node.id); has_f32 && asked != choice_.kept.end()) {
      told.kind = Int8Kind::kept;
      told.reason = asked->second;
    } else if (follows_int8(node)) {
      told.kind = Int8Kind::follows;
      told.reason = reads_in_f32(node);
    } else if (has_f32 || !node.subgraphs().empty()) {
      told.kind = Int8Kind::kept;
      told.by_form = true;
      told.reason = reason_of(node, form);
    }
    kinds_.emplace(&node, told.kind);
    if (told.kind == Int8Kind::computes) kernels_.emplace(&node, &node);
    if (told.kind == Int8Kind::follows) kernels_.emplace(&node, kernel_before(node));
    return told;
  }

  /// Returns the int8 node into whose kernel TensorRT fuses `node`: the last, in topological order, of the int8 nodes
  /// that compute its inputs. Returns null if there are none.
  [[nodiscard]] const onnx::Node* kernel_before(const onnx::Node& node) const {
    const onnx::Node* last = nullptr;
    for (const onnx::Value* value : node.inputs) {
      const auto found = value == nullptr ? kernels_.end() : kernels_.find(value->producer);
      if (found == kernels_.end()) continue;
      if (last == nullptr || order_.at(found->second) > order_.at(last)) last = found->second;
    }
    return last;
  }

  [[nodiscard]] std::string reads_in_f32(const onnx::Node& node) const {
    const onnx::Node* kernel = kernel_before(node);
    for (const onnx::Value* value : node.inputs) {
      if (!is_activation(value)) continue;
      const auto found = kernels_.find(value->producer);
      if (found == kernels_.end() || found->second != kernel) return fmt::format("it reads '{}' in f32", value->name);
    }
    return {};
  }

  /// Returns a remark for the report on how TensorRT-RTX 1.7.1 runs a node in int8, or an empty string.
  [[nodiscard]] static std::string remark_on(const onnx::Node& node) {
    if (!node.is("AveragePool")) return {};
    const auto window = node.ints("kernel_shape").value_or(std::vector<std::int64_t>());
    const auto steps = node.ints("strides").value_or(std::vector<std::int64_t>(window.size(), 1));
    const auto all_are = [](const std::vector<std::int64_t>& numbers, std::int64_t wanted) {
      return std::all_of(numbers.begin(), numbers.end(), [&](std::int64_t number) { return number == wanted; });
    };
    if (all_are(steps, 1) && (all_are(window, 3) || all_are(window, 7))) return {};
    return "TensorRT-RTX computes it in f32: in int8 it supports AveragePool of 3x3 and 7x7 with stride 1";
  }

  /// Returns the layer with a weight before an activation function that would be fused with the layer in int8, if the
  /// layer stays in f32; otherwise null.
  [[nodiscard]] const onnx::Node* kept_layer_before(const onnx::Node& node) const {
    if (!is_activation_function(node)) return nullptr;
    for (const onnx::Value* value : node.inputs) {
      if (value == nullptr || value->producer == nullptr) continue;
      const auto kind = kinds_.find(value->producer);
      if (kind == kinds_.end() || kind->second != Int8Kind::kept) continue;
      if (forms_.at(value->producer).what == What::weighted) return value->producer;
    }
    return nullptr;
  }

  [[nodiscard]] std::string reason_of(const onnx::Node& node, const Int8Form& form) const {
    if (!form.refusal.empty()) return form.refusal;
    if (form.what == What::none) {
      const bool for_int8 = std::any_of(node.outputs.begin(), node.outputs.end(),
                                        [&](const onnx::Value* value) { return wanted_.contains(value); });
      const std::string_view type = to_string(choice_.type);
      const std::string rounded = for_int8 ? fmt::format("; its output is rounded to {}", type) : "";
      if (const onnx::Node* layer = kept_layer_before(node)) {
        return fmt::format(
            "TensorRT computes {0} in the kernel of an {1} node before it, and has no {1} {0} of its own: {2} "
            "is in f32{3}",
            node.op_type, type, onnx::describe(*layer), rounded);
      }
      return fmt::format("TensorRT has no {} {}{}", type, node.op_type, rounded);
    }
    for (const onnx::Value* value : node.outputs) {
      if (value == nullptr) continue;
      if (value->output_count != 0) return fmt::format("'{}' is an output of the network", value->name);
      for (const onnx::Use& use : value->uses) {
        if (!takes_int8(use)) return fmt::format("{} reads its output in f32", onnx::describe(*use.node));
      }
    }
    return fmt::format("no node reads its output in {}", to_string(choice_.type));
  }

  [[nodiscard]] std::vector<std::string> candidates(const std::vector<onnx::Node*>& nodes) const {
    std::set<const onnx::Value*> values;
    for (const onnx::Node* node : nodes) {
      const Int8Form& form = forms_.at(node);
      if (form.what == What::none) continue;
      if (form.what == What::weighted || form.what == What::graft || form.what == What::averages) {
        values.insert(node->input(0));
        if (form.what == What::graft) values.insert(node->output());
        continue;
      }
      for (const std::size_t input : activations_of(*node)) values.insert(node->inputs[input]);
    }
    std::vector<std::string> names;
    for (const onnx::Value* value : graph_.values()) {
      if (values.contains(value)) names.push_back(value->name);
    }
    return names;
  }

  const onnx::Graph& graph_;
  const Int8Choice& choice_;
  std::unordered_map<const onnx::Node*, std::size_t> order_;
  Int8Forms forms_;
  std::unordered_map<const onnx::Node*, std::vector<std::size_t>> inputs_;  ///< Inputs that are read in int8.
  std::unordered_map<const onnx::Node*, Int8Kind> kinds_;
  /// Maps each node that computes in int8, or that is fused after such a node, to the int8 node that starts its kernel.
  std::unordered_map<const onnx::Node*, const onnx::Node*> kernels_;
  std::set<const onnx::Value*> wanted_;
  Groups groups_;
  Int8Plan plan_;
};

}  // namespace

std::string_view to_string(Int8Kind kind, EightBits type) {
  switch (kind) {
    case Int8Kind::computes:
    case Int8Kind::moves: return to_string(type);
    case Int8Kind::follows: return "fused";
    case Int8Kind::kept: return "f32";
    case Int8Kind::none: return "";
  }
  return "";
}

Int8Plan plan_int8(const onnx::Model& prepared, const Int8Choice& choice) {
  return Planner(prepared.graph(), choice).run();
}

}  // namespace graft::quant
