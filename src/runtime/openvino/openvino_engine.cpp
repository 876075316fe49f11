// Compiles and runs models on OpenVINO's CPU plugin.
#include "runtime/openvino/openvino_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <openvino/op/clamp.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/select.hpp>
#include <openvino/op/util/binary_elementwise_arithmetic.hpp>
#include <openvino/op/util/binary_elementwise_comparison.hpp>
#include <openvino/op/util/unary_elementwise_arithmetic.hpp>
#include <openvino/pass/constant_folding.hpp>
#include <openvino/pass/manager.hpp>
#include <openvino/runtime/core.hpp>
#include <openvino/runtime/intel_cpu/properties.hpp>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <unordered_map>
#include <utility>

#include "graft/error.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/schema.hpp"
#include "runtime/engine_limit.hpp"
#include "runtime/keeps_outputs.hpp"
#include "runtime/model_io.hpp"
#include "runtime/openvino/element_types.hpp"
#include "runtime/openvino/guards.hpp"
#include "runtime/openvino/hold_constants.hpp"
#include "runtime/openvino/integer_nodes.hpp"
#include "runtime/openvino/isolate.hpp"
#include "runtime/openvino/message.hpp"
#include "runtime/openvino/no_elements.hpp"
#include "runtime/openvino/output_shapes.hpp"
#include "runtime/openvino/prepare.hpp"
#include "runtime/openvino/reader.hpp"
#include "runtime/openvino/segments.hpp"

namespace graft::runtime {
namespace {

/// Returns the OpenVINO core of this process. Its methods may be called from several threads.
ov::Core& core() {
  static ov::Core core;
  return core;
}

/// Throws EngineLimit for an integer that does not fit 32 signed bits; `where` begins the message. OpenVINO's CPU
/// plugin stores 64-bit and unsigned 32-bit integers in 32 signed bits and would truncate larger ones without an error.
void check_integers(const std::string& where, const onnx::TensorData& tensor) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t highest = std::numeric_limits<std::int32_t>::max();
  const auto check = [&]<class T>(T /*type*/) {
    const char* data = tensor.bytes.data();
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      T value;
      std::memcpy(&value, data + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
      if (std::cmp_less(value, lowest) || std::cmp_greater(value, highest)) {
        throw EngineLimit(where + ": element " + std::to_string(i) + " is " + std::to_string(value) +
                          "; the CPU engine holds integers in 32 bits, so each element must be between " +
                          std::to_string(lowest) + " and " + std::to_string(highest));
      }
    }
  };
  if (tensor.type == onnx::ElementType::i64) check(std::int64_t{});
  if (tensor.type == onnx::ElementType::u64) check(std::uint64_t{});
  if (tensor.type == onnx::ElementType::u32) check(std::uint32_t{});
}

/// Returns an OpenVINO tensor with the same elements, which shares the memory. Copies the elements only if they are not
/// aligned as OpenVINO and Graft's kernels require.
ov::Tensor wrap(const onnx::TensorData& tensor) {
  const ov::element::Type type = to_openvino(tensor.type);
  const ov::Shape shape(tensor.dims.begin(), tensor.dims.end());
  const std::uintptr_t alignment = std::max<std::size_t>(type.size(), 1);
  const char* data = tensor.bytes.data();
  if (tensor.bytes.size() != 0 && reinterpret_cast<std::uintptr_t>(data) % alignment == 0) {
    return {type, shape, const_cast<char*>(data)};  // The inputs are only read.
  }
  ov::Tensor copy(type, shape);
  if (tensor.bytes.size() != 0) std::memcpy(copy.data(), data, tensor.bytes.size());
  return copy;
}

/// Returns a view of a tensor in the engine's memory.
onnx::TensorData view_of(const ov::Tensor& tensor) {
  onnx::TensorData result;
  result.type = from_openvino(tensor.get_element_type());
  const ov::Shape& shape = tensor.get_shape();
  result.dims.assign(shape.begin(), shape.end());
  result.bytes = onnx::Bytes(nullptr, std::span(static_cast<const char*>(tensor.data()), tensor.get_byte_size()));
  return result;
}

onnx::TensorData unwrap(const ov::Tensor& tensor) {
  onnx::TensorData result = view_of(tensor);
  result.bytes = onnx::Bytes(std::string(result.bytes.view()));
  return result;
}

onnx::TensorData as_bf16(const onnx::TensorData& tensor) {
  return onnx::TensorData::from_numbers(onnx::ElementType::bf16, tensor.dims, *tensor.numbers());
}

/// Converts the outputs in bf16 to f32, and returns their indices; the caller rounds them to bf16. OpenVINO's CPU
/// plugin truncates f32 to bf16 instead of rounding.
std::set<std::size_t> widen_bf16_outputs(ov::Model& model) {
  std::set<std::size_t> widened;
  for (std::size_t i = 0; i < model.get_results().size(); ++i) {
    const auto& result = model.get_results()[i];
    if (result->get_element_type() != ov::element::bf16) continue;
    result->input(0).replace_source_output(
        std::make_shared<ov::op::v0::Convert>(result->input_value(0), ov::element::f32));
    widened.insert(i);
  }
  if (!widened.empty()) model.validate_nodes_and_infer_types();
  return widened;
}

bool is_element_by_element(const ov::Node& node) {
  return ov::is_type<ov::op::util::UnaryElementwiseArithmetic>(&node) ||
         ov::is_type<ov::op::util::BinaryElementwiseArithmetic>(&node) ||
         ov::is_type<ov::op::util::BinaryElementwiseComparison>(&node) || ov::is_type<ov::op::v1::Select>(&node) ||
         ov::is_type<ov::op::v0::Clamp>(&node);
}

/// Returns whether a chain of elementwise operations is too long for OpenVINO's CPU plugin to fuse. The plugin compiles
/// such a chain into one kernel, in a time that grows with the square of the number of operations. A chain of 240 took
/// 3.3 s to compile, and 0.4 s as single kernels. For 5,000 operations the compilation did not end, and took 8 s as
/// single kernels.
bool has_long_chain(const ov::Model& model) {
  constexpr std::size_t long_chain = 48;
  std::unordered_map<const ov::Node*, std::size_t> lengths;
  for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
    if (!is_element_by_element(*node)) continue;
    std::size_t length = 1;
    for (const auto& input : node->input_values()) {
      const auto before = lengths.find(input.get_node());
      if (before != lengths.end()) length = std::max(length, before->second + 1);
    }
    if (length >= long_chain) return true;
    lengths.emplace(node.get(), length);
  }
  return false;
}

/// Returns at least two threads for each stream. With one thread, OpenVINO 2026.4 drops an exception of a node, in its
/// shape inference or in a guard node, and continues with memory that nothing was written to.
int threads_for(const CompileOptions& options) {
  const int wanted = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(wanted, 2 * options.streams);
}

/// Compiles a model. If one of OpenVINO's transformations fails, the nodes at which it fails are isolated, which
/// changes the model, and the compilation is repeated. DeReshapeMatMul of 2026.4 throws on some products between two
/// Reshapes, which are computed correctly without that transformation.
ov::CompiledModel compile(const std::shared_ptr<ov::Model>& model, const ov::AnyMap& properties) {
  std::set<std::string> isolated;
  for (;;) {
    try {
      return core().compile_model(model, "CPU", properties);
    } catch (const std::exception& refused) {
      const std::string type = failed_transformation_root(refused.what());
      if (type.empty() || !isolated.insert(type).second || !isolate_nodes(*model, type)) throw;
    }
  }
}

bool takes_input(onnx::ElementType type) {
  return to_openvino(type) != ov::element::dynamic && type != onnx::ElementType::string;
}

/// Returns the index of each declared input among the parameters of OpenVINO's model. It is empty for an input that no
/// node reads, because `prepared`, the model from which `read` was created, has no such inputs.
std::vector<std::optional<std::size_t>> places_of(const std::vector<DeclaredInputs::Input>& inputs,
                                                  const onnx::Graph& prepared, const ov::Model& read) {
  const auto& parameters = read.get_parameters();
  std::vector<std::string> kept;
  for (const onnx::Value* input : prepared.inputs()) kept.push_back(input->name);
  std::vector<std::optional<std::size_t>> places(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (parameters.size() == kept.size()) {
      const auto found = std::find(kept.begin(), kept.end(), inputs[i].name);
      if (found != kept.end()) places[i] = static_cast<std::size_t>(found - kept.begin());
      continue;
    }
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      if (parameters[k]->output(0).get_names().contains(inputs[i].name)) places[i] = k;
    }
  }
  return places;
}

/// A compiled segment of the model (see cut_into_segments). Most models have only one.
struct Part {
  std::vector<std::optional<std::size_t>> inputs;
  /// The number of outputs of the model that this part returns, as its first outputs. One more output connects the part
  /// to the next one.
  std::size_t outputs = 0;
  ov::CompiledModel compiled;
  ov::InferRequest request;
};

/// A compiled model with its requests. Copies share the compiled parts.
struct State {
  std::string source;
  std::shared_ptr<const onnx::Model> model;  ///< The original model, for error messages when a run fails.
  DeclaredInputs inputs;
  /// The index of each input in OpenVINO's model, which drops unused inputs.
  std::vector<std::optional<std::size_t>> places;
  std::vector<std::string> outputs;
  std::set<std::size_t> bf16_outputs;
  std::vector<Part> parts;
  /// For each output of the model, the index of the part that computes it and the index of the output within that part.
  std::vector<std::pair<std::size_t, std::size_t>> output_places;
  OutputShapes output_shapes;
};

class OpenvinoModel final : public CompiledModel, public KeepsOutputs {
 public:
  explicit OpenvinoModel(State state) : state_(std::move(state)) {}

  [[nodiscard]] std::unique_ptr<CompiledModel> new_request() const override;
  void run(const TensorMap& inputs, const std::function<void(const TensorMap&)>& look) override;
  [[nodiscard]] TensorMap run_and_keep(const TensorMap& inputs) override;

 private:
  void infer(const TensorMap& inputs);
  [[nodiscard]] onnx::TensorData take_output(std::size_t index);
  [[nodiscard]] ov::Tensor output(std::size_t index) {
    const auto& [part, place] = state_.output_places[index];
    return state_.parts[part].request.get_output_tensor(place);
  }

  State state_;
};

State compile_parts(const onnx::Model& model, const CompileOptions& options) {
  State own;
  own.source = model.source;
  own.model = std::make_shared<const onnx::Model>(model.clone());
  own.output_shapes = OutputShapes(own.model);
  own.inputs = DeclaredInputs(model, takes_input);
  PreparedModel prepared = prepare(model, options);
  fix_defaults(prepared.model);
  own.outputs = output_names(prepared.model);
  const std::shared_ptr<ov::Model> read = read_into_openvino(prepared);
  own.places = places_of(own.inputs.all(), prepared.model.graph(), *read);
  const auto used = static_cast<std::size_t>(
      std::count_if(own.places.begin(), own.places.end(), [](const auto& place) { return place.has_value(); }));
  if (read->get_parameters().size() != used || read->get_results().size() != own.outputs.size()) {
    // The reader leaves out the ratio of a Dropout, for example, which the graph uses.
    throw Error(
        fmt::format("{}: OpenVINO cannot run this model, because OpenVINO's reader drops inputs or outputs: {} inputs "
                    "and {} outputs are left, and the model has {} and {}",
                    own.source, read->get_parameters().size(), read->get_results().size(), used, own.outputs.size()));
  }
  own.bf16_outputs = widen_bf16_outputs(*read);
  // The low precision transformations are disabled: see integer_arithmetic.hpp. With 8-bit weights, processors with
  // VNNI would also round the other operand to 8 bits, in groups (dynamic quantization).
  ov::AnyMap properties{ov::hint::inference_precision(ov::element::f32),
                        ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
                        ov::hint::enable_cpu_pinning(false),
                        ov::hint::dynamic_quantization_group_size(0),
                        ov::intel_cpu::denormals_optimization(false),
                        ov::num_streams(options.streams),
                        ov::inference_num_threads(threads_for(options)),
                        {"LP_TRANSFORMS_MODE", false}};
  leave_out_what_has_no_elements(*read);
  // Guards are added before constants are computed, because the indices of constants may also be out of range.
  add_guards(*read, own.source);
  try {
    hold_constants(*read, [&](const std::shared_ptr<ov::Model>& part) { return compile(part, properties); });
  } catch (const std::exception& refused) {
    throw Error(own.source +
                ": the CPU engine cannot compute this model's constants: " + shorten_openvino_message(refused.what()));
  }
  // The plugin fuses a product and a sum in one kernel into an operation that rounds only once.
  if (prepared.integers || has_long_chain(*read)) properties.emplace("SNIPPETS_MODE", "DISABLE");
  try {
    own.output_places.resize(own.outputs.size());
    for (const Segment& segment : cut_into_segments(read)) {
      Part& part = own.parts.emplace_back();
      part.inputs = segment.inputs;
      part.outputs = segment.outputs.size();
      for (std::size_t i = 0; i < part.outputs; ++i) own.output_places[segment.outputs[i]] = {own.parts.size() - 1, i};
      part.compiled = compile(segment.model, properties);
      part.request = part.compiled.create_infer_request();
    }
  } catch (const std::exception& refused) {
    throw Error(own.source + ": the CPU engine cannot compile this model: " + shorten_openvino_message(refused.what()));
  }
  return own;
}

std::unique_ptr<CompiledModel> OpenvinoModel::new_request() const {
  State own = state_;
  try {
    for (Part& part : own.parts) part.request = part.compiled.create_infer_request();
  } catch (const std::exception& refused) {
    throw Error(own.source + ": the CPU engine cannot prepare another run of this model: " +
                shorten_openvino_message(refused.what()));
  }
  return std::make_unique<OpenvinoModel>(std::move(own));
}

void OpenvinoModel::infer(const TensorMap& inputs) {
  const State& own = state_;
  own.inputs.check(inputs);
  const std::vector<DeclaredInputs::Input>& declared = own.inputs.all();
  for (const DeclaredInputs::Input& input : declared) {
    check_integers(own.inputs.place_of(input), inputs.find(input.name)->second);
  }
  try {
    std::map<std::size_t, ov::Tensor> given;
    for (std::size_t i = 0; i < declared.size(); ++i) {
      if (own.places[i]) given.emplace(*own.places[i], wrap(inputs.find(declared[i].name)->second));
    }
    ov::Tensor before;
    for (Part& part : state_.parts) {
      for (std::size_t i = 0; i < part.inputs.size(); ++i) {
        part.request.set_input_tensor(i, part.inputs[i] ? given.at(*part.inputs[i]) : before);
      }
      part.request.infer();
      if (&part != &state_.parts.back()) before = part.request.get_output_tensor(part.outputs);
    }
  } catch (const std::exception& failed) {
    // With these sizes the node of one of Graft's operators may be the cause
    check_operators(*own.model, shapes_of(inputs));
    const std::string text = failed.what();
    if (text.find(beyond_exact_integers) != std::string::npos) {
      throw EngineLimit(own.source + ": cannot run with " + types_and_shapes(inputs) + ": " +
                        shorten_openvino_message(text));
    }
    throw Error(own.source + ": cannot run with " + types_and_shapes(inputs) + ": " +
                shorten_openvino_message(failed.what()));
  }
}

void OpenvinoModel::run(const TensorMap& inputs, const std::function<void(const TensorMap&)>& look) {
  infer(inputs);
  const State& own = state_;
  TensorMap outputs;
  for (std::size_t i = 0; i < own.outputs.size(); ++i) {
    onnx::TensorData found = view_of(output(i));
    outputs[own.outputs[i]] = own.bf16_outputs.contains(i) ? as_bf16(found) : std::move(found);
  }
  state_.output_shapes.check(inputs, outputs);
  look(outputs);
}

/// Returns an output without a copy if its sizes are fixed: the output keeps the memory that the engine wrote, and the
/// request gets new memory for the next run. Outputs with dynamic sizes are copied, because the engine manages their
/// memory itself.
onnx::TensorData OpenvinoModel::take_output(std::size_t index) {
  const auto& [part, place] = state_.output_places[index];
  Part& made = state_.parts[part];
  const ov::Tensor tensor = made.request.get_output_tensor(place);
  if (made.compiled.output(place).get_partial_shape().is_dynamic()) return unwrap(tensor);
  made.request.set_output_tensor(place, ov::Tensor(tensor.get_element_type(), tensor.get_shape()));
  onnx::TensorData taken = view_of(tensor);
  const auto owner = std::make_shared<const ov::Tensor>(tensor);
  taken.bytes = onnx::Bytes(owner, std::span(taken.bytes.data(), taken.bytes.size()));
  return taken;
}

TensorMap OpenvinoModel::run_and_keep(const TensorMap& inputs) {
  infer(inputs);
  TensorMap outputs;
  for (std::size_t i = 0; i < state_.outputs.size(); ++i) {
    const bool is_rounded = state_.bf16_outputs.contains(i);
    outputs[state_.outputs[i]] = is_rounded ? as_bf16(view_of(output(i))) : take_output(i);
  }
  state_.output_shapes.check(inputs, outputs);
  return outputs;
}

TensorMap compute(const onnx::Model& model) {
  check_constant_graph(model);
  PreparedModel prepared = prepare(model, {});
  fix_defaults(prepared.model);
  const std::vector<std::string> names = output_names(prepared.model);
  const std::shared_ptr<ov::Model> read = read_into_openvino(prepared);
  release_fixed(*read);
  try {
    ov::pass::Manager folding;
    folding.register_pass<ov::pass::ConstantFolding>();
    folding.run_passes(read);
  } catch (const std::exception& refused) {
    throw Error(model.source + ": the CPU engine cannot compute the constants of this graph: " +
                shorten_openvino_message(refused.what()));
  }
  TensorMap outputs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& result = read->get_results().at(i);
    const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(result->get_input_node_shared_ptr(0));
    if (constant == nullptr) {
      throw Error(model.source + ": '" + names[i] + "' cannot be computed in advance: OpenVINO does not fold " +
                  result->get_input_node_shared_ptr(0)->get_type_name());
    }
    outputs[names[i]] = unwrap(constant->get_tensor_view());
  }
  return outputs;
}

class OpenvinoEngine final : public Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return "OpenVINO " GRAFT_OPENVINO_VERSION; }
  [[nodiscard]] std::unique_ptr<CompiledModel> compile(const onnx::Model& model,
                                                       const CompileOptions& options) const override {
    return std::make_unique<OpenvinoModel>(compile_parts(model, options));
  }
  [[nodiscard]] TensorMap evaluate_constant_graph(const onnx::Model& model) const override { return compute(model); }
};

}  // namespace

const Engine& openvino_engine() {
  static const OpenvinoEngine engine;
  return engine;
}

}  // namespace graft::runtime
