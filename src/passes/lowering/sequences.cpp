// Sequences of tensors, which TensorRT does not have. Exporters write them for lists in Python.
//
//   SequenceAt(SequenceConstruct(a, b), 1)                          becomes   b
//   SequenceAt(SplitToSequence(x, 4), 1)                            becomes   Slice(x, 4, 8)
//   ConcatFromSequence(SequenceInsert(SequenceConstruct(a), b, 0))  becomes   Concat(b, a)
//   SequenceLength(SequenceErase(SequenceConstruct(a, b)))          becomes   1
//
// Nothing is computed, so each line holds by definition.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "graft/error.hpp"
#include "onnx/known_sizes.hpp"
#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

constexpr std::string_view as_defined = "by definition: a sequence holds the tensors that it was created from";

/// The begin and the end of one part of SplitToSequence.
struct Part {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// A tensor of a sequence: a whole tensor of the graph, or a part of it.
struct Item {
  onnx::Value* tensor = nullptr;
  const onnx::Node* split = nullptr;  ///< The SplitToSequence; null for a whole tensor.
  Part part = {};
};

/// The tensors of a sequence, in their order, and the nodes that put them there.
struct Contents {
  std::vector<Item> items;
  std::vector<onnx::Node*> makers;
};

/// Returns a replacement together with those nodes before a node that are in the same graph.
Replacement replacement_for(const onnx::Node& node, const std::vector<onnx::Node*>& makers) {
  Replacement result;
  std::copy_if(makers.begin(), makers.end(), std::back_inserter(result.together_with),
               [&](const onnx::Node* maker) { return maker->graph == node.graph; });
  result.by_definition = std::string(as_defined);
  return result;
}

/// Throws Error for a position outside a sequence, unless the node is in a body, which may never run.
std::nullopt_t outside(Site& site, const onnx::Node& node, std::int64_t position, std::size_t length) {
  std::string what = fmt::format("position {} is outside its sequence, which has {} {}", position, length,
                                 length == 1 ? "tensor" : "tensors");
  if (node.graph->parent() == nullptr) throw Error(fmt::format("{}: {}", describe(node), what));
  return site.no(std::move(what));
}

/// Returns the position counted from the front, or nothing if it is outside of `count` positions.
std::optional<std::size_t> from_front(std::int64_t position, std::size_t count, std::size_t length) {
  const std::int64_t front = position < 0 ? position + static_cast<std::int64_t>(length) : position;
  if (front < 0 || front >= static_cast<std::int64_t>(count)) return std::nullopt;
  return static_cast<std::size_t>(front);
}

/// Returns whether SplitToSequence removes the axis along which it splits.
bool removes_axis(const onnx::Node& split) { return split.input(1) == nullptr && split.int_or("keepdims", 1) == 0; }

/// Returns the lengths of all parts of SplitToSequence, or nothing if they are not known; stores no reason.
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

std::optional<std::vector<Item>> parts_of(Site& site, const onnx::Node& split) {
  const auto lengths = lengths_of(site, split);
  if (!lengths) return site.no("its sequence is created by a split into parts whose number or sizes are not known");
  std::vector<Item> items;
  std::int64_t from = 0;
  for (const std::int64_t length : *lengths) {
    std::int64_t to = 0;
    if (length < 0 || __builtin_add_overflow(from, length, &to)) {
      return site.no("its sequence is created by a split whose lengths are negative or too large");
    }
    items.push_back({split.input(0), &split, {from, to}});
    from = to;
  }
  return items;
}

/// Changes the contents as SequenceInsert or SequenceErase does, and returns whether the position is known.
bool change(Site& site, const onnx::Node& node, std::vector<Item>& items) {
  const bool inserts = node.is("SequenceInsert");
  const onnx::Value* place = node.input(inserts ? 2 : 1);
  const std::size_t count = items.size() + (inserts ? 1 : 0);
  std::int64_t position = static_cast<std::int64_t>(count) - 1;
  if (place != nullptr) {
    const auto given = onnx::constant_ints(place);
    if (!given || given->size() != 1) {
      site.no(fmt::format("the position '{}' at which {} {} a tensor is not a constant", place->name, describe(node),
                          inserts ? "inserts" : "erases"));
      return false;
    }
    position = given->front();
  }
  const auto front = from_front(position, count, items.size());
  if (!front) {
    outside(site, node, position, items.size());
    return false;
  }
  const auto at = items.begin() + static_cast<std::ptrdiff_t>(*front);
  if (inserts) {
    items.insert(at, {.tensor = node.input(1)});
  } else {
    items.erase(at);
  }
  return true;
}

/// Returns the tensors of the sequence that a node reads. Otherwise stores why they are not known.
std::optional<Contents> contents_of(Site& site) {
  Contents contents;
  std::vector<const onnx::Node*> changes;
  const onnx::Value* sequence = site.node().input(0);
  for (;; sequence = sequence->producer->input(0)) {
    if (sequence == nullptr) return site.no("its sequence is absent");
    onnx::Node* maker = sequence->producer;
    if (maker == nullptr) {
      return site.no(fmt::format("its sequence '{}' is an input of {}", sequence->name,
                                 sequence->graph->parent() == nullptr ? "the network" : "the body around it"));
    }
    contents.makers.push_back(maker);
    if (maker->is("SequenceInsert") || maker->is("SequenceErase")) {
      changes.push_back(maker);
    } else if (maker->is("SequenceConstruct")) {
      for (onnx::Value* tensor : maker->inputs) contents.items.push_back({.tensor = tensor});
      break;
    } else if (maker->is("SplitToSequence")) {
      auto parts = parts_of(site, *maker);
      if (!parts) return std::nullopt;
      contents.items = *std::move(parts);
      break;
    } else if (maker->is("SequenceEmpty")) {
      break;
    } else if (!maker->is("Identity")) {
      return site.no(fmt::format("its sequence '{}' is a result of {}", sequence->name, describe(*maker)));
    }
  }
  std::reverse(contents.makers.begin(), contents.makers.end());
  for (auto each = changes.rbegin(); each != changes.rend(); ++each) {
    if (!change(site, **each, contents.items)) return std::nullopt;
  }
  return contents;
}

/// Adds the nodes that compute an item, and returns its name.
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

/// Returns the item at a position of a split into an unknown number of parts. A negative position counts from the end,
/// which is known for parts of one element.
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

}  // namespace

std::optional<Replacement> lower_sequence_at(Site& site) {
  const auto given = site.ints(1);
  if (!given || given->size() != 1) return site.no("its position is not a constant");
  const std::int64_t position = given->front();
  onnx::Node* maker = site.producer(0);
  Item item;
  std::vector<onnx::Node*> makers;
  if (maker != nullptr && maker->is("SplitToSequence") && !lengths_of(site, *maker)) {
    const auto found = item_of_open_split(site, *maker, position);
    if (!found) return std::nullopt;
    item = *found;
    makers = {maker};
  } else {
    const auto contents = contents_of(site);
    if (!contents) return std::nullopt;
    const std::size_t count = contents->items.size();
    const auto front = from_front(position, count, count);
    if (!front) return outside(site, site.node(), position, count);
    item = contents->items[*front];
    makers = contents->makers;
  }
  Replacement result = replacement_for(site.node(), makers);
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
    Replacement result = replacement_for(site.node(), {maker});
    result.reads.emplace("whole", maker->input(0));
    result.line("y0 = Identity(whole)");
    result.summary = fmt::format("'{}'", maker->input(0)->name);
    return result;
  }
  const auto contents = contents_of(site);
  if (!contents) return std::nullopt;
  if (contents->items.empty()) return site.no("its sequence has no tensors");
  Replacement result = replacement_for(site.node(), contents->makers);
  const std::string along = result.ints("along", {axis});
  std::string items;
  for (std::size_t i = 0; i < contents->items.size(); ++i) {
    std::string item = add_item(result, contents->items[i], i);
    if (is_new_axis) {
      result.line(fmt::format("row{} = Unsqueeze({}, {})", i, item, along));
      item = fmt::format("row{}", i);
    }
    items += (items.empty() ? "" : ", ") + item;
  }
  result.line(fmt::format("y0 = Concat<axis={}>({})", axis, items));
  result.summary =
      fmt::format("Concat of {} {}", contents->items.size(), contents->items.size() == 1 ? "tensor" : "tensors");
  return result;
}

std::optional<Replacement> lower_sequence_length(Site& site) {
  const auto contents = contents_of(site);
  if (!contents) return std::nullopt;
  Replacement result = replacement_for(site.node(), contents->makers);
  const auto count = static_cast<std::int64_t>(contents->items.size());
  result.line(fmt::format("y0 = Identity({})", result.integer("count", count)));
  result.summary = fmt::format("the constant {}", count);
  return result;
}

}  // namespace graft::passes
