// graft convert: rewrites a model so that TensorRT can run it, and reports the rewrites with their reasons.
#include "graft/toolkit/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/engine_option.hpp"
#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/probe_options.hpp"
#include "cli/program.hpp"
#include "cli/release_option.hpp"
#include "cli/watch.hpp"
#include "core/guide_pages.hpp"
#include "graft/error.hpp"
#include "graft/toolkit/commands.hpp"
#include "graft/toolkit/cut.hpp"
#include "graft/toolkit/files.hpp"
#include "present/html/convert_page.hpp"
#include "present/html/cut_page.hpp"
#include "present/json/convert_json.hpp"
#include "present/json/fields.hpp"
#include "present/text/convert_text.hpp"
#include "present/text/cut_text.hpp"
#include "present/text/model_text.hpp"
#include "present/text/next_steps_text.hpp"
#include "present/text/verdict_text.hpp"

namespace graft::cli {
namespace {

struct ConvertArguments {
  ModelArguments model;
  std::string output;
  std::vector<std::string> passes;
  std::string release;
  std::string plugins = "auto";
  std::int64_t unroll = report::default_unroll;
  std::string quantized = "exact";
  std::string rules;
  std::string report;
  bool explain = false;
  bool no_prove = false;
  bool no_functions = false;
  bool prove_each = false;
  bool cut = false;
  std::string engine = default_engine_name;
  bool no_check = false;
  ProbeArguments probe;  ///< Whether TensorRT or the rules judge the nodes, with the options of TensorRT's runs.
};

/// Sets the passes to run from the values of --passes: a name runs only the named passes, a name after a minus ("-a")
/// runs all other passes. Throws Error if both forms are used.
void choose_passes(const std::vector<std::string>& texts, toolkit::ConvertOptions& options) {
  for (const std::string& text : texts) {
    const bool leave_out = text.starts_with('-');
    const std::string name = leave_out ? text.substr(1) : text;
    (leave_out ? options.without : options.only).push_back(name);
  }
  if (!options.only.empty() && !options.without.empty()) {
    throw Error(
        "--passes: some names have a minus and others do not\nName either the passes to run or the passes to skip, as "
        "in --passes=-fuse_leaky_relu");
  }
}

/// Throws Error, before minutes of work, if an output cannot be written or would overwrite an input. The original model
/// must stay, because `graft verify` compares with it.
void check_output(const ConvertArguments& arguments) {
  std::vector<NamedFile> written = report_files(arguments.report);
  written.push_back({"-o", arguments.output});
  if (arguments.cut) {
    const toolkit::CutFiles files = toolkit::cut_files(arguments.output);
    written.push_back({"the half for the host", files.host.string()});
    written.push_back({"the file that names both halves", files.network.string()});
  }
  check_files_apart(written, files_of(arguments.model, {{"the file of rules", arguments.rules}}));
  {
    const DeferInterrupts defer;
    toolkit::check_writable(arguments.output);
  }
  check_report(arguments.report);
}

toolkit::ConvertOptions options_of(const ConvertArguments& arguments) {
  toolkit::ConvertOptions options;
  options.rules = arguments.rules;
  options.engine = engine_of(arguments.engine);
  options.prove = !arguments.no_prove;
  options.prove_each = arguments.prove_each;
  options.functions = !arguments.no_functions;
  options.check = !arguments.no_check;
  options.plugins = arguments.plugins == "always"  ? toolkit::Plugins::always
                    : arguments.plugins == "never" ? toolkit::Plugins::never
                                                   : toolkit::Plugins::automatic;
  choose_passes(arguments.passes, options);
  options.release = arguments.release;
  options.unroll = arguments.unroll;
  options.quantized = arguments.quantized == "symmetric" ? report::Quantized::symmetric : report::Quantized::exact;
  return options;
}

void say_explanation(const Console& console, const report::RewriteReport& report) {
  std::vector<std::string> idle;
  for (const report::PassSummary& pass : report.passes) {
    const Table explanation = present::explanation_table(report, pass);
    if (explanation.empty()) {
      const bool came_near = std::any_of(report.near_misses.begin(), report.near_misses.end(),
                                         [&](const report::NearMiss& near) { return near.pass == pass.pass; });
      if (!came_near) idle.push_back(pass.pass);
      continue;
    }
    console.print();
    console.print(fmt::format("{}  {}", console.paint(pass.pass, Color::strong), pass.why));
    console.print(explanation);
  }
  const Table nearly = present::near_misses_table(report, console.verbose);
  if (!nearly.empty()) {
    console.print();
    console.print(report.near_misses.front().is_of_library
                      ? "near misses, patterns of loaded libraries before Graft's own"
                      : "near misses, the closest first");
    console.print(nearly);
  }
  if (idle.empty()) return;
  console.print();
  if (!console.verbose) {
    const bool are_all = idle.size() == report.passes.size();
    console.print(fmt::format(
        "{} changed nothing; -v lists them",
        are_all ? count_text(idle.size(), "pass", "passes") : count_text(idle.size(), "other pass", "other passes")));
    return;
  }
  Table names;
  names.add({{fmt::format("{}", fmt::join(idle, ", ")), Color::faint}});
  console.print("passes that changed nothing");
  console.print(names);
}

void say_section(const Console& console, const std::string& title, const Table& table) {
  if (table.empty()) return;
  console.say();
  console.say(title);
  console.say(table);
}

/// Prints a note about values that the model rounds to u8 or with a zero point, which TensorRT does not support.
/// Without --quantized symmetric, the note states that f32 computes the same rounding, and what this option would
/// change. With the option, it states the signal-to-noise ratio of each output.
void say_quantized(const Console& console, const report::ConvertReport& report) {
  const auto exact = std::count_if(report.rewrites.begin(), report.rewrites.end(), [](const report::Rewrite& rewrite) {
    return rewrite.replacement.starts_with("Div, Round, Clip and Mul");
  });
  if (report.options.quantized == report::Quantized::exact) {
    if (exact == 0) return;
    console.say(fmt::format(
        "note: {} to u8 or with a zero point, which TensorRT does not have: f32 computes the same rounding, and the "
        "layers that read the values compute in f32; --quantized symmetric writes i8 with the same range, which "
        "changes the results ({})",
        exact == 1 ? "1 value is rounded" : fmt::format("{} values are rounded", exact),
        guide_page("quantized_networks")));
    return;
  }
  if (!report.values.report) return;
  for (const report::ComparedOutput& output : report.values.report->outputs) {
    if (!output.figures.snr_db) continue;
    console.say(fmt::format("note: i8 with the same range changes '{}': the signal-to-noise ratio is {:.1f} dB",
                            output.reference.name, *output.figures.snr_db));
  }
}

void say_result(const Console& console, const report::ConvertReport& report, const ConvertArguments& arguments,
                bool is_cut) {
  const bool is_imported = !report.origin.format.empty();
  if (is_imported) {
    console.say(present::io_table(report.inputs, report.outputs));
    console.say(present::origin_table(report.origin));
    for (const std::string& note : report.origin.notes) console.say("note: " + note);
  }
  if (arguments.explain) {
    say_explanation(console, report);
  } else {
    console.say(present::rewrites_table(report, console.verbose));
  }
  if (const std::string now = present::newly_running_text(report); !now.empty()) console.say("  " + now);
  if (is_imported) console.say(fmt::format("  {} left", count_text(report.transpositions, "transposition")));
  say_section(console, "In TensorRT", present::choices_table(report, console.verbose));
  say_section(console, "Rules", present::rules_table(report, arguments.explain));
  if (report.nodes_without_function) {
    console.say();
    console.say(present::without_functions_text(*report.nodes_without_function));
  }
  for (const std::string& error : present::rule_errors(report)) console.error(error);
  for (const std::string& warning : report.warnings) console.warn(warning);
  for (const report::Support verdict : report::all_supports) {
    if (!report::is_bad(verdict) && !report::is_open(verdict)) continue;
    // Nodes that TensorRT was not run on read results of the nodes that it does not run, so that they are cut off too.
    const bool are_on_host = is_cut && (report::is_bad(verdict) || verdict == report::Support::not_asked);
    const present::Color color = are_on_host ? present::Color::none : present::color_of(verdict);
    say_section(console, console.paint(present::problems_title(report.nodes, verdict, are_on_host), color),
                present::problems_table(report.nodes, verdict, are_on_host));
  }
  for (const std::string& warning : report.rejections) console.warn(warning);
  console.say();
  console.say(present::values_text(report));
  say_quantized(console, report);
  console.say(present::check_text(report));
}

void check_probe(ConvertArguments& arguments) {
  if (!arguments.cut && arguments.probe.level != "auto") {
    throw Error(
        "--probe selects how the place of the cut is found, and --cut is missing\nAdd --cut, or use --no-check if the "
        "installed TensorRT should not run");
  }
  const std::string_view rules_option = arguments.no_check ? "--no-check" : arguments.release.empty() ? "" : "--for";
  check_probe_options(arguments.probe, rules_option);
  if (!rules_option.empty()) arguments.probe.level = "none";
  if (arguments.cut && arguments.no_functions) {
    throw Error(
        "--no-functions: the half for the host that --cut writes needs the functions\nRemove --no-functions or --cut");
  }
}

/// Cuts the network if --cut requests it. Returns nothing if no node has to be cut off, and prints a warning and
/// returns nothing if no cut leaves TensorRT anything to compute.
std::optional<toolkit::CutResult> cut(const Console& console, const report::ConvertReport& report,
                                      const ConvertArguments& arguments) {
  if (!arguments.cut) return std::nullopt;
  Progress progress(console);
  try {
    std::optional<toolkit::CutResult> result = toolkit::cut(report, {.inspect = {},
                                                                     .plugins = arguments.plugins != "never",
                                                                     .verify = !arguments.no_prove,
                                                                     .engine = engine_of(arguments.engine),
                                                                     .watch = watch_of(progress)});
    progress.clear();
    return result;
  } catch (const toolkit::NoCut& none) {
    progress.clear();
    console.warn(none.what());
    return std::nullopt;
  }
}

void say_cut(const Console& console, const toolkit::CutResult& result) {
  console.say();
  console.say(present::cut_title(result));
  console.say(present::cut_table(result));
  if (const std::string warning = present::cut_warning(result); !warning.empty()) console.warn(warning);
  console.say(fmt::format("wrote {}, which names both halves", console.paint(result.file.string(), Color::strong)));
}

/// Returns whether both halves together compute the same as the whole network, or --no-prove disabled this comparison.
bool is_good(const toolkit::CutResult& result, const ConvertArguments& arguments) {
  return arguments.no_prove || result.verdict == report::Verdict::same;
}

report::ConvertReport convert_file(const Console& console, const ConvertArguments& arguments,
                                   toolkit::ConvertOptions options) {
  const toolkit::ImportOptions import = import_options(arguments.model);
  const DeferInterrupts defer(true);
  Progress progress(console);
  options.inspect = inspect_options_of(arguments.probe);
  options.inspect.on_trial = trial_details(console, progress);
  if (!arguments.cut) options.output = arguments.output;
  options.watch = watch_of(progress);
  report::ConvertReport report = toolkit::convert(arguments.model.model, import, options);
  progress.clear();
  return report;
}

Exit convert(const Console& console, ConvertArguments& arguments) {
  toolkit::ConvertOptions options = options_of(arguments);
  check_probe(arguments);
  check_output(arguments);
  report::ConvertReport report = convert_file(console, arguments, std::move(options));
  std::optional<toolkit::CutResult> halves = cut(console, report, arguments);
  if (arguments.cut) {
    const DeferInterrupts defer;
    if (halves) {
      toolkit::save(*halves, arguments.output);
      report.output = arguments.output;
      if (report.values.can_be_repeated()) report.values.command = toolkit::verify_command(report, halves->file);
    } else {
      toolkit::save(report, arguments.output);
    }
  }
  console.detail(present::timings_text(report));
  if (!halves) {
    console.say(fmt::format("wrote {}: {}", written_text(console, arguments.output, report.data_file),
                            present::summary_text(report)));
  }
  if (!arguments.report.empty()) {
    html::Report page = present::convert_page(report);
    if (halves) {
      present::add_cut(page, *halves);
      page.next = present::next_commands(report, *halves);
    }
    write_report(console, std::move(page), arguments.report);
  }
  say_result(console, report, arguments, halves.has_value());
  if (halves) say_cut(console, *halves);
  const std::vector<present::NextCommand> next =
      halves ? present::next_commands(report, *halves) : present::next_commands(report);
  if (!next.empty()) {
    console.say();
    console.say(present::next_table(next));
  }
  Json json = present::convert_json(report);
  if (arguments.cut) json["cut"] = halves ? present::json_of_fields(*halves) : Json();
  console.result(json);
  const bool is_right = report.are_rules_done() && report.are_values_kept();
  if (halves) return is_good(*halves, arguments) && is_right ? Exit::done : Exit::answer_is_no;
  return report.is_complete() ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_convert(Program& program) {
  const auto arguments = std::make_shared<ConvertArguments>();
  Command* command = program.add_command(
      "convert",
      "rewrites a model so that TensorRT can run it, and proves on the CPU that the results do not change; then "
      "compares the outputs of both models, and builds the result with the installed TensorRT. Exit code 0 if the "
      "result builds; 1 if it does not, if this is unknown, or if outputs differ",
      "graft convert digits.onnx -o digits.graft.onnx\n"
      "  graft convert digits.pb -o digits.tensorflow.onnx --input image:1x8x8x1\n"
      "  graft convert digits.prototxt digits.caffemodel -o digits.caffe.onnx\n"
      "  graft convert detector.onnx -o detector.graft.onnx --cut",
      [arguments](const Console& c) { return convert(c, *arguments); });
  add_model_files(*command, arguments->model);
  program.add_operators_option(*command);
  command->add_option("-o,--output", arguments->output, "ONNX model to write")->type_name("FILE")->required();
  add_input_shapes(*command, arguments->model);
  add_kept_outputs(*command, arguments->model);
  command
      ->add_option("--plugins", arguments->plugins,
                   "auto: a plugin where no native layer is exact and as fast; always; never (default: auto)")
      ->type_name("WHEN")
      ->check(one_of({"auto", "always", "never"}));
  command
      ->add_option("--passes", arguments->passes,
                   "passes to run, separated by commas; a minus before each name skips these passes: --passes=-NAME")
      ->type_name("LIST")
      ->delimiter(',');
  command
      ->add_option("--unroll", arguments->unroll,
                   fmt::format("most nodes that one Loop or Scan with a known number of iterations becomes, a copy of "
                               "its body for each iteration; 0: all of them stay (default: {})",
                               report::default_unroll))
      ->type_name("NODES")
      ->check(range(0, 1000000));
  command
      ->add_option(
          "--quantized", arguments->quantized,
          "what becomes of values that the model rounds to u8, or to i8 with a zero point, which TensorRT does "
          "not have. exact: the same rounding, computed in f32; symmetric: i8 with the zero point 0 and the "
          "same range, whose larger steps change the results (default: exact)")
      ->type_name("HOW")
      ->check(one_of({"exact", "symmetric"}));
  command
      ->add_option("--for", arguments->release,
                   "TensorRT release that the model is for, rtx-1.5 or tensorrt-10.13: nodes that this release is "
                   "known to compute wrongly are rewritten, and Graft's rules for it judge the result; the installed "
                   "TensorRT does not run")
      ->type_name("RELEASE")
      ->check(known_release());
  command
      ->add_option("--rules", arguments->rules,
                   "YAML file with your own changes to the network; exit code 1 if a rule could not be applied "
                   "(" +
                       guide_page("rules") + ")")
      ->type_name("FILE");
  command->add_flag(
      "--cut", arguments->cut,
      "if nodes remain that neither TensorRT nor a plugin runs, write two halves: -o for TensorRT, and next to it a "
      "half for ONNX Runtime on the host and a .cut.json that names both; with --plugins never, ONNX operators that "
      "need a Graft plugin run on the host too. Exit code 0 if both halves together compute the same as the model; 1 "
      "if they do not or were not compared, or if no cut leaves TensorRT anything to compute");
  add_probe_options(
      *command, arguments->probe,
      "with --cut, how to find the nodes that TensorRT runs. auto: the parser and the builder of the installed "
      "TensorRT, with suggested sizes if --shapes has none, or Graft's rules if TensorRT is not installed; parser; "
      "builder, which needs --shapes for inputs with dynamic dimensions; none: only the rules. Without --cut the "
      "choice is always auto, and --no-check disables TensorRT (default: auto)");
  command->add_flag("--no-check", arguments->no_check,
                    "skip the check of the result, which compares its outputs with the outputs of the original model, "
                    "as `graft verify` does, and builds it with the installed TensorRT; Graft's rules judge the result "
                    "instead, as if no TensorRT were installed. The halves of --cut are still compared");
  add_report_option(*command, arguments->report,
                    "the network before and after the conversion, and each rewrite with its reason");
  command->add_flag("--explain", arguments->explain,
                    "print what each pass and rule matched, the near misses, and the condition that failed");
  add_engine_option(*command, arguments->engine);
  command->add_flag(
      "--no-prove", arguments->no_prove,
      "rewrite without proofs: neither the rewrites nor the result nor the halves of --cut are run and compared");
  command->add_flag("--prove-each", arguments->prove_each,
                    "also prove rewrites that differ from an already proven rewrite only in the values of weights");
  command->add_flag("--no-functions", arguments->no_functions,
                    "omit the ONNX functions of Graft's nodes, which TensorRT's own parser prefers to plugins: for "
                    "trtexec --dynamicPlugins and TensorRT's Python API; ONNX Runtime and other runtimes cannot run "
                    "such a file, and TensorRT needs the plugin library for it");
}

}  // namespace graft::cli
