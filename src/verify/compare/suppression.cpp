// Finds the last suppressions by a walk over the main graph, and extracts what follows them as a model.
#include "verify/compare/suppression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graft/error.hpp"
#include "onnx/extract.hpp"
#include "onnx/shape_inference.hpp"
#include "verify/compare/ends.hpp"
#include "verify/compare/output_figures.hpp"

namespace graft::verify {
namespace {

bool is_suppression(const onnx::Node& node) {
  const auto is_named = [](const onnx::Node& n) {
    return n.op_type.find("NonMaxSuppression") != std::string::npos || n.op_type.find("NMS") != std::string::npos;
  };
  bool found = is_named(node);
  for (const onnx::Graph* inner : node.subgraphs()) {
    inner->for_each_node([&](const onnx::Node& n) { found = found || is_suppression(n); });
  }
  return found;
}

using NodeSet = std::unordered_set<const onnx::Node*>;

/// Returns the suppressions of the main graph from which no other suppression is computed.
std::vector<const onnx::Node*> last_suppressions(const std::vector<onnx::Node*>& nodes) {
  NodeSet leads_to_one;  // Nodes from whose results a suppression is computed.
  std::vector<const onnx::Node*> last;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const bool suppresses = is_suppression(**node);
    const bool leads = leads_to_one.contains(*node);
    if (suppresses && !leads) last.push_back(*node);
    if (!suppresses && !leads) continue;
    for (const onnx::Value* value : values_read_by(**node)) {
      if (value->producer != nullptr) leads_to_one.insert(value->producer);
    }
  }
  std::reverse(last.begin(), last.end());
  return last;
}

/// Returns the nodes that depend on `first`, and these nodes.
NodeSet nodes_after(const std::vector<onnx::Node*>& nodes, const std::vector<const onnx::Node*>& first) {
  NodeSet after(first.begin(), first.end());
  for (const onnx::Node* node : nodes) {
    const std::vector<const onnx::Value*> read = values_read_by(*node);
    if (std::any_of(read.begin(), read.end(), [&](const onnx::Value* value) {
          return value->producer != nullptr && after.contains(value->producer);
        })) {
      after.insert(node);
    }
  }
  return after;
}

/// Returns the values that constants alone determine.
std::unordered_set<const onnx::Value*> fixed_values(const std::vector<onnx::Node*>& nodes) {
  std::unordered_set<const onnx::Value*> fixed;
  for (const onnx::Node* node : nodes) {
    const std::vector<const onnx::Value*> read = values_read_by(*node);
    const bool is_fixed = std::all_of(read.begin(), read.end(), [&](const onnx::Value* value) {
      return value->constant().has_value() || fixed.contains(value);
    });
    if (is_fixed) fixed.insert(node->outputs.begin(), node->outputs.end());
  }
  return fixed;
}

/// A box by its two corners, in any order.
struct Box {
  double x1, y1, x2, y2;
  [[nodiscard]] double area() const { return (x2 - x1) * (y2 - y1); }
};

Box box_at(const std::vector<double>& numbers, std::size_t index) {
  const double* n = &numbers[4 * index];
  return {std::min(n[0], n[2]), std::min(n[1], n[3]), std::max(n[0], n[2]), std::max(n[1], n[3])};
}

/// Returns the intersection over the union. Two equal boxes without an area overlap completely.
double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  if (a.x1 == b.x1 && a.y1 == b.y1 && a.x2 == b.x2 && a.y2 == b.y2) return 1;
  if (width <= 0 || height <= 0) return 0;
  const double shared = width * height;
  return shared / (a.area() + b.area() - shared);
}

/// The outputs of one model that contain its detections.
struct Detections {
  std::vector<double> boxes;
  std::vector<double> scores;
  std::vector<std::int64_t> classes;
  std::vector<std::int64_t> dims;  ///< The dimensions of the scores.

  [[nodiscard]] std::size_t per_item() const {
    return dims.empty() ? 0 : static_cast<std::size_t>(std::max<std::int64_t>(dims.back(), 1));
  }
};

/// Returns the detections, or nothing unless exactly one output has the form of boxes, of scores and of classes.
std::optional<Detections> detections_in(const OutputNames& outputs, const runtime::TensorMap& tensors) {
  const onnx::TensorData* boxes = nullptr;
  for (const std::string& name : outputs) {
    const onnx::TensorData& tensor = tensors.at(name);
    if (!is_floating_point(tensor.type) || tensor.dims.size() < 2 || tensor.dims.back() != 4) continue;
    if (boxes != nullptr) return std::nullopt;
    boxes = &tensor;
  }
  if (boxes == nullptr) return std::nullopt;
  const std::vector<std::int64_t> dims(boxes->dims.begin(), boxes->dims.end() - 1);
  const onnx::TensorData* scores = nullptr;
  const onnx::TensorData* classes = nullptr;
  for (const std::string& name : outputs) {
    const onnx::TensorData& tensor = tensors.at(name);
    if (tensor.dims != dims || &tensor == boxes) continue;
    const onnx::TensorData*& place = is_floating_point(tensor.type) ? scores : classes;
    if (place != nullptr) return std::nullopt;
    place = &tensor;
  }
  if (scores == nullptr || classes == nullptr) return std::nullopt;
  auto box_numbers = boxes->numbers();
  auto score_numbers = scores->numbers();
  auto class_numbers = classes->ints();
  if (!box_numbers || !score_numbers || !class_numbers) return std::nullopt;
  return Detections{.boxes = std::move(*box_numbers),
                    .scores = std::move(*score_numbers),
                    .classes = std::move(*class_numbers),
                    .dims = dims};
}

/// Matches the detections of one item: those of the reference from `begin` on, each with the candidate's detection of
/// the same class that overlaps it most.
class ItemMatcher {
 public:
  ItemMatcher(const Detections& expected, const Detections& found, MatchedDetections& result)
      : expected_(expected), found_(found), result_(result) {}

  void match(std::size_t item) {
    constexpr double least_overlap = 0.9;
    const std::size_t begin = item * expected_.per_item();
    const std::size_t other = item * found_.per_item();
    std::set<std::size_t> taken;
    for (std::size_t i = begin; i < begin + expected_.per_item(); ++i) {
      if (!(expected_.scores[i] > 0)) continue;
      ++result_.expected;
      if (result_.expected == 1 || expected_.scores[i] < result_.lowest_score) {
        result_.lowest_score = expected_.scores[i];
      }
      const Box box = box_at(expected_.boxes, i);
      std::optional<std::size_t> best;
      double most = least_overlap;
      for (std::size_t j = other; j < other + found_.per_item(); ++j) {
        if (!(found_.scores[j] > 0) || found_.classes[j] != expected_.classes[i] || taken.contains(j)) continue;
        const double shared = overlap(box, box_at(found_.boxes, j));
        if (shared < most) continue;
        most = shared;
        best = j;
      }
      if (!best) {
        result_.largest_unmatched_score = std::max(result_.largest_unmatched_score, expected_.scores[i]);
        continue;
      }
      taken.insert(*best);
      add_match(i, *best);
    }
    for (std::size_t j = other; j < other + found_.per_item(); ++j) {
      if (!(found_.scores[j] > 0)) continue;
      ++result_.found;
      if (!taken.contains(j)) {
        result_.largest_unmatched_score = std::max(result_.largest_unmatched_score, found_.scores[j]);
      }
    }
  }

 private:
  void add_match(std::size_t i, std::size_t j) {
    ++result_.matched;
    for (std::size_t corner = 0; corner < 4; ++corner) {
      result_.largest_box_difference = std::max(
          result_.largest_box_difference, std::abs(expected_.boxes[4 * i + corner] - found_.boxes[4 * j + corner]));
    }
    result_.largest_score_difference =
        std::max(result_.largest_score_difference, std::abs(expected_.scores[i] - found_.scores[j]));
  }

  const Detections& expected_;
  const Detections& found_;
  MatchedDetections& result_;
};

}  // namespace

std::optional<SuppressionTail> SuppressionTail::find(const onnx::Model& model) {
  if (last_suppressions(model.graph().nodes()).empty()) return std::nullopt;
  onnx::Model copy = model.clone();
  onnx::infer_shapes(copy);
  const std::vector<onnx::Node*> nodes = copy.graph().nodes();
  const std::vector<const onnx::Node*> first = last_suppressions(nodes);
  const NodeSet after = nodes_after(nodes, first);
  const std::unordered_set<const onnx::Value*> fixed = fixed_values(nodes);
  SuppressionTail tail;
  std::vector<const onnx::Value*> outputs;
  for (const onnx::Value* output : copy.graph().outputs()) {
    if (output->producer == nullptr || !after.contains(output->producer)) continue;
    if (tail.outputs_.insert(output->name).second) outputs.push_back(output);
  }
  std::vector<const onnx::Value*> inputs;
  for (const onnx::Node* node : nodes) {
    if (!after.contains(node)) continue;
    for (const onnx::Value* value : values_read_by(*node)) {
      const bool is_inner = value->producer != nullptr && after.contains(value->producer);
      if (is_inner || value->constant() || fixed.contains(value)) continue;
      if (std::find(inputs.begin(), inputs.end(), value) != inputs.end()) continue;
      inputs.push_back(value);
      tail.inputs_.push_back(value->name);
    }
  }
  if (outputs.empty() || inputs.empty()) return std::nullopt;
  try {
    tail.model_ = extract(copy, inputs, outputs);
  } catch (const Error&) {  // A part of an unknown type, or with a loop around it, cannot run on its own.
    return std::nullopt;
  }
  tail.description_ = describe(*first.front());
  return tail;
}

bool SuppressionTail::has_inputs(const onnx::Model& other) const {
  return std::all_of(inputs_.begin(), inputs_.end(), [&](const std::string& name) {
    const onnx::Value* value = other.graph().find_local(name);
    return value != nullptr && (value->producer != nullptr || value->is_input);
  });
}

runtime::TensorMap SuppressionTail::run(const runtime::Engine& engine, const runtime::TensorMap& tensors) {
  if (!compiled_) compiled_ = engine.compile(model_);
  runtime::TensorMap inputs;
  for (const onnx::Value* input : model_.graph().inputs()) {
    inputs.emplace(input->name, in_type(tensors.at(input->name), input->type));
  }
  return compiled_->run(inputs);
}

report::OutputFigures SuppressionTail::figures(const std::string& name, const runtime::TensorMap& expected,
                                               const runtime::TensorMap& found) const {
  std::optional<report::OutputFigures> worst;
  std::string input;
  for (const std::string& each : inputs_) {
    report::OutputFigures figures = figures_of(name, expected.at(each), found.at(each));
    if (!figures.is_real) continue;
    const bool is_worse = !worst || (figures.not_finite != 0 && worst->not_finite == 0) ||
                          !figures.incomparable.empty() || decibels_of(figures) < decibels_of(*worst);
    if (!is_worse) continue;
    worst = std::move(figures);
    input = each;
  }
  if (!worst) return figures_of(name, expected.at(name), found.at(name));
  worst->judged_by = fmt::format("'{}', an input of {}", input, description_);
  return *worst;
}

std::string MatchedDetections::text() const {
  std::string text = fmt::format("{} of {} detections match", matched, std::max(expected, found));
  if (matched != 0) {
    text += fmt::format(", with a largest box difference of {:.2g} and a largest score difference of {:.2g}",
                        largest_box_difference, largest_score_difference);
  }
  if (matched < std::max(expected, found)) {
    text +=
        fmt::format("; the largest score without a match is {:.3g}, and the lowest score of the reference is {:.3g}",
                    largest_unmatched_score, lowest_score);
  }
  return text;
}

std::optional<MatchedDetections> match_detections(const OutputNames& outputs, const runtime::TensorMap& expected,
                                                  const runtime::TensorMap& found) {
  for (const std::string& name : outputs) {
    if (!expected.contains(name) || !found.contains(name)) return std::nullopt;
  }
  const auto left = detections_in(outputs, expected);
  const auto right = detections_in(outputs, found);
  if (!left || !right || left->dims.size() != right->dims.size() || left->dims.empty()) return std::nullopt;
  const std::size_t items = left->scores.size() / left->per_item();
  if (items != right->scores.size() / right->per_item()) return std::nullopt;
  MatchedDetections result;
  ItemMatcher matcher(*left, *right, result);
  for (std::size_t item = 0; item < items; ++item) matcher.match(item);
  return result;
}

}  // namespace graft::verify
