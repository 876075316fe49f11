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
  /// `pieces` hold the large blobs of the file of weights, see onnx/wire.hpp.
  LayerConverter(LayerParameter& layer, const onnx::Pieces& pieces, onnx::Graph& graph, onnx::ContentsMap& contents,
                 ConstantBudget& budget, std::vector<onnx::Value*> inputs)
      : NodeBuilder(graph, contents, budget, layer.name(), layer.type()),
        layer_(layer),
        pieces_(pieces),
        inputs_(std::move(inputs)) {}

  [[nodiscard]] const LayerParameter& layer() const { return layer_; }
  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  [[nodiscard]] onnx::Value* input(std::size_t i = 0) const;  ///< Throws Error if there is no such input.
  /// Returns the dimensions of an input, -1 for a dynamic one. Throws Error if the rank is unknown.
  [[nodiscard]] Ints dims(std::size_t i = 0) const;
  /// Returns a dimension. Throws Error if it is dynamic.
  [[nodiscard]] std::int64_t size(std::size_t i, std::size_t axis) const;
  /// Returns a dimension that is small enough to compute with. Throws Error unless it is 1 to 2^24.
  [[nodiscard]] std::int64_t small_size(std::size_t i, std::size_t axis) const;
  /// Returns an axis counted from the start; a negative one counts from the end. Throws Error if it is out of range.
  [[nodiscard]] std::size_t axis(std::int64_t axis, std::size_t rank) const;

  /// Returns a trained blob of the layer and removes its numbers from the layer. Throws Error if the file lacks them.
  [[nodiscard]] onnx::TensorData blob(std::size_t i);
  /// Adds a trained blob as a constant of these dims. The file may have more or fewer dimensions of 1, because old
  /// blobs always have four. Throws Error with both shapes if other dimensions differ.
  onnx::Value* weights(std::size_t i, const Ints& dims, std::string_view what);

  /// Adds an f32 scalar constant.
  onnx::Value* number(double value) { return scalar_of(value, onnx::ElementType::f32); }
  /// Throws Error if a number of the parameter `what` is below 1.
  void check_positive(const Ints& numbers, std::string_view what) const;
  /// Sets an attribute of one of Graft's operators. Throws Error with the reason if the operator refuses it.
  void set(Operator& op, std::string_view attribute, const AttributeValue& value) const;

  void give(std::size_t i, onnx::Value* value);
  void give(onnx::Value* value) { give(0, value); }
  [[nodiscard]] const std::vector<onnx::Value*>& results() const { return results_; }
  /// Returns the first bottom that input() was not called for, or null.
  [[nodiscard]] const onnx::Value* unread_input() const;
  [[nodiscard]] std::size_t unread_blobs() const {
    return static_cast<std::size_t>(layer_.blobs_size()) - read_.size();
  }

  [[noreturn]] void fail(const std::string& message) const;

 private:
  /// Returns the numbers of a blob in the form of NVIDIA's branch.
  onnx::TensorData raw_blob(std::size_t i, BlobProto& blob, onnx::TensorData tensor) const;

  LayerParameter& layer_;
  const onnx::Pieces& pieces_;
  std::vector<onnx::Value*> inputs_;
  std::vector<onnx::Value*> results_;
  std::set<std::size_t> read_;  // indices of blobs
  mutable std::set<std::size_t> read_inputs_;
};

struct LayerEntry {
  std::string_view type;
  void (*convert)(LayerConverter& layer);
  std::size_t blobs = 0;             ///< Number of trained blobs that it requires.
  std::string_view parameters = {};  ///< The field of LayerParameter that holds the parameters.
  std::string_view doc = {};         ///< Notes on how the layer is read, and on what is refused.
};

[[nodiscard]] std::span<const LayerEntry> layer_entries();            ///< Layers of Caffe itself.
[[nodiscard]] std::span<const LayerEntry> branch_layer_entries();     ///< Layers of branches of Caffe.
[[nodiscard]] std::span<const LayerEntry> detection_layer_entries();  ///< Layers of object detectors.

}  // namespace graft::caffe
