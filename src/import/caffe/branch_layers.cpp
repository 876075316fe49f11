// Converts layers that only branches of Caffe have: SSD, DeepLab, PSPNet, SegNet, ShuffleNet, SENet, YOLO. Branches do
// not agree on the field numbers of these layers' parameters.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "graft/operator/registry.hpp"
#include "import/caffe/layer_converter.hpp"

namespace graft::caffe {
namespace {

void permute(LayerConverter& layer) {
  const std::size_t rank = layer.dims().size();
  Ints order(layer.layer().permute_param().order().begin(), layer.layer().permute_param().order().end());
  for (std::size_t i = 0; i < rank; ++i) {
    const auto each = static_cast<std::int64_t>(i);
    if (std::find(order.begin(), order.end(), each) == order.end()) order.push_back(each);
  }
  Ints sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted.size() != rank || sorted[i] != static_cast<std::int64_t>(i)) {
      layer.fail(fmt::format("`order` [{}] is not a permutation of the axes of a bottom with {} dimensions",
                             fmt::join(order, ", "), rank));
    }
  }
  layer.give(layer.add("Transpose", {layer.input()}, {{"perm", order}}));
}

/// Normalize of SSD becomes Graft's Normalize, over the channels of each position or of all positions (across_spatial).
void normalize(LayerConverter& layer) {
  const NormalizeParameter& p = layer.layer().norm_param();
  const auto op = find_operator("Normalize")->create();
  layer.set(*op, "across_spatial", std::int64_t{p.across_spatial() ? 1 : 0});
  layer.set(*op, "channel_shared", std::int64_t{p.channel_shared() ? 1 : 0});
  layer.set(*op, "epsilon", p.eps());
  onnx::Value* factors = layer.weights(0, {p.channel_shared() ? 1 : layer.size(0, 1)}, "scale");
  layer.give(layer.add_operator(*op, {layer.input(), factors}));
}

/// Reorg of YOLOv2 turns the rows and columns of each block into channels. The order is that of reorg_cpu in Darknet's
/// blas.c, which reads the bottom as if it had channels / stride^2 planes of a larger image.
void reorganize(LayerConverter& layer) {
  const ReorgParameter& p = layer.layer().reorg_param();
  if (p.reverse()) layer.fail("`reverse` is true; only `reverse: false` is supported");
  const std::int64_t s = p.stride();
  const std::int64_t c = layer.size(0, 1);
  const std::int64_t h = layer.size(0, 2);
  const std::int64_t w = layer.size(0, 3);
  constexpr std::int64_t most = 1024;
  if (s < 1 || s > most) layer.fail(fmt::format("`stride` is {}; it must be between 1 and {}", s, most));
  if (c % (s * s) != 0 || h % s != 0 || w % s != 0) {
    layer.fail(
        fmt::format("the bottom has {} channels of {}x{}; `stride`, {}, must divide the height and the width, and its "
                    "square must divide the number of channels",
                    c, h, w, s));
  }
  onnx::Value* y = layer.reshape(layer.input(), {0, c / (s * s), h, s, w, s});
  y = layer.transpose(y, {0, 3, 5, 1, 2, 4});
  layer.give(layer.reshape(y, {0, c * s * s, h / s, w / s}));
}

/// Interp of DeepLab and PSPNet becomes a linear Resize with aligned corners. Negative padding crops the bottom. A
/// second bottom determines the size.
void interpolate(LayerConverter& layer) {
  const InterpParameter& p = layer.layer().interp_param();
  if (p.pad_beg() > 0 || p.pad_end() > 0) layer.fail("`pad_beg` or `pad_end` is above 0; both must be 0 or negative");
  const bool has_like = layer.input_count() > 1;
  const bool has_sizes = p.has_height() && p.has_width();
  if (has_like && (has_sizes || p.has_shrink_factor() || p.has_zoom_factor())) {
    layer.fail(
        "its second bottom determines the size; delete the second bottom, or delete `height`, `width`, `zoom_factor` "
        "and `shrink_factor`");
  }
  if (!has_like && !has_sizes && !p.has_shrink_factor() && !p.has_zoom_factor()) {
    layer.fail("it has neither `height` and `width` nor `zoom_factor` nor `shrink_factor`; set one of them");
  }
  layer.check_positive({p.shrink_factor(), p.zoom_factor()}, "`shrink_factor` and `zoom_factor`");
  // Caffe checks the fields in this order.
  const bool by_factors = p.has_shrink_factor() != p.has_zoom_factor() || !has_sizes;
  Ints cut;
  Ints sizes;
  for (const std::size_t axis : {2, 3}) {
    std::int64_t size = layer.small_size(0, axis);
    cut.push_back(size + p.pad_end());
    size += p.pad_beg() + p.pad_end();
    layer.check_positive({size}, "the size after `pad_beg` and `pad_end`");
    if (has_like) {
      size = layer.small_size(1, axis);
    } else if (by_factors) {
      size = (size - 1) / p.shrink_factor() + 1;
      size += (size - 1) * (p.zoom_factor() - 1);
    } else {
      size = axis == 2 ? p.height() : p.width();
    }
    sizes.push_back(size);
  }
  layer.check_positive(sizes, "`height` and `width`");
  onnx::Value* x = layer.input();
  if (p.pad_beg() != 0 || p.pad_end() != 0) {
    x = layer.add("Slice", {x, layer.ints_of({-p.pad_beg(), -p.pad_beg()}), layer.ints_of(cut), layer.ints_of({2, 3})});
  }
  onnx::Value* outer = layer.slice_1d(layer.shape_of(x), 0, 2);
  layer.give(
      layer.add("Resize", {x, nullptr, nullptr, layer.concat({outer, layer.ints_of(sizes)})},
                {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string("align_corners")}}));
}

/// Upsample of SegNet, whose second bottom holds the positions of maxima, moves each number back to its position:
/// Expand(0), then ScatterElements. Upsample of YOLO, with one bottom, repeats each number in a block.
void upsample(LayerConverter& layer) {
  const UpsampleParameter& p = layer.layer().upsample_param();
  const std::int64_t scale_h = p.has_scale_h() ? p.scale_h() : p.scale();
  const std::int64_t scale_w = p.has_scale_w() ? p.scale_w() : p.scale();
  layer.check_positive({scale_h, scale_w}, "`scale`");
  if (p.has_upsample_h() != p.has_upsample_w())
    layer.fail("it has only one of `upsample_h` and `upsample_w`; set both");
  if (layer.input_count() == 1) {
    if (!p.has_scale() && !p.has_scale_h()) layer.fail("it has one bottom and no `scale`; set `scale`, as in scale: 2");
    if (p.has_upsample_h() || p.pad_out_h() || p.pad_out_w()) {
      layer.fail(
          "it has one bottom, but `upsample_h`, `upsample_w`, `pad_out_h` and `pad_out_w` require a second bottom with "
          "the indices of the maxima");
    }
    const onnx::TensorData scales =
        onnx::TensorData::from_floats({1, 1, static_cast<float>(scale_h), static_cast<float>(scale_w)});
    layer.give(layer.add("Resize", {layer.input(), nullptr, layer.constant_of(scales)},
                         {{"mode", std::string("nearest")},
                          {"coordinate_transformation_mode", std::string("asymmetric")},
                          {"nearest_mode", std::string("floor")}}));
    return;
  }
  const std::int64_t channels = layer.small_size(0, 1);
  const std::int64_t elements = layer.small_size(0, 2) * layer.small_size(0, 3);
  const std::int64_t h =
      p.has_upsample_h() ? p.upsample_h() : layer.small_size(0, 2) * scale_h - (p.pad_out_h() ? 1 : 0);
  const std::int64_t w =
      p.has_upsample_w() ? p.upsample_w() : layer.small_size(0, 3) * scale_w - (p.pad_out_w() ? 1 : 0);
  layer.check_positive({h, w}, "the output size, from `upsample_h` and `upsample_w` or from `scale` and `pad_out`,");
  // The bottom stores positions as f32, which represents integers exactly up to this limit.
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (h > most || w > most || h * w > most)
    layer.fail(fmt::format("the output has {} x {} elements; it may have at most {}", h, w, most));
  if (layer.dims(0) != layer.dims(1)) {
    layer.fail(fmt::format("the bottoms have the shapes [{}] and [{}]; the shapes must be equal",
                           fmt::join(layer.dims(0), ", "), fmt::join(layer.dims(1), ", ")));
  }
  onnx::Value* x = layer.reshape(layer.input(), {0, channels, elements});
  onnx::Value* places = layer.reshape(layer.cast(layer.input(1), onnx::ElementType::i64), {0, channels, elements});
  onnx::Value* shape = layer.concat({layer.slice_1d(layer.shape_of(x), 0, 2), layer.ints_of({h * w})});
  onnx::Value* zeros = layer.add("Expand", {layer.number(0), shape});
  onnx::Value* y = layer.add("ScatterElements", {zeros, places, x}, {{"axis", std::int64_t{2}}});
  layer.give(layer.reshape(y, {0, channels, h, w}));
}

/// BN of SegNet, in its inference form with two blobs (a factor and a shift), becomes Mul and Add. BN of PSPNet, with
/// four blobs (a factor, a shift, and statistics), becomes BatchNormalization.
void branch_batch_norm(LayerConverter& layer) {
  const BNParameter& p = layer.layer().bn_param();
  const std::int64_t channels = layer.small_size(0, 1);
  const int blobs = layer.layer().blobs_size();
  if (blobs == 4) {
    layer.give(layer.add("BatchNormalization",
                         {layer.input(), layer.weights(0, {channels}, "scale"), layer.weights(1, {channels}, "bias"),
                          layer.weights(2, {channels}, "mean"), layer.weights(3, {channels}, "variance")},
                         {{"epsilon", p.eps()}}));
    return;
  }
  if (blobs != 2) layer.fail(fmt::format("it has {} blobs of weights; it must have 2 (SegNet) or 4 (PSPNet)", blobs));
  if (p.bn_mode() != BNParameter::INFERENCE) {
    layer.fail(
        "`bn_mode` is LEARN, which uses the statistics of the batch; compute the weights for `bn_mode: INFERENCE` with "
        "SegNet's script compute_bn_statistics.py");
  }
  Ints shape(layer.dims().size() - 1, 1);
  shape[0] = channels;
  onnx::Value* y = layer.add("Mul", {layer.input(), layer.weights(0, shape, "scale")});
  layer.give(layer.add("Add", {y, layer.weights(1, shape, "bias")}));
}

/// Axpy(a, x, y) of SENet becomes Add(Mul(a, x), y), where a has one factor per channel of x.
void axpy(LayerConverter& layer) {
  const Ints dims = layer.dims(1);
  if (dims.size() != 4 || layer.dims(2) != dims) {
    layer.fail(fmt::format(
        "the second and third bottoms have the shapes [{}] and [{}]; they must have the same shape of 4 dimensions",
        fmt::join(dims, ", "), fmt::join(layer.dims(2), ", ")));
  }
  Ints shape{0, layer.size(1, 1), 1, 1};
  if (layer.size(0, 1) != shape[1]) {
    layer.fail(fmt::format("the first bottom has {} channels and the second one {}; the numbers must be equal",
                           layer.size(0, 1), shape[1]));
  }
  onnx::Value* factor = layer.dims(0).size() == 4 ? layer.input(0) : layer.reshape(layer.input(0), shape);
  layer.give(layer.add("Add", {layer.add("Mul", {factor, layer.input(1)}), layer.input(2)}));
}

/// ShuffleChannel(x) of ShuffleNet becomes Reshape(Transpose(Reshape(x))), which interleaves the channels of the
/// groups.
void shuffle_channel(LayerConverter& layer) {
  const std::int64_t group = layer.layer().shuffle_channel_param().group();
  const std::int64_t channels = layer.size(0, 1);
  const std::int64_t h = layer.size(0, 2);
  const std::int64_t w = layer.size(0, 3);
  layer.check_positive({group}, "`group`");
  if (channels % group != 0)
    layer.fail(fmt::format("the {} channels are not divisible by `group`, {}", channels, group));
  onnx::Value* y = layer.reshape(layer.input(), {0, group, channels / group, h, w});
  layer.give(layer.reshape(layer.transpose(y, {0, 2, 1, 3, 4}), {0, channels, h, w}));
}

void relu6(LayerConverter& layer) {
  layer.give(
      layer.add("Clip", {layer.input(), layer.number(0), layer.number(layer.layer().relu6_param().threshold())}));
}

constexpr std::array branch_entries = {
    LayerEntry{"Axpy", axpy},
    LayerEntry{"BN", branch_batch_norm, 2, "bn_param",
               "SegNet's layer with 2 blobs (`bn_mode: INFERENCE` only), PSPNet's with 4 blobs."},
    LayerEntry{"Interp", interpolate, 0, "interp_param", "`pad_beg` and `pad_end` above 0 are refused, as in Caffe."},
    LayerEntry{"Normalize", normalize, 1, "norm_param", "Becomes Graft's Normalize."},
    LayerEntry{"Permute", permute, 0, "permute_param"},
    LayerEntry{"ReLU6", relu6, 0, "relu6_param"},
    LayerEntry{"Reorg", reorganize, 0, "reorg_param", "`reverse: true` is refused."},
    LayerEntry{"ShuffleChannel", shuffle_channel, 0, "shuffle_channel_param"},
    LayerEntry{"Upsample", upsample, 0, "upsample_param",
               "SegNet's layer with two bottoms (the second has the indices of the maxima); YOLO's with one, which "
               "repeats elements."},
};

}  // namespace

std::span<const LayerEntry> branch_layer_entries() { return branch_entries; }

}  // namespace graft::caffe
