// Converts the layers of object detectors: SSD (Liu et al. 2016, the branch ssd of Caffe), Fast R-CNN and YOLOv2.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "import/caffe/layer_converter.hpp"

namespace graft::caffe {
namespace {

/// PriorBox becomes a constant that contains the boxes of a grid, because the boxes depend on sizes only
/// (prior_box_layer.cpp of SSD).
void prior_box(LayerConverter& layer) {
  const PriorBoxParameter& p = layer.layer().prior_box_param();
  const std::int64_t rows = layer.size(0, 2);
  const std::int64_t columns = layer.size(0, 3);
  (void)layer.input(1);  // Marks the image as read, even if the parameters contain its size.
  if (p.has_img_size() && (p.has_img_h() || p.has_img_w()))
    layer.fail("it has both `img_size` and `img_h` or `img_w`; set either `img_size`, or `img_h` and `img_w`");
  if (p.has_step() && (p.has_step_h() || p.has_step_w()))
    layer.fail("it has both `step` and `step_h` or `step_w`; set either `step`, or `step_h` and `step_w`");
  const float image_h = p.has_img_h()      ? static_cast<float>(p.img_h())
                        : p.has_img_size() ? static_cast<float>(p.img_size())
                                           : static_cast<float>(layer.size(1, 2));
  const float image_w = p.has_img_w()      ? static_cast<float>(p.img_w())
                        : p.has_img_size() ? static_cast<float>(p.img_size())
                                           : static_cast<float>(layer.size(1, 3));
  const float step_h = p.has_step_h() ? p.step_h() : p.has_step() ? p.step() : image_h / static_cast<float>(rows);
  const float step_w = p.has_step_w() ? p.step_w() : p.has_step() ? p.step() : image_w / static_cast<float>(columns);
  if (p.min_size_size() == 0) layer.fail("`min_size` is missing; set at least one value, as in min_size: 30");
  if (p.max_size_size() != 0 && p.max_size_size() != p.min_size_size()) {
    layer.fail(fmt::format("`max_size` has {} values; it must have none or {}, as many as `min_size` has",
                           p.max_size_size(), p.min_size_size()));
  }
  constexpr std::size_t most_sizes = 1 << 12;
  std::vector<float> ratios{1};
  for (const float ratio : p.aspect_ratio()) {
    constexpr float same = 1e-6F;
    const auto equal = [&](float other) { return std::fabs(ratio - other) < same; };
    if (!(ratio > 0)) layer.fail(fmt::format("`aspect_ratio` is {}; it must be above 0", ratio));
    if (ratios.size() > most_sizes)
      layer.fail(
          fmt::format("`aspect_ratio` results in more than {} different ratios; delete some of its values, each of "
                      "which counts twice with `flip`",
                      most_sizes));
    if (std::any_of(ratios.begin(), ratios.end(), equal)) continue;
    ratios.push_back(ratio);
    if (p.flip()) ratios.push_back(1 / ratio);
  }
  std::vector<std::pair<float, float>> sizes;  // The width and height of each box.
  for (int i = 0; i < p.min_size_size(); ++i) {
    if (sizes.size() > most_sizes)
      layer.fail(fmt::format(
          "it has more than {} boxes per position; delete values of `min_size`, `max_size` or `aspect_ratio`",
          most_sizes));
    const float smallest = p.min_size(i);
    sizes.emplace_back(smallest, smallest);
    if (p.max_size_size() != 0) {
      const float side = std::sqrt(smallest * p.max_size(i));
      sizes.emplace_back(side, side);
    }
    for (const float ratio : ratios) {
      if (std::fabs(ratio - 1) < 1e-6F) continue;
      sizes.emplace_back(smallest * std::sqrt(ratio), smallest / std::sqrt(ratio));
    }
  }
  constexpr std::int64_t most = 1 << 18;  // SSD on 512x512 has a tenth of this.
  const auto each = static_cast<std::int64_t>(sizes.size());
  if (rows * columns > most || rows * columns * each > most) {
    layer.fail(fmt::format("it has {} boxes at each of {} x {} positions; the total may be at most {}", each, rows,
                           columns, most));
  }
  std::vector<float> numbers;
  const auto boxes = static_cast<std::size_t>(rows * columns * each);
  numbers.reserve(boxes * 8);
  for (std::int64_t y = 0; y < rows; ++y) {
    for (std::int64_t x = 0; x < columns; ++x) {
      const float center_x = (static_cast<float>(x) + p.offset()) * step_w;
      const float center_y = (static_cast<float>(y) + p.offset()) * step_h;
      for (const auto& [w, h] : sizes) {
        numbers.insert(numbers.end(), {(center_x - w / 2) / image_w, (center_y - h / 2) / image_h,
                                       (center_x + w / 2) / image_w, (center_y + h / 2) / image_h});
      }
    }
  }
  if (p.clip()) {
    for (float& number : numbers) number = std::clamp(number, 0.F, 1.F);
  }
  if (p.variance_size() != 0 && p.variance_size() != 1 && p.variance_size() != 4) {
    layer.fail(fmt::format("`variance` has {} values; it must have none, 1 or 4", p.variance_size()));
  }
  for (std::size_t i = 0; i < boxes * 4; ++i) {
    const int place = p.variance_size() == 4 ? static_cast<int>(i % 4) : 0;
    numbers.push_back(p.variance_size() == 0 ? 0.1F : p.variance(place));
  }
  onnx::TensorData tensor = onnx::TensorData::from_floats(numbers);
  layer.give(layer.constant_of(reshaped(std::move(tensor), {1, 2, static_cast<std::int64_t>(boxes) * 4})));
}

onnx::Value* two_coordinates(LayerConverter& layer, onnx::Value* boxes, std::int64_t i) {
  return layer.add("Slice", {boxes, layer.ints_of({i}), layer.ints_of({i + 2}), layer.ints_of({-1})});
}

/// Returns the corners of the predicted boxes. `location` contains the network's prediction for each prior box, which
/// DecodeBBox (bbox_util.cpp of SSD) applies to the corners in `priors` with the factors in `variances`.
onnx::Value* decode(LayerConverter& layer, const DetectionOutputParameter& p, onnx::Value* location,
                    onnx::Value* priors, onnx::Value* variances) {
  const auto scaled = [&](onnx::Value* value, std::int64_t i) {
    return p.variance_encoded_in_target() ? value : layer.add("Mul", {value, two_coordinates(layer, variances, i)});
  };
  onnx::Value* first = scaled(two_coordinates(layer, location, 0), 0);
  onnx::Value* second = scaled(two_coordinates(layer, location, 2), 2);
  onnx::Value* low = two_coordinates(layer, priors, 0);
  onnx::Value* high = two_coordinates(layer, priors, 2);
  onnx::Value* size = layer.add("Sub", {high, low});
  const auto joined = [&](onnx::Value* a, onnx::Value* b) {
    return layer.add("Concat", {a, b}, {{"axis", std::int64_t{-1}}});
  };
  if (p.code_type() == DetectionOutputParameter::CORNER) {
    return joined(layer.add("Add", {low, first}), layer.add("Add", {high, second}));
  }
  if (p.code_type() == DetectionOutputParameter::CORNER_SIZE) {
    return joined(layer.add("Add", {low, layer.add("Mul", {first, size})}),
                  layer.add("Add", {high, layer.add("Mul", {second, size})}));
  }
  onnx::Value* center = layer.add("Mul", {layer.add("Add", {low, high}), layer.number(0.5)});
  center = layer.add("Add", {layer.add("Mul", {first, size}), center});
  onnx::Value* half = layer.add("Mul", {layer.add("Mul", {layer.add("Exp", {second}), size}), layer.number(0.5)});
  return joined(layer.add("Sub", {center, half}), layer.add("Add", {center, half}));
}

/// Returns the body of the Loop in suppressed(), which computes the next `keep` [groups, boxes, 1] from the previous
/// one. `over` [groups, boxes, boxes] is 1 where a better box overlaps a box, and `valid` is 1 for the boxes that take
/// part. `half` is the constant 0.5, with which the numbers 0 and 1 are compared.
std::unique_ptr<onnx::Graph> suppression_step(LayerConverter& layer, onnx::Value* over, onnx::Value* valid,
                                              onnx::Value* half) {
  auto body = std::make_unique<onnx::Graph>(&layer.graph());
  const auto input = [&](const char* name, onnx::ElementType type, const Shape& shape) {
    onnx::Value* value = body->add_input(layer.graph().unique_name(layer.name() + ":" + name));
    value->type = type;
    value->shape = shape;
    return value;
  };
  input("turn", onnx::ElementType::i64, {});
  input("go_on", onnx::ElementType::boolean, {});
  onnx::Value* before = input("keep", onnx::ElementType::f32, *valid->shape);
  onnx::ContentsMap contents;
  NodeBuilder inner(*body, contents, layer.budget(), layer.name(), layer.layer().type());
  onnx::Value* is_free = inner.add("Less", {inner.add("MatMul", {over, before}), half});
  onnx::Value* after = inner.add("Mul", {inner.cast(is_free, onnx::ElementType::f32), valid});
  onnx::Value* change =
      inner.add("ReduceMax", {inner.add("Abs", {inner.add("Sub", {after, before})})}, {{"keepdims", std::int64_t{0}}});
  body->add_output(*inner.add("Greater", {change, half}));
  body->add_output(*after);
  return body;
}

/// Returns which boxes survive non-maximum suppression, as f32 [groups, boxes, 1]. `boxes` are [groups, boxes, 4], the
/// best first in each group; a box is suppressed if a better one that is kept overlaps it by more than `threshold`.
/// `valid`, of the shape of the result, marks the boxes that take part; `scores` are [groups, boxes].
///
/// TensorRT does not run NonMaxSuppression (its parser accepts the node, but its builder has no kernel for it), so the
/// suppression is built from operators that TensorRT runs. A matrix records which boxes overlap. A loop computes `keep`
/// as the boxes that no better kept box overlaps, until nothing changes. The result is the same as that of visiting the
/// boxes from the best to the worst, and each iteration decides at least one more box. If there are more boxes than
/// TensorRT's TopK sorts, or the matrix would be large, NonMaxSuppression is used nevertheless.
onnx::Value* suppressed(LayerConverter& layer, onnx::Value* boxes, onnx::Value* scores, onnx::Value* valid,
                        float threshold) {
  const std::int64_t count = (*boxes->shape)[1].value();
  constexpr std::int64_t most_sorted = 3840;
  constexpr std::int64_t most_pairs = std::int64_t{1} << 25;
  const Dim& groups = (*boxes->shape)[0];
  if (count > most_sorted || (groups.is_constant() && groups.value() * count * count > most_pairs)) {
    onnx::Value* counted = layer.add(
        "Where",
        {layer.add("Greater", {layer.reshape(valid, {0, count}), layer.number(0.5)}), scores, layer.number(-1e30)});
    onnx::Value* found = layer.add(
        "NonMaxSuppression", {boxes, layer.add("Unsqueeze", {counted, layer.ints_of({1})}), layer.ints_of({count}),
                              layer.constant_of(onnx::TensorData::from_floats({threshold})),
                              layer.constant_of(onnx::TensorData::from_floats({-1e29F}))});
    onnx::Value* places = layer.add("Gather", {found, layer.ints_of({0, 2, 1})}, {{"axis", std::int64_t{1}}});
    onnx::Value* how_many = layer.slice_1d(layer.shape_of(found), 0, 1);
    onnx::Value* ones = layer.add("Expand", {layer.number(1), how_many});
    onnx::Value* zeros = layer.add("Mul", {valid, layer.number(0)});
    // [group, 0, box] becomes [group, box, 0], an index into [groups, boxes, 1].
    return layer.add("ScatterND", {zeros, places, ones});
  }
  const auto coordinate = [&](std::int64_t i) {
    return layer.add("Slice", {boxes, layer.ints_of({i}), layer.ints_of({i + 1}), layer.ints_of({2})});
  };
  const auto across = [&](onnx::Value* value) { return layer.transpose(value, {0, 2, 1}); };
  std::array<onnx::Value*, 4> c{coordinate(0), coordinate(1), coordinate(2), coordinate(3)};
  const auto length = [&](onnx::Value* from, onnx::Value* to) {
    return layer.add("Max", {layer.add("Sub", {to, from}), layer.number(0)});
  };
  const auto shared = [&](std::size_t i) {
    return length(layer.add("Max", {c[i], across(c[i])}), layer.add("Min", {c[i + 2], across(c[i + 2])}));
  };
  onnx::Value* area = layer.add("Mul", {length(c[0], c[2]), length(c[1], c[3])});
  onnx::Value* both = layer.add("Mul", {shared(0), shared(1)});
  onnx::Value* either = layer.add("Sub", {layer.add("Add", {area, across(area)}), both});
  onnx::Value* overlaps = layer.add("Greater", {both, layer.add("Mul", {either, layer.number(threshold)})});
  Ints order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  onnx::Value* row = layer.constant_of(reshaped(onnx::TensorData::from_ints(order), {count, 1}));
  onnx::Value* column = layer.constant_of(reshaped(onnx::TensorData::from_ints(order), {1, count}));
  onnx::Value* over =
      layer.cast(layer.add("And", {overlaps, layer.add("Greater", {row, column})}), onnx::ElementType::f32);

  onnx::Value* half = layer.number(0.5);
  onnx::TensorData yes = onnx::TensorData::scalar_of(onnx::ElementType::boolean, 1);
  onnx::Node* loop = layer.graph().add_node(
      "Loop",
      {layer.constant_of(reshaped(onnx::TensorData::from_ints({count}), {})), layer.constant_of(std::move(yes)), valid},
      {layer.name() + ":Loop"});
  loop->name = loop->output()->name;
  loop->attributes.emplace("body", onnx::NodeAttribute(suppression_step(layer, over, valid, half)));
  loop->output()->type = onnx::ElementType::f32;
  loop->output()->shape = valid->shape;
  return loop->output();
}

/// The `count` best of the scores [groups, boxes] in descending order, and their boxes from [groups, boxes, 4].
struct Best {
  onnx::Value* scores = nullptr;
  onnx::Value* boxes = nullptr;
};

Best best_of(LayerConverter& layer, onnx::Value* scores, onnx::Value* boxes, std::int64_t count) {
  const auto best = layer.add_many("TopK", {scores, layer.ints_of({count})}, 2, {{"axis", std::int64_t{1}}});
  onnx::Value* places = layer.add("Unsqueeze", {best[1], layer.ints_of({2})});
  return {best[0], layer.add("GatherND", {boxes, places}, {{"batch_dims", std::int64_t{1}}})};
}

/// DetectionOutput computes rows of [image, class, score, x1, y1, x2, y2], class by class, the best first. Caffe
/// outputs as many rows as there are boxes. TensorRT (RTX 1.7) has no sizes that depend on data, so each image has
/// `keep_top_k` rows here, and unused rows contain -1.
void detection_output(LayerConverter& layer) {
  const DetectionOutputParameter& p = layer.layer().detection_output_param();
  const std::int64_t classes = p.num_classes();
  constexpr std::int64_t most_classes = 1 << 16;
  if (classes < 1) layer.fail("`num_classes` is missing or 0; set the number of classes, including the background");
  if (classes > most_classes)
    layer.fail(fmt::format("`num_classes` is {}; it may be at most {}", classes, most_classes));
  if (p.nms_param().eta() != 1) layer.fail(fmt::format("`eta` is {}; only `eta: 1` is supported", p.nms_param().eta()));
  if (!(p.nms_param().nms_threshold() >= 0)) {
    layer.fail(fmt::format("`nms_threshold` is {}; it must be at least 0", p.nms_param().nms_threshold()));
  }
  const std::int64_t images = layer.small_size(0, 0);
  const std::int64_t boxes = layer.small_size(2, 2) / 4;
  const std::int64_t location_classes = p.share_location() ? 1 : classes;
  if (boxes < 1 || images < 1 || layer.size(0, 1) != boxes * location_classes * 4 ||
      layer.size(1, 1) != boxes * classes) {
    layer.fail(fmt::format("it has {} coordinates and {} scores; {} prior boxes and {} classes require {} and {}",
                           layer.size(0, 1), layer.size(1, 1), boxes, classes, boxes * location_classes * 4,
                           boxes * classes));
  }
  Ints labels;
  for (std::int64_t i = 0; i < classes; ++i) {
    if (i != p.background_label_id()) labels.push_back(i);
  }
  if (labels.empty())
    layer.fail(
        "the background is the only class; set `num_classes` to the number of classes, including the background");
  const auto found_classes = static_cast<std::int64_t>(labels.size());
  const auto groups = images * found_classes;

  onnx::Value* both = layer.reshape(layer.input(2), {2, boxes, 1, 4});
  const auto parts = layer.add_many("Split", {both}, 2, {{"axis", std::int64_t{0}}});
  onnx::Value* location = layer.reshape(layer.input(0), {images, boxes, location_classes, 4});
  onnx::Value* corners = layer.transpose(decode(layer, p, location, parts[0], parts[1]), {0, 2, 1, 3});
  onnx::Value* scores = layer.transpose(layer.reshape(layer.input(1), {images, boxes, classes}), {0, 2, 1});
  if (found_classes != classes) {
    onnx::Value* chosen = layer.ints_of(labels);
    scores = layer.add("Gather", {scores, chosen}, {{"axis", std::int64_t{1}}});
    if (!p.share_location()) corners = layer.add("Gather", {corners, chosen}, {{"axis", std::int64_t{1}}});
  }
  if (p.share_location()) {
    corners = layer.add("Expand", {corners, layer.ints_of({images, found_classes, boxes, 4})});
  }
  const std::int64_t candidates = p.nms_param().has_top_k() && p.nms_param().top_k() >= 0
                                      ? std::min<std::int64_t>(p.nms_param().top_k(), boxes)
                                      : boxes;
  if (candidates < 1) layer.fail("`top_k` is 0; it must be at least 1, or -1 for all boxes");
  const Best best =
      best_of(layer, layer.reshape(scores, {groups, boxes}), layer.reshape(corners, {groups, boxes, 4}), candidates);
  const float lowest = p.has_confidence_threshold() ? p.confidence_threshold() : std::numeric_limits<float>::lowest();
  onnx::Value* valid = layer.cast(layer.add("Greater", {best.scores, layer.number(lowest)}), onnx::ElementType::f32);
  onnx::Value* kept = suppressed(layer, best.boxes, best.scores, layer.reshape(valid, {groups, candidates, 1}),
                                 p.nms_param().nms_threshold());
  // Selects the best boxes of all classes together, then sorts them by position, which is the order of the classes.
  const std::int64_t places = found_classes * candidates;
  const std::int64_t rows = p.keep_top_k() < 0 ? places : std::min<std::int64_t>(p.keep_top_k(), places);
  if (rows < 1) layer.fail("`keep_top_k` is 0; it must be at least 1, or -1 for all boxes");
  onnx::Value* all_scores = layer.reshape(best.scores, {images, places});
  onnx::Value* is_kept = layer.add("Greater", {layer.reshape(kept, {images, places}), layer.number(0.5)});
  onnx::Value* counted = layer.add("Where", {is_kept, all_scores, layer.number(-1e30)});
  const auto first = layer.add_many("TopK", {counted, layer.ints_of({rows})}, 2, {{"axis", std::int64_t{1}}});
  onnx::Value* from_end =
      layer.add("Sub", {layer.number(static_cast<double>(places)), layer.cast(first[1], onnx::ElementType::f32)});
  onnx::Value* is_box = layer.add("Greater", {first[0], layer.number(-1e29)});
  from_end = layer.add("Where", {is_box, from_end, layer.number(0)});
  const auto ordered = layer.add_many("TopK", {from_end, layer.ints_of({rows})}, 2, {{"axis", std::int64_t{1}}});
  onnx::Value* is_row =
      layer.add("Unsqueeze", {layer.add("Greater", {ordered[0], layer.number(0.5)}), layer.ints_of({2})});
  onnx::Value* place = layer.add("Sub", {layer.ints_of({places}), layer.cast(ordered[0], onnx::ElementType::i64)});
  place = layer.add("Unsqueeze", {layer.add("Min", {place, layer.ints_of({places - 1})}), layer.ints_of({2})});
  const auto taken = [&](onnx::Value* from) {
    return layer.add("GatherND", {from, place}, {{"batch_dims", std::int64_t{1}}});
  };
  constexpr std::int64_t most_rows = 1 << 20;
  if (images > most_rows || rows > most_rows || images * rows > most_rows) {
    layer.fail(fmt::format(
        "the output has {} rows for each of {} images; it may have at most {} rows in total, so decrease `keep_top_k`",
        rows, images, most_rows));
  }
  std::vector<float> image_of_row;
  for (std::int64_t i = 0; i < images; ++i) {
    image_of_row.insert(image_of_row.end(), static_cast<std::size_t>(rows), static_cast<float>(i));
  }
  onnx::Value* image = layer.constant_of(reshaped(onnx::TensorData::from_floats(image_of_row), {images, rows, 1}));
  onnx::Value* label =
      layer.add("Gather", {layer.ints_of(labels), layer.add("Div", {place, layer.ints_of({candidates})})},
                {{"axis", std::int64_t{0}}});
  onnx::Value* score = layer.add("Unsqueeze", {taken(all_scores), layer.ints_of({2})});
  onnx::Value* box = taken(layer.reshape(best.boxes, {images, places, 4}));
  onnx::Value* table =
      layer.add("Concat", {image, layer.cast(label, onnx::ElementType::f32), score, box}, {{"axis", std::int64_t{2}}});
  table = layer.add("Where", {is_row, table, layer.number(-1)});
  layer.give(layer.reshape(table, {1, 1, images * rows, 7}));
}

/// Proposal computes the boxes that a network proposes (Faster R-CNN's proposal_layer, which several branches implement
/// in C++): rows of [0, x1, y1, x2, y2], the best first, with their scores as the second top. Coordinates are pixels of
/// the image, and a box from 0 to 15 is 16 wide.
void proposal(LayerConverter& layer) {
  const ProposalParameter& p = layer.layer().proposal_param();
  const std::vector<float> ratios =
      p.ratio_size() == 0 ? std::vector<float>{0.5F, 1, 2} : std::vector<float>(p.ratio().begin(), p.ratio().end());
  const std::vector<float> scales =
      p.scale_size() == 0 ? std::vector<float>{8, 16, 32} : std::vector<float>(p.scale().begin(), p.scale().end());
  const auto anchors = static_cast<std::int64_t>(ratios.size() * scales.size());
  const std::int64_t h = layer.small_size(0, 2);
  const std::int64_t w = layer.small_size(0, 3);
  if (layer.size(0, 0) != 1) layer.fail(fmt::format("the batch size is {}; it must be 1", layer.size(0, 0)));
  if (layer.size(0, 1) != 2 * anchors || layer.size(1, 1) != 4 * anchors) {
    layer.fail(fmt::format(
        "it has {} scores and {} coordinates per position; {} values of `ratio` and {} of `scale` require {} and {}",
        layer.size(0, 1), layer.size(1, 1), ratios.size(), scales.size(), 2 * anchors, 4 * anchors));
  }
  constexpr std::int64_t most = 1 << 18;
  if (h > most || w > most || h * w > most || anchors > most || h * w * anchors > most) {
    layer.fail(
        fmt::format("it has {} boxes at each of {} x {} positions; the total may be at most {}", anchors, h, w, most));
  }
  if (p.pre_nms_topn() < 1 || p.post_nms_topn() < 1) {
    layer.fail(fmt::format("`pre_nms_topn` is {} and `post_nms_topn` is {}; both must be at least 1", p.pre_nms_topn(),
                           p.post_nms_topn()));
  }
  const std::int64_t boxes = h * w * anchors;
  const std::int64_t candidates = std::min<std::int64_t>(p.pre_nms_topn(), boxes);

  // The sides are rounded half to even, as NumPy does in generate_anchors.py.
  std::vector<float> sizes;    // the width and the height of each box
  std::vector<float> centers;  // the x and the y of each box
  const double middle = (static_cast<double>(p.base_size()) - 1) / 2;
  for (std::int64_t y = 0; y < h; ++y) {
    for (std::int64_t x = 0; x < w; ++x) {
      for (const double ratio : ratios) {
        const double width = std::nearbyint(std::sqrt(static_cast<double>(p.base_size()) * p.base_size() / ratio));
        const double height = std::nearbyint(width * ratio);
        for (const double scale : scales) {
          sizes.insert(sizes.end(), {static_cast<float>(width * scale), static_cast<float>(height * scale)});
          // The center lies half a pixel farther, because a box from x1 to x2 is x2 - x1 + 1 wide.
          centers.insert(centers.end(), {static_cast<float>(middle + 0.5 + static_cast<double>(x) * p.feat_stride()),
                                         static_cast<float>(middle + 0.5 + static_cast<double>(y) * p.feat_stride())});
        }
      }
    }
  }
  const auto constant = [&](const std::vector<float>& numbers) {
    return layer.constant_of(reshaped(onnx::TensorData::from_floats(numbers), {1, boxes, 2}));
  };
  onnx::Value* size = constant(sizes);
  onnx::Value* scores =
      layer.add("Slice", {layer.input(0), layer.ints_of({anchors}), layer.ints_of({2 * anchors}), layer.ints_of({1})});
  scores = layer.reshape(layer.transpose(scores, {0, 2, 3, 1}), {1, boxes});
  onnx::Value* deltas = layer.reshape(layer.transpose(layer.input(1), {0, 2, 3, 1}), {1, boxes, 4});
  onnx::Value* center =
      layer.add("Add", {layer.add("Mul", {two_coordinates(layer, deltas, 0), size}), constant(centers)});
  onnx::Value* half = layer.add(
      "Mul", {layer.add("Mul", {layer.add("Exp", {two_coordinates(layer, deltas, 2)}), size}), layer.number(0.5)});

  onnx::Value* image = layer.reshape(layer.input(2), {1, 1, -1});
  onnx::Value* image_size = layer.add("Gather", {image, layer.ints_of({1, 0})}, {{"axis", std::int64_t{2}}});
  onnx::Value* last = layer.add("Sub", {image_size, layer.number(1)});
  const auto clipped = [&](onnx::Value* value) {
    return layer.add("Max", {layer.add("Min", {value, last}), layer.number(0)});
  };
  onnx::Value* low = clipped(layer.add("Sub", {center, half}));
  onnx::Value* high = clipped(layer.add("Add", {center, half}));
  onnx::Value* extent = layer.add("Add", {layer.add("Sub", {high, low}), layer.number(1)});
  onnx::Value* smallest =
      layer.add("Mul", {layer.add("Slice", {image, layer.ints_of({2}), layer.ints_of({3}), layer.ints_of({2})}),
                        layer.number(p.min_size())});
  onnx::Value* is_large =
      layer.add("GreaterOrEqual", {layer.add("ReduceMin", {extent}, {{"axes", Ints{2}}, {"keepdims", std::int64_t{0}}}),
                                   layer.add("Squeeze", {smallest, layer.ints_of({2})})});
  scores = layer.add("Where", {is_large, scores, layer.number(-1e30)});
  const Best best = best_of(layer, scores, layer.add("Concat", {low, high}, {{"axis", std::int64_t{2}}}), candidates);
  onnx::Value* valid = layer.cast(layer.add("Greater", {best.scores, layer.number(-1e29)}), onnx::ElementType::f32);
  onnx::Value* outer = layer.add("Add", {best.boxes, layer.constant_of(onnx::TensorData::from_floats({0, 0, 1, 1}))});
  onnx::Value* kept = suppressed(layer, outer, best.scores, layer.reshape(valid, {1, candidates, 1}), p.nms_thresh());
  onnx::Value* found = layer.transpose(layer.add("NonZero", {layer.reshape(kept, {candidates})}), {1, 0});
  found = layer.add("Slice", {found, layer.ints_of({0}), layer.ints_of({p.post_nms_topn()}), layer.ints_of({0})});
  onnx::Value* rows = layer.add("GatherND", {layer.reshape(best.boxes, {candidates, 4}), found});
  // Prepends a column of 0, the index of the only image.
  layer.give(layer.add("Pad", {rows, layer.ints_of({0, 1, 0, 0})}));
  if (layer.layer().top_size() > 1) {
    layer.give(1, layer.add("GatherND", {layer.reshape(best.scores, {candidates, 1}), found}));
  }
}

/// The bins of a box along one axis: an f32 mask [boxes, group_size, size] of the elements that lie in each of the
/// `group_size` bins, and the number of these elements.
struct Bins {
  onnx::Value* mask = nullptr;
  onnx::Value* count = nullptr;
};

Bins bins_of(LayerConverter& layer, onnx::Value* rois, std::int64_t axis, std::int64_t group, std::int64_t size,
             float scale) {
  const auto rounded = [&](std::int64_t i) {  // Rounds half up, unlike ONNX's Round.
    onnx::Value* value = layer.add("Slice", {rois, layer.ints_of({i}), layer.ints_of({i + 1}), layer.ints_of({1})});
    return layer.add("Floor", {layer.add("Add", {value, layer.number(0.5)})});
  };
  onnx::Value* begin = layer.add("Mul", {rounded(1 + axis), layer.number(scale)});
  onnx::Value* end = layer.add("Mul", {layer.add("Add", {rounded(3 + axis), layer.number(1)}), layer.number(scale)});
  onnx::Value* extent = layer.add("Max", {layer.add("Sub", {end, begin}), layer.number(0.1)});
  onnx::Value* bin = layer.add("Div", {extent, layer.number(static_cast<double>(group))});
  std::vector<float> starts;
  std::vector<float> ends;
  for (std::int64_t i = 0; i < group; ++i) {
    starts.push_back(static_cast<float>(i));
    ends.push_back(static_cast<float>(i + 1));
  }
  const auto border = [&](const std::vector<float>& places, const char* rounding) {
    onnx::Value* place =
        layer.add("Add", {layer.add("Mul", {layer.constant_of(onnx::TensorData::from_floats(places)), bin}), begin});
    return layer.add("Clip", {layer.add(rounding, {place}), layer.number(0), layer.number(static_cast<double>(size))});
  };
  onnx::Value* first = border(starts, "Floor");
  onnx::Value* last = border(ends, "Ceil");
  layer.check_budget(size, onnx::ElementType::f32);
  std::vector<float> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0.F);
  onnx::Value* place = layer.constant_of(onnx::TensorData::from_floats(all));
  const auto column = [&](onnx::Value* value) { return layer.add("Unsqueeze", {value, layer.ints_of({2})}); };
  onnx::Value* is_inside =
      layer.add("And", {layer.add("GreaterOrEqual", {place, column(first)}), layer.add("Less", {place, column(last)})});
  return {layer.cast(is_inside, onnx::ElementType::f32), layer.add("Sub", {last, first})};
}

/// PSROIPooling of R-FCN computes group_size x group_size averages of each box, each from its own channel
/// (psroi_pooling_layer.cu). The sums over rows and columns are products with the masks of bins_of().
void psroi_pooling(LayerConverter& layer) {
  const PSROIPoolingParameter& p = layer.layer().psroi_pooling_param();
  const std::int64_t group = p.group_size();
  const std::int64_t outputs = p.output_dim();
  const std::int64_t h = layer.small_size(0, 2);
  const std::int64_t w = layer.small_size(0, 3);
  (void)layer.small_size(0, 1);
  if (!p.has_spatial_scale())
    layer.fail(
        "`spatial_scale` is missing; set the size of the feature map divided by that of the image, as in "
        "spatial_scale: 0.0625");
  constexpr std::int64_t most_group = 1 << 10;
  if (group < 1 || group > most_group || outputs < 1)
    layer.fail(fmt::format(
        "`group_size` is {} and `output_dim` is {}; `group_size` must be between 1 and {}, and `output_dim` at least 1",
        group, outputs, most_group));
  if (layer.size(0, 0) != 1) layer.fail(fmt::format("the batch size is {}; it must be 1", layer.size(0, 0)));
  if (layer.size(0, 1) / group / group != outputs || layer.size(0, 1) % (group * group) != 0) {
    layer.fail(fmt::format("the first bottom has {} channels; `output_dim` {} and `group_size` {} require {}",
                           layer.size(0, 1), outputs, group, outputs * group * group));
  }
  onnx::Value* rois = layer.reshape(layer.input(1), {-1, 5});
  const Bins rows = bins_of(layer, rois, 1, group, h, p.spatial_scale());
  const Bins columns = bins_of(layer, rois, 0, group, w, p.spatial_scale());
  // [group, boxes, rows] x [group, rows, outputs * group * columns]
  onnx::Value* x = layer.reshape(layer.input(0), {outputs, group, group, h, w});
  x = layer.reshape(layer.transpose(x, {1, 3, 0, 2, 4}), {group, h, outputs * group * w});
  onnx::Value* y = layer.add("MatMul", {layer.transpose(rows.mask, {1, 0, 2}), x});
  y = layer.reshape(y, {group, -1, outputs, group, w});
  y = layer.add("Mul", {y, layer.add("Unsqueeze", {columns.mask, layer.ints_of({0, 2})})});
  y = layer.add("ReduceSum", {y, layer.ints_of({4})}, {{"keepdims", std::int64_t{0}}});
  y = layer.transpose(y, {1, 2, 0, 3});
  onnx::Value* count = layer.add("Mul", {layer.add("Unsqueeze", {rows.count, layer.ints_of({1, 3})}),
                                         layer.add("Unsqueeze", {columns.count, layer.ints_of({1, 2})})});
  layer.give(layer.add("Div", {y, layer.add("Max", {count, layer.number(1)})}));
}

/// ROIPooling of Fast R-CNN (roi_pooling_layer.cpp) becomes MaxRoiPool; the second bottom holds [image, x1, y1, x2,
/// y2].
void roi_pooling(LayerConverter& layer) {
  const ROIPoolingParameter& p = layer.layer().roi_pooling_param();
  if (p.pooled_h() == 0 || p.pooled_w() == 0) layer.fail("`pooled_h` or `pooled_w` is 0; both must be at least 1");
  layer.give(layer.add("MaxRoiPool", {layer.input(0), layer.input(1)},
                       {{"pooled_shape", Ints{p.pooled_h(), p.pooled_w()}}, {"spatial_scale", p.spatial_scale()}}));
}

/// Region applies, for each of `num` boxes, a sigmoid to the center and the confidence, and a softmax to the classes
/// (region_layer.c of Darknet).
void region(LayerConverter& layer) {
  const RegionParameter& p = layer.layer().region_param();
  const std::int64_t boxes = p.num();
  const std::int64_t each = std::int64_t{p.coords()} + 1 + p.classes();
  const std::int64_t channels = layer.size(0, 1);
  const std::int64_t h = layer.size(0, 2);
  const std::int64_t w = layer.size(0, 3);
  if (p.coords() != 4 || boxes < 1 || p.classes() < 1 || channels % each != 0 || channels / each != boxes) {
    layer.fail(
        fmt::format("the bottom has {} channels, with `num` {}, `coords` {} and `classes` {}; `coords` must be 4, "
                    "`num` and `classes` at least 1, and the number of channels `num` * (5 + `classes`)",
                    channels, boxes, p.coords(), p.classes()));
  }
  onnx::Value* x = layer.reshape(layer.input(), {0, boxes, each, h, w});
  const auto parts =
      layer.add_many("Split", {x, layer.ints_of({2, 2, 1, p.classes()})}, 4, {{"axis", std::int64_t{2}}});
  onnx::Value* classes = p.softmax() ? layer.add("Softmax", {parts[3]}, {{"axis", std::int64_t{2}}}) : parts[3];
  onnx::Value* y =
      layer.add("Concat", {layer.add("Sigmoid", {parts[0]}), parts[1], layer.add("Sigmoid", {parts[2]}), classes},
                {{"axis", std::int64_t{2}}});
  layer.give(layer.reshape(y, {0, channels, h, w}));
}

constexpr std::array detection_entries = {
    LayerEntry{"DetectionOutput", detection_output, 0, "detection_output_param",
               "`eta` other than 1 is refused. Each image has `keep_top_k` rows; rows after the last box are -1. "
               "TensorRT, which has no NonMaxSuppression, builds it only with a `top_k` of at most 3840."},
    LayerEntry{"PSROIPooling", psroi_pooling, 0, "psroi_pooling_param", "The batch size must be 1."},
    LayerEntry{"PriorBox", prior_box, 0, "prior_box_param", "Becomes a constant."},
    LayerEntry{"Proposal", proposal, 0, "proposal_param",
               "The batch size must be 1. The number of output rows depends on the data, which TensorRT-RTX 1.7.1 does "
               "not build."},
    LayerEntry{"ROIPooling", roi_pooling, 0, "roi_pooling_param", "Becomes MaxRoiPool, which TensorRT does not have."},
    LayerEntry{"Region", region, 0, "region_param",
               "`coords` must be 4. Computes the activations only; boxes are not decoded."},
};

}  // namespace

std::span<const LayerEntry> detection_layer_entries() { return detection_entries; }

}  // namespace graft::caffe
