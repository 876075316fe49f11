// Prepares models so that ONNX Runtime computes them as the interface Engine specifies. The Python process only runs
// them.
#include "runtime/onnxruntime/onnxruntime_engine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_calls.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema.hpp"
#include "onnx/standard_operators.hpp"
#include "runtime/answer.hpp"
#include "runtime/keeps_outputs.hpp"
#include "runtime/model_io.hpp"
#include "runtime/onnxruntime/recurrent_layout.hpp"
#include "runtime/onnxruntime/widen.hpp"

namespace graft::runtime {
namespace {

/// Returns whether a tensor of this type can be sent to ONNX Runtime, because NumPy has the type or the tensor is
/// widened.
bool onnxruntime_takes(onnx::ElementType type) {
  using onnx::ElementType;
  constexpr std::array taken{ElementType::f32,    ElementType::f64, ElementType::f16, ElementType::bf16,
                             ElementType::u8,     ElementType::i8,  ElementType::u16, ElementType::i16,
                             ElementType::u32,    ElementType::i32, ElementType::u64, ElementType::i64,
                             ElementType::boolean};
  return std::find(taken.begin(), taken.end(), type) != taken.end();
}

/// Returns whether a model calls operators outside ai.onnx, including operators that no loaded library contains.
bool holds_operators(const onnx::Model& model) {
  bool holds = !calls_without_operator(model).empty();
  model.graph().for_each_node([&](const onnx::Node& node) { holds = holds || onnx::find_operator_for(node); });
  return holds;
}

onnx::TensorData in_type(const onnx::TensorData& tensor, onnx::ElementType type) {
  return onnx::TensorData::from_numbers(type, tensor.dims, *tensor.numbers());
}

/// A model as it is sent to the process of ONNX Runtime, after the rewrites that ONNX Runtime needs.
struct ForOnnxruntime {
  onnx::Model model;
  NarrowTypes narrow;
  /// The rewrites, such as "operator set 28 replaced by 26"; empty if nodes and opsets are those of the model.
  std::string rewritten = {};
};

/// Returns whether each ai.onnx node of the model means the same in the older opset `lower` as in the model's opset.
/// The operator must exist in `lower` with all attributes of the node.
bool means_the_same_in(const onnx::Model& model, std::int64_t lower) {
  const std::int64_t opset = model.graph().opset();
  bool is_the_same = true;
  const auto look = [&](const onnx::Node& node) {
    if (!node.domain.empty()) return;
    const onnx::OperatorSchema* schema = onnx::find_schema(node.op_type, lower);
    const bool has_attributes =
        schema != nullptr && std::all_of(node.attributes.begin(), node.attributes.end(),
                                         [&](const auto& entry) { return schema->has_attribute(entry.first); });
    const std::int64_t first = onnx::first_version(node.op_type);
    is_the_same = is_the_same && has_attributes && first <= lower && !onnx::form_changed(node.op_type, lower, opset);
  };
  model.graph().for_each_node(look);
  for (const auto& [key, function] : model.functions) {
    const onnx::Graph& body = *function.body;
    body.for_each_node(look);
  }
  return is_the_same;
}

/// Lowers the opset of the model where ONNX Runtime 1.31 does not run the model's own opset and the nodes mean the same
/// in the lower one. ONNX Runtime loads no model above opset 26, but onnx 1.23 writes opset 28 by default. Of the
/// operators that opset 22 changed, most differ only by bf16, which is widened; ONNX Runtime implements some of them
/// only in the older opset (RoiAlign, GlobalLpPool).
void lower_opset(onnx::Model& model) {
  constexpr std::int64_t newest = 26;
  constexpr std::int64_t before_bf16 = onnx::bf16_opset - 1;
  const std::int64_t opset = std::as_const(model).graph().opset();
  if (opset <= newest && opset != onnx::bf16_opset) return;
  std::int64_t lower = opset;
  for (const std::int64_t candidate : {newest, before_bf16}) {
    if (candidate < opset && means_the_same_in(model, candidate)) lower = candidate;
  }
  if (lower == opset) return;
  model.graph().opset_imports[""] = lower;
  for (auto& [key, function] : model.functions) {
    const auto own = function.body->opset_imports.find("");
    if (own != function.body->opset_imports.end()) own->second = lower;
  }
}

/// Inlines the functions of a model if one of them imports another opset than the main graph: ONNX Runtime ignores the
/// opset of a function, and reads its body in the opset of the main graph. In that opset, the operators of the body may
/// have another meaning or be missing. Also inlines them if the `layout` of a recurrent layer is known only at the
/// call.
void inline_functions_that_it_misreads(onnx::Model& model) {
  const std::int64_t opset = std::as_const(model).graph().opset();
  const bool differs = std::any_of(model.functions.begin(), model.functions.end(), [&](const auto& entry) {
    const std::int64_t own = std::as_const(*entry.second.body).opset();
    return own != 0 && own != opset;
  });
  if (differs || has_layout_of_call(model)) onnx::inline_functions(model);
}

/// Inserts a copy of the statistics that each BatchNormalization with running statistics reads, and returns whether the
/// graph has such a node. ONNX Runtime 1.31 computes the running statistics in the memory of inputs 3 and 4 unless they
/// are outputs of the model, so that the next run would start from the changed values. The copy is a Concat of one
/// tensor, because ONNX Runtime does not copy the tensor for an Identity.
bool copy_running_statistics(onnx::Graph& graph) {
  std::vector<onnx::Node*> nodes;
  graph.for_each_node([&](onnx::Node& node) {
    const bool returns_statistics =
        std::any_of(node.outputs.begin() + (node.outputs.empty() ? 0 : 1), node.outputs.end(),
                    [](const auto* output) { return output != nullptr; });
    if (node.is("BatchNormalization") && returns_statistics) nodes.push_back(&node);
  });
  for (onnx::Node* node : nodes) {
    for (const std::size_t place : {std::size_t{3}, std::size_t{4}}) {
      onnx::Value* statistics = node->input(place);
      if (statistics == nullptr) continue;
      onnx::Node* copy = node->graph->add_node("Concat", {statistics}, {statistics->name + "/copy"}, node);
      copy->attributes.emplace("axis", onnx::NodeAttribute(onnx::AttributeData(std::int64_t{0})));
      node->graph->set_input(*node, place, copy->output());
    }
  }
  return !nodes.empty();
}

bool copy_running_statistics(onnx::Model& model) {
  bool copied = copy_running_statistics(model.graph());
  for (auto& [key, function] : model.functions) copied = copy_running_statistics(*function.body) || copied;
  return copied;
}

ForOnnxruntime prepare_for_onnxruntime(const onnx::Model& given, const CompileOptions& options) {
  check_operators(given);
  ForOnnxruntime prepared{.model = given.clone(), .narrow = {}};
  onnx::Model& model = prepared.model;
  add_extra_outputs(model, options.extra_outputs);
  fix_defaults(model);
  // Before IR version 4 every constant must be an input.
  constexpr std::int64_t constants_are_no_inputs = 4;
  model.ir_version = std::max(model.ir_version, constants_are_no_inputs);
  prepared.narrow = widen_narrow_types(model, options.round_inside);
  model.graph().remove_dead();
  for (const onnx::Node* node : attach_functions(model)) {
    throw Error(
        fmt::format("{}: {} has no ONNX function, so ONNX Runtime cannot run the node\nRun the model in OpenVINO, "
                    "which uses the operator's CPU kernel",
                    model.source, onnx::describe(*node)));
  }
  inline_functions_that_it_misreads(model);
  std::vector<std::string> rewritten;
  const std::int64_t opset = std::as_const(model).graph().opset();
  lower_opset(model);
  const std::int64_t lowered = std::as_const(model).graph().opset();
  if (lowered != opset) rewritten.push_back(fmt::format("operator set {} replaced by {}", opset, lowered));
  if (put_time_first(model) != 0) rewritten.emplace_back("layout = 1 of recurrent nodes replaced by layout = 0");
  if (copy_running_statistics(model)) {
    rewritten.emplace_back("the running statistics of BatchNormalization nodes copied for each run");
  }
  prepared.rewritten = fmt::format("{}", fmt::join(rewritten, ", "));
  return prepared;
}

/// The state of a compiled model, which the handles that CompiledModel::new_request returns share.
struct SharedState {
  onnx::Model model;  ///< The model before preparation, with which failed runs are explained.
  DeclaredInputs inputs;
  NarrowTypes narrow;
  Answer answer;
};

class OnnxruntimeModel final : public CompiledModel, public KeepsOutputs, public HasAnswer {
 public:
  OnnxruntimeModel(std::shared_ptr<const SharedState> shared, std::unique_ptr<CompiledModel> remote)
      : shared_(std::move(shared)), remote_(std::move(remote)) {}

  [[nodiscard]] std::unique_ptr<CompiledModel> new_request() const override {
    return std::make_unique<OnnxruntimeModel>(shared_, remote_->new_request());
  }

  using CompiledModel::run;
  void run(const TensorMap& inputs, const std::function<void(const TensorMap& outputs)>& look) override {
    look(run_and_keep(inputs));
  }

  [[nodiscard]] TensorMap run_and_keep(const TensorMap& inputs) override {
    shared_->inputs.check(inputs);
    TensorMap widened = inputs;
    for (const auto& [name, type] : shared_->narrow.inputs) {
      onnx::TensorData& tensor = widened.at(name);
      tensor = in_type(tensor, onnx::ElementType::f32);
    }
    TensorMap outputs;
    try {
      auto* keeps = dynamic_cast<KeepsOutputs*>(remote_.get());
      outputs = keeps != nullptr ? keeps->run_and_keep(widened) : remote_->run(widened);
    } catch (const Error& failed) {
      // With these sizes the node of an operator may be the cause of the failure.
      if (failed.kind() == Error::Kind::bad_input) check_operators(shared_->model, shapes_of(inputs));
      throw;
    }
    for (const auto& [name, type] : shared_->narrow.outputs) {
      onnx::TensorData& tensor = outputs.at(name);
      tensor = in_type(tensor, type);
    }
    return outputs;
  }

  [[nodiscard]] Answer answer() const override { return shared_->answer; }

 private:
  std::shared_ptr<const SharedState> shared_;
  std::unique_ptr<CompiledModel> remote_;
};

class WorkerOfOnnxruntime final : public OnnxruntimeEngine {
 public:
  WorkerOfOnnxruntime(std::function<WorkerCommand()> find, const Engine& other)
      : worker_(make_worker_engine(std::move(find))), other_(other) {}

  using Engine::compile;
  [[nodiscard]] std::string_view name() const override { return worker_->name(); }

  [[nodiscard]] std::unique_ptr<CompiledModel> compile(const onnx::Model& model,
                                                       const CompileOptions& options) const override {
    if (options.kernels != OperatorKernels::functions && holds_operators(model)) return other_.compile(model, options);
    const auto shared = std::make_shared<SharedState>();
    shared->inputs = DeclaredInputs(model, onnxruntime_takes);
    ForOnnxruntime prepared = prepare_for_onnxruntime(model, options);
    (void)output_names(prepared.model);
    shared->model = model.clone();
    shared->narrow = std::move(prepared.narrow);
    shared->answer.engine = name();
    if (!prepared.rewritten.empty()) {
      shared->answer.rewritten =
          fmt::format("{} ran a rewritten copy of the model, with {}", name(), prepared.rewritten);
    }
    return std::make_unique<OnnxruntimeModel>(
        shared,
        worker_->compile(prepared.model,
                         {.threads = options.threads, .streams = options.streams, .should_stop = options.should_stop}));
  }

  [[nodiscard]] TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    check_constant_graph(model);
    return compile(model, {.threads = 1})->run({});
  }

  [[nodiscard]] std::string refusal_of(const onnx::Model& model,
                                       const std::function<bool()>& should_stop) const override {
    try {
      (void)worker_->compile(model, {.should_stop = should_stop});
      return {};
    } catch (const Error& refused) {
      if (refused.kind() != Error::Kind::bad_input) throw;
      std::string text = refused.what();
      const std::string before =
          fmt::format("{}: the CPU engine cannot compile this model: {}: ", model.source, name());
      return text.starts_with(before) ? text.substr(before.size()) : text;
    }
  }

 private:
  std::unique_ptr<Engine> worker_;
  const Engine& other_;
};

}  // namespace

std::unique_ptr<OnnxruntimeEngine> make_onnxruntime_engine(std::function<WorkerCommand()> find, const Engine& other) {
  return std::make_unique<WorkerOfOnnxruntime>(std::move(find), other);
}

}  // namespace graft::runtime
