// graft plugins: the creators and fields in TensorRT plugin libraries, as a real plugin registry sees them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ask_tensorrt.hpp"
#include "cli/engine_command.hpp"
#include "cli/interrupts.hpp"
#include "cli/program.hpp"
#include "graph/model.hpp"
#include "inspect/trials.hpp"

namespace graft::cli {
namespace {

struct Arguments {
  std::vector<std::string> libraries;
  std::string tensorrt = "auto";
  std::string time_limit;
  bool check = false;
};

std::string fields_text(const Json& creator) {
  std::string text;
  for (const auto& field : creator["fields"]) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field.value("name", ""), field.value("type", ""));
    if (field.value("length", 0) > 1) text += fmt::format("[{}]", field.value("length", 0));
  }
  return text.empty() ? "no fields" : text;
}

const Json* find_check(const Json& creator, std::string_view name) {
  const auto found = std::find_if(creator["checks"].begin(), creator["checks"].end(),
                                  [&](const Json& check) { return check.value("check", "") == name; });
  return found == creator["checks"].end() ? nullptr : &*found;
}

/// What a model gives for a field whose meaning is not known: 1. Nothing for types that a model does not have.
std::optional<NodeAttribute> one_of_type(const std::string& type) {
  if (type == "float32" || type == "float64") return NodeAttribute(AttributeData(1.0F));
  if (type == "int32" || type == "int64") return NodeAttribute(AttributeData(std::int64_t{1}));
  return std::nullopt;
}

/// A node of the plugin alone, between f32 inputs and one output.
Model model_of(const Json& creator, std::size_t inputs, const std::vector<std::int64_t>& sizes) {
  Model model;
  model.source = "the model of the check";
  Graph& graph = model.graph();
  graph.opset_imports[""] = 17;
  std::vector<Value*> values;
  for (std::size_t i = 0; i < inputs; ++i) {
    Value* input = values.emplace_back(graph.add_input(fmt::format("x{}", i)));
    input->type = ElementType::f32;
    input->shape = Shape(sizes.begin(), sizes.end());
  }
  Node* node = graph.add_node(creator.value("name", ""), values, {"y"});
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
                                      NodeAttribute(AttributeData(creator.value(name, ""))));
  }
  node->output()->type = ElementType::f32;
  graph.add_output(*node->output());
  return model;
}

Json outcome_of_check(std::string_view check, std::string_view outcome, const std::string& detail) {
  return {{"check", check}, {"outcome", outcome}, {"detail", detail}};
}

/// Whether TensorRT builds an engine in which the plugin is the only layer: it then clones, asks for types, shapes and
/// formats, and serializes. Which inputs a plugin takes no creator says, so that a refusal is no fault; an end of the
/// process is one.
Json check_engine(inspect::Trials& trials, const Json& creator) {
  constexpr const char* name = "engine";
  const Json* creation = find_check(creator, "creation");
  if (creation == nullptr || creation->value("outcome", "") != "passed") {
    return outcome_of_check(name, "not checked", "no plugin could be made to ask");
  }
  const std::vector<std::vector<std::int64_t>> shapes = {{2, 4, 8, 8}, {2, 4, 8}, {2, 4}};
  constexpr std::size_t most_inputs = 3;
  std::string said;
  for (std::size_t inputs = 1; inputs <= most_inputs; ++inputs) {
    for (const std::vector<std::int64_t>& sizes : shapes) {
      const std::string given = fmt::format("{} of f32 {}", count_text(inputs, "input"), fmt::join(sizes, "x"));
      const inspect::Trial trial = trials.build(model_of(creator, inputs, sizes), {}, 1.0);
      if (said.empty()) said = trial.answer.value("message", "");
      if (trial.outcome == inspect::Outcome::accepted) return outcome_of_check(name, "passed", given);
      if (trial.outcome == inspect::Outcome::hung) {
        return outcome_of_check(name, "failed", fmt::format("the build with {} did not come to an end", given));
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

/// Adds the check of engines to those that the driver has made.
void check_engines(const Console& console, const Arguments& arguments, const std::string& tensorrt, Json& libraries) {
  inspect::TrialOptions options;
  options.libraries = arguments.libraries;
  options.tensorrt = tensorrt;
  options.max_builds = std::numeric_limits<std::size_t>::max();
  options.max_seconds = std::numeric_limits<double>::max();
  if (!arguments.time_limit.empty()) options.limit = std::stod(arguments.time_limit);
  const DeferInterrupts defer;
  Progress progress(console);
  try {
    inspect::DriverTrials trials(options, trial_callbacks(console, progress));
    for (Json& library : libraries) {
      for (Json& creator : library["creators"]) creator["checks"].push_back(check_engine(trials, creator));
    }
  } catch (const EngineError& error) {
    progress.clear();
    throw with_options_of_this_program(error);
  }
}

struct Tally {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t not_checked = 0;
};

Tally tally_of(const Json& creator) {
  Tally tally;
  for (const Json& check : creator["checks"]) {
    const std::string outcome = check.value("outcome", "");
    ++(outcome == "passed" ? tally.passed : outcome == "failed" ? tally.failed : tally.not_checked);
  }
  return tally;
}

/// A row for each creator, and one for each check that it did not pass.
Exit report_checks(const Console& console, const Json& tensorrt, const Json& libraries) {
  Table table;
  std::size_t creators = 0;
  std::size_t non_conforming = 0;
  std::size_t not_checked = 0;
  for (const Json& library : libraries) {
    for (const Json& creator : library["creators"]) {
      const Tally tally = tally_of(creator);
      ++creators;
      non_conforming += tally.failed != 0 ? 1 : 0;
      not_checked += tally.not_checked;
      table.add({tally.failed != 0 ? Cell("fails", Color::bad) : Cell("conforms", Color::good),
                 {creator.value("name", ""), Color::strong},
                 creator.value("version", ""),
                 fmt::format("{} passed, {} failed, {} not made", count_text(tally.passed, "check"), tally.failed,
                             tally.not_checked)});
      for (const Json& check : creator["checks"]) {
        const std::string outcome = check.value("outcome", "");
        const bool is_failed = outcome == "failed";
        if (!is_failed && (outcome == "passed" || !console.verbose)) continue;
        table.add({"",
                   {check.value("check", ""), Color::faint},
                   "",
                   {fmt::format("{}{}", is_failed ? "" : "not checked: ", check.value("detail", "")),
                    is_failed ? Color::bad : Color::faint}});
      }
    }
  }
  console.print(fmt::format("{} of {} conform to what {} asks of plugins{}", creators - non_conforming,
                            count_text(creators, "creator"), tensorrt_text(tensorrt),
                            not_checked == 0 || console.verbose ? ""
                                                                : fmt::format("; {} could not be made, -v says why",
                                                                              count_text(not_checked, "check"))));
  console.print();
  console.print(table);
  console.result({{"tensorrt", tensorrt}, {"plugin_libraries", libraries}, {"conforms", non_conforming == 0}});
  return non_conforming == 0 ? Exit::done : Exit::answer_is_no;
}

Exit plugins(const Console& console, const Arguments& arguments) {
  std::vector<std::string> question{"plugins"};
  question.insert(question.end(), arguments.libraries.begin(), arguments.libraries.end());
  question.insert(question.end(), {"--tensorrt", arguments.tensorrt});
  if (!arguments.time_limit.empty()) question.insert(question.end(), {"--time-limit", arguments.time_limit});
  if (arguments.check) question.emplace_back("--check");
  const Json answer = ask_engine_driver(console, question);
  if (arguments.check) {
    Json libraries = answer["plugin_libraries"];
    const std::string flavor = answer["tensorrt"].value("flavor", "");
    // The lean runtime builds nothing.
    if (flavor != "lean") check_engines(console, arguments, flavor, libraries);
    return report_checks(console, answer["tensorrt"], libraries);
  }
  std::size_t count = 0;
  Table table;
  for (const auto& library : answer["plugin_libraries"]) {
    for (const auto& creator : library["creators"]) {
      const std::string space = creator.value("namespace", "");
      table.add({{creator.value("name", ""), Color::strong},
                 creator.value("version", ""),
                 {space.empty() ? "-" : space, Color::faint},
                 creator.value("generation", ""),
                 fields_text(creator)});
      ++count;
    }
  }
  console.print(fmt::format("{}: {} in the registry of {}", fmt::join(arguments.libraries, ", "),
                            count_text(count, "creator"), tensorrt_text(answer["tensorrt"])));
  if (count != 0) {
    console.print();
    console.print(table);
  }
  console.result({{"tensorrt", answer["tensorrt"]}, {"plugin_libraries", answer["plugin_libraries"]}});
  return Exit::done;
}

}  // namespace

void add_plugins(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_command(
      "plugins", "the creators and fields in any TensorRT plugin library, as a real plugin registry sees them",
      "graft plugins build/lib/libgraft_plugins.so", [arguments](const Console& c) { return plugins(c, *arguments); });
  command->add_option("LIBRARY", arguments->libraries, "shared libraries with TensorRT plugins")->required();
  command->add_flag("--check", arguments->check,
                    "whether each creator and its plugin keep TensorRT's contract, and an engine with it builds; exit "
                    "code 1 if not");
  command->add_option("--tensorrt", arguments->tensorrt, "whose registry: auto, rtx, full, lean (auto)")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"auto", "rtx", "full", "lean"}));
  command->add_option("--time-limit", arguments->time_limit, "a library that takes longer counts as hanging (120)")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
}

}  // namespace graft::cli
