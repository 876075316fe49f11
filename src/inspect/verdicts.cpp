// A node is judged as the operator that it calls; the call of another function, as the worst node of that function.
#include "inspect/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "inspect/function_bodies.hpp"
#include "inspect/tensorrt_forms.hpp"
#include "inspect/tensorrt_support.hpp"
#include "onnx/faults.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_name.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/plugin_reason.hpp"
#include "onnx/standard_operators.hpp"

namespace graft::inspect {
namespace {

/// The reason and the advice of a verdict on a node with an input whose type an operator does not accept.
struct WrongType {
  std::string reason;
  std::string advice;
};

/// Returns the name of an operator with the library that contains it, such as "Graft's NMS" or "NMS of libmine.so".
std::string whose(const OperatorType& type) {
  const OperatorLibrary* library = library_of(type);
  if (library == nullptr) return fmt::format("Graft's {}", type.name);
  return fmt::format("{} of {}", type.name, std::filesystem::path(library->file).filename().string());
}

WrongType wrong_type(const onnx::RefusedType& refused, const OperatorType& type, std::string_view stands_in) {
  std::vector<std::string_view> allowed;
  for (const DType dtype : refused.allowed) allowed.push_back(to_string(dtype));
  const onnx::ElementType found = *refused.input->type;
  const auto is_allowed = [&](DType dtype) {
    return std::find(refused.allowed.begin(), refused.allowed.end(), dtype) != refused.allowed.end();
  };
  DType wanted = refused.allowed.front();
  if (is_allowed(DType::f32)) wanted = DType::f32;
  if (is_allowed(DType::i32) && !is_floating_point(found)) wanted = DType::i32;
  const auto dtype = library_of(type) == nullptr ? std::nullopt : to_dtype(found);
  return {fmt::format("'{}' is {}; {}{} accepts {}{}", refused.input->name, to_string(found), whose(type), stands_in,
                      fmt::join(allowed, ", "), allowed.size() == 1 ? " only" : ""),
          fmt::format("insert a Cast to {} for '{}' before the node, if the values of the tensor allow that{}",
                      to_string(wanted), refused.input->name,
                      dtype ? fmt::format("; or add {} to the operator's types()", to_string(*dtype)) : "")};
}

struct Judgment {
  Support support = Support::native;
  std::string reason;
  std::string advice;
  std::string cause = {};
};

Judgment judge_operator(const onnx::Node& node, const onnx::OperatorMatch& match, const Forecast& forecast) {
  const std::unique_ptr<Operator> op = make_operator(node);
  if (const auto refused = onnx::type_refused_by_plugin(*match.type, node)) {
    WrongType wrong = wrong_type(*refused, *match.type, "");
    return {Support::unsupported, std::move(wrong.reason), std::move(wrong.advice)};
  }
  const onnx::Value* input = node.input(0);
  const std::optional<DType> dtype =
      input != nullptr && input->type ? to_dtype(*input->type) : std::optional<DType>(DType::f32);
  // `graft convert` keeps it as a plugin, too
  const bool is_kept = node.metadata.contains(std::string(onnx::keep_note));
  if (const auto form = dtype && !is_kept ? onnx::native_form_of(*op, function_inputs(node)) : std::nullopt;
      form && !forecast.stays.contains(ref_of(node))) {
    return {Support::lowered, fmt::format("the native form is as fast: {}", *form), "graft convert"};
  }
  std::string reason = reason_for_plugin(node);
  if (match.drop_in != nullptr) {
    reason = fmt::format("Graft's {} replaces the plugin {} {}; {}", match.type->name, match.drop_in->plugin_name,
                         match.drop_in->version, reason);
  } else if (const OperatorLibrary* library = library_of(*match.type)) {
    reason = fmt::format("from {}; {}", std::filesystem::path(library->file).filename().string(), reason);
  }
  return {Support::plugin, reason, "graft build"};
}

std::string advice_on_doubt() {
  return fmt::format(
      "{} runs the installed TensorRT, with a range for each dynamic input ({}); a plugin that calls CUDA "
      "needs "
      "the GPU",
      setting_name(Setting::inspect_builder), setting_name(Setting::shape_ranges));
}

std::string use_library() {
  return fmt::format(
      "if it is your own operator, load its library: {}; if a plugin library has it (list its plugins with graft "
      "plugins LIB.so), {}",
      setting_name(Setting::operator_libraries), setting_name(Setting::build_with_library));
}

/// The reason and the advice of a verdict on a node whose name is similar to that of a known operator. Empty if no name
/// is similar.
struct Near {
  std::string reason;
  std::string advice;
  bool is_taken_for_onnx = false;  ///< Whether TensorRT's parser takes the node for an operator of ONNX.
};

/// Returns why Graft does not replace a node that has the name of another library's plugin with the operator `type`,
/// which replaces this plugin: its plugin_namespace, plugin_version or domain differs. `versions` are the versions of
/// the plugin.
Near near_drop_in(const onnx::Node& node, const OperatorType& type, const std::vector<std::string_view>& versions) {
  const auto text_of = [&](std::string_view attribute) {
    const onnx::NodeAttribute* found = node.attribute(attribute);
    const auto* text = found == nullptr ? nullptr : found->get<std::string>();
    return text == nullptr ? std::string() : *text;
  };
  if (const std::string space = text_of("plugin_namespace"); !space.empty()) {
    return {
        fmt::format("Graft's {} replaces the plugin {} only without a namespace; the node has plugin_namespace = '{}'",
                    type.name, node.op_type, space),
        fmt::format("remove plugin_namespace if you mean Graft's operator; otherwise {}", use_library())};
  }
  if (const std::string version = text_of("plugin_version"); !version.empty()) {
    return {fmt::format("Graft's {} replaces the plugin {} only in version {}; the node has plugin_version = '{}'",
                        type.name, node.op_type, fmt::join(versions, ", "), version),
            fmt::format("set the string attribute plugin_version to '{}' if you mean Graft's operator; otherwise {}",
                        fmt::join(versions, "' or '"), use_library())};
  }
  return {fmt::format("Graft's {} replaces the plugin {} only where the node's domain is empty, {} or trt; the node "
                      "has the domain '{}'",
                      type.name, node.op_type, onnx_domain, node.domain),
          fmt::format("set the node's domain to trt if you mean Graft's operator; otherwise {}", use_library())};
}

/// Returns the name of the operator of Graft or of a loaded library that differs from `op_type` by a typing error, or
/// nothing.
std::optional<std::string> nearest_operator(const std::string& op_type) {
  std::vector<std::string> names;
  for (const OperatorType* type : operators()) names.emplace_back(type->name);
  return nearest(op_type, names);
}

/// Returns why a node is not treated as the known operator whose name it has or nearly has. The result is empty if no
/// known name is similar.
Near near_operator(const onnx::Node& node) {
  for (const std::string_view name : {"plugin_version", "plugin_namespace"}) {
    const onnx::NodeAttribute* attribute = node.attribute(name);
    if (attribute == nullptr || attribute->get<std::string>() != nullptr) continue;
    return {fmt::format("attribute `{}` has the type {}; it must be a string", name, attribute->kind()),
            fmt::format("write {} as a string: '1' and not 1", name)};
  }
  if (onnx::is_standard_operator("", node.op_type)) {
    return {
        fmt::format("TensorRT's parser ignores the domain of the node and parses the node as ONNX's {}", node.op_type),
        "remove the domain of the node if you mean ONNX's operator; otherwise rename the operator to a name that ONNX "
        "does not have",
        true};
  }
  std::vector<std::string_view> versions;
  const OperatorType* stands_in = nullptr;
  for (const OperatorType* type : operators()) {
    if (type->name == node.op_type) {
      return {fmt::format("{} is used only where the node's domain is {}; the node has the domain '{}'", whose(*type),
                          onnx_domain, node.domain),
              fmt::format("set the node's domain to {} if you mean Graft's operator; otherwise {}", onnx_domain,
                          use_library())};
    }
    for (const DropIn& drop_in : type->drop_ins) {
      if (drop_in.plugin_name != node.op_type) continue;
      stands_in = type;
      versions.push_back(drop_in.version);
    }
  }
  if (stands_in != nullptr) return near_drop_in(node, *stands_in, versions);
  if (const auto meant = node.domain == onnx_domain ? nearest_operator(node.op_type) : std::nullopt) {
    return {fmt::format("did you mean {}.{}? `graft ops` lists Graft's operators", onnx_domain, *meant),
            fmt::format("if you mean {0}, set the node's operator type to {0}; otherwise {1}", *meant, use_library())};
  }
  if (const auto meant = onnx::standard_operator_meant(node)) {
    return {fmt::format("did you mean ONNX's {}?", *meant),
            fmt::format("if you mean {0}, set the node's operator type to {0}{1}; otherwise {2}", *meant,
                        node.domain.empty() ? "" : " and remove its domain", use_library())};
  }
  if (const auto meant = nearest_own_operator(node.op_type)) {
    return {fmt::format("did you mean {}? `graft ops` lists Graft's operators", *meant),
            fmt::format("if you mean {0}, set the node's operator type to {0}; otherwise {1}", *meant, use_library())};
  }
  return {};
}

/// Returns the judgment `unsupported` on an invalid node, which no runtime would accept. `what` is the reason.
Judgment faulty(std::string what) { return {Support::unsupported, std::move(what), advice_on_fault}; }

/// A copy of a model in which the calls of functions that are not operators are inlined, and the inlined nodes of each
/// call.
struct Bodies {
  explicit Bodies(const onnx::Model& whole) : model(whole.clone()) {
    try {
      inline_bodies(model, called_functions(whole));
    } catch (const Error& error) {  // functions with incompatible opsets cannot be inlined
      failure = error.what();
      return;
    }
    std::as_const(model).graph().for_each_node([&](const onnx::Node& node) {
      if (const auto call = node.metadata.find(onnx::call_note); call != node.metadata.end()) {
        nodes[call->second].push_back(&node);
      }
    });
  }

  /// Returns the inlined nodes of `call`, a node of the original model; empty if it was not inlined.
  [[nodiscard]] std::vector<const onnx::Node*> of(const onnx::Node& call) const {
    const auto found = nodes.find(ref_of(call).id);
    return found == nodes.end() ? std::vector<const onnx::Node*>() : found->second;
  }

  onnx::Model model;
  std::string failure;  ///< Why inlining failed; empty if it succeeded.
  std::map<std::string, std::vector<const onnx::Node*>, std::less<>> nodes;
};

class RuleJudge {
 public:
  RuleJudge(const onnx::Model& model, const Forecast& forecast, const Release& release)
      : model_(model), forecast_(forecast), release_(release) {}

  [[nodiscard]] Judgment judge(const onnx::Node& node) const {
    Judgment judgment = judge_anywhere(node);
    if (judgment.support != Support::plugin || node.graph->parent() == nullptr) return judgment;
    const auto refusal = refusal_of_plugins_in_bodies(release_);
    if (!refusal) return judgment;
    if (const auto replaced = forecast_.becomes.find(ref_of(node)); replaced != forecast_.becomes.end()) {
      return {Support::lowered, *refusal, replaced->second};
    }
    if (builds_plugins_in_bodies(release_) == Answer::unknown) return {Support::unknown, *refusal, advice_on_doubt()};
    return {Support::unsupported, fmt::format("it would be a plugin ({}), and {}", judgment.reason, *refusal),
            advice_on_plugin_in_body()};
  }

 private:
  [[nodiscard]] Judgment judge_anywhere(const onnx::Node& node) const {
    if (const auto fault = node.metadata.find(onnx::fault_note); fault != node.metadata.end())
      return faulty(fault->second);
    if (const onnx::OperatorMatch match = find_operator_for(node)) return judge_operator(node, match, forecast_);
    if (model_.find_function(node) != nullptr) return judge_call(node);
    const bool is_standard = onnx::is_standard_operator(node.domain, node.op_type) && node.domain != "ai.onnx.ml";
    return is_standard || parses_beyond_onnx(node, release_) ? judge_standard(node) : judge_other(node);
  }

  /// Returns the judgment on a node whose operator TensorRT's parser may support without a plugin.
  [[nodiscard]] Judgment judge_standard(const onnx::Node& node) const {
    const auto replaced = forecast_.becomes.find(ref_of(node));
    const std::optional<std::string> refusal = refusal_of_tensorrt(node, release_);
    const std::optional<std::string> old = refusal ? std::nullopt : refusal_of_opset(node, release_);
    if (old) return {Support::lowered, *old, "graft convert writes it in a newer operator set"};
    if (!refusal) {
      const auto doubt = doubt_about(node, release_);
      if (const auto danger = doubt ? std::nullopt : danger_of(node, release_)) {
        return {Support::native, danger->reason, danger->advice, computed_wrongly};
      }
      if (!doubt && replaced == forecast_.becomes.end()) return {Support::native, "", ""};
      if (!doubt) return {Support::native, replaced->second, ""};
      // Not `native`, which would mean that TensorRT builds the node as it is.
      if (replaced != forecast_.becomes.end()) return {Support::lowered, *doubt, replaced->second};
      if (is_adopted(node) && !refusal_of_plugins(release_)) return adopted(node, *doubt);
      return {Support::unknown, *doubt, advice_on_doubt()};
    }
    const std::string cause = has_wrong_form(node, release_) ? computed_wrongly : "";
    if (replaced != forecast_.becomes.end()) return {Support::lowered, *refusal, replaced->second, cause};
    if (is_adopted(node)) return adopted(node, *refusal);
    if (const auto refused = may_adopt() ? type_not_adopted(node) : std::nullopt) {
      WrongType wrong = wrong_type(*refused, *onnx::find_onnx_operator(node), ", which could replace the node,");
      return {Support::unsupported, fmt::format("{}; {}", *refusal, wrong.reason),
              fmt::format("{}; or {} leaves the node to the host", wrong.advice, setting_name(Setting::cut))};
    }
    return {Support::unsupported, *refusal, advice_on_refusal(node), cause};
  }

  /// Returns the judgment on a node that is neither an operator of the default ONNX domain nor one of Graft.
  [[nodiscard]] Judgment judge_other(const onnx::Node& node) const {
    if (onnx::is_standard_operator(node.domain, node.op_type)) {
      return {Support::unsupported, "TensorRT supports no operator of the domain ai.onnx.ml",
              fmt::format("export the network without this node; or {} leaves the node to the host",
                          setting_name(Setting::cut))};
    }
    if (const auto kept = node.metadata.find(onnx::keep_note); kept != node.metadata.end()) {
      if (const auto refusal = refusal_of_plugins(release_)) {
        return {Support::unsupported, fmt::format("{}; {}", kept->second, *refusal),
                fmt::format("build the engine for {}, which supports plugins", title_of(newest_measured_release()))};
      }
      return {Support::plugin, kept->second,
              fmt::format("load the library that has the plugin: {}", setting_name(Setting::build_with_library))};
    }
    if (onnx::is_of_onnxruntime(node) && node.attribute("plugin_version") == nullptr) return judge_onnxruntime(node);
    if (const auto replaced = forecast_.becomes.find(ref_of(node)); replaced != forecast_.becomes.end()) {
      const std::string reason =
          node.domain == onnx::preview_domain
              ? fmt::format("TensorRT's parser does not support operators of the domain {}", node.domain)
              : fmt::format("{} is neither an operator of ONNX nor of Graft", node.op_type);
      return {Support::lowered, reason, replaced->second};
    }
    const std::string domain = node.domain.empty() ? "" : fmt::format(" of domain {}", node.domain);
    const Near near = near_operator(node);
    if (near.reason.empty() && !node.string_or("plugin_version", "").empty()) {
      return {
          Support::unknown,
          fmt::format("its attributes name the plugin {} version {}{}, which Graft does not have: the node runs only "
                      "where a plugin library has that plugin",
                      node.op_type, node.string_or("plugin_version", ""), domain),
          fmt::format("graft plugins LIB.so lists the plugins of a library; {} builds with the library",
                      setting_name(Setting::build_with_library))};
    }
    const bool is_parsed = near.is_taken_for_onnx && operator_fact(release_, node.op_type).runs != Answer::no;
    return {is_parsed ? Support::unknown : Support::unsupported,
            fmt::format("{}{} is not an operator of ONNX or Graft{}", node.op_type, domain,
                        near.reason.empty() ? "" : "; " + near.reason),
            near.advice.empty() ? use_library() : near.advice, near.advice.empty() ? report::library_missing : ""};
  }

  /// Returns the judgment on a node of an operator that only ONNX Runtime has.
  [[nodiscard]] Judgment judge_onnxruntime(const onnx::Node& node) const {
    const bool is_taken_for_onnx = onnx::is_standard_operator("", node.op_type);
    const std::string reason =
        fmt::format("it is an operator of ONNX Runtime, which TensorRT does not have{}",
                    is_taken_for_onnx ? "; its parser ignores the domain and parses it as ONNX's " + node.op_type : "");
    const auto replaced = forecast_.becomes.find(ref_of(node));
    if (replaced != forecast_.becomes.end()) return {Support::lowered, reason, replaced->second};
    return {Support::unsupported, reason, advice_on_onnxruntime(node)};
  }

  [[nodiscard]] bool may_adopt() const { return release_.flavor == Flavor::rtx && !refusal_of_plugins(release_); }
  [[nodiscard]] bool is_adopted(const onnx::Node& node) const {
    return release_.flavor == Flavor::rtx && is_adopted_for_tensorrt(node) && find_rank_above_limit(node) == nullptr;
  }
  [[nodiscard]] Judgment adopted(const onnx::Node& node, const std::string& reason) const {
    const std::string plugin = whose(*onnx::find_onnx_operator(node));
    if (const auto refusal = refusal_of_plugins(release_)) {
      return {Support::unsupported, fmt::format("{}; {}, so that {} cannot replace the node", reason, *refusal, plugin),
              fmt::format("{} leaves the node to the host; or build the engine for {}, in which {} replaces the node",
                          setting_name(Setting::cut), title_of(newest_measured_release()), plugin)};
    }
    return {Support::plugin, fmt::format("{}; {} replaces the node", reason, plugin), "graft build"};
  }

  /// Returns the judgment on a call of a function: the worst judgment on the nodes of its inlined body.
  [[nodiscard]] Judgment judge_call(const onnx::Node& call) const {
    if (bodies_ == nullptr) bodies_ = std::make_unique<Bodies>(model_);
    Judgment worst{Support::native, "its ONNX function is inlined as native layers", ""};
    if (call.domain == onnx_domain) {
      worst.reason +=
          fmt::format(": no loaded library has the operator; load its library with {} to run the node as a plugin",
                      setting_name(Setting::operator_libraries));
    }
    if (!bodies_->failure.empty()) return {Support::unknown, bodies_->failure, advice_on_doubt()};
    const RuleJudge inside(bodies_->model, forecast_, release_);
    for (const onnx::Node* inner : bodies_->of(call)) {
      Judgment judgment = inside.judge(*inner);
      if (judgment.support <= worst.support) continue;
      worst = std::move(judgment);
      worst.reason = fmt::format("inside its function {}, {}: {}", qualified_operator_name(call),
                                 onnx::describe(*inner), worst.reason);
    }
    return worst;
  }

  const onnx::Model& model_;
  const Forecast& forecast_;
  Release release_;
  mutable std::unique_ptr<Bodies> bodies_;  ///< Created when the first call of a function is judged.
};

}  // namespace

std::optional<std::string> nearest_own_operator(const std::string& op_type) {
  std::vector<std::string> names;
  for (const OperatorType* type : operators()) {
    names.emplace_back(type->name);
    for (const DropIn& drop_in : type->drop_ins) names.emplace_back(drop_in.plugin_name);
  }
  return nearest(op_type, names);
}

std::vector<NodeSupport> judge_nodes(const onnx::Model& model, const Forecast& forecast, const Release& release) {
  const RuleJudge judge(model, forecast, release);
  std::vector<NodeSupport> nodes;
  model.graph().for_each_node([&](const onnx::Node& node) {
    Judgment judged;
    try {
      judged = judge.judge(node);
    } catch (const Error& error) {  // an attribute has the wrong type: the node is faulty
      judged = faulty(fmt::format("{}: {}", model.source, error.what()));
    }
    nodes.push_back({.node = ref_of(node),
                     .op = qualified_operator_name(node),
                     .support = judged.support,
                     .reason = std::move(judged.reason),
                     .advice = std::move(judged.advice),
                     .cause = std::move(judged.cause)});
  });
  return nodes;
}

}  // namespace graft::inspect
