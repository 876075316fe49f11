// Definition of CombinedNonMaxSuppression: shapes, checks, the sizes that its kernels use, and the plugins of other
// libraries that it replaces. NVIDIA's README files of efficientNMSPlugin and batchedNMSPlugin, and mmdeploy's page of
// its TensorRT operators, describe their fields.
#include "ops/combined_non_max_suppression/combined_non_max_suppression.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "ops/combined_non_max_suppression/plan.hpp"

namespace graft::ops {
namespace {

using Op = CombinedNonMaxSuppression;

constexpr int shared_rank = 3;  // N,boxes,4
constexpr int class_rank = 4;   // N,boxes,classes,4

[[noreturn]] void refuse_rank(std::size_t port, std::size_t found, const char* allowed) {
  throw std::invalid_argument("`" + std::string(Op::ports()[port].name) + "` has rank " + std::to_string(found) +
                              "; the rank must be " + allowed);
}

bool is_missing(const Extents& anchors) { return anchors.rank() == 1; }

/// Returns the value of an integer field of a plugin, or `otherwise` if the node does not have the field.
std::int64_t integer_of(std::span<const NamedAttribute> fields, std::string_view field, std::int64_t otherwise) {
  for (const NamedAttribute& each : fields) {
    if (each.name == field) return std::get<std::int64_t>(each.value);
  }
  return otherwise;
}

/// Translates score_threshold, a field of NVIDIA's BatchedNMS plugins and of mmdeploy's, to the next larger float: the
/// plugins select scores above the threshold, whereas the operator also selects scores equal to it.
Status translate_batched(std::span<const NamedAttribute> fields, std::vector<NamedAttribute>& attributes) {
  for (const std::string_view field : {"scoreThreshold", "score_threshold"}) {
    for (const NamedAttribute& each : fields) {
      if (each.name != field) continue;
      const auto threshold = std::get<float>(each.value);
      attributes.push_back({"score_threshold", std::nextafter(threshold, std::numeric_limits<float>::infinity())});
    }
  }
  return {};
}

Status translate_nvidia(std::span<const NamedAttribute> fields, std::vector<NamedAttribute>& attributes) {
  const bool is_normalized = integer_of(fields, "isNormalized", 1) != 0;
  const bool is_caffe = integer_of(fields, "caffeSemantics", 1) != 0;
  const bool clips = integer_of(fields, "clipBoxes", 1) != 0;
  attributes.push_back({"clip_boxes", std::int64_t{is_normalized && clips}});
  attributes.push_back({"pixel_boxes", std::int64_t{!is_normalized && is_caffe}});
  return translate_batched(fields, attributes);
}

Status translate_mmdeploy(std::span<const NamedAttribute> fields, std::vector<NamedAttribute>& attributes) {
  const bool clips = integer_of(fields, "is_normalized", 1) != 0 && integer_of(fields, "clip_boxes", 1) != 0;
  attributes.push_back({"clip_boxes", std::int64_t{clips}});
  return translate_batched(fields, attributes);
}

constexpr AttributeType integer = AttributeType::integer;
constexpr AttributeType number = AttributeType::float_number;
constexpr std::string_view threshold_doc = "the score above which boxes are candidates";
constexpr std::string_view classes_doc = "ignored: the number of classes is that of `scores`";

DropIn efficient(std::string_view plugin_name, std::string_view doc) {
  return {.plugin_name = plugin_name,
          .version = "1",
          .fields = {{"score_threshold", "score_threshold"},
                     {"iou_threshold", "iou_threshold"},
                     {"max_output_boxes", "max_output_boxes"},
                     {"background_class", "background_class"},
                     {"score_activation", "score_activation"},
                     {"class_agnostic", "class_agnostic"},
                     {"box_coding", "box_coding"}},
          .doc = doc};
}

DropIn for_tensorflow(std::string_view plugin_name, std::string_view doc) {
  return {.plugin_name = plugin_name,
          .version = "1",
          .fields = {{"max_output_size_per_class", "max_output_boxes_per_class"},
                     {"max_total_size", "max_output_boxes"},
                     {"iou_threshold", "iou_threshold"},
                     {"score_threshold", "score_threshold"},
                     {"pad_per_class", "pad_per_class"},
                     {"clip_boxes", "clip_boxes"}},
          .doc = doc};
}

/// Returns the description of how the operator replaces EfficientNMS_ONNX_TRT, NVIDIA's plugin for ONNX's
/// NonMaxSuppression. The plugin's output has a fixed number of rows: the detections of all items without gaps, then
/// copies of the last detection, or rows of -1 if there is no detection.
DropIn for_onnx() {
  return {.plugin_name = "EfficientNMS_ONNX_TRT",
          .version = "1",
          .fields = {{"score_threshold", "score_threshold"},
                     {"iou_threshold", "iou_threshold"},
                     {.name = "max_output_boxes_per_class", .attribute = "max_output_boxes", .is_required = true},
                     {"center_point_box", "box_coding"}},
          .doc =
              "NVIDIA's plugin up to TensorRT 10; the limit holds for all classes of an item together, and the rows "
              "after the last detection repeat it",
          .inputs = {"boxes", "scores"}};
}

DropIn batched(std::string_view plugin_name) {
  return {.plugin_name = plugin_name,
          .version = "1",
          .fields = {{"shareLocation", "", integer, "ignored: the shape of `boxes` says whether classes share boxes"},
                     {"backgroundLabelId", "background_class"},
                     {"numClasses", "", integer, classes_doc},
                     {.name = "topK", .attribute = "top_k", .is_required = true},
                     {.name = "keepTopK", .attribute = "max_output_boxes", .is_required = true},
                     {"scoreThreshold", "", number, threshold_doc, true},
                     {.name = "iouThreshold", .attribute = "iou_threshold", .is_required = true},
                     {"isNormalized", "", integer, "0 means that boxes include the pixels of both corners; default 1"},
                     {"clipBoxes", "", integer, "1, the default, clips normalized boxes to the range from 0 to 1"},
                     {"scoreBits", "", integer, "ignored: scores are always compared with all of their bits"},
                     {"caffeSemantics", "", integer, "0 means that isNormalized does not matter; default 1"}},
          .doc = "NVIDIA's plugin up to TensorRT 10; classes are floating-point numbers, -1 after the last detection",
          .defaults = {{"top_k_per_class", std::int64_t{1}}, {"empty_class", std::int64_t{-1}}},
          .translate = translate_nvidia,
          .inputs = {"boxes", "scores"}};
}

DropIn from_mmdeploy() {
  return {
      .plugin_name = "TRTBatchedNMS",
      .version = "1",
      .fields = {{"background_label_id", "background_class"},
                 {"num_classes", "", integer, classes_doc},
                 {"topk", "top_k"},
                 {.name = "keep_topk", .attribute = "max_output_boxes", .is_required = true},
                 {"score_threshold", "", number, threshold_doc, true},
                 {.name = "iou_threshold", .attribute = "iou_threshold", .is_required = true},
                 {"is_normalized", "", integer, "0 means that boxes are not clipped; default 1"},
                 {"clip_boxes", "", integer, "1, the default, clips normalized boxes to the range from 0 to 1"},
                 {"return_index", "", integer, "ignored: the third output is computed if the node has it"}},
      .doc = "mmdeploy's plugin: boxes and scores in one output, then the classes, and the indices if requested",
      .defaults = {{"top_k", std::int64_t{0}}, {"top_k_per_class", std::int64_t{1}}, {"empty_class", std::int64_t{-1}}},
      .translate = translate_mmdeploy,
      .inputs = {"boxes", "scores"}};
}

}  // namespace

DetectionSizes::DetectionSizes(const Problem& problem)
    : items(problem.inputs[Op::scores].extents[0]),
      boxes(problem.inputs[Op::scores].extents[1]),
      classes(problem.inputs[Op::scores].extents[2]),
      most(problem.outputs[Op::detection_scores].extents[1]),
      has_boxes_of_classes(problem.inputs[Op::boxes].extents.rank() == class_rank &&
                           problem.inputs[Op::boxes].extents[2] != 1),
      has_anchors(!is_missing(problem.inputs[Op::anchors].extents)),
      has_anchors_of_items(has_anchors && problem.inputs[Op::anchors].extents[0] != 1) {}

float lowest_candidate(const CombinedNonMaxSuppression& op) {
  if (!op.score_activation) return op.score_threshold;
  if (op.score_threshold <= 0) return -std::numeric_limits<float>::infinity();
  const auto threshold = static_cast<double>(op.score_threshold);
  if (threshold == 1) return std::numeric_limits<float>::infinity();
  return static_cast<float>(std::log(threshold / (1 - threshold)));  // NaN for thresholds above 1.
}

std::vector<Shape> CombinedNonMaxSuppression::infer_shapes(std::span<const Shape> inputs) const {
  for (const std::size_t port : {boxes, scores}) {
    const std::size_t rank = inputs[port].size();
    if (rank != shared_rank && rank != class_rank) refuse_rank(port, rank, "3 or 4");
  }
  if (inputs.size() > anchors && inputs[anchors].size() != shared_rank && inputs[anchors].size() != 1) {
    refuse_rank(anchors, inputs[anchors].size(), "3");
  }
  const Dim items = inputs[scores][0];
  Dim most = max_output_boxes;
  if (pad_per_class && max_output_boxes_per_class > 0) {
    most = min(inputs[scores][2] * max_output_boxes_per_class, most);
  }
  return {{items, 1}, {items, most, 4}, {items, most}, {items, most}, {items, most}};
}

Status CombinedNonMaxSuppression::check(const Problem& problem) {
  const Extents& box = problem.inputs[boxes].extents;
  const Extents& score = problem.inputs[scores].extents;
  const Extents& anchor = problem.inputs[anchors].extents;
  const bool fits_scores = score.rank() == shared_rank || score[shared_rank] == 1;
  const bool fits_boxes = box[0] == score[0] && box[1] == score[1] && box[box.rank() - 1] == 4 &&
                          (box.rank() == shared_rank || box[2] == 1 || box[2] == score[2]);
  if (!fits_scores || !fits_boxes) {
    return invalid_argument("CombinedNonMaxSuppression: boxes has shape " + to_string(box) + " and scores has shape " +
                            to_string(score) +
                            "; the shapes must be N,boxes,4 or N,boxes,classes,4, and N,boxes,classes");
  }
  if (is_missing(anchor) ? anchor[0] == 0
                         : (anchor[0] == 1 || anchor[0] == score[0]) && anchor[1] == score[1] && anchor[2] == 4) {
    return {};
  }
  return invalid_argument("CombinedNonMaxSuppression: anchors has shape " + to_string(anchor) +
                          " and scores has shape " + to_string(score) +
                          "; anchors must have the shape 1,boxes,4 or N,boxes,4");
}

std::size_t CombinedNonMaxSuppression::workspace(const Problem& problem) const {
  return static_cast<std::size_t>(DetectionPlan(DetectionSizes(problem)).bytes);
}

namespace {

/// Composes the text of the ONNX function. Candidates are numbered in the order in which equal scores are visited; TopK
/// keeps that order.
class FunctionText {
 public:
  FunctionText(const Op& op, bool has_anchors) : op_(op), has_anchors_(has_anchors) {}

  Function write() {
    find_candidates();
    sort_candidates();
    decode_boxes();
    suppress();
    write_outputs();
    return {std::string(Op::name) + (flags_.empty() ? "" : "_" + flags_), text_};
  }

 private:
  void add(std::string_view lines) { (text_ += lines) += '\n'; }
  /// Returns `condition`. If it is true, adds `letter` to the name of the function, because the text of the function
  /// then differs.
  bool if_so(bool condition, char letter) {
    if (condition) flags_ += letter;
    return condition;
  }

  void find_candidates() {
    add(R"(zero = Constant<value_int=0>()
one = Constant<value_int=1>()
none32 = Constant<value_float=0.0>()
one32 = Constant<value_float=1.0>()
lowest32 = Constant<value_float=-3.4028234663852886e38>()
axis_0 = Constant<value_ints=[0]>()
axis_1 = Constant<value_ints=[1]>()
axis_2 = Constant<value_ints=[2]>()
rest = Constant<value_ints=[-1]>()
four = Constant<value_ints=[4]>()
shape = Shape(scores)
items = Gather(shape, axis_0)
box_count = Gather(shape, axis_1)
class_count = Gather(shape, axis_2)
element_count = Mul(box_count, class_count)
table_shape = Concat<axis=0>(items, box_count, class_count)
row_shape = Concat<axis=0>(items, rest)
scores32 = Cast<to=1>(scores)
table32 = Reshape<allowzero=1>(scores32, table_shape))");
    add(R"(logit_number = Constant<value_int=@score_activation>()
is_logit = Cast<to=9>(logit_number)
sigmoid32 = Sigmoid(table32)
judged32 = Where(is_logit, sigmoid32, table32)
threshold32 = Constant<value_float=@score_threshold>()
is_high = GreaterOrEqual(judged32, threshold32)
class_number = Squeeze(class_count)
labels = Range(zero, class_number, one)
background = Constant<value_int=@background_class>()
is_background = Equal(labels, background)
is_foreground = Not(is_background)
is_candidate = And(is_high, is_foreground)
ranked32 = Where(is_candidate, table32, lowest32))");
  }

  /// Adds the lines that compute sorted32 (N,M), the scores of the M candidates to visit in descending order, and the
  /// box, the class and the element number of each of these candidates.
  void sort_candidates() {
    const bool of_class = if_so(op_.top_k_per_class, 'c');
    add(std::string("all_count = Identity(") + (of_class ? "box_count)" : "element_count)"));
    add(R"(limit_number = Constant<value_int=@top_k>()
has_limit = Greater(limit_number, zero)
limited_count = Min(all_count, limit_number)
count = Where(has_limit, limited_count, all_count))");
    add(of_class ? R"(by_class32 = Transpose<perm=[0, 2, 1]>(ranked32)
first32, first = TopK<axis=2>(by_class32, count)
row32 = Reshape(first32, row_shape)
row_boxes = Reshape(first, row_shape)
visited = Mul(class_count, count)
sorted32, place = TopK<axis=1>(row32, visited)
label = Div(place, count)
box = GatherElements<axis=1>(row_boxes, place))"
                 : R"(visited = Identity(count)
row32 = Reshape(ranked32, row_shape)
sorted32, place = TopK<axis=1>(row32, visited)
divisor = Max(class_count, one)
box = Div(place, divisor)
label = Mod(place, divisor))");
    add("first_element = Mul(box, class_count)\nelement = Add(first_element, label)");
  }

  /// Adds the lines that compute corners32 (N,boxes,classes,4, with 1 class if classes share boxes), the corners of all
  /// boxes, and place32 (N,M,4), the corners of each candidate of sorted32.
  void decode_boxes() {
    add(R"(quarters = Constant<value_ints=[2, 2]>()
box_shape = Constant<value_ints=[0, 0, -1, 4]>()
boxes32 = Cast<to=1>(boxes)
given32 = Reshape(boxes32, box_shape))");
    const bool is_center = if_so(op_.box_coding != 0, 'b');
    if (if_so(has_anchors_, 'a')) {
      add("anchors_typed = Cast<to=1>(anchors)\nanchors32 = Unsqueeze(anchors_typed, axis_2)");
      if (is_center) {
        add(R"(offset32, growth32 = Split<axis=3>(given32, quarters)
middle32, size32 = Split<axis=3>(anchors32, quarters)
moved32 = Mul(offset32, size32)
center32 = Add(moved32, middle32)
factor32 = Exp(growth32)
extent32 = Mul(factor32, size32))");
      } else {
        order("given32", "offset");
        order("anchors32", "anchor");
        add(R"(low32 = Add(offset_low32, anchor_low32)
high32 = Add(offset_high32, anchor_high32)
corners32 = Concat<axis=3>(low32, high32))");
      }
    } else {
      add(is_center ? "center32, extent32 = Split<axis=3>(given32, quarters)" : "corners32 = Identity(given32)");
    }
    if (is_center) {
      add(R"(half32 = Constant<value_float=0.5>()
reach32 = Mul(extent32, half32)
low32 = Sub(center32, reach32)
high32 = Add(center32, reach32)
corners32 = Concat<axis=3>(low32, high32))");
    }
    add(R"(all_shape = Concat<axis=0>(table_shape, four)
all32 = Expand(corners32, all_shape)
list_shape = Concat<axis=0>(items, element_count, four)
list32 = Reshape<allowzero=1>(all32, list_shape)
coordinates = Constant<value_ints=[1, 1, 4]>()
element_column = Unsqueeze(element, axis_2)
element_index = Expand(element_column, coordinates)
place32 = GatherElements<axis=1>(list32, element_index))");
  }

  /// Adds the lines that compute `<to>_low32` and `<to>_high32`, the lower and the upper corners of the boxes `from`,
  /// whose corners may have any order.
  void order(const std::string& from, const std::string& to) {
    const auto half = [&](const char* reduce, const char* which) {
      add(to + which + "32 = " + reduce + "<axes=[3], keepdims=0>(" + to + "_pairs32)");
    };
    add(to + "_shape = Constant<value_ints=[0, 0, -1, 2, 2]>()");
    add(to + "_pairs32 = Reshape(" + from + ", " + to + "_shape)");
    half("ReduceMin", "_low");
    half("ReduceMax", "_high");
  }

  /// Adds the lines that compute kept32 (N,M): 0 for a candidate that is not a detection, and for a detection a number
  /// that is higher for an earlier candidate.
  void suppress() {
    add(R"(pair_shape = Constant<value_ints=[0, 0, 2, 2]>()
pairs32 = Reshape(place32, pair_shape)
first_corner32 = ReduceMin<axes=[2], keepdims=0>(pairs32)
second_corner32 = ReduceMax<axes=[2], keepdims=0>(pairs32)
pixel_number = Constant<value_int=@pixel_boxes>()
pixel32 = Cast<to=1>(pixel_number)
past32 = Add(second_corner32, pixel32)
compared32 = Concat<axis=2>(first_corner32, past32))");
    add(R"(visited_number = Squeeze(visited)
position = Range(zero, visited_number, one)
worth = Sub(visited, position)
worth32 = Cast<to=1>(worth)
is_filled = Greater(sorted32, lowest32)
order32 = Where(is_filled, worth32, none32)
order_row32 = Unsqueeze(order32, axis_1))");
    if (if_so(op_.class_agnostic, 'g')) {
      add("class_scores32 = Identity(order_row32)");
    } else {
      add(R"(label_row = Unsqueeze(label, axis_1)
label_column = Unsqueeze(labels, axis_1)
is_label = Equal(label_row, label_column)
class_scores32 = Where(is_label, order_row32, none32))");
    }
    add(R"(most_number = Constant<value_int=@max_output_boxes_per_class>()
has_most = Greater(most_number, zero)
most = Where(has_most, most_number, visited))");
    add(R"(overlap32 = Constant<value_float=@iou_threshold>()
selected = NonMaxSuppression(compared32, class_scores32, most, overlap32, none32)
item_and_place = Constant<value_ints=[0, 2]>()
selected_places = Gather<axis=1>(selected, item_and_place)
selected_count = Shape<end=1>(selected)
ones32 = Expand(one32, selected_count)
zeros32 = Sub(order32, order32)
is_kept32 = ScatterND(zeros32, selected_places, ones32)
kept32 = Mul(is_kept32, order32))");
  }

  void write_outputs() {
    add(R"(places_number = Constant<value_int=@max_output_boxes>()
places_of_item = Unsqueeze(places_number, axis_0)
places_of_classes = Mul(class_count, most)
fewer_places = Min(places_of_item, places_of_classes)
pad_number = Constant<value_int=@pad_per_class>()
pads_classes = Cast<to=9>(pad_number)
is_padded = And(pads_classes, has_most)
places = Where(is_padded, fewer_places, places_of_item))");
    add(R"(taken = Min(places, visited)
best32, at = TopK<axis=1>(kept32, taken)
is_detection = Greater(best32, none32)
is_detection64 = Cast<to=7>(is_detection)
count64 = ReduceSum(is_detection64, axis_1)
num_detections = Cast<to=6>(count64)
missing = Sub(places, taken)
before_2 = Constant<value_ints=[0, 0, 0]>()
pads_2 = Concat<axis=0>(before_2, missing)
before_3 = Constant<value_ints=[0, 0, 0, 0]>()
pads_3 = Concat<axis=0>(before_3, missing, axis_0)
empty = Constant<value_int=@empty_class>()
label_at = GatherElements<axis=1>(label, at)
label_or_empty = Where(is_detection, label_at, empty)
padded_labels = Pad(label_or_empty, pads_2, empty)
detection_classes = Cast<to=6>(padded_labels)
given_shape = Shape(given32)
boxes_of_box = Gather(given_shape, axis_2)
has_own_boxes = Greater(boxes_of_box, one)
own_boxes = Cast<to=7>(has_own_boxes)
stride = Mul(own_boxes, box_count)
first_box = Mul(label_at, stride)
box_at = GatherElements<axis=1>(box, at)
index = Add(first_box, box_at)
index_or_empty = Where(is_detection, index, empty)
padded_indices = Pad(index_or_empty, pads_2, empty)
detection_indices = Cast<to=6>(padded_indices)
score_at32 = GatherElements<axis=1>(sorted32, at)
sigmoid_at32 = Sigmoid(score_at32)
score32 = Where(is_logit, sigmoid_at32, score_at32)
score_or_none32 = Where(is_detection, score32, none32)
padded_scores32 = Pad(score_or_none32, pads_2, none32)
detection_scores = CastLike(padded_scores32, boxes)
at_column = Unsqueeze(at, axis_2)
at_index = Expand(at_column, coordinates)
box_at32 = GatherElements<axis=1>(place32, at_index)
clip_number = Constant<value_int=@clip_boxes>()
clips = Cast<to=9>(clip_number)
clipped32 = Clip(box_at32, none32, one32)
shown32 = Where(clips, clipped32, box_at32)
is_detection_column = Unsqueeze(is_detection, axis_2)
box_or_none32 = Where(is_detection_column, shown32, none32)
padded_boxes32 = Pad(box_or_none32, pads_3, none32)
detection_boxes = CastLike(padded_boxes32, boxes))");
  }

  const Op& op_;
  bool has_anchors_;
  std::string flags_;
  std::string text_;
};

}  // namespace

std::optional<Function> CombinedNonMaxSuppression::function(const FunctionInputs& inputs) const {
  // ONNX's operator limits each class, and the function passes all classes as one.
  if (class_agnostic && max_output_boxes_per_class > 0) return std::nullopt;
  return FunctionText(*this, inputs.count > anchors).write();
}

std::vector<DropIn> CombinedNonMaxSuppression::drop_ins() {
  return {efficient("EfficientNMS_TRT", "NVIDIA's plugin of TensorRT 8 and later"),
          efficient("EfficientNMSX_TRT", "the plugin of YOLO exporters that also returns the indices of the boxes"),
          efficient("EfficientIdxNMS_TRT", "the plugin of TensorRT-YOLO that also returns the indices of the boxes"),
          for_tensorflow("EfficientNMS_Explicit_TF_TRT", "NVIDIA's plugin for TensorFlow's CombinedNonMaxSuppression"),
          for_tensorflow("EfficientNMS_Implicit_TF_TRT", "the same, for networks with an implicit batch"),
          for_onnx(),
          batched("BatchedNMS_TRT"),
          batched("BatchedNMSDynamic_TRT"),
          from_mmdeploy()};
}

}  // namespace graft::ops
