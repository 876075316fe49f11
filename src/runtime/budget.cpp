// Estimates memory and time by shape inference, and wraps an engine so that it refuses runs beyond the limits.
#include "runtime/budget.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graft/setting.hpp"
#include "onnx/faults.hpp"
#include "onnx/loop_condition.hpp"
#include "runtime/answer.hpp"
#include "runtime/keeps_outputs.hpp"
#include "runtime/machine_memory.hpp"
#include "runtime/model_io.hpp"

namespace graft::runtime {
namespace {

using Shapes = std::map<std::string, Shape, std::less<>>;
using Sizes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

// Rounded measurements on one core of a Xeon with AVX-512, OpenVINO 2026.4: only their magnitude has to be right.
constexpr double seconds_per_element = 2e-9;
constexpr double seconds_per_cubic_element = 1e-6;  // Measured with ONNX Runtime: 1e-7 to 3.5e-6.
constexpr double seconds_per_product = 5e-11;
constexpr double seconds_per_drawn_number = 5e-8;  // For a normally distributed number in verify/inputs.cpp.
constexpr double seconds_per_call = 2e-6;          // The time per node of a subgraph, whatever the node computes.
constexpr double seconds_per_compilation = 2e-3;
constexpr double seconds_per_compiled_node = 2e-4;

constexpr double mebibyte = 1 << 20;
constexpr double always_bytes = 512 * mebibyte;
constexpr double least_bytes_of_comparison = 2048 * mebibyte;
constexpr double most_bytes_of_comparison = 16384 * mebibyte;
constexpr double copies_of_outputs = 8;  // The number of copies in all processes, of both models and in f64.
constexpr double seconds_per_compared_number = 5e-8;
constexpr double bytes_per_constant_byte = 4;
constexpr double always_seconds = 10;
constexpr double always_seconds_of_comparison = 60;
constexpr double seconds_per_node = 0.02;
constexpr double most_seconds_for_nodes = 100;
constexpr double seconds_per_constant_mebibyte = 1;

std::optional<double> count_of(const onnx::Value* value) {
  if (value == nullptr || !value->shape) return std::nullopt;
  double count = 1;
  for (const Dim& dim : *value->shape) {
    if (!dim.is_constant()) return std::nullopt;
    count *= static_cast<double>(dim.value());
  }
  return count;
}

/// Returns the size in bytes of a tensor in an engine's memory. A floating-point element takes at least 4 bytes,
/// because engines convert the narrower types to f32. Returns 0 if a dimension is not constant.
double bytes_of(const onnx::Value& value) {
  constexpr int bits_of_f32 = 32;
  const bool is_computed_in_f32 = !value.type || onnx::is_floating_point(*value.type);
  const int bits = value.type ? onnx::bits_of(*value.type) : bits_of_f32;
  return count_of(&value).value_or(0) * (is_computed_in_f32 ? std::max(bits, bits_of_f32) : bits) / 8;
}

double seconds_per_element_of(const onnx::Node& node) {
  const bool is_resize = node.is("Resize") || node.is("Upsample");
  const bool is_slow = is_resize && (node.string_or("mode", "nearest") == "cubic" || node.int_or("antialias", 0) != 0);
  return is_slow ? seconds_per_cubic_element : seconds_per_element;
}

/// Returns the number of multiplications for each element of the first output or, for ConvTranspose, for each element
/// of the first input. Returns 0 for operators other than convolutions and matrix products, and for unknown sizes.
double products_per_element(const onnx::Node& node) {
  const onnx::Value* weight = node.input(1);
  if (node.is("Conv") || node.is("ConvTranspose") || node.is("ConvInteger") || node.is("QLinearConv")) {
    const onnx::Value* kernel = node.is("QLinearConv") ? node.input(3) : weight;
    const auto count = count_of(kernel);
    const bool has_channels = count && !kernel->shape->empty() && (*kernel->shape)[0].value() > 0;
    return has_channels ? *count / static_cast<double>((*kernel->shape)[0].value()) : 0;
  }
  if (node.is("MatMul") || node.is("Gemm") || node.is("MatMulInteger") || node.is("Einsum") || node.is("Attention")) {
    const onnx::Value* left = node.input(0);
    if (left == nullptr || !left->shape || left->shape->empty()) return 0;
    const bool is_transposed = node.is("Gemm") && node.int_or("transA", 0) != 0;
    const Dim& inner = is_transposed ? left->shape->front() : left->shape->back();
    return inner.is_constant() ? static_cast<double>(inner.value()) : 0;
  }
  return 0;
}

/// Returns the number of multiplications of a convolution or matrix product.
double products_of(const onnx::Node& node) {
  const onnx::Value* counted = node.is("ConvTranspose") ? node.input(0) : node.outputs.front();
  return count_of(counted).value_or(0) * products_per_element(node);
}

/// Returns how many inputs of a Scan node are scanned. They are the last inputs of the node.
std::size_t scanned_inputs(const onnx::Node& node) {
  const auto declared = static_cast<std::size_t>(std::max<std::int64_t>(node.int_or("num_scan_inputs", 0), 0));
  return std::min(node.inputs.size(), declared);
}

/// Returns whether only the iteration limit ends the Loop once the Loop has begun, because its body returns the
/// condition unchanged.
bool needs_limit(const onnx::Node& loop) {
  return !loop.subgraphs().empty() && keeps_condition(*loop.subgraphs().front());
}

/// Returns whether the Loop runs forever once it has begun.
bool is_endless(const onnx::Node& node) { return node.is("Loop") && node.input(0) == nullptr && needs_limit(node); }

/// Returns the iteration limit of a Loop. Returns 1 if the limit is computed at run time, or if it is the largest i64,
/// which exporters write if the condition ends the Loop.
double iterations_of_loop(const onnx::Node& node) {
  const auto numbers = constant_ints(node.input(0));
  if (!numbers || numbers->size() != 1) return 1;
  const bool is_no_limit = numbers->front() == std::numeric_limits<std::int64_t>::max() && !needs_limit(node);
  return is_no_limit ? 1 : std::max(1.0, static_cast<double>(numbers->front()));
}

/// Returns how often the body of a Loop or Scan runs; 1 for other nodes, and if the number is computed at run time.
double iterations_of(const onnx::Node& node) {
  if (node.is("Loop")) return iterations_of_loop(node);
  if (!node.is("Scan")) return 1;
  const std::size_t first = node.inputs.size() - scanned_inputs(node);
  const std::vector<std::int64_t> axes = node.ints("scan_input_axes").value_or(std::vector<std::int64_t>{});
  double iterations = 1;
  for (std::size_t i = first; i < node.inputs.size(); ++i) {
    const onnx::Value* input = node.inputs[i];
    if (input == nullptr || !input->shape) continue;
    const auto rank = static_cast<std::int64_t>(input->shape->size());
    std::int64_t axis = i - first < axes.size() ? axes[i - first] : 0;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) continue;
    const Dim& dim = (*input->shape)[static_cast<std::size_t>(axis)];
    if (dim.is_constant()) iterations = std::max(iterations, static_cast<double>(dim.value()));
  }
  return iterations;
}

class Estimate {
 public:
  /// Adds the cost of a graph that runs `times` times. Nodes are visited in topological order; a tensor occupies memory
  /// from the node that computes it to the last node that reads it.
  void run(const onnx::Graph& graph, double times = 1) {
    std::unordered_map<const onnx::Value*, std::size_t> readers;
    graph.for_each_node([&](const onnx::Node& node) {
      for (const onnx::Value* input : node.inputs) ++readers[input];
    });
    for (const onnx::Node* node : graph.nodes()) {
      const double iterations = iterations_of(*node);
      if (is_endless(*node)) cost_.endless = describe(*node);
      for (const onnx::Graph* inner : node->subgraphs()) {
        run(*inner, times * iterations);
        if (iterations > 1) add_stacked(*node, *inner, iterations);
      }
      if (times > 1) cost_.seconds += times * seconds_per_call;
      for (const onnx::Value* output : node->outputs) {
        if (output == nullptr) continue;
        add(bytes_of(*output));
        note_size(*output, node);
        cost_.seconds += times * count_of(output).value_or(0) * seconds_per_element_of(*node);
      }
      if (!node->outputs.empty()) cost_.seconds += times * products_of(*node) * seconds_per_product;
      for (const onnx::Value* input : node->inputs) {
        if (input == nullptr || --readers[input] != 0) continue;
        const bool is_own = input->producer != nullptr && input->graph == &graph && !input->is_output();
        if (is_own) held_ -= bytes_of(*input);
      }
    }
  }

  /// Adds the outputs that a Loop or Scan concatenates over all iterations: the body's outputs after the carried ones.
  void add_stacked(const onnx::Node& node, const onnx::Graph& body, double iterations) {
    const std::size_t stacked_from =
        node.is("Loop") ? std::max<std::size_t>(node.inputs.size(), 2) - 1 : node.inputs.size() - scanned_inputs(node);
    for (std::size_t i = stacked_from; i < body.outputs().size(); ++i) add(bytes_of(*body.outputs()[i]) * iterations);
  }

  void add(double bytes) {
    held_ += bytes;
    cost_.bytes = std::max(cost_.bytes, held_);
  }

  void add_inputs(const onnx::Graph& graph) {
    for (const onnx::Value* input : graph.inputs()) {
      if (input->initializer) continue;
      add(bytes_of(*input));
      note_size(*input, nullptr);
      cost_.seconds += count_of(input).value_or(0) * seconds_per_drawn_number;
    }
  }

  void add_outputs(const onnx::Graph& graph) {
    for (const onnx::Value* output : graph.outputs()) {
      cost_.output_bytes += bytes_of(*output);
      cost_.output_elements += count_of(output).value_or(0);
    }
  }

  /// Returns the cost of all graphs that were added.
  [[nodiscard]] RunCost cost() const {
    RunCost cost = cost_;
    if (largest_ != nullptr) {
      const std::string dims = fmt::format("{}", fmt::join(texts_of(*largest_->shape), " x "));
      cost.largest = maker_ == nullptr
                         ? fmt::format("input '{}' has {} elements", largest_->name, dims)
                         : fmt::format("{} computes '{}' of {} elements", describe(*maker_), largest_->name, dims);
    }
    return cost;
  }

 private:
  static std::vector<std::string> texts_of(const Shape& shape) {
    std::vector<std::string> texts;
    for (const Dim& dim : shape) texts.push_back(dim.to_string());
    return texts;
  }

  /// Records the tensor if it has more elements than all tensors so far. `maker` is the node that computes it, or null
  /// for an input. Dimensions of 0 are left out of the product, because engines and NumPy multiply the other sizes even
  /// for an empty tensor.
  void note_size(const onnx::Value& value, const onnx::Node* maker) {
    if (!value.shape) return;
    double elements = 1;
    for (const Dim& dim : *value.shape) {
      if (dim.is_constant() && dim.value() > 0) elements *= static_cast<double>(dim.value());
    }
    if (elements <= cost_.elements) return;
    cost_.elements = elements;
    largest_ = &value;
    maker_ = maker;
  }

  RunCost cost_;
  const onnx::Value* largest_ = nullptr;
  const onnx::Node* maker_ = nullptr;
  double held_ = 0;
};

/// The total size in bytes of the constants in a file, and the number of nodes.
struct FileSize {
  double constants = 0;
  double nodes = 0;
};

FileSize size_of(const onnx::Model& model) {
  FileSize size;
  const auto count = [&](const onnx::Graph& graph) {
    for (const onnx::Value* value : graph.initializers()) {
      size.constants += static_cast<double>(value->initializer->bytes.size());
    }
  };
  count(model.graph());
  model.graph().for_each_node([&](const onnx::Node& node) {
    ++size.nodes;
    for (const onnx::Graph* inner : node.subgraphs()) count(*inner);
  });
  return size;
}

/// The base class of the limits on runs. A limit allows or refuses a run by its estimated cost.
class Budget {
 public:
  Budget() = default;
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
  virtual ~Budget() = default;

  /// Returns why a run of this cost is not allowed, or an empty string if it is allowed. `source` is the model's file,
  /// for the message.
  [[nodiscard]] virtual std::string refusal(const std::string& source, const RunCost& cost) const = 0;

  /// Throws OverLimit or OverBudget if the run is not allowed; otherwise counts its cost.
  virtual void spend(const std::string& source, const RunCost& cost) = 0;
};

/// The limits for proofs and constant folding of one file, and the time spent so far.
class ProofBudget final : public Budget {
 public:
  explicit ProofBudget(const onnx::Model& model) {
    const FileSize size = size_of(model);
    most_bytes_ = always_bytes + bytes_per_constant_byte * size.constants;
    most_seconds_ = always_seconds + std::min(seconds_per_node * size.nodes, most_seconds_for_nodes) +
                    seconds_per_constant_mebibyte * size.constants / mebibyte;
  }

  [[nodiscard]] std::string refusal(const std::string& /*source*/, const RunCost& cost) const override {
    if (!cost.endless.empty())
      return cost.endless +
             " never ends once it has begun: it has no trip count, and its body returns the condition unchanged";
    if (cost.bytes > most_bytes_) {
      return fmt::format(
          "its tensors need {:.0f} MiB of memory at a time; the limit for a file of this size is {:.0f} MiB",
          cost.bytes / mebibyte, most_bytes_ / mebibyte);
    }
    const std::scoped_lock lock(mutex_);
    if (spent_ + cost.seconds <= most_seconds_) return "";
    return fmt::format(
        "together with this part, the runs of parts of this file would take about {:.0f} s; the limit for a file of "
        "this size is {:.0f} s",
        spent_ + cost.seconds, most_seconds_);
  }

  void spend(const std::string& source, const RunCost& cost) override {
    if (const std::string why = refusal(source, cost); !why.empty()) throw OverBudget(why);
    const std::scoped_lock lock(mutex_);
    spent_ += cost.seconds;
  }

 private:
  double most_bytes_ = 0;
  double most_seconds_ = 0;
  mutable std::mutex mutex_;
  double spent_ = 0;
};

/// The limit on the number of elements of each tensor (most_elements).
class TensorLimit : public Budget {
 public:
  [[nodiscard]] std::string refusal(const std::string& source, const RunCost& cost) const override {
    if (cost.elements <= static_cast<double>(most_elements)) return "";
    return fmt::format(
        "{}: {}; a tensor of TensorRT has at most {} elements, and the CPU engine does not compute larger tensors\nUse "
        "smaller inputs, or correct the sizes in the program that wrote the model",
        source, cost.largest, most_elements);
  }

  void spend(const std::string& source, const RunCost& cost) final {
    if (const std::string why = refusal(source, cost); !why.empty()) throw OverLimit(why);
  }
};

/// Returns the memory limit in bytes for sizes that the model or the caller sets, not Graft: half of the usable memory,
/// but at least 2 GiB and at most 16 GiB.
double bytes_for_sizes_of_others() {
  return std::clamp(usable_memory() / 2, least_bytes_of_comparison, most_bytes_of_comparison);
}

bool is_dynamic(const onnx::Value& input) {
  const auto is_fixed = [](const Dim& dim) { return dim.is_constant(); };
  return !input.initializer && !(input.shape && std::all_of(input.shape->begin(), input.shape->end(), is_fixed));
}

/// Limits the elements of each tensor, and the memory and time of one run on inputs that Graft generates.
class ComparisonLimit final : public TensorLimit {
 public:
  ComparisonLimit(const onnx::Model& model, const Sizes& given) {
    bool chooses_sizes = false;
    for (const onnx::Value* input : model.graph().inputs()) {
      if (!is_dynamic(*input)) continue;
      has_dynamic_inputs_ = true;
      chooses_sizes = chooses_sizes || !given.contains(input->name);
    }
    const FileSize size = size_of(model);
    most_bytes_ = (chooses_sizes ? least_bytes_of_comparison : bytes_for_sizes_of_others()) +
                  bytes_per_constant_byte * size.constants;
    most_seconds_ = always_seconds_of_comparison + seconds_per_constant_mebibyte * size.constants / mebibyte;
  }

  [[nodiscard]] std::string refusal(const std::string& source, const RunCost& cost) const override {
    if (std::string why = TensorLimit::refusal(source, cost); !why.empty()) return why;
    if (!cost.endless.empty()) {
      return fmt::format(
          "{}: {} never ends once it has begun: it has no trip count, and its body returns the condition "
          "unchanged\nCorrect the node in the program that wrote the model",
          source, cost.endless);
    }
    const double bytes = cost.bytes + copies_of_outputs * cost.output_bytes;
    const double seconds = cost.seconds + seconds_per_compared_number * cost.output_elements;
    std::string found;
    if (bytes > most_bytes_) {
      found = fmt::format("needs about {:.0f} MiB of memory; the limit on this machine is {:.0f} MiB", bytes / mebibyte,
                          most_bytes_ / mebibyte);
    } else if (seconds > most_seconds_) {
      found =
          fmt::format("takes about {:.0f} s; the limit for a file of this size is {:.0f} s", seconds, most_seconds_);
    } else {
      return "";
    }
    const std::string sizes = has_dynamic_inputs_ ? fmt::format("Set smaller sizes with {}, or provide",
                                                                setting_name(Setting::synthetic_shapes))
                                                  : "Provide";
    return fmt::format(
        "{}: a comparison on synthetic inputs {}; the largest tensor: {}\n"
        "{} real inputs with {}, for which there is no such limit",
        source, found, cost.largest, sizes, setting_name(Setting::data));
  }

 private:
  bool has_dynamic_inputs_ = false;
  double most_bytes_ = 0;
  double most_seconds_ = 0;
};

/// Estimates the costs of a model by the sizes of its inputs. Stores the estimates for the first 64 combinations of
/// sizes, so that a repeated run with the same sizes is not estimated again.
class Costs {
 public:
  explicit Costs(onnx::Model model) : model_(std::move(model)) {}

  [[nodiscard]] const std::string& source() const { return model_.source; }

  /// Returns the cost of a run with inputs of these sizes.
  RunCost of(const Sizes& sizes) {
    const std::scoped_lock lock(mutex_);
    if (const auto known = known_.find(sizes); known != known_.end()) return known->second;
    Shapes shapes;
    for (const auto& [name, dims] : sizes) shapes.emplace(name, Shape(dims.begin(), dims.end()));
    RunCost cost = estimate_cost(model_, shapes);
    constexpr std::size_t most_known = 64;
    if (known_.size() < most_known) known_.emplace(sizes, cost);
    return cost;
  }

 private:
  onnx::Model model_;
  std::mutex mutex_;
  std::map<Sizes, RunCost> known_;
};

class BudgetModel final : public CompiledModel, public KeepsOutputs, public HasAnswer {
 public:
  BudgetModel(std::unique_ptr<CompiledModel> model, std::string engine, std::shared_ptr<Costs> costs,
              std::shared_ptr<Budget> budget)
      : model_(std::move(model)), engine_(std::move(engine)), costs_(std::move(costs)), budget_(std::move(budget)) {}

  [[nodiscard]] Answer answer() const override { return answer_of(*model_, engine_); }
  using CompiledModel::run;
  [[nodiscard]] std::unique_ptr<CompiledModel> new_request() const override {
    return std::make_unique<BudgetModel>(model_->new_request(), engine_, costs_, budget_);
  }
  void run(const TensorMap& inputs, const std::function<void(const TensorMap&)>& look) override {
    spend(inputs);
    model_->run(inputs, look);
  }
  [[nodiscard]] TensorMap run_and_keep(const TensorMap& inputs) override {
    spend(inputs);
    auto* keeps = dynamic_cast<KeepsOutputs*>(model_.get());
    return keeps != nullptr ? keeps->run_and_keep(inputs) : model_->run(inputs);
  }
  [[nodiscard]] std::string refusal(const Sizes& sizes) const {
    return budget_->refusal(costs_->source(), costs_->of(sizes));
  }

 private:
  void spend(const TensorMap& inputs) {
    Sizes sizes;
    for (const auto& [name, tensor] : inputs) sizes.emplace(name, tensor.dims);
    budget_->spend(costs_->source(), costs_->of(sizes));
  }

  std::unique_ptr<CompiledModel> model_;
  std::string engine_;
  std::shared_ptr<Costs> costs_;
  std::shared_ptr<Budget> budget_;
};

class BudgetEngine final : public Engine {
 public:
  BudgetEngine(const Engine& engine, std::shared_ptr<Budget> budget) : engine_(engine), budget_(std::move(budget)) {}

  [[nodiscard]] std::string_view name() const override { return engine_.name(); }
  [[nodiscard]] bool can_run() const override { return engine_.can_run(); }
  [[nodiscard]] const Engine* checked() const override {
    const Engine* form = engine_.checked();
    return form == nullptr ? nullptr : &wrap(*form, checked_);
  }
  [[nodiscard]] const Engine& unchecked() const override { return wrap(engine_.unchecked(), unchecked_); }
  [[nodiscard]] const Engine* second() const override {
    const Engine* other = engine_.second();
    return other == nullptr ? nullptr : &wrap(*other, second_);
  }

  [[nodiscard]] std::unique_ptr<CompiledModel> compile(const onnx::Model& model,
                                                       const CompileOptions& options) const override {
    spend_compilation(model);
    onnx::Model counted = model.clone();
    add_extra_outputs(counted, options.extra_outputs);
    return std::make_unique<BudgetModel>(engine_.compile(model, options), std::string(engine_.name()),
                                         std::make_shared<Costs>(std::move(counted)), budget_);
  }

  [[nodiscard]] TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    spend_compilation(model);
    return engine_.evaluate_constant_graph(model);
  }

 private:
  /// Adds the cost of a compilation to the budget. While they compile, engines compute everything that depends only on
  /// constants.
  void spend_compilation(const onnx::Model& model) const {
    RunCost cost = estimate_cost(model, {});
    if (!model.graph().inputs().empty()) cost.seconds = 0;
    std::size_t nodes = 0;
    model.graph().for_each_node([&](const onnx::Node& /*node*/) { ++nodes; });
    cost.seconds += seconds_per_compilation + seconds_per_compiled_node * static_cast<double>(nodes);
    budget_->spend(model.source, cost);
  }

  [[nodiscard]] const Engine& wrap(const Engine& form, std::unique_ptr<BudgetEngine>& wrapped) const {
    if (&form == &engine_) return *this;
    const std::scoped_lock lock(mutex_);
    if (wrapped == nullptr) wrapped = std::make_unique<BudgetEngine>(form, budget_);
    return *wrapped;
  }

  const Engine& engine_;
  std::shared_ptr<Budget> budget_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<BudgetEngine> checked_;
  mutable std::unique_ptr<BudgetEngine> unchecked_;
  mutable std::unique_ptr<BudgetEngine> second_;
};

}  // namespace

RunCost estimate_cost(const onnx::Model& model, const Shapes& input_shapes) {
  onnx::Model inferred = model.clone();
  // Shape inference continues after a faulty node and counts all tensors that it can infer. The engine reports the
  // fault later, in its own words.
  const onnx::OnFault go_on = [](const onnx::Node& /*node*/, const Error& /*error*/) {};
  try {
    if (input_shapes.empty()) {
      infer_around_faults(inferred, go_on);
    } else {
      infer_around_faults(inferred, input_shapes, go_on);
    }
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): inputs that do not fit are the engine's to refuse
  }
  Estimate estimate;
  estimate.add_inputs(inferred.graph());
  estimate.add_outputs(inferred.graph());
  estimate.run(inferred.graph());
  return estimate.cost();
}

std::string refusal_of(const CompiledModel& model, const Sizes& sizes) {
  const auto* limited = dynamic_cast<const BudgetModel*>(&model);
  return limited == nullptr ? "" : limited->refusal(sizes);
}

std::unique_ptr<Engine> make_budget_engine(const Engine& engine, const onnx::Model& model) {
  return std::make_unique<BudgetEngine>(engine, std::make_shared<ProofBudget>(model));
}

std::unique_ptr<Engine> make_limited_engine(const Engine& engine) {
  return std::make_unique<BudgetEngine>(engine, std::make_shared<TensorLimit>());
}

std::unique_ptr<Engine> make_comparison_engine(const Engine& engine, const onnx::Model& model, const Sizes& given) {
  return std::make_unique<BudgetEngine>(engine, std::make_shared<ComparisonLimit>(model, given));
}

}  // namespace graft::runtime
