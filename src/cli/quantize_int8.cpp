// graft quantize --precision int8: scales from data or from a cache, QuantizeLinear and DequantizeLinear.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "cli/interrupts.hpp"
#include "cli/metric_command.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/quantize.hpp"
#include "cli/tensors.hpp"
#include "graft/error.hpp"
#include "graph/check_operators.hpp"
#include "graph/onnx_io.hpp"
#include "import/read_model.hpp"
#include "present/html/page.hpp"
#include "present/html/quantize_int8_page.hpp"
#include "present/html/quantize_page.hpp"
#include "present/json/values.hpp"
#include "quant/choose_int8.hpp"
#include "runtime/default_engine.hpp"

namespace graft::cli {
namespace {

/// A path as it is, or NAME=FILE as everywhere.
bool is_path(const std::string& text) {
  std::error_code problem;
  return text.find('=') == std::string::npos || std::filesystem::exists(text, problem);
}

CalibrationData open_data(const Console& console, const QuantizeArguments& arguments, const Model& model) {
  if (arguments.data.empty()) return {};
  if (arguments.data.size() == 1 && is_path(arguments.data.front())) {
    std::optional<ImageRecipe> recipe;
    std::error_code problem;
    if (!arguments.recipe.empty() && !std::filesystem::is_directory(arguments.data.front(), problem)) {
      throw Error(fmt::format("--recipe: it is for a folder of images; {} is none", arguments.data.front()));
    }
    if (!arguments.recipe.empty()) recipe = read_image_recipe(arguments.recipe);
    return open_calibration_data(arguments.data.front(), model, recipe, arguments.samples);
  }
  const TensorMap tensors = read_tensors("--data", arguments.data);
  warn_of_nan(console, "--data", tensors);
  return calibration_data_of(tensors, model, arguments.samples);
}

void check_data(const QuantizeArguments& arguments) {
  if (arguments.data.empty() && arguments.cache.empty()) {
    throw Error(
        "--data: int8 needs ranges, and synthetic inputs have others than real ones\n"
        "Give inputs as the network will see them, a hundred or more, or a calibration cache with --cache");
  }
  const auto given = [](const CLI::Option* option) { return option->count() != 0; };
  if (given(arguments.percentile_option) && arguments.method != "percentile") {
    throw Error(fmt::format("--percentile: it has no meaning with --method {}", arguments.method));
  }
  for (const CLI::Option* option : {arguments.method_option, arguments.percentile_option}) {
    if (given(option) && !arguments.cache.empty()) {
      throw Error(fmt::format("{}: it has no meaning with --cache, which holds the scales", option->get_name()));
    }
  }
  if (!arguments.data.empty()) return;
  for (const CLI::Option* option : {arguments.metric_option, arguments.max_drop_option, arguments.limit_option}) {
    if (option->count() == 0) continue;
    throw Error(
        fmt::format("{}: it needs --data beside --cache, by which single layers are judged", option->get_name()));
  }
}

std::size_t count_of(const Int8Plan& plan, Int8Kind kind) {
  return static_cast<std::size_t>(
      std::count_if(plan.nodes.begin(), plan.nodes.end(), [&](const Int8Node& node) { return node.kind == kind; }));
}

void say_nodes(const Console& console, const ChosenInt8& chosen, bool explain) {
  constexpr std::size_t widest = 60;
  Table table;
  for (const Int8Node& node : chosen.plan.nodes) {
    const bool is_kept = node.kind == Int8Kind::kept;
    if (!is_kept && !explain) continue;
    table.add({{present::type_name(chosen, node), is_kept && !node.by_form ? Color::caution : Color::none},
               shortened(describe(node.node), widest),
               {present::explanation(node), is_kept ? Color::none : Color::faint}});
  }
  if (table.empty()) return;
  console.say();
  console.say(explain ? "Nodes" : "Not in int8");
  console.say(table);
}

void say_tensors(const Console& console, const ChosenInt8& chosen) {
  constexpr std::size_t widest = 48;
  constexpr double whole = 100;
  Table table;
  for (const Int8Tensor& tensor : chosen.tensors) {
    std::string found;
    if (tensor.found) {
      found = fmt::format("{:.4g} to {:.4g}", tensor.found->figures().lowest, tensor.found->figures().highest);
      if (tensor.snr_db) found += fmt::format(", {:.1f} dB after rounding", *tensor.snr_db);
      if (tensor.saturated > 0) found += fmt::format(", {:.2g} % saturate", whole * tensor.saturated);
    }
    table.add({shortened(tensor.name, widest), fmt::format("±{:.4g}", tensor.threshold), {found, Color::faint}});
  }
  console.say();
  console.say("Tensors in int8, and what becomes 127 steps");
  console.say(table);
}

void say_outputs(const Console& console, const ChosenInt8& chosen) {
  if (chosen.outputs.empty()) return;
  Table table;
  for (std::size_t i = 0; i < chosen.outputs.size(); ++i) {
    const std::string is = present::quality_text(chosen.outputs[i]);
    const std::string was = present::quality_text(chosen.plain[i]);
    table.add({{chosen.outputs[i].name, Color::strong}, is});
    if (is != was) table.add({"", {fmt::format("nothing kept: {}", was), Color::faint}});
  }
  console.say();
  console.say(fmt::format("Outputs, against the f32 network on the CPU, for {}",
                          count_text(static_cast<std::size_t>(chosen.judged), "sample")));
  console.say(table);
}

/// What the user's metric says, the f32 network's beside it.
void say_metric(const Console& console, const ChosenInt8& chosen) {
  const auto text = [](const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : "none"; };
  const std::string first = text(chosen.trials.front().metric);
  const std::string last = text(chosen.metric_int8);
  console.say();
  console.say(fmt::format("Metric: {} in f32, {} in int8{}", text(chosen.metric_f32), last,
                          first == last ? "" : fmt::format(", {} with nothing kept", first)));
}

Json json_of_nodes(const ChosenInt8& chosen) {
  Json nodes = Json::array();
  for (const Int8Node& node : chosen.plan.nodes) {
    nodes.push_back({{"node", node.node.name},
                     {"operator", node.node.op},
                     {"output", node.node.id},
                     {"type", present::type_name(chosen, node)},
                     {"why", node.kind != Int8Kind::kept ? Json() : Json(node.by_form ? "form" : "kept")},
                     {"reason", present::explanation(node)}});
  }
  return nodes;
}

Json json_of_tensors(const ChosenInt8& chosen) {
  Json tensors = Json::array();
  for (const Int8Tensor& tensor : chosen.tensors) {
    Json json = {{"name", tensor.name},
                 {"group", tensor.group},
                 {"scale", present::number(tensor.scale)},
                 {"threshold", present::number(tensor.threshold)}};
    if (tensor.found) {
      json["lowest"] = present::number(tensor.found->figures().lowest);
      json["highest"] = present::number(tensor.found->figures().highest);
      json["saturated"] = present::number(tensor.saturated);
      json["rounding_snr_db"] = present::number(tensor.snr_db);
    }
    tensors.push_back(std::move(json));
  }
  return tensors;
}

Json json_of_search(const ChosenInt8& chosen) {
  Json sensitivities = Json::array();
  for (const Sensitivity& layer : chosen.sensitivities) {
    sensitivities.push_back(
        {{"node", layer.node.name}, {"output", layer.node.id}, {"snr_db", present::number(layer.snr_db)}});
  }
  Json trials = Json::array();
  for (const Int8Trial& trial : chosen.trials) {
    trials.push_back({{"kept", trial.kept},
                      {"snr_db", present::number(trial.snr_db)},
                      {"metric", present::number(trial.metric)},
                      {"bytes_moved", trial.cost.bytes_moved},
                      {"int8_multiply_adds", trial.cost.int8_multiply_adds},
                      {"f32_multiply_adds", trial.cost.f32_multiply_adds}});
  }
  return {{"sensitivities", sensitivities}, {"trials", trials}};
}

Int8Options options_of(const QuantizeArguments& arguments) {
  Int8Options options;
  options.thresholds = {.method = *parse_threshold_method(arguments.method), .percentile = arguments.percentile};
  options.keep = arguments.keep;
  options.only = arguments.only;
  options.state = arguments.state;
  options.judged = arguments.judged;
  const auto improves = [&](std::string_view what) {
    return std::find(arguments.improve.begin(), arguments.improve.end(), what) != arguments.improve.end();
  };
  options.improve = {.equalize = improves("equalize"),
                     .smooth = improves("smooth"),
                     .round = improves("round"),
                     .bias = improves("bias")};
  if (arguments.rest != "f32") options.rest = arguments.rest == "bf16" ? Precision::bf16 : Precision::f16;
  if (!arguments.cache.empty()) options.cache = read_calibration_cache(arguments.cache);
  if (arguments.limit_option->count() != 0) options.limit_db = arguments.limit;
  if (arguments.max_drop_option->count() != 0) options.max_drop = arguments.max_drop;
  return options;
}

void warn_of_the_limit(const Console& console, const QuantizeArguments& arguments) {
  console.warn(fmt::format(
      "the outputs are not as good as was asked for with any layer in int8; what was written is the best that has one\n"
      "`graft verify {} {} --layers --data {}` shows where it goes",
      arguments.model, arguments.output, fmt::join(arguments.data, " --data ")));
}

}  // namespace

Exit quantize_int8(const Console& console, const QuantizeArguments& arguments) {
  check_is_onnx(arguments.model);
  check_data(arguments);
  Int8Options options = options_of(arguments);
  check_output(arguments);
  check_report(arguments.report);
  const Model model = read_model(arguments.model);
  check_operators(model);
  const CalibrationData data = open_data(console, arguments, model);
  Progress progress(console);
  options.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
    progress.update(what, total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total));
  };
  if (arguments.metric_option->count() != 0) {
    options.metric = [&](const Model& tried) { return measure(console, arguments.metric, tried); };
  }
  const ChosenInt8 chosen = choose_int8(runtime::default_engine(), model, data, options);
  std::optional<std::filesystem::path> data_file;
  {
    const DeferInterrupts defer;
    if (!arguments.write_cache.empty()) {
      if (chosen.cache.entries.empty()) throw Error("--write-cache: nothing became int8, so there are no scales");
      write_calibration_cache(arguments.write_cache, chosen.cache);
    }
    data_file = write_onnx(chosen.placed.model, arguments.output);
  }
  progress.clear();

  const std::uint64_t before = bytes_of_weights(model);
  const std::uint64_t after = bytes_of_weights(chosen.placed.model);
  const std::size_t in_int8 = count_of(chosen.plan, Int8Kind::computes) + count_of(chosen.plan, Int8Kind::moves);
  const std::string summary =
      fmt::format("{} in int8, {} fused with them, {} in {}, {} rounded, {} of weights ({} before)",
                  count_text(in_int8, "node"), count_of(chosen.plan, Int8Kind::follows),
                  count_of(chosen.plan, Int8Kind::kept), arguments.rest == "f32" ? "f32" : arguments.rest + " or f32",
                  count_text(chosen.placed.quantized_tensors, "tensor"), bytes_text(after), bytes_text(before));
  console.say(fmt::format("wrote {}: {}", written_text(console, arguments.output, data_file), summary));
  say_nodes(console, chosen, arguments.explain);
  if (arguments.explain) say_tensors(console, chosen);
  for (const std::string& note : chosen.notes) console.say("note: " + note);
  say_outputs(console, chosen);
  if (options.metric) say_metric(console, chosen);
  if (!chosen.met) warn_of_the_limit(console, arguments);
  if (!arguments.report.empty()) {
    report::Report page = present::new_model_report("quantize", arguments.model);
    page.summary.push_back({"written", fmt::format("{}, {}", arguments.output, summary)});
    present::add_int8(page, chosen, options);
    write_report(console, page, arguments.report);
  }
  Json json = {{"schema", "graft.quantize"},
               {"version", 1},
               {"model", arguments.model},
               {"output", arguments.output},
               {"external_data", present::json_of_data_file(data_file)},
               {"precision", "int8"},
               {"method", arguments.cache.empty() ? arguments.method : "cache"},
               {"samples", chosen.samples},
               {"judged", chosen.judged},
               {"met", chosen.met},
               {"metric_f32", present::number(chosen.metric_f32)},
               {"metric_int8", present::number(chosen.metric_int8)},
               {"weight_bytes", after},
               {"weight_bytes_before", before},
               {"nodes", json_of_nodes(chosen)},
               {"tensors", json_of_tensors(chosen)},
               {"notes", chosen.notes},
               {"outputs", to_json(chosen.outputs)},
               {"plain_outputs", to_json(chosen.plain)}};
  json.update(json_of_search(chosen));
  console.result(json);
  return chosen.met ? Exit::done : Exit::answer_is_no;
}

}  // namespace graft::cli
