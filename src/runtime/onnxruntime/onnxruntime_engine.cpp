// Prepares models so that ONNX Runtime can run them as Engine promises; the process in Python only runs them.
#include "runtime/onnxruntime/onnxruntime_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "graft/error.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/functions.hpp"
#include "onnx/operator_calls.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/opset.hpp"
#include "onnx/standard_operators.hpp"
#include "runtime/keeps_outputs.hpp"
#include "runtime/model_io.hpp"
#include "runtime/onnxruntime/widen.hpp"

namespace graft::runtime {
namespace {

/// The types that NumPy has, and those that are widened.
bool onnxruntime_takes(onnx::ElementType type) {
  using onnx::ElementType;
  constexpr std::array taken{ElementType::f32,    ElementType::f64, ElementType::f16, ElementType::bf16,
                             ElementType::u8,     ElementType::i8,  ElementType::u16, ElementType::i16,
                             ElementType::u32,    ElementType::i32, ElementType::u64, ElementType::i64,
                             ElementType::boolean};
  return std::find(taken.begin(), taken.end(), type) != taken.end();
}

/// Those that no loaded library has are among them.
bool holds_operators(const onnx::Model& model) {
  bool holds = !calls_without_operator(model).empty();
  model.graph().for_each_node([&](const onnx::Node& node) { holds = holds || onnx::find_operator_for(node); });
  return holds;
}

onnx::TensorData in_type(const onnx::TensorData& tensor, onnx::ElementType type) {
  return onnx::TensorData::from_numbers(type, tensor.dims, *tensor.numbers());
}

/// A model as the process gets it.
struct ForOnnxruntime {
  onnx::Model model;
  NarrowTypes narrow;
};

/// Lowers a model in operator set 22 to 21, where all its nodes mean the same in both. Most operators of 22 differ by
/// bf16 alone, which is widened, and ONNX Runtime implements some of them in the older set only: RoiAlign,
/// GlobalLpPool.
void lower_opset(onnx::Model& model) {
  if (std::as_const(model).graph().opset() != onnx::bf16_opset) return;
  constexpr std::int64_t lower = onnx::bf16_opset - 1;
  bool is_the_same = true;
  const auto look = [&](const onnx::Node& node) {
    if (!node.domain.empty()) return;
    const std::int64_t first = onnx::first_version(node.op_type);
    is_the_same =
        is_the_same && first != 0 && first <= lower && !onnx::form_changed(node.op_type, lower, onnx::bf16_opset);
  };
  std::as_const(model).graph().for_each_node(look);
  for (const auto& [key, function] : model.functions) {
    const onnx::Graph& body = *function.body;
    body.for_each_node(look);
  }
  if (!is_the_same) return;
  model.graph().opset_imports[""] = lower;
  for (auto& [key, function] : model.functions) {
    const auto own = function.body->opset_imports.find("");
    if (own != function.body->opset_imports.end()) own->second = std::min(own->second, lower);
  }
}

ForOnnxruntime prepare_for_onnxruntime(const onnx::Model& given, const CompileOptions& options) {
  check_operators(given);
  ForOnnxruntime prepared{.model = given.clone(), .narrow = {}};
  onnx::Model& model = prepared.model;
  add_extra_outputs(model, options.extra_outputs);
  fix_defaults(model);
  // Before version 4 every constant has to be an input.
  constexpr std::int64_t constants_are_no_inputs = 4;
  model.ir_version = std::max(model.ir_version, constants_are_no_inputs);
  prepared.narrow = widen_narrow_types(model, options.round_inside);
  model.graph().remove_dead();
  for (const onnx::Node* node : attach_functions(model)) {
    throw Error(
        fmt::format("{}: {} has no ONNX function, so ONNX Runtime cannot run it\nLet OpenVINO run it, by its "
                    "CPU kernel",
                    model.source, onnx::describe(*node)));
  }
  lower_opset(model);
  return prepared;
}

/// What the requests for one compiled model share.
struct SharedState {
  onnx::Model model;  ///< As it was given; looked at where a run fails.
  DeclaredInputs inputs;
  NarrowTypes narrow;
};

class OnnxruntimeModel final : public CompiledModel, public KeepsOutputs {
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
      // With these sizes an operator's node may be what fails.
      if (failed.kind() == Error::Kind::bad_input) check_operators(shared_->model, shapes_of(inputs));
      throw;
    }
    for (const auto& [name, type] : shared_->narrow.outputs) {
      onnx::TensorData& tensor = outputs.at(name);
      tensor = in_type(tensor, type);
    }
    return outputs;
  }

 private:
  std::shared_ptr<const SharedState> shared_;
  std::unique_ptr<CompiledModel> remote_;
};

class OnnxruntimeEngine final : public Engine {
 public:
  OnnxruntimeEngine(std::function<WorkerCommand()> find, const Engine& other)
      : worker_(make_worker_engine(std::move(find))), other_(other) {}

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
    return std::make_unique<OnnxruntimeModel>(
        shared, worker_->compile(prepared.model, {.threads = options.threads, .streams = options.streams}));
  }

  [[nodiscard]] TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    check_constant_graph(model);
    return compile(model, {.threads = 1})->run({});
  }

 private:
  std::unique_ptr<Engine> worker_;
  const Engine& other_;
};

}  // namespace

std::unique_ptr<Engine> make_onnxruntime_engine(std::function<WorkerCommand()> find, const Engine& other) {
  return std::make_unique<OnnxruntimeEngine>(std::move(find), other);
}

}  // namespace graft::runtime
