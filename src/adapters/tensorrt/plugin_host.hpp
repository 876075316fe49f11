// Runs TensorRT plugins without TensorRT, by the sequence of calls that TensorRT documents.
#pragma once

#include <NvInferRuntime.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graft/operator/attribute.hpp"
#include "graft/operator/tensor.hpp"

namespace graft::tensorrt {

/// A plugin library, loaded as TensorRT loads it: setLoggerFinder, then getCreators.
class PluginLibrary {
 public:
  /// Loads a library. Throws Error with the loader's message if it cannot be loaded, or if it lacks either export.
  explicit PluginLibrary(const std::filesystem::path& path);
  ~PluginLibrary();
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  /// Returns the creators of the V3 interface. Creators of V2 (IPluginCreator) are omitted.
  [[nodiscard]] const std::vector<nvinfer1::IPluginCreatorV3One*>& creators() const { return creators_; }
  /// Returns the creator with this name and version, or null if the library has none.
  [[nodiscard]] nvinfer1::IPluginCreatorV3One* find(const std::string& name, const std::string& version = "1") const;
  /// Returns all lines that the library has logged since the last call.
  std::vector<std::string> take_log();

 private:
  class Logger;
  std::unique_ptr<Logger> logger_;
  void* handle_ = nullptr;
  std::vector<nvinfer1::IPluginCreatorV3One*> creators_;
};

using PluginFields = std::map<std::string, AttributeValue>;

/// A field of any type that a plugin has serialized.
struct SerializedField {
  std::string name;
  nvinfer1::PluginFieldType type = nvinfer1::PluginFieldType::kUNKNOWN;
  std::int32_t length = 0;
  std::vector<std::byte> bytes;

  friend bool operator==(const SerializedField&, const SerializedField&) = default;
};

/// The results of the calls of an engine build: the fields that an engine stores, and the values that the plugin
/// returned.
struct BuiltPlugin {
  std::vector<SerializedField> serialized;
  /// The descriptions of the outputs. Dimensions that depend on data have their upper bounds.
  std::vector<TensorDesc> outputs;
  std::vector<Shape> shapes;  ///< The shapes that getOutputShapes returned, including data sizes.
  std::size_t workspace = 0;
  std::vector<std::int32_t> tactics;
  /// For each output, the input whose memory it uses, or -1 if it has memory of its own.
  std::vector<std::int32_t> aliased;
};

/// Performs the calls of an engine build: createPlugin, getOutputDataTypes, getOutputShapes (once with fixed sizes,
/// once with symbolic dimensions, once with dimensions that are size tensors of other layers), getAliasedInput if the
/// plugin implements it, clone, supportsFormatCombination at every position, configurePlugin, getWorkspaceSize,
/// getFieldsToSerialize. Then re-creates the plugin from the serialized fields, which must serialize to the same
/// fields. Makes no CUDA call and needs no GPU.
///
/// `output_layouts` contains the requested layouts of the outputs; an output without an element in it gets the layout
/// of the first input. `at_runtime` is the creator that re-creates the plugin, if the plugin's name belongs to another
/// creator. `shape_values` are the values of shape inputs, which are passed to getOutputShapes only. Throws Error
/// naming the call that failed or broke a rule.
[[nodiscard]] BuiltPlugin build_plugin(nvinfer1::IPluginCreatorV3One& creator, const PluginFields& fields,
                                       std::span<const TensorDesc> inputs, std::span<const Layout> output_layouts = {},
                                       nvinfer1::IPluginCreatorV3One* at_runtime = nullptr,
                                       std::span<const Extents> shape_values = {});

struct RunOptions {
  std::size_t misalign = 0;  ///< The number of bytes by which every tensor is moved off its 256-byte alignment.
  bool capture = true;       ///< Whether to run the plugin inside CUDA graph capture and replay as well.
  bool any_order = false;    ///< Whether the order of sums may vary, so that results of two runs may differ.
  /// The inputs that onShapeChange receives if their sizes differ from those in enqueue, as after a layer whose sizes
  /// depend on data. If both lists are empty, onShapeChange receives the tensors of enqueue.
  std::span<const TensorDesc> announced_inputs = {};
  std::span<const TensorDesc> announced_outputs = {};
};

/// Performs the calls of inference: createPlugin from the serialized fields, attachToContext, onShapeChange, enqueue.
/// Each tensor lies between guard bytes. Before each run, outputs are filled with a pattern, or with the input's data
/// if they use the memory of an input. Dimensions that depend on data are -1 in descriptions, as TensorRT passes them.
///
/// Returns the bytes of the outputs, truncated to the sizes that the plugin has written. Throws Error if a call fails,
/// if such a size exceeds its upper bound, if a guard or an input whose memory no output uses changes, or if a second
/// run or the replay of a CUDA graph returns other bits (unless `any_order` is set). Finally each tactic is set and run
/// under the same guards.
[[nodiscard]] std::vector<std::vector<std::byte>> run_plugin(nvinfer1::IPluginCreatorV3One& creator,
                                                             const BuiltPlugin& built,
                                                             std::span<const TensorDesc> inputs,
                                                             std::span<const std::vector<std::byte>> input_data,
                                                             const RunOptions& options = {});

}  // namespace graft::tensorrt
