// The plugins of detectors, whose outputs are those of CombinedNonMaxSuppression in other forms.
#include "core/plugin_form.hpp"

#include <algorithm>
#include <array>

namespace graft {
namespace {

/// Computes y0 of EfficientNMS_ONNX_TRT: rows of item, class and box index, for all detections of all items without
/// gaps. The number of rows is constant; the rows after the last detection are copies of it, or -1 if there is no
/// detection.
constexpr std::string_view rows_of_detections = R"(first = Constant<value_ints=[0]>()
zero = Constant<value_int=0>()
one = Constant<value_int=1>()
axis_1 = Constant<value_ints=[1]>()
flat = Constant<value_ints=[-1]>()
counts_64 = Cast<to=int64>(num_detections)
counts = Reshape(counts_64, flat)
ends = CumSum(counts, zero)
starts = Sub(ends, counts)
total = ReduceSum<keepdims=0>(counts)
shape = Shape(detection_classes)
items = Gather(shape, zero)
places = Gather(shape, one)
rows = Mul(items, places)
row = Range(zero, rows, one)
last_row = Sub(total, one)
last_filled = Max(last_row, zero)
filled = Min(row, last_filled)
filled_column = Unsqueeze(filled, axis_1)
is_after = GreaterOrEqual(filled_column, ends)
is_after_64 = Cast<to=int64>(is_after)
items_before = ReduceSum<keepdims=0>(is_after_64, axis_1)
last_item = Sub(items, one)
item = Min(items_before, last_item)
start = Gather(starts, item)
place = Sub(filled, start)
item_start = Mul(item, places)
at = Add(item_start, place)
classes_flat = Reshape(detection_classes, flat)
indices_flat = Reshape(detection_indices, flat)
label = Gather(classes_flat, at)
index = Gather(indices_flat, at)
item_32 = Cast<to=int32>(item)
item_column = Unsqueeze(item_32, axis_1)
label_column = Unsqueeze(label, axis_1)
index_column = Unsqueeze(index, axis_1)
found = Concat<axis=1>(item_column, label_column, index_column)
has_any = Greater(total, zero)
none = Constant<value=int32(-1)>()
y0 = Where(has_any, found, none))";

constexpr std::string_view boxes_and_scores = R"(last_axis = Constant<value_ints=[2]>()
score_column = Unsqueeze(detection_scores, last_axis)
y0 = Concat<axis=2>(detection_boxes, score_column))";

std::vector<PluginForm> make_forms() {
  const std::vector<std::string_view> batched{"y0 = Identity(num_detections)", "y1 = Identity(detection_boxes)",
                                              "y2 = Identity(detection_scores)",
                                              "y3 = CastLike(detection_classes, detection_scores)"};
  return {{"EfficientNMS_TRT", {}, false},
          {"EfficientNMSX_TRT", {}, true},
          {"EfficientIdxNMS_TRT", {}, true},
          {"EfficientNMS_Explicit_TF_TRT", {}, false},
          {"EfficientNMS_Implicit_TF_TRT", {}, false},
          {"EfficientNMS_ONNX_TRT", {rows_of_detections}, false},
          {"BatchedNMS_TRT", batched, false},
          {"BatchedNMSDynamic_TRT", batched, false},
          {"TRTBatchedNMS",
           {boxes_and_scores, "y1 = Identity(detection_classes)", "y2 = Identity(detection_indices)"},
           false}};
}

}  // namespace

const PluginForm* find_plugin_form(std::string_view plugin_name) {
  static const std::vector<PluginForm> forms = make_forms();
  const auto found =
      std::find_if(forms.begin(), forms.end(), [&](const PluginForm& form) { return form.plugin_name == plugin_name; });
  return found == forms.end() ? nullptr : &*found;
}

bool has_own_outputs(std::string_view plugin_name) {
  const PluginForm* form = find_plugin_form(plugin_name);
  return form != nullptr && !form->outputs.empty();
}

bool can_stand_in(std::string_view plugin_name) {
  const PluginForm* form = find_plugin_form(plugin_name);
  return form == nullptr || form->has_all_outputs;
}

}  // namespace graft
