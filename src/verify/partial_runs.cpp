// Each run extracts what the wanted tensors need, and compiles that.
#include "verify/partial_runs.hpp"

#include <algorithm>

#include "graft/error.hpp"
#include "graph/extract.hpp"
#include "graph/shape_inference.hpp"
#include "verify/noisy_model.hpp"

namespace graft {

PartialRuns::PartialRuns(const Model& model, OperatorKernels kernels, int threads)
    : kernels_(kernels), threads_(threads), model_(model.clone()) {
  for (Value* value : std::vector<Value*>(model_.graph().inputs())) {
    if (value->initializer) model_.graph().set_is_input(*value, false);
  }
}

void PartialRuns::infer(const TensorMap& inputs) {
  std::map<std::string, Shape, std::less<>> shapes;
  for (const Value* input : model_.graph().inputs()) {
    const auto found = inputs.find(input->name);
    if (found != inputs.end()) shapes.emplace(input->name, Shape(found->second.dims.begin(), found->second.dims.end()));
  }
  try {
    infer_shapes(model_, shapes);
  } catch (const Error& contradiction) {
    if (contradiction.kind() == Error::Kind::internal) throw;
  }
}

TensorMap PartialRuns::run(const Model& part, const TensorMap& inputs) const {
  CpuModel compiled(part, {.kernels = kernels_, .extra_outputs = {}, .threads = threads_, .round_inside = true});
  return compiled.run(inputs);
}

TensorMap PartialRuns::run(const std::vector<const Value*>& outputs, const TensorMap& inputs) const {
  const std::vector<const Value*> fed(model_.graph().inputs().begin(), model_.graph().inputs().end());
  return run(extract(model_, fed, outputs), inputs);
}

void PartialRuns::run_noisy(const Model& part, const TensorMap& inputs,
                            const std::function<void(const TensorMap&)>& look) const {
  NoisyModel(part, {.kernels = kernels_, .extra_outputs = {}, .threads = threads_, .round_inside = true})
      .run(inputs, look);
}

void PartialRuns::run_noisy(const std::vector<const Value*>& outputs, const TensorMap& inputs,
                            const std::function<void(const TensorMap&)>& look) const {
  const std::vector<const Value*> fed(model_.graph().inputs().begin(), model_.graph().inputs().end());
  run_noisy(extract(model_, fed, outputs), inputs, look);
}

void PartialRuns::visit(const std::vector<const Value*>& values, const TensorMap& inputs, std::int64_t memory,
                        const std::function<void(const Value&, const TensorData&)>& visitor,
                        const std::function<void(std::size_t, std::size_t)>& progress) const {
  std::size_t next = 0;
  while (next < values.size()) {
    if (progress) progress(next, values.size());
    std::vector<const Value*> group;
    std::int64_t bytes = 0;
    while (next < values.size() && (group.empty() || bytes + bytes_of(*values[next]) <= memory)) {
      bytes += bytes_of(*values[next]);
      group.push_back(values[next++]);
    }
    const TensorMap tensors = run(group, inputs);
    for (const Value* value : group) visitor(*value, tensors.at(value->name));
  }
}

std::unordered_map<const Value*, TensorRange> PartialRuns::ranges(
    const std::vector<const Value*>& values, const TensorMap& inputs, std::int64_t memory,
    const std::function<void(std::size_t, std::size_t)>& progress) const {
  std::unordered_map<const Value*, TensorRange> ranges;
  visit(
      values, inputs, memory,
      [&](const Value& value, const TensorData& tensor) { ranges.emplace(&value, range_of(tensor)); }, progress);
  return ranges;
}

std::int64_t bytes_of(const Value& value) {
  constexpr std::int64_t unknown = std::int64_t{1} << 24;
  if (!value.shape) return unknown;
  constexpr std::int64_t bytes_of_f32 = 4;
  std::int64_t bytes = bytes_of_f32;
  for (const Dim& dim : *value.shape) {
    if (!dim.is_constant()) return unknown;
    constexpr std::int64_t most = std::int64_t{1} << 62;
    const std::int64_t size = std::max<std::int64_t>(dim.value(), 1);
    if (bytes > most / size) return most;
    bytes *= size;
  }
  return bytes;
}

}  // namespace graft
