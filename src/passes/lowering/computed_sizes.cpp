// Sizes that are computed from data: from an input of the network that is not of i32 or i64, or from a result of If.
//
//   y = Slice(x, 0, Cast(s))       becomes   y = Slice(x, 0, late)   late = Squeeze(CumSum(Unsqueeze(Cast(s))))
//   y = Range(0, n, 1)             becomes   y = Slice([0, 1, ..., 15], 0, late)   where n is at most 16
//
// TensorRT works out sizes itself, from the inputs of the network on, and refuses inputs of other types than i32 and
// i64. It takes the result of CumSum as it is and reads it when the engine runs. Measured in TensorRT-RTX 1.7.1: it
// builds Slice, Expand, Tile, Reshape, Pad, ConstantOfShape and Resize with such sizes, the last only if the sizes are
// not negative. The length of a Slice has the length of its input as its bound, that of a Range has none.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "onnx/schema.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/lowering/surroundings.hpp"
#include "passes/lowering/value_ranges.hpp"

namespace graft::passes {
namespace {

using onnx::Node;
using onnx::Value;

bool is_from_data(const Value* size) {
  return size != nullptr && !size->constant() && find_data_of_size(*size).found != nullptr;
}

/// Adds new nodes to the graph before the node `reader`, together with the constants that they read.
class Writer {
 public:
  explicit Writer(Node& reader) : reader_(reader), graph_(*reader.graph) {}

  Value* add(const std::string& op_type, std::vector<Value*> inputs, const Value& like) {
    Value* output = graph_.add_node(op_type, std::move(inputs), {like.name + "/late"}, &reader_)->output();
    output->type = like.type;
    return output;
  }

  Value* constant(const Value& like, std::vector<std::int64_t> dims, const std::vector<std::int64_t>& numbers) {
    const std::vector<double> values(numbers.begin(), numbers.end());
    return graph_.add_constant(like.name + "/constant",
                               onnx::TensorData::from_numbers(*like.type, std::move(dims), values));
  }
  Value* indices(const std::vector<std::int64_t>& numbers) {
    return graph_.add_constant("axes", onnx::TensorData::from_ints(numbers));
  }

  /// Adds nodes that return `size` unchanged and that TensorRT's parser does not evaluate at build time (a CumSum over
  /// one element). Returns their result.
  Value* read_late(Value& size) {
    Value* axes = indices({0});
    Value* row = add("Unsqueeze", {&size, axes}, size);
    Value* axis = graph_.add_constant("axis", ints_tensor({}, {0}));
    Value* late = add("Squeeze", {add("CumSum", {row, axis}, size), axes}, size);
    late->shape = size.shape;
    return late;
  }

  /// Returns a copy of the 1-D tensor `size`. Each size in it that is computed from data, and not from shapes, passes
  /// through the nodes of read_late(). TensorRT still knows the other sizes at build time. If `lowest` is set, a size
  /// that is computed from data and smaller than `lowest` becomes `lowest`.
  Value* read_parts_late(Value& size, std::optional<std::int64_t> lowest) {
    if (!is_from_data(&size)) return &size;
    const Node* concat = size.producer;
    if (concat != nullptr && concat->is("Concat")) {
      std::vector<Value*> parts;
      for (Value* part : concat->inputs) parts.push_back(read_parts_late(*part, lowest));
      Value* joined = add("Concat", parts, size);
      joined->producer->attributes["axis"] = onnx::AttributeData(std::int64_t{0});
      joined->shape = size.shape;
      return joined;
    }
    Value* late = read_late(size);
    if (!lowest) return late;
    late = add("Max", {late, constant(size, {}, {*lowest})}, size);
    late->shape = size.shape;
    return late;
  }

 private:
  Node& reader_;
  onnx::Graph& graph_;
};

/// The numbers begin, begin + step ... of a Range whose begin and step are constants and whose count has a constant
/// upper bound.
struct Numbers {
  std::int64_t begin = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;  ///< The maximum count of numbers.
};

std::optional<Numbers> numbers_of(Site& site) {
  const auto begin = site.ints(0);
  const auto step = site.ints(2);
  const auto range = find_range(*site.node().input(1));
  if (!begin || begin->size() != 1 || !step || step->size() != 1 || step->front() < 1 || !range) return std::nullopt;
  std::int64_t span = 0;
  if (__builtin_sub_overflow(range->high, begin->front(), &span) || span > most_constants) return std::nullopt;
  Numbers numbers{begin->front(), step->front(), 0};
  numbers.count = span <= 0 ? 0 : (span - 1) / numbers.step + 1;
  return numbers;
}

/// Replaces a Range by a Slice of a constant. The constant holds `numbers`, all elements that the Range returns at its
/// largest limit; the Slice keeps those below the limit that is computed at run time.
void cut_numbers(Node& range, const Numbers& numbers) {
  Writer writer(range);
  Value& limit = *range.input(1);
  const auto number = [&](std::int64_t value) { return writer.constant(limit, {}, {value}); };
  // The number of elements: (max(limit, begin) - begin + step - 1) / step.
  Value* count = writer.add("Max", {&limit, number(numbers.begin)}, limit);
  std::int64_t added = 0;
  if (!__builtin_sub_overflow(numbers.step - 1, numbers.begin, &added) && added != 0) {
    count = writer.add("Add", {count, number(added)}, limit);
  }
  if (numbers.step != 1) count = writer.add("Div", {count, number(numbers.step)}, limit);
  Value* row = writer.add("Reshape", {count, writer.indices({1})}, limit);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < numbers.count; ++i) all.push_back(numbers.begin + i * numbers.step);
  Value* table = writer.constant(limit, {numbers.count}, all);
  Value* first = writer.constant(limit, {1}, {0});
  onnx::Graph& graph = *range.graph;
  Node* slice =
      graph.add_node("Slice", {table, first, writer.read_late(*row), first}, {limit.name + "/numbers"}, &range);
  slice->name = range.name;
  graph.move_output(range, 0, *slice, 0);
  graph.remove_node(range);
}

}  // namespace

std::optional<Replacement> lower_computed_size(Site& site) {
  const Node& node = site.node();
  std::vector<std::size_t> late;
  for (const std::size_t index : size_inputs(node)) {
    if (!is_from_data(node.input(index))) continue;
    if (find_loop(*find_data_of_size(*node.input(index)).found) != nullptr) {
      return site.no(fmt::format("'{}' is computed from a value that changes in each step of a Loop or Scan",
                                 node.input(index)->name));
    }
    if (!onnx::is_integer(*node.input(index)->type)) {
      return site.no(fmt::format("'{}' is not of integers", node.input(index)->name));
    }
    late.push_back(index);
  }
  if (late.empty()) return std::nullopt;
  Replacement result;
  result.reason = "TensorRT computes sizes from shapes, and from inputs in i32 and i64";
  if (node.is("Range")) {
    const auto numbers = late == std::vector<std::size_t>{1} ? numbers_of(site) : std::nullopt;
    if (numbers) {
      result.summary =
          fmt::format("a Slice of its {} numbers, whose end TensorRT reads when the engine runs", numbers->count);
      result.by_definition = "by definition: they are the first numbers of the longest Range";
      result.edit = [numbers = *numbers](Node& range) { cut_numbers(range, numbers); };
      return result;
    }
  }
  result.keeps_node = true;
  result.summary = fmt::format("the same {} with sizes that TensorRT reads when the engine runs", node.op_type);
  result.by_definition = "by definition: the sum of one number is the number, and no size is negative";
  result.edit = [late](Node& reader) {
    // TensorRT requires a bound below for these. The ends of a Slice and the target of a Reshape may be negative.
    const bool is_size = onnx::is_any_of(reader, {"Resize", "Expand", "Tile", "ConstantOfShape"});
    for (const std::size_t index : late) {
      Writer writer(reader);
      Value* size =
          writer.read_parts_late(*reader.input(index), is_size ? std::optional<std::int64_t>(0) : std::nullopt);
      reader.graph->set_input(reader, index, size);
    }
  };
  return result;
}

}  // namespace graft::passes
