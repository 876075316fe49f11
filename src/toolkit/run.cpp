// A compiled model, run again and again or once.
#include "graft/toolkit/run.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "graft/error.hpp"
#include "import/read_model.hpp"
#include "runtime/default_engine.hpp"
#include "toolkit/access.hpp"
#include "toolkit/run.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {

struct Session::State {
  std::unique_ptr<runtime::CompiledModel> compiled;
  CancelToken cancel;

  static runtime::CompiledModel& model_of(const std::unique_ptr<State>& state) {
    if (state == nullptr) throw Error("Session: it was moved from, and has no model");
    if (state->cancel.is_cancelled()) throw Cancelled();
    return *state->compiled;
  }
};

Session::Session(const Model& model, const SessionOptions& options) {
  Work work(options.watch);
  state_ = work.run([&] {
    work.report(0, "compiling " + model.source());
    const auto kernels = options.own_kernels ? runtime::OperatorKernels::own : runtime::OperatorKernels::functions;
    // By the engine itself: the session outlives this piece of work, and looks at the token by itself.
    return std::make_unique<State>(
        State{.compiled = runtime::default_engine().compile(
                  model_of(model), {.kernels = kernels, .extra_outputs = {}, .threads = options.threads}),
              .cancel = options.watch.cancel});
  });
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Tensors Session::run(const Tensors& inputs) {
  return to_public(State::model_of(state_).run(to_internal(inputs, "input")), "output");
}

void Session::run(const TensorViews& inputs, const std::function<void(const TensorViews& outputs)>& look) {
  State::model_of(state_).run(to_internal(inputs, "input"),
                              [&](const runtime::TensorMap& outputs) { look(views_of(outputs, "output")); });
}

RunReport run_files(const ModelFiles& files, const runtime::TensorMap& inputs, runtime::OperatorKernels kernels,
                    int threads) {
  std::map<std::string, Shape, std::less<>> shapes;
  for (const auto& [name, tensor] : inputs) shapes.emplace(name, Shape(tensor.dims.begin(), tensor.dims.end()));
  const graft::onnx::Model model =
      read_model(files.model, files.weights, {.outputs = files.outputs, .input_shapes = shapes, .origin = nullptr});
  const std::unique_ptr<runtime::CompiledModel> compiled =
      runtime::default_engine().compile(model, {.kernels = kernels, .extra_outputs = {}, .threads = threads});
  const auto started = std::chrono::steady_clock::now();
  RunReport report;
  report.outputs = compiled->run(inputs);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace graft::toolkit
