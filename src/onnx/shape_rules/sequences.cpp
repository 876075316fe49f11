// Shape rules of operators that create or read sequences and optionals of tensors.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "onnx/shape_rules/table.hpp"

namespace graft::onnx::shape_rules {
namespace {

using Kind = Container::Kind;

std::optional<Shape> copied(const Shape* shape) { return shape == nullptr ? std::nullopt : std::optional(*shape); }

void sequence_construct(NodeTypes& t) {
  if (!t.type(0)) return;
  std::optional<Shape> shape = copied(t.shape(0));
  for (std::size_t i = 1; i < t.node().inputs.size(); ++i) shape = either_of(shape, copied(t.shape(i)));
  t.set_container(0, {.kind = Kind::sequence, .type = *t.type(0), .shape = std::move(shape)});
}

void sequence_empty(NodeTypes& t) {
  const std::int64_t type = t.node().int_or("dtype", static_cast<std::int64_t>(ElementType::f32));
  t.set_container(0, {.kind = Kind::sequence, .type = static_cast<ElementType>(type), .shape = {}});
}

void sequence_insert(NodeTypes& t) {
  const Container* before = t.container(0);
  const std::optional<ElementType> type = before != nullptr ? before->type : t.type(1);
  if (!type) return;
  const Node* maker = t.has_input(0) ? t.node().input(0)->producer : nullptr;
  const bool is_first = maker != nullptr && maker->is("SequenceEmpty");
  std::optional<Shape> shape = copied(t.shape(1));
  if (!is_first) shape = either_of(shape, before == nullptr ? std::nullopt : before->shape);
  t.set_container(0, {.kind = Kind::sequence, .type = *type, .shape = std::move(shape)});
}

void same_container(NodeTypes& t) { t.copy(0); }

void sequence_at(NodeTypes& t) {
  const Container* sequence = t.container(0);
  if (sequence == nullptr) return;
  t.set_type(0, sequence->type);
  if (auto shape = shape_of_element(*sequence)) t.set_shape(0, *std::move(shape));
}

void sequence_length(NodeTypes& t) {
  t.set_type(0, ElementType::i64);
  t.set_shape(0, {});
}

/// Returns the common size of the tensors into which SplitToSequence splits its axis of size `whole`, or an unknown
/// size if their sizes may differ.
Dim part_size(const NodeTypes& t, const Dim& whole) {
  if (!t.has_input(1)) return 1;
  const auto sizes = t.ints(1);
  const Shape* shape = t.shape(1);
  if (!sizes || sizes->empty() || shape == nullptr) return unknown_dim();
  const std::int64_t first = sizes->front();
  const bool are_equal = std::all_of(sizes->begin(), sizes->end(), [&](std::int64_t size) { return size == first; });
  if (!shape->empty()) return are_equal ? Dim(first) : unknown_dim();
  const bool divides = whole.is_constant() && first > 0 && whole.value() % first == 0;  // The last part may be shorter.
  return divides ? Dim(first) : unknown_dim();
}

void split_to_sequence(NodeTypes& t) {
  if (!t.type(0)) return;
  std::optional<Shape> shape = copied(t.shape(0));
  if (shape) {
    const std::size_t axis = t.axis(t.node().int_or("axis", 0), shape->size());
    if (t.has_input(1) || t.node().int_or("keepdims", 1) != 0) {
      (*shape)[axis] = part_size(t, (*shape)[axis]);
    } else {
      shape->erase(shape->begin() + static_cast<std::ptrdiff_t>(axis));
    }
  }
  t.set_container(0, {.kind = Kind::sequence, .type = *t.type(0), .shape = std::move(shape)});
}

void concat_from_sequence(NodeTypes& t) {
  const Container* sequence = t.container(0);
  if (sequence == nullptr) return;
  t.set_type(0, sequence->type);
  std::optional<Shape> shape = shape_of_element(*sequence);
  if (!shape) return;
  const bool adds_axis = t.node().int_or("new_axis", 0) != 0;
  const std::size_t axis = t.axis(t.node().int_or("axis", 0), shape->size() + (adds_axis ? 1 : 0));
  if (adds_axis) {
    shape->insert(shape->begin() + static_cast<std::ptrdiff_t>(axis), unknown_dim());
  } else {
    (*shape)[axis] = unknown_dim();
  }
  t.set_shape(0, *std::move(shape));
}

void optional(NodeTypes& t) {
  if (!t.has_input(0) && t.node().attribute("type") == nullptr) {
    t.fail("it has neither an input nor the attribute `type`, and an empty optional needs the attribute");
  }
  if (const Container* held = t.container(0)) {
    t.set_container(0, {.kind = Kind::optional_sequence, .type = held->type, .shape = held->shape});
  } else if (t.type(0)) {
    t.set_container(0, {.kind = Kind::optional, .type = *t.type(0), .shape = copied(t.shape(0))});
  }
}

/// Infers the output of OptionalGetElement. Since opset 18 the input may also be a tensor or a sequence, which is then
/// returned unchanged.
void optional_get_element(NodeTypes& t) {
  const Container* held = t.container(0);
  if (held == nullptr || held->kind == Kind::sequence) {
    t.copy(0);
  } else if (held->kind == Kind::optional_sequence) {
    t.set_container(0, {.kind = Kind::sequence, .type = held->type, .shape = held->shape});
  } else {
    t.set_type(0, held->type);
    if (auto shape = shape_of_element(*held)) t.set_shape(0, *std::move(shape));
  }
}

void optional_has_element(NodeTypes& t) {
  t.set_type(0, ElementType::boolean);
  t.set_shape(0, {});
}

}  // namespace

void add_sequences(Table& table) {
  add(table, sequence_construct, {"SequenceConstruct"});
  add(table, sequence_empty, {"SequenceEmpty"});
  add(table, sequence_insert, {"SequenceInsert"});
  add(table, same_container, {"SequenceErase"});
  add(table, sequence_at, {"SequenceAt"});
  add(table, sequence_length, {"SequenceLength"});
  add(table, split_to_sequence, {"SplitToSequence"});
  add(table, concat_from_sequence, {"ConcatFromSequence"});
  add(table, optional, {"Optional"});
  add(table, optional_get_element, {"OptionalGetElement"});
  add(table, optional_has_element, {"OptionalHasElement"});
}

}  // namespace graft::onnx::shape_rules
