// Builds a TensorRT engine from a model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/build.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

using report::BuildReport;
using report::PluginLayer;

/// The shapes of a dynamic input for which an engine is built.
struct ShapeRange {
  std::vector<std::int64_t> smallest;
  std::vector<std::int64_t> usual;  ///< The shape for which TensorRT tunes the engine ("opt").
  std::vector<std::int64_t> largest;
};

/// Shape ranges by the name of a dynamic input.
using ShapeRanges = std::map<std::string, ShapeRange>;

/// Returns a range as NAME=MIN..OPT..MAX: "image=1x3x8x8..8x3x8x8..64x3x8x8".
[[nodiscard]] GRAFT_API std::string to_string(const ShapeRanges::value_type& range);

/// The maximum size of each of the builder's memory pools, in bytes. A pool without a value has TensorRT's own limit.
struct MemoryLimits {
  std::optional<std::uint64_t> workspace = {};
  std::optional<std::uint64_t> tactic_shared_memory = {};
  std::optional<std::uint64_t> tactic_dram = {};
  std::optional<std::uint64_t> dla_sram = {};
  std::optional<std::uint64_t> dla_local_dram = {};
  std::optional<std::uint64_t> dla_global_dram = {};
};

/// The type and the memory layouts that an input or output of the engine may have.
struct PortFormat {
  std::string type = {};  ///< The element type, such as "f16"; if empty, the model's type.
  /// The allowed layouts, at least one, by TensorRT's names "linear", "chw4", "hwc8" ... (the guide "Build options, for
  /// users of trtexec").
  std::vector<std::string> formats = {"linear"};
};

/// The deep learning accelerator (DLA) on which an engine runs.
struct Dla {
  int core = 0;
  bool gpu_fallback = false;  ///< Whether layers that the DLA cannot run are run on the GPU.
};

/// The information about its layers that an engine contains.
enum class ProfilingVerbosity : std::uint8_t { none, layer_names_only, detailed };

struct BuildOptions {
  /// GPU architectures such as "sm89", products such as "RTX 4090", or "current". If empty, TensorRT chooses them.
  std::vector<std::string> targets = {};
  ShapeRanges shapes = {};  ///< The ranges of dynamic inputs in every optimization profile.
  /// Further ranges, one element for each optimization profile. If empty, there is a single profile with `shapes`.
  std::vector<ShapeRanges> profiles = {};
  MemoryLimits memory = {};
  std::optional<int> optimization_level = {};  ///< The builder's optimization level, 0 to 5; TensorRT's own if not set.
  std::map<std::string, PortFormat> formats = {};  ///< Formats by the name of an input or output.
  /// TensorRT's timing cache: a file that the build reads and extends. Several builds may share it. Not allowed with
  /// TensorRT-RTX.
  std::filesystem::path timing_cache = {};
  bool tf32 = false;                  ///< Whether f32 layers may use TF32, with a mantissa of 10 bits.
  bool version_compatible = false;    ///< Whether later versions of TensorRT can load the engine.
  bool exclude_lean_runtime = false;  ///< Whether the engine lacks the lean runtime; only with version_compatible.
  bool embed_plugins = false;         ///< Whether the engine contains the plugin libraries.
  bool refit = false;                 ///< Whether the weights can be replaced later.
  /// Whether to leave the weights out of the engine. The application then supplies them when it loads the engine.
  bool strip_weights = false;
  bool weight_streaming = false;   ///< Whether weights may stay in host memory at run time.
  std::optional<Dla> dla = {};     ///< The DLA to run on; if not set, the engine runs on the GPU.
  std::optional<int> device = {};  ///< The CUDA device on which the engine is built.
  bool plugin_override = false;    ///< Whether plugins replace ONNX operators and functions of the same name.
  std::optional<ProfilingVerbosity> verbosity = {};  ///< If not set, TensorRT's default, which is layer_names_only.
  /// Seconds without progress after which a build counts as hanging; 3600 if not set.
  std::optional<double> time_limit = {};
  bool plugins = true;  ///< If false, TensorRT builds Graft's nodes from native layers, using their ONNX functions.
  /// Plugin libraries to load in addition to Graft's own, which is loaded where a node needs it.
  std::vector<std::filesystem::path> plugin_libraries = {};
  std::string tensorrt = "auto";  ///< The TensorRT to build with: "auto", "rtx" or "full".
  bool layers = false;            ///< Whether the report lists the kernels of the engine.
  /// The ONNX file from which the model was loaded. TensorRT reads this file in place of a temporary copy of the model,
  /// unless operators have to become plugins. If empty, TensorRT reads a temporary copy.
  std::filesystem::path model_file = {};
  /// Further options of the engine driver, as `graft build` spells them: "--memory=workspace=2GiB".
  std::vector<std::string> driver_options = {};
  /// Called with every message of TensorRT. If empty, the report has the warnings and the Error has the errors.
  LogCallback on_log = {};
  Watch watch = {};
};

/// Builds an engine with the installed TensorRT, through its Python bindings, in a child process: a crash of TensorRT
/// becomes an Error. TensorRT-RTX needs no GPU. The file is written completely or not at all. The Python interpreter is
/// GRAFT_PYTHON of the environment where that is set; otherwise the first interpreter that exists of these: the
/// argument of set_python, the interpreter of the environment of Graft's wheel, the interpreter of Graft's build,
/// python3 on PATH.
///
/// Throws Error (missing_tool) where Python, TensorRT or the plugin library is missing; Error (answer_is_no) with
/// TensorRT's reasons where TensorRT refuses the model; Error (bad_input) for options that this TensorRT does not
/// support, naming them; Cancelled. Throws Error (answer_is_no) before the build if Graft's plugin library has no code
/// for a target of an engine with plugins. An engine that is known to compute wrong values does not throw:
/// BuildReport::is_sound.
[[nodiscard]] GRAFT_API BuildReport build(const Model& model, const std::filesystem::path& engine,
                                          const BuildOptions& options = {});

/// Ranges for the inputs of a model.
struct SuggestedRanges {
  std::vector<std::string> ranges = {};  ///< The range of each input as NAME=MIN..OPT..MAX, sorted by name.
  bool are_computable = true;            ///< Whether shape inference accepts the optimum sizes of all inputs together.
};

/// Suggests ranges for the inputs that need one in a build: inputs with a dynamic dimension, and inputs whose values
/// determine sizes. `build` accepts a range as a driver option, "--shapes=NAME=MIN..OPT..MAX".
[[nodiscard]] GRAFT_API SuggestedRanges suggest_ranges(const Model& model);

/// The inputs, operators and libraries of a model that a build needs options for.
struct BuildNeeds {
  /// The inputs without a dynamic dimension. A range of such an input is a range of its values.
  std::vector<std::string> fixed_inputs = {};
  /// Inputs without a dynamic dimension whose values are the target shape of a Reshape of a tensor with constant sizes.
  /// MIN, OPT and MAX cannot differ for such an input: the number of elements is fixed, so no dimension of the shape
  /// can grow unless another one shrinks.
  std::vector<std::string> shapes_of_fixed_tensors = {};
  /// Whether a node has a standard ONNX operator that Graft also implements, so that it becomes a plugin if the release
  /// of TensorRT does not have the operator.
  bool may_need_plugin = false;
  std::vector<std::string> library_operators = {};  ///< The operators of loaded libraries in the model, by name.
  std::vector<std::string> libraries = {};          ///< The libraries of these operators that have plugins.
};

/// Determines what a build of the model needs, for the shapes that the model declares. Infers no shapes.
[[nodiscard]] GRAFT_API BuildNeeds find_build_needs(const Model& model);

/// Sets the Python interpreter that has TensorRT installed. GRAFT_PYTHON of the environment takes precedence. Call it
/// before any other function of the toolkit.
GRAFT_API void set_python(const std::filesystem::path& interpreter);

}  // namespace graft::toolkit
