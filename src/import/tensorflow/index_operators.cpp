// Converts operators that gather, scatter, sort and rearrange by indices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "import/messages.hpp"
#include "import/tensorflow/node_converter.hpp"

namespace graft::tensorflow {
namespace {

Ints iota(std::int64_t count, std::int64_t first = 0) {
  Ints result(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  std::iota(result.begin(), result.end(), first);
  return result;
}

std::int64_t counted_from_start(const NodeConverter& node, std::int64_t axis, std::int64_t rank) {
  const std::int64_t result = axis < 0 ? axis + rank : axis;
  if (result < 0 || result >= rank)
    node.fail(fmt::format("axis {} is out of range, because the input has {} dimensions", axis, rank));
  return result;
}

void gather(NodeConverter& node) {
  std::int64_t axis = node.input_count() > 2 ? node.known_int(2, "the axis") : 0;
  std::int64_t batch = node.int_or("batch_dims", 0);
  onnx::Value* x = node.input(0);
  onnx::Value* indices = node.input(1);
  if (batch == 0) {
    node.give(node.add("Gather", {x, indices}, {{"axis", axis}}));
    return;
  }
  const auto rank = static_cast<std::int64_t>(node.known_rank(x, "some of its axes are batch axes"));
  const auto of_indices = static_cast<std::int64_t>(node.known_rank(indices, "some of its axes are batch axes"));
  const std::int64_t given_batch = batch;
  if (batch < 0) batch += of_indices;
  axis = counted_from_start(node, axis, rank);
  if (batch < 0 || batch > axis || batch > of_indices) {
    node.fail(fmt::format(
        "attribute `batch_dims` is {}; it must be between 0 and {} (a negative value is added to the rank of "
        "the indices, {})",
        given_batch, std::min(axis, of_indices), of_indices));
  }
  // The axis is moved after the batch axes, and the axes between them are moved back in the result.
  if (axis != batch) {
    Ints order = iota(rank);
    order.erase(order.begin() + axis);
    order.insert(order.begin() + batch, axis);
    x = node.transpose(x, order);
  }
  onnx::Value* tuples = node.add("Unsqueeze", {node.cast(indices, onnx::ElementType::i64), node.ints_of({-1})});
  onnx::Value* y = node.add("GatherND", {x, tuples}, {{"batch_dims", batch}});
  if (axis != batch) {
    const std::int64_t looked_up = of_indices - batch;
    Ints order = iota(batch);
    for (std::int64_t i = 0; i < axis - batch; ++i) order.push_back(batch + looked_up + i);
    for (std::int64_t i = 0; i < looked_up; ++i) order.push_back(batch + i);
    for (std::int64_t i = axis + 1; i < rank; ++i) order.push_back(i - 1 + looked_up);
    y = node.transpose(y, order);
  }
  node.give(y);
}

void gather_nd(NodeConverter& node) {
  node.give(node.add("GatherND", {node.input(0), node.as_i64(1)}, {{"batch_dims", node.int_or("batch_dims", 0)}}));
}

/// OneHot becomes Where(index == 0..depth-1, on, off). For an index out of range TensorFlow outputs a row of `off`,
/// whereas ONNX's OneHot counts negative indices from the end.
void one_hot(NodeConverter& node) {
  const std::int64_t depth = node.known_int(1, "the depth");
  constexpr std::int64_t most = 1 << 20;
  if (depth < 0 || depth > most) node.fail(fmt::format("the depth is {}; it must be between 0 and {}", depth, most));
  onnx::Value* index = node.as_i64(0);
  const auto rank = static_cast<std::int64_t>(node.known_rank(index, "an axis is added to it"));
  const std::int64_t given = node.int_or("axis", -1);
  const std::int64_t axis = given < 0 ? given + rank + 1 : given;
  if (axis < 0 || axis > rank)
    node.fail(fmt::format("attribute `axis` is {}; it must be between {} and {}", given, -rank - 1, rank));
  node.check_budget(depth, onnx::ElementType::i64);
  Ints dims(static_cast<std::size_t>(rank - axis + 1), 1);
  dims[0] = depth;
  onnx::Value* numbers = node.constant_of(reshaped(onnx::TensorData::from_ints(iota(depth)), dims));
  onnx::Value* is_it = node.add("Equal", {node.add("Unsqueeze", {index, node.ints_of({axis})}), numbers});
  node.give(node.add("Where", {is_it, node.input(2), node.input(3)}));
}

void scatter_nd(NodeConverter& node) {
  onnx::Value* zeros = node.add("Expand", {node.scalar_of(0, node.type(1)), node.as_i64(2)});
  node.give(node.add("ScatterND", {zeros, node.as_i64(0), node.input(1)}, {{"reduction", std::string("add")}}));
}

void tensor_scatter(NodeConverter& node) {
  onnx::Value* updates = node.input(2);
  std::string reduction = "none";
  if (node.op() == "TensorScatterAdd") reduction = "add";
  if (node.op() == "TensorScatterSub") {
    reduction = "add";
    updates = node.add("Neg", {updates});
  }
  node.give(node.add("ScatterND", {node.input(0), node.as_i64(1), updates}, {{"reduction", reduction}}));
}

void top_k(NodeConverter& node) {
  onnx::Value* k = node.op() == "TopKV2" ? node.as_i64(1) : node.ints_of({node.int_or("k", 1)});
  if (k->shape && k->shape->empty()) k = node.reshape(k, {1});
  const auto results =
      node.add_many("TopK", {node.input(0), k}, 2,
                    {{"axis", std::int64_t{-1}}, {"largest", std::int64_t{1}}, {"sorted", std::int64_t{1}}});
  node.give(0, results[0]);
  node.give(1, node.cast(results[1], node.type_or("index_type", onnx::ElementType::i32)));
}

/// Roll(x) becomes Concat(Slice(x), Slice(x)): elements that are shifted out at one end are inserted at the other.
void roll(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  const Ints shifts = node.known_ints(1, "the shift");
  const Ints axes = node.known_ints(2, "the axis");
  if (shifts.size() != axes.size())
    node.fail(
        fmt::format("it has {} shifts for {} axes; there must be one shift for each axis", shifts.size(), axes.size()));
  const auto rank = static_cast<std::int64_t>(node.known_rank(x, "its axes are rolled"));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = counted_from_start(node, axes[i], rank);
    const Dim& dim = (*x->shape)[static_cast<std::size_t>(axis)];
    std::int64_t shift = shifts[i];
    if (dim.is_constant()) {
      if (dim.value() == 0) continue;
      shift = ((shift % dim.value()) + dim.value()) % dim.value();
    } else if (shift != 0) {
      // With a dynamic size it is unknown whether the shift exceeds the size.
      node.fail(fmt::format("the size of axis {} is dynamic; {}", axis, give_shapes()));
    }
    if (shift == 0) continue;
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      return node.add("Slice", {x, node.ints_of({begin}), node.ints_of({end}), node.ints_of({axis})});
    };
    x = node.add("Concat", {part(-shift, to_the_end), part(0, -shift)}, {{"axis", axis}});
  }
  node.give(x == node.input(0) ? node.add("Identity", {x}) : x);
}

void reverse_sequence(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  const auto rank = static_cast<std::int64_t>(node.known_rank(x, "one of its axes is reversed"));
  const std::int64_t time = counted_from_start(node, node.int_or("seq_dim", 0), rank);
  const std::int64_t batch = counted_from_start(node, node.int_or("batch_dim", 0), rank);
  Ints there{batch, time};  // ONNX's ReverseSequence supports only the first two axes.
  for (std::int64_t i = 0; i < rank; ++i) {
    if (i != batch && i != time) there.push_back(i);
  }
  Ints back(there.size());
  for (std::size_t i = 0; i < there.size(); ++i)
    back[static_cast<std::size_t>(there[i])] = static_cast<std::int64_t>(i);
  const bool is_moved = there != iota(rank);
  onnx::Value* y = node.add("ReverseSequence", {is_moved ? node.transpose(x, there) : x, node.as_i64(1)},
                            {{"batch_axis", std::int64_t{0}}, {"time_axis", std::int64_t{1}}});
  node.give(is_moved ? node.transpose(y, back) : y);
}

/// UnravelIndex converts an index into a flattened tensor to one row of indices per axis.
void unravel_index(NodeConverter& node) {
  const Ints dims = node.known_ints(1, "the dimensions");
  onnx::Value* rest = node.as_i64(0);
  std::vector<onnx::Value*> rows(dims.size());
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] < 1) node.fail(fmt::format("dims (input 1) contains {}; every dimension must be at least 1", dims[i]));
    onnx::Value* size = node.scalar_of(static_cast<double>(dims[i]), onnx::ElementType::i64);
    rows[i] = node.add("Unsqueeze", {node.add("Mod", {rest, size}), node.ints_of({0})});
    rest = node.add("Div", {rest, size});
  }
  if (rows.empty()) node.fail("dims (input 1) is empty; it must have at least 1 dimension");
  node.give(node.cast(node.add("Concat", rows, {{"axis", std::int64_t{0}}}), node.type(0)));
}

void unique(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  // ONNX Runtime supports Unique for no other integer type than i64.
  const bool is_whole = x->type && !is_floating_point(*x->type);
  const auto results =
      node.add_many("Unique", {is_whole ? node.cast(x, onnx::ElementType::i64) : x}, 4, {{"sorted", std::int64_t{0}}});
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i]->type = i == 0 && !is_whole ? x->type : std::optional(onnx::ElementType::i64);
    results[i]->shape = i == 2 ? x->shape : std::optional(Shape{onnx::unknown_dim()});
  }
  const onnx::ElementType type = node.type_or("out_idx", onnx::ElementType::i32);
  node.give(0, is_whole ? node.cast(results[0], *x->type) : results[0]);
  node.give(1, node.cast(results[2], type));
  if (node.op() == "UniqueWithCounts") node.give(2, node.cast(results[3], type));
}

/// DynamicStitch becomes Gather(Concat(parts)): each row is placed at the position that its index states; of rows with
/// the same index, the last one is used.
void stitch(NodeConverter& node) {
  const std::size_t count = node.input_count() / 2;
  if (count == 0) node.fail("it has no input; it needs at least 1");
  std::vector<onnx::Value*> parts;
  Ints places;
  for (std::size_t i = 0; i < count; ++i) {
    const Ints numbers = node.known_ints(i, "the indices");
    onnx::Value* data = node.input(count + i);
    const std::size_t rank = node.known_rank(node.input(i), "it determines how many axes of the data are indexed");
    const std::size_t all = node.known_rank(data, "its rows are reordered");
    Ints dims{static_cast<std::int64_t>(numbers.size())};
    for (std::size_t k = rank; k < all; ++k) {
      const Dim& dim = (*data->shape)[k];
      if (!dim.is_constant()) node.fail("the shape of its data is dynamic; " + give_shapes());
      dims.push_back(dim.value());
    }
    parts.push_back(node.reshape(data, dims));
    places.insert(places.end(), numbers.begin(), numbers.end());
  }
  constexpr std::int64_t most = 1 << 24;
  std::int64_t rows = 0;
  for (const std::int64_t place : places) {
    if (place < 0 || place >= most)
      node.fail(fmt::format("an index is {}; it must be between 0 and {}", place, most - 1));
    rows = std::max(rows, place + 1);
  }
  if (rows > static_cast<std::int64_t>(places.size()))
    node.fail("its indices leave out some rows of the result; they must include every row");
  Ints source(static_cast<std::size_t>(rows), -1);
  for (std::size_t i = 0; i < places.size(); ++i)
    source[static_cast<std::size_t>(places[i])] = static_cast<std::int64_t>(i);
  if (std::find(source.begin(), source.end(), -1) != source.end())
    node.fail("its indices leave out some rows of the result; they must include every row");
  onnx::Value* all = parts.size() == 1 ? parts[0] : node.concat(parts);
  node.give(node.add("Gather", {all, node.ints_of(source)}, {{"axis", std::int64_t{0}}}));
}

/// DynamicPartition becomes Gather(x, NonZero(partitions == i)) for each i.
void partition(NodeConverter& node) {
  const std::int64_t count = node.int_or("num_partitions", 1);
  constexpr std::int64_t most = 1 << 12;
  if (count < 1 || count > most)
    node.fail(fmt::format("it has {} partitions; there must be between 1 and {}", count, most));
  if (node.known_rank(node.input(1), "it determines how many axes are partitioned") != 1) {
    node.fail("the partitions (input 1) must have exactly 1 dimension");
  }
  for (std::int64_t i = 0; i < count; ++i) {
    onnx::Value* is_in = node.add("Equal", {node.input(1), node.scalar_of(static_cast<double>(i), node.type(1))});
    onnx::Value* rows = node.add("Squeeze", {node.add("NonZero", {is_in}), node.ints_of({0})});
    node.give(static_cast<std::size_t>(i), node.add("Gather", {node.input(0), rows}, {{"axis", std::int64_t{0}}}));
  }
}

}  // namespace

OperatorEntries index_operators() {
  static const std::vector<OperatorEntry> entries =
      entries_of({{partition, "DynamicPartition"},
                  {stitch, "DynamicStitch ParallelDynamicStitch"},
                  {gather, "Gather GatherV2"},
                  {gather_nd, "GatherNd"},
                  {one_hot, "OneHot"},
                  {reverse_sequence, "ReverseSequence"},
                  {roll, "Roll"},
                  {scatter_nd, "ScatterNd"},
                  {tensor_scatter, "TensorScatterAdd TensorScatterSub TensorScatterUpdate"},
                  {top_k, "TopK TopKV2"},
                  {unique, "Unique UniqueWithCounts"},
                  {unravel_index, "UnravelIndex"}});
  return entries;
}

}  // namespace graft::tensorflow
