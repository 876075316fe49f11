// Converts operators on blocks and patches of images, and dilated convolutions that are expressed with blocks.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "import/messages.hpp"
#include "import/tensorflow/node_converter.hpp"
#include "import/tensorflow/size_difference.hpp"

namespace graft::tensorflow {
namespace {

/// A size: a number if it is known while the graph is read, otherwise a value with one element.
struct Size {
  std::int64_t known = -1;
  onnx::Value* open = nullptr;
};

Size size_of(NodeConverter& node, onnx::Value* x, std::size_t axis) {
  if (x->shape && (*x->shape)[axis].is_constant()) return {(*x->shape)[axis].value(), nullptr};
  const auto first = static_cast<std::int64_t>(axis);
  return {-1, node.slice_1d(node.shape_of(x), first, first + 1)};
}

Size divided(NodeConverter& node, const Size& size, std::int64_t by) {
  if (size.open != nullptr) return {-1, node.add("Div", {size.open, node.ints_of({by})})};
  if (size.known % by != 0)
    node.fail(fmt::format("a dimension of {} elements is not divisible by {}, which the block size requires",
                          size.known, by));
  return {size.known / by, nullptr};
}

Size multiplied(NodeConverter& node, const Size& size, std::int64_t by) {
  if (size.open != nullptr) return {-1, node.add("Mul", {size.open, node.ints_of({by})})};
  return {(Dim(size.known) * by).value(), nullptr};
}

onnx::Value* reshaped_to(NodeConverter& node, onnx::Value* x, const std::vector<Size>& sizes) {
  const auto open = std::count_if(sizes.begin(), sizes.end(), [](const Size& size) { return size.open != nullptr; });
  if (open > 1) {
    std::vector<onnx::Value*> parts;
    for (const Size& size : sizes) parts.push_back(size.open != nullptr ? size.open : node.ints_of({size.known}));
    return node.add("Reshape", {x, node.concat(parts)});
  }
  Ints dims;
  for (const Size& size : sizes) dims.push_back(size.open != nullptr ? -1 : size.known);
  return node.reshape(x, dims);
}

/// The inputs of SpaceToBatchND or BatchToSpaceND: the block shape, and two paddings or crops for each axis of the
/// block.
struct Blocks {
  Ints block;
  std::optional<onnx::Contents> borders;  ///< Absent if nothing is known about them while the graph is read.
  onnx::Value* open = nullptr;            ///< The paddings or crops as a list, if they are computed at run time.

  [[nodiscard]] std::size_t spatial() const { return block.size(); }
  /// Returns the paddings or crops at the beginnings of the axes, or at their ends if `is_end` is true.
  [[nodiscard]] onnx::Value* along(NodeConverter& node, bool is_end) const {
    Ints places;
    for (std::size_t i = 0; i < spatial(); ++i) places.push_back(static_cast<std::int64_t>(2 * i + (is_end ? 1 : 0)));
    return node.add("Gather", {open, node.ints_of(places)}, {{"axis", std::int64_t{0}}});
  }
};

void check_block(const NodeConverter& node, const Blocks& blocks, std::size_t rank) {
  const Ints& block = blocks.block;
  constexpr std::int64_t most = std::int64_t{1} << 31;
  for (const std::int64_t size : block) {
    if (size < 1 || size > most)
      node.fail(fmt::format("the block size is {}; it must be between 1 and {}", size, most));
  }
  const std::size_t count = blocks.borders ? blocks.borders->size() : block.size() * 2;
  if (count != block.size() * 2 || rank < block.size() + 1) {
    node.fail(
        fmt::format("it has {} block sizes and {} paddings or crops for an input of {} dimensions; there must be two "
                    "paddings or crops for each block size, and more dimensions than block sizes",
                    block.size(), count, rank));
  }
  if (!blocks.borders) return;
  for (const Dim& border : *blocks.borders) {
    if (border.is_constant() && (border.value() < 0 || border.value() > most))
      node.fail(fmt::format("a padding or crop is {}; it must be between 0 and {}", border.value(), most));
  }
}

Blocks blocks_of(NodeConverter& node) {
  const bool is_old = !node.op().ends_with("ND");  // the old operators have a single size for both axes
  Blocks result;
  result.block = is_old ? Ints(2, node.int_or("block_size", 2)) : node.known_ints(1, "the block shape");
  onnx::Value* borders = node.input(is_old ? 1 : 2);
  result.borders = node.dims_in(borders);
  const bool is_known = result.borders && std::all_of(result.borders->begin(), result.borders->end(),
                                                      [](const Dim& border) { return border.is_constant(); });
  if (!is_known) result.open = node.reshape(node.cast(borders, onnx::ElementType::i64), {-1});
  return result;
}

/// Returns the permutation from [n, h/b, b, w/b, b, c] to [b, b, n, h/b, w/b, c], in general for `spatial` axes that
/// are divided into blocks, in a tensor that has `rank` axes before this division.
Ints block_order(std::size_t spatial, std::size_t rank) {
  Ints order;
  for (std::size_t i = 0; i < spatial; ++i) order.push_back(static_cast<std::int64_t>(2 * i + 2));
  order.push_back(0);
  for (std::size_t i = 0; i < spatial; ++i) order.push_back(static_cast<std::int64_t>(2 * i + 1));
  for (std::size_t axis = spatial + 1; axis < rank; ++axis) order.push_back(static_cast<std::int64_t>(spatial + axis));
  return order;
}

/// Returns the input `pads` of ONNX's Pad: the paddings before all `rank` axes, and those after them. Axes without
/// blocks are not padded.
onnx::Value* onnx_pads(NodeConverter& node, const Blocks& blocks, std::size_t rank) {
  const std::size_t spatial = blocks.spatial();
  if (blocks.open != nullptr) {
    onnx::Value* before = node.ints_of({0});
    onnx::Value* between = node.ints_of(Ints(rank - spatial, 0));
    std::vector<onnx::Value*> parts{before, blocks.along(node, false), between, blocks.along(node, true)};
    if (rank > spatial + 1) parts.push_back(node.ints_of(Ints(rank - spatial - 1, 0)));
    return node.concat(parts);
  }
  Ints pads(rank * 2, 0);
  for (std::size_t i = 0; i < spatial; ++i) {
    pads[i + 1] = (*blocks.borders)[2 * i].value();
    pads[rank + i + 1] = (*blocks.borders)[2 * i + 1].value();
  }
  return node.ints_of(pads);
}

/// SpaceToBatch(x) becomes Reshape(Transpose(Reshape(Pad(x)))): positions within a block become images of the batch.
void space_to_batch(NodeConverter& node) {
  const Blocks blocks = blocks_of(node);
  const Ints& block = blocks.block;
  onnx::Value* x = node.input(0);
  const std::size_t rank = node.known_rank(x, "its axes are split");
  const std::size_t spatial = blocks.spatial();
  check_block(node, blocks, rank);
  x = node.add("Pad", {x, onnx_pads(node, blocks, rank)});
  // [n, h, w, c] -> [n, h/b, b, w/b, b, c] -> [b, b, n, h/b, w/b, c] -> [b*b*n, h/b, w/b, c]
  const Size batch = size_of(node, x, 0);
  std::vector<Size> split{batch};
  std::vector<Size> merged{batch};
  for (std::size_t i = 0; i < spatial; ++i) {
    const Size part = divided(node, size_of(node, x, i + 1), block[i]);
    split.push_back(part);
    split.push_back({block[i], nullptr});
    merged.push_back(part);
    merged[0] = multiplied(node, merged[0], block[i]);
  }
  for (std::size_t axis = spatial + 1; axis < rank; ++axis) {
    split.push_back(size_of(node, x, axis));
    merged.push_back(split.back());
  }
  onnx::Value* ordered = node.transpose(reshaped_to(node, x, split), block_order(spatial, rank));
  node.give(reshaped_to(node, ordered, merged));
}

const onnx::Node* producer_of(const onnx::Value* value, std::string_view op) {
  return value != nullptr && value->producer != nullptr && value->producer->is(op) ? value->producer : nullptr;
}

bool are_all(const onnx::Node& node, std::string_view attribute, std::int64_t number) {
  const auto found = node.ints(attribute);
  return !found || std::all_of(found->begin(), found->end(), [&](std::int64_t each) { return each == number; });
}

/// Replaces SpaceToBatchND -> Conv without padding -> BatchToSpaceND of the same blocks with a dilated Conv, and
/// returns its result. Returns null if `node`, the BatchToSpaceND with the given `block` and `crops`, is not the end of
/// such a sequence.
onnx::Value* dilated_convolution(NodeConverter& node, const Ints& block, const onnx::Contents& crops) {
  constexpr std::size_t rank = 4;
  if (block.size() != 2) return nullptr;
  const onnx::Node* back = producer_of(node.input(0), "Transpose");
  const onnx::Node* product = producer_of(back == nullptr ? node.input(0) : back->input(0), "Conv");
  if (product == nullptr || product->attribute("auto_pad") != nullptr || !are_all(*product, "strides", 1) ||
      !are_all(*product, "dilations", 1) || !are_all(*product, "pads", 0)) {
    return nullptr;
  }
  const onnx::Node* there = producer_of(product->input(0), "Transpose");
  // The channels are last, as in the blocks.
  if ((there == nullptr) != (back == nullptr) || there == nullptr) return nullptr;
  const onnx::Node* merged = producer_of(there->input(0), "Reshape");
  const onnx::Node* order = producer_of(merged == nullptr ? nullptr : merged->input(0), "Transpose");
  if (order == nullptr || order->ints("perm") != block_order(2, rank)) return nullptr;
  const onnx::Value* split = order->input(0);
  const onnx::Node* cut = producer_of(split, "Reshape");
  const onnx::Node* padded = producer_of(cut == nullptr ? nullptr : cut->input(0), "Pad");
  if (padded == nullptr || !split->shape || split->shape->size() != rank + 2) return nullptr;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const Dim& size = (*split->shape)[2 * i + 2];
    if (!size.is_constant() || size.value() != block[i]) return nullptr;
  }
  const auto borders = node.dims_in(padded->input(1));
  if (!borders || borders->size() != 2 * rank) return nullptr;
  // The blocks are padded to a multiple of their size, which may depend on a dynamic size. The crops remove as many
  // elements again.
  Ints pads;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const auto pad = constant_difference((*borders)[side * rank + i + 1], crops[2 * i + side]);
      if (!pad || *pad < 0) return nullptr;
      pads.push_back(*pad);
    }
  }
  onnx::Value* x = node.transpose(padded->input(0), *there->ints("perm"));
  Attributes attributes{{"dilations", block}, {"pads", pads}, {"strides", Ints{1, 1}}};
  attributes.emplace_back("group", product->int_or("group", 1));
  if (const auto kernel = product->ints("kernel_shape")) attributes.emplace_back("kernel_shape", *kernel);
  return node.transpose(node.add("Conv", {x, product->input(1)}, attributes), *back->ints("perm"));
}

/// Removes the crops from the axes 1, 2 ... of the merged blocks.
onnx::Value* cropped(NodeConverter& node, onnx::Value* y, const Blocks& blocks) {
  if (blocks.open != nullptr) {
    Ints axes;
    for (std::size_t i = 0; i < blocks.spatial(); ++i) axes.push_back(static_cast<std::int64_t>(i + 1));
    onnx::Value* sizes = node.slice_1d(node.shape_of(y), 1, static_cast<std::int64_t>(blocks.spatial() + 1));
    onnx::Value* ends = node.add("Sub", {sizes, blocks.along(node, true)});
    return node.add("Slice", {y, blocks.along(node, false), ends, node.ints_of(axes)});
  }
  Ints begins;
  Ints ends;
  Ints axes;
  for (std::size_t i = 0; i < blocks.spatial(); ++i) {
    const std::int64_t begin = (*blocks.borders)[2 * i].value();
    const std::int64_t end = (*blocks.borders)[2 * i + 1].value();
    if (begin == 0 && end == 0) continue;
    begins.push_back(begin);
    ends.push_back(end == 0 ? to_the_end : -end);
    axes.push_back(static_cast<std::int64_t>(i + 1));
  }
  if (axes.empty()) return y;
  return node.add("Slice", {y, node.ints_of(begins), node.ints_of(ends), node.ints_of(axes)});
}

void batch_to_space(NodeConverter& node) {
  const Blocks blocks = blocks_of(node);
  const Ints& block = blocks.block;
  onnx::Value* x = node.input(0);
  const std::size_t rank = node.known_rank(x, "its axes are merged");
  const std::size_t spatial = blocks.spatial();
  check_block(node, blocks, rank);
  onnx::Value* dilated = blocks.borders ? dilated_convolution(node, block, *blocks.borders) : nullptr;
  if (dilated != nullptr) {
    node.give(dilated);
    return;
  }
  // [b*b*n, h, w, c] -> [b, b, n, h, w, c] -> [n, h, b, w, b, c] -> [n, h*b, w*b, c]
  std::vector<Size> split;
  std::int64_t product = 1;
  for (const std::int64_t each : block) {
    split.push_back({each, nullptr});
    product = (Dim(product) * each).value();
  }
  split.push_back(divided(node, size_of(node, x, 0), product));
  Ints order{static_cast<std::int64_t>(spatial)};
  std::vector<Size> merged{split.back()};
  for (std::size_t i = 0; i < spatial; ++i) {
    split.push_back(size_of(node, x, i + 1));
    order.push_back(static_cast<std::int64_t>(spatial + 1 + i));
    order.push_back(static_cast<std::int64_t>(i));
    merged.push_back(multiplied(node, split.back(), block[i]));
  }
  for (std::size_t axis = spatial + 1; axis < rank; ++axis) {
    split.push_back(size_of(node, x, axis));
    merged.push_back(split.back());
    order.push_back(static_cast<std::int64_t>(spatial + axis));
  }
  onnx::Value* y = reshaped_to(node, node.transpose(reshaped_to(node, x, split), order), merged);
  node.give(cropped(node, y, blocks));
}

/// ExtractImagePatches(x) becomes a Conv with one-hot weights: the elements of a patch become the channels of a pixel.
void extract_patches(NodeConverter& node) {
  const Ints sizes = node.ints_or("ksizes", {});
  const Ints strides = node.ints_or("strides", {});
  const Ints rates = node.ints_or("rates", {});
  if (sizes.size() != 4 || strides.size() != 4 || rates.size() != 4)
    node.fail("the attributes `ksizes`, `strides` and `rates` must have 4 elements each");
  onnx::Value* images = node.input(0);
  if (node.known_rank(images, "patches are extracted from it") != 4 || !(*images->shape)[3].is_constant()) {
    node.fail("the images must have 4 dimensions and a fixed number of channels; " + give_shapes());
  }
  const std::int64_t channels = (*images->shape)[3].value();
  constexpr std::int64_t most = 1 << 12;
  for (const Ints& numbers : {sizes, strides, rates, Ints{channels}}) {
    for (const std::int64_t number : numbers) {
      if (number < 1 || number > most)
        node.fail(fmt::format(
            "found {} in `ksizes`, `strides`, `rates` or the number of channels; each must be between 1 and {}", number,
            most));
    }
  }
  const std::int64_t outputs = sizes[1] * sizes[2] * channels;
  constexpr std::int64_t most_numbers = 1 << 20;  // so that the product below does not overflow
  if (outputs > most_numbers)
    node.fail(fmt::format("a patch has {} elements; it may have at most {}", outputs, most_numbers));
  // weights[k * channels + c][c][k] = 1 for each position k of the window and each channel c.
  node.check_budget(outputs * outputs, onnx::ElementType::f32);
  std::vector<float> weights(static_cast<std::size_t>(outputs * outputs), 0);
  for (std::int64_t k = 0; k < sizes[1] * sizes[2]; ++k) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t at = (((k * channels + c) * channels) + c) * sizes[1] * sizes[2] + k;
      weights[static_cast<std::size_t>(at)] = 1;
    }
  }
  const onnx::ElementType type = node.type(0);
  if (type != onnx::ElementType::f32) images = node.cast(images, onnx::ElementType::f32);
  Attributes attributes{{"kernel_shape", Ints{sizes[1], sizes[2]}},
                        {"strides", Ints{strides[1], strides[2]}},
                        {"dilations", Ints{rates[1], rates[2]}}};
  const std::string padding = node.text_or("padding", "VALID");
  if (padding == "SAME") {
    Ints begins;
    Ints ends;
    for (const std::size_t i : {std::size_t{1}, std::size_t{2}}) {
      const Dim& size = (*images->shape)[i];
      if (!size.is_constant()) {
        node.fail("attribute `padding` is SAME, and the size of the images is dynamic; " + give_shapes());
      }
      const std::int64_t count = (size.value() + strides[i] - 1) / strides[i];
      const std::int64_t total =
          std::max<std::int64_t>((count - 1) * strides[i] + (sizes[i] - 1) * rates[i] + 1 - size.value(), 0);
      begins.push_back(total / 2);
      ends.push_back(total - total / 2);
    }
    begins.insert(begins.end(), ends.begin(), ends.end());
    attributes.emplace_back("pads", begins);
  } else if (padding != "VALID") {
    node.fail(fmt::format("attribute `padding` is {}; it must be SAME or VALID", padding));
  }
  onnx::Value* filter =
      node.constant_of(reshaped(onnx::TensorData::from_floats(weights), {outputs, channels, sizes[1], sizes[2]}));
  onnx::Value* y = node.add("Conv", {node.transpose(images, {0, 3, 1, 2}), filter}, attributes);
  y = node.transpose(y, {0, 2, 3, 1});
  node.give(type == onnx::ElementType::f32 ? y : node.cast(y, type));
}

}  // namespace

OperatorEntries block_operators() {
  static const std::vector<OperatorEntry> entries = entries_of({{batch_to_space, "BatchToSpace BatchToSpaceND"},
                                                                {extract_patches, "ExtractImagePatches"},
                                                                {space_to_batch, "SpaceToBatch SpaceToBatchND"}});
  return entries;
}

}  // namespace graft::tensorflow
