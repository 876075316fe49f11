// Checks that a Graft operator which a rule inserts accepts the types and shapes of its inputs, and computes the type
// and rank of each output that it replaces.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "graft/error.hpp"
#include "onnx/onnx_io.hpp"
#include "rules/replace/new_node.hpp"

namespace graft::rules {
namespace {

/// Returns the combinations of types that the first `count` inputs of an operator may have, as text: "(f32, i32) or
/// (f16, i32)".
std::string input_types_text(const OperatorType& type, std::size_t count) {
  std::vector<std::string> all;
  for (const TypeRow& row : type.type_rows) {
    std::vector<std::string_view> dtypes;
    for (std::size_t i = 0; i < count; ++i) dtypes.push_back(to_string(type.format_of(row, count, i).dtype));
    const std::string text =
        fmt::format("{0}{2}{1}", count == 1 ? "" : "(", count == 1 ? "" : ")", fmt::join(dtypes, ", "));
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
  }
  return all.size() == 1 ? "only " + all.front() : fmt::format("{}", fmt::join(all, count == 1 ? ", " : " or "));
}

}  // namespace

InputFacts find_input_facts(const NewNode& node, const onnx::Graph& graph) {
  InputFacts facts;
  const std::size_t shape_inputs = node.with.graft == nullptr ? 0 : node.with.graft->shape_input_count();
  const std::size_t plan_inputs_with_shapes = node.inputs.size() - std::min(shape_inputs, node.inputs.size());
  for (const NodeInput& input : node.inputs) {
    if (input.name.empty()) break;  // optional inputs that are left out are the last
    const onnx::Value* value = input.is_new ? nullptr : graph.find(input.name);
    std::optional<onnx::ElementType> element;
    if (value != nullptr) element = value->type;
    if (value == nullptr && input.constant) element = input.constant->type;
    const auto dtype = element ? to_dtype(*element) : std::nullopt;
    if (!element) throw Error(fmt::format("the element type of tensor '{}' is unknown", input.name));
    if (!dtype) {
      throw Error(fmt::format("tensor '{}' is {}, a type that {} does not support", input.name, to_string(*element),
                              node.with.to_string()));
    }
    facts.dtypes.push_back(*dtype);
    if (facts.dtypes.size() > plan_inputs_with_shapes) {  // of shape inputs the values count, which only constants have
      const auto constant = value == nullptr ? input.constant : value->constant();
      const auto values = constant ? constant->ints() : std::nullopt;
      if (values) facts.shapes.emplace_back(values->begin(), values->end());
      facts.are_shapes_known = facts.are_shapes_known && values.has_value();
    } else if (value != nullptr && value->shape) {
      facts.shapes.push_back(*value->shape);
    } else if (value == nullptr && input.constant) {
      facts.shapes.emplace_back(input.constant->dims.begin(), input.constant->dims.end());
    } else {
      facts.are_shapes_known = false;
    }
  }
  return facts;
}

bool are_types_known(const NewNode& node, const onnx::Graph& graph) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const NodeInput& input) {
    const onnx::Value* value = input.is_new || input.name.empty() ? nullptr : graph.find(input.name);
    return value == nullptr || value->type;
  });
}

std::vector<DType> checked_output_dtypes(const NewNode& node, std::span<const DType> inputs) {
  auto results = node.op->type().output_dtypes(inputs);
  if (results) return std::move(*results);
  std::vector<std::string_view> found;
  for (const DType dtype : inputs) found.push_back(to_string(dtype));
  throw Error(fmt::format("{} supports {}; here its inputs are {}", node.with.to_string(),
                          input_types_text(node.op->type(), found.size()), fmt::join(found, ", ")));
}

void check_fits(const NewNode& node, const Region& region, const InputFacts& facts) {
  const std::vector<DType> results = checked_output_dtypes(node, facts.dtypes);
  for (std::size_t i = 0; i < region.outputs.size(); ++i) {
    const onnx::Value& output = *region.outputs[i];
    const auto dtype = output.type ? to_dtype(*output.type) : std::nullopt;
    if (dtype && *dtype == results[i]) continue;
    throw Error(fmt::format("tensor '{}' is {}, but {} computes {}", output.name,
                            output.type ? to_string(*output.type) : "of an unknown type", node.with.to_string(),
                            to_string(results[i])));
  }
  if (!facts.are_shapes_known) return;
  std::vector<Shape> shapes;
  if (const Status status = node.op->infer_shapes(facts.shapes, shapes); !status.ok()) throw Error(status.message());
  for (std::size_t i = 0; i < region.outputs.size(); ++i) {
    const onnx::Value& output = *region.outputs[i];
    if (!output.rank() || *output.rank() == std::ssize(shapes[i])) continue;
    throw Error(fmt::format("tensor '{}' has rank {}, but {} computes rank {}", output.name, *output.rank(),
                            node.with.to_string(), shapes[i].size()));
  }
}

}  // namespace graft::rules
