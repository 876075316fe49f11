// Sequences of tensors and optionals, which TensorRT does not have. Exporters write them for lists and None in Python.
//
//   SequenceAt(SequenceConstruct(a, b), 1)                          becomes   b
//   SequenceAt(SplitToSequence(x, 4), 1)                            becomes   Slice(x, 4, 8)
//   ConcatFromSequence(SequenceInsert(SequenceConstruct(a), b, 0))  becomes   Concat(b, a)
//   SequenceLength(SequenceErase(SequenceConstruct(a, b)))          becomes   1
//   OptionalHasElement(Optional(a))                                 becomes   true
//   OptionalGetElement(Optional(a))                                 becomes   a
//
// Nothing is computed, so each line holds by definition.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <unordered_set>

#include "graft/error.hpp"
#include "onnx/known_sizes.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/pipeline.hpp"

namespace graft::passes {
namespace {

constexpr std::string_view as_defined = "by definition: a sequence holds the tensors that it was created from";

using Part = SequenceFacts::Part;

/// A tensor of a sequence: a whole tensor of the graph, or a range of one along the axis of a SplitToSequence.
struct Item {
  onnx::Value* tensor = nullptr;
  const onnx::Node* split = nullptr;  ///< The SplitToSequence; null for a whole tensor.
  Part part = {};
};

/// Returns a replacement that has no nodes yet, but removes nodes that compute a sequence: `maker`, which computes it,
/// and the earlier nodes of this graph from whose sequences it is computed. Nodes that an earlier replacement removes
/// already are left out.
Replacement replacement_for(Site& site, onnx::Node* maker) {
  Replacement result;
  std::unordered_set<const onnx::Node*>& replaced = site.shapes().sequences().replaced;
  while (maker != nullptr && maker->graph == site.node().graph && replaced.insert(maker).second) {
    result.together_with.push_back(maker);
    const bool reads_sequence = maker->is("SequenceInsert") || maker->is("SequenceErase") || maker->is("Identity");
    maker = reads_sequence && maker->input(0) != nullptr ? maker->input(0)->producer : nullptr;
  }
  std::reverse(result.together_with.begin(), result.together_with.end());
  result.by_definition = std::string(as_defined);
  return result;
}

/// Reports that `position` lies outside a sequence of `length` tensors: throws Error or, if the node is in a body,
/// which may never run, stores the reason with site.no() and returns std::nullopt.
std::nullopt_t outside(Site& site, const onnx::Node& node, std::int64_t position, std::size_t length) {
  std::string what = fmt::format("position {} is outside its sequence, which has {} {}", position, length,
                                 length == 1 ? "tensor" : "tensors");
  if (node.graph->parent() == nullptr) throw Error(fmt::format("{}: {}", describe(node), what));
  return site.no(std::move(what));
}

/// Returns `position`, which may be negative to count from the end of a sequence of `length` tensors, counted from the
/// front. Returns nothing if the result is not less than `count` or is negative.
std::optional<std::size_t> from_front(std::int64_t position, std::size_t count, std::size_t length) {
  const std::int64_t front = position < 0 ? position + static_cast<std::int64_t>(length) : position;
  if (front < 0 || front >= static_cast<std::int64_t>(count)) return std::nullopt;
  return static_cast<std::size_t>(front);
}

/// Returns whether SplitToSequence removes the axis along which it splits.
bool removes_axis(const onnx::Node& split) { return split.input(1) == nullptr && split.int_or("keepdims", 1) == 0; }

/// Returns the lengths of all tensors of a SplitToSequence along the split axis, or nothing if they are not known. Does
/// not call site.no().
std::optional<std::vector<std::int64_t>> lengths_of(Site& site, const onnx::Node& split) {
  const onnx::Value* sizes = split.input(1);
  const auto constant = sizes == nullptr ? std::nullopt : sizes->constant();
  auto lengths = constant ? constant->ints() : std::nullopt;
  if (sizes != nullptr && (!lengths || lengths->empty())) return std::nullopt;
  if (sizes != nullptr && !constant->dims.empty()) return lengths;
  const std::int64_t each = lengths ? lengths->front() : 1;
  const onnx::Value* whole = split.input(0);
  const Shape* shape = whole == nullptr ? nullptr : site.shapes().of(*whole);
  const auto size = shape == nullptr ? std::nullopt : onnx::known_size(*shape, split.int_or("axis", 0));
  constexpr std::int64_t most_parts = 1 << 16;
  if (!size || each <= 0 || *size / each > most_parts) return std::nullopt;
  std::vector<std::int64_t> result(static_cast<std::size_t>(*size / each), each);
  if (*size % each != 0) result.push_back(*size % each);
  return result;
}

/// Returns the range of each tensor of a SplitToSequence. Returns nothing, and stores the reason with site.no(), if
/// they are not known. Throws Error if the lengths do not add up to the size of the axis, unless the node is in a body,
/// which may never run.
std::optional<std::vector<Part>> compute_parts(Site& site, const onnx::Node& split) {
  const auto lengths = lengths_of(site, split);
  if (!lengths) return site.no("its sequence is created by a split into parts whose number or sizes are not known");
  std::vector<Part> parts;
  std::int64_t from = 0;
  for (const std::int64_t length : *lengths) {
    std::int64_t to = 0;
    if (length < 0 || __builtin_add_overflow(from, length, &to)) {
      return site.no("its sequence is created by a split whose lengths are negative or too large");
    }
    parts.push_back({from, to});
    from = to;
  }
  const onnx::Value* whole = split.input(0);
  const Shape* shape = whole == nullptr ? nullptr : site.shapes().of(*whole);
  const std::int64_t axis = split.int_or("axis", 0);
  const auto size = shape == nullptr ? std::nullopt : onnx::known_size(*shape, axis);
  if (!size || *size == from) return parts;
  std::string what = fmt::format("the lengths of its parts add up to {}, and axis {} of '{}' has the size {}", from,
                                 axis, whole->name, *size);
  if (split.graph->parent() == nullptr) throw Error(fmt::format("{}: {}", describe(split), what));
  return site.no(fmt::format("its sequence is created by {}: {}", describe(split), what));
}

/// Returns the result of compute_parts() from the cache, or null, after storing the reason with site.no(), if the
/// ranges are not known.
const std::vector<Part>* parts_of(Site& site, const onnx::Node& split) {
  auto& known = site.shapes().sequences().parts;
  auto found = known.find(&split);
  if (found == known.end()) found = known.emplace(&split, compute_parts(site, split)).first;
  if (found->second) return &*found->second;
  static_cast<void>(compute_parts(site, split));  // stores the reason at this site
  return nullptr;
}

/// Returns the position, counted from the front, at which a SequenceInsert or SequenceErase changes a sequence of
/// `length` tensors. Returns nothing, and stores the reason with site.no(), if it is not a constant.
std::optional<std::size_t> position_of(Site& site, const onnx::Node& node, std::int64_t length) {
  const bool inserts = node.is("SequenceInsert");
  const onnx::Value* place = node.input(inserts ? 2 : 1);
  const std::int64_t count = length + (inserts ? 1 : 0);
  std::int64_t position = count - 1;
  if (place != nullptr) {
    const auto given = onnx::constant_ints(place);
    if (!given || given->size() != 1) {
      return site.no(fmt::format("the position '{}' at which {} {} a tensor is not a constant", place->name,
                                 describe(node), inserts ? "inserts" : "erases"));
    }
    position = given->front();
  }
  const auto front = from_front(position, static_cast<std::size_t>(count), static_cast<std::size_t>(length));
  return front ? front : outside(site, node, position, static_cast<std::size_t>(length));
}

/// Returns the number of tensors of a sequence that SequenceConstruct, SequenceEmpty or SplitToSequence creates.
/// Returns nothing, and stores the reason with site.no(), if the number is not known or another node creates the
/// sequence.
std::optional<std::int64_t> count_created(Site& site, const onnx::Value& sequence) {
  const onnx::Node* maker = sequence.producer;
  if (maker == nullptr) {
    return site.no(fmt::format("its sequence '{}' is an input of {}", sequence.name,
                               sequence.graph->parent() == nullptr ? "the network" : "the body around it"));
  }
  if (maker->is("SequenceConstruct")) return static_cast<std::int64_t>(maker->inputs.size());
  if (maker->is("SequenceEmpty")) return 0;
  if (maker->is("SplitToSequence")) {
    const std::vector<Part>* parts = parts_of(site, *maker);
    return parts == nullptr ? std::nullopt : std::optional(static_cast<std::int64_t>(parts->size()));
  }
  return site.no(fmt::format("its sequence '{}' is a result of {}", sequence.name, describe(*maker)));
}

bool changes_sequence(const onnx::Node& node) { return node.is("SequenceInsert") || node.is("SequenceErase"); }

/// Returns the number of tensors of a sequence. Returns nothing, and stores the reason with site.no(), if it is not
/// known.
std::optional<std::int64_t> length_of(Site& site, const onnx::Value* sequence) {
  auto& known = site.shapes().sequences().lengths;
  std::vector<const onnx::Value*> waiting;
  for (;;) {
    if (sequence == nullptr) return site.no("its sequence is absent");
    if (known.contains(sequence)) break;
    const onnx::Node* maker = sequence->producer;
    if (maker == nullptr || !(changes_sequence(*maker) || maker->is("Identity"))) {
      const auto count = count_created(site, *sequence);
      known[sequence] =
          count ? SequenceFacts::Length{.count = *count} : SequenceFacts::Length{.why_not = site.why_not()};
      break;
    }
    waiting.push_back(sequence);
    sequence = maker->input(0);
  }
  SequenceFacts::Length length = known.at(sequence);
  for (; !waiting.empty(); waiting.pop_back()) {
    const onnx::Node& maker = *waiting.back()->producer;
    if (length.why_not.empty() && changes_sequence(maker)) {
      if (position_of(site, maker, length.count)) {
        length.count += maker.is("SequenceInsert") ? 1 : -1;
      } else {
        length.why_not = site.why_not();
      }
    }
    known[waiting.back()] = length;
  }
  if (!length.why_not.empty()) return site.no(length.why_not);
  return length.count;
}

/// Returns the tensor at `index` of a sequence. length_of() must have returned a number above `index` for it.
Item item_of(Site& site, const onnx::Value* sequence, std::size_t index) {
  for (;; sequence = sequence->producer->input(0)) {
    onnx::Node& maker = *sequence->producer;
    if (maker.is("SequenceConstruct")) return {.tensor = maker.inputs[index]};
    if (maker.is("SplitToSequence")) return {maker.input(0), &maker, parts_of(site, maker)->at(index)};
    if (!changes_sequence(maker)) continue;
    const std::size_t at = *position_of(site, maker, *length_of(site, maker.input(0)));
    if (maker.is("SequenceErase")) {
      index += index >= at ? 1 : 0;
    } else if (index == at) {
      return {.tensor = maker.input(1)};
    } else {
      index -= index > at ? 1 : 0;
    }
  }
}

/// Returns all tensors of a sequence in order. Returns nothing, and stores the reason with site.no(), if their number
/// is not known.
std::optional<std::deque<Item>> items_of(Site& site, const onnx::Value* sequence) {
  if (!length_of(site, sequence)) return std::nullopt;
  std::vector<const onnx::Node*> changes;
  while (changes_sequence(*sequence->producer) || sequence->producer->is("Identity")) {
    if (changes_sequence(*sequence->producer)) changes.push_back(sequence->producer);
    sequence = sequence->producer->input(0);
  }
  std::deque<Item> items;
  const onnx::Node& first = *sequence->producer;
  if (first.is("SequenceConstruct")) {
    for (onnx::Value* tensor : first.inputs) items.push_back({.tensor = tensor});
  } else if (first.is("SplitToSequence")) {
    for (const Part& part : *parts_of(site, first)) items.push_back({first.input(0), &first, part});
  }
  for (; !changes.empty(); changes.pop_back()) {
    const onnx::Node& node = *changes.back();
    const std::size_t at = *position_of(site, node, static_cast<std::int64_t>(items.size()));
    const auto place = items.begin() + static_cast<std::ptrdiff_t>(at);
    if (node.is("SequenceInsert")) {
      items.insert(place, {.tensor = node.input(1)});
    } else {
      items.erase(place);
    }
  }
  return items;
}

/// Adds the nodes that compute a tensor of a sequence, with names that end in `index`, and returns its name.
std::string add_item(Replacement& result, const Item& item, std::size_t index) {
  std::string name = fmt::format("item{}", index);
  result.reads.emplace(name, item.tensor);
  if (item.split == nullptr) return name;
  const std::int64_t axis = item.split->int_or("axis", 0);
  std::string part = fmt::format("part{}", index);
  if (removes_axis(*item.split)) {
    const std::string which = result.integer(fmt::format("which{}", index), item.part.from);
    result.line(fmt::format("{} = Gather<axis={}>({}, {})", part, axis, name, which));
    return part;
  }
  const std::string from = result.ints(fmt::format("from{}", index), {item.part.from});
  const std::string to = result.ints(fmt::format("to{}", index), {item.part.to});
  const std::string along = result.ints(fmt::format("along{}", index), {axis});
  result.line(fmt::format("{} = Slice({}, {}, {}, {})", part, name, from, to, along));
  return part;
}

/// Returns the tensor at `position` of a SplitToSequence whose number of tensors is not known. A negative position is
/// accepted only if the split has no second input, so that each tensor has length 1. Returns nothing, and stores the
/// reason with site.no(), if the range of the tensor cannot be computed.
std::optional<Item> item_of_open_split(Site& site, const onnx::Node& split, std::int64_t position) {
  constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
  if (split.input(1) == nullptr) {
    return Item{split.input(0), &split, {position, position == -1 ? end : position + 1}};
  }
  const auto each = onnx::constant_ints(split.input(1));
  if (!each || each->size() != 1) return site.no("its sequence is created by a split whose lengths are not a constant");
  if (position < 0)
    return site.no("its position counts from the end of a sequence whose length is unknown or too large");
  Part part;
  if (each->front() < 1 || __builtin_mul_overflow(position, each->front(), &part.from) ||
      __builtin_add_overflow(part.from, each->front(), &part.to)) {
    return site.no("its sequence is created by a split whose lengths are not positive or too large");
  }
  return Item{split.input(0), &split, part};
}

/// The input of OptionalHasElement or OptionalGetElement, as far as it is known before the network runs.
struct Optional {
  onnx::Value* element = nullptr;  ///< A tensor or a sequence; null if the optional is empty or unknown.
  bool is_empty = false;           ///< Whether the optional is known to have no element.
};

/// Follows the input of OptionalHasElement or OptionalGetElement to the element of the optional.
Optional find_element(const onnx::Node& node) {
  onnx::Value* value = node.input(0);
  if (value == nullptr) return {.is_empty = true};
  while (value->producer != nullptr && value->producer->is("Identity")) value = value->producer->input(0);
  const bool is_sequence = value->container && value->container->kind == onnx::Container::Kind::sequence;
  if (value->type || is_sequence) return {.element = value};
  if (value->producer == nullptr || !value->producer->is("Optional")) return {};
  onnx::Value* element = value->producer->input(0);
  return {.element = element, .is_empty = element == nullptr};
}

std::nullopt_t no_element(Site& site) {
  return site.no(fmt::format("whether the optional '{}' has an element is not known before the network runs",
                             site.node().input(0)->name));
}

}  // namespace

std::optional<Replacement> lower_optional_has_element(Site& site) {
  const Optional found = find_element(site.node());
  if (found.element == nullptr && !found.is_empty) return no_element(site);
  Replacement result;
  const double has_element = found.is_empty ? 0 : 1;
  result.constant("has_element", onnx::TensorData::from_numbers(onnx::ElementType::boolean, {}, {has_element}));
  result.line("y0 = Identity(has_element)");
  result.summary = fmt::format("the constant {}", found.is_empty ? "false" : "true");
  result.by_definition = "by definition: the node tests whether there is an element, which is known";
  return result;
}

std::optional<Replacement> lower_optional_get_element(Site& site) {
  const Optional found = find_element(site.node());
  if (found.is_empty) return site.no("its optional is known to have no element");
  if (found.element == nullptr) return no_element(site);
  Replacement result;
  result.edit = [element = found.element](onnx::Node& node) {
    onnx::Graph& graph = *node.graph;
    graph.replace_all_uses(*node.output(), *element);
    graph.remove_node(node);
  };
  result.summary = fmt::format("'{}'", found.element->name);
  result.reason = "TensorRT does not support optionals";
  result.by_definition = "by definition: it is the element of the optional";
  return result;
}

std::optional<Replacement> lower_sequence_at(Site& site) {
  const auto given = site.ints(1);
  if (!given || given->size() != 1) return site.no("its position is not a constant");
  const std::int64_t position = given->front();
  const onnx::Value* sequence = site.node().input(0);
  onnx::Node* maker = sequence == nullptr ? nullptr : sequence->producer;
  Item item;
  if (site.producer(0) != nullptr && maker->is("SplitToSequence") && !lengths_of(site, *maker)) {
    const auto found = item_of_open_split(site, *maker, position);
    if (!found) return std::nullopt;
    item = *found;
  } else {
    const auto length = length_of(site, sequence);
    if (!length) return std::nullopt;
    const auto count = static_cast<std::size_t>(*length);
    const auto front = from_front(position, count, count);
    if (!front) return outside(site, site.node(), position, count);
    item = item_of(site, sequence, *front);
  }
  Replacement result = replacement_for(site, maker);
  const std::string name = add_item(result, item, 0);
  result.line(fmt::format("y0 = Identity({})", name));
  result.summary = item.split == nullptr       ? fmt::format("'{}'", item.tensor->name)
                   : removes_axis(*item.split) ? "Gather"
                                               : "Slice";
  return result;
}

std::optional<Replacement> lower_concat_from_sequence(Site& site) {
  const std::int64_t axis = site.node().int_or("axis", 0);
  const bool is_new_axis = site.node().int_or("new_axis", 0) != 0;
  onnx::Node* maker = site.producer(0);
  if (maker != nullptr && maker->is("SplitToSequence") && maker->int_or("axis", 0) == axis &&
      removes_axis(*maker) == is_new_axis) {
    if (lengths_of(site, *maker) && parts_of(site, *maker) == nullptr) return std::nullopt;
    Replacement result = replacement_for(site, maker);
    result.reads.emplace("whole", maker->input(0));
    result.line("y0 = Identity(whole)");
    result.summary = fmt::format("'{}'", maker->input(0)->name);
    return result;
  }
  const onnx::Value* sequence = site.node().input(0);
  const auto items = items_of(site, sequence);
  if (!items) return std::nullopt;
  if (items->empty()) return site.no("its sequence has no tensors");
  const auto parts =
      std::count_if(items->begin(), items->end(), [](const Item& item) { return item.split != nullptr; });
  const std::int64_t nodes = parts + (is_new_axis ? static_cast<std::int64_t>(items->size()) : 0);
  const std::int64_t given = site.shapes().options().unroll;
  if (!is_within_limit(site, nodes, given == 0 ? report::default_unroll : given,
                       fmt::format("the {} tensors of its sequence need {} nodes, which are", items->size(), nodes))) {
    return std::nullopt;
  }
  Replacement result = replacement_for(site, sequence->producer);
  result.copied_nodes = nodes;
  const std::string along = result.ints("along", {axis});
  std::string names;
  for (std::size_t i = 0; i < items->size(); ++i) {
    std::string item = add_item(result, (*items)[i], i);
    if (is_new_axis) {
      result.line(fmt::format("row{} = Unsqueeze({}, {})", i, item, along));
      item = fmt::format("row{}", i);
    }
    names += (names.empty() ? "" : ", ") + item;
  }
  result.line(fmt::format("y0 = Concat<axis={}>({})", axis, names));
  result.summary = fmt::format("Concat of {} {}", items->size(), items->size() == 1 ? "tensor" : "tensors");
  return result;
}

std::optional<Replacement> lower_sequence_length(Site& site) {
  const onnx::Value* sequence = site.node().input(0);
  const auto count = length_of(site, sequence);
  if (!count) return std::nullopt;
  Replacement result = replacement_for(site, sequence->producer);
  result.line(fmt::format("y0 = Identity({})", result.integer("count", *count)));
  result.summary = fmt::format("the constant {}", *count);
  return result;
}

}  // namespace graft::passes
