// One layer of a Caffe network while it becomes nodes of ONNX.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/caffe.pb.h"
#include "graft/operator.hpp"
#include "import/node_builder.hpp"
#include "onnx/wire.hpp"

namespace graft::caffe {

class LayerConverter : public NodeBuilder {
 public:
  /// `pieces`: of the file of weights.
  LayerConverter(LayerParameter& layer, const onnx::Pieces& pieces, onnx::Graph& graph, onnx::ContentsMap& contents,
                 ConstantBudget& budget, std::vector<onnx::Value*> inputs)
      : NodeBuilder(graph, contents, budget, layer.name(), layer.type()),
        layer_(layer),
        pieces_(pieces),
        inputs_(std::move(inputs)) {}

  [[nodiscard]] const LayerParameter& layer() const { return layer_; }
  [[nodiscard]] std::size_t input_count() const { return inputs_.size(); }
  [[nodiscard]] onnx::Value* input(std::size_t i = 0) const;  ///< Throws Error where there is none.
  /// Dimensions of an input, -1 where one is open. Throws Error where not even the rank is known.
  [[nodiscard]] Ints dims(std::size_t i = 0) const;
  /// A dimension that has to be known, or Error.
  [[nodiscard]] std::int64_t size(std::size_t i, std::size_t axis) const;
  /// The same, and small enough to compute with: 2^24 at most, or Error.
  [[nodiscard]] std::int64_t small_size(std::size_t i, std::size_t axis) const;
  /// Counted from the end where negative; Error if it is none of the input's.
  [[nodiscard]] std::size_t axis(std::int64_t axis, std::size_t rank) const;

  /// Trained numbers of the layer, taken out of it. Throws Error where the file holds none.
  [[nodiscard]] onnx::TensorData blob(std::size_t i);
  /// The same as a constant of these dims. Dimensions of 1 may be more or fewer in the file, whose blobs had four of
  /// them once; Error names both shapes where the others differ.
  onnx::Value* weights(std::size_t i, const Ints& dims, std::string_view what);

  /// A constant f32 scalar.
  onnx::Value* number(double value) { return scalar_of(value, onnx::ElementType::f32); }
  /// Throws Error where a number of the parameter `what` is below 1.
  void check_positive(const Ints& numbers, std::string_view what) const;
  /// Sets an attribute of one of Graft's operators; Error says what the operator does not take.
  void set(Operator& op, std::string_view attribute, const AttributeValue& value) const;

  void give(std::size_t i, onnx::Value* value);
  void give(onnx::Value* value) { give(0, value); }
  [[nodiscard]] const std::vector<onnx::Value*>& results() const { return results_; }
  /// The first bottom that was not asked for; null where there is none.
  [[nodiscard]] const onnx::Value* unread_input() const;
  [[nodiscard]] std::size_t unread_blobs() const {
    return static_cast<std::size_t>(layer_.blobs_size()) - read_.size();
  }

  [[noreturn]] void fail(const std::string& message) const;

 private:
  /// Numbers in the form of NVIDIA's branch.
  onnx::TensorData raw_blob(std::size_t i, BlobProto& blob, onnx::TensorData tensor) const;

  LayerParameter& layer_;
  const onnx::Pieces& pieces_;
  std::vector<onnx::Value*> inputs_;
  std::vector<onnx::Value*> results_;
  std::set<std::size_t> read_;  // blobs
  mutable std::set<std::size_t> read_inputs_;
};

struct LayerEntry {
  std::string_view type;
  void (*convert)(LayerConverter& layer);
  std::size_t blobs = 0;             ///< Trained blobs that it cannot do without.
  std::string_view parameters = {};  ///< The field of LayerParameter that holds them.
  std::string_view doc = {};         ///< What is special about how it is read, and what of it is refused.
};

[[nodiscard]] std::span<const LayerEntry> layer_entries();            ///< Of Caffe itself.
[[nodiscard]] std::span<const LayerEntry> branch_layer_entries();     ///< Of its branches.
[[nodiscard]] std::span<const LayerEntry> detection_layer_entries();  ///< Of networks that find objects.

}  // namespace graft::caffe
