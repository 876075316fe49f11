// Translates trtexec's options by tables.
#include "cli/trtexec_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>

#include "core/shell_quoted.hpp"
#include "graft/error.hpp"

namespace graft::cli {
namespace {

/// An option of trtexec and the option of Graft with the same value. If `graft` is empty, the value is the model.
struct Alias {
  std::string_view trtexec;
  std::string_view graft;
};

constexpr std::array<Alias, 12> value_aliases{{
    {"--onnx", ""},
    {"--saveEngine", "--output"},
    {"--inputIOFormats", "--input-format"},
    {"--outputIOFormats", "--output-format"},
    {"--builderOptimizationLevel", "--optimization-level"},
    {"--timingCacheFile", "--timing-cache"},
    {"--useDLACore", "--dla"},
    {"--profilingVerbosity", "--profiling-verbosity"},
    {"--dynamicPlugins", "--plugin-lib"},
    {"--staticPlugins", "--plugin-lib"},
    {"--setPluginsToSerialize", "--plugin-lib"},
    {"--computeCapabilities", "--target"},
}};

constexpr std::array<Alias, 8> flag_aliases{{
    {"--versionCompatible", "--version-compatible"},
    {"--vc", "--version-compatible"},
    {"--excludeLeanRuntime", "--exclude-lean-runtime"},
    {"--stripWeights", "--strip-weights"},
    {"--stripAllWeights", "--strip-weights"},
    {"--allowWeightStreaming", "--weight-streaming"},
    {"--allowGPUFallback", "--gpu-fallback"},
    {"--dumpLayerInfo", "--layers"},
}};

/// Flags of trtexec that request what `graft build` always does. Alias::graft is a note for the user.
constexpr std::array<Alias, 6> already_so{{
    {"--noTF32", "TF32 is off unless --tf32 allows it"},
    {"--stronglyTyped", "every network is strongly typed"},
    {"--buildOnly", "the engine is built and not run"},
    {"--skipInference", "the engine is built and not run"},
    {"--explicitBatch", "the batch is a dimension like any other"},
    {"--nativeInstanceNorm", "native InstanceNormalization is TensorRT's default"},
}};

/// Flags of trtexec that request a precision. Alias::graft is the value for `graft quantize --precision` that the error
/// message suggests; empty if the message suggests f16, bf16 and int8.
constexpr std::array<Alias, 6> precisions{{
    {"--fp16", "f16"},
    {"--half", "f16"},
    {"--bf16", "bf16"},
    {"--int8", "int8"},
    {"--fp8", ""},
    {"--best", ""},
}};

constexpr std::string_view types_are_in_the_model =
    "The network is strongly typed, the only mode of TensorRT 11 and TensorRT-RTX: every type is in the model.";
constexpr std::string_view only_builds =
    "`graft build` builds an engine and does not run it. Run it with `trtexec --loadEngine=FILE`";
constexpr std::string_view not_offered =
    "`graft build` has no such option. trtexec itself can build models that `graft convert --no-functions` writes, "
    "with --dynamicPlugins=libgraft_plugins.so; if a model contains the functions of Graft's nodes, trtexec builds "
    "them as native layers";

struct Refusal {
  std::string_view option;
  std::string_view why;
};

constexpr std::array<Refusal, 54> refusals{{
    {"--int4", types_are_in_the_model},
    {"--layerPrecisions", types_are_in_the_model},
    {"--layerOutputTypes", types_are_in_the_model},
    {"--precisionConstraints", types_are_in_the_model},
    {"--calib",
     "Scales belong in the model: `graft quantize MODEL -o OUT --precision int8 --cache FILE` writes them there"},
    {"--exportLayerInfo", "Use --layers --json, which writes the layers to standard output"},
    {"--deploy", "`graft convert deploy.prototxt weights.caffemodel -o model.onnx` reads Caffe's networks"},
    {"--uff", "`graft convert frozen.pb -o model.onnx` reads TensorFlow's graphs"},
    {"--loadEngine", only_builds},
    {"--iterations", only_builds},
    {"--duration", only_builds},
    {"--warmUp", only_builds},
    {"--sleepTime", only_builds},
    {"--idleTime", only_builds},
    {"--avgRuns", only_builds},
    {"--infStreams", only_builds},
    {"--streams", only_builds},
    {"--threads", only_builds},
    {"--percentile", only_builds},
    {"--useCudaGraph", only_builds},
    {"--useSpinWait", only_builds},
    {"--useManagedMemory", only_builds},
    {"--useProfile", only_builds},
    {"--useRuntime", only_builds},
    {"--noDataTransfers", only_builds},
    {"--loadInputs", only_builds},
    {"--dumpOutput", only_builds},
    {"--dumpProfile", only_builds},
    {"--dumpRefit", only_builds},
    {"--exportTimes", only_builds},
    {"--exportOutput", only_builds},
    {"--exportProfile", only_builds},
    {"--separateProfileRun", only_builds},
    {"--weightStreamingBudget", only_builds},
    {"--sparsity", not_offered},
    {"--maxAuxStreams", not_offered},
    {"--maxTactics", not_offered},
    {"--avgTiming", not_offered},
    {"--minTiming", not_offered},
    {"--hardwareCompatibilityLevel", not_offered},
    {"--runtimePlatform", not_offered},
    {"--tacticSources", not_offered},
    {"--preview", not_offered},
    {"--directIO", not_offered},
    {"--tilingOptimizationLevel", not_offered},
    {"--l2LimitForTiling", not_offered},
    {"--noBuilderCache", not_offered},
    {"--errorOnTimingCacheMiss", not_offered},
    {"--markDebug", not_offered},
    {"--tempdir", not_offered},
    {"--layerDeviceTypes", not_offered},
    {"--safe", not_offered},
    {"--consistency", not_offered},
    {"--ignoreParsedPluginLibs", not_offered},
}};

template <std::size_t Size>
std::optional<std::string_view> find(const std::array<Alias, Size>& table, std::string_view option) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const Alias& alias) { return alias.trtexec == option; });
  return found == table.end() ? std::nullopt : std::optional(found->graft);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// The shapes of one optimization profile. `inputs` has the names of the inputs in the order of the command line.
struct Profile {
  std::vector<std::string> inputs;
  std::map<std::string, std::array<std::string, 3>> shapes;
};

/// Parses trtexec's notation of shapes: `x:1x3x8x8,'a:0':1x4`.
std::vector<std::pair<std::string, std::string>> named_shapes(const std::string& option, const std::string& value) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& part : split(value, ',')) {
    const std::size_t colon = part.rfind(':');
    if (colon == std::string::npos || colon == 0) {
      throw Error(Error::Kind::bad_input, fmt::format("{}={}: {} is not NAME:SHAPE\nGraft's own notation is --shapes "
                                                      "NAME=MIN..OPT..MAX, for example x=1x3x8x8..4x3x8x8..8x3x8x8",
                                                      option, value, part));
    }
    std::string name = part.substr(0, colon);
    if (name.size() > 2 && name.front() == '\'' && name.back() == '\'') name = name.substr(1, name.size() - 2);
    found.emplace_back(std::move(name), part.substr(colon + 1));
  }
  return found;
}

/// Returns trtexec's limits of memory pools, such as `workspace:512,dlaSRAM:1024K`, with MiB after each size without a
/// unit.
std::string memory_limits(const std::string& value) {
  std::string limits;
  for (const std::string& part : split(value, ',')) {
    const bool has_unit = !part.empty() && std::isalpha(static_cast<unsigned char>(part.back())) != 0;
    limits += (limits.empty() ? "" : ",") + part + (has_unit ? "" : "MiB");
  }
  return limits;
}

/// Removes the periods from targets: `8.9,12.0` becomes `89,120`, and `sm89` stays.
std::string targets(std::string value) {
  value.erase(std::remove(value.begin(), value.end(), '.'), value.end());
  return value;
}

[[noreturn]] void refuse_precision(const std::string& option, std::string_view precision) {
  const std::string next =
      precision.empty() ? "`graft quantize MODEL -o OUT --precision f16`, bf16 or int8 writes such a model"
                        : fmt::format("`graft quantize MODEL -o OUT --precision {}` writes such a model", precision);
  throw Error(Error::Kind::bad_input, fmt::format("{} is an option of trtexec. {} {}, which you can build", option,
                                                  types_are_in_the_model, next));
}

class Translator {
 public:
  explicit Translator(const std::vector<std::string>& words) : words_(words) {}

  TrtexecTranslation translate() {
    for (at_ = 0; at_ < words_.size(); ++at_) {
      const std::size_t equals = words_[at_].find('=');
      option_ = words_[at_].substr(0, equals);
      value_ = equals == std::string::npos ? std::nullopt : std::optional(words_[at_].substr(equals + 1));
      if (option_ == "--") {  // the words after -- are not options
        result_.words.insert(result_.words.end(), words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end());
        break;
      }
      if (!translate_option()) result_.words.push_back(words_[at_]);
    }
    add_profiles();
    if (is_translated_) {
      std::vector<std::string> words;
      for (const std::string& word : result_.words) words.push_back(shell_argument(word));
      result_.notes.push_back(
          fmt::format("trtexec's options, translated to Graft's: graft build {}", fmt::join(words, " ")));
    }
    return std::move(result_);
  }

 private:
  bool translate_option() {
    if (const auto precision = find(precisions, option_)) refuse_precision(option_, *precision);
    for (const Refusal& refusal : refusals) {
      if (refusal.option == option_) {
        throw Error(Error::Kind::bad_input, fmt::format("{} is an option of trtexec\n{}", option_, refusal.why));
      }
    }
    if (const auto reason = find(already_so, option_)) {
      result_.notes.push_back(fmt::format("{}: {}", option_, *reason));
      return true;
    }
    return translate_flag() || translate_value() || translate_shapes();
  }

  bool translate_flag() {
    const auto flag = find(flag_aliases, option_);
    if (!flag) return false;
    add({std::string(*flag)});
    if (option_ == "--stripAllWeights") add({"--refit"});
    return true;
  }

  bool translate_value() {
    if (option_ == "--memPoolSize") {
      add({"--memory", memory_limits(value())});
    } else if (option_ == "--workspace") {
      add({"--memory", "workspace=" + memory_limits(value())});
    } else if (const auto alias = find(value_aliases, option_)) {
      if (!alias->empty()) add({std::string(*alias)});
      std::string given = option_ == "--computeCapabilities" ? targets(value()) : value();
      const bool is_dashed_model = alias->empty() && given.starts_with('-');
      add({is_dashed_model ? "./" + given : std::move(given)});
      if (option_ == "--setPluginsToSerialize" && !embeds_) {
        add({"--embed-plugins"});
        embeds_ = true;
      }
    } else {
      return false;
    }
    return true;
  }

  bool translate_shapes() {
    constexpr std::array<std::string_view, 3> ends{"--minShapes", "--optShapes", "--maxShapes"};
    const auto* const end = std::find(ends.begin(), ends.end(), option_);
    if (end != ends.end()) {
      const std::string option = option_;
      for (const auto& [name, shape] : named_shapes(option, value())) {
        Profile& profile = profiles_[profile_];
        if (profile.shapes.count(name) == 0) profile.inputs.push_back(name);
        profile.shapes[name].at(static_cast<std::size_t>(end - ends.begin())) = shape;
      }
      return true;
    }
    const bool has_value = value_.has_value() || at_ + 1 < words_.size();
    if (!has_value) return false;
    const std::string given = value_ ? *value_ : words_[at_ + 1];
    const bool is_number =
        !given.empty() && given.size() < 6 &&
        std::all_of(given.begin(), given.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if (option_ == "--profile" && is_number) {
      profile_ = std::stoi(value());
      is_translated_ = true;
      return true;
    }
    const bool is_graft_s = given.find('=') != std::string::npos || given.find("..") != std::string::npos;
    if (option_ == "--shapes" && !is_graft_s && given.find(':') != std::string::npos) {
      const std::string option = option_;
      for (const auto& [name, shape] : named_shapes(option, value())) {
        add({"--shapes", fmt::format("{}={}", name, shape)});
      }
      return true;
    }
    return false;
  }

  /// Returns MIN..OPT..MAX for the shapes of one input, where an empty string is a missing shape. As in trtexec, a
  /// missing optimum becomes the maximum or else the minimum, and a missing minimum or maximum becomes the optimum.
  static std::string range(const std::array<std::string, 3>& shapes) {
    const auto& [low, middle, high] = shapes;
    const std::string usual = !middle.empty() ? middle : !high.empty() ? high : low;
    return fmt::format("{}..{}..{}", low.empty() ? usual : low, usual, high.empty() ? usual : high);
  }

  void add_profiles() {
    for (const auto& numbered : profiles_) {
      const Profile& profile = numbered.second;
      std::string joined;
      for (const std::string& input : profile.inputs) {
        const std::string text = input + "=" + range(profile.shapes.at(input));
        if (profiles_.size() == 1) add({"--shapes", text});
        joined += (joined.empty() ? "" : ",") + text;
      }
      if (profiles_.size() > 1) add({"--profile", joined});
    }
  }

  std::string value() {
    if (value_) return *value_;
    if (at_ + 1 >= words_.size()) {
      throw Error(Error::Kind::bad_input,
                  fmt::format("{}: this option needs a value\nWrite {}=VALUE", option_, option_));
    }
    return words_[++at_];
  }

  void add(std::vector<std::string> words) {
    is_translated_ = true;
    std::move(words.begin(), words.end(), std::back_inserter(result_.words));
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  std::string option_;
  std::optional<std::string> value_;
  int profile_ = 0;
  std::map<int, Profile> profiles_;
  bool embeds_ = false;
  bool is_translated_ = false;
  TrtexecTranslation result_;
};

}  // namespace

TrtexecTranslation translate_trtexec(const std::vector<std::string>& words) { return Translator(words).translate(); }

}  // namespace graft::cli
