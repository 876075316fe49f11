// graft build: builds a TensorRT engine with Graft's plugins from an ONNX model.
#include "toolkit/build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "cli/engine_command.hpp"
#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/program.hpp"
#include "cli/trtexec_options.hpp"
#include "cli/watch.hpp"
#include "graft/toolkit/import.hpp"
#include "present/json/build_json.hpp"
#include "present/text/build_text.hpp"
#include "present/text/engine_layers_text.hpp"
#include "present/text/next_steps_text.hpp"

namespace graft::cli {
namespace {

/// An option that the engine driver has under the same name.
struct DriverOption {
  const char* name;
  const char* type;  // null for a flag
  const char* description;
};

constexpr std::array<DriverOption, 16> driver_options{{
    {"--profile", "RANGES",
     "one more optimization profile, its ranges joined by commas: NAME=MIN..OPT..MAX,...; once for each; those of "
     "--shapes are in every profile"},
    {"--memory", "LIMITS",
     "the most that the builder may use of a memory pool: workspace=2GiB,tacticSharedMemory=48KiB; also tacticDRAM, "
     "dlaSRAM, dlaLocalDRAM, dlaGlobalDRAM"},
    {"--optimization-level", "LEVEL", "how much TensorRT tries, 0 to 5; more takes longer (TensorRT's own: 3)"},
    {"--input-format", "FORMAT",
     "how an input may lie in memory, NAME=FORMAT, several joined by +, with its type if you like: x=f16:hwc8+linear; "
     "once for each"},
    {"--output-format", "FORMAT", "the same of an output"},
    {"--tf32", nullptr, "let f32 layers compute in TF32, with 10 bits of mantissa; without it f32 means f32"},
    {"--version-compatible", nullptr, "an engine that later versions of TensorRT load too"},
    {"--exclude-lean-runtime", nullptr, "with --version-compatible: without the lean runtime inside"},
    {"--embed-plugins", nullptr, "put the plugin libraries into the engine, which then needs no file beside it"},
    {"--refit", nullptr, "an engine whose weights can be changed later"},
    {"--strip-weights", nullptr, "leave out the weights, to be put back when the engine is loaded"},
    {"--weight-streaming", nullptr, "let weights stay in host memory at run time"},
    {"--dla", "CORE", "run on this DLA core"},
    {"--gpu-fallback", nullptr, "with --dla: layers that DLA cannot run, run on the GPU"},
    {"--device", "NUMBER", "the GPU to build on, as CUDA counts them (0)"},
    {"--plugin-override", nullptr, "plugins win over ONNX operators and functions of their name"},
}};

struct BuildArguments {
  std::string model;
  std::string output;
  std::vector<std::string> targets;
  std::vector<std::string> shapes;
  std::vector<std::string> libraries;
  std::string tensorrt = "auto";
  std::string timing_cache;
  std::string plugins = "auto";
  std::string time_limit;
  std::string profiling_verbosity;
  std::map<std::string, std::vector<std::string>> options;  // the values of driver_options, by name
  std::map<std::string, bool> flags;
  bool layers = false;
};

/// Returns the arguments of the engine driver, whose options have the same names.
std::vector<std::string> driver_options_of(const Console& console, const BuildArguments& arguments) {
  std::vector<std::string> words{"--tensorrt=" + arguments.tensorrt};
  const auto add = [&](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) words.push_back(fmt::format("{}={}", option, value));
  };
  add("--target", arguments.targets);
  add("--shapes", arguments.shapes);
  if (!arguments.timing_cache.empty()) add("--timing-cache", {arguments.timing_cache});
  if (!arguments.time_limit.empty()) add("--time-limit", {arguments.time_limit});
  if (!arguments.profiling_verbosity.empty()) add("--profiling-verbosity", {arguments.profiling_verbosity});
  for (const auto& [option, values] : arguments.options) add(option.c_str(), values);
  for (const auto& [flag, is_set] : arguments.flags) {
    if (is_set) words.push_back(flag);
  }
  if (console.verbose) words.emplace_back("--verbose");
  return words;
}

toolkit::BuildReport build_engine(const Console& console, const BuildArguments& arguments,
                                  const toolkit::Model& model) {
  Progress progress(console);
  const toolkit::BuildRequest request{.name = arguments.model,
                                      .file = arguments.model,
                                      .engine = arguments.output,
                                      .options = driver_options_of(console, arguments),
                                      .libraries = arguments.libraries,
                                      .plugins = arguments.plugins == "auto",
                                      .layers = arguments.layers,
                                      .listener = listener_of(console, progress)};
  return toolkit::build_engine(model, request, watch_of(progress));
}

Exit build(const Console& console, const BuildArguments& arguments, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) console.warn(note);
  std::vector<NamedFile> read{{"the model itself", arguments.model}};
  for (const std::string& library : arguments.libraries) read.push_back({"a plugin library", library});
  check_files_apart({{"-o", arguments.output}, {"--timing-cache", arguments.timing_cache}}, read);
  check_is_onnx(arguments.model);
  toolkit::check_plugin_libraries(arguments.libraries);
  const toolkit::Model model = toolkit::load(arguments.model);

  const DeferInterrupts defer;
  const toolkit::BuildReport report = build_engine(console, arguments, model);
  for (const std::string& note : report.notes) console.warn(note);
  warn_of(console, report.warnings);
  if (const std::string text = present::computed_wrongly_text(report, arguments.model); !text.empty()) {
    console.warn(text);
  }
  console.say(present::build_text(report, arguments.output));
  const auto next = present::canary_of_own_plugins(report, arguments.model);
  if (report.layers) {
    if (!report.layers->unknown.empty()) {
      console.warn(fmt::format("the engine's layers are not known: {}", report.layers->unknown));
    }
    console.print(present::engine_layers_text(*report.layers));
  }
  if (next) {
    console.say();
    console.say(present::next_table({*next}));
  }
  console.result(present::build_json(report, arguments.model));
  if (report.targets_without_plugins.empty()) return Exit::done;
  console.error(report.missing_code);
  return Exit::answer_is_no;
}

}  // namespace

void add_build(Program& program) {
  const auto arguments = std::make_shared<BuildArguments>();
  const auto notes = std::make_shared<std::vector<std::string>>();
  Command* command = program.add_command(
      "build",
      "builds a TensorRT engine from an ONNX model, with Graft's plugins in it; needs no GPU with TensorRT-RTX; "
      "trtexec's options are understood too. Exit code 1 if TensorRT does not build it, or if the plugin library has "
      "no "
      "code for a GPU that the engine is for",
      "graft build digits.graft.onnx -o digits.engine --target sm120,sm121 --shapes image=1x1x8x8..8x1x8x8..64x1x8x8",
      [arguments, notes](const Console& c) { return build(c, *arguments, *notes); });
  program.translate("build", [notes](const std::vector<std::string>& words) {
    TrtexecTranslation translation = translate_trtexec(words);
    *notes = std::move(translation.notes);
    return std::move(translation.words);
  });
  command->add_option("MODEL", arguments->model, "an ONNX model; `graft convert` makes one that TensorRT can run")
      ->required();
  command->add_option("-o,--output", arguments->output, "the engine to write")->type_name("FILE")->required();
  command
      ->add_option(
          "--target", arguments->targets,
          "GPU generations, for example sm120,sm121, or current (TensorRT-RTX: Ampere and later; TensorRT: current)")
      ->type_name("LIST")
      ->delimiter(',');
  command
      ->add_option("--shapes", arguments->shapes,
                   "smallest, usual and largest shape of a dynamic input, NAME=MIN..OPT..MAX; once for each")
      ->type_name("RANGE");
  command
      ->add_option("--plugin-lib", arguments->libraries,
                   "plugin library to load; once for each (default: Graft's own, if the model needs it)")
      ->type_name("FILE");
  command
      ->add_option("--plugins", arguments->plugins,
                   "auto: Graft's operators become plugins; never: native layers, from their ONNX functions (auto)")
      ->type_name("WHEN")
      ->check(one_of({"auto", "never"}));
  program.add_operators_option(*command);
  command->add_flag("--layers", arguments->layers,
                    "list the engine's layers with their types and the nodes in them, and name what is meant for int8 "
                    "and is not");
  command->add_option("--tensorrt", arguments->tensorrt, "which TensorRT: auto, rtx, full (auto)")
      ->type_name("WHICH")
      ->check(one_of({"auto", "rtx", "full"}));
  for (const DriverOption& option : driver_options) {
    if (option.type == nullptr) {
      command->add_flag(option.name, arguments->flags[option.name], option.description);
      continue;
    }
    Option* added = command->add_option(option.name, arguments->options[option.name], option.description);
    added->type_name(option.type);
    const std::string_view name = option.name;
    if (name == "--optimization-level") added->expected(1)->check(range(0, 5));
    if (name == "--dla" || name == "--device") added->expected(1)->check(range(0, 1000000));
  }
  command
      ->add_option("--profiling-verbosity", arguments->profiling_verbosity,
                   "what the engine tells of its layers: none, layer_names_only, detailed (TensorRT's own: "
                   "layer_names_only)")
      ->type_name("HOW")
      ->check(one_of({"none", "layer_names_only", "detailed"}));
  command
      ->add_option("--timing-cache", arguments->timing_cache,
                   "file to read and extend; several builds may share it; TensorRT-RTX keeps none")
      ->type_name("FILE");
  command
      ->add_option("--time-limit", arguments->time_limit,
                   "a build that says nothing for longer counts as hanging (3600), as does a plugin library that takes "
                   "longer to be opened (120)")
      ->type_name("SECONDS")
      ->check(positive());
}

}  // namespace graft::cli
