// A TensorRT engine from a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

/// The shapes of a dynamic input that an engine is built for.
struct ShapeRange {
  std::vector<std::int64_t> smallest;
  std::vector<std::int64_t> usual;  ///< What the engine is tuned for.
  std::vector<std::int64_t> largest;
};

/// By dynamic input.
using ShapeRanges = std::map<std::string, ShapeRange>;

/// The most that the builder may use of each memory pool, in bytes; nothing: TensorRT's own limit.
struct MemoryLimits {
  std::optional<std::uint64_t> workspace = {};
  std::optional<std::uint64_t> tactic_shared_memory = {};
  std::optional<std::uint64_t> tactic_dram = {};
  std::optional<std::uint64_t> dla_sram = {};
  std::optional<std::uint64_t> dla_local_dram = {};
  std::optional<std::uint64_t> dla_global_dram = {};
};

/// How an input or an output may lie in memory.
struct PortFormat {
  std::string type = {};  ///< "f16"; empty: the model's.
  /// "linear", "chw4", "hwc8" ... as TensorRT has them (docs/guide/build_options.md); at least one.
  std::vector<std::string> formats = {"linear"};
};

/// A deep learning accelerator.
struct Dla {
  int core = 0;
  bool gpu_fallback = false;  ///< Layers that it cannot run, run on the GPU.
};

/// How much an engine tells of its layers.
enum class ProfilingVerbosity : std::uint8_t { none, layer_names_only, detailed };

struct BuildOptions {
  std::vector<std::string> targets = {};   ///< GPU generations, "sm89"; empty: TensorRT's choice, BuildResult warns.
  ShapeRanges shapes = {};                 ///< Of every optimization profile.
  std::vector<ShapeRanges> profiles = {};  ///< More ranges, each an optimization profile; empty: one, of `shapes`.
  MemoryLimits memory = {};
  std::optional<int> optimization_level = {};        ///< How much TensorRT tries, 0 to 5; nothing: TensorRT's own.
  std::map<std::string, PortFormat> formats = {};    ///< By input or output.
  std::filesystem::path timing_cache = {};           ///< Read and extended; several builds may share it. Not with RTX.
  bool tf32 = false;                                 ///< Let f32 layers compute with 10 bits of mantissa.
  bool version_compatible = false;                   ///< Later versions of TensorRT load the engine too.
  bool exclude_lean_runtime = false;                 ///< With version_compatible: without the lean runtime inside.
  bool embed_plugins = false;                        ///< The engine holds the plugin libraries.
  bool refit = false;                                ///< Weights can be changed later.
  bool strip_weights = false;                        ///< Without weights, which are put back when it is loaded.
  bool weight_streaming = false;                     ///< Weights may stay in host memory at run time.
  std::optional<Dla> dla = {};                       ///< Nothing: the GPU.
  std::optional<int> device = {};                    ///< The GPU to build on, as CUDA counts them.
  bool plugin_override = false;                      ///< Plugins win over ONNX operators and functions of their name.
  std::optional<ProfilingVerbosity> verbosity = {};  ///< Nothing: TensorRT's own, layer_names_only.
  std::optional<double> time_limit = {};  ///< Seconds of silence after which a build counts as hanging; nothing: 3600.
  bool plugins = true;                    ///< False: nodes of Graft become native layers, from their ONNX functions.
  std::vector<std::filesystem::path> plugin_libraries =
      {};                         ///< Beside Graft's own, which is loaded where it is needed.
  std::string tensorrt = "auto";  ///< Which TensorRT: "auto", "rtx" or "full".
  Watch watch = {};
};

/// A layer of the engine that is a plugin.
struct PluginLayer {
  std::string node;  ///< The name of the model's node.
  std::string plugin;
  std::string version;
  std::string why;  ///< "int8 input and output".
};

struct BuildDetails;

struct BuildResult {
  std::uint64_t bytes = 0;  ///< Of the engine's file.
  double seconds = 0;
  std::string tensorrt;  ///< "TensorRT-RTX 1.7.1.116"
  std::vector<std::string> targets;
  std::size_t layers = 0;
  std::vector<PluginLayer> plugins;
  std::vector<std::string> warnings;  ///< Graft's of operators and GPUs without plugins; TensorRT's.
  /// GPUs that the engine is for, and on which its plugins cannot run, as the plugin library has no code for them: the
  /// engine was written, and `warnings` says what to do. Empty where it can run everywhere.
  std::vector<std::string> targets_without_plugins = {};
  std::shared_ptr<const BuildDetails> details = {};  ///< For graft/toolkit/present.hpp.
};

/// Builds an engine with the TensorRT that is installed, through its Python bindings, in a process of its own: a crash
/// of TensorRT is an Error. TensorRT-RTX needs no GPU. The file is written whole or not at all. The interpreter is that
/// of the environment's GRAFT_PYTHON, else that of set_python or of Graft's build, else python3. Throws Error
/// (missing_tool) where Python, TensorRT or the plugin library is not there, Error (answer_is_no) with TensorRT's
/// reasons where it refuses the model, Error (bad_input) for options that it does not take, naming them; Cancelled.
[[nodiscard]] GRAFT_API BuildResult build(const Model& model, const std::filesystem::path& engine,
                                          const BuildOptions& options = {});

/// The interpreter that has TensorRT, for applications that know it: the environment's GRAFT_PYTHON goes before it.
/// Before any other call of the toolkit.
GRAFT_API void set_python(const std::filesystem::path& interpreter);

}  // namespace graft::toolkit
