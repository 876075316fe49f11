// graft quantize --precision f16 or bf16: a typed model from an f32 one, and why each node has its type.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "cli/dimensions.hpp"
#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/quantize.hpp"
#include "cli/tensors.hpp"
#include "graft/error.hpp"
#include "graph/check_operators.hpp"
#include "graph/onnx_io.hpp"
#include "import/read_model.hpp"
#include "present/html/page.hpp"
#include "present/html/quantize_page.hpp"
#include "present/json/values.hpp"
#include "quant/choose_types.hpp"
#include "runtime/default_engine.hpp"
#include "verify/ends.hpp"

namespace graft::cli {
namespace {

/// The names that ONNX's users write stand for Graft's.
Precision precision_of(const std::string& name) { return name == "bf16" ? Precision::bf16 : Precision::f16; }

Json to_json(const ChosenNode& node, Precision precision) {
  Json json = {{"node", node.node.node.name},
               {"operator", node.node.node.op},
               {"output", node.node.node.id},
               {"type", present::type_name(node, precision)},
               {"why", node.why ? Json(to_string(*node.why)) : Json()},
               {"reason", present::explanation(node)}};
  if (node.has_figures) {
    json["lowest"] = present::number(node.range.lowest);
    json["highest"] = present::number(node.range.highest);
    json["overflow"] = node.rounding.overflow;
    json["underflow"] = node.rounding.underflow;
    json["subnormal"] = node.rounding.subnormal;
    json["rounding_snr_db"] = present::number(node.rounding.snr_db);
  }
  return json;
}

void say_nodes(const Console& console, const ChosenTypes& chosen, Precision precision, bool explain) {
  Table table;
  constexpr std::size_t widest = 60;
  for (const ChosenNode& node : chosen.nodes) {
    const bool is_kept = node.node.type == NodeType::kept;
    if (!is_kept && !explain) continue;
    const bool by_numbers = is_kept && node.why != WhyKept::form && node.why != WhyKept::asked;
    table.add({{present::type_name(node, precision), by_numbers ? Color::caution : Color::none},
               shortened(describe(node.node.node), widest),
               {present::explanation(node), is_kept ? Color::none : Color::faint}});
  }
  if (table.empty()) return;
  console.say();
  console.say(explain ? "Nodes" : "In f32");
  console.say(table);
}

void say_outputs(const Console& console, const ChosenTypes& chosen, Precision precision) {
  Table table;
  for (std::size_t i = 0; i < chosen.outputs.size(); ++i) {
    const std::string is = present::quality_text(chosen.outputs[i]);
    const std::string was = present::quality_text(chosen.plain[i]);
    table.add({{chosen.outputs[i].name, Color::strong}, is});
    if (is != was) table.add({"", {fmt::format("all in {}: {}", to_string(precision), was), Color::faint}});
  }
  console.say();
  console.say(fmt::format("Outputs, against the f32 network on the CPU{}",
                          chosen.runs > 1 ? fmt::format(", the worst of {} runs", chosen.runs) : ""));
  console.say(table);
}

}  // namespace

Exit quantize_types(const Console& console, const QuantizeArguments& arguments) {
  check_is_onnx(arguments.model);
  const Precision precision = precision_of(arguments.precision);
  ChooseOptions options;
  options.precision = precision;
  options.typed_io = arguments.typed_io;
  options.keep = arguments.keep;
  options.only = arguments.only;
  options.shapes = parse_shapes("--input", arguments.inputs, false);
  if (arguments.limit_option->count() != 0) options.limit_db = arguments.limit;
  TensorMap data;
  if (!arguments.data.empty()) {
    data = read_tensors("--data", arguments.data);
    warn_of_nan(console, "--data", data);
  }
  if (!arguments.data.empty() && !arguments.inputs.empty()) {
    throw Error("--input: it gives synthetic inputs a shape, and there are none with --data\nGive one of the two");
  }
  check_output(arguments);
  check_report(arguments.report);
  const Model model = read_model(arguments.model);
  check_operators(model);
  if (!arguments.data.empty()) options.data = split_into_runs(data, model, "--data");
  Progress progress(console);
  options.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
    progress.update(what, total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total));
  };
  const ChosenTypes chosen = choose_types(runtime::default_engine(), model, options);
  std::optional<std::filesystem::path> data_file;
  {
    const DeferInterrupts defer;
    data_file = write_onnx(chosen.typed.model, arguments.output);
  }
  progress.clear();

  const auto count = [&](NodeType type) {
    return static_cast<std::size_t>(std::count_if(chosen.nodes.begin(), chosen.nodes.end(),
                                                  [type](const ChosenNode& node) { return node.node.type == type; }));
  };
  const std::uint64_t before = bytes_of_weights(model);
  const std::uint64_t after = bytes_of_weights(chosen.typed.model);
  const std::string summary =
      fmt::format("{} in {}, {} kept in f32, {}, {} of weights ({} before)",
                  count_text(count(NodeType::narrow), "node"), to_string(precision), count(NodeType::kept),
                  count_text(chosen.typed.casts, "cast"), bytes_text(after), bytes_text(before));
  console.say(fmt::format("wrote {}: {}", written_text(console, arguments.output, data_file), summary));
  say_nodes(console, chosen, precision, arguments.explain);
  for (const AdjustedConstant& constant : chosen.typed.adjusted) {
    console.say(fmt::format("note: the constant '{}': {}", constant.name, constant.change));
  }
  for (const std::string& note : chosen.notes) console.say("note: " + note);
  say_outputs(console, chosen, precision);
  if (arguments.data.empty()) {
    console.say(fmt::format("decided by synthetic inputs ({}); real ones may reach further: --data",
                            fmt::join(chosen.inputs, ", ")));
  }
  if (!chosen.met) {
    console.warn(fmt::format(
        "an output has less than {:g} dB of signal to noise, and no more nodes were found that help in f32\n"
        "`graft verify {} {} --layers` shows where it goes; --limit says what is enough",
        chosen.limit_db, arguments.model, arguments.output));
  }
  if (!arguments.report.empty()) {
    report::Report page = present::new_model_report("quantize", arguments.model);
    page.summary.push_back({"written", fmt::format("{}, {}", arguments.output, summary)});
    for (const std::string& input : chosen.inputs) {
      page.summary.push_back({arguments.data.empty() ? "synthetic input" : "input", input});
    }
    page.summary.push_back({"decided by", count_text(chosen.runs, "run")});
    present::add_types(page, chosen, precision);
    write_report(console, page, arguments.report);
  }
  Json nodes = Json::array();
  for (const ChosenNode& node : chosen.nodes) nodes.push_back(to_json(node, precision));
  Json adjusted = Json::array();
  for (const AdjustedConstant& constant : chosen.typed.adjusted) {
    adjusted.push_back({{"name", constant.name}, {"change", constant.change}});
  }
  console.result({{"schema", "graft.quantize"},
                  {"version", 1},
                  {"model", arguments.model},
                  {"output", arguments.output},
                  {"external_data", present::json_of_data_file(data_file)},
                  {"precision", to_string(precision)},
                  {"data", arguments.data.empty() ? "made up" : "given"},
                  {"inputs", chosen.inputs},
                  {"runs", chosen.runs},
                  {"limit_db", chosen.limit_db},
                  {"met", chosen.met},
                  {"trials", chosen.trials},
                  {"casts", chosen.typed.casts},
                  {"weight_bytes", after},
                  {"weight_bytes_before", before},
                  {"nodes", nodes},
                  {"adjusted_constants", adjusted},
                  {"notes", chosen.notes},
                  {"outputs", to_json(chosen.outputs)},
                  {"plain_outputs", to_json(chosen.plain)}});
  return chosen.met ? Exit::done : Exit::answer_is_no;
}

}  // namespace graft::cli
