// Converts operators on the boxes of detectors: non-maximum suppression and cropping.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "import/messages.hpp"
#include "import/tensorflow/node_converter.hpp"

namespace graft::tensorflow {
namespace {

onnx::Value* column(NodeConverter& node, onnx::Value* x, std::int64_t i) {
  return node.add("Gather",
                  {x, node.constant_of(onnx::TensorData::scalar_of(onnx::ElementType::i64, static_cast<double>(i)))},
                  {{"axis", std::int64_t{-1}}});
}

onnx::Value* single(NodeConverter& node, onnx::Value* value) {
  return value->shape && value->shape->size() == 1 ? value : node.reshape(value, {1});
}

/// Converts NonMaxSuppression. Its inputs are boxes [n, 4] and scores [n]; its output contains the indices of the boxes
/// that are kept, the best first.
void suppress(NodeConverter& node) {
  const char version = node.op().back();
  const bool has_threshold = version >= '3';
  if (version == '5') {
    const auto sigma = node.constant(5);
    if (!sigma || sigma->scalar() != 0.0) {
      node.fail(
          "soft_nms_sigma (input 5) is not the constant 0; soft NMS is not supported, so soft_nms_sigma must be 0");
    }
  }
  onnx::Value* boxes = node.cast(node.add("Unsqueeze", {node.input(0), node.ints_of({0})}), onnx::ElementType::f32);
  onnx::Value* scores = node.cast(node.add("Unsqueeze", {node.input(1), node.ints_of({0, 1})}), onnx::ElementType::f32);
  onnx::Value* most = single(node, node.as_i64(2));
  onnx::Value* overlap =
      node.input_count() > 3
          ? single(node, node.cast(node.input(3), onnx::ElementType::f32))
          : single(node, node.scalar_of(node.float_or("iou_threshold", 0.5F), onnx::ElementType::f32));
  std::vector<onnx::Value*> inputs{boxes, scores, most, overlap};
  if (has_threshold) inputs.push_back(single(node, node.cast(node.input(4), onnx::ElementType::f32)));
  onnx::Value* found = column(node, node.add("NonMaxSuppression", inputs), 2);
  onnx::Value* chosen =
      version == '5' ? node.add("Gather", {node.input(1), found}, {{"axis", std::int64_t{0}}}) : nullptr;
  onnx::Value* count = node.shape_of(found);
  if (version >= '4' && node.flag_or("pad_to_max_output_size", false)) {
    onnx::Value* missing = node.concat({node.ints_of({0}), node.add("Sub", {most, count})});
    found = node.add("Pad", {found, missing});
    if (chosen != nullptr) chosen = node.add("Pad", {chosen, missing});
  }
  std::size_t output = 0;
  node.give(output++, node.cast(found, onnx::ElementType::i32));
  if (chosen != nullptr) node.give(output++, chosen);
  if (version >= '4') node.give(output, node.cast(node.reshape(count, {}), onnx::ElementType::i32));
}

/// Converts CombinedNonMaxSuppression. Its inputs are boxes [b, n, q, 4] and scores [b, n, c]; its outputs contain the
/// best boxes of all classes, with zeros in unused rows.
void suppress_combined(NodeConverter& node) {
  onnx::Value* boxes = node.input(0);
  onnx::Value* scores = node.input(1);
  const auto classes_of = [&](const onnx::Value* value) -> std::int64_t {
    return value->shape && value->shape->size() >= 3 && (*value->shape)[2].is_constant() ? (*value->shape)[2].value()
                                                                                         : -1;
  };
  const std::int64_t classes = classes_of(scores);
  const std::int64_t of_boxes = classes_of(boxes);
  if (of_boxes != 1) {
    node.fail("dimension 2 of the boxes (input 0) must be 1: only boxes that all classes share are supported" +
              (of_boxes < 0 ? "; " + give_shapes() : fmt::format("; found boxes for {} classes", of_boxes)));
  }
  if (classes < 1) node.fail("the number of classes (dimension 2 of input 1) is unknown; " + give_shapes());
  const std::int64_t each = node.known_int(2, "the maximum number of boxes of a class");
  std::int64_t total = node.known_int(3, "the maximum number of boxes");
  if (node.flag_or("pad_per_class", false)) total = std::min(total, (Dim(each) * classes).value());
  boxes = node.add("Squeeze", {boxes, node.ints_of({2})});
  onnx::Value* by_class = node.transpose(scores, {0, 2, 1});
  onnx::Value* found = node.add("NonMaxSuppression", {boxes, by_class, node.ints_of({each}),
                                                      single(node, node.input(4)), single(node, node.input(5))});
  // All scores except those of the kept boxes are set below any real score, and the largest scores are selected.
  const float lowest = std::numeric_limits<float>::lowest();
  onnx::Value* low = node.scalar_of(lowest, onnx::ElementType::f32);
  onnx::Value* none = node.add("Expand", {low, node.shape_of(by_class)});
  onnx::Value* kept = node.add("ScatterND", {none, found, node.add("GatherND", {by_class, found})});
  onnx::Value* flat = node.reshape(kept, {0, -1});
  // The number of results is fixed, even if there are fewer boxes.
  flat = node.add("Pad", {flat, node.ints_of({0, 0, 0, total}), low});
  const auto best = node.add_many("TopK", {flat, node.ints_of({total})}, 2, {{"axis", std::int64_t{-1}}});
  onnx::Value* stays = node.add("Greater", {best[0], low});
  onnx::Value* length = node.slice_1d(node.shape_of(boxes), 1, 2);
  onnx::Value* zero = node.scalar_of(0, onnx::ElementType::f32);
  onnx::Value* place = node.add("Where", {stays, best[1], node.scalar_of(0, onnx::ElementType::i64)});
  onnx::Value* number = node.add("Mod", {place, length});
  onnx::Value* kind = node.cast(node.add("Div", {place, length}), onnx::ElementType::f32);
  onnx::Value* chosen = node.add("GatherND", {boxes, node.add("Unsqueeze", {number, node.ints_of({-1})})},
                                 {{"batch_dims", std::int64_t{1}}});
  if (node.flag_or("clip_boxes", true)) {
    chosen = node.add("Clip", {chosen, zero, node.scalar_of(1, onnx::ElementType::f32)});
  }
  node.give(0, node.add("Where", {node.add("Unsqueeze", {stays, node.ints_of({-1})}), chosen, zero}));
  node.give(1, node.add("Where", {stays, best[0], zero}));
  node.give(2, node.add("Where", {stays, kind, zero}));
  node.give(3, node.add("ReduceSum", {node.cast(stays, onnx::ElementType::i32), node.ints_of({1})},
                        {{"keepdims", std::int64_t{0}}}));
}

/// Returns the positions in pixels [boxes, size] of `size` samples between two borders, which are coordinates from 0 to
/// 1.
onnx::Value* sample_places(NodeConverter& node, onnx::Value* from, onnx::Value* to, onnx::Value* pixels,
                           std::int64_t size) {
  const auto number = [&](double value) { return node.scalar_of(value, onnx::ElementType::f32); };
  onnx::Value* last = node.add("Sub", {node.cast(pixels, onnx::ElementType::f32), number(1)});
  const auto as_column = [&](onnx::Value* value) { return node.add("Unsqueeze", {value, node.ints_of({1})}); };
  if (size == 1) {
    onnx::Value* middle = node.add("Mul", {number(0.5), node.add("Add", {from, to})});
    return as_column(node.add("Mul", {middle, last}));
  }
  std::vector<double> steps;
  for (std::int64_t i = 0; i < size; ++i) steps.push_back(static_cast<double>(i));
  onnx::Value* numbers = node.constant_of(onnx::TensorData::from_numbers(onnx::ElementType::f32, {1, size}, steps));
  onnx::Value* step =
      node.add("Div", {node.add("Mul", {node.add("Sub", {to, from}), last}), number(static_cast<double>(size - 1))});
  onnx::Value* start = node.add("Mul", {from, last});
  return node.add("Add", {as_column(start), node.add("Mul", {numbers, as_column(step)})});
}

/// CropAndResize becomes Gather of the neighbors of each sample, weighted as in TensorFlow (crop_and_resize_op.cc).
void crop_and_resize(NodeConverter& node) {
  const Ints size = node.known_ints(3, "the size of the crops");
  constexpr std::int64_t most = 1 << 14;
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > most || size[1] > most) {
    node.fail(fmt::format("the size of the crops (input 3) must be two integers between 1 and {}", most));
  }
  const std::string method = node.text_or("method", "bilinear");
  if (method != "bilinear" && method != "nearest") {
    node.fail(fmt::format("attribute `method` is {}; it must be bilinear or nearest", method));
  }
  onnx::Value* images = node.cast(node.input(0), onnx::ElementType::f32);
  onnx::Value* boxes = node.input(1);
  const auto number = [&](double value) { return node.scalar_of(value, onnx::ElementType::f32); };
  onnx::Value* sizes = node.shape_of(images);
  onnx::Value* height = node.slice_1d(sizes, 1, 2);
  onnx::Value* width = node.slice_1d(sizes, 2, 3);
  onnx::Value* y = sample_places(node, column(node, boxes, 0), column(node, boxes, 2), height, size[0]);
  onnx::Value* x = sample_places(node, column(node, boxes, 1), column(node, boxes, 3), width, size[1]);
  const auto is_inside = [&](onnx::Value* place, onnx::Value* pixels) {
    onnx::Value* last = node.add("Sub", {node.cast(pixels, onnx::ElementType::f32), number(1)});
    return node.add("And", {node.add("GreaterOrEqual", {place, number(0)}), node.add("LessOrEqual", {place, last})});
  };
  onnx::Value* rows_inside = node.add("Unsqueeze", {is_inside(y, height), node.ints_of({2})});    // [n, h, 1]
  onnx::Value* columns_inside = node.add("Unsqueeze", {is_inside(x, width), node.ints_of({1})});  // [n, 1, w]
  onnx::Value* inside = node.add("Unsqueeze", {node.add("And", {rows_inside, columns_inside}), node.ints_of({3})});
  const auto limited = [&](onnx::Value* place, onnx::Value* pixels) {
    onnx::Value* whole = node.cast(place, onnx::ElementType::i64);
    whole = node.add("Max", {whole, node.ints_of({0})});
    return node.add("Min", {whole, node.add("Sub", {pixels, node.ints_of({1})})});
  };
  onnx::Value* count = node.slice_1d(node.shape_of(boxes), 0, 1);
  onnx::Value* grid = node.concat({count, node.ints_of({size[0], size[1], 1})});
  onnx::Value* image = node.add("Expand", {node.add("Unsqueeze", {node.as_i64(2), node.ints_of({1, 2, 3})}), grid});
  const auto pick = [&](onnx::Value* row, onnx::Value* at) {
    onnx::Value* rows = node.add("Expand", {node.add("Unsqueeze", {limited(row, height), node.ints_of({2, 3})}), grid});
    onnx::Value* columns =
        node.add("Expand", {node.add("Unsqueeze", {limited(at, width), node.ints_of({1, 3})}), grid});
    return node.add("GatherND", {images, node.add("Concat", {image, rows, columns}, {{"axis", std::int64_t{-1}}})});
  };
  onnx::Value* result = nullptr;
  if (method == "nearest") {
    const auto rounded = [&](onnx::Value* place) { return node.add("Floor", {node.add("Add", {place, number(0.5)})}); };
    result = pick(rounded(y), rounded(x));
  } else {
    onnx::Value* top = node.add("Floor", {y});
    onnx::Value* bottom = node.add("Ceil", {y});
    onnx::Value* left = node.add("Floor", {x});
    onnx::Value* right = node.add("Ceil", {x});
    onnx::Value* down = node.add("Unsqueeze", {node.add("Sub", {y, top}), node.ints_of({2, 3})});
    onnx::Value* across = node.add("Unsqueeze", {node.add("Sub", {x, left}), node.ints_of({1, 3})});
    const auto between = [&](onnx::Value* a, onnx::Value* b, onnx::Value* part) {
      return node.add("Add", {a, node.add("Mul", {node.add("Sub", {b, a}), part})});
    };
    onnx::Value* above = between(pick(top, left), pick(top, right), across);
    onnx::Value* below = between(pick(bottom, left), pick(bottom, right), across);
    result = between(above, below, down);
  }
  node.give(node.add("Where", {inside, result, number(node.float_or("extrapolation_value", 0))}));
}

}  // namespace

OperatorEntries box_operators() {
  static const std::vector<OperatorEntry> entries =
      entries_of({{suppress_combined, "CombinedNonMaxSuppression"},
                  {crop_and_resize, "CropAndResize"},
                  {suppress,
                   "NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 "
                   "NonMaxSuppressionV5"}});
  return entries;
}

}  // namespace graft::tensorflow
