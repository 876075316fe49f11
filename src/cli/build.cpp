// graft build: builds a TensorRT engine with Graft's plugins from an ONNX model.
#include "graft/toolkit/build.hpp"

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
#include "graft/toolkit/files.hpp"
#include "graft/toolkit/import.hpp"
#include "present/json/build_json.hpp"
#include "present/text/build_text.hpp"
#include "present/text/engine_layers_text.hpp"
#include "present/text/next_steps_text.hpp"

namespace graft::cli {
namespace {

/// An option of `graft build` that is passed on to the engine driver, which has an option of the same name.
struct DriverOption {
  const char* name;
  const char* type;  // null for a flag
  const char* description;
};

constexpr std::array<DriverOption, 16> driver_options{{
    {"--profile", "RANGES",
     "one additional optimization profile, ranges separated by commas: NAME=MIN..OPT..MAX,...; repeatable; ranges from "
     "--shapes belong to every profile"},
    {"--memory", "LIMITS",
     "maximum size of each memory pool of the builder: workspace=2GiB,tacticSharedMemory=48KiB; also tacticDRAM, "
     "dlaSRAM, dlaLocalDRAM, dlaGlobalDRAM"},
    {"--optimization-level", "LEVEL",
     "builder optimization level, 0 to 5; higher levels take longer (TensorRT's default: 3)"},
    {"--input-format", "FORMAT",
     "allowed memory formats of an input, NAME=FORMAT, several joined by +, optionally with a type: x=f16:hwc8+linear; "
     "repeatable"},
    {"--output-format", "FORMAT", "allowed memory formats of an output, written as for --input-format"},
    {"--tf32", nullptr,
     "allow f32 layers to compute in TF32, with 10 bits of mantissa; by default they compute in f32"},
    {"--version-compatible", nullptr, "build an engine that later versions of TensorRT can also load"},
    {"--exclude-lean-runtime", nullptr, "with --version-compatible: do not embed the lean runtime"},
    {"--embed-plugins", nullptr, "embed the plugin libraries in the engine, so that it needs no other file"},
    {"--refit", nullptr, "build an engine whose weights can be changed later"},
    {"--strip-weights", nullptr, "omit the weights, which have to be supplied when the engine is loaded"},
    {"--weight-streaming", nullptr, "allow weights to stay in host memory at run time"},
    {"--dla", "CORE", "run on this DLA core"},
    {"--gpu-fallback", nullptr, "with --dla: run layers that DLA does not support on the GPU"},
    {"--device", "NUMBER", "CUDA index of the GPU to build on (default: 0)"},
    {"--plugin-override", nullptr, "plugins take precedence over ONNX operators and functions with the same name"},
}};

struct BuildArguments {
  std::string model;
  std::string output;
  std::vector<std::string> libraries;
  std::string plugins = "auto";
  std::map<std::string, std::vector<std::string>> values;  ///< The values of options of the engine driver, by name.
  std::map<std::string, bool> flags;
  toolkit::BuildOptions options = {};
};

toolkit::BuildReport build_engine(const Console& console, const BuildArguments& arguments,
                                  const toolkit::Model& model) {
  Progress progress(console);
  toolkit::BuildOptions options = arguments.options;
  options.model_file = arguments.model;
  options.plugins = arguments.plugins == "auto";
  options.plugin_libraries.assign(arguments.libraries.begin(), arguments.libraries.end());
  for (const auto& [option, values] : arguments.values) {
    for (const std::string& value : values) options.driver_options.push_back(fmt::format("{}={}", option, value));
  }
  for (const auto& [flag, is_set] : arguments.flags) {
    if (is_set) options.driver_options.push_back(flag);
  }
  options.on_log = log_of(console, progress);
  options.watch = watch_of(progress);
  return toolkit::build(model, arguments.output, options);
}

Exit build(const Console& console, const BuildArguments& arguments, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) console.warn(note);
  std::vector<NamedFile> read{{"the input model", arguments.model}};
  for (const std::string& library : arguments.libraries) read.push_back({"a plugin library", library});
  check_files_apart({{"-o", arguments.output}, {"--timing-cache", arguments.options.timing_cache.string()}}, read);
  check_is_onnx(arguments.model);
  toolkit::check_plugin_libraries(arguments.libraries);
  const toolkit::Model model = toolkit::load(arguments.model);

  const DeferInterrupts defer;
  const toolkit::BuildReport report = build_engine(console, arguments, model);
  for (const std::string& note : report.notes) console.warn(note);
  warn_of(console, report.tensorrt_warnings);
  console.say(present::build_text(report));
  if (report.layers) {
    if (!report.layers->unknown.empty()) {
      console.warn(fmt::format("the engine's layers cannot be listed: {}", report.layers->unknown));
    }
    console.print(present::engine_layers_text(*report.layers));
  }
  if (const auto next = present::canary_of_own_plugins(report)) {
    console.say();
    console.say(present::next_table({*next}));
  }
  console.result(present::build_json(report));
  if (!report.computed_wrongly.empty()) console.error(present::computed_wrongly_text(report));
  return report.is_sound() ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_build(Program& program) {
  const auto arguments = std::make_shared<BuildArguments>();
  const auto notes = std::make_shared<std::vector<std::string>>();
  Command* command = program.add_command(
      "build",
      "builds a TensorRT engine with Graft's plugins from an ONNX model; TensorRT-RTX needs no GPU for it; trtexec's "
      "options are accepted too. Exit code 1 if the build fails, if the plugin library has no code for a target of "
      "an engine with plugins, which is then not built, or if the installed TensorRT is known to compute a node of the "
      "engine wrongly",
      "graft build digits.graft.onnx -o digits.engine --target sm120,sm121 --shapes image=1x1x8x8..8x1x8x8..64x1x8x8",
      [arguments, notes](const Console& c) { return build(c, *arguments, *notes); });
  program.translate("build", [notes](const std::vector<std::string>& words) {
    TrtexecTranslation translation = translate_trtexec(words);
    *notes = std::move(translation.notes);
    return std::move(translation.words);
  });
  command->add_option("MODEL", arguments->model, "an ONNX model; `graft convert` writes one that TensorRT can run")
      ->required();
  command->add_option("-o,--output", arguments->output, "engine file to write")->type_name("FILE")->required();
  command
      ->add_option("--target", arguments->options.targets,
                   "GPUs: architectures such as sm120,sm121, products such as rtx4090, or current (default with "
                   "TensorRT-RTX: Ampere and later; with TensorRT: current)")
      ->type_name("LIST")
      ->delimiter(',');
  command
      ->add_option("--shapes", arguments->values["--shapes"],
                   "minimum, optimum and maximum shape of a dynamic input, NAME=MIN..OPT..MAX; repeatable")
      ->type_name("RANGE");
  command
      ->add_option("--plugin-lib", arguments->libraries,
                   "plugin library to load; repeatable (default: Graft's own, if the model needs it)")
      ->type_name("FILE");
  command
      ->add_option("--plugins", arguments->plugins,
                   "auto: Graft's operators run as plugins; never: as native layers, built from their ONNX functions "
                   "(default: auto)")
      ->type_name("WHEN")
      ->check(one_of({"auto", "never"}));
  program.add_operators_option(*command);
  command->add_flag(
      "--layers", arguments->options.layers,
      "list the engine's layers with their types and nodes, and report nodes that were quantized but do not read int8");
  command
      ->add_option("--tensorrt", arguments->options.tensorrt,
                   "TensorRT to use: rtx (TensorRT-RTX), full (TensorRT) or auto (default: auto)")
      ->type_name("WHICH")
      ->check(one_of({"auto", "rtx", "full"}));
  for (const DriverOption& option : driver_options) {
    if (option.type == nullptr) {
      command->add_flag(option.name, arguments->flags[option.name], option.description);
      continue;
    }
    Option* added = command->add_option(option.name, arguments->values[option.name], option.description);
    added->type_name(option.type);
    const std::string_view name = option.name;
    if (name == "--optimization-level") added->expected(1)->check(range(0, 5));
    if (name == "--dla" || name == "--device") added->expected(1)->check(range(0, 1000000));
  }
  command
      ->add_option("--profiling-verbosity", arguments->values["--profiling-verbosity"],
                   "layer information that the engine contains: none, layer_names_only or detailed (TensorRT's "
                   "default: layer_names_only)")
      ->type_name("HOW")
      ->expected(1)
      ->check(one_of({"none", "layer_names_only", "detailed"}));
  command
      ->add_option("--timing-cache", arguments->options.timing_cache,
                   "timing cache to read and extend; several builds may share it; TensorRT-RTX does not use one")
      ->type_name("FILE");
  command
      ->add_option("--time-limit", arguments->values["--time-limit"],
                   "a build that prints no message for longer is stopped as hanging (default: 3600), and so is the "
                   "loading of a plugin library (default: 120)")
      ->type_name("SECONDS")
      ->expected(1)
      ->check(positive());
}

}  // namespace graft::cli
