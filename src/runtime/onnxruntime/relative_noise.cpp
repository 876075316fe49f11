// Three runs for one.
#include "runtime/onnxruntime/relative_noise.hpp"

#include <cmath>
#include <utility>
#include <vector>

namespace graft::runtime {
namespace {

onnx::TensorData moved_tensor(const onnx::TensorData& still, const onnx::TensorData& noiseless,
                              const onnx::TensorData& noisy) {
  // Where the other engine gives other sizes without noise, a fault of it is no noise of this one.
  if (noiseless.same_as(noisy) || noiseless.dims != still.dims) return still;
  const bool has_partners = still.type == noisy.type && noiseless.dims == noisy.dims;
  if (!has_partners) return noisy;
  std::vector<double> numbers = *still.numbers();
  const std::vector<double> before = *noiseless.numbers();
  const std::vector<double> after = *noisy.numbers();
  const bool has_size = is_floating_point(still.type);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (before[i] == after[i] || (std::isnan(before[i]) && std::isnan(after[i]))) continue;
    const double moved = numbers[i] + (after[i] - before[i]);
    numbers[i] = has_size && std::isfinite(moved) ? moved : after[i];
  }
  return onnx::TensorData::from_numbers(still.type, still.dims, numbers);
}

class MovedModel final : public CompiledModel {
 public:
  MovedModel(std::unique_ptr<CompiledModel> still, std::unique_ptr<CompiledModel> noiseless,
             std::unique_ptr<CompiledModel> noisy)
      : still_(std::move(still)), noiseless_(std::move(noiseless)), noisy_(std::move(noisy)) {}

  [[nodiscard]] std::unique_ptr<CompiledModel> new_request() const override {
    return std::make_unique<MovedModel>(still_->new_request(), noiseless_->new_request(), noisy_->new_request());
  }

  using CompiledModel::run;
  void run(const TensorMap& inputs, const std::function<void(const TensorMap& outputs)>& look) override {
    TensorMap outputs = still_->run(inputs);
    const TensorMap noiseless = noiseless_->run(inputs);
    noisy_->run(inputs, [&](const TensorMap& noisy) {
      for (auto& [name, tensor] : outputs) tensor = moved_tensor(tensor, noiseless.at(name), noisy.at(name));
    });
    look(outputs);
  }

 private:
  std::unique_ptr<CompiledModel> still_;
  std::unique_ptr<CompiledModel> noiseless_;
  std::unique_ptr<CompiledModel> noisy_;
};

}  // namespace

std::unique_ptr<CompiledModel> move_by_noise(std::unique_ptr<CompiledModel> still,
                                             std::unique_ptr<CompiledModel> noiseless,
                                             std::unique_ptr<CompiledModel> noisy) {
  return std::make_unique<MovedModel>(std::move(still), std::move(noiseless), std::move(noisy));
}

}  // namespace graft::runtime
