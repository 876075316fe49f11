// Sequences of tensors, which TensorRT does not have. Exporters write them for lists in Python.
//
//   SequenceAt(SequenceConstruct(a, b), 1)        becomes   b
//   SequenceAt(SplitToSequence(x, 4), 1)          becomes   Slice(x, 4, 8)
//   ConcatFromSequence(SequenceConstruct(a, b))   becomes   Concat(a, b)
//   SequenceLength(SequenceConstruct(a, b))       becomes   2
//
// Nothing is computed, so each line holds by definition.
#include <fmt/format.h>

#include <limits>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

constexpr std::string_view as_defined = "by definition: a sequence holds the tensors that it was created from";

Replacement replacement_for(onnx::Node& maker) {
  Replacement result;
  result.together_with = {&maker};
  result.by_definition = std::string(as_defined);
  return result;
}

/// The begin and the end of one part of SplitToSequence.
struct Part {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

std::optional<Part> part_of(Site& site, const onnx::Node& split, std::int64_t position) {
  constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
  const onnx::Value* sizes = split.input(1);
  if (sizes == nullptr) return Part{position, position == -1 ? end : position + 1};
  const auto constant = sizes->constant();
  const auto lengths = constant ? constant->ints() : std::nullopt;
  if (!lengths || lengths->empty())
    return site.no("its sequence is created by a split whose lengths are not a constant");
  if (constant->dims.empty()) {
    if (position < 0) return site.no("its position counts from the end of a sequence of unknown length");
    return Part{position * lengths->front(), (position + 1) * lengths->front()};
  }
  const auto count = static_cast<std::int64_t>(lengths->size());
  const std::int64_t from_front = position < 0 ? position + count : position;
  if (from_front < 0 || from_front >= count) return site.no("its position is outside its sequence");
  Part part;
  for (std::int64_t i = 0; i < from_front; ++i) part.from += (*lengths)[static_cast<std::size_t>(i)];
  part.to = part.from + (*lengths)[static_cast<std::size_t>(from_front)];
  return part;
}

}  // namespace

std::optional<Replacement> lower_sequence_at(Site& site) {
  const auto given = site.ints(1);
  onnx::Node* maker = site.producer(0);
  if (!given || given->size() != 1 || maker == nullptr)
    return site.no("its position is not a constant, or the node that creates its sequence is unknown");
  const std::int64_t position = given->front();
  if (maker->is("SequenceConstruct")) {
    const auto count = static_cast<std::int64_t>(maker->inputs.size());
    const std::int64_t from_front = position < 0 ? position + count : position;
    if (from_front < 0 || from_front >= count) return site.no("its position is outside its sequence");
    Replacement result = replacement_for(*maker);
    result.reads.emplace("item", maker->input(static_cast<std::size_t>(from_front)));
    result.line("y0 = Identity(item)");
    result.summary = fmt::format("'{}'", maker->input(static_cast<std::size_t>(from_front))->name);
    return result;
  }
  if (!maker->is("SplitToSequence"))
    return site.no("its sequence is not created by SequenceConstruct or SplitToSequence");
  const auto part = part_of(site, *maker, position);
  if (!part) return std::nullopt;
  const std::int64_t axis = maker->int_or("axis", 0);
  Replacement result = replacement_for(*maker);
  result.reads.emplace("whole", maker->input(0));
  if (maker->input(1) == nullptr && maker->int_or("keepdims", 1) == 0) {
    const std::string which = result.integer("which", position);
    result.line(fmt::format("y0 = Gather<axis={}>(whole, {})", axis, which));
    result.summary = "Gather";
    return result;
  }
  const std::string from = result.ints("from", {part->from});
  const std::string to = result.ints("to", {part->to});
  const std::string along = result.ints("along", {axis});
  result.line(fmt::format("y0 = Slice(whole, {}, {}, {})", from, to, along));
  result.summary = "Slice";
  return result;
}

std::optional<Replacement> lower_concat_from_sequence(Site& site) {
  onnx::Node* maker = site.producer(0);
  if (maker == nullptr) return site.no("the node that creates its sequence is unknown");
  const std::int64_t axis = site.node().int_or("axis", 0);
  const bool is_new_axis = site.node().int_or("new_axis", 0) != 0;
  if (maker->is("SplitToSequence")) {
    const bool keeps_axis = maker->input(1) != nullptr || maker->int_or("keepdims", 1) != 0;
    const bool is_undone = keeps_axis ? !is_new_axis : is_new_axis;
    if (maker->int_or("axis", 0) != axis || !is_undone)
      return site.no("its axis or its new_axis does not undo the split of its sequence");
    Replacement result = replacement_for(*maker);
    result.reads.emplace("whole", maker->input(0));
    result.line("y0 = Identity(whole)");
    result.summary = fmt::format("'{}'", maker->input(0)->name);
    return result;
  }
  if (!maker->is("SequenceConstruct"))
    return site.no("its sequence is not created by SequenceConstruct or SplitToSequence");
  Replacement result = replacement_for(*maker);
  const std::string along = result.ints("along", {axis});
  std::string items;
  for (std::size_t i = 0; i < maker->inputs.size(); ++i) {
    std::string item = fmt::format("item{}", i);
    result.reads.emplace(item, maker->input(i));
    if (is_new_axis) {
      result.line(fmt::format("row{} = Unsqueeze({}, {})", i, item, along));
      item = fmt::format("row{}", i);
    }
    items += (items.empty() ? "" : ", ") + item;
  }
  result.line(fmt::format("y0 = Concat<axis={}>({})", axis, items));
  result.summary = fmt::format("Concat of {} tensors", maker->inputs.size());
  return result;
}

std::optional<Replacement> lower_sequence_length(Site& site) {
  onnx::Node* maker = site.producer(0);
  if (maker == nullptr || !maker->is("SequenceConstruct"))
    return site.no("its sequence is not created by SequenceConstruct");
  Replacement result = replacement_for(*maker);
  const auto count = static_cast<std::int64_t>(maker->inputs.size());
  result.line(fmt::format("y0 = Identity({})", result.integer("count", count)));
  result.summary = fmt::format("the constant {}", count);
  return result;
}

}  // namespace graft::passes
