// The report of `build`: the engine, its plugins and layers, and the nodes and GPUs with which it does not work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/field.hpp"
#include "graft/report/inspect.hpp"
#include "graft/report/plugins.hpp"
#include "graft/report/tensorrt.hpp"

namespace graft::report {

/// A tensor of TensorRT's network.
struct NetworkTensor {
  std::string dtype;
  std::string name;
  std::vector<std::int64_t> shape;

  static constexpr auto fields() {
    return std::tuple{field("dtype", &NetworkTensor::dtype, "The element type, such as 'f32'."),
                      field("name", &NetworkTensor::name, "The name of the tensor."),
                      field("shape", &NetworkTensor::shape, "The sizes; -1 for a dynamic dimension.")};
  }
};

/// A layer of the engine that is a plugin.
struct PluginLayer {
  std::string generation;
  std::vector<NetworkTensor> inputs;
  std::string node;
  std::string metadata;
  std::string plugin;
  std::string plugin_namespace;
  std::vector<NetworkTensor> outputs;
  std::string version;
  std::string why;

  static constexpr auto fields() {
    return std::tuple{
        field(nullptr, "generation", &PluginLayer::generation, "'V2', which NVIDIA deprecates, or 'V3'."),
        field(nullptr, "inputs", &PluginLayer::inputs, "The inputs of the layer."),
        field("node", "layer", &PluginLayer::node, "The name of the node in the model."),
        field(nullptr, "metadata", &PluginLayer::metadata,
              "The plugin's description of itself: its operator and attributes; may be empty."),
        field("plugin", "name", &PluginLayer::plugin, "The name of the plugin's creator in TensorRT's registry."),
        field(nullptr, "namespace", &PluginLayer::plugin_namespace, "The namespace of the plugin; often empty."),
        field(nullptr, "outputs", &PluginLayer::outputs, "The outputs of the layer."),
        field("version", &PluginLayer::version, "The version of the plugin, for example '1'."),
        field("why", &PluginLayer::why, "The reason for the plugin, for example 'int8 input and output'.")};
  }
};

/// The network that TensorRT's parser created from the model.
struct ParsedNetwork {
  std::vector<NetworkTensor> inputs;
  std::size_t layer_count = 0;
  std::map<std::string, std::size_t, std::less<>> layer_types;
  std::vector<NetworkTensor> outputs;
  std::vector<PluginLayer> plugins;

  static constexpr auto fields() {
    return std::tuple{
        field("inputs", &ParsedNetwork::inputs, "The inputs."),
        field("layer_count", &ParsedNetwork::layer_count, "The number of layers."),
        field("layer_types", &ParsedNetwork::layer_types, "The number of layers by TensorRT's name of their type."),
        field("outputs", &ParsedNetwork::outputs, "The outputs."),
        field("plugins", &ParsedNetwork::plugins, "The layers that are plugins.")};
  }
};

/// The options of TensorRT's builder that were set. TF32 is always listed; it is off unless it was set.
struct BuilderOptions {
  std::optional<std::int64_t> dla = {};
  std::optional<bool> embed_plugins = {};
  std::optional<bool> exclude_lean_runtime = {};
  std::optional<bool> gpu_fallback = {};
  std::vector<std::string> input_formats = {};
  std::map<std::string, std::uint64_t, std::less<>> memory = {};
  std::optional<std::int64_t> optimization_level = {};
  std::vector<std::string> output_formats = {};
  std::optional<std::string> profiling_verbosity = {};
  std::optional<bool> refit = {};
  std::optional<bool> strip_weights = {};
  bool tf32 = false;
  std::optional<bool> version_compatible = {};
  std::optional<bool> weight_streaming = {};

  static constexpr auto fields() {
    return std::tuple{
        field_if_any("dla", &BuilderOptions::dla, "The core of the DLA that runs the layers."),
        field_if_any("embed_plugins", &BuilderOptions::embed_plugins,
                     "True: the engine contains the plugin libraries."),
        field_if_any("exclude_lean_runtime", &BuilderOptions::exclude_lean_runtime,
                     "True: the engine does not contain the lean runtime."),
        field_if_any("gpu_fallback", &BuilderOptions::gpu_fallback,
                     "True: the GPU runs layers that the DLA does not support."),
        field_if_any("input_formats", &BuilderOptions::input_formats, "Formats of inputs: 'x=f16:hwc8+linear'."),
        field_if_any("memory", &BuilderOptions::memory, "The limits of memory pools in bytes, by TensorRT's names."),
        field_if_any("optimization_level", &BuilderOptions::optimization_level, "The optimization level, 0 to 5."),
        field_if_any("output_formats", &BuilderOptions::output_formats, "Formats of outputs."),
        field_if_any("profiling_verbosity", &BuilderOptions::profiling_verbosity,
                     "The information about its layers that the engine contains: 'none', 'layer_names_only' or "
                     "'detailed'."),
        field_if_any("refit", &BuilderOptions::refit, "True: the weights of the engine can be replaced later."),
        field_if_any("strip_weights", &BuilderOptions::strip_weights, "True: the engine does not contain the weights."),
        field("tf32", &BuilderOptions::tf32, "Whether f32 layers may compute in TF32."),
        field_if_any("version_compatible", &BuilderOptions::version_compatible,
                     "True: later versions of TensorRT load the engine."),
        field_if_any("weight_streaming", &BuilderOptions::weight_streaming,
                     "True: weights may stay in host memory at run time.")};
  }
};

/// A plugin library that was loaded for the build.
struct LoadedPluginLibrary : PluginLibrary {
  bool embedded = false;

  static constexpr auto fields() {
    return std::tuple_cat(PluginLibrary::fields(), std::tuple{field("embedded", &LoadedPluginLibrary::embedded,
                                                                    "Whether the engine contains the library.")});
  }
};

/// The GPU that was selected for the build.
struct BuildDevice {
  std::string compute_capability;
  std::string name;
  std::int64_t number = 0;

  static constexpr auto fields() {
    return std::tuple{field("compute_capability", &BuildDevice::compute_capability,
                            "The compute capability of the GPU, such as '8.9'."),
                      field("name", &BuildDevice::name, "The name of the GPU."),
                      field("number", &BuildDevice::number, "The CUDA index of the GPU.")};
  }
};

/// The file of measured times that the build read and extended.
struct TimingCacheUse {
  std::optional<std::uint64_t> bytes = {};
  std::optional<std::string> path = {};
  std::string state;

  static constexpr auto fields() {
    return std::tuple{field_if_any("bytes", &TimingCacheUse::bytes, "The size of the file, if it was written."),
                      field("path", &TimingCacheUse::path, "The file; null if the build used none."),
                      field("state", &TimingCacheUse::state, "'new', 'extended', 'replaced' or 'not asked for'.")};
  }
};

/// The engine that TensorRT built, as the engine driver reports it. The JSON of `graft build` has the keys of this
/// struct and of its members in alphabetical order.
struct BuiltEngine {
  std::uint64_t bytes = 0;
  std::optional<BuildDevice> device = {};
  std::string engine;
  std::optional<std::string> inspector = {};
  std::string model;
  ParsedNetwork network;
  BuilderOptions options = {};
  std::vector<LoadedPluginLibrary> plugin_libraries;
  std::vector<std::map<std::string, std::string, std::less<>>> profiles;
  double seconds = 0;
  std::string sha256;
  std::vector<std::string> targets;
  TensorRTIdentity tensorrt;
  TimingCacheUse timing_cache;

  [[nodiscard]] std::size_t layer_count() const { return network.layer_count; }
  [[nodiscard]] const std::vector<PluginLayer>& plugins() const { return network.plugins; }
  [[nodiscard]] std::string tensorrt_title() const { return tensorrt.title(); }

  static constexpr auto fields() {
    return std::tuple{
        field("bytes", &BuiltEngine::bytes, "The size of the engine's file."),
        field(nullptr, "device", &BuiltEngine::device, "The GPU that was selected; null if none was."),
        field(nullptr, "engine", &BuiltEngine::engine, "The engine's file."),
        field(nullptr, "inspector", &BuiltEngine::inspector,
              "Always null: `graft build` does not run TensorRT's engine inspector for it."),
        field(nullptr, "model", &BuiltEngine::model, "The model's file."),
        field(nullptr, "network", &BuiltEngine::network, "The network that TensorRT's parser created from the model."),
        field("layers", nullptr, &BuiltEngine::layer_count, "The number of layers of the engine."),
        field("plugins", nullptr, &BuiltEngine::plugins, "The layers of the engine that are plugins."),
        field(nullptr, "options", &BuiltEngine::options, "The options of TensorRT's builder."),
        field(nullptr, "plugin_libraries", &BuiltEngine::plugin_libraries, "The plugin libraries that were loaded."),
        field(nullptr, "profiles", &BuiltEngine::profiles,
              "The ranges of each optimization profile, MIN..OPT..MAX by the name of the input."),
        field("seconds", &BuiltEngine::seconds,
              "The time of the build in seconds, including the start of TensorRT's process."),
        field(nullptr, "sha256", &BuiltEngine::sha256, "The SHA-256 digest of the engine's file."),
        field("targets", &BuiltEngine::targets,
              "The targets that the caller set; empty: the default of TensorRT, see graft.build."),
        field("tensorrt", nullptr, &BuiltEngine::tensorrt_title,
              "The TensorRT that built the engine, for example 'TensorRT-RTX 1.7.1.116'."),
        field(nullptr, "tensorrt", &BuiltEngine::tensorrt, "The TensorRT that built the engine."),
        field(nullptr, "timing_cache", &BuiltEngine::timing_cache, "The timing cache.")};
  }
};

/// An input or output of a kernel.
struct EngineTensor {
  std::string name;
  std::string type;

  static constexpr auto fields() {
    return std::tuple{field("tensor", &EngineTensor::name, "The name of the tensor."),
                      field("type", &EngineTensor::type, "The element type, such as 'i8'.")};
  }
};

/// A kernel of the engine, as TensorRT's engine inspector lists it.
struct EngineLayer {
  std::string name;
  std::string kind;
  bool is_matrix = false;
  std::vector<EngineTensor> inputs;
  std::vector<EngineTensor> outputs;
  std::vector<std::string> nodes;

  static constexpr auto fields() {
    return std::tuple{
        field("name", &EngineLayer::name, "TensorRT's name of the kernel."),
        field("kind", &EngineLayer::kind, "The kind of kernel, as TensorRT names it."),
        field("is_matrix", &EngineLayer::is_matrix,
              "Whether the kernel computes a convolution or a matrix multiplication."),
        field("inputs", &EngineLayer::inputs, "The inputs without constants."),
        field("outputs", &EngineLayer::outputs, "The outputs."),
        field("nodes", &EngineLayer::nodes,
              "Nodes of the model that the kernel computes, by the names that TensorRT's parser uses, without "
              "QuantizeLinear and DequantizeLinear.")};
  }
};

/// A convolution or matrix product that follows DequantizeLinear but does not read int8 or f8.
struct FloatIsland {
  NodeRef node;
  std::string layer;
  std::string type;

  [[nodiscard]] std::string node_text() const { return describe(node); }

  static constexpr auto fields() {
    return std::tuple{field("node", &FloatIsland::node_text, "The node, for example \"node 'conv1' (Conv)\"."),
                      field("layer", &FloatIsland::layer, "The name of the kernel."),
                      field("type", &FloatIsland::type, "The type of the first input that is not int8 or f8.")};
  }
};

/// The kernels of the engine.
struct EngineLayers {
  std::vector<EngineLayer> layers;
  std::vector<FloatIsland> islands;
  std::string unknown;

  using Counts = std::map<std::string, std::size_t, std::less<>>;

  [[nodiscard]] static Counts count_reads(const std::vector<EngineLayer>& layers) {
    Counts counts;
    for (const EngineLayer& layer : layers) {
      std::set<std::string> types;
      for (const EngineTensor& tensor : layer.inputs) types.insert(tensor.type);
      for (const std::string& type : types) ++counts[type];
    }
    return counts;
  }
  /// Returns the kernels in `layers` that are convolutions or matrix products.
  [[nodiscard]] std::vector<EngineLayer> matrix_layers() const {
    std::vector<EngineLayer> found = layers;
    std::erase_if(found, [](const EngineLayer& layer) { return !layer.is_matrix; });
    return found;
  }
  [[nodiscard]] Counts reads() const { return count_reads(layers); }
  [[nodiscard]] Counts matrix_reads() const { return count_reads(matrix_layers()); }

  static constexpr auto fields() {
    return std::tuple{
        field("unknown", &EngineLayers::unknown,
              "The reason why the kernels are unknown; empty if the kernels are known."),
        field("reads", &EngineLayers::reads, "The number of kernels that read each type."),
        field("matrix_reads", &EngineLayers::matrix_reads,
              "The number of convolutions and matrix multiplications that read each type."),
        field("f32_islands", &EngineLayers::islands,
              "Convolutions and matrix multiplications that read another type than int8 or f8 although they follow "
              "DequantizeLinear.")};
  }
};

struct BuildReport : BuiltEngine {
  std::vector<NodeSupport> computed_wrongly = {};
  std::optional<EngineLayers> layers = {};  ///< The kernels of the engine; empty if they were not requested.
  std::vector<std::string> notes = {};      ///< Graft's notes on the file, on its operators, and on renamed tensors.
  std::vector<std::string> tensorrt_warnings = {};

  /// Returns the kernels for JSON: the outer optional is empty if they were not requested, the inner one if they are
  /// not known.
  [[nodiscard]] std::optional<std::optional<std::vector<EngineLayer>>> known_layers() const {
    if (!layers) return std::nullopt;
    return layers->unknown.empty() ? std::optional(layers->layers) : std::nullopt;
  }
  /// Returns whether TensorRT is not known to compute a node of the engine wrongly.
  [[nodiscard]] bool is_sound() const { return computed_wrongly.empty(); }

  /// Returns a description of the fault of a node in `computed_wrongly`: "node 'x' (Mod): TensorRT 10.13 builds this
  /// node and computes it wrongly: ...".
  [[nodiscard]] std::string describe_fault(const NodeSupport& wrong) const {
    return describe(wrong.node) + ": " + tensorrt.title() +
           " builds this node and computes it wrongly: " + wrong.reason;
  }
  [[nodiscard]] std::vector<std::string> warnings() const {
    std::vector<std::string> all = notes;
    all.insert(all.end(), tensorrt_warnings.begin(), tensorrt_warnings.end());
    for (const NodeSupport& node : computed_wrongly) all.push_back(describe_fault(node) + "\n" + node.advice);
    return all;
  }

  static constexpr Schema schema{
      "graft build", 1,
      "The engine that was written, the network that TensorRT created from the model, and the plugins in it."};
  static constexpr auto fields() {
    return std::tuple_cat(
        BuiltEngine::fields(),
        std::tuple{
            field("computed_wrongly", &BuildReport::computed_wrongly,
                  "The nodes that this release of TensorRT is known to compute otherwise than ONNX defines; the engine "
                  "was written and computes wrong values, and `graft build` has exit code 1. The verdict is 'lowered' "
                  "where `graft convert` rewrites the node, and 'native' where the advice says what to do."),
            field("warnings", nullptr, &BuildReport::warnings,
                  "Graft's warnings about the file and its operators, then TensorRT's, then one for each node that is "
                  "computed wrongly."),
            field_if_any(nullptr, "layers", &BuildReport::known_layers,
                         "The kernels of the engine, if they were requested; null if the kernels are unknown."),
            field_if_any(nullptr, "layer_summary", &BuildReport::layers,
                         "The types that the kernels read, if the kernels were requested.")});
  }
};

}  // namespace graft::report
