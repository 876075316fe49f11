// The tensors of a network that have one element along an axis for each box of a list whose length depends on data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onnx/model.hpp"

namespace graft::passes::suppression {

/// A tensor with one element along `axis` for each box of a list. A node that computes such tensors treats all boxes
/// alike: it computes the same elements for a box, whatever other boxes the list has.
struct BoxRows {
  enum class Content : std::uint8_t {
    data,    ///< The elements do not depend on the numbers of the boxes.
    places,  ///< The elements are numbers of boxes, with which tensors of all boxes are gathered.
    mixed    ///< The elements are computed from numbers of boxes.
  };
  std::size_t axis = 0;
  Content content = Content::data;
  std::int64_t most = 0;  ///< The maximum length of the list.
};

/// Follows the tensors of one list through the nodes of a graph.
class BoxList {
 public:
  void add(const onnx::Value& value, const BoxRows& rows) { rows_.insert_or_assign(&value, rows); }

  /// Returns which axis of a tensor has one element for each box of the list, and whether its elements are numbers of
  /// boxes. Returns null if the tensor has no such axis.
  [[nodiscard]] const BoxRows* rows(const onnx::Value* value) const {
    const auto found = rows_.find(value);
    return found == rows_.end() ? nullptr : &found->second;
  }
  /// Returns whether a tensor of integers is computed from the length of the list, and from nothing else that depends
  /// on data.
  [[nodiscard]] bool is_size(const onnx::Value* value) const { return sizes_.contains(value); }
  [[nodiscard]] bool reads_rows(const onnx::Node& node) const;
  [[nodiscard]] bool reads_list(const onnx::Node& node) const;

  /// Adds the outputs of a node that reads tensors of the list. Returns false if the node does not treat all boxes
  /// alike or is not supported; `why_not` is then the reason.
  bool follow(const onnx::Node& node, std::string& why_not);

 private:
  bool follow_sizes(const onnx::Node& node);
  bool follow_broadcast(const onnx::Node& node, std::string& why_not);
  bool follow_concat(const onnx::Node& node, std::string& why_not);
  bool follow_gather(const onnx::Node& node, std::string& why_not);
  bool follow_view(const onnx::Node& node, std::string& why_not);
  bool follow_rest(const onnx::Node& node, std::string& why_not);
  void add_outputs(const onnx::Node& node, const BoxRows& rows);

  std::unordered_map<const onnx::Value*, BoxRows> rows_;
  std::unordered_set<const onnx::Value*> sizes_;
};

/// Returns the axes, counted from the front, that a node names in `axes`, as an attribute or as input 1. Returns
/// nothing if they are not constant, or if they are left out.
[[nodiscard]] std::optional<std::vector<std::size_t>> named_axes(const onnx::Node& node, std::size_t rank);

}  // namespace graft::passes::suppression
