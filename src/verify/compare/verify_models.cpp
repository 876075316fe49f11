// Pairs the inputs and outputs of two models, runs both, and keeps the worst run of each output.
#include "verify/compare/verify_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "graft/error.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "verify/compare/choices.hpp"
#include "verify/compare/classifiers.hpp"
#include "verify/compare/ends.hpp"
#include "verify/compare/own_definitions.hpp"
#include "verify/compare/rearrangement.hpp"
#include "verify/compare/run_records.hpp"
#include "verify/compare/suppression.hpp"
#include "verify/inputs/random_values.hpp"
#include "verify/inputs/unreached.hpp"
#include "verify/judge/noisy_model.hpp"
#include "verify/localize/layers.hpp"

namespace graft::verify {
namespace {

std::string declared_text(const onnx::Value& value) {
  return (value.type ? to_string(*value.type) : "unknown type ") +
         (value.shape ? to_string(*value.shape) : " of any shape");
}

bool can_be_the_same(const Shape& reference, const Shape& candidate) {
  return std::equal(
      reference.begin(), reference.end(), candidate.begin(), candidate.end(),
      [](const Dim& left, const Dim& right) { return !left.is_constant() || !right.is_constant() || left == right; });
}

/// Returns whether moving the channel axis of `reference` from axis 1 to the end, or back, makes it compatible with
/// `candidate`.
bool are_exchanged(const Shape& reference, const Shape& candidate) {
  std::vector<std::int64_t> axes(reference.size());
  std::iota(axes.begin(), axes.end(), 0);
  const auto exchanged = exchange_channels(axes, [&](const std::vector<std::int64_t>& order) {
    Shape shape;
    for (const std::int64_t axis : order) shape.push_back(reference[static_cast<std::size_t>(axis)]);
    return can_be_the_same(shape, candidate);
  });
  return exchanged.has_value();
}

/// Returns whether the declared types and shapes of two inputs or outputs are compatible. With `across`
/// (VerifyOptions::across_formats), real types and the position of the channel axis may differ, because inputs are
/// converted for the candidate.
bool can_be_the_same(const onnx::Value& reference, const onnx::Value& candidate, bool across) {
  const bool are_real =
      reference.type && candidate.type && is_floating_point(*reference.type) && is_floating_point(*candidate.type);
  if (reference.type != candidate.type && !(across && are_real)) return false;
  if (!reference.shape || !candidate.shape) return true;
  return can_be_the_same(*reference.shape, *candidate.shape) ||
         (across && are_exchanged(*reference.shape, *candidate.shape));
}

/// Returns the number of nodes that round to 8 bits. The reference may have some too, so the counts of both models are
/// compared.
std::size_t count_of_quantizing(const onnx::Model& model) {
  std::size_t count = 0;
  model.graph().for_each_node(
      [&](const onnx::Node& node) { count += has_trait(node, onnx::trait::quantizes) ? 1 : 0; });
  return count;
}

class Verification {
 public:
  Verification(const runtime::Engine& engine, const onnx::Model& reference, const onnx::Model& candidate,
               const VerifyOptions& options)
      : engine_(engine),
        reference_(reference),
        candidate_(candidate),
        options_(options),
        seeds_(options.seeds == 0 ? usual_seeds : options.seeds),
        quantized_(options.may_be_narrower && count_of_quantizing(candidate) > count_of_quantizing(reference)),
        classifiers_(classifier_outputs(reference, options.judge_outputs)) {
    if (!options.labels.empty()) {
      report_.accuracy = report::LabelAccuracy{.output = output_for_labels(classifiers_)};
    }
    if (!options.may_be_narrower) return;
    reference_narrow_ = narrow_types(reference);
    candidate_narrow_ = narrow_types(candidate);
    if (options.candidate_kernels == runtime::OperatorKernels::functions) return;
    candidate.graph().for_each_node([&](const onnx::Node& node) {
      rounds_in_kernels_ =
          rounds_in_kernels_ ||
          (find_operator_for(node) && std::any_of(node.outputs.begin(), node.outputs.end(), [&](const auto* output) {
             return candidate_narrow_.contains(output);
           }));
    });
  }

  VerifyReport run() {
    if (!begin()) return std::move(report_);
    const std::size_t edges = options_.edge_values ? edge_inputs().size() : 0;
    const std::size_t total = options_.has_data() ? options_.run_count() : seeds_ + edges;
    const auto tell = [&](std::size_t done) {
      if (options_.progress) options_.progress("comparing outputs", done, total);
    };
    std::map<std::int64_t, RunRecord> recorded;
    if (options_.parts) {
      const SampleRange runs{.begin = 0, .end = static_cast<std::int64_t>(total)};
      recorded = read_records(options_.parts(runs), runs, report_.outputs.size(),
                              [&](std::int64_t done) { tell(static_cast<std::size_t>(done)); });
      describe_inputs(options_.inputs_of(0));
    }
    for (std::size_t run = 0; run < total; ++run) {
      const auto found = recorded.find(static_cast<std::int64_t>(run));
      const bool is_recorded = found != recorded.end() && !found->second.empty() && !has_doubts(found->second);
      RunRecord record = is_recorded ? std::move(found->second) : compare_run(run);
      for (std::size_t i = 0; i < record.size(); ++i) keep(report_.outputs[i], run, std::move(record[i]));
      report_.runs = run + 1;
      if (!options_.parts) tell(run + 1);
    }
    const bool all_paired =
        pairs_.size() == all_outputs(reference_).size() && pairs_.size() == all_outputs(candidate_).size();
    if (options_.across_formats && !all_paired) find_inside();
    const auto inputs_of = [&](std::size_t run) {
      return options_.has_data() ? options_.inputs_of(run) : synthetic_inputs_.at(run);
    };
    check_definitions(inputs_of);
    if (options_.finds_beyond_rounding && report_.verdict() == Verdict::same) {
      find_beyond_rounding(reference_options_, inputs_of);
    }
    if (options_.finds_unreached && report_.verdict() == Verdict::same) {
      report_.unreached =
          find_unreached(engine_, {.model = reference_, .options = reference_options_, .inputs_of = inputs_of},
                         {.model = candidate_,
                          .options = candidate_options_,
                          .inputs_of = [&](std::size_t run) { return renamed(inputs_of(run)); }},
                         report_.runs);
    }
    return std::move(report_);
  }

  /// Compares the outputs in a range of the runs with the caller's inputs, and returns the serialized records without
  /// noise floors. If two engines dispute a run, this run and the following ones have empty records.
  std::string run_part(SampleRange runs) {
    std::vector<RunRecord> records(static_cast<std::size_t>(runs.size()));
    const bool can_run = begin();
    try {
      for (std::size_t i = 0; can_run && i < records.size(); ++i) {
        const std::size_t run = static_cast<std::size_t>(runs.begin) + i;
        const runtime::TensorMap inputs = options_.inputs_of(run);
        if (i == 0) describe_inputs(inputs);
        records[i] =
            compare_outputs(inputs, compiled_reference_->run(inputs), compiled_candidate_->run(renamed(inputs)), false);
        if (options_.progress) options_.progress("comparing outputs", i + 1, records.size());
      }
    } catch (const Disputed&) {  // NOLINT(bugprone-empty-catch): the other process repeats the run
    }
    return format_records(runs.begin, records);
  }

 private:
  /// Pairs inputs and outputs and compiles both models. Returns false if the inputs do not correspond; the report is
  /// then complete.
  bool begin() {
    report_.ranges = options_.ranges;
    if (options_.checks_definitions) report_.own_definitions = find_own_definitions(reference_);
    inputs_ = pair_io(fed_inputs(reference_), fed_inputs(candidate_), "input", report_.problems);
    pairs_ = pair_io(all_outputs(reference_), all_outputs(candidate_), "output", report_.problems);
    const bool inputs_agree = check_inputs();
    const RandomValues reference_random = random_values(reference_);
    const RandomValues candidate_random = random_values(candidate_);
    for (const IoPair& pair : pairs_) {
      ComparedOutput& output = report_.outputs.emplace_back();
      output.reference.name = pair.reference->name;
      output.candidate.name = pair.candidate->name;
      output.is_declared_empty = is_declared_empty(*pair.reference);
      output.not_compared = why_not_compared(reference_random, *pair.reference, candidate_random, *pair.candidate);
    }
    if (!inputs_agree) return false;

    const bool rounds = std::any_of(pairs_.begin(), pairs_.end(), [&](const IoPair& pair) {
      return rounding_of_reference(*pair.reference, onnx::ElementType::f32) !=
             rounding_of_candidate(*pair.candidate, onnx::ElementType::f32);
    });
    for (const IoPair& pair : pairs_) find_choice(pair);
    find_suppression();
    std::set<std::string> extra_of_reference;
    std::set<std::string> extra_of_candidate;
    const auto add_extra = [](std::set<std::string>& names, const onnx::Value& value) {
      if (value.producer != nullptr && !value.is_output()) names.insert(value.name);
    };
    for (const auto& [output, judged] : choices_) add_extra(extra_of_reference, *judged.choice.scores);
    for (const std::string& name : suppression_ ? suppression_->inputs() : std::vector<std::string>{}) {
      add_extra(extra_of_reference, *reference_.graph().find_local(name));
      add_extra(extra_of_candidate, *candidate_.graph().find_local(name));
    }
    reference_options_ = {.kernels = options_.reference_kernels,
                          .extra_outputs = {extra_of_reference.begin(), extra_of_reference.end()},
                          .threads = options_.threads,
                          .round_inside = rounds};
    // OpenVINO compiles in one thread, so both models are compiled at the same time.
    candidate_options_ = {.kernels = options_.candidate_kernels,
                          .extra_outputs = {extra_of_candidate.begin(), extra_of_candidate.end()},
                          .threads = options_.threads,
                          .round_inside = rounds};
    std::future<std::unique_ptr<runtime::CompiledModel>> compiled_candidate =
        std::async(std::launch::async, [&] { return engine_.compile(candidate_, candidate_options_); });
    compiled_reference_ = engine_.compile(reference_, reference_options_);
    noisy_.emplace(engine_, reference_, reference_options_);
    if (const runtime::Engine* second = engine_.second()) {
      second_noisy_.emplace(*second, reference_, reference_options_, F64Noise::of_f32);
    }
    compiled_candidate_ = compiled_candidate.get();
    return true;
  }

  /// Runs both models with the inputs of a run, and returns the comparison of their outputs.
  RunRecord compare_run(std::size_t run) {
    runtime::TensorMap inputs;
    runtime::TensorMap expected;
    if (options_.has_data()) {
      inputs = options_.inputs_of(run);
      expected = compiled_reference_->run(inputs);
    } else {
      run_made_up(*compiled_reference_, run, inputs, expected);
      const bool is_kept =
          options_.finds_unreached || options_.finds_beyond_rounding || !report_.own_definitions.empty();
      if (is_kept) synthetic_inputs_.push_back(inputs);
    }
    if (run == 0 && !options_.parts) describe_inputs(inputs);
    const runtime::TensorMap found = compiled_candidate_->run(renamed(inputs));
    if (report_.accuracy) add_accuracy(expected, found);
    return compare_outputs(inputs, expected, found, true);
  }

  /// Counts the samples of a run for which each model decides for the class of the sample.
  void add_accuracy(const runtime::TensorMap& expected, const runtime::TensorMap& found) {
    report::LabelAccuracy& accuracy = *report_.accuracy;
    const auto pair =
        std::ranges::find_if(pairs_, [&](const IoPair& each) { return each.reference->name == accuracy.output; });
    if (pair == pairs_.end()) return;
    const std::span<const std::int64_t> labels =
        std::span(options_.labels)
            .subspan(std::min(options_.labels.size(), static_cast<std::size_t>(accuracy.samples)));
    const CountedLabels reference = count_correct(expected.at(pair->reference->name), labels);
    accuracy.reference_correct += reference.correct;
    accuracy.candidate_correct += count_correct(found.at(pair->candidate->name), labels).correct;
    accuracy.samples += reference.samples;
  }

  void describe_inputs(const runtime::TensorMap& inputs) {
    for (const IoPair& pair : inputs_) report_.inputs.push_back(input_text(pair, inputs));
  }

  /// Returns whether the noise floor must be measured for an output in this run: it exceeds its default tolerance, no
  /// other criterion judges it, and it has not failed in an earlier run.
  [[nodiscard]] bool is_doubtful(const ComparedOutput& output, const OutputRecord& record) const {
    return !options_.relative && !options_.absolute && !record.difference.equal() && record.choice.empty() &&
           !record.tolerance.snr_db && output.failed_runs == 0;
  }

  [[nodiscard]] bool has_doubts(const RunRecord& record) const {
    for (std::size_t i = 0; i < record.size(); ++i) {
      if (is_doubtful(report_.outputs[i], record[i])) return true;
    }
    return false;
  }

  /// Compares outputs of one model that the other model computes only as inner tensors, and adds them to the report.
  void find_inside() {
    VerifyOptions options = options_;
    options.seeds = seeds_;
    options.progress = {};
    // With the checked engine, compare_layers would compare the outputs again and call this function again.
    const LayerReport layers = compare_layers(engine_.unchecked(), reference_, candidate_, options);
    if (layers.runs != report_.runs) return;
    report_.problems = layers.problems;
    for (const ComparedLayer& layer : layers.layers) {
      const bool is_returned = reference_.graph().find_local(layer.reference.name)->is_output();
      if (!layer.is_output || (is_returned && candidate_.graph().find_local(layer.candidate.name)->is_output()))
        continue;
      ComparedOutput& output = report_.outputs.emplace_back();
      output.reference = layer.reference;
      output.candidate = layer.candidate;
      output.tolerance = layer.tolerance;
      output.worst = layer.difference;
      output.worst_run = layer.worst_run;
      output.floor = layer.floor;
      output.is_worst_lost = layer.is_worst_lost;
      output.failed_runs = layer.failed_runs;
      output.lost_runs = layer.lost_runs;
      output.compared = layer.compared;
      output.is_declared_empty = layer.is_declared_empty;
      if (layer.is_random) output.not_compared = layer.not_compared;
      output.note = fmt::format("an internal tensor of the {0}, which does not return it",
                                is_returned ? "candidate" : "reference");
      if (!layer.diagnosis.empty()) output.note += "; " + layer.diagnosis;
    }
  }

  /// Returns whether an f32 or f64 output is within its tolerance, but its differences are larger than those of single
  /// rounding errors. Returns false if the output has a wider tolerance for a reason such as a narrower type in one
  /// model, because the noise floor does not contain the rounding of that type.
  [[nodiscard]] bool may_be_beyond_rounding(const ComparedOutput& output) const {
    // The default tolerance is up to 1280 epsilons of f32. Smaller differences are up to 13 epsilons, which is about
    // the rounding error of single operations. They are ignored even if rounding changes nothing.
    constexpr double least_excess = 0.01;
    const onnx::Value* reference = reference_.graph().find_local(output.reference.name);
    const bool is_wide = reference != nullptr && reference->is_output() &&
                         (reference->type == onnx::ElementType::f32 || reference->type == onnx::ElementType::f64);
    return is_wide && output.not_compared.empty() && !output.floor && output.tolerance.why.empty() &&
           !output.worst.selection && output.worst.excess > least_excess;
  }

  /// Sets ComparedOutput::beyond_rounding of outputs whose difference in the worst run exceeds the noise floor of the
  /// reference. A floor that only a second engine could confirm is not used. f64 outputs get the noise of f32, because
  /// the candidate may compute them in f32.
  void find_beyond_rounding(const runtime::CompileOptions& options,
                            const std::function<runtime::TensorMap(std::size_t run)>& inputs_of) {
    if (options_.relative || options_.absolute || options_.snr_db) return;
    std::map<std::size_t, std::vector<ComparedOutput*>> by_run;
    for (ComparedOutput& output : report_.outputs) {
      if (may_be_beyond_rounding(output)) by_run[output.worst_run].push_back(&output);
    }
    NoisyModel noisy(engine_, reference_, options, F64Noise::of_f32);
    for (const auto& in_run : by_run) {
      const std::vector<ComparedOutput*>& outputs = in_run.second;
      std::map<std::string, NoiseFloor> floors;
      noisy.run(inputs_of(in_run.first), [&](const runtime::TensorMap& still, const runtime::TensorMap& moved) {
        for (const ComparedOutput* output : outputs) {
          const onnx::TensorData& before = still.at(output->reference.name);
          floors[output->reference.name].add(before, before, moved.at(output->reference.name));
        }
      });
      for (ComparedOutput* output : outputs) {
        const NoiseFloor& floor = floors[output->reference.name];
        if (floor.runs() == 0 || floor.is_suspect() || floor.has_unlimited()) continue;
        const double times = output->worst.max_absolute / floor.largest();
        if (times > NoiseFloor::factor) output->beyond_rounding = times;
      }
    }
  }

  /// Compares the function and the kernel of each operator in ComparedModels::own_definitions.
  void check_definitions(const std::function<runtime::TensorMap(std::size_t run)>& inputs_of) {
    if (report_.own_definitions.empty() || report_.runs == 0) return;
    compare_with_kernels(engine_.unchecked(), reference_, reference_options_, inputs_of(0), report_.own_definitions);
    for (const report::OwnDefinition& definition : report_.own_definitions) {
      if (definition.kernel != Verdict::different) continue;
      report_.problems.push_back(fmt::format("the function of {} in {} and its CPU kernel differ at {}", definition.op,
                                             definition.library, definition.note));
    }
  }

  bool check_inputs() {
    const std::size_t before = report_.problems.size();
    for (const IoPair& pair : inputs_) {
      if (!can_be_the_same(*pair.reference, *pair.candidate, options_.across_formats)) {
        report_.problems.push_back(fmt::format("input '{}' is {} in the reference and {} in the candidate",
                                               pair.reference->name, declared_text(*pair.reference),
                                               declared_text(*pair.candidate)));
      }
    }
    return report_.problems.size() == before && inputs_.size() == fed_inputs(reference_).size() &&
           inputs_.size() == fed_inputs(candidate_).size();
  }

  /// Returns the options for additional runs with inputs of zeros, and of negative, large and small numbers. Their
  /// first dimension is 3, unlike that of the other runs.
  static const std::vector<InputOptions>& edge_inputs() {
    static const std::vector<InputOptions> all{{.values = InputValues::zeros, .first_size = 3},
                                               {.values = InputValues::negative, .first_size = 3},
                                               {.scale = 30, .first_size = 3},
                                               {.scale = 1e-4, .first_size = 3}};
    return all;
  }

  void run_made_up(runtime::CompiledModel& reference, std::size_t run, runtime::TensorMap& inputs,
                   runtime::TensorMap& expected) {
    InputOptions options = options_.of_run(run < seeds_ ? InputOptions{.seed = run} : edge_inputs().at(run - seeds_));
    if (run > 0 && run < seeds_) options.large_integers = options_.large_integers;
    inputs = made_up_.inputs(reference, reference_, options, expected);
    report_.ranges = made_up_.narrowed(options_.ranges);
    report_.large_integers = made_up_.large_integers();
    report_.why_sizes = made_up_.why_sizes();
  }

  [[nodiscard]] std::string input_text(const IoPair& pair, const runtime::TensorMap& inputs) {
    const auto found = inputs.find(pair.reference->name);
    if (found == inputs.end()) {
      throw Error(fmt::format("{}: input '{}' has no value; provide one", reference_.source, pair.reference->name));
    }
    std::string text = fmt::format("{}: {}", pair.reference->name, found->second.type_and_shape());
    const auto order = options_.across_formats ? order_of_input(*pair.candidate, found->second.dims) : std::nullopt;
    if (order) text += fmt::format(", in the candidate [{}]", fmt::join(order->final_dims, ", "));
    is_exchanged_ = is_exchanged_ || order.has_value();
    return text;
  }

  [[nodiscard]] runtime::TensorMap renamed(const runtime::TensorMap& inputs) const {
    if (options_.across_formats) return inputs_for(inputs_, inputs);
    runtime::TensorMap result;
    for (const IoPair& pair : inputs_) {
      const auto found = inputs.find(pair.reference->name);
      if (found != inputs.end()) result[pair.candidate->name] = found->second;
    }
    return result;
  }

  [[nodiscard]] onnx::ElementType rounding_of_reference(const onnx::Value& value, onnx::ElementType own) const {
    return rounding_type(reference_narrow_, value, own);
  }
  [[nodiscard]] onnx::ElementType rounding_of_candidate(const onnx::Value& value, onnx::ElementType own) const {
    return rounding_type(candidate_narrow_, value, own);
  }

  void find_choice(const IoPair& pair) {
    if (!options_.may_be_narrower || options_.relative || options_.absolute) return;
    const auto judged =
        judged_choice(reference_, *pair.reference, reference_narrow_, candidate_narrow_, *pair.candidate, quantized_);
    if (judged) choices_.emplace(pair.reference->name, *judged);
  }

  /// Sets suppression_ if one of the models computes the inputs of the suppression in a narrower type or is quantized.
  void find_suppression() {
    if (!options_.may_be_narrower || options_.relative || options_.absolute || is_across_layouts()) return;
    suppression_ = SuppressionTail::find(reference_);
    if (!suppression_ || !suppression_->has_inputs(candidate_) || !suppression_->has_inputs(reference_)) {
      suppression_.reset();
      return;
    }
    const auto is_narrower = [&](const std::string& name) {
      return rounding_of_reference(*reference_.graph().find_local(name), onnx::ElementType::f32) !=
             rounding_of_candidate(*candidate_.graph().find_local(name), onnx::ElementType::f32);
    };
    if (!quantized_ && std::ranges::none_of(suppression_->inputs(), is_narrower)) suppression_.reset();
  }

  /// Returns whether an input of the candidate has its channels at another position.
  [[nodiscard]] bool is_across_layouts() const {
    return std::ranges::any_of(inputs_, [](const IoPair& pair) {
      return pair.reference->shape && pair.candidate->shape &&
             !can_be_the_same(*pair.reference->shape, *pair.candidate->shape);
    });
  }

  /// The tensors of an output in one run, and how they are compared.
  struct Compared {
    onnx::TensorData reference;  ///< The tensor of the reference in the candidate's order.
    const onnx::TensorData* candidate = nullptr;
    std::optional<Rearrangement> order;
    std::optional<NoiseFloor> floor;
  };

  /// Returns the tolerance of an output of a detector between results that are computed from the same inputs of the
  /// suppression, so that the rounding of these inputs does not count: a few roundings to the type in which the
  /// candidate computes the output. Integers must be equal.
  [[nodiscard]] Tolerance tolerance_after_suppression(const ComparedOutput& output, onnx::ElementType type) const {
    if (!is_floating_point(type)) return {};
    const onnx::Value* candidate = candidate_.graph().find_local(output.candidate.name);
    Tolerance tolerance = is_quantized(*candidate) ? tolerance_of(output, type)
                                                   : rewrite_tolerance(rounding_of_candidate(*candidate, type), false);
    tolerance.why =
        fmt::format("the reference computes it from the candidate's inputs of {}", suppression_->description());
    return tolerance;
  }

  /// Returns the candidate's inputs of the suppression if they agree with those of the reference, otherwise nothing.
  /// Sets `agreement` to their signal-to-noise ratios, for a message.
  [[nodiscard]] std::optional<runtime::TensorMap> agreeing_inputs(const runtime::TensorMap& inputs,
                                                                  const runtime::TensorMap& expected,
                                                                  const runtime::TensorMap& found,
                                                                  std::string& agreement) const {
    runtime::TensorMap before;
    for (const std::string& name : suppression_->inputs()) {
      const auto tensor_of = [&](const runtime::TensorMap& tensors) {
        const auto tensor = tensors.find(name);
        return tensor != tensors.end() ? &tensor->second : &inputs.at(name);
      };
      const onnx::TensorData& left = *tensor_of(expected);
      const onnx::TensorData& right = *tensor_of(found);
      const Difference difference = compare(left, right, tolerance_between(name, name, left.type));
      if (!difference.equal()) return std::nullopt;
      before.emplace(name, right);
      if (!is_floating_point(left.type)) continue;
      agreement += fmt::format("{}'{}' {}", agreement.empty() ? "" : ", ", name,
                               difference.snr_db ? fmt::format("SNR {:.1f} dB", *difference.snr_db) : "the same");
    }
    return before;
  }

  /// Judges the outputs of a detector by the results that the reference computes from the candidate's inputs of the
  /// suppression, if these inputs agree with those of the reference. If the candidate's outputs are these results, an
  /// output that differs from the reference's does so only because rounding changed the order of detections with nearly
  /// equal scores, or which of them is kept: it counts as the same. If they are not, an output that is within the
  /// tolerance of the network counts as different: a tolerance for the rounding of a whole network would hide a box
  /// that is moved by some pixels.
  void judge_detections(RunRecord& records, std::vector<Compared>& all, const runtime::TensorMap& inputs,
                        const runtime::TensorMap& expected, const runtime::TensorMap& found) {
    if (!suppression_) return;
    std::vector<std::size_t> outputs;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const ComparedOutput& output = report_.outputs[i];
      if (!suppression_->outputs().contains(output.reference.name) || !output.not_compared.empty()) continue;
      outputs.push_back(i);
    }
    std::string agreement;
    const auto before = agreeing_inputs(inputs, expected, found, agreement);
    if (!before) return;
    runtime::TensorMap computed;
    try {
      computed = suppression_->run(engine_.unchecked(), *before);
    } catch (const Error& error) {  // The outputs are then compared element by element.
      if (error.kind() == Error::Kind::internal) throw;
      return;
    }
    OutputNames names;
    runtime::TensorMap renamed_outputs;
    std::vector<Difference> differences;
    std::vector<Tolerance> tolerances;
    for (const std::size_t i : outputs) {
      const std::string& name = report_.outputs[i].reference.name;
      const onnx::TensorData& tensor = computed.at(name);
      tolerances.push_back(tolerance_after_suppression(report_.outputs[i], tensor.type));
      differences.push_back(compare(tensor, *all[i].candidate, tolerances.back()));
      names.insert(name);
      renamed_outputs.emplace(name, *all[i].candidate);
    }
    const bool is_computed = std::ranges::all_of(differences, [](const Difference& each) { return each.equal(); });
    const bool is_same = std::ranges::all_of(outputs, [&](std::size_t i) { return records[i].difference.equal(); });
    if (is_computed == is_same) return;
    const auto matched = match_detections(names, expected, renamed_outputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      OutputRecord& record = records[outputs[k]];
      if (record.difference.equal() == is_computed || differences[k].equal() != is_computed) continue;
      if (is_computed) {
        record.choice = fmt::format(
            "elements differ at the same index, because rounding changes the order of detections with nearly equal "
            "scores: the inputs of {} agree ({}), and from the candidate's inputs the reference computes the "
            "candidate's detections{}",
            suppression_->description(), agreement, matched ? "; " + matched->text() : "");
      } else {
        record.choice = fmt::format(
            "the inputs of {} agree ({}), but from the candidate's inputs the reference computes other detections",
            suppression_->description(), agreement);
        record.tolerance = tolerances[k];
      }
      record.difference = differences[k];
      all[outputs[k]].reference = computed.at(report_.outputs[outputs[k]].reference.name);
    }
  }

  /// Returns the tolerance of an output of type `type`. This is the caller's tolerance if one is set. Otherwise it is
  /// network_tolerance of the type if both models compute in the same types, and a wider tolerance if one model
  /// computes in a narrower type or is quantized.
  [[nodiscard]] Tolerance tolerance_of(const ComparedOutput& output, onnx::ElementType type) const {
    return tolerance_between(output.reference.name, output.candidate.name, type);
  }

  [[nodiscard]] Tolerance tolerance_between(const std::string& of_reference, const std::string& of_candidate,
                                            onnx::ElementType type) const {
    if (const auto given = given_tolerance(options_.relative, options_.absolute, options_.snr_db, type)) return *given;
    const onnx::Value* reference = reference_.graph().find_local(of_reference);
    const onnx::Value* candidate = candidate_.graph().find_local(of_candidate);
    const bool rounded = reference != nullptr && is_quantized(*reference);
    Tolerance tolerance = network_tolerance(type, rounded);
    if (reference == nullptr || candidate == nullptr) return tolerance;
    const onnx::ElementType left = rounding_of_reference(*reference, type);
    const onnx::ElementType right = rounding_of_candidate(*candidate, type);
    const bool kernels_round = rounds_in_kernels_ && bits_of(right) < bits_of(onnx::ElementType::f32);
    if (left == right && !quantized_ && !kernels_round) return tolerance;
    tolerance = output_tolerance(left, right, quantized_, rounded);
    tolerance.why = why_tolerance(type, left, right, quantized_);
    if (tolerance.why.empty() && kernels_round) {
      tolerance.why = fmt::format("the candidate's kernels compute it in {}", to_string(right));
    }
    return tolerance;
  }

  /// Compares the outputs of the reference (`expected`) and of the candidate (`found`) in a run. If `measures_floors`
  /// is false, outputs that exceed their tolerance count as different without a noise floor.
  RunRecord compare_outputs(const runtime::TensorMap& inputs, const runtime::TensorMap& expected,
                            const runtime::TensorMap& found, bool measures_floors) {
    RunRecord records;
    std::vector<Compared> all;
    for (const ComparedOutput& output : report_.outputs) {
      OutputRecord& record = records.emplace_back();
      Compared& compared = all.emplace_back();
      compared.reference = expected.at(output.reference.name);
      compared.candidate = &found.at(output.candidate.name);
      const onnx::TensorData& candidate = *compared.candidate;
      record.reference_type = compared.reference.type_and_shape();
      record.candidate_type = candidate.type_and_shape();
      compared.order = is_exchanged_ ? exchanged_output(compared.reference.dims, candidate.dims) : std::nullopt;
      if (compared.order) {
        compared.reference = rearrange(compared.reference, *compared.order);
        record.order = compared.order->text;
      }
      record.tolerance = tolerance_of(output, compared.reference.type);
      if (!output.not_compared.empty()) {
        record.difference = compare_ranks(compared.reference, candidate);
        continue;
      }
      record.difference = compare(compared.reference, candidate, record.tolerance);
      const auto judged = choices_.find(output.reference.name);
      if (judged == choices_.end() || record.difference.equal() || !record.difference.is_choice) continue;
      const onnx::TensorData& scores = judged->second.scores(inputs, expected);
      if (auto text = judge_choice(judged->second, scores, compared.reference, candidate, record.difference)) {
        record.choice = std::move(*text);
      }
    }
    judge_detections(records, all, inputs, expected, found);
    if (measures_floors) measure_floors(records, all, inputs);
    for (std::size_t i = 0; i < all.size(); ++i) complete(report_.outputs[i], records[i], all[i]);
    return records;
  }

  /// Compares only the ranks of two tensors that depend on random numbers, because even their sizes may be random.
  [[nodiscard]] static Difference compare_ranks(const onnx::TensorData& reference, const onnx::TensorData& candidate) {
    return reference.dims.size() == candidate.dims.size() ? Difference{} : compare(reference, candidate, {});
  }

  /// Measures the noise floor of the outputs that exceed their tolerance (is_doubtful), and judges them again. Outputs
  /// that failed in an earlier run are left out, because their verdict is final.
  void measure_floors(RunRecord& records, std::vector<Compared>& all, const runtime::TensorMap& inputs) {
    std::vector<DoubtfulTensor> doubtful;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const ComparedOutput& output = report_.outputs[i];
      Compared& compared = all[i];
      if (!is_doubtful(output, records[i])) continue;
      DoubtfulTensor& tensor = doubtful.emplace_back(DoubtfulTensor{.name = output.reference.name,
                                                                    .reference = &compared.reference,
                                                                    .candidate = compared.candidate,
                                                                    .tolerance = records[i].tolerance,
                                                                    .difference = &records[i].difference,
                                                                    .floor = &compared.floor});
      const onnx::Value* value = reference_.graph().find_local(output.reference.name);
      tensor.is_of_f64 = value != nullptr && depends_on_f64(*value);
      if (!compared.order) continue;
      tensor.arrange = [&order = *compared.order](const onnx::TensorData& drawn) {
        return drawn.dims.size() == order.dims.size() ? rearrange(drawn, order) : drawn;
      };
    }
    if (doubtful.empty()) return;
    const runtime::Engine* second = engine_.second();
    judge_by_noise(doubtful, draws_of(noisy_, inputs), draws_of(second_noisy_, inputs),
                   second == nullptr ? "" : second->name());
  }

  /// Completes the record of an output: compares the element types, and adds the summary of the noise floor, the
  /// signal-to-noise ratio and the other error measures.
  void complete(const ComparedOutput& output, OutputRecord& record, const Compared& compared) const {
    const onnx::TensorData& reference = compared.reference;
    const onnx::TensorData& candidate = *compared.candidate;
    Difference& difference = record.difference;
    // For random numbers only the type is compared.
    const bool may_differ = options_.may_be_narrower && output.not_compared.empty() &&
                            is_floating_point(reference.type) && is_floating_point(candidate.type);
    if (reference.type != candidate.type && !may_differ && difference.incomparable.empty()) {
      difference.incomparable = fmt::format("element types differ: {} in the reference, {} in the candidate",
                                            to_string(reference.type), to_string(candidate.type));
    }
    record.is_lost = difference.equal() && is_lost_in_noise(difference, compared.floor);
    record.floor = summary_of(compared.floor, difference);
    if (difference.incomparable.empty() && output.not_compared.empty() && reference.dims == candidate.dims) {
      record.figures =
          figures_of(output.reference.name, reference, candidate, classifiers_.contains(output.reference.name));
    }
  }

  /// Adds the record of a run to the report of an output. The difference of the worst run is kept.
  static void keep(ComparedOutput& output, std::size_t run, OutputRecord record) {
    Difference& difference = record.difference;
    output.tolerance = record.tolerance;
    if (!record.order.empty()) output.note = record.order;
    output.failed_runs += difference.equal() ? 0 : 1;
    output.lost_runs += record.is_lost ? 1 : 0;
    output.compared += difference.finite;
    if (record.figures) {
      if (run != 0) add_run(*record.figures, output.figures);
      output.figures = std::move(*record.figures);
    }
    if (run != 0 && !is_worse(difference, output.worst)) return;
    // Runs after a failed run do not measure floors; the floor of the failed run is still reported.
    if (output.failed_runs <= 1) output.floor = std::move(record.floor);
    output.is_worst_lost = record.is_lost;
    output.worst = std::move(difference);
    output.worst_run = run;
    if (!record.choice.empty()) output.note = std::move(record.choice);
    output.reference.type = std::move(record.reference_type);
    output.candidate.type = std::move(record.candidate_type);
  }

  const runtime::Engine& engine_;
  const onnx::Model& reference_;
  const onnx::Model& candidate_;
  const VerifyOptions& options_;
  std::size_t seeds_;
  bool quantized_;
  OutputNames classifiers_;  ///< The outputs of the reference whose figures count the rows with the same top-1.
  NarrowTypes reference_narrow_;
  NarrowTypes candidate_narrow_;
  /// Whether operators of the candidate run their own kernels and some of their tensors are f16 or bf16.
  bool rounds_in_kernels_ = false;
  std::vector<IoPair> inputs_;
  std::vector<IoPair> pairs_;  ///< The pairs of outputs.
  runtime::CompileOptions reference_options_;
  runtime::CompileOptions candidate_options_;
  std::unique_ptr<runtime::CompiledModel> compiled_reference_;
  std::unique_ptr<runtime::CompiledModel> compiled_candidate_;
  std::map<std::string, JudgedChoice> choices_;  ///< The judged indices, by the name of the reference's output.
  std::optional<SuppressionTail> suppression_;   ///< The end of a detector, if both models have its inputs.
  bool is_exchanged_ = false;  ///< Whether an input has its channel axis at another position in the candidate.
  std::optional<NoisyModel> noisy_;
  /// The reference with noise in the second engine, which confirms noise floors; empty if there is no second engine.
  std::optional<NoisyModel> second_noisy_;
  MadeUpInputs made_up_;
  /// The synthetic inputs of each run, which find_unreached, find_beyond_rounding and check_definitions use again;
  /// otherwise empty.
  std::vector<runtime::TensorMap> synthetic_inputs_;
  VerifyReport report_;
};

}  // namespace

void describe_comparison(report::ComparedModels& report, const onnx::Model& reference, const onnx::Model& candidate,
                         const VerifyOptions& options) {
  report.reference_file = reference.source;
  report.candidate_file = candidate.source;
  report.has_data = options.has_data();
  report.is_quantized_candidate = quantizes(candidate) && !quantizes(reference);
}

VerifyReport verify_models(const runtime::Engine& engine, const onnx::Model& reference, const onnx::Model& candidate,
                           const VerifyOptions& options) {
  const auto run = [&](const runtime::Engine& by) {
    try {
      return Verification(by, reference, candidate, options).run();
    } catch (const Disputed& disputed) {
      VerifyReport report;
      report.ranges = options.ranges;
      report.dispute = disputed.dispute();
      return report;
    }
  };
  VerifyReport report = run(engine);
  const runtime::Engine* checked = engine.checked();
  if (report.verdict() == Verdict::different && checked != nullptr && checked != &engine) report = run(*checked);
  describe_comparison(report, reference, candidate, options);
  return report;
}

std::string compare_part(const runtime::Engine& engine, const onnx::Model& reference, const onnx::Model& candidate,
                         SampleRange runs, const VerifyOptions& options) {
  if (runs.begin < 0 || runs.begin >= runs.end || static_cast<std::size_t>(runs.end) > options.run_count()) {
    throw Error(
        fmt::format("the part has the runs {} to {}, and the data are sufficient for {} runs here\nThe data must "
                    "be the same on all machines",
                    runs.begin, runs.end, options.run_count()));
  }
  return Verification(engine, reference, candidate, options).run_part(runs);
}

}  // namespace graft::verify
