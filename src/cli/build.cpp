// graft build: a TensorRT engine from an ONNX model, with Graft's plugins in it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "cli/engine_command.hpp"
#include "cli/engine_layers.hpp"
#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/program.hpp"
#include "cli/trtexec_options.hpp"
#include "engine/plugin_nodes.hpp"
#include "engine/temporary_folder.hpp"
#include "graft/error.hpp"
#include "graph/check_operators.hpp"
#include "graph/functions.hpp"
#include "graph/onnx_io.hpp"
#include "import/read_model.hpp"

namespace graft::cli {
namespace {

/// An option that the engine driver has under the same name.
struct DriverOption {
  const char* name;
  const char* type;  // null: a flag
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

struct Arguments {
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
  std::map<std::string, std::vector<std::string>> options;  // of driver_options
  std::map<std::string, bool> flags;
  bool layers = false;
};

std::vector<std::string> driver_command(const Arguments& arguments, const std::string& model,
                                        const std::vector<std::string>& libraries) {
  std::vector<std::string> command{"build", model, "--output", arguments.output, "--tensorrt", arguments.tensorrt};
  const auto add = [&](const char* option, const std::vector<std::string>& values) {
    for (const std::string& value : values) command.insert(command.end(), {option, value});
  };
  add("--target", arguments.targets);
  add("--shapes", arguments.shapes);
  add("--plugin-library", libraries);
  if (!arguments.timing_cache.empty()) add("--timing-cache", {arguments.timing_cache});
  if (!arguments.time_limit.empty()) add("--time-limit", {arguments.time_limit});
  if (!arguments.profiling_verbosity.empty()) add("--profiling-verbosity", {arguments.profiling_verbosity});
  for (const auto& [option, values] : arguments.options) add(option.c_str(), values);
  for (const auto& [flag, is_set] : arguments.flags) {
    if (is_set) command.push_back(flag);
  }
  if (arguments.layers) command.emplace_back("--layers");
  return command;
}

std::string shape_text(const nlohmann::json& tensor) {
  std::string text;
  for (const auto& dim : tensor["shape"]) text += (text.empty() ? "" : "x") + (dim == -1 ? "?" : dim.dump());
  return fmt::format("{} {}", tensor.value("dtype", ""), text.empty() ? "scalar" : text);
}

/// The ranges of an input in the profiles.
std::string ranges_text(const nlohmann::json& profiles, const std::string& name) {
  std::string text;
  for (const auto& profile : profiles) {
    if (profile.contains(name)) text += (text.empty() ? "  for " : ", or ") + profile[name].get<std::string>();
  }
  return text;
}

void say_summary(const Console& console, const Arguments& arguments, const nlohmann::json& built, const Json& plugins) {
  std::string targets;
  for (const auto& target : built["targets"]) targets += ", " + target.get<std::string>();
  console.say(fmt::format("wrote {}: {}, {}{}, {:.1f} s", console.paint(arguments.output, Color::strong),
                          bytes_text(built.value("bytes", std::uint64_t{0})), tensorrt_text(built["tensorrt"]), targets,
                          built.value("seconds", 0.0)));
  const nlohmann::json& network = built["network"];
  Table table;
  for (const char* side : {"inputs", "outputs"}) {
    for (const auto& tensor : network[side]) {
      const std::string name = tensor.value("name", "");
      table.add({{side == std::string_view("inputs") ? "input" : "output", Color::faint},
                 name,
                 shape_text(tensor) + ranges_text(built["profiles"], name)});
    }
  }
  table.add({{"layers", Color::faint},
             network["layer_count"].dump(),
             plugins.empty() ? "all native" : count_text(plugins.size(), "of them a plugin", "of them plugins")});
  std::map<std::pair<std::string, std::string>, std::size_t> counts;  // a network may have dozens of the same
  for (const Json& plugin : plugins) {
    const std::string name = fmt::format("{} {}", plugin.value("name", ""), plugin.value("version", ""));
    ++counts[{name, plugin.value("why", "")}];
  }
  for (const auto& [plugin, count] : counts) {
    table.add({{"plugin", Color::faint},
               count == 1 ? plugin.first : fmt::format("{} x {}", count, plugin.first),
               plugin.second});
  }
  const bool has_tf32 = built["options"].value("tf32", false);
  table.add(
      {{"TF32", Color::faint},
       has_tf32 ? "allowed" : "off",
       has_tf32 ? "f32 layers may compute with 10 bits of mantissa" : "f32 layers compute in f32; --tf32 allows it"});
  for (const auto& library : built["plugin_libraries"]) {
    if (library.value("embedded", false)) {
      table.add({{"library", Color::faint}, library.value("path", ""), "inside the engine"});
    }
  }
  console.say(table);
}

Exit build(const Console& console, const Arguments& arguments, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) console.warn(note);
  std::vector<NamedFile> read{{"the model itself", arguments.model}};
  for (const std::string& library : arguments.libraries) read.push_back({"a plugin library", library});
  check_files_apart({{"-o", arguments.output}, {"--timing-cache", arguments.timing_cache}}, read);
  check_is_onnx(arguments.model);
  check_libraries(arguments.libraries);
  Model model = read_model(arguments.model);
  check_operators(model);
  const PluginNodes nodes = find_plugin_nodes(model);
  const bool with_plugins = arguments.plugins == "auto" && !nodes.empty();
  const std::vector<std::string> libraries =
      with_plugins ? plugin_libraries(arguments.model, arguments.libraries, nodes) : arguments.libraries;

  const DeferInterrupts defer;
  std::optional<TemporaryFolder> folder;
  std::string file = arguments.model;
  Renamings renamings;
  if (with_plugins) {
    // A function in the file would win over the plugin of the same name, so the parser gets the nodes alone.
    detach_functions(model);
    folder.emplace();
    file = (folder->path() / "model.onnx").string();
    write_onnx(model, file);
    renamings.emplace_back(file, arguments.model);
  }
  const nlohmann::json built = ask_engine_driver(console, driver_command(arguments, file, libraries), renamings);

  Json plugins = Json::array();
  for (const auto& plugin : built["network"]["plugins"]) {
    Json entry = plugin;
    const auto known = nodes.find(plugin.value("layer", ""));
    entry["why"] = known != nodes.end() ? known->second.why : "the model asks for this plugin by name";
    plugins.push_back(std::move(entry));
  }
  say_summary(console, arguments, built, plugins);
  Json result = built;
  for (const char* own : {"event", "command", "engine_layers"}) result.erase(own);
  result["model"] = arguments.model;
  result["network"]["plugins"] = plugins;
  if (arguments.layers) {
    const EngineLayers layers = engine_layers(model, built["engine_layers"]);
    print_layers(console, layers);
    add_layers(result, layers);
  }
  console.result(result);
  return Exit::done;
}

}  // namespace

void add_build(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  const auto notes = std::make_shared<std::vector<std::string>>();
  CLI::App* command = program.add_command(
      "build",
      "builds a TensorRT engine from an ONNX model, with Graft's plugins in it; needs no GPU with TensorRT-RTX; "
      "trtexec's options are understood too",
      "graft build digits.graft.onnx -o digits.engine --target sm89,sm120 --shapes image=1x1x8x8..8x1x8x8..64x1x8x8",
      [arguments, notes](const Console& c) { return build(c, *arguments, *notes); });
  program.translate("build", [notes](const std::vector<std::string>& words) {
    TrtexecTranslation translation = translate_trtexec(words);
    *notes = std::move(translation.notes);
    return std::move(translation.words);
  });
  command->add_option("MODEL", arguments->model, "an ONNX model; `graft convert` makes one that TensorRT can run")
      ->required();
  command->add_option("-o,--output", arguments->output, "the engine to write")->type_name("FILE")->required();
  command->add_option("--target", arguments->targets, "GPU generations, for example sm89,sm120, or current (default)")
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
      ->check(CLI::IsMember({"auto", "never"}));
  program.add_operators_option(*command);
  command->add_flag("--layers", arguments->layers,
                    "list the engine's layers with their types and the nodes in them, and name what is meant for int8 "
                    "and is not");
  command->add_option("--tensorrt", arguments->tensorrt, "which TensorRT: auto, rtx, full (auto)")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"auto", "rtx", "full"}));
  for (const DriverOption& option : driver_options) {
    if (option.type == nullptr) {
      command->add_flag(option.name, arguments->flags[option.name], option.description);
      continue;
    }
    CLI::Option* added = command->add_option(option.name, arguments->options[option.name], option.description);
    added->type_name(option.type);
    constexpr std::array<std::string_view, 3> numbers{"--optimization-level", "--dla", "--device"};
    if (std::find(numbers.begin(), numbers.end(), option.name) != numbers.end()) {
      added->expected(1)->check(CLI::Range(0, 1000000));
    }
  }
  command
      ->add_option("--profiling-verbosity", arguments->profiling_verbosity,
                   "what the engine tells of its layers: none, layer_names_only, detailed (TensorRT's own: "
                   "layer_names_only)")
      ->type_name("HOW")
      ->check(CLI::IsMember({"none", "layer_names_only", "detailed"}));
  command
      ->add_option("--timing-cache", arguments->timing_cache,
                   "file to read and extend; several builds may share it; TensorRT-RTX keeps none")
      ->type_name("FILE");
  command
      ->add_option("--time-limit", arguments->time_limit,
                   "a build that says nothing for longer counts as hanging (3600), as does a plugin library that takes "
                   "longer to be opened (120)")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
}

}  // namespace graft::cli
