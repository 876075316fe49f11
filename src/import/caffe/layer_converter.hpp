// Converts a layer of a Caffe network to nodes of ONNX.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/caffe.pb.h"
#include "graft/operator/operator.hpp"
#include "import/node_builder.hpp"
#include "onnx/wire.hpp"

namespace graft::caffe {

class LayerConverter : public NodeBuilder {
 public:
  /// Creates the converter of `layer`, which adds nodes to `graph`. `pieces` contains the large blobs of the weights
  /// file; see onnx/wire.hpp. All layers of a network share `contents`, the elements of small tensors that inference
  /// knows, and `budget`.
  LayerConverter(LayerParameter& layer, const onnx::Pieces& pieces, onnx::Graph& graph, onnx::ContentsMap& contents,
                 ConstantBudget& budget, std::vector<onnx::Value*> inputs)
      : NodeBuilder(graph, contents, budget, layer.name(), layer.type()),
        layer_(layer),
        pieces_(pieces),
        inputs_(std::move(inputs)) {}

  [[nodiscard]] const LayerParameter& layer() const { return layer_; }
  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  /// Returns bottom `i`. Throws Error if the layer has no such bottom.
  [[nodiscard]] onnx::Value* input(std::size_t i = 0) const;
  /// Returns the dimensions of bottom `i`, with -1 for a dynamic one. Throws Error if the rank is unknown.
  [[nodiscard]] Ints dims(std::size_t i = 0) const;
  /// Returns the size of axis `axis` of bottom `i`. Throws Error if it is dynamic.
  [[nodiscard]] std::int64_t size(std::size_t i, std::size_t axis) const;
  /// Returns the size of axis `axis` of bottom `i` as an operand for arithmetic. Throws Error unless it is between 1
  /// and 2^24.
  [[nodiscard]] std::int64_t small_size(std::size_t i, std::size_t axis) const;
  /// Converts an axis that may count from the end (negative) to one that counts from the start. Throws Error if it is
  /// out of range.
  [[nodiscard]] std::size_t axis(std::int64_t axis, std::size_t rank) const;

  /// Returns a trained blob of the layer and removes its data from the layer. Throws Error if the file lacks the data.
  [[nodiscard]] onnx::TensorData blob(std::size_t i);
  /// Adds trained blob `i` as a constant with the dimensions `dims`, and returns it. `what` names the blob in messages.
  /// The file may have more or fewer dimensions of 1, because old blobs always have four. Throws Error with both shapes
  /// if other dimensions differ.
  onnx::Value* weights(std::size_t i, const Ints& dims, std::string_view what);

  /// Adds an f32 scalar constant.
  onnx::Value* number(double value) { return scalar_of(value, onnx::ElementType::f32); }
  /// Throws Error unless all numbers are at least 1. `what` names the parameter in the message, in backticks.
  void check_positive(const Ints& numbers, std::string_view what) const;
  /// Sets an attribute of one of Graft's operators. Throws Error with the reason if the operator refuses it.
  void set(Operator& op, std::string_view attribute, const AttributeValue& value) const;

  void give(std::size_t i, onnx::Value* value);
  void give(onnx::Value* value) { give(0, value); }
  [[nodiscard]] const std::vector<onnx::Value*>& results() const { return results_; }
  /// Returns the first bottom that the converter did not request with input(), or null if it requested all of them.
  [[nodiscard]] const onnx::Value* unread_input() const;
  [[nodiscard]] std::size_t unread_blobs() const {
    return static_cast<std::size_t>(layer_.blobs_size()) - read_.size();
  }

  [[noreturn]] void fail(const std::string& message) const;

 private:
  /// Returns `tensor` with the elements of blob `i`, which is stored in the format of NVIDIA's branch of Caffe
  /// (raw_data). The elements are moved out of `blob` and converted to f32.
  onnx::TensorData raw_blob(std::size_t i, BlobProto& blob, onnx::TensorData tensor) const;

  LayerParameter& layer_;
  const onnx::Pieces& pieces_;
  std::vector<onnx::Value*> inputs_;
  std::vector<onnx::Value*> results_;
  std::set<std::size_t> read_;  // the indices of the blobs that were read
  mutable std::set<std::size_t> read_inputs_;
};

struct LayerEntry {
  std::string_view type;
  void (*convert)(LayerConverter& layer);
  std::size_t blobs = 0;             ///< The number of trained blobs that the layer requires.
  std::string_view parameters = {};  ///< The field of LayerParameter that holds the parameters.
  /// Notes for the documentation: how the layer is read, and which variants of it are refused.
  std::string_view doc = {};
};

[[nodiscard]] std::span<const LayerEntry> layer_entries();            ///< Returns the layers of Caffe itself.
[[nodiscard]] std::span<const LayerEntry> branch_layer_entries();     ///< Returns the layers of branches of Caffe.
[[nodiscard]] std::span<const LayerEntry> detection_layer_entries();  ///< Returns the layers of object detectors.

}  // namespace graft::caffe
