// Drives any TensorRT plugin through the order of calls that TensorRT documents, without TensorRT.
#pragma once

#include <NvInferRuntime.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graft/attribute.hpp"
#include "graft/tensor.hpp"

namespace graft::tensorrt {

/// A plugin library that is loaded as TensorRT loads it: setLoggerFinder, then getCreators.
class PluginLibrary {
 public:
  /// Throws Error if it cannot be loaded or lacks either export; the message is the loader's own.
  explicit PluginLibrary(const std::filesystem::path& path);
  ~PluginLibrary();
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  /// Creators of the V3 interface; others (IPluginCreator of V2) are left out.
  [[nodiscard]] const std::vector<nvinfer1::IPluginCreatorV3One*>& creators() const { return creators_; }
  /// Null for an unknown name or version.
  [[nodiscard]] nvinfer1::IPluginCreatorV3One* find(const std::string& name, const std::string& version = "1") const;
  /// Everything that the library has logged since the last call.
  std::vector<std::string> take_log();

 private:
  class Logger;
  std::unique_ptr<Logger> logger_;
  void* handle_ = nullptr;
  std::vector<nvinfer1::IPluginCreatorV3One*> creators_;
};

using PluginFields = std::map<std::string, AttributeValue>;

/// A field as a plugin serialized it, of any type.
struct SerializedField {
  std::string name;
  nvinfer1::PluginFieldType type = nvinfer1::PluginFieldType::kUNKNOWN;
  std::int32_t length = 0;
  std::vector<std::byte> bytes;

  friend bool operator==(const SerializedField&, const SerializedField&) = default;
};

/// What TensorRT keeps of a plugin in an engine.
struct BuiltPlugin {
  std::vector<SerializedField> serialized;
  std::vector<TensorDesc> outputs;  ///< A dimension that depends on data is as large as it may become.
  std::vector<Shape> shapes;        ///< The same with what getOutputShapes says of such dimensions.
  std::size_t workspace = 0;
  std::vector<std::int32_t> tactics;
  std::vector<std::int32_t> aliased;  ///< Of each output the input whose memory it takes; -1: it has its own.
};

/// The calls of an engine build: createPlugin, getOutputDataTypes, getOutputShapes (once with fixed sizes, once with
/// every dimension symbolic, once with each a size tensor of another layer), getAliasedInput where the plugin has it,
/// clone, supportsFormatCombination at every position, configurePlugin, getWorkspaceSize, getFieldsToSerialize; then
/// re-creation from the serialized fields, which must serialize to the same. Makes no CUDA call and needs no GPU.
/// `output_layouts` are asked for; empty takes those of the first input. Throws Error naming the call that failed or
/// broke a rule. `at_runtime` is the creator that re-creates the plugin, if another one has the name that the plugin
/// says it has. `shape_values` are those of shape inputs, which getOutputShapes alone is told.
[[nodiscard]] BuiltPlugin build_plugin(nvinfer1::IPluginCreatorV3One& creator, const PluginFields& fields,
                                       std::span<const TensorDesc> inputs, std::span<const Layout> output_layouts = {},
                                       nvinfer1::IPluginCreatorV3One* at_runtime = nullptr,
                                       std::span<const Extents> shape_values = {});

struct RunOptions {
  std::size_t misalign = 0;  ///< Bytes by which every tensor is moved off its 256-byte alignment.
  bool capture = true;       ///< Also run inside CUDA graph capture and replay it.
  bool any_order = false;    ///< Sums are made in any order: a later run may give other bits.
  /// What onShapeChange is told where enqueue gets other sizes, as behind a layer whose sizes depend on data; empty:
  /// the same.
  std::span<const TensorDesc> announced_inputs = {};
  std::span<const TensorDesc> announced_outputs = {};
};

/// The calls of inference: createPlugin from the serialized fields, attachToContext, onShapeChange, enqueue. Each
/// tensor lies between guard bytes; the outputs are poisoned before each run, and those that take the memory of an
/// input hold its data then. Descriptions say -1 of dimensions that depend on data, as TensorRT's do. Returns the
/// outputs' bytes, of outputs of such sizes what the plugin may have written; sizes beyond the largest are refused.
/// Throws Error if a call fails, a guard or another input changes, or a second run or the replay gives other bits where
/// they may not; afterwards each tactic is set and run under the same guards.
[[nodiscard]] std::vector<std::vector<std::byte>> run_plugin(nvinfer1::IPluginCreatorV3One& creator,
                                                             const BuiltPlugin& built,
                                                             std::span<const TensorDesc> inputs,
                                                             std::span<const std::vector<std::byte>> input_data,
                                                             const RunOptions& options = {});

}  // namespace graft::tensorrt
