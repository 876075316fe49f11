// Makes the batch size dynamic (`dynamic_batch`): the first dimension of each input gets a name. The proof runs two
// batches at once and each batch alone.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "core/comparison_text.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/text.hpp"
#include "passes/pipeline.hpp"
#include "rules/interface/shapes.hpp"
#include "rules/kinds.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/compare.hpp"
#include "verify/inputs/inputs.hpp"

namespace graft::rules {
namespace {

/// Returns the tensors of both maps, those of equal name concatenated along axis 0. Throws Error for scalars and for
/// types of less than 8 bits.
runtime::TensorMap join_tensors(const runtime::TensorMap& first, const runtime::TensorMap& second) {
  runtime::TensorMap result;
  for (const auto& [name, a] : first) {
    const onnx::TensorData& b = second.at(name);
    if (a.dims.empty() || bits_of(a.type) < 8) {
      const std::string why = a.dims.empty()
                                  ? "the tensor is a scalar, so it has no batch dimension"
                                  : fmt::format("its type {} has less than 8 bits per element", to_string(a.type));
      throw Error(
          fmt::format("the proof cannot concatenate two batches of '{}': {}; {} applies the rules without proofs", name,
                      why, setting_name(Setting::without_proofs)));
    }
    onnx::TensorData both;
    both.type = a.type;
    both.dims = a.dims;
    both.dims[0] += b.dims[0];
    both.bytes = onnx::Bytes(std::string(a.bytes.view()) + std::string(b.bytes.view()));
    result.emplace(name, std::move(both));
  }
  return result;
}

/// Returns the batch size (axis 0) of the inputs, or nothing if it is dynamic in all inputs. Throws Error if an input
/// has no known batch dimension, or if the sizes differ.
std::optional<std::int64_t> find_batch_size(const std::vector<onnx::Value*>& inputs, const Place& place) {
  std::optional<std::int64_t> batch;
  for (const onnx::Value* input : inputs) {
    if (!input->shape || input->shape->empty()) {
      fail_at(place, fmt::format("input '{}' is {}; its batch dimension is absent or unknown. If the shape is unknown, "
                                 "set it with a rule `shape` before this rule",
                                 input->name, type_text(*input)));
    }
    const Dim& first = input->shape->front();
    if (!first.is_constant()) continue;
    if (batch && *batch != first.value()) {
      fail_at(place, fmt::format("the inputs have the batch sizes {} and {}; they must be equal. Set the shape of each "
                                 "input with a rule `shape` before this rule",
                                 *batch, first.value()));
    }
    batch = first.value();
  }
  return batch;
}

/// Changes each Reshape whose constant target begins with the old batch size `batch`, or with a multiple of it, so that
/// this size follows the dynamic batch. `symbol` is the name of the dynamic dimension.
void free_reshapes(onnx::Model& model, std::int64_t batch, const std::string& symbol) {
  onnx::Graph& graph = model.graph();
  for (onnx::Node* node : graph.nodes()) {
    if (!node->is("Reshape") || node->input(0)->constant() || node->int_or("allowzero", 0) != 0) continue;
    const auto sizes = node->input(1)->constant();
    auto numbers = sizes ? sizes->ints() : std::nullopt;
    if (!numbers || numbers->empty()) continue;
    const auto& shape = node->input(0)->shape;
    const bool batch_comes_in = shape && !shape->empty() && shape->front() == Dim::symbol(symbol);
    const bool open = std::find(numbers->begin(), numbers->end(), -1) != numbers->end();
    if (batch_comes_in && numbers->front() == batch) {
      numbers->front() = 0;
      numbers = onnx::with_inferred_size(*shape, *std::move(numbers));
    } else if (!open && numbers->front() % batch == 0) {
      numbers->front() = -1;
    } else {
      continue;
    }
    graph.set_input(*node, 1, graph.add_constant(node->input(1)->name, onnx::TensorData::from_ints(*numbers)));
    infer_again(model);
  }
}

/// Runs the model before the change on two batches of size `batch`, and the changed model on both concatenated, and
/// compares the outputs. Returns a description of the first difference, or an empty string.
std::string difference(const runtime::Engine& engine, const onnx::Model& before, const onnx::Model& after,
                       std::int64_t batch) {
  const std::unique_ptr<runtime::CompiledModel> reference = engine.compile(before);
  const std::unique_ptr<runtime::CompiledModel> candidate = engine.compile(after);
  constexpr std::uint64_t seeds = 2;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const runtime::TensorMap first = verify::make_inputs(before, {.seed = 2 * seed});
    const runtime::TensorMap second = verify::make_inputs(before, {.seed = 2 * seed + 1});
    const runtime::TensorMap expected = join_tensors(reference->run(first), reference->run(second));
    const runtime::TensorMap found = candidate->run(join_tensors(first, second));
    for (const auto& [name, value] : expected) {
      const onnx::Value* output = before.graph().find_local(name);
      const bool quantized = output != nullptr && verify::is_quantized(*output);
      const verify::Difference apart =
          verify::compare(value, found.at(name), verify::network_tolerance(value.type, quantized));
      if (!apart.equal()) {
        return fmt::format("with the batch size {}, output '{}' differs from two batches of {}: {}", 2 * batch, name,
                           batch, report::difference_text(apart));
      }
    }
  }
  return "";
}

}  // namespace

void make_batch_dynamic(RuleRun& run) {
  onnx::Model& model = run.rewriter.model();
  const std::optional<std::int64_t> batch = find_batch_size(run.graph().inputs(), run.rule.place);
  ++run.outcome.matched;
  if (!batch) {
    ++run.outcome.applied;
    run.outcome.notes.push_back("the batch size is already dynamic");
    return;
  }
  onnx::Model before = model.clone();
  for (onnx::Value* input : run.graph().inputs()) input->shape->front() = Dim::symbol(run.rule.symbol);
  std::string why_not;
  try {
    infer_again(model);
    free_reshapes(model, *batch, run.rule.symbol);
    why_not = run.rewriter.options().prove ? difference(run.rewriter.engine(), before, model, *batch) : "";
  } catch (const Error& error) {
    why_not = error.what();
  }
  const std::string what = fmt::format("the batch size {}", *batch);
  const std::string replacement = fmt::format("a dynamic batch size named {}", run.rule.symbol);
  if (why_not.empty()) {
    ++run.outcome.applied;
    run.rewriter.record({.others = what}, replacement, request_text(run.rule),
                        run.rewriter.options().prove ? "two batches at once and one after the other have equal outputs"
                                                     : "not proven, as requested");
    return;
  }
  model = std::move(before);
  run.rewriter.record_rejected({.others = what}, replacement, request_text(run.rule), why_not);
  run.outcome.notes.push_back(fmt::format("the rule was not applied: {}", why_not));
}

}  // namespace graft::rules
