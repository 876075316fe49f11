// Converts operators on shapes, slices, indices and constants, and operators that pass a tensor on unchanged.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "graft/operator/registry.hpp"
#include "import/messages.hpp"
#include "import/tensorflow/node_converter.hpp"

namespace graft::tensorflow {
namespace {

Ints iota(std::size_t count, std::int64_t first = 0) {
  Ints result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}

void pass_on(NodeConverter& node) {
  if (node.op() == "IdentityN") {
    for (std::size_t i = 0; i < node.input_count(); ++i) node.give(i, node.input(i));
    return;
  }
  node.give(node.input(0));
}

/// EnsureShape disappears. The input gets the fixed sizes of the attribute `shape`, because TensorFlow stops if the
/// tensor has another shape.
void ensure_shape(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  const auto sizes = node.shape_or("shape");
  if (sizes && x->shape && x->shape->size() == sizes->size()) {
    for (std::size_t i = 0; i < sizes->size(); ++i) {
      Dim& dim = (*x->shape)[i];
      if ((*sizes)[i] >= 0 && !dim.is_constant()) dim = (*sizes)[i];
    }
  }
  node.give(x);
}

/// Bitcast disappears between types that Graft stores in the same way: quantized types are stored as integers of the
/// same size.
void bit_cast(NodeConverter& node) {
  if (node.type_or("type", onnx::ElementType::undefined) != node.type(0)) {
    node.fail(
        "it reinterprets the bits of its elements as another type, which ONNX supports only in opset 26 and later; "
        "replace it in the TensorFlow graph");
  }
  node.give(node.input(0));
}

void reshape(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  const auto dims = node.ints(1);
  if (!dims) {
    onnx::Value* shape = node.as_i64(1);
    node.give(node.add("Reshape", {x, shape}, {{"allowzero", std::int64_t{1}}}));
    return;
  }
  Ints wanted = *dims;
  // The limit of TensorFlow's TensorShape class.
  constexpr std::size_t most_dims = 254;
  if (wanted.size() > most_dims) {
    node.fail(fmt::format("the shape has {} dimensions; it may have at most {}", wanted.size(), most_dims));
  }
  auto open_sizes = std::count(wanted.begin(), wanted.end(), -1);
  if (open_sizes > 1) {
    // Graphs that were frozen with dynamic dimensions contain -1 for each of them. A -1 is replaced with 0, by which
    // ONNX copies the size at the same position of the input.
    const std::size_t rank = x->shape ? x->shape->size() : 0;
    for (std::size_t i = 0; i < std::min(rank, wanted.size()) && open_sizes > 1; ++i) {
      if (wanted[i] != -1) continue;
      wanted[i] = 0;
      --open_sizes;
    }
    if (open_sizes > 1) {
      node.fail(fmt::format("the shape is [{}], which has more than one -1; at most one dimension may be -1",
                            fmt::join(*dims, ", ")));
    }
    node.give(node.add("Reshape", {x, node.ints_of(wanted)}));
    return;
  }
  const bool has_zero = std::find(wanted.begin(), wanted.end(), 0) != wanted.end();
  const Attributes attributes = has_zero ? Attributes{{"allowzero", std::int64_t{1}}} : Attributes{};
  node.give(node.add("Reshape", {x, node.ints_of(wanted)}, attributes));
}

void transpose(NodeConverter& node) {
  node.give(node.add("Transpose", {node.input(0)}, {{"perm", node.known_ints(1, "the permutation")}}));
}

void concatenate(NodeConverter& node) {
  const bool axis_is_last = node.op() == "ConcatV2";
  if (node.input_count() < 2) node.fail(fmt::format("it has {} inputs; it must have at least 2", node.input_count()));
  const std::size_t axis_input = axis_is_last ? node.input_count() - 1 : 0;
  const std::int64_t axis = node.known_int(axis_input, "the axis");
  std::vector<onnx::Value*> parts;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    if (i != axis_input) parts.push_back(node.input(i));
  }
  node.give(parts.size() == 1 ? parts[0] : node.add("Concat", parts, {{"axis", axis}}));
}

void give_all(NodeConverter& node, const std::vector<onnx::Value*>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) node.give(i, values[i]);
}

std::size_t output_count(NodeConverter& node, std::int64_t count) {
  constexpr std::int64_t most = 1 << 16;
  if (count < 1 || count > most)
    node.fail(fmt::format("it has {} outputs; it must have between 1 and {}", count, most));
  return static_cast<std::size_t>(count);
}

void split(NodeConverter& node) {
  const bool even = node.op() == "Split";
  onnx::Value* x = node.input(even ? 1 : 0);
  const std::int64_t axis = node.known_int(even ? 0 : 2, "the axis");
  const std::size_t count = output_count(node, node.int_or("num_split", 1));
  if (even) {
    give_all(node, node.add_many("Split", {x}, count, {{"axis", axis}}));
    return;
  }
  Ints sizes = node.known_ints(1, "the sizes");
  const auto open = std::find(sizes.begin(), sizes.end(), -1);
  if (open != sizes.end()) {
    const std::size_t rank = node.known_rank(x, "one of the sizes is -1");
    const std::int64_t place = axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
    if (place < 0 || place >= static_cast<std::int64_t>(rank))
      node.fail(fmt::format("axis {} is out of range, because the input has {} dimensions", axis, rank));
    const Dim& dim = (*x->shape)[static_cast<std::size_t>(place)];
    if (!dim.is_constant())
      node.fail(fmt::format("one of the sizes is -1, and the size of axis {} is unknown; {}", axis, give_shapes()));
    *open = 0;
    std::int64_t rest = dim.value();
    for (const std::int64_t size : sizes) {
      if (__builtin_sub_overflow(rest, size, &rest)) node.fail("the sum of the sizes exceeds 64 bits");
    }
    *open = rest;
  }
  if (sizes.size() != count)
    node.fail(
        fmt::format("it has {} sizes for {} outputs; there must be one size for each output", sizes.size(), count));
  give_all(node, node.add_many("Split", {x, node.ints_of(sizes)}, count, {{"axis", axis}}));
}

void slice(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  const auto begins = node.ints(1);
  const auto sizes = node.ints(2);
  if (begins && sizes && begins->size() == sizes->size()) {
    Ints ends;
    for (std::size_t i = 0; i < sizes->size(); ++i) {
      std::int64_t end = 0;
      const bool open = (*sizes)[i] < 0 || __builtin_add_overflow((*begins)[i], (*sizes)[i], &end);
      ends.push_back(open ? to_the_end : end);
    }
    node.give(node.add("Slice", {x, node.ints_of(*begins), node.ints_of(ends), node.ints_of(iota(ends.size()))}));
    return;
  }
  onnx::Value* begin = node.as_i64(1);
  onnx::Value* size = node.as_i64(2);
  onnx::Value* open = node.add("Less", {size, node.scalar_of(0, onnx::ElementType::i64)});
  onnx::Value* end = node.add("Where", {open, node.ints_of({to_the_end}), node.add("Add", {begin, size})});
  const std::size_t rank = node.known_rank(x, "it is sliced on every axis");
  node.give(node.add("Slice", {x, begin, end, node.ints_of(iota(rank))}));
}

/// StridedSlice becomes the Slice for x[begin:end:stride, ...] of NumPy, with Squeeze and Unsqueeze. Bit masks state
/// which of the begins and ends are ignored.
void strided_slice(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  const auto bit = [&](const char* mask, std::size_t i) { return i < 63 && ((node.int_or(mask, 0) >> i) & 1) != 0; };
  const Ints strides = node.known_ints(3, "the strides");
  const std::size_t count = strides.size();
  const auto begins = node.ints(1);
  const auto ends = node.ints(2);
  if ((begins && begins->size() != count) || (ends && ends->size() != count)) {
    node.fail(fmt::format("begin, end and strides must have the same length; found {} strides", count));
  }
  std::size_t new_axes = 0;
  std::optional<std::size_t> ellipsis;
  for (std::size_t i = 0; i < count; ++i) {
    if (bit("ellipsis_mask", i)) {
      if (ellipsis) node.fail("attribute `ellipsis_mask` has more than one bit set; at most one may be set");
      ellipsis = i;
    } else if (bit("new_axis_mask", i)) {
      ++new_axes;
    }
  }
  Ints onnx_begins;
  Ints onnx_ends;
  Ints onnx_steps;
  Ints axes;
  Ints squeezed;    // the axes of the sliced tensor that a Squeeze removes
  Ints unsqueezed;  // the axes of the result that an Unsqueeze inserts
  bool is_dynamic = false;
  std::vector<onnx::Value*> dynamic_begins;
  std::vector<onnx::Value*> dynamic_ends;
  std::int64_t axis = 0;
  std::int64_t result_axis = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (ellipsis == i) {
      const std::size_t rank = node.known_rank(x, "an ellipsis selects the remaining axes");
      const std::size_t named = count - 1 - new_axes;
      if (named > rank) node.fail(fmt::format("it indexes {} axes, but the input has only {}", named, rank));
      axis += static_cast<std::int64_t>(rank - named);
      result_axis += static_cast<std::int64_t>(rank - named);
      continue;
    }
    if (bit("new_axis_mask", i)) {
      unsqueezed.push_back(result_axis++);
      continue;
    }
    const bool shrinks = bit("shrink_axis_mask", i);
    const bool from_start = bit("begin_mask", i) && !shrinks;
    const bool to_end = bit("end_mask", i) && !shrinks;
    if (strides[i] == 0) node.fail("a stride is 0; it must be positive or negative");
    const bool backwards = strides[i] < 0;
    const auto place = static_cast<std::int64_t>(i);
    onnx::Value* begin = nullptr;
    onnx::Value* end = nullptr;
    if (from_start) {
      begin = node.ints_of({backwards ? to_the_end : 0});
    } else if (begins) {
      begin = node.ints_of({(*begins)[i]});
    } else {
      is_dynamic = true;
      begin = node.slice_1d(node.as_i64(1), place, place + 1);
    }
    if (shrinks) {
      // The end of a slice of one element. After a begin of -1 it cannot be -1 + 1, which would be the start.
      if (begins) {
        const std::int64_t first = (*begins)[i];
        end = node.ints_of({first == -1 || first == to_the_end ? to_the_end : first + 1});
      } else {
        onnx::Value* next = node.add("Add", {begin, node.ints_of({1})});
        onnx::Value* is_last = node.add("Equal", {begin, node.ints_of({-1})});
        end = node.add("Where", {is_last, node.ints_of({to_the_end}), next});
      }
    } else if (to_end) {
      end = node.ints_of({backwards ? std::numeric_limits<std::int64_t>::min() : to_the_end});
    } else if (ends) {
      end = node.ints_of({(*ends)[i]});
    } else {
      is_dynamic = true;
      end = node.slice_1d(node.as_i64(2), place, place + 1);
    }
    const bool is_everything = from_start && to_end && strides[i] == 1;
    if (!is_everything) {
      dynamic_begins.push_back(begin);
      dynamic_ends.push_back(end);
      if (begin->constant() && end->constant()) {
        onnx_begins.push_back(begin->constant()->ints()->at(0));
        onnx_ends.push_back(end->constant()->ints()->at(0));
      }
      onnx_steps.push_back(shrinks ? 1 : strides[i]);
      axes.push_back(axis);
    }
    if (shrinks) {
      squeezed.push_back(axis);
    } else {
      ++result_axis;
    }
    ++axis;
  }
  onnx::Value* y = x;
  if (!axes.empty()) {
    onnx::Value* begin = is_dynamic ? node.concat(dynamic_begins) : node.ints_of(onnx_begins);
    onnx::Value* end = is_dynamic ? node.concat(dynamic_ends) : node.ints_of(onnx_ends);
    y = node.add("Slice", {y, begin, end, node.ints_of(axes), node.ints_of(onnx_steps)});
  }
  if (!squeezed.empty()) y = node.add("Squeeze", {y, node.ints_of(squeezed)});
  if (!unsqueezed.empty()) y = node.add("Unsqueeze", {y, node.ints_of(unsqueezed)});
  node.give(y);
}

void pack(NodeConverter& node) {
  const std::int64_t axis = node.int_or("axis", 0);
  std::vector<onnx::Value*> parts;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    parts.push_back(node.add("Unsqueeze", {node.input(i), node.ints_of({axis})}));
  }
  if (parts.empty()) node.fail("it has no input; it needs at least 1");
  node.give(parts.size() == 1 ? parts[0] : node.add("Concat", parts, {{"axis", axis}}));
}

void unpack(NodeConverter& node) {
  const std::int64_t axis = node.int_or("axis", 0);
  const std::size_t count = output_count(node, node.int_or("num", 1));
  const auto parts = node.add_many("Split", {node.input(0)}, count, {{"axis", axis}});
  for (std::size_t i = 0; i < count; ++i) node.give(i, node.add("Squeeze", {parts[i], node.ints_of({axis})}));
}

void tile(NodeConverter& node) { node.give(node.add("Tile", {node.input(0), node.as_i64(1)})); }

void expand_dims(NodeConverter& node) {
  node.give(node.add("Unsqueeze", {node.input(0), node.ints_of(node.known_ints(1, "the axis"))}));
}

void squeeze(NodeConverter& node) {
  const Ints axes = node.ints_or("squeeze_dims", node.ints_or("axis", {}));
  node.give(axes.empty() ? node.add("Squeeze", {node.input(0)})
                         : node.add("Squeeze", {node.input(0), node.ints_of(axes)}));
}

void shape(NodeConverter& node) {
  const onnx::ElementType type = node.type_or("out_type", onnx::ElementType::i32);
  for (std::size_t i = 0; i < node.input_count(); ++i) node.give(i, node.cast(node.shape_of(node.input(i)), type));
}

void size(NodeConverter& node) {
  node.give(node.cast(node.add("Size", {node.input(0)}), node.type_or("out_type", onnx::ElementType::i32)));
}

void rank(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  if (const auto known = node.rank(x)) {
    node.give(node.scalar_of(static_cast<double>(*known), onnx::ElementType::i32));
    return;
  }
  node.give(node.cast(node.add("Size", {node.shape_of(x)}), onnx::ElementType::i32));
}

/// Returns x expanded to the dimensions in input `dims` of the node. If there are no dimensions, returns x itself,
/// which must then be a scalar.
onnx::Value* expanded(NodeConverter& node, onnx::Value* x, std::size_t dims) {
  const auto known = node.ints(dims);
  return known && known->empty() ? x : node.add("Expand", {x, node.as_i64(dims)});
}

void fill(NodeConverter& node) { node.give(expanded(node, node.input(1), 0)); }

void broadcast_to(NodeConverter& node) { node.give(expanded(node, node.input(0), 1)); }

/// BroadcastArgs(a, b) becomes Where(a == 1, b, a), the shape to which both shapes broadcast.
void broadcast_shapes(NodeConverter& node) {
  const auto length = [](const onnx::Value* shape) -> std::int64_t {
    const bool is_known = shape->shape && shape->shape->size() == 1 && (*shape->shape)[0].is_constant();
    return is_known ? (*shape->shape)[0].value() : -1;
  };
  onnx::Value* longer = node.input(0);
  onnx::Value* shorter = node.input(1);
  if (length(longer) < length(shorter)) std::swap(longer, shorter);
  const std::int64_t missing = length(longer) - length(shorter);
  if (length(shorter) < 0)
    node.fail("the length of at least one of its inputs, two shapes, is unknown; " + give_shapes());
  if (length(shorter) == 0) {
    node.give(longer);
    return;
  }
  onnx::Value* one = node.scalar_of(1, node.type(0));
  if (missing > 0) shorter = node.concat({node.add("Expand", {one, node.ints_of({missing})}), shorter});
  // A size of 1 is replaced by the other size, which may be 0.
  node.give(node.add("Where", {node.add("Equal", {longer, one}), shorter, longer}));
}

void like(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  onnx::Value* number = node.scalar_of(node.op() == "OnesLike" ? 1 : 0, node.type(0));
  node.give(node.add("Expand", {number, node.shape_of(x)}));
}

void range(NodeConverter& node) { node.give(node.add("Range", {node.input(0), node.input(1), node.input(2)})); }

void where(NodeConverter& node) {
  node.give(node.add("Transpose", {node.add("NonZero", {node.input(0)})}, {{"perm", Ints{1, 0}}}));
}

/// Returns the pads of input 1 in ONNX's order, all pads before the axes, followed by all pads after them. TensorFlow
/// stores [before, after] for each axis.
onnx::Value* onnx_pads(NodeConverter& node) {
  if (const auto pads = node.ints(1)) {
    Ints result;
    for (const std::size_t part : {std::size_t{0}, std::size_t{1}}) {
      for (std::size_t i = part; i < pads->size(); i += 2) result.push_back((*pads)[i]);
    }
    return node.ints_of(result);
  }
  onnx::Value* columns = node.add("Transpose", {node.as_i64(1)}, {{"perm", Ints{1, 0}}});
  return node.add("Reshape", {columns, node.ints_of({-1})});
}

void pad(NodeConverter& node) {
  std::vector<onnx::Value*> inputs{node.input(0), onnx_pads(node)};
  if (node.op() == "PadV2") inputs.push_back(node.input(2));
  node.give(node.add("Pad", inputs, {{"mode", std::string("constant")}}));
}

void mirror_pad(NodeConverter& node) {
  const std::string mode = node.text_or("mode", "REFLECT");
  if (mode == "REFLECT") {
    node.give(node.add("Pad", {node.input(0), onnx_pads(node)}, {{"mode", std::string("reflect")}}));
    return;
  }
  if (mode != "SYMMETRIC") node.fail(fmt::format("attribute `mode` is {}; it must be REFLECT or SYMMETRIC", mode));
  // ONNX has no padding mode that also repeats the border element. Graft's operator Padding has one.
  const auto pads = onnx_pads(node)->constant();
  if (!pads)
    node.fail(
        "attribute `mode` is SYMMETRIC, and the paddings (input 1) are computed at run time; they must be constant");
  const auto op = find_operator("Padding")->create();
  Status status = op->set("mode", AttributeValue(std::string("symmetric")));
  if (status.ok()) status = op->set("pads", AttributeValue(*pads->ints()));
  if (!status.ok()) node.fail(std::string(status.message()));
  node.give(node.add_operator(*op, {node.input(0)}));
}

void reverse(NodeConverter& node) {
  const Ints axes = node.known_ints(1, "the axes");
  const std::size_t count = axes.size();
  node.give(node.add("Slice", {node.input(0), node.ints_of(Ints(count, to_the_end)),
                               node.ints_of(Ints(count, std::numeric_limits<std::int64_t>::min())), node.ints_of(axes),
                               node.ints_of(Ints(count, -1))}));
}

void invert_permutation(NodeConverter& node) {
  const Ints permutation = node.known_ints(0, "the permutation");
  std::vector<double> inverse(permutation.size(), 0);
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] < 0 || permutation[i] >= static_cast<std::int64_t>(permutation.size())) {
      node.fail(fmt::format("the permutation [{}] contains {}; each element must be between 0 and {}",
                            fmt::join(permutation, ", "), permutation[i], permutation.size() - 1));
    }
    inverse[static_cast<std::size_t>(permutation[i])] = static_cast<double>(i);
  }
  node.give(node.constant_of(
      onnx::TensorData::from_numbers(node.type(0), {static_cast<std::int64_t>(inverse.size())}, inverse)));
}

}  // namespace

OperatorEntries array_operators() {
  static const std::vector<OperatorEntry> entries =
      entries_of({{bit_cast, "Bitcast"},
                  {broadcast_shapes, "BroadcastArgs"},
                  {broadcast_to, "BroadcastTo"},
                  {pass_on, "CheckNumerics Identity IdentityN PreventGradient Snapshot StopGradient"},
                  {concatenate, "Concat ConcatV2"},
                  {ensure_shape, "EnsureShape"},
                  {expand_dims, "ExpandDims"},
                  {fill, "Fill"},
                  {invert_permutation, "InvertPermutation"},
                  {mirror_pad, "MirrorPad"},
                  {like, "OnesLike ZerosLike"},
                  {pack, "Pack"},
                  {pad, "Pad PadV2"},
                  {range, "Range"},
                  {rank, "Rank"},
                  {reshape, "Reshape"},
                  {reverse, "ReverseV2"},
                  {shape, "Shape ShapeN"},
                  {size, "Size"},
                  {slice, "Slice"},
                  {split, "Split SplitV"},
                  {squeeze, "Squeeze"},
                  {strided_slice, "StridedSlice"},
                  {tile, "Tile"},
                  {transpose, "Transpose"},
                  {unpack, "Unpack"},
                  {where, "Where"}});
  return entries;
}

}  // namespace graft::tensorflow
