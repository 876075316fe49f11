// Runs both models on the same inputs and compares their inner tensors.
#include "verify/localize/layers.hpp"

#include <algorithm>
#include <utility>

#include "graft/error.hpp"
#include "onnx/node_ref.hpp"
#include "verify/localize/find_failure.hpp"
#include "verify/localize/layer_state.hpp"

namespace graft::verify {
namespace {

class Layers {
 public:
  Layers(const runtime::Engine& engine, const onnx::Model& reference, const onnx::Model& candidate,
         const VerifyOptions& options, std::optional<Precision> emulated, Scales scales, bool trust_names)
      : engine_(engine),
        trust_names_(trust_names),
        state_(engine, reference, candidate, options, emulated, std::move(scales)) {}

  LayerReport run() {
    state_.report.ranges = state_.options.ranges;
    state_.inputs = pair_io(fed_inputs(state_.reference.model()), fed_inputs(state_.candidate.model()), "input",
                            state_.report.problems);
    if (!state_.report.problems.empty()) return std::move(state_.report);
    // The scales of int8 are computed from the first run. The second run shows their error on other values.
    const std::size_t usual_seeds = state_.emulated == Precision::int8 ? 2 : 1;
    const std::size_t seeds = state_.options.seeds == 0 ? usual_seeds : state_.options.seeds;
    const std::size_t runs = state_.options.has_data() ? state_.options.run_count() : seeds;
    for (std::size_t run = 0; run < runs; ++run) {
      const runtime::TensorMap inputs = inputs_of(run);
      const runtime::TensorMap renamed = state_.for_candidate(inputs);
      try {
        if (run == 0) pair_layers(state_, inputs, renamed, trust_names_);
        compare_pairs(state_, run, inputs, renamed);
      } catch (const CandidateFails& failed) {
        return failed_report(find_failure(state_.candidate, renamed, failed.message));
      }
      measure_losses(state_);
      if (!state_.report.nan_begins) find_nan(state_, inputs);
      if (!state_.report.first && state_.report.first_different() != nullptr) find_divergence(state_, inputs);
      state_.report.runs = run + 1;
    }
    return std::move(state_.report);
  }

 private:
  /// Returns the report for a candidate that does not run. The results of earlier runs are dropped.
  LayerReport failed_report(FoundFailure found) {
    LayerReport& report = state_.report;
    report.layers.clear();
    report.first.reset();
    report.nan_begins.reset();
    report.weakest.reset();
    report.reduced.reset();
    if (!found.failure.nodes.empty()) {
      report.reduced.emplace(
          ReducedCase{.reference = {}, .candidate = std::move(found.part), .inputs = std::move(found.inputs)});
    }
    report.failure = std::move(found.failure);
    return std::move(report);
  }

  runtime::TensorMap inputs_of(std::size_t run) {
    if (state_.options.has_data()) return state_.options.inputs_of(run);
    InputOptions made_up = state_.options.of_run({.seed = run});
    if (run > 0) made_up.large_integers = state_.options.large_integers;
    if (!whole_) {
      whole_ = engine_.compile(state_.reference.model(),
                               {.kernels = state_.options.reference_kernels, .threads = state_.options.threads});
    }
    runtime::TensorMap ignored;
    runtime::TensorMap inputs = made_up_.inputs(*whole_, state_.reference.model(), made_up, ignored);
    state_.report.ranges = made_up_.narrowed(state_.options.ranges);
    state_.report.large_integers = made_up_.large_integers();
    state_.report.why_sizes = made_up_.why_sizes();
    return inputs;
  }

  const runtime::Engine& engine_;
  bool trust_names_;
  LayerState state_;
  std::unique_ptr<runtime::CompiledModel> whole_;
  MadeUpInputs made_up_;
};

bool is_number(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

/// Returns whether the pairing by name that led to the first divergence may be wrong: different nodes compute the two
/// tensors, and the common name is a number, or many names of the model belong to other nodes now.
bool may_be_misnamed(const LayerReport& report) {
  if (!report.first) return false;
  const auto by_other_node = [](const ComparedLayer& layer) {
    return layer.matched_by == MatchedBy::name && !layer.is_output &&
           onnx::describe(layer.reference_node) != onnx::describe(layer.candidate_node);
  };
  const ComparedLayer& first = report.layers[report.first->layer];
  if (!by_other_node(first)) return false;
  constexpr std::size_t quarter = 4;
  const auto many = static_cast<std::ptrdiff_t>(report.layers.size() / quarter);
  return is_number(first.candidate.name) ||
         std::count_if(report.layers.begin(), report.layers.end(), by_other_node) > many;
}

/// Returns whether `other`, the comparison without pairing by name, is more plausible than `report`: it finds the
/// tensor of the first divergence in the candidate under another name (one that another tensor of the reference has, or
/// a number), and more tensors agree.
bool explains_more(const LayerReport& other, const LayerReport& report, const onnx::Model& reference) {
  const ComparedLayer& first = report.layers[report.first->layer];
  const bool is_misnamed = std::any_of(other.layers.begin(), other.layers.end(), [&](const ComparedLayer& layer) {
    if (layer.reference.name != first.reference.name || layer.candidate.name == first.candidate.name || !layer.equal())
      return false;
    const onnx::Value* namesake = reference.graph().find_local(layer.candidate.name);
    return (namesake != nullptr && namesake->producer != nullptr) ||
           (is_number(layer.candidate.name) && is_number(first.candidate.name));
  });
  const auto agreeing = [](const LayerReport& r) {
    return std::count_if(r.layers.begin(), r.layers.end(), [](const ComparedLayer& layer) { return layer.equal(); });
  };
  return is_misnamed && agreeing(other) > agreeing(report);
}

/// Returns options with which verify_models compares the outputs under the same conditions as compare_layers.
VerifyOptions outputs_alone(VerifyOptions options) {
  if (options.seeds == 0) options.seeds = 1;
  options.across_formats = true;
  options.may_be_narrower = true;
  options.finds_unreached = false;
  options.finds_beyond_rounding = false;
  options.progress = {};
  return options;
}

LayerReport run_layers(const runtime::Engine& any, const onnx::Model& reference, const onnx::Model& candidate,
                       const VerifyOptions& options, std::optional<Precision> emulated) {
  // Parts that return inner tensors are run without the checks by a second engine, which are needed only for the
  // models' own results.
  const runtime::Engine& engine = any.unchecked();
  if (!emulated) {
    LayerReport report = Layers(engine, reference, candidate, options, {}, {}, true).run();
    if (may_be_misnamed(report)) {
      LayerReport other = Layers(engine, reference, candidate, options, {}, {}, false).run();
      if (explains_more(other, report, reference)) report = std::move(other);
    }
    const bool has_checks = &engine != &any;
    const bool is_doubtful = report.verdict() == Verdict::different && any.checked() != nullptr;
    const bool has_run = report.runs > 0 && !report.failure && report.problems.empty();
    if (has_run && (has_checks || is_doubtful)) {
      report.dispute = verify_models(any, reference, candidate, outputs_alone(options)).dispute;
    }
    return report;
  }
  const onnx::Model opened = with_open_functions(candidate);
  Scales scales;
  if (*emulated == Precision::int8) {
    std::vector<std::string> problems;
    const auto pairs = pair_io(fed_inputs(reference), fed_inputs(candidate), "input", problems);
    runtime::TensorMap inputs;
    if (options.has_data()) {
      inputs = options.inputs_of(0);
    } else {
      const std::unique_ptr<runtime::CompiledModel> compiled = engine.compile(
          reference, {.kernels = options.reference_kernels, .extra_outputs = {}, .threads = options.threads});
      runtime::TensorMap ignored;
      inputs = MadeUpInputs().inputs(*compiled, reference, options.of_run({}), ignored);
    }
    scales = int8_scales(engine, opened, inputs_for(pairs, inputs), options.candidate_kernels, options.threads,
                         options.memory);
  }
  const onnx::Model rounded = emulate(opened, *emulated, scales);
  LayerReport report =
      Layers(engine, with_open_functions(reference), rounded, options, emulated, std::move(scales), true).run();
  report.large_constants = large_constants(opened, *emulated);
  report.emulated = std::string(to_string(*emulated));
  return report;
}

}  // namespace

LayerReport compare_layers(const runtime::Engine& engine, const onnx::Model& reference, const onnx::Model& candidate,
                           const VerifyOptions& options, std::optional<Precision> emulated) {
  LayerReport report = run_layers(engine, reference, candidate, options, emulated);
  describe_comparison(report, reference, candidate, options);
  return report;
}

}  // namespace graft::verify
