// Sets the shapes and types of inputs (`shape`, `dtype`), and fixes dynamic dimensions (`fix`). A network that ran
// before must run with the new shapes.
//
//   - fix: {N: 1}             input [N, 3, 224, 224]   becomes   [1, 3, 224, 224]
#include "rules/interface/shapes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graft/error.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/shape_inference.hpp"
#include "onnx/text.hpp"
#include "passes/pipeline.hpp"
#include "rules/kinds.hpp"
#include "rules/text.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/verify_models.hpp"
#include "verify/inputs/inputs.hpp"

namespace graft::rules {
namespace {

/// Runs the model once with synthetic inputs. Returns the error message if that fails, otherwise an empty string.
std::string refusal(const runtime::Engine& engine, const onnx::Model& model) {
  try {
    static_cast<void>(verify::verify_models(engine, model, model, {.seeds = 1}));
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// Infers the shapes after a rule has changed them. Throws Error if they are inconsistent, or if the model cannot be
/// run although `before`, the model before the rule, could.
void check_shapes(RuleRun& run, const onnx::Model& before) {
  try {
    infer_again(run.rewriter.model());
  } catch (const Error& error) {
    fail_at(run.rule.place,
            fmt::format("the shapes of the network do not fit together after this rule: {}", error.what()));
  }
  if (!run.rewriter.options().prove || run.outcome.applied == 0) return;
  const std::string why = refusal(run.rewriter.engine(), run.rewriter.model());
  if (!why.empty() && refusal(run.rewriter.engine(), before).empty()) {
    fail_at(run.rule.place, fmt::format("the network ran before this rule, but does not run after it: {}", why));
  }
}

/// Adds an input of type `type` that has the name and the position of `input`, and a Cast from it to the type of
/// `input`, which becomes the result of the Cast.
void add_cast_before(onnx::Value& input, onnx::ElementType type, onnx::Graph& graph) {
  const std::string name = input.name;
  const onnx::ElementType before = input.type.value();
  const std::vector<onnx::Value*> order = graph.inputs();
  graph.rename(input, graph.unique_name(fmt::format("{}_as_{}", name, to_string(before))));
  for (onnx::Value* value : order) graph.set_is_input(*value, false);
  for (onnx::Value* value : order) {
    if (value != &input) {
      graph.set_is_input(*value, true);
      continue;
    }
    onnx::Value* fresh = graph.add_input(name);
    fresh->type = type;
    fresh->shape = input.shape;
    const std::vector<onnx::Node*> nodes = graph.nodes();
    onnx::Node* cast = graph.add_node_with_outputs("Cast", {fresh}, {&input}, nodes.empty() ? nullptr : nodes.front());
    cast->name = name + "_cast";
    cast->attributes.emplace("to", onnx::NodeAttribute(onnx::AttributeData(static_cast<std::int64_t>(before))));
  }
}

/// Sets the type of an input of the network, and adds a Cast to its previous type, in which the network still computes.
/// If the previous type is unknown, adds no Cast.
void set_type(RuleRun& run, onnx::Value& input, onnx::ElementType type) {
  const std::string name = input.name;
  if (!input.type) {
    input.type = type;
    record_change(run, {.others = fmt::format("input '{}'", name)}, to_string(type));
    return;
  }
  if (*input.type == type) {
    record_change(run, {.others = fmt::format("input '{}'", name)}, fmt::format("{} already", to_string(type)));
    return;
  }
  const onnx::ElementType before = *input.type;
  add_cast_before(input, type, run.graph());
  record_change(run, {.others = fmt::format("input '{}', {}", name, to_string(before))},
                fmt::format("{}, with a Cast to {} after it", to_string(type), to_string(before)));
}

Dim with_symbol(const Dim& dim, const std::string& symbol, const Dim& size) {
  if (dim.is_constant()) return dim;
  if (dim.kind() == Dim::Kind::symbol) return dim.name() == symbol ? size : dim;
  return Dim::make(dim.kind(), with_symbol(dim.left(), symbol, size), with_symbol(dim.right(), symbol, size));
}

void fix_symbol(onnx::Graph& graph, const std::string& symbol, std::int64_t size) {
  for (onnx::Value* input : graph.inputs()) {
    if (!input->shape) continue;
    for (Dim& dim : *input->shape) dim = with_symbol(dim, symbol, size);
  }
}

void fix_axis(RuleRun& run, onnx::Value& input, const std::string& axis_text, std::int64_t size,
              const Rule::Entry& entry) {
  const bool is_number = !axis_text.empty() && axis_text.find_first_not_of("0123456789") == std::string::npos;
  const std::size_t axis = is_number && axis_text.size() < 4 ? std::stoul(axis_text) : std::string::npos;
  if (!input.shape || axis >= input.shape->size()) {
    fail_at(entry.name.place(),
            fmt::format("input '{}' is {}; it has no axis '{}'. Write the axis as an index, counted from 0", input.name,
                        type_text(input), axis_text));
  }
  const Dim before = (*input.shape)[axis];
  if (before.kind() == Dim::Kind::symbol) fix_symbol(run.graph(), before.name(), size);
  (*input.shape)[axis] = size;
  record_change(run,
                {.others = fmt::format("axis {} of input '{}', {}", axis, input.name,
                                       onnx::is_unknown(before) ? "?" : before.to_string())},
                std::to_string(size));
}

/// Returns the note for a name in a rule `fix` that is neither a named dimension in `symbols` nor INPUT:AXIS.
std::string unknown_dimension(const std::string& name, const std::vector<std::string>& symbols,
                              const std::vector<onnx::Value*>& inputs) {
  std::vector<std::string> named;
  for (const std::string& symbol : symbols) {
    if (!onnx::is_unknown(Dim::symbol(symbol))) named.push_back(symbol);
  }
  return fmt::format(
      "no input has a dimension '{}'{} The named dimensions are {}, and the inputs are {}. Write the axis of an input "
      "as INPUT:AXIS, as in {}:0",
      name, did_you_mean(name, named, "."), joined(named), fmt::join(names_of(inputs), ", "),
      inputs.empty() ? "x" : inputs.front()->name);
}

}  // namespace

void infer_again(onnx::Model& model) {
  std::map<std::string, Shape, std::less<>> shapes;
  for (const onnx::Value* input : model.graph().inputs()) {
    if (input->shape) shapes.emplace(input->name, *input->shape);
  }
  std::map<std::string, onnx::ElementType> types;
  for (const onnx::Value* value : model.graph().values()) {
    if (value->type) types.emplace(value->name, *value->type);
  }
  infer_shapes(model, shapes);
  for (onnx::Value* value : model.graph().values()) {
    const auto known = types.find(value->name);
    if (!value->type && known != types.end()) value->type = known->second;
  }
}

void set_shapes(RuleRun& run) {
  const onnx::Model before = run.rewriter.model().clone();
  for (const Rule::Entry& entry : run.rule.entries) {
    const std::vector<onnx::Value*> inputs = find_tensors(run.graph().inputs(), entry.name);
    if (inputs.empty()) record_missing_tensor(run, entry.name, "input", run.graph().inputs());
    const Shape shape = parse_shape(entry.value);
    for (onnx::Value* input : inputs) {
      if (input->shape && input->shape->size() != shape.size()) {
        fail_at(entry.value.place,
                fmt::format("input '{}' is {}; the new shape must also have {} dimensions, but it has {}", input->name,
                            type_text(*input), input->shape->size(), shape.size()));
      }
      const std::string before = type_text(*input);
      input->shape = shape;
      record_change(run, {.others = fmt::format("input '{}' {}", input->name, before)}, type_text(*input));
    }
  }
  check_shapes(run, before);
}

void set_types(RuleRun& run) {
  const onnx::Model before = run.rewriter.model().clone();
  for (const Rule::Entry& entry : run.rule.entries) {
    const std::vector<onnx::Value*> inputs = find_tensors(run.graph().inputs(), entry.name);
    if (inputs.empty()) record_missing_tensor(run, entry.name, "input", run.graph().inputs());
    const onnx::ElementType type = onnx::parse_element_type(std::get<std::string>(entry.value.data)).value();
    for (onnx::Value* input : inputs) set_type(run, *input, type);
  }
  check_shapes(run, before);
}

void fix_dimensions(RuleRun& run) {
  const onnx::Model before = run.rewriter.model().clone();
  for (const Rule::Entry& entry : run.rule.entries) {
    const std::int64_t size = std::get<std::int64_t>(entry.value.data);
    const std::string& name = entry.name.text();
    const std::vector<std::string> symbols = verify::symbols_of_inputs(run.rewriter.model());
    if (std::find(symbols.begin(), symbols.end(), name) != symbols.end()) {
      fix_symbol(run.graph(), name, size);
      record_change(run, {.others = fmt::format("dimension {}", name)}, std::to_string(size));
      continue;
    }
    const std::size_t colon = name.rfind(':');
    onnx::Value* input = colon == std::string::npos ? nullptr : run.graph().find_local(name.substr(0, colon));
    if (input == nullptr || !input->is_input) {
      record_miss(run, unknown_dimension(name, symbols, run.graph().inputs()));
      continue;
    }
    fix_axis(run, *input, name.substr(colon + 1), size, entry);
  }
  check_shapes(run, before);
}

}  // namespace graft::rules
