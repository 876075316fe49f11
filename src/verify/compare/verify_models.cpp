// Pairs the inputs and outputs of two models, runs both, and keeps the worst run of each output.
#include "verify/compare/verify_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "graft/error.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "verify/compare/choices.hpp"
#include "verify/compare/ends.hpp"
#include "verify/compare/rearrangement.hpp"
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

/// Returns whether the shapes differ only in the position of the channels, first in one and last in the other.
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

/// Returns whether both values may have the same type and shape. With `across` (VerifyOptions::across_formats), inputs
/// are converted for the candidate, so that real types and the position of the channels may differ.
bool can_be_the_same(const onnx::Value& reference, const onnx::Value& candidate, bool across) {
  const bool are_real =
      reference.type && candidate.type && is_floating_point(*reference.type) && is_floating_point(*candidate.type);
  if (reference.type != candidate.type && !(across && are_real)) return false;
  if (!reference.shape || !candidate.shape) return true;
  return can_be_the_same(*reference.shape, *candidate.shape) ||
         (across && are_exchanged(*reference.shape, *candidate.shape));
}

/// Returns the number of nodes that round to 8 bits. A reference may already be quantized.
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
        quantized_(options.may_be_narrower && count_of_quantizing(candidate) > count_of_quantizing(reference)) {
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
    report_.ranges = options_.ranges;
    inputs_ = pair_io(fed_inputs(reference_), fed_inputs(candidate_), "input", report_.problems);
    const std::vector<IoPair> outputs =
        pair_io(all_outputs(reference_), all_outputs(candidate_), "output", report_.problems);
    const bool inputs_agree = check_inputs();
    const RandomValues reference_random = random_values(reference_);
    const RandomValues candidate_random = random_values(candidate_);
    for (const IoPair& pair : outputs) {
      ComparedOutput& output = report_.outputs.emplace_back();
      output.reference.name = pair.reference->name;
      output.candidate.name = pair.candidate->name;
      output.is_declared_empty = is_declared_empty(*pair.reference);
      output.not_compared = why_not_compared(reference_random, *pair.reference, candidate_random, *pair.candidate);
    }
    if (!inputs_agree) return std::move(report_);

    const bool rounds = std::any_of(outputs.begin(), outputs.end(), [&](const IoPair& pair) {
      return rounding_of_reference(*pair.reference, onnx::ElementType::f32) !=
             rounding_of_candidate(*pair.candidate, onnx::ElementType::f32);
    });
    for (const IoPair& pair : outputs) find_choice(pair);
    std::set<std::string> scores;
    for (const auto& [output, judged] : choices_) {
      const onnx::Value& value = *judged.choice.scores;
      if (value.producer != nullptr && !value.is_output()) scores.insert(value.name);
    }
    const runtime::CompileOptions cpu_options{.kernels = options_.reference_kernels,
                                              .extra_outputs = {scores.begin(), scores.end()},
                                              .threads = options_.threads,
                                              .round_inside = rounds};
    // OpenVINO compiles in one thread, so both models are compiled at the same time.
    const runtime::CompileOptions candidate_options{.kernels = options_.candidate_kernels,
                                                    .extra_outputs = {},
                                                    .threads = options_.threads,
                                                    .round_inside = rounds};
    std::future<std::unique_ptr<runtime::CompiledModel>> compiled_candidate =
        std::async(std::launch::async, [&] { return engine_.compile(candidate_, candidate_options); });
    const std::unique_ptr<runtime::CompiledModel> reference = engine_.compile(reference_, cpu_options);
    noisy_.emplace(engine_, reference_, cpu_options);
    if (const runtime::Engine* second = engine_.second()) {
      second_noisy_.emplace(*second, reference_, cpu_options, F64Noise::of_f32);
    }
    const std::unique_ptr<runtime::CompiledModel> candidate = compiled_candidate.get();
    const std::size_t edges = options_.edge_values ? edge_inputs().size() : 0;
    const std::size_t total = options_.data.empty() ? seeds_ + edges : options_.data.size();
    for (std::size_t run = 0; run < total; ++run) {
      runtime::TensorMap inputs;
      runtime::TensorMap expected;
      if (options_.data.empty()) {
        run_made_up(*reference, run, inputs, expected);
        if (options_.finds_unreached || options_.finds_beyond_rounding) synthetic_inputs_.push_back(inputs);
      } else {
        inputs = options_.data[run];
        expected = reference->run(inputs);
      }
      if (run == 0) {
        for (const IoPair& pair : inputs_) report_.inputs.push_back(input_text(pair, inputs));
      }
      compare_run(run, inputs, expected, candidate->run(renamed(inputs)));
      report_.runs = run + 1;
      if (options_.progress) options_.progress("comparing outputs", run + 1, total);
    }
    const bool all_paired =
        outputs.size() == all_outputs(reference_).size() && outputs.size() == all_outputs(candidate_).size();
    if (options_.across_formats && !all_paired) find_inside();
    const auto inputs_of = [&](std::size_t run) {
      return options_.data.empty() ? synthetic_inputs_.at(run) : options_.data[run];
    };
    if (options_.finds_beyond_rounding && report_.verdict() == Verdict::same) {
      find_beyond_rounding(cpu_options, inputs_of);
    }
    if (options_.finds_unreached && report_.verdict() == Verdict::same) {
      report_.unreached = find_unreached(engine_, {.model = reference_, .options = cpu_options, .inputs_of = inputs_of},
                                         {.model = candidate_,
                                          .options = candidate_options,
                                          .inputs_of = [&](std::size_t run) { return renamed(inputs_of(run)); }},
                                         report_.runs);
    }
    return std::move(report_);
  }

 private:
  /// Compares outputs that one of the models has only as inner tensors.
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

  /// Returns whether an output is the same by its tolerance alone, but may differ by more than rounding explains. A
  /// tolerance with a stated reason allows a narrower type, whose rounding is not part of the noise.
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

  /// Fills ComparedOutput::beyond_rounding. The floor of the worst run is measured, and it counts only if it needs no
  /// second engine to confirm it. The candidate may compute in f32 what is f64 in the reference, so f64 has the noise
  /// of f32.
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

  /// Returns the options for inputs of zeros, of negative, large and small numbers. Their first dimension differs from
  /// that of the other runs.
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

  /// Sets the tolerance of an output. If both models compute in the same narrow type, their results agree except for
  /// the order of sums, unless kernels of operators round: then the tolerance of the output's own type suffices.
  void set_tolerance(ComparedOutput& output, onnx::ElementType type) const {
    if (const auto given = given_tolerance(options_.relative, options_.absolute, options_.snr_db, type)) {
      output.tolerance = *given;
      return;
    }
    const onnx::Value* reference = reference_.graph().find_local(output.reference.name);
    const onnx::Value* candidate = candidate_.graph().find_local(output.candidate.name);
    const bool rounded = reference != nullptr && is_quantized(*reference);
    output.tolerance = network_tolerance(type, rounded);
    if (reference == nullptr || candidate == nullptr) return;
    const onnx::ElementType left = rounding_of_reference(*reference, type);
    const onnx::ElementType right = rounding_of_candidate(*candidate, type);
    const bool kernels_round = rounds_in_kernels_ && bits_of(right) < bits_of(onnx::ElementType::f32);
    if (left == right && !quantized_ && !kernels_round) return;
    output.tolerance = output_tolerance(left, right, quantized_, rounded);
    output.tolerance.why = why_tolerance(type, left, right, quantized_);
    if (output.tolerance.why.empty() && kernels_round) {
      output.tolerance.why = fmt::format("the candidate's kernels compute it in {}", to_string(right));
    }
  }

  /// The comparison of one output in one run.
  struct Compared {
    onnx::TensorData reference;  ///< The tensor of the reference in the candidate's order.
    std::string reference_type;
    std::optional<Rearrangement> order;
    std::optional<NoiseFloor> floor;
    Difference difference;
    std::string note;  ///< A note about indices that were judged by their scores.
  };

  void compare_run(std::size_t run, const runtime::TensorMap& inputs, const runtime::TensorMap& expected,
                   const runtime::TensorMap& found) {
    std::vector<Compared> all;
    for (ComparedOutput& output : report_.outputs) {
      Compared& compared = all.emplace_back();
      compared.reference = expected.at(output.reference.name);
      compared.reference_type = compared.reference.type_and_shape();
      const onnx::TensorData& candidate = found.at(output.candidate.name);
      compared.order = is_exchanged_ ? exchanged_output(compared.reference.dims, candidate.dims) : std::nullopt;
      if (compared.order) {
        compared.reference = rearrange(compared.reference, *compared.order);
        output.note = compared.order->text;
      }
      set_tolerance(output, compared.reference.type);
      if (!output.not_compared.empty()) {
        compared.difference = compare_ranks(compared.reference, candidate);
        continue;
      }
      compared.difference = compare(compared.reference, candidate, output.tolerance);
      const auto judged = choices_.find(output.reference.name);
      if (judged == choices_.end() || compared.difference.equal() || !compared.difference.is_choice) continue;
      const onnx::TensorData& scores = judged->second.scores(inputs, expected);
      if (auto text = judge_choice(judged->second, scores, compared.reference, candidate, compared.difference)) {
        compared.note = std::move(*text);
      }
    }
    measure_floors(all, found, inputs);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ComparedOutput& output = report_.outputs[i];
      keep(output, run, all[i], found.at(output.candidate.name));
    }
  }

  /// Compares random tensors, whose sizes may be random too, by their rank.
  [[nodiscard]] static Difference compare_ranks(const onnx::TensorData& reference, const onnx::TensorData& candidate) {
    return reference.dims.size() == candidate.dims.size() ? Difference{} : compare(reference, candidate, {});
  }

  /// Measures the noise floor of outputs that exceed their tolerance. After an output failed in one run, further floors
  /// do not change the verdict.
  void measure_floors(std::vector<Compared>& all, const runtime::TensorMap& found, const runtime::TensorMap& inputs) {
    if (options_.relative || options_.absolute) return;
    std::vector<DoubtfulTensor> doubtful;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const ComparedOutput& output = report_.outputs[i];
      Compared& compared = all[i];
      if (compared.difference.equal() || !compared.note.empty() || output.tolerance.snr_db || output.failed_runs != 0)
        continue;
      DoubtfulTensor& tensor = doubtful.emplace_back(DoubtfulTensor{.name = output.reference.name,
                                                                    .reference = &compared.reference,
                                                                    .candidate = &found.at(output.candidate.name),
                                                                    .tolerance = output.tolerance,
                                                                    .difference = &compared.difference,
                                                                    .floor = &compared.floor});
      const onnx::Value* value = reference_.graph().find_local(output.reference.name);
      tensor.is_of_f64 = value != nullptr && depends_on_f64(*value);
      if (!compared.order) continue;
      tensor.arrange = [&order = *compared.order](const onnx::TensorData& drawn) {
        return drawn.dims.size() == order.dims.size() ? rearrange(drawn, order) : drawn;
      };
    }
    const runtime::Engine* second = engine_.second();
    judge_by_noise(doubtful, draws_of(noisy_, inputs), draws_of(second_noisy_, inputs),
                   second == nullptr ? "" : second->name());
  }

  void keep(ComparedOutput& output, std::size_t run, Compared& compared, const onnx::TensorData& candidate) const {
    const onnx::TensorData& reference = compared.reference;
    Difference& difference = compared.difference;
    // For random numbers only the type is compared.
    const bool may_differ = options_.may_be_narrower && output.not_compared.empty() &&
                            is_floating_point(reference.type) && is_floating_point(candidate.type);
    if (reference.type != candidate.type && !may_differ && difference.incomparable.empty()) {
      difference.incomparable = fmt::format("element types differ: {} in the reference, {} in the candidate",
                                            to_string(reference.type), to_string(candidate.type));
    }
    const bool is_lost = difference.equal() && is_lost_in_noise(difference, compared.floor);
    output.failed_runs += difference.equal() ? 0 : 1;
    output.lost_runs += is_lost ? 1 : 0;
    output.compared += difference.finite;
    if (difference.incomparable.empty() && output.not_compared.empty() && reference.dims == candidate.dims) {
      OutputFigures figures = figures_of(output.reference.name, reference, candidate);
      if (run != 0) add_run(figures, output.figures);
      output.figures = std::move(figures);
    }
    if (run != 0 && !is_worse(difference, output.worst)) return;
    // Runs after a failed run do not measure floors; the floor of the failed run is still reported.
    if (output.failed_runs <= 1) output.floor = summary_of(compared.floor, difference);
    output.is_worst_lost = is_lost;
    output.worst = std::move(difference);
    output.worst_run = run;
    if (!compared.note.empty()) output.note = std::move(compared.note);
    output.reference.type = compared.reference_type;
    output.candidate.type = candidate.type_and_shape();
  }

  const runtime::Engine& engine_;
  const onnx::Model& reference_;
  const onnx::Model& candidate_;
  const VerifyOptions& options_;
  std::size_t seeds_;
  bool quantized_;
  NarrowTypes reference_narrow_;
  NarrowTypes candidate_narrow_;
  /// Whether operators of the candidate run their own kernels, some of them in f16 or bf16.
  bool rounds_in_kernels_ = false;
  std::vector<IoPair> inputs_;
  std::map<std::string, JudgedChoice> choices_;  ///< The judged indices, by the name of the reference's output.
  bool is_exchanged_ = false;  ///< Whether an input has its channel axis at another position in the candidate.
  std::optional<NoisyModel> noisy_;
  /// The noisy model in the second engine, which confirms floors; empty without a second engine.
  std::optional<NoisyModel> second_noisy_;
  MadeUpInputs made_up_;
  /// The inputs of each run, if find_unreached or find_beyond_rounding needs them.
  std::vector<runtime::TensorMap> synthetic_inputs_;
  VerifyReport report_;
};

}  // namespace

void describe_comparison(report::ComparedModels& report, const onnx::Model& reference, const onnx::Model& candidate,
                         const VerifyOptions& options) {
  report.reference_file = reference.source;
  report.candidate_file = candidate.source;
  report.has_data = !options.data.empty();
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

}  // namespace graft::verify
