//   selected = NonMaxSuppression(boxes, scores)           rows of item, class, box
//   score = GatherND(scores, selected)
//   number = CumSum<exclusive=1>(EyeLike(...)[item])      the number of a row among those of its item
//   table = ScatterND(zeros, [item, number], score)       for each item the scores of all classes
//   rows = ScatterND(-1 ..., [item, number], 0 1 2 ...)
//   best, at = TopK(table)
//   place = GatherElements(rows, at)                      the row of each place, -1 after the last one
//   boxes of the places = Pad(boxes of the rows, 1 row of zeros before them)[place + 1], and the classes likewise
#include "ops/combined_non_max_suppression/fusion/combined_tail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "onnx/extract.hpp"
#include "onnx/operator_node.hpp"
#include "ops/combined_non_max_suppression/combined_non_max_suppression.hpp"

namespace graft::passes::suppression {
namespace {

enum Columns : std::uint8_t { item, label, box };

bool is_view(const onnx::Node& node) {
  return node.is("Reshape") || node.is("Squeeze") || node.is("Unsqueeze") || node.is("Identity");
}

/// Returns the value before nodes that only change the shape.
onnx::Value* source_of(onnx::Value* value) {
  while (value != nullptr && value->producer != nullptr && is_view(*value->producer)) value = value->producer->input(0);
  return value;
}

/// Returns the node of this type that computes a value, or null.
onnx::Node* made_by(onnx::Value* value, std::string_view op_type) {
  return value != nullptr && value->producer != nullptr && value->producer->is(op_type) ? value->producer : nullptr;
}

/// Returns the readers of the first output of a node.
std::vector<onnx::Use> readers_of(const onnx::Node& node) {
  return node.output() == nullptr ? std::vector<onnx::Use>() : node.output()->uses;
}

std::optional<double> number_of(const onnx::Value* value) {
  const auto constant = value == nullptr ? std::nullopt : value->constant();
  return constant ? constant->scalar() : std::nullopt;
}

bool is_number(const onnx::Value* value, double wanted) { return number_of(value) == wanted; }

bool is_along(const onnx::Node& node, std::int64_t axis, std::int64_t rank, std::int64_t otherwise) {
  const std::int64_t given = node.int_or("axis", otherwise);
  return (given < 0 ? given + rank : given) == axis;
}

/// Returns whether all elements of a tensor have the value, whatever its size.
bool is_filled_with(onnx::Value* value, double wanted) {
  if (const onnx::Node* node = made_by(value, "ConstantOfShape")) {
    const onnx::NodeAttribute* given = node->attribute("value");
    const auto* tensor = given == nullptr ? nullptr : given->get<onnx::TensorData>();
    return tensor == nullptr ? wanted == 0 : tensor->scalar() == wanted;
  }
  const auto constant = value == nullptr ? std::nullopt : value->constant();
  const auto numbers = constant ? constant->numbers() : std::nullopt;
  return numbers && std::all_of(numbers->begin(), numbers->end(), [&](double each) { return each == wanted; });
}

bool is_identity_matrix(onnx::Value* value) {
  if (const onnx::Node* node = made_by(value, "EyeLike")) return node->int_or("k", 0) == 0;
  const auto constant = value == nullptr ? std::nullopt : value->constant();
  const auto numbers = constant ? constant->numbers() : std::nullopt;
  if (!numbers || constant->dims.size() != 2 || constant->dims[0] != constant->dims[1]) return false;
  const auto size = static_cast<std::size_t>(constant->dims[0]);
  for (std::size_t i = 0; i < numbers->size(); ++i) {
    if ((*numbers)[i] != (i % (size + 1) == 0 ? 1 : 0)) return false;
  }
  return true;
}

/// Returns the value that a Pad with these amounts and this fill extends, or null. `amounts` may have one element that
/// is not constant in the pattern, at `free`, which is returned in `found`.
onnx::Value* padded_value(onnx::Value* value, std::vector<std::int64_t> amounts, double fill,
                          std::optional<std::size_t> free = std::nullopt, std::int64_t* found = nullptr) {
  const onnx::Node* pad = made_by(value, "Pad");
  if (pad == nullptr || pad->string_or("mode", "constant") != "constant" || pad->input(3) != nullptr) return nullptr;
  const auto given = onnx::constant_ints(pad->input(1));
  if (!given || given->size() != amounts.size()) return nullptr;
  if (free) {
    amounts[*free] = (*given)[*free];
    if (amounts[*free] < 0) return nullptr;
    *found = amounts[*free];
  }
  const bool has_fill = pad->input(2) == nullptr ? fill == 0 : is_number(pad->input(2), fill);
  return *given == amounts && has_fill ? pad->input(0) : nullptr;
}

class CombinedReader {
 public:
  explicit CombinedReader(onnx::Node& suppression) : suppression_(suppression), selected_(suppression.output()) {}

  std::optional<CombinedTail> read(std::string& why_not) {
    if (selected_ == nullptr || !find_table()) return std::nullopt;
    if (!read_limits() || !find_results() || !collect_region()) {
      why_not = why_not_.empty() ? "the nodes after TopK are not those of tf2onnx" : why_not_;
      return std::nullopt;
    }
    return std::move(tail_);
  }

 private:
  bool fail(std::string why) {
    why_not_ = std::move(why);
    return false;
  }

  /// Returns whether a value is a column of the rows of item, class and box.
  bool is_column(onnx::Value* value, Columns column) const {
    onnx::Value* source = source_of(value);
    if (const onnx::Node* slice = made_by(source, "Slice")) {
      const auto at = [&](std::size_t input) { return number_of(slice->input(input)); };
      return slice->input(0) == selected_ && at(1) == column && at(2) == column + 1 && at(3) == 1 &&
             (slice->input(4) == nullptr || at(4) == 1);
    }
    const onnx::Node* gather = made_by(source, "Gather");
    return gather != nullptr && gather->input(0) == selected_ && gather->int_or("axis", 0) == 1 &&
           is_number(gather->input(1), column);
  }

  /// Returns whether a value has, for each row, its item and its number among the rows of the item.
  bool is_place_in_table(onnx::Value* value) const {
    const onnx::Node* concat = made_by(value, "Concat");
    if (concat == nullptr || concat->inputs.size() != 2 || !is_along(*concat, 1, 2, 0)) return false;
    const onnx::Node* chosen = made_by(source_of(concat->input(1)), "GatherND");
    const onnx::Node* sum = chosen == nullptr ? nullptr : made_by(chosen->input(0), "CumSum");
    const onnx::Node* hot = sum == nullptr ? nullptr : made_by(sum->input(0), "Gather");
    return hot != nullptr && is_column(concat->input(0), item) && is_column(chosen->input(1), item) &&
           chosen->int_or("batch_dims", 0) == 1 && sum->int_or("exclusive", 0) == 1 && sum->int_or("reverse", 0) == 0 &&
           is_number(sum->input(1), 0) && hot->int_or("axis", 0) == 0 && is_identity_matrix(hot->input(0)) &&
           is_column(hot->input(1), item);
  }

  bool find_table();
  bool read_limits();
  bool find_results();
  void read_place(onnx::Value* place);
  void read_boxes(onnx::Node& gather, onnx::Value* rows);
  bool collect_region();

  onnx::Node& suppression_;
  onnx::Value* selected_;
  CombinedTail tail_;
  onnx::Value* row_scores_ = nullptr;
  onnx::Node* best_ = nullptr;        // TopK
  onnx::Value* places_ = nullptr;     // the row of each place
  std::optional<std::int64_t> more_;  // the number of places that a Pad adds
  bool differs_ = false;              // whether two Pads add different numbers of places
  std::string why_not_;
};

/// Finds the TopK of the table with the scores of each item, and the row of each of its results.
bool CombinedReader::find_table() {
  for (const onnx::Use& use : selected_->uses) {
    onnx::Node* node = use.node;
    if (node->is("GatherND") && node->input(0) == suppression_.input(1) && node->int_or("batch_dims", 0) == 0) {
      row_scores_ = node->output();
    }
  }
  if (row_scores_ == nullptr) return false;
  for (const onnx::Use& use : row_scores_->uses) {
    onnx::Node* table = use.node;
    if (!table->is("ScatterND") || use.index != 2 || !is_filled_with(table->input(0), 0) ||
        table->string_or("reduction", "none") != "none" || !is_place_in_table(table->input(1))) {
      continue;
    }
    for (const onnx::Use& reader : readers_of(*table)) {
      if (reader.node->is("TopK") && reader.index == 0) best_ = reader.node;
    }
  }
  if (best_ == nullptr || best_->output(0) == nullptr || !is_along(*best_, 1, 2, -1) ||
      best_->int_or("largest", 1) != 1 || best_->int_or("sorted", 1) != 1 || best_->output(1) == nullptr) {
    return false;
  }
  for (const onnx::Use& use : best_->output(1)->uses) {
    const onnx::Node* gather = use.node;
    const onnx::Node* rows = gather->is("GatherElements") ? made_by(gather->input(0), "ScatterND") : nullptr;
    const onnx::Node* range = rows == nullptr ? nullptr : made_by(rows->input(2), "Range");
    if (range == nullptr || !is_along(*gather, 1, 2, 0) || !is_filled_with(rows->input(0), -1) ||
        !is_place_in_table(rows->input(1)) || !is_number(range->input(0), 0) || !is_number(range->input(2), 1)) {
      continue;
    }
    const onnx::Node* size = made_by(source_of(range->input(1)), "Shape");
    if (size != nullptr && size->input(0) == row_scores_) places_ = gather->output();
  }
  return places_ != nullptr;
}

bool CombinedReader::read_limits() {
  const onnx::Value* scores = suppression_.input(1);
  const auto limit = number_of(suppression_.input(2));
  const auto overlap = number_of(suppression_.input(3));
  const auto threshold = number_of(suppression_.input(4));
  const auto best = number_of(best_->input(1));
  if (!limit || !overlap || !threshold || !best || *limit < 1) return fail("a limit or a threshold is not a constant");
  // Scores of 0 fill the table, and sort before negative ones.
  if (!(*threshold >= 0)) return fail(fmt::format("score_threshold is {}; it must be at least 0", *threshold));
  if (suppression_.int_or("center_point_box", 0) != 0) return fail("boxes are centers and sizes");
  if (!scores->shape || scores->shape->size() != 3 || !(*scores->shape)[1].is_constant()) {
    return fail(fmt::format("the number of classes of '{}' is unknown", scores->name));
  }
  tail_.most_of_class = static_cast<std::int64_t>(*limit);
  tail_.iou_threshold = static_cast<float>(*overlap);
  tail_.score_threshold = std::nextafter(static_cast<float>(*threshold), std::numeric_limits<float>::infinity());
  tail_.places = static_cast<std::int64_t>(*best);
  tail_.boxes = suppression_.input(0)->name;
  tail_.scores = scores->name;
  return true;
}

/// Reads the tensors that are gathered with the row of each place.
void CombinedReader::read_place(onnx::Value* place) {
  for (const onnx::Use& use : place->uses) {
    onnx::Node* add = use.node;
    if (!add->is("Add") || !is_number(add->input(1 - use.index), 1)) continue;
    for (const onnx::Use& reader : readers_of(*add)) {
      onnx::Node* gather = reader.node;
      const bool selects_rows = gather->is("Gather") && reader.index == 1 && gather->int_or("axis", 0) == 0;
      if (!selects_rows || gather->output() == nullptr) continue;
      if (onnx::Value* rows = padded_value(gather->input(0), {1, 0}, 0); rows != nullptr && is_column(rows, label)) {
        tail_.found_classes = gather->output()->name;
      }
      if (onnx::Value* rows = padded_value(gather->input(0), {1, 0, 0, 0}, 0)) read_boxes(*gather, rows);
    }
  }
}

void CombinedReader::read_boxes(onnx::Node& gather, onnx::Value* rows) {
  if (const onnx::Node* least = made_by(rows, "Min"); least != nullptr && least->inputs.size() == 2) {
    const onnx::Node* most = made_by(least->input(0), "Max");
    if (most == nullptr || most->inputs.size() != 2 || !is_number(least->input(1), 1) || !is_number(most->input(1), 0))
      return;
    tail_.clips = true;
    rows = most->input(0);
  } else if (const onnx::Node* clip = made_by(rows, "Clip")) {
    if (!is_number(clip->input(1), 0) || !is_number(clip->input(2), 1)) return;
    tail_.clips = true;
    rows = clip->input(0);
  }
  const onnx::Node* chosen = made_by(source_of(rows), "GatherND");
  const onnx::Node* place = chosen == nullptr ? nullptr : made_by(chosen->input(1), "Concat");
  if (place == nullptr || place->inputs.size() != 2 || chosen->int_or("batch_dims", 0) != 0 ||
      !is_along(*place, 1, 2, 0) || !is_column(place->input(0), item) || !is_column(place->input(1), box) ||
      source_of(chosen->input(0)) != source_of(suppression_.input(0))) {
    return;
  }
  tail_.found_boxes = gather.output()->name;
}

bool CombinedReader::find_results() {
  const auto is_more = [&](std::int64_t found) {
    differs_ = differs_ || (more_ && *more_ != found);
    more_ = found;
  };
  constexpr std::size_t last = 3;
  std::int64_t found = 0;
  tail_.found_scores = best_->output(0)->name;
  for (const onnx::Use& use : best_->output(0)->uses) {
    if (padded_value(use.node->output(), {0, 0, 0, 0}, 0, last, &found) == nullptr) continue;
    tail_.found_scores = use.node->output()->name;
    is_more(found);
  }
  read_place(places_);
  for (const onnx::Use& use : places_->uses) {
    onnx::Node* node = use.node;
    if (padded_value(node->output(), {0, 0, 0, 0}, -1, last, &found) != nullptr) {
      is_more(found);
      read_place(node->output());
    }
    if (!node->is("Greater") || use.index != 0 || !is_number(node->input(1), -1)) continue;
    for (const onnx::Use& reader : readers_of(*node)) {
      if (!reader.node->is("Cast")) continue;
      for (const onnx::Use& sum : readers_of(*reader.node)) {
        const auto axes = onnx::constant_ints(sum.node->input(1));
        const bool sums_places = axes && axes->size() == 1 && (axes->front() == -1 || axes->front() == 1);
        if (sum.node->is("ReduceSum") && sums_places && sum.node->int_or("keepdims", 1) == 0 &&
            sum.node->output() != nullptr) {
          tail_.counts = sum.node->output()->name;
        }
      }
    }
  }
  if (tail_.found_boxes.empty())
    return fail("the boxes of the places are not gathered from those of NonMaxSuppression");
  const std::int64_t all = tail_.most_of_class * (*suppression_.input(1)->shape)[1].value();
  if (differs_ || (more_.value_or(0) > 0 && tail_.places != all)) {
    return fail("the best scores are padded to more places than all classes have");
  }
  tail_.places += more_.value_or(0);
  return true;
}

bool CombinedReader::collect_region() {
  onnx::Graph& graph = *suppression_.graph;
  std::vector<const onnx::Value*> results;
  for (const std::string* name : {&tail_.found_boxes, &tail_.found_scores, &tail_.found_classes, &tail_.counts}) {
    if (name->empty()) continue;
    tail_.outputs.push_back(graph.find_local(*name));
    results.push_back(tail_.outputs.back());
  }
  onnx::Value* boxes = source_of(suppression_.input(0));
  onnx::Value* scores = suppression_.input(1);
  tail_.inputs = {boxes, scores};
  // The sizes of the table may come from the scores before they are transposed.
  if (const onnx::Node* transpose = made_by(scores, "Transpose")) tail_.inputs[1] = transpose->input(0);
  const onnx::GraphRegion region = onnx::region_before(
      results, [&](const onnx::Value& value) { return &value == tail_.inputs[0] || &value == tail_.inputs[1]; });
  const std::unordered_set<const onnx::Node*> members(region.nodes.begin(), region.nodes.end());
  for (onnx::Node* node : graph.nodes()) {
    if (members.contains(node)) tail_.nodes.push_back(node);
  }
  // Another reader would still need rows whose number depends on data.
  std::unordered_set<const onnx::Value*> rows;
  for (const onnx::Node* node : tail_.nodes) {
    const bool reads_rows = std::any_of(node->inputs.begin(), node->inputs.end(),
                                        [&](const onnx::Value* input) { return rows.contains(input); });
    if (node != &suppression_ && !reads_rows) continue;
    for (onnx::Value* output : node->outputs) {
      if (output == nullptr || std::find(results.begin(), results.end(), output) != results.end()) continue;
      rows.insert(output);
      for (const onnx::Use& use : output->uses) {
        if (!members.contains(use.node)) return fail(fmt::format("'{}' is read elsewhere", output->name));
      }
      if (output->is_output()) return fail(fmt::format("'{}' is an output of the graph", output->name));
    }
  }
  return true;
}

}  // namespace

std::optional<CombinedTail> read_combined_tail(onnx::Node& suppression, std::string& why_not) {
  return CombinedReader(suppression).read(why_not);
}

void replace_combined_tail(onnx::Graph& graph, const CombinedTail& tail, const Operator& op) {
  using Op = ops::CombinedNonMaxSuppression;
  const auto hint = [&](std::string_view what) { return fmt::format("{}/{}", tail.found_scores, what); };
  onnx::Node* rows = graph.add_node("Transpose", {graph.find_local(tail.scores)}, {hint("rows")});
  rows->attributes.emplace("perm", onnx::NodeAttribute(onnx::AttributeData(std::vector<std::int64_t>{0, 2, 1})));
  const onnx::Node* node = add_operator_node(graph, op, {graph.find_local(tail.boxes), rows->output()},
                                             {hint("num_detections"), hint("detection_boxes"), hint("detection_scores"),
                                              hint("detection_classes"), hint("detection_indices")});
  const auto replace = [&](const std::string& name, onnx::Node& by) {
    onnx::Value* old = graph.find_local(name);
    graph.move_output(*old->producer, old->output_index, by, 0);
  };
  const auto cast = [&](onnx::Value* value, const std::string& name) {
    const auto type = graph.find_local(name)->type.value_or(onnx::ElementType::i64);
    onnx::Node* made = graph.add_node("Cast", {value}, {name});
    made->attributes.emplace("to", onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(type))));
    replace(name, *made);
  };
  replace(tail.found_boxes, *graph.add_node("Identity", {node->output(Op::detection_boxes)}, {tail.found_boxes}));
  replace(tail.found_scores, *graph.add_node("Identity", {node->output(Op::detection_scores)}, {tail.found_scores}));
  if (!tail.found_classes.empty()) cast(node->output(Op::detection_classes), tail.found_classes);
  if (!tail.counts.empty()) {
    onnx::Value* axis = graph.add_constant(hint("axis"), onnx::TensorData::from_ints({1}));
    onnx::Node* squeezed = graph.add_node("Squeeze", {node->output(Op::num_detections), axis}, {hint("count")});
    cast(squeezed->output(), tail.counts);
  }
  graph.topological_sort();
}

}  // namespace graft::passes::suppression
