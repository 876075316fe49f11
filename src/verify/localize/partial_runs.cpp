// Each run extracts and compiles the part of the model that the requested tensors need.
#include "verify/localize/partial_runs.hpp"

#include <algorithm>

#include "graft/error.hpp"
#include "onnx/extract.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/shape_inference.hpp"

namespace graft::verify {

PartialRuns::PartialRuns(const runtime::Engine& engine, const onnx::Model& model, runtime::OperatorKernels kernels,
                         int threads)
    : engine_(&engine), kernels_(kernels), threads_(threads), model_(model.clone()) {
  for (onnx::Value* value : std::vector<onnx::Value*>(model_.graph().inputs())) {
    if (value->initializer) model_.graph().set_is_input(*value, false);
  }
}

void PartialRuns::infer(const runtime::TensorMap& inputs) { infer(std::span(&inputs, 1)); }

void PartialRuns::infer(std::span<const runtime::TensorMap> runs) {
  std::map<std::string, Shape, std::less<>> shapes;
  for (const onnx::Value* input : model_.graph().inputs()) {
    const auto first = runs.front().find(input->name);
    if (first == runs.front().end()) continue;
    const std::vector<std::int64_t>& dims = first->second.dims;
    const bool is_same = std::all_of(runs.begin(), runs.end(), [&](const runtime::TensorMap& inputs) {
      const auto found = inputs.find(input->name);
      return found != inputs.end() && found->second.dims == dims;
    });
    if (is_same) shapes.emplace(input->name, Shape(dims.begin(), dims.end()));
  }
  try {
    infer_shapes(model_, shapes);
  } catch (const Error& contradiction) {
    if (contradiction.kind() == Error::Kind::internal) throw;
  }
}

std::unique_ptr<runtime::CompiledModel> PartialRuns::compile(const onnx::Model& part) const {
  return engine_->compile(part, {.kernels = kernels_, .extra_outputs = {}, .threads = threads_, .round_inside = true});
}

std::unique_ptr<runtime::CompiledModel> PartialRuns::compile(const std::vector<const onnx::Value*>& outputs) const {
  const std::vector<const onnx::Value*> fed(model_.graph().inputs().begin(), model_.graph().inputs().end());
  return compile(extract(model_, fed, outputs));
}

runtime::TensorMap PartialRuns::run(const onnx::Model& part, const runtime::TensorMap& inputs) const {
  return compile(part)->run(inputs);
}

runtime::TensorMap PartialRuns::run(const std::vector<const onnx::Value*>& outputs,
                                    const runtime::TensorMap& inputs) const {
  return compile(outputs)->run(inputs);
}

runtime::TensorMap PartialRuns::run_what_can_be(const std::vector<const onnx::Value*>& outputs,
                                                const runtime::TensorMap& inputs, Refusals& refused) const {
  if (outputs.empty()) return {};
  try {
    return run(outputs, inputs);
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::internal) throw;
    if (refused.empty()) {
      const std::vector<const onnx::Value*> own(model_.graph().outputs().begin(), model_.graph().outputs().end());
      static_cast<void>(run(own, inputs));
    }
    if (outputs.size() == 1) {
      refused.emplace(outputs.front(), error.what());
      return {};
    }
  }
  const auto middle = outputs.begin() + static_cast<std::ptrdiff_t>(outputs.size() / 2);
  runtime::TensorMap results = run_what_can_be({outputs.begin(), middle}, inputs, refused);
  results.merge(run_what_can_be({middle, outputs.end()}, inputs, refused));
  return results;
}

void PartialRuns::measure_sizes(const std::vector<const onnx::Value*>& values, const runtime::TensorMap& inputs) {
  std::vector<const onnx::Value*> open;
  for (const onnx::Value* value : values) {
    if (!has_known_sizes(*value)) open.push_back(value);
  }
  if (open.empty()) return;
  try {
    const std::vector<const onnx::Value*> fed(model_.graph().inputs().begin(), model_.graph().inputs().end());
    onnx::Model part = extract(model_, fed, open);
    onnx::Graph& graph = part.graph();
    std::vector<std::string> names;
    for (std::size_t i = 0; i < open.size(); ++i) {
      onnx::Node* shape = graph.add_node("Shape", {graph.find_local(open[i]->name)}, {open[i]->name + "/dims"});
      shape->output()->type = onnx::ElementType::i64;
      graph.replace_output(i, *shape->output());
      names.push_back(shape->output()->name);
    }
    const runtime::TensorMap dims = run(part, inputs);
    for (std::size_t i = 0; i < open.size(); ++i) {
      constexpr std::int64_t bytes_of_f32 = 4;
      std::int64_t bytes = bytes_of_f32;
      const auto sizes = dims.at(names[i]).ints();
      for (const std::int64_t size : *sizes) bytes *= std::max<std::int64_t>(size, 1);
      sizes_[open[i]] = bytes;
    }
  } catch (const Error& refused) {
    if (refused.kind() == Error::Kind::internal) throw;  // Otherwise the estimated sizes are used.
  }
}

std::int64_t PartialRuns::bytes_of(const onnx::Value& value) const {
  const auto measured = sizes_.find(&value);
  return measured == sizes_.end() ? graft::verify::bytes_of(value) : measured->second;
}

void PartialRuns::run_noisy(const runtime::Engine& engine, const onnx::Model& part, const runtime::TensorMap& inputs,
                            const LookAtDraw& look, F64Noise f64_noise) const {
  NoisyModel(engine, part, {.kernels = kernels_, .extra_outputs = {}, .threads = threads_, .round_inside = true},
             f64_noise)
      .run(inputs, look);
}

void PartialRuns::run_noisy(const runtime::Engine& engine, const std::vector<const onnx::Value*>& outputs,
                            const runtime::TensorMap& inputs, const LookAtDraw& look, F64Noise f64_noise) const {
  const std::vector<const onnx::Value*> fed(model_.graph().inputs().begin(), model_.graph().inputs().end());
  run_noisy(engine, extract(model_, fed, outputs), inputs, look, f64_noise);
}

std::vector<const onnx::Value*> PartialRuns::next_group(const std::vector<const onnx::Value*>& values,
                                                        std::size_t& next, std::int64_t memory) const {
  std::vector<const onnx::Value*> group;
  std::int64_t bytes = 0;
  while (next < values.size() && (group.empty() || bytes + bytes_of(*values[next]) <= memory)) {
    bytes += bytes_of(*values[next]);
    group.push_back(values[next++]);
  }
  return group;
}

void PartialRuns::visit(const std::vector<const onnx::Value*>& values, std::span<const runtime::TensorMap> runs,
                        std::int64_t memory,
                        const std::function<void(const onnx::Value&, const onnx::TensorData&)>& visitor,
                        const std::function<void(std::size_t, std::size_t)>& progress, Refusals* refused) const {
  std::size_t next = 0;
  while (next < values.size()) {
    if (progress) progress(next, values.size());
    const std::vector<const onnx::Value*> group = next_group(values, next, memory);
    const auto look = [&](const runtime::TensorMap& tensors) {
      for (const onnx::Value* value : group) {
        if (refused == nullptr || !refused->contains(value)) visitor(*value, tensors.at(value->name));
      }
    };
    if (refused != nullptr) {
      for (const runtime::TensorMap& inputs : runs) look(run_what_can_be(group, inputs, *refused));
    } else {
      const std::unique_ptr<runtime::CompiledModel> compiled = compile(group);
      for (const runtime::TensorMap& inputs : runs) compiled->run(inputs, look);
    }
  }
}

std::unordered_map<const onnx::Value*, TensorRange> PartialRuns::ranges(
    const std::vector<const onnx::Value*>& values, const runtime::TensorMap& inputs, std::int64_t memory,
    const std::function<void(std::size_t, std::size_t)>& progress, Refusals* refused) const {
  std::unordered_map<const onnx::Value*, TensorRange> ranges;
  visit(
      values, std::span(&inputs, 1), memory,
      [&](const onnx::Value& value, const onnx::TensorData& tensor) { ranges.emplace(&value, range_of(tensor)); },
      progress, refused);
  return ranges;
}

std::int64_t bytes_of(const onnx::Value& value) {
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

}  // namespace graft::verify
