// Lists the creators of plugin libraries, and builds small engines with their plugins.
#include "toolkit/plugins.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/driver.hpp"
#include "engine/engine_session.hpp"
#include "inspect/trials.hpp"
#include "onnx/model.hpp"
#include "toolkit/trials.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {
namespace {

using Json = nlohmann::ordered_json;

const Json* find_check(const Json& creator, std::string_view name) {
  const auto found = std::find_if(creator["checks"].begin(), creator["checks"].end(),
                                  [&](const Json& check) { return check.value("check", "") == name; });
  return found == creator["checks"].end() ? nullptr : &*found;
}

/// Returns an attribute with the value 1, for a field of unknown meaning; nothing for a type that no attribute of a
/// model has.
std::optional<onnx::NodeAttribute> one_of_type(const std::string& type) {
  if (type == "float32" || type == "float64") return onnx::NodeAttribute(onnx::AttributeData(1.0F));
  if (type == "int32" || type == "int64") return onnx::NodeAttribute(onnx::AttributeData(std::int64_t{1}));
  return std::nullopt;
}

/// Returns a model with a single node, the plugin, that reads f32 inputs of the given sizes and has one output.
graft::onnx::Model model_of(const Json& creator, std::size_t inputs, const std::vector<std::int64_t>& sizes) {
  graft::onnx::Model model;
  model.source = "the model of the check";
  onnx::Graph& graph = model.graph();
  graph.opset_imports[""] = 17;
  std::vector<onnx::Value*> values;
  for (std::size_t i = 0; i < inputs; ++i) {
    onnx::Value* input = values.emplace_back(graph.add_input(fmt::format("x{}", i)));
    input->type = onnx::ElementType::f32;
    input->shape = Shape(sizes.begin(), sizes.end());
  }
  onnx::Node* node = graph.add_node(creator.value("name", ""), values, {"y"});
  const Json* creation = find_check(creator, "creation");
  if (creation != nullptr && creation->value("detail", "") == "ones") {
    for (const Json& field : creator["fields"]) {
      if (auto one = one_of_type(field.value("type", ""))) {
        node->attributes.insert_or_assign(field.value("name", ""), std::move(*one));
      }
    }
  }
  for (const char* name : {"version", "namespace"}) {
    node->attributes.insert_or_assign(fmt::format("plugin_{}", name),
                                      onnx::NodeAttribute(onnx::AttributeData(creator.value(name, ""))));
  }
  node->output()->type = onnx::ElementType::f32;
  graph.add_output(*node->output());
  return model;
}

Json outcome_of_check(std::string_view check, std::string_view outcome, const std::string& detail) {
  return {{"check", check}, {"outcome", outcome}, {"detail", detail}};
}

/// Checks whether TensorRT builds an engine whose only layer is the plugin. During the build TensorRT clones the
/// plugin, calls its functions for types, shapes and formats, and serializes it. A creator does not list the inputs of
/// its plugin, so a refusal is no failure of the check; an end of the process, or a hang, is a failure.
Json check_engine(inspect::Trials& trials, const Json& creator) {
  constexpr const char* name = "engine";
  const Json* creation = find_check(creator, "creation");
  if (creation == nullptr || creation->value("outcome", "") != "passed") {
    return outcome_of_check(name, "not checked", "no plugin could be created for it");
  }
  const std::vector<std::vector<std::int64_t>> shapes = {{2, 4, 8, 8}, {2, 4, 8}, {2, 4}};
  constexpr std::size_t most_inputs = 3;
  std::string said;
  for (std::size_t inputs = 1; inputs <= most_inputs; ++inputs) {
    for (const std::vector<std::int64_t>& sizes : shapes) {
      const std::string given = fmt::format("{} of f32 {}", inputs == 1 ? "1 input" : fmt::format("{} inputs", inputs),
                                            fmt::join(sizes, "x"));
      const inspect::Trial trial = trials.build(model_of(creator, inputs, sizes), {}, 1.0);
      if (said.empty()) said = trial.answer.value("message", "");
      if (trial.outcome == inspect::Outcome::accepted) return outcome_of_check(name, "passed", given);
      if (trial.outcome == inspect::Outcome::hung) {
        return outcome_of_check(name, "failed", fmt::format("the build with {} did not finish", given));
      }
      if (trial.outcome == inspect::Outcome::crashed) {
        const auto signal = trial.answer.find("signal");
        const bool has_signal = signal != trial.answer.end() && signal->is_string();
        return outcome_of_check(
            name, "failed",
            fmt::format("the build with {} ended the process {}", given,
                        has_signal ? fmt::format("by signal {}", signal->get<std::string>())
                                   : fmt::format("with exit code {}", trial.answer.value("return_code", 0))));
      }
    }
  }
  return outcome_of_check(
      name, "not checked",
      fmt::format("TensorRT built no engine with 1 to {} f32 inputs of 2, 3 or 4 dimensions; first answer: {}",
                  most_inputs, said));
}

void add_engine_checks(Work& work, PluginsReport& report, const inspect::TrialOptions& options,
                       const TrialCallback& on_end) {
  try {
    inspect::DriverTrials trials(options, [&work] { return work.is_cancelled(); });
    trials.load(options.libraries, trial_callbacks(work, on_end));
    for (Json& library : report.libraries) {
      for (Json& creator : library["creators"]) creator["checks"].push_back(check_engine(trials, creator));
    }
  } catch (const engine::Interrupted&) {
    throw Cancelled();
  }
}

}  // namespace

PluginsReport list_plugins(const PluginsRequest& request, const AskDriver& ask) {
  std::vector<std::string> question{"plugins"};
  question.insert(question.end(), request.libraries.begin(), request.libraries.end());
  question.insert(question.end(), {"--tensorrt", request.tensorrt});
  if (!request.time_limit.empty()) question.insert(question.end(), {"--time-limit", request.time_limit});
  if (request.check) question.emplace_back("--check");
  Json answer = ask(question);
  return {.tensorrt = engine::tensorrt_in(answer), .libraries = std::move(answer["plugin_libraries"]), .checks = {}};
}

void check_engines(PluginsReport& report, const PluginsRequest& request, const Watch& watch,
                   const TrialCallback& on_end) {
  const std::string flavor = report.tensorrt.flavor;
  inspect::TrialOptions options;
  options.libraries = request.libraries;
  options.tensorrt = flavor;
  options.max_builds = std::numeric_limits<std::size_t>::max();
  options.max_seconds = std::numeric_limits<double>::max();
  if (!request.time_limit.empty()) options.limit = std::stod(request.time_limit);
  Work work(watch);
  work.run([&] {
    if (flavor != "lean") add_engine_checks(work, report, options, on_end);
    return true;
  });
  for (const Json& library : report.libraries) {
    for (const Json& creator : library["creators"]) {
      const CheckCounts counts = count_checks(creator);
      report.checks.passed += counts.passed;
      report.checks.failed += counts.failed;
      report.checks.left_out += counts.left_out;
    }
  }
}

}  // namespace graft::toolkit
