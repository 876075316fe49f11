// Runs both engines, compares their results as verify_models does, and finds the node at which they differ by comparing
// layers.
#include "verify/judge/judges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/comparison_text.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/shape_inference.hpp"
#include "runtime/answer.hpp"
#include "runtime/engine_limit.hpp"
#include "runtime/keeps_outputs.hpp"
#include "verify/compare/compare.hpp"
#include "verify/inputs/random_values.hpp"
#include "verify/judge/dispute.hpp"
#include "verify/judge/known_faults.hpp"
#include "verify/judge/noisy_model.hpp"
#include "verify/judge/repeats.hpp"
#include "verify/localize/layers.hpp"

namespace graft::verify {
namespace {

/// An engine that runs marked models in the second engine and all other models in the first, so that a comparison of a
/// model with its marked copy compares the two engines.
class SplitEngine final : public runtime::Engine {
 public:
  /// The metadata key that marks a model, or a region that was extracted from it, for the second engine.
  static constexpr auto mark = "graft.second_engine";

  SplitEngine(const runtime::Engine& first, const runtime::Engine& second) : first_(first), second_(second) {}

  using runtime::Engine::compile;
  [[nodiscard]] std::string_view name() const override { return first_.name(); }
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& model,
                                                                const runtime::CompileOptions& options) const override {
    return engine_for(model).compile(model, options);
  }
  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    return engine_for(model).evaluate_constant_graph(model);
  }

 private:
  [[nodiscard]] const runtime::Engine& engine_for(const onnx::Model& model) const {
    return model.metadata.contains(mark) ? second_ : first_;
  }

  const runtime::Engine& first_;
  const runtime::Engine& second_;
};

bool has_finite_numbers_alone(const runtime::TensorMap& inputs) {
  for (const auto& [name, tensor] : inputs) {
    if (!is_floating_point(tensor.type)) continue;
    const std::optional<std::vector<double>> numbers = tensor.numbers();
    for (const double number : numbers.value_or(std::vector<double>{})) {
      if (!std::isfinite(number)) return false;
    }
  }
  return true;
}

/// The absolute tolerance for results close to 0. Engines compute functions accurately relative to 1, not relative to
/// the result: ONNX Runtime computes Elu near 0 as exp(x) - 1, and OpenVINO computes Erf(1e-15) as 0. A real fault of
/// an engine also affects larger values.
constexpr double near_zero = 4 * 0x1p-23;

/// A model that both engines have compiled, with what is needed to compare their results.
struct JudgedModel {
  const runtime::Engine& first;
  const runtime::Engine& second;
  JudgesOptions judges;
  onnx::Model model;
  runtime::CompileOptions options;

  JudgedModel(const runtime::Engine& one, const runtime::Engine& other, JudgesOptions given_judges,
              const onnx::Model& given, runtime::CompileOptions given_options)
      : first(one),
        second(other),
        judges(std::move(given_judges)),
        model(given.clone()),
        options(std::move(given_options)) {
    options.extra_outputs.clear();
    const RandomValues random = random_values(model);
    const NarrowTypes narrow = narrow_types(model);
    const bool quantized = quantizes(model);
    for (const onnx::Value* output : model.graph().outputs()) {
      if (random.contains(output)) continue;
      const onnx::ElementType own = output->type.value_or(onnx::ElementType::f32);
      const onnx::ElementType rounded = rounding_type(narrow, *output, own);
      Tolerance tolerance = rounded == own && !quantized
                                ? network_tolerance(own, is_quantized(*output))
                                : output_tolerance(rounded, rounded, quantized, is_quantized(*output));
      if (is_floating_point(own)) tolerance.absolute = std::max(tolerance.absolute, near_zero);
      tolerances_.emplace(output->name, tolerance);
    }
  }

  /// Throws Disputed if the outputs of the first engine (`expected`) and of the second (`found`) differ by more than
  /// rounding explains.
  void compare_results(const runtime::TensorMap& inputs, const runtime::TensorMap& expected,
                       const runtime::TensorMap& found) const {
    std::map<std::string, Difference> different = differences(inputs, expected, found);
    if (different.empty()) return;
    std::map<std::string, std::optional<NoiseFloor>> floors;
    std::vector<DoubtfulTensor> doubtful;
    for (auto& [name, difference] : different) {
      doubtful.push_back({.name = name,
                          .reference = &expected.at(name),
                          .candidate = &found.at(name),
                          .tolerance = tolerances_.at(name),
                          .difference = &difference,
                          .floor = &floors[name]});
    }
    const auto run_draws_in = [&](const runtime::Engine& engine) -> RunDraws {
      return [&](const std::vector<DoubtfulTensor>& /*all outputs are in each draw*/, const LookAtDraw& look) {
        NoisyModel(engine, model, options, F64Noise::of_f32).run(inputs, look);
      };
    };
    judge_by_noise(doubtful, run_draws_in(first), run_draws_in(second), second.name());
    for (const auto& [name, difference] : different) {
      const std::optional<NoiseFloor>& floor = floors.at(name);
      // A floor that the second engine did not confirm may come from a fault of the first engine.
      const bool is_explained = difference.equal() && !(floor && needs_confirmation(difference, *floor));
      if (is_explained || is_of_infinite_inputs(inputs, difference)) continue;
      throw Disputed(dispute_of(inputs, name, difference));
    }
  }

 private:
  [[nodiscard]] std::map<std::string, Difference> differences(const runtime::TensorMap& inputs,
                                                              const runtime::TensorMap& expected,
                                                              const runtime::TensorMap& found) const {
    std::map<std::string, Difference> different;
    for (const auto& [name, tolerance] : tolerances_) {
      Difference difference = compare(expected.at(name), found.at(name), tolerance);
      if (difference.equal() || is_of_infinite_inputs(inputs, difference)) continue;
      different.emplace(name, std::move(difference));
    }
    return different;
  }

  /// Returns whether the inputs contain NaN or infinities and the outputs differ only in NaN and infinities. ONNX does
  /// not specify these results, and runtimes differ.
  static bool is_of_infinite_inputs(const runtime::TensorMap& inputs, const Difference& difference) {
    const std::int64_t apart = difference.nan_disagreements + difference.infinity_disagreements;
    return difference.incomparable.empty() && difference.mismatched == apart && !has_finite_numbers_alone(inputs);
  }

  [[nodiscard]] Dispute dispute_of(const runtime::TensorMap& inputs, const std::string& output,
                                   const Difference& difference) const {
    Dispute dispute{.model = model.source,
                    .first = std::string(first.name()),
                    .second = std::string(second.name()),
                    .output = output,
                    .node = {},
                    .tensor = {},
                    .difference = text_of(difference)};
    onnx::Model marked = model.clone();
    marked.metadata[SplitEngine::mark] = "";
    try {
      const LayerReport report =
          compare_layers(SplitEngine(first, second), model, marked, {.data = {inputs}, .threads = options.threads});
      const ComparedLayer* layer = report.first ? &report.layers[report.first->layer] : report.first_different();
      if (layer != nullptr) {
        dispute.node = layer->reference_node;
        dispute.tensor = layer->reference.name;
        // A fault that depends on the surrounding nodes does not occur when the node runs alone.
        dispute.difference = text_of(layer->local && !layer->local->equal() ? *layer->local : layer->difference);
      }
    } catch (const Error& refused) {
      // If an inner tensor cannot be returned, the node is not known, but the dispute remains.
      if (refused.kind() == Error::Kind::internal) throw;
    }
    dispute.known_fault = known_fault(dispute.tensor);
    return dispute;
  }

  /// Returns a difference as text, with the names of the engines in place of "the reference" and "the candidate".
  [[nodiscard]] std::string text_of(const Difference& difference) const {
    std::string text = difference_text(difference);
    const auto replace_all = [&](std::string_view side, std::string_view engine) {
      for (std::size_t at = text.find(side); at != std::string::npos; at = text.find(side, at + engine.size()))
        text.replace(at, side.size(), engine);
    };
    replace_all("the reference", first.name());
    replace_all("the candidate", second.name());
    return text;
  }

  /// Returns a description of the known fault of the node that computes the tensor `tensor` or, if no node of the main
  /// graph computes it, of the whole model; empty if no fault is known.
  [[nodiscard]] std::string known_fault(const std::string& tensor) const {
    onnx::Model inferred = model.clone();
    infer_shapes(inferred);
    const onnx::Value* value = inferred.graph().find_local(tensor);
    const onnx::Node* node = value == nullptr ? nullptr : value->producer;
    for (const std::string& engine : {judges.first_in_table, judges.second_in_table}) {
      std::string fault = node != nullptr ? judges.faults->of(*node, engine) : judges.faults->of(model, engine);
      if (!fault.empty()) return fault;
    }
    return "";
  }

  std::map<std::string, Tolerance> tolerances_;  ///< The tolerances of the compared outputs, by name.
};

/// A model that both engines have compiled. A run uses both in parallel, returns the outputs of the first, and throws
/// Disputed if those of the second differ. If `is_sampled` is set, only the first run is compared.
class CheckedModel final : public runtime::CompiledModel {
 public:
  CheckedModel(std::shared_ptr<const JudgedModel> judged, std::unique_ptr<runtime::CompiledModel> first,
               std::unique_ptr<runtime::CompiledModel> second, std::shared_ptr<std::atomic<bool>> is_sampled)
      : judged_(std::move(judged)),
        first_(std::move(first)),
        second_(std::move(second)),
        is_sampled_(std::move(is_sampled)) {}

  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> new_request() const override {
    return std::make_unique<CheckedModel>(judged_, first_->new_request(), second_->new_request(), is_sampled_);
  }

  using runtime::CompiledModel::run;
  void run(const runtime::TensorMap& inputs,
           const std::function<void(const runtime::TensorMap& outputs)>& look) override {
    if (is_sampled_ && is_sampled_->load()) return first_->run(inputs, look);
    std::future<std::optional<runtime::TensorMap>> second =
        std::async(std::launch::async, [&] { return run_second(inputs); });
    std::optional<runtime::TensorMap> found;
    first_->run(inputs, [&](const runtime::TensorMap& outputs) {
      found = second.get();
      if (found) judged_->compare_results(inputs, outputs, *found);
      if (is_sampled_) is_sampled_->store(true);
      look(outputs);
    });
  }

 private:
  /// Returns the outputs of the second engine, or nothing if it refuses these inputs.
  [[nodiscard]] std::optional<runtime::TensorMap> run_second(const runtime::TensorMap& inputs) const {
    try {
      return second_->run(inputs);
    } catch (const Error& refused) {
      if (refused.kind() != Error::Kind::bad_input) throw;
      return std::nullopt;
    }
  }

  std::shared_ptr<const JudgedModel> judged_;
  std::unique_ptr<runtime::CompiledModel> first_;
  std::unique_ptr<runtime::CompiledModel> second_;
  /// Whether the first run was compared already, shared by all requests for one model. Null if all runs are compared.
  std::shared_ptr<std::atomic<bool>> is_sampled_;
};

/// Calls `function`, which uses the second engine, and returns its result. If it throws an Error for bad input, adds
/// `fault_of_first`, the reason why the first engine is not used, to the message.
template <class Function>
auto by_second_alone(const std::string& fault_of_first, const Function& function) {
  try {
    return function();
  } catch (const Error& refused) {
    if (refused.kind() != Error::Kind::bad_input) throw;
    throw Error(
        fmt::format("{}\nThe other CPU engine was not used, because the model has {}", refused.what(), fault_of_first));
  }
}

/// Returns the message of a refusal without the prefix that names the model and the engine.
std::string own_words(const Error& refused, const onnx::Model& model) {
  std::string text = refused.what();
  const std::string before = fmt::format("{}: the CPU engine cannot compile this model: ", model.source);
  if (!text.starts_with(before)) return text;
  const std::size_t engine_end = text.find(": ", before.size());
  return engine_end == std::string::npos ? text.substr(before.size()) : text.substr(engine_end + 2);
}

/// Returns the FNV-1a hash of the operators and output names of a model. It is the same in every process.
std::uint64_t fingerprint(const onnx::Model& model) {
  std::uint64_t hash = 14695981039346656037U;
  const auto add = [&](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  };
  model.graph().for_each_node([&](const onnx::Node& node) {
    add(node.op_type);
    for (const onnx::Value* output : node.outputs) {
      if (output != nullptr) add(output->name);
    }
  });
  constexpr std::uint64_t high_half = 32;  // The low bits depend only on the last letters.
  return hash >> high_half;
}

/// A compiled model that reports which engine runs it (HasAnswer). If this engine throws runtime::EngineLimit, because
/// it contradicts itself or cannot compute the inputs, another engine compiles the model and makes this run and all
/// later runs.
class AnsweringModel final : public runtime::CompiledModel, public runtime::KeepsOutputs, public runtime::HasAnswer {
 public:
  struct Replacement {
    std::unique_ptr<runtime::CompiledModel> model;
    runtime::Answer answer;
  };
  using Replace = std::function<Replacement(const runtime::EngineLimit& why)>;

  /// The state that all requests for one model share, including the model in the other engine once it has been
  /// compiled.
  struct Shared {
    Replace replace;
    std::mutex mutex;
    std::unique_ptr<runtime::CompiledModel> replaced_by;  ///< The replacement; null until it is needed.
    runtime::Answer answer;
  };

  AnsweringModel(std::shared_ptr<Shared> shared, std::unique_ptr<runtime::CompiledModel> model)
      : shared_(std::move(shared)), model_(std::move(model)) {}

  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> new_request() const override {
    return std::make_unique<AnsweringModel>(shared_, model_->new_request());
  }

  using runtime::CompiledModel::run;
  void run(const runtime::TensorMap& inputs,
           const std::function<void(const runtime::TensorMap& outputs)>& look) override {
    by_trusted<void>([&](runtime::CompiledModel& model) { model.run(inputs, look); });
  }

  [[nodiscard]] runtime::TensorMap run_and_keep(const runtime::TensorMap& inputs) override {
    return by_trusted<runtime::TensorMap>([&](runtime::CompiledModel& model) {
      auto* keeps = dynamic_cast<runtime::KeepsOutputs*>(&model);
      return keeps != nullptr ? keeps->run_and_keep(inputs) : model.run(inputs);
    });
  }

  [[nodiscard]] runtime::Answer answer() const override {
    const std::scoped_lock lock(shared_->mutex);
    return shared_->answer;
  }

 private:
  template <class Result, class Run>
  Result by_trusted(const Run& run) {
    follow();
    try {
      return run(*model_);
    } catch (const runtime::EngineLimit& limit) {
      replace(limit);
    }
    return run(*model_);
  }

  void replace(const runtime::EngineLimit& limit) {
    {
      const std::scoped_lock lock(shared_->mutex);
      if (shared_->replaced_by == nullptr) {
        Replacement replacement = shared_->replace(limit);
        shared_->replaced_by = std::move(replacement.model);
        shared_->answer = std::move(replacement.answer);
      }
    }
    follow();
  }

  /// If another request for the same model has switched to the second engine, makes this request use the second engine
  /// too.
  void follow() {
    const std::scoped_lock lock(shared_->mutex);
    if (is_replaced_ || shared_->replaced_by == nullptr) return;
    model_ = shared_->replaced_by->new_request();
    is_replaced_ = true;
  }

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<runtime::CompiledModel> model_;
  bool is_replaced_ = false;
};

/// Returns the member `rewritten` of a compiled model's Answer; empty if it has no Answer.
std::string rewritten_by(const runtime::CompiledModel& compiled) { return answer_of(compiled, "").rewritten; }

class TwoJudges final : public Judges {
 public:
  TwoJudges(const runtime::Engine& first, const runtime::Engine& second, const JudgesOptions& options,
            std::unique_ptr<TwoJudges> unchecked, std::unique_ptr<TwoJudges> checked)
      : first_(first),
        second_(second),
        options_(options),
        unchecked_(std::move(unchecked)),
        checked_(std::move(checked)) {}

  using runtime::Engine::compile;
  [[nodiscard]] std::string_view name() const override {
    if (!asks_always()) return has_first() ? first_.name() : second_.name();
    const std::scoped_lock lock(mutex_);
    if (name_.empty()) name_ = fmt::format("{} and {}", first_.name(), second_.name());
    return name_;
  }
  [[nodiscard]] bool can_run() const override { return has_first() ? first_.can_run() : second_.can_run(); }
  [[nodiscard]] const runtime::Engine* checked() const override {
    if (asks_always()) return this;
    return checked_ != nullptr && has_first() && has_second() ? checked_.get() : nullptr;
  }
  [[nodiscard]] const runtime::Engine& unchecked() const override { return unchecked_ ? *unchecked_ : *this; }
  [[nodiscard]] const runtime::Engine* second() const override {
    return has_first() && has_second() ? &second_ : nullptr;
  }

  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& model,
                                                                const runtime::CompileOptions& options) const override {
    const Faults faults = faults_of(model);
    const bool has_functions = options.kernels == runtime::OperatorKernels::functions;
    if (!has_first()) return compile_by_second(model, options, why_no_first_);
    if (faults.of_first_alone() && has_functions && has_second()) {
      return by_second_alone(faults.first, [&] {
        return compile_by_second(model, options, fmt::format("the model has {}", faults.first));
      });
    }
    std::unique_ptr<runtime::CompiledModel> compiled;
    try {
      compiled = first_.compile(model, options);
    } catch (const Error& refused) {
      if (refused.kind() != Error::Kind::bad_input || !faults.second.empty() || !has_second()) throw;
      try {
        return compile_by_second(model, options,
                                 fmt::format("{} refuses the model: {}", first_.name(), own_words(refused, model)));
      } catch (const Error& refused_too) {
        if (refused_too.kind() != Error::Kind::bad_input) throw;
      }
      throw;
    }
    const bool is_comparable = has_functions && faults.of_one_alone().empty();
    const bool is_checked =
        is_comparable && (asks_always() || (!options.round_inside && is_sample(model, options, faults)));
    std::string rewritten = rewritten_by(*compiled);
    if (!is_checked || !has_second()) return answering(std::move(compiled), model, options, std::move(rewritten));
    try {
      std::unique_ptr<runtime::CompiledModel> other = second_.compile(model, options);
      if (const std::string by_second = asks_always() ? rewritten_by(*other) : ""; !by_second.empty()) {
        rewritten += rewritten.empty() ? by_second : "; " + by_second;
      }
      return answering(
          std::make_unique<CheckedModel>(std::make_shared<const JudgedModel>(first_, second_, options_, model, options),
                                         std::move(compiled), std::move(other),
                                         asks_always() ? nullptr : std::make_shared<std::atomic<bool>>(false)),
          model, options, std::move(rewritten));
    } catch (const Error& refused) {
      if (refused.kind() != Error::Kind::bad_input) throw;
      // Only this engine supports the model.
      return answering(std::move(compiled), model, options, std::move(rewritten));
    }
  }

  /// Returns the outputs of a constant graph, by name. If both engines compute it and their results differ, throws
  /// Error, so that the graph is not folded into a constant.
  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    const Faults faults = faults_of(model);
    if (!has_first()) return second_.evaluate_constant_graph(model);
    if (faults.of_first_alone() && has_second()) {
      return by_second_alone(faults.first, [&] { return second_.evaluate_constant_graph(model); });
    }
    runtime::TensorMap expected = first_.evaluate_constant_graph(model);
    if (!asks_always() || faults.of_second_alone() || !has_second()) return expected;
    runtime::TensorMap found;
    try {
      found = second_.evaluate_constant_graph(model);
    } catch (const Error& refused) {
      if (refused.kind() != Error::Kind::bad_input) throw;
      return expected;
    }
    try {
      JudgedModel(first_, second_, options_, model, {}).compare_results({}, expected, found);
    } catch (const Disputed& disputed) {
      throw Error(disputed.what());
    }
    return expected;
  }

  [[nodiscard]] std::string left_out(const onnx::Model& model) const override {
    const Faults faults = faults_of(model);
    if (faults.first.empty() && faults.second.empty()) return "";
    if (!has_second()) {
      if (faults.first.empty()) return "";
      return fmt::format("{} runs {} although the model has {}, because {} is not installed", options_.first_in_table,
                         model.source, faults.first, options_.second_in_table);
    }
    if (faults.of_both()) {
      return fmt::format("{} and {} are compared where both run {}, because the model has {}, and {}",
                         options_.first_in_table, options_.second_in_table, model.source, faults.first, faults.second);
    }
    return fmt::format("{} is not used for {}, because the model has {}",
                       faults.of_first_alone() ? options_.first_in_table : options_.second_in_table, model.source,
                       faults.of_one_alone());
  }

 private:
  /// Descriptions of the known faults of the first and of the second engine in a model; empty for an engine without
  /// known faults.
  struct Faults {
    std::string first;
    std::string second;
    [[nodiscard]] bool of_first_alone() const { return !first.empty() && second.empty(); }
    [[nodiscard]] bool of_second_alone() const { return first.empty() && !second.empty(); }
    [[nodiscard]] bool of_both() const { return !first.empty() && !second.empty(); }
    [[nodiscard]] std::string of_one_alone() const { return of_both() ? "" : first + second; }
  };

  [[nodiscard]] Faults faults_of(const onnx::Model& model) const {
    const std::array<std::string_view, 2> engines{options_.first_in_table, options_.second_in_table};
    std::vector<std::string> faults = options_.faults->of(model, engines);
    return {.first = std::move(faults[0]), .second = std::move(faults[1])};
  }

  [[nodiscard]] bool asks_always() const { return options_.second == JudgesOptions::Asked::always; }

  [[nodiscard]] bool is_sample(const onnx::Model& model, const runtime::CompileOptions& options,
                               const Faults& faults) const {
    if (options_.second == JudgesOptions::Asked::never || !options.extra_outputs.empty()) return false;
    const bool is_large =
        options_.sampled_nodes != 0 && (model.graph().node_count() >= options_.sampled_nodes || faults.of_both());
    return is_large || (options_.sampled_share != 0 && fingerprint(model) % options_.sampled_share == 0);
  }

  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile_by_second(const onnx::Model& model,
                                                                          const runtime::CompileOptions& options,
                                                                          const std::string& why) const {
    auto shared = std::make_shared<AnsweringModel::Shared>();
    std::unique_ptr<runtime::CompiledModel> compiled = second_.compile(model, options);
    shared->answer = {.engine = std::string(second_.name()), .reason = why, .rewritten = rewritten_by(*compiled)};
    shared->replace = [](const runtime::EngineLimit& limit) -> AnsweringModel::Replacement { throw limit; };
    return std::make_unique<AnsweringModel>(std::move(shared), std::move(compiled));
  }

  /// Returns `compiled`, the model compiled by the first engine, in a wrapper that switches to the second engine if the
  /// first throws runtime::EngineLimit.
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> answering(std::unique_ptr<runtime::CompiledModel> compiled,
                                                                  const onnx::Model& model,
                                                                  const runtime::CompileOptions& options,
                                                                  std::string rewritten) const {
    auto shared = std::make_shared<AnsweringModel::Shared>();
    shared->answer = {.engine = std::string(name()), .reason = "", .rewritten = std::move(rewritten)};
    const auto kept = std::make_shared<const onnx::Model>(model.clone());
    shared->replace = [this, kept, options](const runtime::EngineLimit& limit) -> AnsweringModel::Replacement {
      if (asks_always()) {
        throw Error(fmt::format("{}\nBoth engines were requested, and only one can compute the model: set {} to {}",
                                limit.what(), setting_name(Setting::cpu_engine), "onnxruntime"));
      }
      if (!has_second()) {
        throw runtime::EngineLimit(
            fmt::format("{}\nInstall {}, which then computes the model", limit.what(), options_.second_in_table));
      }
      return {.model = second_.compile(*kept, options),
              .answer = {.engine = std::string(second_.name()), .reason = limit.what()}};
    };
    return std::make_unique<AnsweringModel>(std::move(shared), std::move(compiled));
  }

  /// Returns whether the first engine can be used. With Asked::always, returns true even if it is not installed, so
  /// that its use reports the error.
  [[nodiscard]] bool has_first() const { return asks_always() || is_there(first_, has_first_, &why_no_first_); }
  [[nodiscard]] bool has_second() const { return asks_always() || is_there(second_, has_second_, nullptr); }

  bool is_there(const runtime::Engine& engine, std::optional<bool>& known, std::string* why) const {
    const std::scoped_lock lock(mutex_);
    if (!known) {
      try {
        known = !engine.name().empty();
      } catch (const Error& missing) {
        if (missing.kind() != Error::Kind::missing_tool) throw;
        known = false;
        if (why != nullptr) *why = missing.what();
      }
    }
    return *known;
  }

  const runtime::Engine& first_;
  const runtime::Engine& second_;
  JudgesOptions options_;
  /// The version of this engine that makes no checks. Null if this engine makes none itself.
  std::unique_ptr<TwoJudges> unchecked_;
  std::unique_ptr<TwoJudges> checked_;
  mutable std::mutex mutex_;
  mutable std::string name_;
  mutable std::string why_no_first_;
  mutable std::optional<bool> has_first_;
  mutable std::optional<bool> has_second_;
};

}  // namespace

std::unique_ptr<Judges> make_judges(const runtime::Engine& first, const runtime::Engine& second,
                                    const JudgesOptions& options) {
  JudgesOptions relaxed = options;
  relaxed.second = JudgesOptions::Asked::where_in_doubt;
  relaxed.sampled_nodes = 0;
  relaxed.sampled_share = 0;
  JudgesOptions strict = options;
  strict.second = JudgesOptions::Asked::always;
  const auto unchecked = [&] { return std::make_unique<TwoJudges>(first, second, relaxed, nullptr, nullptr); };
  const auto always = [&] { return std::make_unique<TwoJudges>(first, second, strict, unchecked(), nullptr); };
  if (options.second == JudgesOptions::Asked::always) return always();
  if (options.second == JudgesOptions::Asked::never) {
    return std::make_unique<TwoJudges>(first, second, options, nullptr, nullptr);
  }
  return std::make_unique<TwoJudges>(first, second, options, unchecked(), always());
}

}  // namespace graft::verify
