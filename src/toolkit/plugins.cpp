// Lists the creators of plugin libraries, and builds small engines with their plugins.
#include "graft/toolkit/plugins.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "engine/driver.hpp"
#include "engine/read_fields.hpp"
#include "graft/setting.hpp"
#include "inspect/trials.hpp"
#include "onnx/model.hpp"
#include "toolkit/engine_driver.hpp"
#include "toolkit/inspect.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {
namespace {

using report::PluginCheck;
using report::PluginCreator;

/// Returns the result of the check that the creator can create a plugin, or null if this check was not made.
const PluginCheck* creation_of(const PluginCreator& creator) {
  const auto found = std::find_if(creator.checks.begin(), creator.checks.end(),
                                  [](const PluginCheck& check) { return check.check == "creation"; });
  return found == creator.checks.end() ? nullptr : &*found;
}

/// Returns an attribute with the value 1, for a field of unknown meaning; nothing for a type that no attribute of a
/// model has.
std::optional<onnx::NodeAttribute> one_of_type(const std::string& type) {
  if (type == "float32" || type == "float64") return onnx::NodeAttribute(onnx::AttributeData(1.0F));
  if (type == "int32" || type == "int64") return onnx::NodeAttribute(onnx::AttributeData(std::int64_t{1}));
  return std::nullopt;
}

/// Returns a model with a single node, the plugin, that reads f32 inputs of these sizes and has one output.
graft::onnx::Model model_of(const PluginCreator& creator, const std::vector<std::vector<std::int64_t>>& inputs) {
  graft::onnx::Model model;
  model.source = "the test model with one plugin";
  onnx::Graph& graph = model.graph();
  graph.opset_imports[""] = 17;
  std::vector<onnx::Value*> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    onnx::Value* input = values.emplace_back(graph.add_input(fmt::format("x{}", i)));
    input->type = onnx::ElementType::f32;
    input->shape = Shape(inputs[i].begin(), inputs[i].end());
  }
  onnx::Node* node = graph.add_node(creator.name, values, {"y"});
  const PluginCheck* creation = creation_of(creator);
  if (creation != nullptr && creation->detail == "ones") {
    for (const report::PluginField& field : creator.plugin_fields) {
      if (auto one = one_of_type(field.type)) node->attributes.insert_or_assign(field.name, std::move(*one));
    }
  }
  const auto text = [](const std::string& value) { return onnx::NodeAttribute(onnx::AttributeData(value)); };
  node->attributes.insert_or_assign("plugin_version", text(creator.version));
  node->attributes.insert_or_assign("plugin_namespace", text(creator.plugin_namespace));
  node->output()->type = onnx::ElementType::f32;
  graph.add_output(*node->output());
  return model;
}

/// Returns the sizes of the inputs for each test model, the likely ones first. Either all inputs have one shape, or the
/// inputs after the first are 1-D with one of the first input's sizes, for plugins that read parameters such as one
/// number for each channel.
std::vector<std::vector<std::vector<std::int64_t>>> test_inputs(std::size_t most_inputs) {
  const std::vector<std::vector<std::int64_t>> shapes = {{2, 4, 8, 8}, {2, 4, 8}, {2, 4}};
  std::vector<std::vector<std::vector<std::int64_t>>> all;
  for (std::size_t count = 1; count <= most_inputs; ++count) {
    for (const std::vector<std::int64_t>& first : shapes) {
      std::vector<std::vector<std::int64_t>> others{first};
      for (const std::int64_t size : std::set<std::int64_t>(first.begin(), first.end())) {
        if (count > 1) others.push_back({size});
      }
      for (const std::vector<std::int64_t>& other : others) {
        all.emplace_back(count, other).front() = first;
      }
    }
  }
  return all;
}

/// Checks whether TensorRT builds an engine whose only layer is the plugin. During the build TensorRT clones the
/// plugin, calls its functions for types, shapes and formats, and serializes it. A creator does not list the inputs of
/// its plugin, so a refusal is no failure of the check; an end of the process, or a hang, is a failure.
PluginCheck check_engine(inspect::Trials& trials, const PluginCreator& creator) {
  constexpr const char* name = "engine";
  const PluginCheck* creation = creation_of(creator);
  if (creation == nullptr || !creation->is_passed()) {
    return {name, "not checked", "no plugin could be created for this check"};
  }
  constexpr std::size_t most_inputs = 3;
  std::map<std::size_t, std::string> said;  // the first message for each number of inputs
  for (const std::vector<std::vector<std::int64_t>>& inputs : test_inputs(most_inputs)) {
    std::vector<std::string> sizes;
    for (const std::vector<std::int64_t>& input : inputs) sizes.push_back(fmt::format("{}", fmt::join(input, "x")));
    const std::string given =
        fmt::format("{} of f32 {}", inputs.size() == 1 ? "1 input" : fmt::format("{} inputs", inputs.size()),
                    fmt::join(sizes, ", "));
    const inspect::Trial trial = trials.build(model_of(creator, inputs), {}, 1.0);
    said.try_emplace(inputs.size(), trial.answer.value("message", ""));
    if (trial.outcome == inspect::Outcome::accepted) return {name, "passed", given};
    if (trial.outcome == inspect::Outcome::hung) {
      return {name, "failed", fmt::format("the build with {} did not finish", given)};
    }
    if (trial.outcome == inspect::Outcome::crashed) {
      const auto signal = trial.answer.find("signal");
      const bool has_signal = signal != trial.answer.end() && signal->is_string();
      return {name, "failed",
              fmt::format("the build with {} ended the process {}", given,
                          has_signal ? fmt::format("by signal {}", signal->get<std::string>())
                                     : fmt::format("with exit code {}", trial.answer.value("return_code", 0)))};
    }
  }
  // A plugin refuses a wrong number of inputs when TensorRT requests its output types. Another refusal says more.
  const auto is_about_number = [](const auto& each) {
    return each.second.find("getOutputDataTypes") != std::string::npos;
  };
  auto telling = std::find_if_not(said.begin(), said.end(), is_about_number);
  if (telling == said.end()) telling = said.begin();
  std::string message = telling->second;
  std::replace(message.begin(), message.end(), '\n', ' ');
  return {name, "not checked",
          fmt::format("TensorRT built no engine with 1 to {} f32 inputs, the first of 2, 3 or 4 dimensions and the "
                      "others of the same shape or of one dimension; a creator does not list what its plugin accepts, "
                      "so build an engine of a network that has the plugin ({}); the first message with {}: {}",
                      most_inputs, setting_name(Setting::build_with_library),
                      telling->first == 1 ? "1 input" : fmt::format("{} inputs", telling->first), message)};
}

void add_engine_checks(Work& work, PluginsReport& report, const inspect::TrialOptions& options,
                       const TrialCallback& on_end) {
  try {
    inspect::DriverTrials trials(options, [&work] { return work.is_cancelled(); });
    trials.load(options.libraries, trial_callbacks(work, on_end));
    for (report::PluginLibrary& library : report.libraries) {
      for (PluginCreator& creator : library.creators) creator.checks.push_back(check_engine(trials, creator));
    }
  } catch (const engine::Interrupted&) {
    throw Cancelled();
  }
}

/// Adds to each creator the check whether an engine with the plugin builds, and sets the counts of all checks. The lean
/// runtime has no builder, so its creators get no such check.
void check_engines(PluginsReport& report, const std::vector<std::string>& libraries, const PluginsOptions& options,
                   const Watch& watch) {
  const std::string flavor = report.tensorrt.flavor;
  inspect::TrialOptions trial;
  trial.libraries = libraries;
  trial.tensorrt = flavor;
  trial.max_builds = std::numeric_limits<std::size_t>::max();
  trial.max_seconds = std::numeric_limits<double>::max();
  if (options.time_limit > 0) trial.limit = options.time_limit;
  Work work(watch);
  work.run([&] {
    if (flavor != "lean") add_engine_checks(work, report, trial, options.on_trial);
    return true;
  });
  report::CheckCounts& counts = report.checks.emplace();
  for (const report::PluginLibrary& library : report.libraries) {
    for (const PluginCreator& creator : library.creators) counts.add(creator.checks);
  }
}

/// Returns a Watch for the first or the second half of a call's work: progress from 0 to 1 is reported as progress from
/// `begin` to `begin` + 0.5.
Watch half_of(const Watch& watch, double begin) {
  if (!watch.progress) return watch;
  return {.progress = [&watch, begin](double fraction,
                                      std::string_view text) { watch.progress(begin + fraction / 2, text); },
          .cancel = watch.cancel};
}

}  // namespace

PluginsReport list_plugins(const std::vector<std::string>& libraries, const PluginsOptions& options) {
  std::vector<std::string> question{"plugins"};
  question.insert(question.end(), libraries.begin(), libraries.end());
  question.insert(question.end(), {"--tensorrt", options.tensorrt});
  if (options.time_limit > 0) question.insert(question.end(), {"--time-limit", fmt::format("{}", options.time_limit)});
  if (options.check) question.emplace_back("--check");
  if (options.on_log) question.emplace_back("--verbose");
  engine::EngineAnswer answer =
      ask_engine_driver(question, {}, options.on_log, options.check ? half_of(options.watch, 0) : options.watch);
  auto report = engine::read_fields<PluginsReport>(answer.result);
  report.tensorrt_warnings = std::move(answer.warnings);
  if (options.on_warning) std::ranges::for_each(report.tensorrt_warnings, options.on_warning);
  if (options.check) check_engines(report, libraries, options, half_of(options.watch, 0.5));
  return report;
}

}  // namespace graft::toolkit
