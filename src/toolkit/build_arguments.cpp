// Writes options as `graft build` spells them.
#include "toolkit/build_arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace graft::toolkit {
namespace {

std::string text_of(ProfilingVerbosity verbosity) {
  switch (verbosity) {
    case ProfilingVerbosity::none: return "none";
    case ProfilingVerbosity::detailed: return "detailed";
    case ProfilingVerbosity::layer_names_only: break;
  }
  return "layer_names_only";
}

class BuildArguments {
 public:
  explicit BuildArguments(const Model& model) : outputs_(model.outputs()) {}

  std::vector<std::string> of(const BuildOptions& options) {
    words_ = choice_arguments(options);
    for (const auto& shape : options.shapes) add("--shapes", to_string(shape));
    for (const ShapeRanges& profile : options.profiles) add_profile(profile);
    add_memory(options.memory);
    for (const auto& [name, format] : options.formats) add_format(name, format);
    add("--optimization-level", options.optimization_level);
    if (!options.timing_cache.empty()) add("--timing-cache", options.timing_cache.string());
    add("--tf32", options.tf32);
    add("--version-compatible", options.version_compatible);
    add("--exclude-lean-runtime", options.exclude_lean_runtime);
    add("--embed-plugins", options.embed_plugins);
    add("--refit", options.refit);
    add("--strip-weights", options.strip_weights);
    add("--weight-streaming", options.weight_streaming);
    if (options.dla) {
      add("--dla", std::optional(options.dla->core));
      add("--gpu-fallback", options.dla->gpu_fallback);
    }
    add("--device", options.device);
    add("--plugin-override", options.plugin_override);
    if (options.verbosity) add("--profiling-verbosity", text_of(*options.verbosity));
    if (options.time_limit) add("--time-limit", fmt::format("{}", *options.time_limit));
    add("--layers", options.layers);
    add("--verbose", static_cast<bool>(options.on_log));
    words_.insert(words_.end(), options.driver_options.begin(), options.driver_options.end());
    return std::move(words_);
  }

 private:
  /// Adds option and value as a single argument, because a separate value that begins with - would be parsed as an
  /// option.
  void add(const char* option, const std::string& value) { words_.push_back(fmt::format("{}={}", option, value)); }
  void add(const char* option, const char* value) { add(option, std::string(value)); }
  void add(const char* option, const std::optional<int>& value) {
    if (value) add(option, std::to_string(*value));
  }
  void add(const char* option, bool is_set) {
    if (is_set) words_.emplace_back(option);
  }

  void add_profile(const ShapeRanges& profile) {
    std::vector<std::string> ranges;
    for (const auto& shape : profile) ranges.push_back(to_string(shape));
    add("--profile", fmt::format("{}", fmt::join(ranges, ",")));
  }

  void add_memory(const MemoryLimits& memory) {
    const auto limit = [&](const char* pool, const std::optional<std::uint64_t>& bytes) {
      if (bytes) add("--memory", fmt::format("{}={}B", pool, *bytes));
    };
    limit("workspace", memory.workspace);
    limit("tacticSharedMemory", memory.tactic_shared_memory);
    limit("tacticDRAM", memory.tactic_dram);
    limit("dlaSRAM", memory.dla_sram);
    limit("dlaLocalDRAM", memory.dla_local_dram);
    limit("dlaGlobalDRAM", memory.dla_global_dram);
  }

  void add_format(const std::string& name, const PortFormat& format) {
    const bool is_output =
        std::any_of(outputs_.begin(), outputs_.end(), [&](const Port& port) { return port.name == name; });
    add(is_output ? "--output-format" : "--input-format",
        fmt::format("{}={}{}{}", name, format.type, format.type.empty() ? "" : ":", fmt::join(format.formats, "+")));
  }

  std::vector<Port> outputs_;
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> choice_arguments(const BuildOptions& options) {
  std::vector<std::string> arguments{"--tensorrt=" + options.tensorrt};
  for (const std::string& target : options.targets) arguments.push_back("--target=" + target);
  return arguments;
}

std::vector<std::string> build_arguments(const Model& model, const BuildOptions& options) {
  return BuildArguments(model).of(options);
}

}  // namespace graft::toolkit
