#include "quant/search/type_trials.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "verify/compare/compare.hpp"
#include "verify/compare/ends.hpp"
#include "verify/compare/match_tensors.hpp"

namespace graft::quant {
namespace {

/// Returns the inputs, each converted to the type that the input of this name has in the typed model.
runtime::TensorMap inputs_of(const onnx::Model& typed, runtime::TensorMap inputs) {
  for (const onnx::Value* input : typed.graph().inputs()) {
    const auto found = inputs.find(input->name);
    if (found == inputs.end() || !input->type || found->second.type == *input->type) continue;
    found->second = onnx::TensorData::from_numbers(*input->type, found->second.dims, *found->second.numbers());
  }
  return inputs;
}

}  // namespace

TypeTrials::TypeTrials(const runtime::Engine& engine, const onnx::Model& model, const ChooseOptions& options)
    : engine_(engine),
      options_(options),
      prepared_(prepare_for_types(model, options.precision)),
      reference_(engine, prepared_, runtime::OperatorKernels::functions, options.threads),
      classifiers_(verify::classifier_outputs(prepared_)),
      suppression_(verify::SuppressionTail::find(prepared_)),
      random_(verify::random_values(prepared_)) {}

std::vector<std::string> TypeTrials::run_reference() {
  report_progress("running the network in f32", 0, 1);
  verify::InputRanges narrowed;
  std::string why_sizes;
  std::vector<std::string> extra;
  for (const std::string& name : suppression_ ? suppression_->inputs() : std::vector<std::string>{}) {
    const onnx::Value* value = graph().find_local(name);
    if (value->producer != nullptr && !value->is_output()) extra.push_back(name);
  }
  const std::unique_ptr<runtime::CompiledModel> compiled = engine_.compile(
      prepared_, {.kernels = runtime::OperatorKernels::functions, .extra_outputs = extra, .threads = options_.threads});
  if (options_.data.empty()) {
    verify::InputOptions made_up;
    made_up.shapes = options_.shapes;
    verify::MadeUpInputs maker;
    inputs_.push_back(maker.inputs(*compiled, prepared_, made_up, expected_.emplace_back()));
    why_sizes = maker.why_sizes();
    narrowed = maker.narrowed();
  } else {
    inputs_ = options_.data;
    for (const runtime::TensorMap& inputs : inputs_) expected_.push_back(compiled->run(inputs));
  }
  reference_.infer(inputs_);
  std::vector<std::string> texts;
  for (const auto& [name, tensor] : inputs_.front()) {
    const auto range = narrowed.find(name);
    texts.push_back(fmt::format(
        "{}: {}[{}]{}", name, onnx::to_string(tensor.type), fmt::join(tensor.dims, ", "),
        range == narrowed.end() ? "" : fmt::format(" of {:g} to {:g}", range->second.lowest, range->second.highest)));
  }
  if (!why_sizes.empty()) texts.push_back(why_sizes);
  return texts;
}

std::vector<const onnx::Value*> TypeTrials::real_tensors() const {
  std::vector<const onnx::Value*> values;
  for (const onnx::Value* value : verify::tensors_of(reference_.model())) {
    if (is_f32(value) && !value->constant()) values.push_back(value);
  }
  return values;
}

bool TypeTrials::is_random(const onnx::Node& node) const {
  return std::any_of(node.outputs.begin(), node.outputs.end(),
                     [&](const onnx::Value* output) { return random_.contains(output); });
}

TypedModel TypeTrials::typed_with(const KeptNodes& kept) const {
  TypedOptions options{.precision = options_.precision,
                       .typed_io = options_.typed_io,
                       .narrow_before_int8 = options_.narrow_before_int8,
                       .kept = {},
                       .refusal = options_.refusal};
  for (const auto& [key, node] : kept) options.kept.emplace(key, node.reason);
  return make_typed(prepared_, options);
}

verify::OutputFigures TypeTrials::judged(const onnx::Value& output, const runtime::TensorMap& expected,
                                         const runtime::TensorMap& found, bool by_suppression) const {
  const auto random = random_.find(&output);
  const onnx::TensorData& reference = expected.at(output.name);
  if (random == random_.end()) {
    if (by_suppression && suppression_->outputs().contains(output.name) && is_floating_point(reference.type)) {
      return suppression_->figures(output.name, expected, found);
    }
    return verify::figures_of(output.name, reference, found.at(output.name), classifiers_.contains(output.name));
  }
  verify::OutputFigures figures;
  figures.name = output.name;
  figures.elements = reference.element_count();
  figures.incomparable = fmt::format("not judged: it depends on the random numbers of {}", random->second);
  return figures;
}

std::vector<verify::OutputFigures> TypeTrials::try_types(const KeptNodes& kept) {
  ++count_;
  report_progress(fmt::format("trying {}, {} kept in f32", to_string(options_.precision), kept.size()), count_,
                  most_trials);
  const TypedModel typed = typed_with(kept);
  const verify::PartialRuns runs(engine_, typed.model, runtime::OperatorKernels::functions, options_.threads);
  std::vector<const onnx::Value*> returned = verify::all_outputs(runs.model());
  // The network's own inputs are not among the results.
  const bool by_suppression = suppression_ && suppression_->has_inputs(runs.model()) &&
                              std::ranges::none_of(suppression_->inputs(), [&](const std::string& name) {
                                return runs.model().graph().find_local(name)->is_input;
                              });
  for (const std::string& name : by_suppression ? suppression_->inputs() : std::vector<std::string>{}) {
    const onnx::Value* value = runs.model().graph().find_local(name);
    if (!value->is_output()) returned.push_back(value);
  }
  const std::unique_ptr<runtime::CompiledModel> compiled = runs.compile(returned);
  std::vector<verify::OutputFigures> outputs;
  for (std::size_t run = 0; run < inputs_.size(); ++run) {
    const runtime::TensorMap found = compiled->run(inputs_of(typed.model, inputs_[run]));
    for (std::size_t i = 0; i < graph().outputs().size(); ++i) {
      const verify::OutputFigures figures = judged(*graph().outputs()[i], expected_[run], found, by_suppression);
      if (run == 0) {
        outputs.push_back(figures);
      } else {
        verify::add_worst_run(outputs[i], figures);
      }
    }
  }
  return outputs;
}

Decibels TypeTrials::tensor_decibels(const KeptNodes& kept) {
  ++count_;
  const TypedModel typed = typed_with(kept);
  const verify::PartialRuns runs(engine_, typed.model, runtime::OperatorKernels::functions, options_.threads);
  Decibels found;
  std::vector<const onnx::Value*> waiting = real_tensors();
  std::erase_if(waiting, [&](const onnx::Value* value) {
    const onnx::Value* other = runs.model().graph().find_local(value->name);
    return other == nullptr || other->producer == nullptr || !other->type || !is_floating_point(*other->type);
  });
  std::size_t next = 0;
  while (next < waiting.size()) {
    report_progress("searching for nodes that lose accuracy", next, waiting.size());
    const std::vector<const onnx::Value*> group =
        reference_.next_group(waiting, next, options_.memory / 2);  // Each of the two models gets half of the memory.
    std::vector<const onnx::Value*> others;
    for (const onnx::Value* value : group) others.push_back(runs.model().graph().find_local(value->name));
    const std::unique_ptr<runtime::CompiledModel> reference = reference_.compile(group);
    const std::unique_ptr<runtime::CompiledModel> candidate = runs.compile(others);
    for (const runtime::TensorMap& inputs : inputs_) {
      const runtime::TensorMap expected = reference->run(inputs);
      const runtime::TensorMap results = candidate->run(inputs_of(typed.model, inputs));
      for (const onnx::Value* value : group) {
        const verify::OutputFigures figures =
            verify::figures_of(value->name, expected.at(value->name), results.at(value->name));
        const double decibels =
            figures.not_finite != 0 ? -std::numeric_limits<double>::infinity() : verify::decibels_of(figures);
        const auto [place, is_new] = found.try_emplace(value->name, decibels);
        if (!is_new) place->second = std::min(place->second, decibels);
      }
    }
  }
  return found;
}

}  // namespace graft::quant
