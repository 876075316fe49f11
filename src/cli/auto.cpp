// graft auto: reads, converts, verifies, quantizes, builds and checks in one call, and prints each step as the command
// that does the same.
#include "graft/toolkit/auto.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/engine_command.hpp"
#include "cli/engine_option.hpp"
#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/program.hpp"
#include "cli/watch.hpp"
#include "core/guide_pages.hpp"
#include "core/shell_quoted.hpp"
#include "graft/error.hpp"
#include "graft/report/precision.hpp"
#include "graft/toolkit/files.hpp"
#include "graft/toolkit/ray.hpp"
#include "present/html/auto_page.hpp"
#include "present/json/auto_json.hpp"
#include "present/text/auto_text.hpp"
#include "present/text/next_steps_text.hpp"

namespace graft::cli {
namespace {

struct AutoArguments {
  ModelArguments model;
  std::string output;
  std::string precision;
  std::vector<std::string> shapes;
  std::vector<std::string> libraries;
  std::string plugins = "auto";
  std::string engine = default_engine_name;
  std::string ray;
  toolkit::QuantizeOptions quantize = {};
  toolkit::AutoOptions options = {};
  std::vector<std::string> words;  ///< The command line after the name of the command.
};

/// Throws Error if an option of the quantization is given without --precision.
void check_has_precision(const AutoArguments& arguments) {
  const toolkit::QuantizeOptions& quantize = arguments.quantize;
  const auto refuse = [](bool is_given, const char* option) {
    if (is_given) throw Error(fmt::format("{}: this option needs --precision int8, f8, f16 or bf16", option));
  };
  refuse(quantize.int8.samples != 0, "--samples");
  refuse(!quantize.keep.empty(), "--keep");
  refuse(quantize.limit_db.has_value(), "--limit");
}

toolkit::AutoOptions options_of(const AutoArguments& arguments) {
  toolkit::AutoOptions options = arguments.options;
  options.import = import_options(arguments.model);
  options.convert.engine = engine_of(arguments.engine);
  options.verify.engine = options.convert.engine;
  options.convert.plugins = arguments.plugins == "never" ? toolkit::Plugins::never : toolkit::Plugins::automatic;
  options.build.plugins = arguments.plugins != "never";
  for (const std::string& range : arguments.shapes) options.build.driver_options.push_back("--shapes=" + range);
  options.build.plugin_libraries.assign(arguments.libraries.begin(), arguments.libraries.end());
  if (arguments.precision.empty()) {
    check_has_precision(arguments);
  } else {
    options.quantize = arguments.quantize;
    options.quantize->precision = report::find_precision(arguments.precision).value();
    options.quantize->engine = options.convert.engine;
    if (report::has_8_bits(options.quantize->precision)) {
      options.quantize->int8.judge_outputs = options.verify.judge_outputs;
    }
  }
  return options;
}

void say_step(const Console& console, const report::AutoReport& report, const report::AutoStep& step) {
  switch (step.state) {
    case report::StepState::not_reached: console.say("$ " + step.command); return;
    case report::StepState::not_needed: break;
    case report::StepState::negative:
      console.error(fmt::format("{}: {}", step.name, present::found_text(report, step)));
      return;
    case report::StepState::done:
      for (const std::string& warning : present::step_warnings(report, step)) console.warn(warning);
      break;
  }
  console.say(present::step_table(report, step));
}

/// Returns the user's command line with --shapes added for `ranges`, for the message of MissingShapes.
std::string completed_command(const AutoArguments& arguments, const std::vector<std::string>& ranges) {
  std::string command = "graft auto";
  for (const std::string& word : arguments.words) command += " " + shell_argument(word);
  for (const std::string& range : ranges) command += " --shapes " + shell_argument(range);
  return command;
}

report::AutoReport run_steps(const Console& console, const AutoArguments& arguments, toolkit::AutoOptions options) {
  Progress progress(console);
  options.on_step = [&](const report::AutoReport& report, const report::AutoStep& step) {
    progress.clear();
    say_step(console, report, step);
  };
  options.on_note = [&](const std::string& note) {
    progress.clear();
    console.note(note);
  };
  options.on_log = log_of(console, progress);
  options.watch = watch_of(progress);
  try {
    report::AutoReport report = toolkit::run_auto(arguments.model.model, arguments.output, options);
    progress.clear();
    return report;
  } catch (const toolkit::MissingShapes& missing) {
    progress.clear();
    throw Error(fmt::format("{}\n{}", missing.what(), completed_command(arguments, missing.ranges())));
  }
}

/// Returns the words of the command line for one network: without --ray, and with {model} and {engine} in place of the
/// folders.
std::vector<std::string> words_for_each(const AutoArguments& arguments) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < arguments.words.size(); ++i) {
    const std::string& word = arguments.words[i];
    const std::string previous = i == 0 ? "" : arguments.words[i - 1];
    if (word == "--ray") {
      ++i;
    } else if (word == arguments.output && (previous == "-o" || previous == "--output")) {
      words.emplace_back("{engine}");
    } else if (word == "--output=" + arguments.output || word == "-o" + arguments.output) {
      words.insert(words.end(), {"-o", "{engine}"});
    } else if (word == arguments.model.model) {
      words.emplace_back("{model}");
    } else if (!word.starts_with("--ray=")) {
      words.push_back(word);
    }
  }
  return words;
}

/// Builds the engines of a folder of networks on the machines of a Ray cluster.
Exit build_folder(const Console& console, const AutoArguments& arguments) {
  for (const auto& [is_given, option] : {std::pair(!arguments.options.folder.empty(), "--work"),
                                         std::pair(!arguments.model.weights.empty(), "WEIGHTS")}) {
    if (!is_given) continue;
    throw Error(
        fmt::format("{0}: this does not apply to a folder of networks, each of which has its own\nRemove {0}", option));
  }
  if (console.json) {
    throw Error(
        "--json: with --ray each network has its JSON in a file, report.json in the folder next to its engine\n"
        "Remove --json");
  }
  const DeferInterrupts defer(true);
  std::size_t failed = 0;
  std::size_t count = 0;
  toolkit::build_folder_in_ray(
      arguments.ray, arguments.model.model, arguments.output, words_for_each(arguments),
      [&](const toolkit::BuiltEngine& built) {
        ++count;
        failed += built.succeeded ? 0 : 1;
        if (!built.succeeded) {
          console.error(fmt::format("{}: {}", built.model, built.error));
        } else {
          console.say(fmt::format("wrote {}", console.paint(built.engine, Color::strong)));
        }
      },
      interruption());
  console.say(fmt::format("{} of {} built", count - failed, count_text(count, "network")));
  return failed == 0 ? Exit::done : Exit::answer_is_no;
}

Exit run_auto(const Console& console, const AutoArguments& arguments) {
  html::check_date();
  if (!arguments.ray.empty()) return build_folder(console, arguments);
  toolkit::check_plugin_libraries(arguments.libraries);
  toolkit::AutoOptions options = options_of(arguments);
  const DeferInterrupts defer(true);
  const report::AutoReport report = run_steps(console, arguments, std::move(options));
  const std::string page = present::write_auto(report, console.command_line).string();
  if (report.build) {
    console.say();
    console.say("checks of the engine");
    console.say(present::checks_table(report));
    console.say(fmt::format("built for {}", present::targets_text(report)));
    console.say(fmt::format("wrote {}", console.paint(report.engine.string(), Color::strong)));
  }
  console.say(fmt::format("wrote {}", console.paint(page, Color::strong)));
  if (const std::vector<report::NextCommand> next = present::next_commands(report); !next.empty()) {
    console.say();
    console.say(present::next_table(next));
  }
  console.result(present::auto_json(report));
  for (const report::EngineCheck& check : report.checks) {
    if (!check.passed.value_or(true)) console.error(fmt::format("{}: {}", check.name, check.found));
  }
  return report.succeeded() ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_auto(Program& program) {
  const auto arguments = std::make_shared<AutoArguments>();
  Command* command = program.add_command(
      "auto",
      "builds an engine from a network in one call: converts it, compares the result with the network, quantizes it if "
      "--precision is set, builds the engine and checks it. Each step is printed as the command that does the same, so "
      "that you can continue from it. Exit code 0 if the engine exists and every check passed; 1 if a step has a "
      "negative result or a check failed",
      "graft auto digits.onnx -o digits.engine --shapes image=1x1x8x8..8x1x8x8..64x1x8x8\n"
      "  graft auto digits.pb -o digits.engine --input image:8x8x8x1 --target sm120\n"
      "  graft auto digits.prototxt digits.caffemodel -o digits.engine --precision int8 --data "
      "image=digits_test.npz:images",
      [arguments](const Console& c) { return run_auto(c, *arguments); });
  program.translate("auto", [arguments](const std::vector<std::string>& words) {
    arguments->words = words;
    return words;
  });
  toolkit::AutoOptions& options = arguments->options;
  toolkit::QuantizeOptions& quantize = arguments->quantize;
  add_model_files(*command, arguments->model);
  command->add_option("-o,--output", arguments->output, "engine file to write")->type_name("FILE")->required();
  command
      ->add_option("--precision", arguments->precision,
                   "quantize to f16 (also called fp16), bf16, int8 or f8 (fp8); by default the network keeps its types")
      ->type_name("TYPE")
      ->check(one_of({"f16", "fp16", "bf16", "int8", "f8", "fp8"}));
  add_data(*command, data_option, options.data_files,
           "inputs for the comparison and the calibration (default: synthetic inputs, except for int8 and f8, which "
           "need data)");
  add_labels(*command, options.data_files, options.verify.judge_outputs);
  command
      ->add_option("--shapes", arguments->shapes,
                   "minimum, optimum and maximum shape of a dynamic input, NAME=MIN..OPT..MAX; repeatable")
      ->type_name("RANGE");
  command
      ->add_option("--target", options.build.targets,
                   "GPUs: architectures such as sm120, products such as rtx4090, or current (default: the GPU of this "
                   "machine; without one, "
                   "TensorRT-RTX builds for all GPUs from Ampere on)")
      ->type_name("LIST")
      ->delimiter(',');
  command
      ->add_option("--work", options.folder,
                   "folder for the converted and the quantized model and the report, which is created; files of the "
                   "same names in it are replaced (default: the name of the engine with the extension .graft)")
      ->type_name("FOLDER");
  add_input_shapes(*command, arguments->model);
  add_kept_outputs(*command, arguments->model);
  command
      ->add_option("--rules", options.convert.rules,
                   "YAML file with your own changes to the network (" + guide_page("rules") +
                       "); the results are then not "
                       "compared")
      ->type_name("FILE");
  command
      ->add_option("--plugins", arguments->plugins,
                   "auto: a plugin where no native layer is exact and as fast; never (default: auto)")
      ->type_name("WHEN")
      ->check(one_of({"auto", "never"}));
  command->add_option("--samples", quantize.int8.samples, "int8 and f8: maximum number of calibration samples")
      ->type_name("NUMBER")
      ->check(at_least(1, "an integer of at least 1"));
  command->add_option("--keep", quantize.keep, "nodes that stay in f32; patterns as for graft quantize; repeatable")
      ->type_name("PATTERN");
  command
      ->add_option("--limit", quantize.limit_db,
                   "required signal-to-noise ratio of each output of the quantized network in dB; nodes stay in f32 "
                   "until it is reached")
      ->type_name("DB")
      ->check(at_least(0, "a number of at least 0"));
  command->add_option("--plugin-lib", arguments->libraries, "plugin library to load; repeatable")->type_name("FILE");
  program.add_operators_option(*command);
  command
      ->add_option("--tensorrt", options.build.tensorrt,
                   "TensorRT to use: rtx (TensorRT-RTX), full (TensorRT) or auto (default: auto)")
      ->type_name("WHICH")
      ->check(one_of({"auto", "rtx", "full"}));
  add_engine_option(*command, arguments->engine);
  command
      ->add_option("--ray", arguments->ray,
                   "build the engines of all networks of the folder MODEL on the machines of the Ray cluster at this "
                   "address, for example auto or ray://HOST:10001; -o is the folder for the engines "
                   "(" +
                       guide_page("many_machines") + ")")
      ->type_name("ADDRESS");
}

}  // namespace graft::cli
