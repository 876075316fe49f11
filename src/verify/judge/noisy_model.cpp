// Runs the draws of a model with noise.
#include "verify/judge/noisy_model.hpp"

#include <cstdint>

#include "graft/error.hpp"
#include "verify/compare/ends.hpp"

namespace graft::verify {
namespace {

std::vector<NoiseFloor> measure_floors(const std::vector<DoubtfulTensor>& tensors, const RunDraws& run) {
  std::vector<NoiseFloor> floors;
  for (const DoubtfulTensor& tensor : tensors) floors.emplace_back(tensor.tolerance);
  if (tensors.empty()) return floors;
  run(tensors, [&](const runtime::TensorMap& still, const runtime::TensorMap& moved) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const DoubtfulTensor& tensor = tensors[i];
      const onnx::TensorData& before = still.at(tensor.name);
      const onnx::TensorData& after = moved.at(tensor.name);
      if (tensor.arrange) {
        floors[i].add(*tensor.reference, tensor.arrange(before), tensor.arrange(after));
      } else {
        floors[i].add(*tensor.reference, before, after);
      }
    }
  });
  return floors;
}

void throw_defect(const Error& error) {
  if (error.kind() == Error::Kind::internal) throw error;
}

}  // namespace

void NoisyModel::compile() {
  NoisyGraph noisy = add_rounding_noise(*model_, options_, f64_noise_);
  runtime::CompileOptions options = options_;
  options.extra_outputs.clear();
  compiled_ = engine_->compile(noisy.model, options);
  factors_ = std::move(noisy.input);
  narrow_ = std::move(noisy.narrow);
}

runtime::TensorMap NoisyModel::run_draw(runtime::TensorMap& inputs, std::uint64_t draw) const {
  inputs[factors_] = noise_factors(draw);
  runtime::TensorMap outputs = compiled_->run(inputs);
  for (const auto& [name, type] : narrow_.outputs) outputs.at(name) = in_type(outputs.at(name), type);
  return outputs;
}

void NoisyModel::run(const runtime::TensorMap& inputs, const LookAtDraw& look) {
  if (is_refused_) return;
  runtime::TensorMap given = inputs;
  runtime::TensorMap still;
  try {
    if (!compiled_) compile();
    for (const auto& [name, type] : narrow_.inputs) given.at(name) = in_type(given.at(name), onnx::ElementType::f32);
    still = run_draw(given, 0);
  } catch (const Error& refused) {
    is_refused_ = !compiled_;
    return throw_defect(refused);
  }
  for (std::uint64_t draw = 1; draw <= draws; ++draw) {
    runtime::TensorMap moved;
    try {
      moved = run_draw(given, draw);
    } catch (const Error& refused) {
      throw_defect(refused);
      continue;
    }
    look(still, moved);
  }
}

RunDraws draws_of(std::optional<NoisyModel>& noisy, const runtime::TensorMap& inputs) {
  if (!noisy) return {};
  return [&](const std::vector<DoubtfulTensor>& /*tensors*/, const LookAtDraw& look) { noisy->run(inputs, look); };
}

void judge_by_noise(const std::vector<DoubtfulTensor>& tensors, const RunDraws& first, const RunDraws& second,
                    std::string_view second_name) {
  std::vector<NoiseFloor> floors = measure_floors(tensors, first);
  std::vector<DoubtfulTensor> suspect;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const DoubtfulTensor& tensor = tensors[i];
    if (floors[i].runs() == 0) continue;
    *tensor.difference = compare(*tensor.reference, *tensor.candidate, tensor.tolerance, &floors[i]);
    if (needs_confirmation(*tensor.difference, floors[i])) suspect.push_back(tensor);
    *tensor.floor = std::move(floors[i]);
  }
  if (suspect.empty() || !second) return;
  const std::vector<NoiseFloor> confirming = measure_floors(suspect, second);
  for (std::size_t i = 0; i < suspect.size(); ++i) {
    const DoubtfulTensor& tensor = suspect[i];
    confirm(*tensor.reference, *tensor.candidate, tensor.tolerance, confirming[i], second_name, *tensor.difference,
            **tensor.floor, tensor.is_of_f64);
  }
}

}  // namespace graft::verify
