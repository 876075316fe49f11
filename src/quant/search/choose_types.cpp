// Decides by the ranges of tensors first, then by trials.
#include "quant/search/choose_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "graft/error.hpp"
#include "onnx/schema.hpp"
#include "quant/plan/node_patterns.hpp"
#include "verify/compare/compare.hpp"
#include "verify/compare/ends.hpp"
#include "verify/compare/match_tensors.hpp"
#include "verify/inputs/random_values.hpp"
#include "verify/localize/layers.hpp"
#include "verify/localize/partial_runs.hpp"

namespace graft::quant {
namespace {

/// The most models that are run in the search for nodes that lose.
constexpr std::size_t most_trials = 48;

bool has_f32_output(const onnx::Node& node) { return std::any_of(node.outputs.begin(), node.outputs.end(), is_f32); }

struct KeptNode {
  WhyKept why;
  std::string reason;
};
using KeptNodes = std::map<std::string, KeptNode, std::less<>>;

constexpr double worth_looking_at = 3;  ///< The fewest decibels that a node must lose to be tried first.

/// Returns whether the order of numbers decides the result of a node, so that rounding shows in no figure of a tensor
/// before it.
bool chooses(const onnx::Node& node) {
  return node.is("TopK") || node.is("ArgMax") || node.is("ArgMin") || node.is("NonMaxSuppression");
}

/// The decibels of signal-to-noise ratio that a node loses.
struct NodeLoss {
  const onnx::Node* node;
  double lost_db;
  bool vanishes = false;  ///< Whether the node reads or computes numbers that are too small for the type.
};

class Chooser {
 public:
  Chooser(const runtime::Engine& engine, const onnx::Model& model, const ChooseOptions& options)
      : engine_(engine),
        options_(options),
        prepared_(prepare_for_types(model, options.precision)),
        reference_(engine, prepared_, runtime::OperatorKernels::functions, options.threads) {
    result_.limit_db = options.limit_db.value_or(limit_of(options.precision));
  }

  ChosenTypes run() {
    random_ = verify::random_values(prepared_);
    keep_what_was_asked_for();
    make_inputs();
    result_.plain = try_types(kept_);
    measure();
    keep_what_overflows();
    keep_sums();
    std::vector<verify::OutputFigures> outputs = kept_.size() == asked_ ? result_.plain : try_types(kept_);
    keep_infinite(outputs);
    search(outputs);
    finish(std::move(outputs));
    return std::move(result_);
  }

 private:
  [[nodiscard]] const onnx::Graph& graph() const { return prepared_.graph(); }
  /// Returns the signal-to-noise ratio that the search aims at.
  [[nodiscard]] double wanted_db() const { return result_.limit_db + options_.margin_db; }
  [[nodiscard]] double largest() const { return largest_of(options_.precision); }

  void say(const std::string& what, std::size_t done, std::size_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  // ---- --keep and --only

  void keep_what_was_asked_for() {
    const auto by_patterns = kept_by_patterns(prepared_, options_.keep, options_.only,
                                              [](const onnx::Node& node) { return !works_in_any_type(node); });
    for (const auto& [key, reason] : by_patterns) kept_.emplace(key, KeptNode{WhyKept::asked, reason});
    for (const auto& [key, reason] : options_.kept) kept_.emplace(key, KeptNode{WhyKept::asked, reason});
    asked_ = kept_.size();
  }

  // ---- Runs

  void make_inputs() {
    say("running the network in f32", 0, 1);
    verify::InputRanges narrowed;
    std::string why_sizes;
    const std::unique_ptr<runtime::CompiledModel> compiled = engine_.compile(
        prepared_, {.kernels = runtime::OperatorKernels::functions, .extra_outputs = {}, .threads = options_.threads});
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
    result_.runs = inputs_.size();
    reference_.infer(inputs_);
    for (const auto& [name, tensor] : inputs_.front()) {
      const auto range = narrowed.find(name);
      result_.inputs.push_back(fmt::format(
          "{}: {}[{}]{}", name, onnx::to_string(tensor.type), fmt::join(tensor.dims, ", "),
          range == narrowed.end() ? "" : fmt::format(" of {:g} to {:g}", range->second.lowest, range->second.highest)));
    }
    if (!why_sizes.empty()) result_.inputs.push_back(why_sizes);
  }

  [[nodiscard]] TypedModel typed_with(const KeptNodes& kept) const {
    TypedOptions options{.precision = options_.precision,
                         .typed_io = options_.typed_io,
                         .narrow_before_int8 = options_.narrow_before_int8,
                         .kept = {},
                         .refusal = options_.refusal};
    for (const auto& [key, node] : kept) options.kept.emplace(key, node.reason);
    return make_typed(prepared_, options);
  }

  /// Returns the inputs in the types of the typed model.
  [[nodiscard]] static runtime::TensorMap inputs_of(const onnx::Model& typed, runtime::TensorMap inputs) {
    for (const onnx::Value* input : typed.graph().inputs()) {
      const auto found = inputs.find(input->name);
      if (found == inputs.end() || !input->type || found->second.type == *input->type) continue;
      found->second = onnx::TensorData::from_numbers(*input->type, found->second.dims, *found->second.numbers());
    }
    return inputs;
  }

  /// Returns the figures of an output. An output of random numbers does not count, because each run draws different
  /// numbers.
  [[nodiscard]] verify::OutputFigures judged(const onnx::Value& output, const runtime::TensorMap& expected,
                                             const runtime::TensorMap& found) const {
    const auto random = random_.find(&output);
    const onnx::TensorData& reference = expected.at(output.name);
    if (random == random_.end()) return verify::figures_of(output.name, reference, found.at(output.name));
    verify::OutputFigures figures;
    figures.name = output.name;
    figures.elements = reference.element_count();
    figures.incomparable = fmt::format("not judged: it depends on the random numbers of {}", random->second);
    return figures;
  }

  std::vector<verify::OutputFigures> try_types(const KeptNodes& kept) {
    ++result_.trials;
    say(fmt::format("trying {}, {} kept in f32", verify::to_string(options_.precision), kept.size()), result_.trials,
        most_trials);
    const TypedModel typed = typed_with(kept);
    const verify::PartialRuns runs(engine_, typed.model, runtime::OperatorKernels::functions, options_.threads);
    const std::unique_ptr<runtime::CompiledModel> compiled = runs.compile(verify::all_outputs(runs.model()));
    std::vector<verify::OutputFigures> outputs;
    for (std::size_t run = 0; run < inputs_.size(); ++run) {
      const runtime::TensorMap found = compiled->run(inputs_of(typed.model, inputs_[run]));
      for (std::size_t i = 0; i < graph().outputs().size(); ++i) {
        const verify::OutputFigures figures = judged(*graph().outputs()[i], expected_[run], found);
        if (run == 0) {
          outputs.push_back(figures);
        } else {
          verify::add_worst_run(outputs[i], figures);
        }
      }
    }
    return outputs;
  }

  // ---- Ranges of tensors

  [[nodiscard]] std::vector<const onnx::Value*> reals_of_reference() const {
    std::vector<const onnx::Value*> values;
    for (const onnx::Value* value : verify::tensors_of(reference_.model())) {
      if (is_f32(value) && !value->constant()) values.push_back(value);
    }
    return values;
  }

  void measure() {
    const auto add = [&](const std::string& name, const onnx::TensorData& tensor) {
      const verify::TypeEffect effect = type_effect(tensor, options_.precision);
      const auto [place, is_new] = effects_.try_emplace(name, effect);
      if (!is_new) place->second.add(effect);
    };
    for (const runtime::TensorMap& inputs : inputs_) {
      for (const auto& [name, tensor] : inputs) {
        if (tensor.type == onnx::ElementType::f32) add(name, tensor);
      }
    }
    // The sums inside nodes are measured in the same runs.
    onnx::Model with_sums = prepared_.clone();
    if (options_.precision == verify::Precision::f16) add_sums(with_sums.graph());
    verify::PartialRuns runs(engine_, with_sums, runtime::OperatorKernels::functions, options_.threads);
    runs.infer(inputs_);
    std::vector<const onnx::Value*> values;
    for (const onnx::Value* value : reals_of_reference())
      values.push_back(runs.model().graph().find_local(value->name));
    for (const auto& [name, node] : summing_) values.push_back(runs.model().graph().find_local(name));
    runs.visit(
        values, inputs_, options_.memory,
        [&](const onnx::Value& value, const onnx::TensorData& tensor) {
          if (summing_.contains(value.name)) {
            sums_[value.name].add(verify::range_of(tensor));
          } else {
            add(value.name, tensor);
          }
        },
        [&](std::size_t done, std::size_t total) { say("measuring the tensors", done, total); });
  }

  [[nodiscard]] const verify::TypeEffect* effect(const onnx::Value& value) const {
    const auto found = effects_.find(value.name);
    return found == effects_.end() ? nullptr : &found->second;
  }

  void keep(const onnx::Node& node, WhyKept why, const std::string& reason) {
    kept_.try_emplace(key_of(node), KeptNode{why, reason});
  }

  void keep_makers_and_readers(const onnx::Value& value, WhyKept why, const std::string& what) {
    if (value.producer != nullptr && !value.producer->is("Constant")) {
      keep(*value.producer, why, fmt::format("its output '{}' {}", value.name, what));
    }
    for (const onnx::Use& use : value.uses) {
      if (use.node->graph != &graph() || !has_f32_output(*use.node) || use.node->is("Cast")) continue;
      keep(*use.node, why, fmt::format("it reads '{}', which {}", value.name, what));
    }
  }

  /// Returns whether the readers of a tensor compute the same from minus infinity as from its large negative numbers.
  [[nodiscard]] bool may_be_minus_infinity(const onnx::Value& value) const {
    const verify::TypeEffect* found = effect(value);
    if (found == nullptr || found->range.highest.value_or(0) > largest() || value.output_count != 0) return false;
    return std::all_of(value.uses.begin(), value.uses.end(), [&](const onnx::Use& use) {
      if (use.node->graph != &graph()) return false;
      if (is_any_of(*use.node, {"Exp", "LogSoftmax", "Relu", "Sigmoid", "Softmax", "Tanh"})) return true;
      const bool gives_on = use.node->is("Add") || use.node->is("Where") || use.node->is("Max") ||
                            (works_in_any_type(*use.node) && has_f32_output(*use.node));
      return gives_on && may_be_minus_infinity(*use.node->output());
    });
  }

  /// Returns whether a tensor counts something: its producer rounds to integers or counts, or a reader casts it to
  /// integers. No trait of the schemas covers the operators that round to integers of any size, or count.
  [[nodiscard]] static bool is_counted(const onnx::Value& value) {
    const onnx::Node* maker = value.producer;
    const bool made = maker != nullptr && (is_any_of(*maker, {"Cast", "Ceil", "Floor", "Range", "Round"}));
    return made || std::any_of(value.uses.begin(), value.uses.end(), [](const onnx::Use& use) {
             return use.node->is("Cast") && use.node->output()->type && is_integer(*use.node->output()->type);
           });
  }

  void keep_what_overflows() {
    const std::string_view name = verify::to_string(options_.precision);
    for (const onnx::Value* value : graph().values()) {
      if (!is_f32(value) || value->constant()) continue;
      const verify::TypeEffect* found = effect(*value);
      if (found == nullptr) continue;
      if (found->rounding.overflow != 0) {
        const double reached = std::abs(found->range.lowest.value_or(0)) > found->range.highest.value_or(0)
                                   ? found->range.lowest.value_or(0)
                                   : found->range.highest.value_or(0);
        const std::string what =
            fmt::format("reaches {:.4g}, and the largest number of {} is {:g}", reached, name, largest());
        if (may_be_minus_infinity(*value)) {
          infinite_.emplace_back(value, what);
        } else {
          keep_makers_and_readers(*value, WhyKept::overflow, what);
        }
      } else if (found->counts_wrongly() && is_counted(*value)) {
        keep_makers_and_readers(*value, WhyKept::integers,
                                fmt::format("counts up to {:.6g}, which {} rounds", found->range.largest(), name));
      }
    }
  }

  /// Decides on the tensors whose large negative numbers (masks) become minus infinity in the narrow type. They leave
  /// f32 unless an output then misses the limit, as it does if a whole row is masked. In that case all of them stay in
  /// f32 if that improves the outputs, because several nodes compute and read a mask.
  void keep_infinite(std::vector<verify::OutputFigures>& outputs) {
    if (infinite_.empty()) return;
    if (!verify::score_of(outputs).meets(wanted_db())) {
      KeptNodes before = kept_;
      for (const auto& [value, what] : infinite_) keep_makers_and_readers(*value, WhyKept::overflow, what);
      std::vector<verify::OutputFigures> figures = try_types(kept_);
      if (verify::score_of(figures).is_better_than(verify::score_of(outputs))) {
        outputs = std::move(figures);
        return;
      }
      kept_ = std::move(before);
    }
    for (const auto& [value, what] : infinite_) {
      result_.notes.push_back(
          fmt::format("'{}' {}: it becomes minus infinity, which a Softmax treats like the number; if a row contains "
                      "only such numbers, a Softmax returns NaN",
                      value->name, what));
    }
  }

  // ---- Sums

  /// Adds nodes that compute what a node sums inside, and returns their result. Returns null for an operator that sums
  /// nothing, or whose output is the sum.
  static onnx::Value* add_sum(onnx::Graph& graph, onnx::Node& node) {
    onnx::Value* x = node.input(0);
    if (!is_f32(x) || !x->shape) return nullptr;
    const auto reduce = [&](onnx::Value* of, onnx::Value* axes) {
      onnx::Node* sum = graph.add_node("ReduceSum", {of, axes}, {node.output()->name + "/sum"});
      sum->attributes.emplace("keepdims", onnx::NodeAttribute(onnx::AttributeData(std::int64_t{1})));
      return sum->output();
    };
    const auto sizes = [&] { return graph.add_node("Abs", {x}, {x->name + "/sizes"})->output(); };
    const auto squares = [&] { return graph.add_node("Mul", {x, x}, {x->name + "/squares"})->output(); };
    const auto constant = [&](const std::vector<std::int64_t>& ints) {
      return graph.add_constant(node.output()->name + "/axes", onnx::TensorData::from_ints(ints));
    };
    if (is_any_of(node, {"ReduceMean", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceLogSum"})) {
      onnx::Value* axes = node.input(1);
      if (const auto given = node.ints("axes")) axes = constant(*given);
      if (axes == nullptr) {
        if (node.int_or("noop_with_empty_axes", 0) != 0) return nullptr;
        // All axes: OpenVINO reads no ReduceSum without axes.
        std::vector<std::int64_t> all(x->shape->size());
        std::iota(all.begin(), all.end(), 0);
        axes = constant(all);
      }
      return reduce(node.is("ReduceL2") ? squares() : sizes(), axes);
    }
    if (node.is("GlobalAveragePool")) {
      std::vector<std::int64_t> axes;
      for (std::size_t axis = 2; axis < x->shape->size(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
      return axes.empty() ? nullptr : reduce(sizes(), constant(axes));
    }
    if (node.is("LpNormalization")) {
      return reduce(node.int_or("p", 2) == 1 ? sizes() : squares(), constant({node.int_or("axis", -1)}));
    }
    if (node.is("AveragePool")) {
      onnx::Node* mean = graph.add_node("AveragePool", {sizes()}, {node.output()->name + "/mean"});
      double elements = 1;
      for (const std::int64_t size : node.ints("kernel_shape").value_or(std::vector<std::int64_t>{})) {
        elements *= static_cast<double>(size);
      }
      for (const auto& [name, attribute] : node.attributes) mean->attributes.emplace(name, copy_attribute(attribute));
      onnx::Value* count = graph.add_constant(node.output()->name + "/count",
                                              onnx::TensorData::scalar_of(onnx::ElementType::f32, elements));
      return graph.add_node("Mul", {mean->output(), count}, {node.output()->name + "/sum"})->output();
    }
    return nullptr;
  }

  void add_sums(onnx::Graph& graph) {
    for (onnx::Node* node : graph.nodes()) {
      const std::string key = key_of(*node);
      if (kept_.contains(key)) continue;
      if (const onnx::Value* sum = add_sum(graph, *node)) summing_.emplace(sum->name, nodes_by_key().at(key));
    }
  }

  void keep_sums() {
    for (const auto& [name, range] : sums_) {
      if (range.largest() <= largest() && range.infinite == 0) continue;
      keep(*summing_.at(name), WhyKept::sum,
           fmt::format("its internal sums reach {:.4g}, and the largest number of {} is {:g}",
                       range.infinite == 0 ? range.largest() : std::numeric_limits<double>::infinity(),
                       verify::to_string(options_.precision), largest()));
    }
  }

  // ---- Nodes that lose

  const std::map<std::string, const onnx::Node*, std::less<>>& nodes_by_key() {
    if (by_key_.empty()) {
      for (const onnx::Node* node : graph().nodes()) by_key_.emplace(key_of(*node), node);
    }
    return by_key_;
  }

  /// Returns the signal-to-noise ratio of each tensor of the typed model, in the worst run; minus infinity if elements
  /// are not finite that are finite in the reference.
  std::map<std::string, double, std::less<>> tensor_decibels(const KeptNodes& kept) {
    ++result_.trials;
    const TypedModel typed = typed_with(kept);
    const verify::PartialRuns runs(engine_, typed.model, runtime::OperatorKernels::functions, options_.threads);
    std::map<std::string, double, std::less<>> found;
    std::vector<const onnx::Value*> waiting = reals_of_reference();
    std::erase_if(waiting, [&](const onnx::Value* value) {
      const onnx::Value* other = runs.model().graph().find_local(value->name);
      return other == nullptr || other->producer == nullptr || !other->type || !is_floating_point(*other->type);
    });
    std::size_t next = 0;
    while (next < waiting.size()) {
      say("searching for nodes that lose accuracy", next, waiting.size());
      const std::vector<const onnx::Value*> group =
          reference_.next_group(waiting, next, options_.memory / 2);  // half of it for each of two models
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
    for (const auto& [name, tensor] : inputs_.front()) {
      const auto own = effects_.find(name);
      if (own != effects_.end()) found[name] = own->second.rounding.snr_db.value_or(verify::perfect_db);
    }
    return found;
  }

  /// Returns whether rounding alone loses a tensor that the node reads or computes: f16 has nothing between 0 and 6e-8.
  [[nodiscard]] bool handles_what_vanishes(const onnx::Node& node) const {
    constexpr double most_is_left_db = 3;
    const auto vanishes = [&](const onnx::Value* value) {
      const verify::TypeEffect* found = value == nullptr ? nullptr : effect(*value);
      return found != nullptr && found->rounding.overflow == 0 &&
             found->rounding.snr_db.value_or(verify::perfect_db) < most_is_left_db;
    };
    return std::any_of(node.inputs.begin(), node.inputs.end(), vanishes) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), vanishes);
  }

  [[nodiscard]] bool is_random(const onnx::Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](const onnx::Value* output) { return random_.contains(output); });
  }

  std::vector<NodeLoss> losses(const KeptNodes& kept) {
    const auto decibels_of = tensor_decibels(kept);
    std::vector<NodeLoss> losses;
    for (const onnx::Node* node : graph().nodes()) {
      const auto own = decibels_of.find(key_of(*node));
      if (chooses(*node)) {
        if (!kept.contains(key_of(*node))) losses.push_back({node, worth_looking_at});
        continue;
      }
      if (works_in_any_type(*node) || is_random(*node)) continue;
      // All such nodes, and not only the first: after it nothing is left to lose, but the others would lose it too.
      if (has_f32_output(*node) && !node->is("Cast") && handles_what_vanishes(*node)) {
        if (!kept.contains(key_of(*node))) losses.push_back({node, verify::perfect_db, true});
        continue;
      }
      if (own == decibels_of.end()) continue;
      double before = verify::perfect_db;
      for (const onnx::Value* input : node->inputs) {
        const auto found = input == nullptr ? decibels_of.end() : decibels_of.find(input->name);
        if (found != decibels_of.end()) before = std::min(before, found->second);
      }
      constexpr double all_of_it = 1e9;
      const bool breaks = std::isinf(own->second) && !std::isinf(before);
      if (std::isinf(own->second) && !breaks) continue;
      losses.push_back({node, breaks ? all_of_it : before - own->second});
    }
    std::stable_sort(losses.begin(), losses.end(),
                     [](const NodeLoss& a, const NodeLoss& b) { return a.lost_db > b.lost_db; });
    return losses;
  }

  /// Adds the nodes that compute the f32 inputs of a node. Nodes that work in any type are looked through.
  static void add_makers(const onnx::Node& node, std::vector<const onnx::Node*>& nodes) {
    std::vector<const onnx::Node*> readers{&node};
    for (std::size_t i = 0; i < readers.size(); ++i) {
      for (const onnx::Value* input : readers[i]->inputs) {
        const onnx::Node* maker = is_f32(input) ? input->producer : nullptr;
        if (maker == nullptr || maker->is("Constant")) continue;
        const bool is_passed = works_in_any_type(*maker) && is_f32(maker->input(0));
        std::vector<const onnx::Node*>& found = is_passed ? readers : nodes;
        if (std::find(found.begin(), found.end(), maker) == found.end()) found.push_back(maker);
      }
    }
  }

  /// Returns the node and the nodes that compute its inputs, `steps` steps back.
  static std::vector<const onnx::Node*> region(const onnx::Node& node, std::size_t steps) {
    std::vector<const onnx::Node*> nodes{&node};
    std::size_t begin = 0;
    for (std::size_t step = 0; step < steps; ++step) {
      const std::size_t end = nodes.size();
      for (std::size_t i = begin; i < end; ++i) add_makers(*nodes[i], nodes);
      begin = end;
    }
    return nodes;
  }

  /// Returns the kept nodes and the first `count` of the losing nodes, each with the nodes that compute its inputs.
  [[nodiscard]] KeptNodes kept_with(const std::vector<NodeLoss>& losing, std::size_t count, std::size_t steps) const {
    KeptNodes more = kept_;
    for (std::size_t i = 0; i < count; ++i) {
      const auto& [node, lost_db, vanishes] = losing[i];
      const std::string lost =
          vanishes ? fmt::format("computes numbers that are too small for {}", verify::to_string(options_.precision))
          : chooses(*node)               ? std::string("chooses by the order of numbers, which rounding changes")
          : lost_db > verify::perfect_db ? "breaks"
                                         : fmt::format("loses {:.0f} dB", lost_db);
      for (const onnx::Node* member : region(*node, steps)) {
        const std::string reason =
            member == node ? fmt::format("it {}", lost)
                           : fmt::format("it computes the input of {}, which {}", onnx::describe(*node), lost);
        more.try_emplace(key_of(*member), KeptNode{WhyKept::loss, reason});
      }
    }
    return more;
  }

  /// Keeps more nodes if that helps, and returns whether it did: nodes that lose much, otherwise all nodes that lose a
  /// little each, as in a long chain. The latter only if the outputs then meet the limit and some node is left in the
  /// type.
  bool improve(std::vector<verify::OutputFigures>& outputs) {
    constexpr std::size_t furthest = 3;
    constexpr double anything = 0.1;  // decibels
    const std::vector<NodeLoss> all = losses(kept_);
    const auto at_least = [&](double decibels) {
      std::vector<NodeLoss> losing = all;
      std::erase_if(losing, [&](const NodeLoss& loss) { return loss.lost_db < decibels; });
      return losing;
    };
    const std::vector<NodeLoss> much = at_least(worth_looking_at);
    if (improve_by(much, furthest, outputs)) return true;
    const std::vector<NodeLoss> little = at_least(anything);
    if (little.size() == much.size()) return false;
    KeptNodes kept = kept_;
    std::vector<verify::OutputFigures> figures = outputs;
    if (!improve_by(little, 1, outputs, true)) return false;
    const std::vector<TypedNode> nodes = typed_with(kept_).nodes;
    const bool leaves_some =
        std::any_of(nodes.begin(), nodes.end(), [](const TypedNode& node) { return node.type == NodeType::narrow; });
    if (!leaves_some) {
      kept_ = std::move(kept);
      outputs = std::move(figures);
    }
    return leaves_some;
  }

  /// Keeps all losing nodes at once first: if that does not help, no part of them does, and each trial compiles the
  /// whole network. If it helps, halving finds the fewest that do as much. With `wholly` the outputs must meet the
  /// limit.
  bool improve_by(const std::vector<NodeLoss>& losing, std::size_t furthest,
                  std::vector<verify::OutputFigures>& outputs, bool wholly = false) {
    const verify::Score before = verify::score_of(outputs);
    std::size_t tried = kept_.size();
    for (std::size_t steps = 0; steps < furthest && result_.trials < most_trials; ++steps) {
      KeptNodes best = kept_with(losing, losing.size(), steps);
      if (best.size() == tried) continue;
      tried = best.size();
      std::vector<verify::OutputFigures> figures = try_types(best);
      const verify::Score all = verify::score_of(figures);
      if (!all.is_better_than(before) || (wholly && !all.meets(wanted_db()))) continue;
      std::size_t lowest = 1;
      std::size_t highest = losing.size();
      while (lowest < highest && result_.trials < most_trials) {
        const std::size_t middle = lowest + (highest - lowest) / 2;
        KeptNodes fewer = kept_with(losing, middle, steps);
        std::vector<verify::OutputFigures> of_fewer = try_types(fewer);
        const verify::Score score = verify::score_of(of_fewer);
        const bool as_good = all.meets(wanted_db()) ? score.meets(wanted_db())
                                                    : score.is_better_than(before) && !all.is_better_than(score);
        if (!as_good) {
          lowest = middle + 1;
          continue;
        }
        highest = middle;
        best = std::move(fewer);
        figures = std::move(of_fewer);
      }
      kept_ = std::move(best);
      outputs = std::move(figures);
      return true;
    }
    return false;
  }

  void search(std::vector<verify::OutputFigures>& outputs) {
    const std::size_t before = kept_.size();
    while (!verify::score_of(outputs).meets(wanted_db()) && result_.trials < most_trials && improve(outputs)) {
    }
    result_.met = verify::score_of(outputs).meets(result_.limit_db);
    if (verify::score_of(outputs).meets(wanted_db()) && kept_.size() != before) give_back(outputs);
  }

  /// Returns nodes to the type without which the outputs still meet the limit: half of them at a time first, then
  /// smaller parts.
  void give_back(std::vector<verify::OutputFigures>& outputs) {
    std::vector<std::string> keys;
    for (const auto& [key, node] : kept_) {
      if (node.why == WhyKept::loss) keys.push_back(key);
    }
    for (std::size_t count = keys.size() / 2; count != 0; count /= 2) {
      for (std::size_t begin = 0; begin < keys.size() && keys.size() > 1;) {
        if (result_.trials >= most_trials) return;
        const auto first = keys.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last = keys.begin() + static_cast<std::ptrdiff_t>(std::min(begin + count, keys.size()));
        KeptNodes fewer = kept_;
        std::for_each(first, last, [&](const std::string& key) { fewer.erase(key); });
        std::vector<verify::OutputFigures> figures = try_types(fewer);
        if (!verify::score_of(figures).meets(wanted_db())) {
          begin += count;
          continue;
        }
        kept_ = std::move(fewer);
        outputs = std::move(figures);
        keys.erase(first, last);
      }
    }
  }

  void finish(std::vector<verify::OutputFigures> outputs) {
    result_.outputs = std::move(outputs);
    result_.typed = typed_with(kept_);
    if (auto note = note_on_f64(prepared_, verify::to_string(options_.precision))) {
      result_.notes.push_back(std::move(*note));
    }
    for (const TypedNode& node : result_.typed.nodes) {
      ChosenNode chosen;
      chosen.node = node;
      if (node.type == NodeType::kept) {
        const auto found = kept_.find(node.node.id);
        chosen.why = node.by_form || found == kept_.end() ? WhyKept::form : found->second.why;
      }
      const auto own = effects_.find(node.node.id);
      chosen.has_figures = own != effects_.end();
      if (chosen.has_figures) {
        chosen.range = own->second.range;
        chosen.rounding = own->second.rounding;
      }
      result_.nodes.push_back(std::move(chosen));
    }
  }

  const runtime::Engine& engine_;
  const ChooseOptions& options_;
  onnx::Model prepared_;
  verify::RandomValues random_;  ///< The values of prepared_ that depend on random numbers.
  verify::PartialRuns reference_;
  std::vector<runtime::TensorMap> inputs_;  ///< The inputs of each run.
  std::vector<runtime::TensorMap> expected_;
  std::map<std::string, verify::TypeEffect, std::less<>> effects_;
  /// Tensors with numbers beyond the range that may become minus infinity, each with a text on the range.
  std::vector<std::pair<const onnx::Value*, std::string>> infinite_;
  /// The nodes whose internal sums are measured, by the tensor that was added to compute the sum.
  std::map<std::string, const onnx::Node*, std::less<>> summing_;
  std::map<std::string, verify::TensorRange, std::less<>> sums_;  ///< The ranges of the tensors that were added.
  std::map<std::string, const onnx::Node*, std::less<>> by_key_;
  KeptNodes kept_;
  std::size_t asked_ = 0;
  ChosenTypes result_;
};

}  // namespace

double limit_of(verify::Precision precision) { return verify::narrow_limit_db(element_type_of(precision)).value(); }

std::vector<const ChosenNode*> ChosenTypes::kept() const {
  std::vector<const ChosenNode*> found;
  for (const ChosenNode& node : nodes) {
    if (node.why && *node.why != WhyKept::form) found.push_back(&node);
  }
  return found;
}

ChosenTypes choose_types(const runtime::Engine& engine, const onnx::Model& model, const ChooseOptions& options) {
  return Chooser(engine, model, options).run();
}

}  // namespace graft::quant
