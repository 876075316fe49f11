// Extracts the part of the network that computes the tensors, and runs it.
#include "quant/calibrate/observe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graft/error.hpp"
#include "onnx/extract.hpp"

namespace graft::quant {

std::int64_t samples_of(const CalibrationData& data, const ObserveOptions& options) {
  return options.samples > 0 ? std::min(options.samples, data.count) : data.count;
}

void observe(const runtime::Engine& engine, const onnx::Model& model, const std::vector<std::string>& tensors,
             const CalibrationData& data, const ObserveOptions& options,
             const std::function<void(const runtime::TensorMap&)>& look) {
  onnx::Model whole = model.clone();
  onnx::Graph& graph = whole.graph();
  for (onnx::Value* input : std::vector<onnx::Value*>(graph.inputs())) {
    if (input->initializer) graph.set_is_input(*input, false);
  }
  runtime::TensorMap constants;
  std::vector<const onnx::Value*> computed;
  for (const std::string& tensor : tensors) {
    const onnx::Value* value = graph.find_local(tensor);
    if (value == nullptr) throw Error(fmt::format("{}: there is no tensor '{}'", model.source, tensor));
    if (const auto constant = value->constant()) {
      constants.emplace(tensor, *constant);
    } else if (!value->is_input) {
      computed.push_back(value);
    }
  }
  const std::vector<const onnx::Value*> inputs(graph.inputs().begin(), graph.inputs().end());
  const std::int64_t count = samples_of(data, options);
  std::unique_ptr<runtime::CompiledModel> compiled;
  if (!computed.empty()) {
    compiled = engine.compile(extract(whole, inputs, computed),
                              {.kernels = options.kernels, .extra_outputs = {}, .threads = options.threads});
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (options.progress) options.progress(i, count);
    const runtime::TensorMap sample = data.sample(i * data.count / count);
    const auto show = [&](runtime::TensorMap seen) {
      seen.insert(constants.begin(), constants.end());
      seen.insert(sample.begin(), sample.end());
      look(seen);
    };
    if (compiled) {
      compiled->run(sample, [&](const runtime::TensorMap& outputs) { show(outputs); });
    } else {
      show({});
    }
  }
  if (options.progress) options.progress(count, count);
}

}  // namespace graft::quant
