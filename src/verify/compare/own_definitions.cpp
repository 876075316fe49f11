// A node is extracted as a model of its own, which runs twice: with the operator's function and with its kernel.
#include "verify/compare/own_definitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/comparison_text.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "onnx/extract.hpp"
#include "onnx/faults.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_node.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::verify {
namespace {

using report::OwnDefinition;

/// The maximum number of nodes of an operator that are run. Each takes two compilations.
constexpr std::size_t most_nodes = 8;

/// Returns the library that defines a node, or null if ONNX, Graft or a function in the file defines it.
const OperatorLibrary* defining_library(const onnx::Model& model, const onnx::Node& node) {
  if (model.find_function(node) != nullptr) return nullptr;
  const onnx::OperatorMatch match = find_operator_for(node);
  return match ? library_of(*match.type) : nullptr;
}

bool has_function(const onnx::Node& node) {
  const std::unique_ptr<Operator> op = make_operator(node);
  return op != nullptr && onnx::function_of(*op, onnx::function_inputs(node)).has_value();
}

void count(const onnx::Model& model, const onnx::Graph& graph, std::vector<OwnDefinition>& definitions) {
  graph.for_each_node([&](const onnx::Node& node) {
    const OperatorLibrary* library = defining_library(model, node);
    if (library == nullptr) return;
    const std::string name(find_operator_for(node).type->name);
    auto found = std::find_if(definitions.begin(), definitions.end(),
                              [&](const OwnDefinition& definition) { return definition.op == name; });
    if (found == definitions.end()) {
      found = definitions.insert(found, OwnDefinition{.op = name});
      found->library = std::filesystem::path(library->file).filename().string();
      found->has_function = has_function(node);
    }
    ++found->nodes;
  });
}

/// Returns the first nodes of the main graph that the operator computes, at most `most_nodes`.
std::vector<const onnx::Node*> chosen_nodes(const onnx::Model& model, const std::string& op) {
  std::vector<const onnx::Node*> nodes;
  for (const onnx::Node* node : model.graph().nodes()) {
    if (nodes.size() == most_nodes) break;
    if (defining_library(model, *node) != nullptr && find_operator_for(*node).type->name == op) {
      nodes.push_back(node);
    }
  }
  return nodes;
}

/// Returns the names of the inputs of a node that other nodes compute and that are not in `inputs`, so that the model
/// must be run to get their values.
std::set<std::string> computed_inputs(const onnx::Node& node, const runtime::TensorMap& inputs) {
  std::set<std::string> names;
  for (const onnx::Value* value : node.inputs) {
    if (value != nullptr && value->producer != nullptr && !inputs.contains(value->name)) names.insert(value->name);
  }
  return names;
}

/// Runs one node with the ONNX function of its operator and with the operator's CPU kernel on the inputs in `tensors`,
/// and adds the result of the comparison to `definition`.
void compare_node(const runtime::Engine& engine, const onnx::Model& model, const onnx::Node& node,
                  const runtime::TensorMap& tensors, int threads, OwnDefinition& definition) {
  const onnx::Model alone = extract_nodes(model, {&node});
  VerifyOptions options;
  options.may_be_narrower = true;
  options.threads = threads;
  options.candidate_kernels = runtime::OperatorKernels::own_in_f32;
  runtime::TensorMap& data = options.data.emplace_back();
  for (const onnx::Value* input : alone.graph().inputs()) {
    if (!input->initializer) data[input->name] = tensors.at(input->name);
  }
  const VerifyReport found = verify_models(engine, alone, alone, options);
  ++definition.nodes_compared;
  if (found.verdict() == Verdict::same) {
    if (definition.kernel == Verdict::nothing_compared) definition.kernel = Verdict::same;
    return;
  }
  if (found.verdict() != Verdict::different || definition.kernel == Verdict::different) return;
  definition.kernel = Verdict::different;
  const auto wrong =
      std::find_if(found.outputs.begin(), found.outputs.end(), [](const auto& output) { return !output.equal(); });
  definition.note =
      fmt::format("{}: {}", describe(node),
                  wrong == found.outputs.end() ? std::string("its outputs differ") : difference_text(wrong->worst));
}

}  // namespace

std::vector<OwnDefinition> find_own_definitions(const onnx::Model& reference) {
  std::vector<OwnDefinition> definitions;
  if (operator_libraries().empty()) return definitions;
  count(reference, reference.graph(), definitions);
  for (const auto& each : reference.functions) count(reference, *each.second.body, definitions);
  return definitions;
}

void compare_with_kernels(const runtime::Engine& engine, const onnx::Model& reference,
                          const runtime::CompileOptions& options, const runtime::TensorMap& inputs,
                          std::vector<OwnDefinition>& definitions) {
  onnx::Model model = reference.clone();
  infer_around_faults(model, [](onnx::Node& /*node*/, const Error& /*fault*/) {});  // the comparison reports faults
  std::map<std::string, std::vector<const onnx::Node*>> nodes;
  runtime::CompileOptions with_inputs = options;
  std::set<std::string> names(options.extra_outputs.begin(), options.extra_outputs.end());
  for (OwnDefinition& definition : definitions) {
    if (!definition.has_function) continue;
    nodes[definition.op] = chosen_nodes(model, definition.op);
    if (nodes[definition.op].empty()) definition.note = "its nodes are inside subgraphs or functions";
    for (const onnx::Node* node : nodes[definition.op]) names.merge(computed_inputs(*node, inputs));
  }
  with_inputs.extra_outputs = {names.begin(), names.end()};
  runtime::TensorMap tensors;
  try {
    tensors = engine.compile(reference, with_inputs)->run(inputs);
  } catch (const Error& error) {
    for (OwnDefinition& definition : definitions) definition.note = error.what();
    return;
  }
  tensors.insert(inputs.begin(), inputs.end());
  for (OwnDefinition& definition : definitions) {
    try {
      for (const onnx::Node* node : nodes[definition.op]) {
        compare_node(engine, model, *node, tensors, options.threads, definition);
      }
    } catch (const Error& error) {
      if (definition.kernel != Verdict::different) {
        definition.kernel = Verdict::nothing_compared;
        definition.note = error.what();
      }
    }
  }
}

}  // namespace graft::verify
