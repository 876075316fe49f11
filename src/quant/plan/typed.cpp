// Plans the type of each node, then inserts the casts that the plan needs.
#include "quant/plan/typed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/body_types.hpp"
#include "onnx/functions.hpp"
#include "onnx/low_precision.hpp"
#include "onnx/operator_calls.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema.hpp"
#include "onnx/schema_types.hpp"
#include "onnx/shape_inference.hpp"

namespace graft::quant {
namespace {

bool has_f32_tensor(const onnx::Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_f32) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_f32);
}

/// Returns f16, bf16 or f64 if a node has a tensor in one of them.
std::optional<onnx::ElementType> other_float_of(const onnx::Node& node) {
  for (const std::vector<onnx::Value*>* values : {&node.outputs, &node.inputs}) {
    for (const onnx::Value* value : *values) {
      if (value == nullptr) continue;
      if (onnx::is_low_precision(value->type) || value->type == onnx::ElementType::f64) return value->type;
    }
  }
  return std::nullopt;
}

/// Returns whether inputs of this letter may be of f32 or f16. Inputs of Resize after its first are regions and sizes,
/// which are f32 in files of every age.
bool can_narrow(const onnx::SchemaTypes& types, char letter) {
  const onnx::TypeSet* allowed = types.types_of(letter);
  return allowed != nullptr && allowed->contains(onnx::ElementType::f32) && allowed->contains(onnx::ElementType::f16) &&
         (types.name != "Resize" || letter == types.input_letter(0));
}

/// Returns the types of the newest operator set that has the operator, or null if none of its inputs can be of another
/// type.
const onnx::SchemaTypes* types_to_narrow(std::string_view op_type) {
  const auto versions = onnx::schema_types(op_type);
  if (versions.empty()) return nullptr;
  const onnx::SchemaTypes& newest = versions.back();
  const bool can =
      std::any_of(newest.inputs.begin(), newest.inputs.end(), [&](char letter) { return can_narrow(newest, letter); });
  return can ? &newest : nullptr;
}

/// Returns the operator set from which on all inputs that can be of another type may be of this one; 0 if no set allows
/// it.
std::int64_t narrow_since(const onnx::SchemaTypes& newest, onnx::ElementType narrow) {
  const auto versions = onnx::schema_types(newest.name);
  std::int64_t since = 0;
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    for (std::size_t i = 0; i < std::min(version->inputs.size(), newest.inputs.size()); ++i) {
      if (!can_narrow(newest, newest.inputs[i])) continue;
      const onnx::TypeSet* allowed = version->types_of(version->inputs[i]);
      if (allowed != nullptr && allowed->contains(onnx::ElementType::f32) && !allowed->contains(narrow)) return since;
    }
    since = version->since;
  }
  return since;
}

std::string_view narrow_name(onnx::ElementType type) { return type == onnx::ElementType::f16 ? "f16" : "bf16"; }

double largest_number(onnx::ElementType type) {
  return largest_of(type == onnx::ElementType::f16 ? verify::Precision::f16 : verify::Precision::bf16);
}

double smallest_number(onnx::ElementType type) {
  constexpr int f16_exponent = -24;
  constexpr int bf16_exponent = -133;
  return std::ldexp(1.0, type == onnx::ElementType::f16 ? f16_exponent : bf16_exponent);
}

/// A constant in the narrow type, and the numbers that the type does not hold.
struct ConstantFit {
  double beyond = 0;     ///< A number beyond the range of the type, or 0.
  double vanishing = 0;  ///< A number that becomes 0 in the type, if all numbers do; otherwise 0.
  /// The constant; numbers beyond the range become the largest number of the type, and vanishing ones the smallest.
  onnx::TensorData converted{};
};

ConstantFit fit(const onnx::TensorData& tensor, onnx::ElementType narrow) {
  ConstantFit result;
  std::vector<double> numbers = *tensor.numbers();
  const std::vector<double> rounded = *onnx::TensorData::from_numbers(narrow, tensor.dims, numbers).numbers();
  bool all_vanish = true;
  double vanishing = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double& number = numbers[i];
    if (number != 0 && rounded[i] == 0) vanishing = number;
    all_vanish = all_vanish && rounded[i] == 0;
    if (std::isfinite(number) && !std::isfinite(rounded[i])) {
      result.beyond = number;
      number = std::copysign(largest_number(narrow), number);
    }
  }
  if (all_vanish && vanishing != 0) {
    result.vanishing = vanishing;
    for (double& number : numbers) {
      if (number != 0) number = std::copysign(smallest_number(narrow), number);
    }
  }
  result.converted = onnx::TensorData::from_numbers(narrow, tensor.dims, numbers);
  return result;
}

/// Returns whether a number that is too large for the type may become its largest number, because the node only needs a
/// number larger than all others.
bool may_saturate(const onnx::Node& node, double number) {
  if (is_any_of(node, {"Add", "Clip", "Max", "Min", "Pad", "Sub", "Where"})) return true;
  constexpr double stands_for_infinity = 1e8;
  return node.is("Mul") && std::abs(number) >= stands_for_infinity;
}

/// Returns whether a constant that is too small for the type may become the smallest number: an epsilon only must not
/// be 0, and a bias is added to larger numbers.
bool may_grow(const onnx::Node& node, std::size_t input) {
  constexpr std::size_t bias = 2;
  return is_any_of(node, {"Add", "Clip", "Max", "Min", "Sum", "Where"}) ||
         (input == bias && is_any_of(node, {"Conv", "ConvTranspose", "Gemm"}));
}

/// Returns whether the node's `dtype` is the type of its output. Without the attribute the output has the type of the
/// input, which the schemas do not express.
bool has_type_of_output(const onnx::Node& node) {
  return is_any_of(node, {"Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"});
}

/// The decision about a node, and the types of its ports.
struct Plan {
  NodeType type = NodeType::none;
  /// Whether the node works in any type without rounding, so that the casts around it decide.
  bool flexible = false;
  bool by_form = false;
  bool refused_in_f32 = false;  ///< Whether TypedOptions::refusal refuses it in f32 too.
  std::string key;              ///< The node's key_of, before tensors are renamed.
  std::string reason;
  std::vector<bool> inputs;   ///< Whether each input has the node's type.
  std::vector<bool> outputs;  ///< Whether each output has the node's type.
};

/// The type in which a value is computed, or which a reader needs.
enum class Side : std::uint8_t { f32, narrow, either };

/// The reasons why nodes are refused, by key_of.
using Refused = std::map<std::string, std::string, std::less<>>;

class Typing {
 public:
  Typing(const onnx::Model& prepared, const TypedOptions& options, const Refused& known)
      : options_(options), known_(known), narrow_(element_type_of(options.precision)) {
    result_.model = prepared.clone();
  }

  TypedModel run() {
    for (const onnx::Node* node : graph().nodes()) {
      Plan& plan = plans_.emplace(node, plan_of(*node)).first->second;
      plan.key = key_of(*node);
      plan.refused_in_f32 = plan.type == NodeType::narrow && refusal(*node);
    }
    settle_flexible_nodes();
    note_nodes();
    const std::vector<onnx::Value*> values = graph().values();
    for (onnx::Value* value : values) retype(*value);
    change_attributes();
    find_refused();
    graph().topological_sort();
    remove_idle_casts();
    graph().remove_dead();
    remove_unused_functions(result_.model);
    infer_shapes(result_.model);
    attach_functions(result_.model);
    return std::move(result_);
  }

  /// Returns the nodes in the narrow type that TypedOptions::refusal refuses in it.
  [[nodiscard]] const Refused& refused() const { return refused_; }

 private:
  [[nodiscard]] onnx::Graph& graph() { return result_.model.graph(); }
  [[nodiscard]] const onnx::Graph& graph() const { return result_.model.graph(); }

  // ---- The plan of a node by itself

  static Plan kept(std::string reason, bool by_form = true) {
    Plan plan;
    plan.type = NodeType::kept;
    plan.reason = std::move(reason);
    plan.by_form = by_form;
    return plan;
  }

  Plan plan_of(const onnx::Node& node) const {
    if (node.is("Constant") || (!has_f32_tensor(node) && node.subgraphs().empty())) return {};
    if (!node.subgraphs().empty()) return kept("its sub-graphs are not converted");
    if (auto reason = reason_to_keep(node)) return kept(std::move(*reason));
    if (const auto found = known_.find(key_of(node)); found != known_.end()) return kept(found->second);
    Plan plan = node.domain == onnx_domain ? operator_plan(node) : standard_plan(node);
    if (plan.type == NodeType::kept) return plan;
    if (auto reason = constants_that_do_not_fit(node, plan)) return kept(std::move(*reason));
    const auto asked = options_.kept.find(key_of(node));
    if (asked != options_.kept.end()) return kept(asked->second, false);
    return plan;
  }

  std::optional<std::string> reason_to_keep(const onnx::Node& node) const {
    for (const onnx::Value* value : node.inputs) {
      if (value != nullptr && !value->type) return fmt::format("the type of its input '{}' is not known", value->name);
      if (value != nullptr && value->producer != nullptr && value->producer->is("DequantizeLinear")) {
        return "it reads DequantizeLinear, so that TensorRT computes it in int8";
      }
    }
    for (const onnx::Value* value : node.outputs) {
      if (value == nullptr) continue;
      if (!value->type) return fmt::format("the type of its output '{}' is not known", value->name);
      const auto mains = std::count(graph().outputs().begin(), graph().outputs().end(), value);
      if (std::cmp_greater(value->output_count, mains)) return "a sub-graph of If, Loop or Scan returns its output";
      if (!options_.narrow_before_int8 && std::any_of(value->uses.begin(), value->uses.end(), [](const onnx::Use& use) {
            return use.node->is("QuantizeLinear");
          })) {
        return "QuantizeLinear reads its output, so that TensorRT computes it in int8";
      }
    }
    if (has_trait(node, onnx::trait::scales_integers)) return "it quantizes or dequantizes";
    return std::nullopt;
  }

  /// Plans a node of Graft by the row of types that begins with this type.
  Plan operator_plan(const onnx::Node& node) const {
    const auto op = make_operator(node);
    if (op == nullptr) return kept(unknown_operator_reason());
    if (!is_f32(node.input(0))) return kept("it is not an f32 operator");
    const OperatorType& type = op->type();
    const DType wanted = *to_dtype(narrow_);
    std::vector<int> ranks;
    for (const onnx::Value* input : node.inputs) {
      ranks.push_back(input != nullptr && input->shape ? static_cast<int>(input->shape->size()) : -1);
    }
    for (const TypeRow& row : type.type_rows) {
      const bool is_linear = std::all_of(row.formats.begin(), row.formats.begin() + static_cast<long>(row.count),
                                         [](const Format& format) { return format.layout == Layout::linear; });
      if (!is_linear || row.formats[0].dtype != wanted || !op->accepts(row, ranks)) continue;
      Plan plan;
      plan.type = NodeType::narrow;
      const std::size_t given = node.inputs.size();
      for (std::size_t i = 0; i < given; ++i) {
        plan.inputs.push_back(is_f32(node.inputs[i]) && type.format_of(row, given, i).dtype == wanted);
      }
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        plan.outputs.push_back(is_f32(node.outputs[i]) && type.format_of(row, given, given + i).dtype == wanted);
      }
      return plan;
    }
    return kept(fmt::format("{} has no {} form", type.name, narrow_name(narrow_)));
  }

  Plan standard_plan(const onnx::Node& node) const {
    if (!node.domain.empty()) return kept("the types that this operator accepts are not known");
    Plan plan;
    plan.type = NodeType::narrow;
    if (node.is("Cast") || node.is("ConstantOfShape")) {
      plan.flexible = true;
      plan.inputs.assign(node.inputs.size(), false);
      plan.outputs.push_back(is_f32(node.output()));
      if (!plan.outputs[0]) plan.type = NodeType::none;
      return plan;
    }
    const onnx::SchemaTypes* types = types_to_narrow(node.op_type);
    if (types == nullptr) return kept(fmt::format("ONNX has {} in f32 only", node.op_type));
    const std::int64_t since = narrow_since(*types, narrow_);
    if (since == 0) return kept(fmt::format("ONNX has no {} {}", narrow_name(narrow_), node.op_type));
    if (graph().opset() < since) {
      return kept(fmt::format("ONNX has {} in {} from operator set {} on; the model uses {}", node.op_type,
                              narrow_name(narrow_), since, graph().opset()));
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      plan.inputs.push_back(is_f32(node.inputs[i]) && can_narrow(*types, types->input_letter(i)));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      plan.outputs.push_back(is_f32(node.outputs[i]) &&
                             (has_type_of_output(node) || can_narrow(*types, types->output_letter(i))));
    }
    const auto is_set = [](bool port) { return port; };
    if (std::none_of(plan.inputs.begin(), plan.inputs.end(), is_set)) {
      return kept(fmt::format("{} accepts f32 only", node.op_type));
    }
    plan.flexible =
        has_trait(node, onnx::trait::moves_data) || std::none_of(node.outputs.begin(), node.outputs.end(), is_f32);
    return plan;
  }

  std::optional<std::string> constants_that_do_not_fit(const onnx::Node& node, const Plan& plan) const {
    for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
      const auto constant = plan.inputs[i] ? node.inputs[i]->constant() : std::nullopt;
      if (!constant) continue;
      const ConstantFit found = fit(*constant, narrow_);
      if (found.beyond != 0 && !may_saturate(node, found.beyond)) {
        return fmt::format("its constant '{}' contains {:.4g}, which is beyond the range of {}", node.inputs[i]->name,
                           found.beyond, narrow_name(narrow_));
      }
      if (found.vanishing != 0 && !may_grow(node, i)) {
        return fmt::format("its constant '{}', {:.4g}, would become 0", node.inputs[i]->name, found.vanishing);
      }
    }
    return std::nullopt;
  }

  // ---- Nodes that work in any type

  /// Returns the type in which a value is computed. Flexible nodes in `from` count as f32.
  [[nodiscard]] Side source_of(const onnx::Value& value, const std::set<const onnx::Node*>& from) const {
    if (value.constant()) return Side::either;
    if (value.producer == nullptr) return options_.typed_io ? Side::narrow : Side::f32;
    const Plan& plan = plans_.at(value.producer);
    if (plan.type != NodeType::narrow || !plan.outputs.at(value.output_index)) return Side::f32;
    return plan.flexible && from.contains(value.producer) ? Side::f32 : Side::narrow;
  }

  [[nodiscard]] Side wanted_by(const onnx::Use& use) const {
    const auto found = plans_.find(use.node);
    if (found == plans_.end()) return Side::f32;  // a node in an inner graph
    const Plan& plan = found->second;
    if (use.node->is("Cast") || plan.type == NodeType::none) return Side::either;
    if (plan.type == NodeType::kept || !plan.inputs.at(use.index)) return Side::f32;
    if (plan.flexible && !has_trait(*use.node, onnx::trait::moves_data)) return Side::either;
    return plan.type == NodeType::follows ? Side::f32 : Side::narrow;
  }

  /// Returns whether there are fewer casts with the node in f32, given that its inputs are f32.
  [[nodiscard]] bool is_wanted_in_f32(const onnx::Node& node, const Plan& plan) const {
    bool narrow = false;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const onnx::Value* value = node.outputs[i];
      if (value == nullptr || !plan.outputs.at(i)) continue;
      if (value->output_count != 0) {
        if (!options_.typed_io) return true;
        narrow = true;
      }
      for (const onnx::Use& use : value->uses) {
        const Side side = wanted_by(use);
        if (side == Side::f32) return true;
        narrow = narrow || side == Side::narrow;
      }
    }
    return !narrow;
  }

  void settle_flexible_nodes() {
    const std::vector<onnx::Node*> nodes = graph().nodes();
    std::set<const onnx::Node*> from;  // nodes whose inputs are f32
    const auto reads_f32 = [&](const onnx::Node& node, const Plan& plan) {
      for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
        if (plan.inputs[i] && source_of(*node.inputs[i], from) == Side::narrow) return false;
      }
      return true;
    };
    const auto is_open = [](const Plan& plan) { return plan.flexible && plan.type == NodeType::narrow; };
    for (const onnx::Node* node : nodes) {
      const Plan& plan = plans_.at(node);
      if (is_open(plan) && reads_f32(*node, plan)) from.insert(node);
    }
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      Plan& plan = plans_.at(*node);
      if (!is_open(plan) || !from.contains(*node)) continue;
      if (is_wanted_in_f32(**node, plan)) {
        plan.type = NodeType::follows;
      } else {
        from.erase(*node);
      }
    }
    // Nodes that only read follow the types of their inputs, which are decided now.
    for (const onnx::Node* node : nodes) {
      Plan& plan = plans_.at(node);
      const bool only_reads = std::none_of(node->outputs.begin(), node->outputs.end(), is_f32);
      if (plan.type == NodeType::follows && only_reads && !reads_f32(*node, plan)) plan.type = NodeType::narrow;
    }
  }

  // ---- The graph

  /// Returns the type of the first f16 or bf16 tensor that a node makes or reads.
  void note_nodes() {
    for (onnx::Node* node : graph().nodes()) {
      if (node->is("Constant")) continue;
      const Plan& plan = plans_.at(node);
      const bool has_other_type = plan.type == NodeType::none && !has_f32_tensor(*node);
      result_.nodes.push_back({.node = ref_of(*node),
                               .type = plan.type,
                               .reason = plan.reason,
                               .by_form = plan.by_form,
                               .before = has_other_type ? other_float_of(*node) : std::nullopt});
      if (plan.type == NodeType::kept) node->metadata[std::string(precision_note)] = "f32: " + plan.reason;
    }
  }

  [[nodiscard]] bool is_made_narrow(const onnx::Value& value) const {
    if (value.producer == nullptr) return value.is_input && options_.typed_io;
    const Plan& plan = plans_.at(value.producer);
    return plan.type == NodeType::narrow && plan.outputs.at(value.output_index);
  }

  [[nodiscard]] std::pair<std::vector<onnx::Use>, std::vector<onnx::Use>> readers_of(const onnx::Value& value) const {
    std::vector<onnx::Use> f32;
    std::vector<onnx::Use> narrow;
    for (const onnx::Use& use : value.uses) {
      const auto found = plans_.find(use.node);
      const bool is_any = found != plans_.end() && use.node->is("Cast");
      if (is_any) continue;
      const bool takes_narrow =
          found != plans_.end() && found->second.type == NodeType::narrow && found->second.inputs.at(use.index);
      (takes_narrow ? narrow : f32).push_back(use);
    }
    return {std::move(f32), std::move(narrow)};
  }

  onnx::Value* cast(onnx::Value& value, onnx::ElementType to, const std::string& name) {
    onnx::Node* node = graph().add_node("Cast", {&value}, {name});
    node->attributes.emplace("to", onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(to))));
    node->output()->type = to;
    node->output()->shape = value.shape;
    ++result_.casts;
    return node->output();
  }

  void redirect(const std::vector<onnx::Use>& uses, onnx::Value* to) {
    for (const onnx::Use& use : uses) use.node->graph->set_input(*use.node, use.index, to);
  }

  void retype(onnx::Value& value) {
    if (value.type != onnx::ElementType::f32) return;
    const auto [f32_readers, narrow_readers] = readers_of(value);
    if (const auto constant = value.constant()) {
      if (!narrow_readers.empty()) convert_constant(value, *constant, narrow_readers);
      return;
    }
    if (value.producer != nullptr && !plans_.contains(value.producer)) return;
    if (!is_made_narrow(value)) {
      if (!narrow_readers.empty()) {
        redirect(narrow_readers, cast(value, narrow_, value.name + "/" + std::string(narrow_name(narrow_))));
      }
      if (options_.typed_io && value.output_count != 0 && !value.is_input) make_output(value, narrow_);
      return;
    }
    value.type = narrow_;
    onnx::Value* wide = nullptr;
    if (!options_.typed_io && value.output_count != 0 && !value.is_input)
      wide = make_output(value, onnx::ElementType::f32);
    if (f32_readers.empty()) return;
    if (wide == nullptr) wide = cast(value, onnx::ElementType::f32, value.name + "/f32");
    redirect(f32_readers, wide);
  }

  /// Adds a cast for the graph's output, which has the other type than the value and keeps its name.
  onnx::Value* make_output(onnx::Value& value, onnx::ElementType to) {
    const std::string name = value.name;
    const std::string_view own = to == onnx::ElementType::f32 ? narrow_name(narrow_) : "f32";
    graph().rename(value, graph().unique_name(fmt::format("{}/{}", name, own)));
    onnx::Value* output = cast(value, to, name);
    for (std::size_t i = 0; i < graph().outputs().size(); ++i) {
      if (graph().outputs()[i] == &value) graph().replace_output(i, *output);
    }
    return output;
  }

  void convert_constant(onnx::Value& value, const onnx::TensorData& constant, const std::vector<onnx::Use>& readers) {
    const ConstantFit found = fit(constant, narrow_);
    const auto adjusted = [&](double was, double is) {
      result_.adjusted.push_back({value.name, fmt::format("{:.6g} became {:.6g}", was, is)});
    };
    if (found.beyond != 0) adjusted(found.beyond, std::copysign(largest_number(narrow_), found.beyond));
    if (found.vanishing != 0) adjusted(found.vanishing, std::copysign(smallest_number(narrow_), found.vanishing));
    const bool in_place = readers.size() == value.uses.size() && value.output_count == 0;
    if (in_place && value.producer == nullptr) {
      graph().set_initializer(value, found.converted);
      return;
    }
    if (in_place) {
      value.producer->attributes.clear();
      value.producer->attributes.emplace("value", onnx::NodeAttribute(onnx::AttributeData(found.converted)));
      value.type = narrow_;
      return;
    }
    redirect(readers, graph().add_constant(value.name + "/" + std::string(narrow_name(narrow_)), found.converted));
  }

  void change_attributes() {
    for (onnx::Node* node : graph().nodes()) {
      const auto found = plans_.find(node);
      if (found == plans_.end() || found->second.type != NodeType::narrow) continue;
      if (node->is("Cast")) {
        node->attributes.insert_or_assign("to",
                                          onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(narrow_))));
      } else if (has_type_of_output(*node) && found->second.outputs.at(0)) {
        node->attributes.insert_or_assign("dtype",
                                          onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(narrow_))));
      } else if (node->is("ConstantOfShape")) {
        const onnx::NodeAttribute* value = node->attribute("value");
        const onnx::TensorData* tensor = value == nullptr ? nullptr : value->get<onnx::TensorData>();
        const double number = tensor == nullptr ? 0 : tensor->scalar().value_or(0);
        node->attributes.insert_or_assign(
            "value", onnx::NodeAttribute(onnx::AttributeData(onnx::TensorData::from_numbers(narrow_, {1}, {number}))));
      }
    }
  }

  // ---- Nodes that are refused in the type

  [[nodiscard]] std::optional<std::string> refusal(const onnx::Node& node) const {
    return options_.refusal && node.domain.empty() ? options_.refusal(node) : std::nullopt;
  }

  void find_refused() {
    for (const onnx::Node* node : graph().nodes()) {
      const auto found = plans_.find(node);
      if (found == plans_.end() || found->second.type != NodeType::narrow || found->second.refused_in_f32) continue;
      if (const auto reason = refusal(*node)) {
        refused_.emplace(found->second.key,
                         fmt::format("TensorRT does not build it in {}: {}", narrow_name(narrow_), *reason));
      }
    }
  }

  /// Removes casts of the original model whose input has the wanted type now.
  void remove_idle_casts() {
    for (onnx::Node* node : graph().nodes()) {
      if (!node->is("Cast") || node->input(0) == nullptr || node->input(0)->type != node->output()->type) continue;
      if (!plans_.contains(node) || node->input(0)->type != narrow_) continue;
      graph().replace_all_uses(*node->output(), *node->input(0));
    }
  }

  const TypedOptions& options_;
  const Refused& known_;  ///< Nodes that stay in f32 because they are refused in the type.
  onnx::ElementType narrow_;
  TypedModel result_;
  Refused refused_;
  std::unordered_map<const onnx::Node*, Plan> plans_;
};

/// Returns the operator set that a node needs to be in bf16, or 0 if no set up to `bf16_opset` has it.
std::int64_t opset_of_bf16(const onnx::Node& node) {
  const onnx::SchemaTypes* types = node.domain.empty() ? types_to_narrow(node.op_type) : nullptr;
  const std::int64_t since = types == nullptr ? 0 : narrow_since(*types, onnx::ElementType::bf16);
  return since <= onnx::bf16_opset ? since : 0;
}

/// Returns the operator set that all nodes need that can be in bf16.
std::int64_t opset_of_bf16(const onnx::Model& model) {
  std::int64_t needed = onnx::working_opset;
  for (const onnx::Node* node : std::as_const(model).graph().nodes()) {
    const auto op = make_operator(*node);
    if (op == nullptr) {
      needed = std::max(needed, opset_of_bf16(*node));
      continue;
    }
    FunctionInputs inputs = function_inputs(*node);
    inputs.dtype = DType::bf16;
    needed = std::max(needed, onnx::first_opset_of_function(*op, inputs));
  }
  return needed;
}

}  // namespace

onnx::ElementType element_type_of(verify::Precision precision) {
  if (precision == verify::Precision::int8)
    throw Error(Error::Kind::internal, "element_type_of: int8 is not a floating-point type");
  return precision == verify::Precision::f16 ? onnx::ElementType::f16 : onnx::ElementType::bf16;
}

const std::string& key_of(const onnx::Node& node) {
  static const std::string none;
  const auto found =
      std::find_if(node.outputs.begin(), node.outputs.end(), [](const onnx::Value* value) { return value != nullptr; });
  return found == node.outputs.end() ? none : (*found)->name;
}

std::optional<std::string> note_on_f64(const onnx::Model& prepared, std::string_view wanted) {
  std::size_t nodes = 0;
  std::size_t in_f64 = 0;
  for (const onnx::Node* node : prepared.graph().nodes()) {
    if (node->is("Constant")) continue;
    ++nodes;
    if (!has_f32_tensor(*node) && other_float_of(*node) == onnx::ElementType::f64) ++in_f64;
  }
  if (in_f64 == 0) return std::nullopt;
  return fmt::format(
      "{} of {} nodes {} in f64, because only f32 becomes {}: export the network in f32 (in PyTorch, model.float() "
      "before the export), and quantize that model",
      in_f64, nodes, in_f64 == 1 ? "stays" : "stay", wanted);
}

std::string unknown_operator_reason() {
  return fmt::format("Graft does not know this operator; to load a library of operators: {}",
                     setting_name(Setting::operator_libraries));
}

bool works_in_any_type(const onnx::Node& node) {
  return has_trait(node, onnx::trait::moves_data) || is_any_of(node, {"Cast", "Constant", "ConstantOfShape"}) ||
         std::none_of(node.outputs.begin(), node.outputs.end(), is_f32);
}

onnx::Model prepare_for_types(const onnx::Model& model, verify::Precision precision) {
  onnx::Model prepared = model.clone();
  for (onnx::Value* value : std::vector<onnx::Value*>(prepared.graph().inputs())) {
    if (value->initializer) prepared.graph().set_is_input(*value, false);
  }
  inline_functions(prepared, {.which = onnx::is_plain_call});
  adopt_drop_ins(prepared);
  upgrade_opset(prepared);
  if (precision == verify::Precision::bf16) {
    const std::int64_t needed = opset_of_bf16(prepared);
    try {
      upgrade_opset(prepared, needed);
      if (needed > onnx::working_opset) prepared.ir_version = std::max(prepared.ir_version, onnx::bf16_ir_version);
    } catch (const Error& refused) {
      if (refused.kind() == Error::Kind::internal) throw;  // otherwise a node has no newer form: more nodes stay in f32
    }
  }
  infer_shapes(prepared);
  return prepared;
}

std::string type_name(const TypedNode& node, verify::Precision precision) {
  switch (node.type) {
    case NodeType::narrow: return std::string(to_string(precision));
    case NodeType::kept:
    case NodeType::follows: return "f32";
    case NodeType::none: break;
  }
  return node.before ? to_string(*node.before) : std::string();
}

TypedModel make_typed(const onnx::Model& prepared, const TypedOptions& options) {
  // A node that is kept changes the types around it, in which other nodes may be refused.
  for (Refused known;;) {
    Typing typing(prepared, options, known);
    TypedModel typed = typing.run();
    if (typing.refused().empty()) return typed;
    known.insert(typing.refused().begin(), typing.refused().end());
  }
}

}  // namespace graft::quant
