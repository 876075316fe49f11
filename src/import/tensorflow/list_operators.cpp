// Converts lists of tensors, which loops fill and read. The converted model represents a list as a single tensor, with
// the list's elements along the first axis; for the arrays of TensorFlow 1 this tensor is the "flow".

#include <algorithm>

#include "graft/error.hpp"
#include "import/tensorflow/node_converter.hpp"

namespace graft::tensorflow {
namespace {

/// Sets output `output` of the node to a list of `length` elements of zeros with the shape `element`. Does nothing if
/// this shape is unknown or dynamic, because a loop that fills the list needs no initial value.
void give_zeros(NodeConverter& node, std::size_t output, onnx::Value* length, const std::optional<Ints>& element,
                onnx::ElementType type) {
  if (!element || std::any_of(element->begin(), element->end(), [](std::int64_t dim) { return dim < 0; })) return;
  onnx::Value* count = node.cast(length, onnx::ElementType::i64);
  if (!count->shape || count->shape->size() != 1) count = node.reshape(count, {1});
  onnx::Value* dims = element->empty() ? count : node.concat({count, node.ints_of(*element)});
  node.give(output, node.add("Expand", {node.scalar_of(0, type), dims}));
}

std::optional<Ints> element_shape(NodeConverter& node, std::size_t input) {
  // A scalar -1 means that the shape is unknown.
  const onnx::Value* shape = node.input(input);
  if (!shape->shape || shape->shape->empty()) return std::nullopt;
  return node.ints(input);
}

void reserve(NodeConverter& node) {
  give_zeros(node, 0, node.input(1), element_shape(node, 0), node.type_or("element_dtype", onnx::ElementType::f32));
}

void empty_list(NodeConverter& node) {
  give_zeros(node, 0, node.ints_of({0}), element_shape(node, 0), node.type_or("element_dtype", onnx::ElementType::f32));
}

void array(NodeConverter& node) {
  give_zeros(node, 1, node.input(0), node.shape_or("element_shape"), node.type_or("dtype", onnx::ElementType::f32));
  node.give(0, node.input(0));  // The handle, which no converted node uses.
}

/// Returns an index input as an i64 tensor of shape [1].
onnx::Value* place(NodeConverter& node, std::size_t input) {
  onnx::Value* index = node.as_i64(input);
  return index->shape && index->shape->size() == 1 ? index : node.reshape(index, {1});
}

void first_input(NodeConverter& node) { node.give(node.input(0)); }

void get_item(NodeConverter& node) {
  onnx::Value* list = node.input(node.op() == "TensorArrayReadV3" ? 2 : 0);
  node.give(node.add("Gather", {list, node.input(1)}, {{"axis", std::int64_t{0}}}));
}

void set(NodeConverter& node, onnx::Value* list, onnx::Value* indices, onnx::Value* items) {
  onnx::Value* tuples = node.add("Unsqueeze", {indices, node.ints_of({-1})});
  node.give(node.add("ScatterND", {list, tuples, items}));
}

void set_item(NodeConverter& node) {
  onnx::Value* list = node.input(node.op() == "TensorArrayWriteV3" ? 3 : 0);
  set(node, list, place(node, 1), node.add("Unsqueeze", {node.input(2), node.ints_of({0})}));
}

void push_back(NodeConverter& node) {
  onnx::Value* item = node.add("Unsqueeze", {node.input(1), node.ints_of({0})});
  node.give(node.add("Concat", {node.input(0), item}, {{"axis", std::int64_t{0}}}));
}

void length(NodeConverter& node) {
  onnx::Value* list = node.input(node.op() == "TensorArraySizeV3" ? 1 : 0);
  onnx::Value* count = node.slice_1d(node.shape_of(list), 0, 1);
  node.give(node.cast(node.reshape(count, {}), onnx::ElementType::i32));
}

/// TensorArrayGatherV3(handle, indices, flow) and TensorListGather(list, indices, shape) become Gather(list, indices).
void gather_items(NodeConverter& node) {
  onnx::Value* list = node.input(node.op() == "TensorArrayGatherV3" ? 2 : 0);
  node.give(node.add("Gather", {list, node.input(1)}, {{"axis", std::int64_t{0}}}));
}

/// TensorArrayScatterV3(handle, indices, values, flow) becomes `values`, because the indices are 0..n-1 wherever a
/// tensor is unstacked.
void scatter_items(NodeConverter& node) {
  const onnx::Value* indices = node.input(1);
  const auto known = node.ints(1);
  bool is_whole = false;
  if (indices->producer != nullptr && indices->producer->is("Range")) {
    const auto start = node.ints_in(indices->producer->inputs.at(0));
    const auto delta = node.ints_in(indices->producer->inputs.at(2));
    is_whole = start == Ints{0} && delta == Ints{1};
  }
  if (known) {
    is_whole = true;
    for (std::size_t i = 0; i < known->size(); ++i) is_whole = is_whole && (*known)[i] == static_cast<std::int64_t>(i);
  }
  if (!is_whole)
    node.fail(
        "Graft cannot prove that its indices are 0, 1, 2 ...; only a tensor that is unstacked completely and in order "
        "is supported");
  node.give(node.input(2));
}

}  // namespace

OperatorEntries list_operators() {
  static const std::vector<OperatorEntry> entries = entries_of({{empty_list, "EmptyTensorList"},
                                                                {gather_items, "TensorArrayGatherV3 TensorListGather"},
                                                                {get_item, "TensorArrayReadV3 TensorListGetItem"},
                                                                {scatter_items, "TensorArrayScatterV3"},
                                                                {length, "TensorArraySizeV3 TensorListLength"},
                                                                {array, "TensorArrayV3"},
                                                                {set_item, "TensorArrayWriteV3 TensorListSetItem"},
                                                                {first_input, "TensorListFromTensor TensorListStack"},
                                                                {push_back, "TensorListPushBack"},
                                                                {reserve, "TensorListReserve"}});
  return entries;
}

}  // namespace graft::tensorflow
