// Prepares a model for the engine driver so that operators become plugins, and maps the engine's layers to nodes.
#include "graft/toolkit/build.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/shell_quoted.hpp"
#include "core/suggest.hpp"
#include "engine/engine_layers.hpp"
#include "engine/plugin_library.hpp"
#include "engine/plugin_nodes.hpp"
#include "engine/read_fields.hpp"
#include "graft/engine_error.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "graft/toolkit/commands.hpp"
#include "inspect/different_tensors.hpp"
#include "inspect/plugin_need.hpp"
#include "inspect/tensorrt_release.hpp"
#include "inspect/tensorrt_support.hpp"
#include "inspect/verdicts.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/check_types.hpp"
#include "onnx/declared_shapes.hpp"
#include "onnx/functions.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_calls.hpp"
#include "onnx/operator_name.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/standard_operators.hpp"
#include "onnx/temporary_folder.hpp"
#include "toolkit/access.hpp"
#include "toolkit/build_arguments.hpp"
#include "toolkit/cuda_architectures.hpp"
#include "toolkit/cut.hpp"
#include "toolkit/engine_driver.hpp"
#include "toolkit/gpu_targets.hpp"
#include "toolkit/inspect.hpp"
#include "toolkit/plugin_targets.hpp"

namespace graft::toolkit {
namespace {

/// Returns the release of TensorRT with which an engine was built, or nothing if Graft has no rules for this release.
std::optional<inspect::Release> release_of(const report::TensorRTIdentity& tensorrt) {
  return inspect::find_release(fmt::format("{}-{}", tensorrt.flavor == "rtx" ? "rtx" : "tensorrt", tensorrt.version));
}

/// Returns whether the engine driver builds with TensorRT-RTX for these options.
bool builds_with_rtx(const BuildOptions& options) {
  std::vector<std::string> question = choice_arguments(options);
  question.insert(question.begin(), "choose");
  return ask_engine_driver(question, {}, {}, options.watch).result.value("flavor", "") == "rtx";
}

/// Returns the values of an option NAME=VALUE among the options of the engine driver.
std::vector<std::string> driver_values(const BuildOptions& options, const std::string& name) {
  std::vector<std::string> values;
  for (const std::string& option : options.driver_options) {
    if (option.starts_with(name + "=")) values.push_back(option.substr(name.size() + 1));
  }
  return values;
}

/// Returns the command that cuts the model so that the nodes that need a plugin are left to the host.
std::string command_without_plugins(const Model& given, const BuildOptions& options) {
  const std::filesystem::path file =
      options.model_file.empty() ? std::filesystem::path(given.source()) : options.model_file;
  report::ConvertOptions convert;
  convert.plugins = report::Plugins::never;
  convert.output = file.parent_path() / file.stem();
  convert.output += ".cut.onnx";
  convert.inspect.shapes = options.shapes;
  convert.inspect.shape_texts = driver_values(options, "--shapes");
  convert.inspect.targets = options.targets;
  convert.inspect.tensorrt = options.tensorrt;
  return cut_command(file, {}, convert);
}

/// Returns advice for an error message about GPUs for which the plugin library has no code: commands and steps with
/// which the user gets an engine. `need` describes a node that only a plugin runs; empty if all operators also have
/// native layers. `present` contains the targets for which the library has code.
std::string remedies_without_code(const Model& given, const std::filesystem::path& engine, const BuildOptions& options,
                                  const std::string& need, const std::vector<std::string>& present) {
  BuildOptions without = options;
  if (without.model_file.empty()) without.model_file = given.source();
  without.plugins = false;
  std::string text;
  if (need.empty()) {
    text = fmt::format("Build the operators from their functions, as native layers:\n  {}",
                       build_command(given, engine, without));
  } else {
    text = "Leave this node to the host:\n  " + command_without_plugins(given, options);
  }
  if (!present.empty()) {
    BuildOptions fewer = without;
    fewer.plugins = true;
    fewer.targets = present;
    text += fmt::format("\nor build for the GPUs that the library has code for:\n  {}",
                        build_command(given, engine, fewer));
  }
  return text +
         "\nor install a wheel whose plugin library has code for all GPUs: `make wheel` in Graft's sources builds it "
         "(in "
         "a checkout: GRAFT_CUDA_ARCHITECTURES=all make build)";
}

/// Throws Error (answer_is_no) if Graft's plugin library is one of the `libraries` and has no code for a target of the
/// engine: such an engine would load there, and its plugins would fail.
void check_code_for_targets(const Model& given, const std::filesystem::path& engine, const BuildOptions& options,
                            const std::vector<std::string>& libraries) {
  if (!engine::has_own_plugin_library(libraries)) return;
  const auto [present, missing] = options.targets.empty() ? default_targets() : split_by_code(options.targets);
  // The full TensorRT builds for the GPU of the machine alone.
  if (missing.empty() || !builds_with_rtx(options)) return;
  const std::string need = inspect::find_plugin_need(model_of(given), inspect::newest_measured_release());
  throw Error(Error::Kind::answer_is_no,
              fmt::format("{}: no engine was written, because its plugins cannot run on {}{}: libgraft_plugins.so has "
                          "code for {}{}\n{}",
                          given.source(), fmt::join(missing, ", "),
                          options.targets.empty() ? ", for which TensorRT-RTX builds without a target" : "",
                          architectures_text(cuda_architectures()),
                          need.empty() ? "" : fmt::format("; without plugins TensorRT does not run {}", need),
                          remedies_without_code(given, engine, options, need, present)));
}

void check_has_no_strings(const onnx::Model& model) {
  for (const onnx::Value* input : model.graph().inputs()) {
    if (input->initializer || input->type != onnx::ElementType::string) continue;
    throw Error(Error::Kind::answer_is_no,
                fmt::format("{}: input '{}' is of type string, which TensorRT does not accept\n{}", model.source,
                            input->name, onnx::step_for_strings(model, *input)));
  }
}

/// Throws the errors with which `convert` refuses a model that has a node which ONNX forbids. The check is necessary
/// because TensorRT builds some of these nodes and computes undefined values for them. `libraries` are plugin libraries
/// that TensorRT loads to check types.
void check_model(const onnx::Model& model, const BuildOptions& options, const std::vector<std::string>& libraries) {
  check_nodes(model);
  inspect::ProbeOptions trials;
  trials.trials.libraries = libraries;
  trials.trials.tensorrt = options.tensorrt;
  trials.trials.targets = options.targets;
  check_types(model, trials, [&options] { return options.watch.cancel.is_cancelled(); });
}

/// Returns whether a function in the file, other than the ONNX functions of Graft's own operators, contains a node that
/// may become a plugin. Such a function has to be inlined, so that the node becomes a node of the graph.
bool has_operators_in_functions(const onnx::Model& model) {
  return std::any_of(model.functions.begin(), model.functions.end(), [](const auto& entry) {
    bool found = false;
    std::as_const(*entry.second.body).for_each_node([&](const onnx::Node& node) {
      found = found || find_operator_for(node) || onnx::find_onnx_operator(node) != nullptr;
    });
    return found && onnx::is_plain_call(entry.first);
  });
}

/// Returns a note for each operator that no loaded library has: TensorRT builds such an operator from its function.
std::vector<std::string> built_from_functions(const onnx::Model& model) {
  std::map<std::string, std::size_t> counts;
  for (const onnx::Node* node : calls_without_operator(model)) ++counts[onnx::called_operator(*node)];
  std::vector<std::string> lines;
  for (const auto& [name, count] : counts) {
    lines.push_back(fmt::format(
        "{}{} is built from its function, as native layers, because no loaded library has this operator; load its "
        "library with {} to run the operator as a plugin",
        name, count == 1 ? "" : fmt::format(" ({} nodes)", count), setting_name(Setting::operator_libraries)));
  }
  return lines;
}

/// Returns Graft's operator with the name most similar to the operator of an unknown node, or nothing if no name is
/// similar enough for a typing error.
std::optional<std::string> graft_operator_meant(const onnx::Node& node) {
  std::vector<std::string> names;
  for (const OperatorType* type : operators()) names.emplace_back(type->name);
  return nearest(node.op_type, names);
}

/// Returns the error of TensorRT about an unknown operator with a next step: the operator of ONNX or Graft that the
/// user probably misspelled. Returns other errors unchanged.
EngineError with_operator_meant(const EngineError& error, const onnx::Model& model) {
  EngineFailure failure = error.failure();
  if (failure.message.find("Plugin not found") == std::string::npos) return error;
  std::string meant;
  model.graph().for_each_node([&](const onnx::Node& node) {
    const bool is_known = onnx::is_standard_operator(node.domain, node.op_type) || find_operator_for(node) ||
                          model.find_function(node) != nullptr;
    if (is_known || !meant.empty()) return;
    if (const auto name = onnx::standard_operator_meant(node)) {
      meant = fmt::format("If {1} is meant to be ONNX's {0}, set the node's operator type to {0}{2}", *name,
                          onnx::describe(node), node.domain.empty() ? "" : " and remove its domain");
    } else if (const auto own = graft_operator_meant(node)) {
      meant = fmt::format("If {1} is meant to be Graft's {0}, set the node's operator type to {0}", *own,
                          onnx::describe(node));
    }
  });
  if (meant.empty()) return error;
  failure.next_step = failure.next_step.empty() ? meant : fmt::format("{}\n{}", meant, failure.next_step);
  return {error.kind(), std::move(failure)};
}

/// Improves an error of the engine driver about missing ranges: replaces the example in it by suggested ranges for the
/// same inputs. Removes the example if no range is suggested or if shape inference refuses the suggested ones. Returns
/// other errors unchanged, including those that name a Python argument instead of an option.
EngineError with_suggested_ranges(const EngineError& error, const Model& model) {
  EngineFailure failure = error.failure();
  const std::string_view name = setting_name(Setting::shape_ranges);
  const std::string example = fmt::format(", for example {} ", name);
  const std::size_t begin = failure.next_step.find(example);
  if (failure.kind != "shapes" || begin == std::string::npos) return error;
  const std::size_t end = std::min(failure.next_step.find('\n', begin), failure.next_step.size());
  const std::string driver_example = failure.next_step.substr(begin, end - begin);
  const SuggestedRanges suggested = suggest_ranges(model);
  std::vector<std::string> ranges;
  for (const std::string& range : suggested.ranges) {
    const bool is_missing =
        driver_example.find(fmt::format(" {}", range.substr(0, range.rfind('=') + 1))) != std::string::npos;
    if (!suggested.are_computable || !is_missing) continue;
    ranges.push_back(fmt::format("{} {}", name, name.starts_with('-') ? shell_argument(range) : range));
  }
  failure.next_step.replace(begin, end - begin,
                            ranges.empty() ? " of sizes for which the network is valid"
                                           : fmt::format(", for example {}", fmt::join(ranges, " ")));
  return {error.kind(), std::move(failure)};
}

/// Adds the next step to TensorRT's error about a TopK whose K is too large, if the build uses no plugins and the model
/// has nodes of Graft's operators. In that case the TopK may come from the ONNX function of such an operator
/// (CombinedNonMaxSuppression with `top_k` above 3840). Returns other errors unchanged.
EngineError with_large_top_k(const EngineError& error, const Model& given, const BuildOptions& options) {
  const std::string_view said = error.what();
  const bool is_of_top_k = said.find("K exceeds the maximum value") != std::string_view::npos;
  if (options.plugins || !is_of_top_k || engine::find_plugin_nodes(model_of(given)).empty()) return error;
  EngineFailure failure = error.failure();
  failure.next_step = fmt::format(
      "The function of an operator of Graft selects more than the 3840 elements that TensorRT's TopK supports, so that "
      "TensorRT runs the operator only as a plugin: remove {}, or leave the operator to the host:\n  {}",
      setting_name(Setting::without_plugins), command_without_plugins(given, options));
  return {error.kind(), std::move(failure)};
}

/// Returns the error with each "node '' (Op)" in its message, the driver's text for a node without a name, replaced by
/// the description that onnx::describe() returns.
EngineError with_names(const EngineError& error, const onnx::Model& model) {
  EngineFailure failure = error.failure();
  const nlohmann::json facts = nlohmann::json::parse(failure.facts);
  const auto nodes = model.graph().nodes();
  for (const auto& each : facts.value("errors", nlohmann::json::array())) {
    const std::string op = each.value("op_type", "");
    const std::string unnamed = fmt::format("node '' ({})", op);
    const std::size_t at = failure.message.find(unnamed);
    const auto index = each.value("index", std::int64_t{-1});
    if (at == std::string::npos || index < 0 || index >= static_cast<std::int64_t>(nodes.size())) continue;
    const onnx::Node& node = *nodes[static_cast<std::size_t>(index)];
    // The index of a node in a body is one in that body.
    if (node.op_type == op) failure.message.replace(at, unnamed.size(), onnx::describe(node));
  }
  return {error.kind(), std::move(failure)};
}

/// Adds to `nodes` a verdict on each node whose output has another type or shape in TensorRT's network than ONNX
/// defines, unless `nodes` already has a problem of the node. `parsed` is the model as TensorRT parsed it, and
/// `tensors` the JSON list of TensorRT's tensors that the engine driver returned.
void add_different_tensors(const onnx::Model& parsed, const nlohmann::json& tensors,
                           std::vector<report::NodeSupport>& nodes) {
  for (const auto& different : inspect::find_different_tensors(parsed, tensors)) {
    const onnx::Node& node = *parsed.graph().find_local(different.name)->producer;
    const NodeRef ref = onnx::ref_of(node);
    const bool is_known = std::any_of(nodes.begin(), nodes.end(), [&](const report::NodeSupport& each) {
      return each.node.id == ref.id && each.support != report::Support::native;
    });
    if (is_known) continue;
    std::erase_if(nodes, [&](const report::NodeSupport& each) { return each.node.id == ref.id; });
    report::NodeSupport& added = nodes.emplace_back();
    added.node = ref;
    added.op = onnx::qualified_operator_name(node);
    added.judge = report::Judge::builder;
    inspect::note_different_tensor(different.reason, false, added);
  }
}

/// Returns a warning for each input or output of the engine that has another name than in the model, because TensorRT
/// renames an input that is also an output.
std::vector<std::string> renamed_tensors(const onnx::Graph& graph, const report::ParsedNetwork& network) {
  std::vector<std::string> warnings;
  const auto compare = [&](const char* kind, const std::vector<onnx::Value*>& values,
                           const std::vector<report::NetworkTensor>& tensors) {
    std::vector<std::string> own;
    for (const onnx::Value* value : values) own.push_back(value->name);
    const auto is_known = [&](const std::string& name) { return std::find(own.begin(), own.end(), name) != own.end(); };
    std::vector<std::string> others;
    for (const report::NetworkTensor& tensor : tensors) {
      if (is_known(tensor.name)) {
        std::erase(own, tensor.name);
      } else {
        others.push_back(tensor.name);
      }
    }
    if (others.size() > own.size()) return;
    for (std::size_t i = 0; i < others.size(); ++i) {
      warnings.push_back(
          fmt::format("the engine's {} is named '{}' instead of '{}': add an Identity between the input and the output "
                      "of this name "
                      "to the model, so that they have different names",
                      kind, others[i], own[i]));
    }
  };
  compare("input", graph.inputs(), network.inputs);
  compare("output", graph.outputs(), network.outputs);
  return warnings;
}

/// Returns the nodes of the model that the TensorRT of a build is known to compute wrongly. Nodes that `convert`
/// rewrites have the verdict `lowered`; all other nodes keep their verdict and advice. Returns an empty list for a
/// release without rules.
std::vector<report::NodeSupport> find_computed_wrongly(const onnx::Model& given,
                                                       const report::TensorRTIdentity& tensorrt) {
  const std::optional<inspect::Release> release = release_of(tensorrt);
  if (!release) return {};
  std::vector<report::NodeSupport> nodes = inspect::judge_nodes(inspect::inferred_copy(given), {}, *release);
  std::erase_if(nodes, [](const report::NodeSupport& node) { return node.cause != inspect::computed_wrongly; });
  for (report::NodeSupport& node : nodes) {
    if (node.advice != inspect::advice_to_convert()) continue;  // it has advice of its own
    node.support = report::Support::lowered;
    node.advice = "`graft convert` rewrites it";
  }
  return nodes;
}

std::vector<std::string> given_libraries(const BuildOptions& options) {
  std::vector<std::string> libraries;
  for (const auto& library : options.plugin_libraries) libraries.push_back(library.string());
  return libraries;
}

/// Changes the model so that its operators that become plugins are nodes of the graph, and returns these nodes.
engine::PluginNodes prepare_plugins(onnx::Model& model, const BuildOptions& options) {
  if (options.plugins && has_operators_in_functions(model)) {
    onnx::InlineOptions inlining;
    inlining.which = onnx::is_plain_call;
    inline_functions(model, inlining);
  }
  // The full TensorRT has native layers for these operators of ONNX.
  if (options.plugins && has_onnx_operators(model) && builds_with_rtx(options)) adopt_onnx_operators(model);
  return engine::find_plugin_nodes(model);
}

/// Returns the plugin libraries that a build with these options loads if `nodes` of the model become plugins.
std::vector<std::string> libraries_for(const Model& given, const BuildOptions& options,
                                       const engine::PluginNodes& nodes) {
  return plugin_libraries(given.source(), given_libraries(options), nodes, [&] {
    return inspect::find_plugin_need(model_of(given), inspect::newest_measured_release());
  });
}

}  // namespace

void check_plugin_targets(const Model& given, const std::filesystem::path& engine, const BuildOptions& options) {
  if (!options.plugins) return;
  onnx::Model model = model_of(given).clone();
  const engine::PluginNodes nodes = prepare_plugins(model, options);
  if (!nodes.empty()) check_code_for_targets(given, engine, options, libraries_for(given, options, nodes));
}

BuildReport build(const Model& given, const std::filesystem::path& engine, const BuildOptions& given_options) {
  const std::string& name = given.source();
  BuildOptions options = given_options;
  options.targets = parse_targets(options.targets);
  check_is_one_network(options.model_file);
  std::vector<std::string> libraries = given_libraries(options);
  onnx::Model model = model_of(given).clone();
  check_model(model, options, libraries);
  check_has_no_strings(model);
  check_input_ranks(model, fmt::format("{} of a conversion,", setting_name(Setting::input_shapes)));
  std::vector<std::string> notes = file_warnings(model, ModelAccess::origin_of(given));
  const engine::PluginNodes plugin_nodes = prepare_plugins(model, options);
  if (options.plugins) {
    for (std::string& note : built_from_functions(model)) notes.push_back(std::move(note));
  }
  const bool with_plugins = options.plugins && !plugin_nodes.empty();
  if (with_plugins) {
    libraries = libraries_for(given, options, plugin_nodes);
    check_code_for_targets(given, engine, options, libraries);
  }
  std::optional<onnx::TemporaryFolder> folder;
  std::string file = options.model_file.string();
  engine::Renamings renamings;
  // TensorRT's parser prefers a function in the file to the plugin of the same name, so the functions are removed.
  if (with_plugins) detach_functions(model);
  if (with_plugins || file.empty()) {
    folder.emplace();
    file = (folder->path() / "model.onnx").string();
    onnx::write_onnx(model, file);
    renamings.emplace_back(file, name);
  }
  std::vector<std::string> command = build_arguments(given, options);
  command.insert(command.begin(), {"build", file, "--output=" + engine.string()});
  for (const std::string& library : libraries) command.push_back("--plugin-library=" + library);
  engine::EngineAnswer answer;
  try {
    answer = ask_engine_driver(command, renamings, options.on_log, options.watch);
  } catch (const EngineError& error) {
    throw with_suggested_ranges(with_large_top_k(with_operator_meant(with_names(error, model), model), given, options),
                                given);
  }
  BuildReport report{engine::read_fields<report::BuiltEngine>(answer.result)};
  report.model = name;
  for (report::PluginLayer& plugin : report.network.plugins) {
    const auto known = plugin_nodes.find(plugin.node);
    plugin.why = known != plugin_nodes.end() ? known->second.why : "the model requests this plugin by name";
  }
  report.notes = std::move(notes);
  for (std::string& warning : renamed_tensors(model.graph(), report.network)) {
    report.notes.push_back(std::move(warning));
  }
  report.tensorrt_warnings = std::move(answer.warnings);
  report.computed_wrongly = find_computed_wrongly(model_of(given), report.tensorrt);
  const bool is_given_model = !folder;
  add_different_tensors(is_given_model ? model_of(given) : model,
                        answer.result.value("tensors", nlohmann::json::object()), report.computed_wrongly);
  if (options.layers) report.layers = engine::read_engine_layers(model, answer.result["engine_layers"]);
  return report;
}

void set_python(const std::filesystem::path& interpreter) { engine::set_python(interpreter); }

}  // namespace graft::toolkit
