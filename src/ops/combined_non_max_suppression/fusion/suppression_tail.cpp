#include "ops/combined_non_max_suppression/fusion/suppression_tail.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "graft/error.hpp"
#include "onnx/copy.hpp"
#include "onnx/extract.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/shape_inference.hpp"
#include "ops/combined_non_max_suppression/combined_non_max_suppression.hpp"
#include "ops/combined_non_max_suppression/fusion/box_list.hpp"

namespace graft::passes::suppression {
namespace {

using Content = BoxRows::Content;

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
/// The maximum number of places. A file of a few bytes may request billions.
constexpr std::int64_t most_places = 1 << 16;
constexpr std::string_view rows_symbol = "selected boxes";

std::optional<double> number(const onnx::Value* value) {
  const auto constant = value == nullptr ? std::nullopt : value->constant();
  return constant ? constant->scalar() : std::nullopt;
}

std::optional<std::int64_t> integer(const onnx::Value* value) {
  const auto constant = onnx::constant_ints(value);
  return constant && constant->size() == 1 ? std::optional(constant->front()) : std::nullopt;
}

/// Returns the value before nodes that only change the shape.
onnx::Value* before_views(onnx::Value* value) {
  while (value != nullptr && value->producer != nullptr) {
    const onnx::Node& node = *value->producer;
    if (!node.is("Reshape") && !node.is("Unsqueeze") && !node.is("Squeeze") && !node.is("Identity")) break;
    value = node.input(0);
  }
  return value;
}

/// Replaces Relu of an integer in f32, which tf2onnx writes, by Max. Both compute the same for sizes up to most_places.
void replace_relu(onnx::Graph& graph) {
  for (onnx::Node* node : graph.nodes()) {
    const onnx::Node* before = node->is("Relu") && node->input(0) != nullptr ? node->input(0)->producer : nullptr;
    if (before == nullptr || !before->is("Cast")) continue;
    onnx::Value* none = graph.add_constant("none", onnx::TensorData::from_ints({0}));
    const onnx::Node* largest = graph.add_node("Max", {before->input(0), none}, {"size"}, node);
    largest->output()->type = before->input(0)->type;
    for (const onnx::Use& use : std::vector<onnx::Use>(node->output()->uses)) {
      if (use.node->is("Cast")) graph.replace_all_uses(*use.node->output(), *largest->output());
    }
  }
}

class TailReader {
 public:
  TailReader(const onnx::Model& model, onnx::Node& suppression) : model_(model), suppression_(suppression) {}

  std::optional<SuppressionTail> read() {
    if (!read_suppression() || !read_candidates() || !follow_selected() || !find_threshold() || !collect_region()) {
      return std::nullopt;
    }
    return std::move(tail_);
  }

  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  [[nodiscard]] std::size_t matched() const { return matched_; }

 private:
  bool fail(std::string why) {
    why_not_ = std::move(why);
    return false;
  }

  bool read_suppression();
  bool read_candidates();
  bool read_compression(const onnx::Node& node);
  bool follow_selected();
  bool follow_selected_node(onnx::Node& node);
  bool shorten(const onnx::Node& node);
  bool read_pad(onnx::Node& node);
  bool read_concat(onnx::Node& node);
  bool add_result(onnx::Node& node, const onnx::Value* sizes, std::optional<std::int64_t> places,
                  const onnx::TensorData& fill);
  bool set_places(const onnx::Node& node, std::int64_t places, const BoxRows& rows);
  std::optional<Shape> sizes_by_rows(const onnx::Value& sizes, std::int64_t most);
  bool find_threshold();
  bool collect_region();
  void need_before(const onnx::Value* value, std::unordered_set<const onnx::Node*>& needed);

  const onnx::Model& model_;
  onnx::Node& suppression_;
  SuppressionTail tail_;
  BoxList candidates_;  // the boxes above a threshold
  BoxList selected_;
  const onnx::Value* mask_ = nullptr;
  std::unordered_map<const onnx::Value*, onnx::Value*> sources_;  // of compressed tensors
  std::unordered_set<const onnx::Node*> selecting_;               // the nodes that select the candidates
  std::unordered_set<const onnx::Node*> selected_nodes_;
  std::unordered_set<const onnx::Value*> padding_;  // sizes that exits read
  std::string why_not_;
  std::size_t matched_ = 2;  // NonMaxSuppression and a reader
};

bool TailReader::read_suppression() {
  const onnx::Value* boxes = suppression_.input(0);
  const onnx::Value* scores = suppression_.input(1);
  if (boxes == nullptr || scores == nullptr || !boxes->shape || boxes->shape->size() != 3 || !scores->shape ||
      scores->shape->size() != 3 || suppression_.output() == nullptr) {
    return fail("the ranks of its inputs are unknown");
  }
  if (!((*scores->shape)[0] == Dim(1)) || !((*scores->shape)[1] == Dim(1))) {
    return fail(fmt::format("'{}' has the shape {}; only the scores of one item and one class are fused", scores->name,
                            to_string(*scores->shape)));
  }
  const auto limit = integer(suppression_.input(2));
  const bool has_overlap = suppression_.input(3) != nullptr;
  const bool has_threshold = suppression_.input(4) != nullptr;
  const auto overlap = has_overlap ? number(suppression_.input(3)) : std::optional(0.0);
  const auto threshold = has_threshold ? number(suppression_.input(4)) : std::optional(0.0);
  if (!limit || !overlap || !threshold) return fail("its limit or one of its thresholds is not a constant");
  if (*limit < 1) return fail("it selects no boxes");
  tail_.selected = suppression_.output()->name;
  tail_.boxes = boxes->name;
  tail_.scores = scores->name;
  tail_.most = std::max<std::int64_t>(*limit, 1);
  const Dim& all = (*boxes->shape)[1];
  if (all.is_constant()) tail_.most = std::min(tail_.most, all.value());
  tail_.iou_threshold = static_cast<float>(*overlap);
  tail_.is_center = suppression_.int_or("center_point_box", 0) != 0;
  // The operator selects scores that are equal to its threshold; NonMaxSuppression only higher ones.
  const auto given = static_cast<float>(*threshold);
  tail_.score_threshold = has_threshold ? std::nextafter(given, std::numeric_limits<float>::infinity())
                                        : std::numeric_limits<float>::lowest();
  return true;
}

/// Reads the nodes that keep the boxes whose score is above a threshold, and what is computed from these boxes.
bool TailReader::read_candidates() {
  const onnx::GraphRegion region =
      onnx::region_before({suppression_.input(0), suppression_.input(1)}, [](const onnx::Value&) { return false; });
  const std::unordered_set<const onnx::Node*> ancestors(region.nodes.begin(), region.nodes.end());
  for (const onnx::Node* node : suppression_.graph->nodes()) {
    if (node->output() == nullptr) continue;
    const bool is_ancestor = ancestors.contains(node);
    if (node->is("NonZero") || node->is("Compress")) {
      // Other tensors may be gathered by the same mask after the suppression.
      const bool has_mask = mask_ != nullptr && node->input(node->is("NonZero") ? 0 : 1) == mask_;
      if ((is_ancestor || has_mask) && !read_compression(*node)) return false;
      continue;
    }
    if (!candidates_.reads_list(*node)) continue;
    ++matched_;
    const BoxRows* places = candidates_.rows(node->input(1));
    if ((node->is("Gather") || node->is("GatherND")) && places != nullptr && places->content == Content::places) {
      onnx::Value* source = node->input(0);
      const bool is_along_boxes = node->is("Gather")
                                      ? node->int_or("axis", 0) == 0 && node->input(1)->rank() == 1
                                      : node->input(1)->rank() == 2 && (*node->input(1)->shape)[1] == Dim(1);
      if (!is_along_boxes || candidates_.rows(source) != nullptr || !source->shape || source->shape->empty() ||
          !mask_->shape || !((*source->shape)[0] == (*mask_->shape)[0])) {
        if (!is_ancestor) continue;
        return fail(
            fmt::format("{} does not select the boxes of '{}' along axis 0", onnx::describe(*node), mask_->name));
      }
      candidates_.add(*node->output(), {0, Content::data, unlimited});
      sources_.emplace(node->output(), source);
      continue;
    }
    std::string why;
    if (!candidates_.follow(*node, why) && is_ancestor) return fail(std::move(why));
  }
  const BoxRows* boxes = candidates_.rows(suppression_.input(0));
  const BoxRows* scores = candidates_.rows(suppression_.input(1));
  if (mask_ == nullptr) return true;
  if (boxes == nullptr || scores == nullptr || boxes->axis != 1 || scores->axis != 2 ||
      boxes->content != Content::data || scores->content != Content::data) {
    return fail(fmt::format("the boxes or the scores are not those that '{}' selects", mask_->name));
  }
  return true;
}

bool TailReader::read_compression(const onnx::Node& node) {
  ++matched_;
  const bool is_compress = node.is("Compress");
  const onnx::Value* mask = node.input(is_compress ? 1 : 0);
  if (mask == nullptr || node.input(0) == nullptr || !mask->shape || mask->shape->size() != 1 ||
      candidates_.rows(mask) != nullptr) {
    return fail(fmt::format("{} does not select boxes by a mask with one axis", onnx::describe(node)));
  }
  if (mask_ != nullptr && mask_ != mask) {
    return fail(fmt::format("'{}' and '{}' select different boxes", mask_->name, mask->name));
  }
  mask_ = mask;
  if (!is_compress) {
    candidates_.add(*node.output(), {1, Content::places, unlimited});
    return true;
  }
  onnx::Value* source = node.input(0);
  const bool has_axis = node.attribute("axis") != nullptr || source->rank() == 1;
  if (!has_axis || node.int_or("axis", 0) != 0 || !source->shape || !((*source->shape)[0] == (*mask->shape)[0])) {
    return fail(fmt::format("{} does not select the boxes of '{}' along axis 0", onnx::describe(node), mask->name));
  }
  candidates_.add(*node.output(), {0, Content::data, unlimited});
  sources_.emplace(node.output(), source);
  return true;
}

/// Follows the selected boxes to the results of fixed size.
bool TailReader::follow_selected() {
  const Dim& all = [&]() -> const Dim& {
    const bool is_masked = mask_ != nullptr;
    return is_masked ? (*mask_->shape)[0] : (*suppression_.input(0)->shape)[1];
  }();
  if (all.is_constant() ? all.value() < 1 : onnx::is_unknown(all)) {
    return fail(fmt::format("the number of boxes in '{}' depends on data", tail_.boxes));
  }
  if (all.is_constant()) tail_.most = std::min(tail_.most, all.value());
  selected_.add(*suppression_.output(), {0, Content::places, tail_.most});
  for (onnx::Node* node : suppression_.graph->nodes()) {
    if (node == &suppression_ || node->output() == nullptr || !selected_.reads_list(*node)) continue;
    if (!follow_selected_node(*node)) return false;
  }
  if (tail_.results.empty()) {
    return fail(
        fmt::format("no result has a fixed size: each has a row for each box that '{}' selects", tail_.selected));
  }
  for (const onnx::Node* node : selected_nodes_) {
    for (const onnx::Value* output : node->outputs) {
      if (output == nullptr || selected_.rows(output) == nullptr || !output->is_output()) continue;
      return fail(fmt::format("'{}', which has a row for each selected box, is an output of the graph", output->name));
    }
  }
  if (suppression_.output()->is_output()) {
    return fail(fmt::format("'{}', which has a row for each selected box, is an output of the graph", tail_.selected));
  }
  return true;
}

bool TailReader::follow_selected_node(onnx::Node& node) {
  const BoxRows* data = selected_.rows(node.input(0));
  if (node.is("Pad") && data != nullptr) {
    ++matched_;
    return read_pad(node);
  }
  if (node.is("Concat") && data != nullptr && node.input(0)->shape) {
    const auto rank = static_cast<std::int64_t>(node.input(0)->shape->size());
    const std::int64_t axis = node.int_or("axis", 0);
    if ((axis < 0 ? axis + rank : axis) == static_cast<std::int64_t>(data->axis)) {
      ++matched_;
      return read_concat(node);
    }
  }
  if (node.is("Slice") && data != nullptr && shorten(node)) {
    ++matched_;
    selected_nodes_.insert(&node);
    return true;
  }
  std::string why;
  const bool reads_rows = selected_.reads_rows(node);
  if (!selected_.follow(node, why)) {
    // A size is also known to nodes that do not belong to the tail.
    return reads_rows ? fail(std::move(why)) : true;
  }
  ++matched_;
  selected_nodes_.insert(&node);
  const BoxRows* places = selected_.rows(node.input(1));
  if (mask_ == nullptr || places == nullptr || (!node.is("Gather") && !node.is("GatherND"))) return true;
  // The numbers of the boxes count those above the threshold.
  const BoxRows* from = candidates_.rows(node.input(0));
  const bool counts_candidates =
      from != nullptr && from->axis == 0 && from->content == Content::data && places->content == Content::places &&
      (node.is("Gather") ? node.int_or("axis", 0) == 0
                         : (*node.input(1)->shape)[node.input(1)->shape->size() - 1] == Dim(1));
  return counts_candidates ||
         fail(fmt::format("{} selects from '{}', which is not a tensor of the boxes that '{}' selects",
                          onnx::describe(node), node.input(0)->name, mask_->name));
}

/// Reads a Slice of the first boxes.
bool TailReader::shorten(const onnx::Node& node) {
  const BoxRows rows = *selected_.rows(node.input(0));
  const auto axes = onnx::constant_ints(node.input(3));
  const auto begin = integer(node.input(1));
  const auto end = integer(node.input(2));
  const auto step = node.input(4) == nullptr ? std::optional<std::int64_t>(1) : integer(node.input(4));
  if (!node.input(0)->shape) return false;
  const auto rank = static_cast<std::int64_t>(node.input(0)->shape->size());
  const bool is_along_boxes =
      axes ? axes->size() == 1 && (axes->front() + rank) % rank == static_cast<std::int64_t>(rows.axis)
           : node.input(3) == nullptr && rows.axis == 0;
  if (!is_along_boxes || begin != 0 || !end || *end < 1 || step != 1) return false;
  selected_.add(*node.output(), {rows.axis, rows.content, std::min(rows.most, *end)});
  tail_.shortened.emplace_back(node.output()->name, node.input(0)->name);
  return true;
}

/// Returns the integers of a tensor that is computed from the number of boxes in a list of at most `most`, as
/// expressions in this number.
std::optional<Shape> TailReader::sizes_by_rows(const onnx::Value& sizes, std::int64_t most) {
  std::vector<const onnx::Value*> begin;
  std::vector<const onnx::Value*> waiting{&sizes};
  std::unordered_set<const onnx::Value*> seen;
  while (!waiting.empty()) {
    const onnx::Value* value = waiting.back();
    waiting.pop_back();
    if (value == nullptr || !seen.insert(value).second) continue;
    if (const BoxRows* rows = selected_.rows(value)) {
      if (rows->most != most) return std::nullopt;  // the list before the first boxes are taken, or after it
      begin.push_back(value);
    } else if (value->producer != nullptr && selected_.is_size(value)) {
      for (const onnx::Value* input : value->producer->inputs) waiting.push_back(input);
    }
  }
  if (begin.empty() || !sizes.type) return std::nullopt;
  try {
    onnx::Model part = onnx::extract(model_, begin, {&sizes});
    onnx::Graph& graph = part.graph();
    for (const onnx::Value* value : begin) {
      onnx::Value* copy = graph.find_local(value->name);
      if (copy == nullptr || !copy->shape) return std::nullopt;
      (*copy->shape)[selected_.rows(value)->axis] = Dim::symbol(std::string(rows_symbol));
    }
    replace_relu(graph);
    // The shape of the result has the integers.
    onnx::Value* integers = graph.find_local(sizes.name);
    onnx::Node* shaped = graph.add_node("ConstantOfShape", {integers}, {"shaped"});
    infer_shapes(part);
    return shaped->output()->shape;
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool TailReader::set_places(const onnx::Node& node, std::int64_t places, const BoxRows& rows) {
  if (places < 1 || places > most_places) {
    return fail(fmt::format("{} has {} places; from 1 to {} are fused", onnx::describe(node), places, most_places));
  }
  if (rows.most > places) {
    return fail(
        fmt::format("{} has {} places, and '{}' may select more boxes", onnx::describe(node), places, tail_.selected));
  }
  if (!tail_.results.empty() && (tail_.places != places || tail_.most != rows.most)) {
    return fail(fmt::format("{} has {} places, and '{}' has {}", onnx::describe(node), places,
                            tail_.results.front().output, tail_.places));
  }
  if (mask_ != nullptr && rows.content != Content::data) {
    return fail(fmt::format("{} has the numbers of boxes, which count those that '{}' selects", onnx::describe(node),
                            mask_->name));
  }
  tail_.places = places;
  tail_.most = rows.most;
  return true;
}

/// Returns `total` if sizes[at] is total - rows for every number of rows up to `most`, and no other size depends on the
/// number of rows, or is another one than `others`.
std::optional<std::int64_t> filled_size(const Shape& sizes, std::size_t at, std::int64_t most,
                                        std::optional<std::int64_t> others) {
  const auto value_at = [&](const Dim& size, std::int64_t rows) {
    return size.evaluate(
        [&](const std::string& name) { return name == rows_symbol ? std::optional(rows) : std::nullopt; });
  };
  const auto total = at < sizes.size() ? value_at(sizes[at], 0) : std::nullopt;
  if (!total || *total < 1 || *total > most_places) return std::nullopt;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i != at && (!sizes[i].is_constant() || sizes[i].value() != others.value_or(sizes[i].value()))) return {};
  }
  for (std::int64_t rows = 0; rows <= std::min(most, *total); ++rows) {
    if (value_at(sizes[at], rows) != *total - rows) return std::nullopt;
  }
  return total;
}

bool TailReader::add_result(onnx::Node& node, const onnx::Value* sizes, std::optional<std::int64_t> places,
                            const onnx::TensorData& fill) {
  const BoxRows rows = *selected_.rows(node.input(0));
  if (!places) {
    return fail(fmt::format("{} does not fill a fixed number of places after the boxes", onnx::describe(node)));
  }
  if (!set_places(node, *places, rows)) return false;
  padding_.insert(sizes);
  tail_.results.push_back({node.output()->name, node.input(0)->name, rows.axis, node.input(0)->shape->size(), fill});
  tail_.nodes.push_back(&node);
  tail_.outputs.push_back(node.output());
  return true;
}

bool TailReader::read_pad(onnx::Node& node) {
  const BoxRows rows = *selected_.rows(node.input(0));
  const onnx::Value* pads = node.input(1);
  const onnx::Value* value = node.input(2);
  const auto type = node.input(0)->type;
  if (node.string_or("mode", "constant") != "constant" || node.input(3) != nullptr || !node.input(0)->shape || !type) {
    return fail(fmt::format("{} repeats boxes, or names axes", onnx::describe(node)));
  }
  const std::size_t rank = node.input(0)->shape->size();
  const auto fill = value == nullptr ? std::optional(onnx::TensorData::scalar_of(*type, 0)) : value->constant();
  if (!fill || fill->element_count() != 1) {
    return fail(fmt::format("{} pads with a value that is not constant", onnx::describe(node)));
  }
  const auto sizes = pads != nullptr && selected_.is_size(pads) ? sizes_by_rows(*pads, rows.most) : std::nullopt;
  const auto places =
      sizes && sizes->size() == 2 * rank ? filled_size(*sizes, rank + rows.axis, rows.most, 0) : std::nullopt;
  return add_result(node, pads, places, *fill);
}

/// Reads a Concat of the boxes and of a constant that fills the places after them.
bool TailReader::read_concat(onnx::Node& node) {
  const BoxRows rows = *selected_.rows(node.input(0));
  const onnx::Value* filled = node.input(1);
  onnx::Node* source = filled == nullptr ? nullptr : filled->producer;
  const auto type = node.input(0)->type;
  const bool is_constant = source != nullptr && source->is("ConstantOfShape");
  const bool is_expanded = source != nullptr && source->is("Expand") && source->input(0) != nullptr &&
                           source->input(0)->constant().has_value();
  if (node.inputs.size() != 2 || (!is_constant && !is_expanded) || !type) {
    return fail(fmt::format("{} joins the boxes with other ones", onnx::describe(node)));
  }
  onnx::TensorData fill = onnx::TensorData::scalar_of(*type, 0);
  if (is_expanded) fill = *source->input(0)->constant();
  if (is_constant && source->attribute("value") != nullptr) fill = *source->attribute("value")->get<onnx::TensorData>();
  const onnx::Value* sizes = source->input(is_constant ? 0 : 1);
  const auto known = sizes != nullptr && selected_.is_size(sizes) ? sizes_by_rows(*sizes, rows.most) : std::nullopt;
  const bool has_rank = known && known->size() == node.input(0)->shape->size() && fill.element_count() == 1;
  const auto places = has_rank ? filled_size(*known, rows.axis, rows.most, std::nullopt) : std::nullopt;
  if (!add_result(node, sizes, places, fill)) return false;
  tail_.nodes.push_back(source);
  return true;
}

/// Finds out whether a threshold of the scores selects the candidates. Otherwise their mask is kept.
bool TailReader::find_threshold() {
  if (mask_ == nullptr) return true;
  const onnx::Value* compressed = before_views(suppression_.input(1));
  const auto source = sources_.find(compressed);
  const onnx::Node* compares = mask_->producer;
  if (source != sources_.end() && compares != nullptr) {
    const bool has_scores_first = compares->is("Greater") || compares->is("GreaterOrEqual");
    const bool has_scores_last = compares->is("Less") || compares->is("LessOrEqual");
    const auto limit = number(compares->input(has_scores_first ? 1 : 0));
    const bool compares_scores = (has_scores_first && compares->input(0) == source->second) ||
                                 (has_scores_last && compares->input(1) == source->second);
    if (compares_scores && limit) {
      const auto given = static_cast<float>(*limit);
      const bool includes_limit = compares->is("GreaterOrEqual") || compares->is("LessOrEqual");
      const float lowest = includes_limit ? given : std::nextafter(given, std::numeric_limits<float>::infinity());
      tail_.score_threshold = std::max(tail_.score_threshold, lowest);
      selecting_.insert(compares);
      return true;
    }
  }
  tail_.mask = mask_->name;
  return true;
}

void TailReader::need_before(const onnx::Value* value, std::unordered_set<const onnx::Node*>& needed) {
  std::vector<const onnx::Value*> waiting{value};
  while (!waiting.empty()) {
    const onnx::Value* next = waiting.back();
    waiting.pop_back();
    if (next == nullptr || next->producer == nullptr) continue;
    const bool selects = sources_.contains(next);
    const BoxRows* rows = candidates_.rows(next);
    const bool is_place = rows != nullptr && rows->content == Content::places;
    if (rows == nullptr && !candidates_.is_size(next)) continue;
    if (!(selects || is_place ? selecting_ : needed).insert(next->producer).second) continue;
    for (const onnx::Value* input : next->producer->inputs) waiting.push_back(input);
  }
}

/// Collects the nodes of the region, the values that they read from outside, and the results.
bool TailReader::collect_region() {
  std::unordered_set<const onnx::Node*> before;
  need_before(suppression_.input(0), before);
  need_before(suppression_.input(1), before);
  for (const onnx::Node* node : selected_nodes_) {
    for (const onnx::Value* input : node->inputs) need_before(input, before);
  }
  std::unordered_set<onnx::Value*> inputs;
  const auto read = [&](onnx::Value* value) {
    if (const auto source = sources_.find(value); source != sources_.end()) value = source->second;
    const bool is_inner = value == nullptr || value->constant() || candidates_.rows(value) != nullptr ||
                          candidates_.is_size(value) || selected_.rows(value) != nullptr || selected_.is_size(value);
    if (!is_inner && inputs.insert(value).second) tail_.inputs.push_back(value);
  };
  read(suppression_.input(0));
  read(suppression_.input(1));
  std::vector<onnx::Node*> results = std::move(tail_.nodes);
  tail_.nodes = {};
  for (onnx::Node* node : suppression_.graph->nodes()) {
    const bool is_before = before.contains(node);
    if (node == &suppression_ || selecting_.contains(node)) tail_.nodes.push_back(node);
    if (!is_before && !selected_nodes_.contains(node)) continue;
    tail_.nodes.push_back(node);
    for (onnx::Value* input : node->inputs) read(input);
    const bool shortens = std::any_of(tail_.shortened.begin(), tail_.shortened.end(),
                                      [&](const auto& pair) { return pair.first == node->output()->name; });
    if (!shortens) (is_before ? tail_.before : tail_.after).push_back(node->output()->name);
  }
  tail_.nodes.insert(tail_.nodes.end(), results.begin(), results.end());
  for (const auto& [value, source] : sources_) tail_.of_all_boxes.emplace_back(value->name, source->name);
  std::sort(tail_.of_all_boxes.begin(), tail_.of_all_boxes.end());
  if (!tail_.mask.empty()) read(suppression_.graph->find_local(tail_.mask));

  // The number of selected boxes may also be a result.
  std::unordered_set<const onnx::Node*> padders;
  for (const onnx::Value* sizes : padding_) {
    for (const onnx::Use& use : sizes->uses) padders.insert(use.node);
  }
  const auto is_used_outside = [&](const onnx::Value& value) {
    return value.is_output() || std::any_of(value.uses.begin(), value.uses.end(), [&](const onnx::Use& use) {
             return !selected_nodes_.contains(use.node) && !padders.contains(use.node);
           });
  };
  const bool gives_count = std::any_of(selected_nodes_.begin(), selected_nodes_.end(), [&](const onnx::Node* node) {
    return selected_.is_size(node->output()) && is_used_outside(*node->output());
  });
  for (onnx::Node* node : tail_.nodes) {
    if (!gives_count || !node->is("Shape") || selected_.rows(node->input(0)) == nullptr) continue;
    const BoxRows rows = *selected_.rows(node->input(0));
    if (rows.most != tail_.most) return fail("the number of boxes before the first ones are taken is a result");
    tail_.shapes.push_back({node->output()->name, node->input(0)->name, rows.axis, node->input(0)->shape->size(), {}});
    tail_.outputs.push_back(node->output());
  }
  return true;
}

/// Adds the nodes that replace a tail.
class TailWriter {
 public:
  TailWriter(onnx::Graph& graph, const SuppressionTail& tail) : graph_(graph), tail_(tail) {}

  void write(const Operator& op) {
    for (const auto& [compressed, all] : tail_.of_all_boxes) copies_.emplace(find(compressed), find(all));
    for (const std::string& output : tail_.before) copy(*find(output)->producer);
    const onnx::Node* node =
        add_operator_node(graph_, op, {boxes(), scores()},
                          {hint("num_detections"), hint("detection_boxes"), hint("detection_scores"),
                           hint("detection_classes"), hint("detection_indices")});
    count_ = add("Reshape", {node->output(ops::CombinedNonMaxSuppression::num_detections), ints({1})}, "count");
    onnx::Value* places = add(
        "Reshape", {node->output(ops::CombinedNonMaxSuppression::detection_indices), ints({tail_.places})}, "place");
    places_ = cast(places, onnx::ElementType::i64);
    copy_selected();
    onnx::Value* is_filled = add("Less", {numbers_of_places(), count_}, "is_filled");
    for (const PaddedResult& result : tail_.results) {
      std::vector<std::int64_t> shape(result.rank, 1);
      shape[result.axis] = tail_.places;
      onnx::Value* condition = result.rank == 1 ? is_filled : add("Reshape", {is_filled, ints(shape)}, "is_filled");
      onnx::TensorData fill = result.fill;
      fill.dims = {};
      replace(result.output, "Where",
              {condition, copies_.at(find(result.rows)), graph_.add_constant(hint("fill"), fill)});
    }
    for (const PaddedResult& shape : tail_.shapes) write_shape(shape);
    graph_.topological_sort();
  }

 private:
  [[nodiscard]] onnx::Value* find(const std::string& name) const { return graph_.find_local(name); }
  [[nodiscard]] std::string hint(std::string_view what) const { return fmt::format("{}/{}", tail_.selected, what); }
  onnx::Value* ints(const std::vector<std::int64_t>& values) {
    return graph_.add_constant(hint("shape"), onnx::TensorData::from_ints(values));
  }
  onnx::Value* add(const char* op_type, std::vector<onnx::Value*> inputs, std::string_view what) {
    return graph_.add_node(op_type, std::move(inputs), {hint(what)})->output();
  }
  onnx::Value* with_axis(const char* op_type, std::vector<onnx::Value*> inputs, std::int64_t axis,
                         std::string_view what) {
    onnx::Value* result = add(op_type, std::move(inputs), what);
    result->producer->attributes.emplace("axis", onnx::NodeAttribute(onnx::AttributeData(axis)));
    return result;
  }
  onnx::Value* cast(onnx::Value* value, onnx::ElementType type) {
    onnx::Value* result = add("Cast", {value}, "cast");
    result->producer->attributes.emplace("to",
                                         onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(type))));
    result->type = type;
    return result;
  }
  onnx::Value* of_copy(onnx::Value* value) const {
    const auto found = copies_.find(value);
    return found == copies_.end() ? value : found->second;
  }

  void copy(const onnx::Node& node) {
    for (const onnx::Value* output : node.outputs) {
      if (output == nullptr) continue;
      onnx::Value* made = graph_.make_value(output->name);
      made->type = output->type;
      copies_.emplace(output, made);
    }
    copy_node(node, graph_, [&](onnx::Value* value) { return of_copy(value); })->name.clear();
  }

  onnx::Value* boxes() {
    onnx::Value* given = of_copy(find(tail_.boxes));
    if (!tail_.is_center) return given;
    // NonMaxSuppression lets no box of negative width or height overlap, and the operator exchanges its corners.
    const onnx::Node* parts = graph_.add_node("Split", {given, ints({2, 2})}, {hint("center"), hint("size")});
    parts->output()->producer->attributes.emplace("axis", onnx::NodeAttribute(onnx::AttributeData(std::int64_t{2})));
    onnx::Value* none = graph_.add_constant(hint("none"), onnx::TensorData::scalar_of(onnx::ElementType::f32, 0));
    return with_axis("Concat", {parts->output(0), add("Max", {parts->output(1), none}, "size")}, 2, "boxes");
  }

  onnx::Value* scores() {
    onnx::Value* given = of_copy(find(tail_.scores));
    if (!tail_.mask.empty()) {
      onnx::Value* none = graph_.add_constant(
          hint("none"), onnx::TensorData::scalar_of(onnx::ElementType::f32, -std::numeric_limits<double>::infinity()));
      given = add("Where", {find(tail_.mask), given, none}, "candidate_scores");
    }
    onnx::Value* rows = add("Transpose", {given}, "scores");
    rows->producer->attributes.emplace("perm",
                                       onnx::NodeAttribute(onnx::AttributeData(std::vector<std::int64_t>{0, 2, 1})));
    return rows;
  }

  /// Copies the nodes after NonMaxSuppression, for the boxes in all places.
  void copy_selected() {
    onnx::Value* selected = find(tail_.selected);
    for (const std::string& output : tail_.after) {
      const onnx::Node& node = *find(output)->producer;
      for (const auto& [shorter, longer] : tail_.shortened) {
        onnx::Value* source = find(longer);
        if (copies_.contains(source)) copies_.emplace(find(shorter), copies_.at(source));
      }
      const bool reads_selected = std::find(node.inputs.begin(), node.inputs.end(), selected) != node.inputs.end();
      if (reads_selected && !copies_.contains(selected)) {
        if (onnx::Value* column = box_column(node)) {
          copies_.emplace(node.output(), column);
          continue;
        }
        onnx::Value* zeros = graph_.add_constant(
            hint("item_and_class"),
            onnx::TensorData::from_numbers(onnx::ElementType::i64, {tail_.places, 2},
                                           std::vector<double>(static_cast<std::size_t>(tail_.places) * 2)));
        copies_.emplace(selected, with_axis("Concat", {zeros, place_column()}, 1, "rows"));
      }
      copy(node);
    }
    for (const auto& [shorter, longer] : tail_.shortened) copies_.emplace(find(shorter), of_copy(find(longer)));
  }

  onnx::Value* place_column() { return add("Reshape", {places_, ints({tail_.places, 1})}, "place"); }

  /// Returns the numbers of the boxes if a node only selects their column from the result of NonMaxSuppression.
  onnx::Value* box_column(const onnx::Node& node) {
    constexpr std::int64_t column = 2;
    if (node.is("Gather")) {
      if (integer(node.input(1)) != column || node.int_or("axis", 0) != 1) return nullptr;
      return node.input(1)->rank() == 0 ? places_ : place_column();
    }
    const bool is_slice = node.is("Slice") && integer(node.input(1)) == column && integer(node.input(3)) == 1 &&
                          (node.input(4) == nullptr || integer(node.input(4)) == 1) &&
                          integer(node.input(2)).value_or(0) > column;
    return is_slice ? place_column() : nullptr;
  }

  onnx::Value* numbers_of_places() {
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < tail_.places; ++i) numbers.push_back(static_cast<double>(i));
    return graph_.add_constant(hint("number"),
                               onnx::TensorData::from_numbers(onnx::ElementType::i32, {tail_.places}, numbers));
  }

  /// Replaces the shape of a tensor with one element for each selected box.
  void write_shape(const PaddedResult& shape) {
    onnx::Node& old = *find(shape.output)->producer;
    onnx::Value* sizes = add("Shape", {copies_.at(find(shape.rows))}, "sizes");
    std::vector<onnx::Value*> parts;
    const auto axis = static_cast<std::int64_t>(shape.axis);
    const auto rank = static_cast<std::int64_t>(shape.rank);
    if (axis > 0) parts.push_back(add("Slice", {sizes, ints({0}), ints({axis})}, "sizes"));
    parts.push_back(cast(count_, onnx::ElementType::i64));
    if (axis + 1 < rank) parts.push_back(add("Slice", {sizes, ints({axis + 1}), ints({rank})}, "sizes"));
    onnx::Value* all = with_axis("Concat", parts, 0, "sizes");
    const std::int64_t begin = old.int_or("start", 0);
    const std::int64_t end = old.int_or("end", rank);
    replace(shape.output, "Slice", {all, ints({begin}), ints({end})});
  }

  void replace(const std::string& output, const char* op_type, std::vector<onnx::Value*> inputs) {
    onnx::Value* old = find(output);
    onnx::Node* node = graph_.add_node(op_type, std::move(inputs), {output});
    graph_.move_output(*old->producer, old->output_index, *node, 0);
  }

  onnx::Graph& graph_;
  const SuppressionTail& tail_;
  std::unordered_map<const onnx::Value*, onnx::Value*> copies_;
  onnx::Value* count_ = nullptr;
  onnx::Value* places_ = nullptr;
};

}  // namespace

std::optional<SuppressionTail> read_tail(const onnx::Model& model, onnx::Node& suppression, std::string& why_not,
                                         std::size_t& matched) {
  TailReader reader(model, suppression);
  auto tail = reader.read();
  why_not = reader.why_not();
  matched = reader.matched();
  return tail;
}

void replace_tail(onnx::Graph& graph, const SuppressionTail& tail, const Operator& op) {
  TailWriter(graph, tail).write(op);
}

}  // namespace graft::passes::suppression
