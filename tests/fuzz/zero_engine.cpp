// An engine whose results are zeros.
#include "tests/fuzz/zero_engine.hpp"

#include <fmt/format.h>

#include "graft/error.hpp"
#include "onnx/shape_inference.hpp"

namespace graft::fuzz {
namespace {

/// Maximum number of elements: a hostile file may declare sizes that exceed any memory.
constexpr std::int64_t most_zeros = 1 << 14;

void check_size(const onnx::Value& value) {
  if (!value.type || !value.shape) throw Error(fmt::format("'{}' has no known type and shape", value.name));
  std::int64_t elements = 1;
  for (const Dim& dim : *value.shape) {
    if (!dim.is_constant()) continue;
    if (dim.value() < 0 || __builtin_mul_overflow(elements, dim.value(), &elements) || elements > most_zeros) {
      throw Error(fmt::format("'{}' is too large", value.name));
    }
  }
}

runtime::TensorMap zeros(const onnx::Model& model) {
  runtime::TensorMap results;
  for (const onnx::Value* output : model.graph().outputs()) {
    check_size(*output);
    onnx::TensorData tensor;
    tensor.type = *output->type;
    for (const Dim& dim : *output->shape) {
      if (!dim.is_constant()) throw Error(fmt::format("'{}' has an open dimension", output->name));
      tensor.dims.push_back(dim.value());
    }
    const auto bits = static_cast<std::size_t>(tensor.element_count()) * static_cast<std::size_t>(bits_of(tensor.type));
    tensor.bytes = onnx::Bytes(std::string((bits + 7) / 8, '\0'));
    results.emplace(output->name, std::move(tensor));
  }
  return results;
}

class ZeroModel final : public runtime::CompiledModel {
 public:
  explicit ZeroModel(onnx::Model model) : model_(std::move(model)) {}

  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> new_request() const override {
    return std::make_unique<ZeroModel>(model_.clone());
  }

  void run(const runtime::TensorMap& inputs,
           const std::function<void(const runtime::TensorMap& outputs)>& look) override {
    std::map<std::string, Shape, std::less<>> shapes;
    for (const auto& [name, tensor] : inputs) shapes.emplace(name, Shape(tensor.dims.begin(), tensor.dims.end()));
    onnx::Model model = model_.clone();
    infer_shapes(model, shapes);
    look(zeros(model));
  }

 private:
  onnx::Model model_;
};

class ZeroEngine final : public runtime::Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return "zeros"; }

  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(
      const onnx::Model& model, const runtime::CompileOptions& /*options*/) const override {
    for (const onnx::Value* input : model.graph().inputs()) check_size(*input);
    for (const onnx::Value* output : model.graph().outputs()) check_size(*output);
    return std::make_unique<ZeroModel>(model.clone());
  }

  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const onnx::Model& model) const override {
    return zeros(model);
  }
};

}  // namespace

const runtime::Engine& zero_engine() {
  static const ZeroEngine engine;
  return engine;
}

}  // namespace graft::fuzz
