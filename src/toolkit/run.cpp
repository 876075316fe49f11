// A compiled model, run again and again or once.
#include "graft/toolkit/run.hpp"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graft/error.hpp"
#include "import/cut_network.hpp"
#include "import/read_model.hpp"
#include "runtime/chain.hpp"
#include "runtime/keeps_outputs.hpp"
#include "toolkit/access.hpp"
#include "toolkit/cpu_engines.hpp"
#include "toolkit/run.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {

namespace {

runtime::CompileOptions compile_options(const SessionOptions& options) {
  return {.kernels = options.own_kernels ? runtime::OperatorKernels::own : runtime::OperatorKernels::functions,
          .extra_outputs = {},
          .threads = options.threads};
}

std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& first, const onnx::Model& second,
                                                const std::vector<std::string>& outputs,
                                                const runtime::CompileOptions& options, const runtime::Engine& engine) {
  const auto link = [&](const onnx::Model& half) { return runtime::link_of(engine.compile(half, options), half); };
  return runtime::chain(link(first), link(second), outputs);
}

}  // namespace

struct Session::State {
  std::unique_ptr<runtime::CompiledModel> compiled;
  CancelToken cancel;

  /// `compile` uses the engine itself and not that of the work, which the session outlives: the session looks at the
  /// token by itself.
  template <class Compile>
  static std::unique_ptr<State> watched(const SessionOptions& options, const std::string& what, Compile&& compile) {
    check_own_kernels(options.engine, options.own_kernels);
    Work work(options.watch, options.engine);
    return work.run([&] {
      work.report(0, "compiling " + what);
      return std::make_unique<State>(State{.compiled = compile(), .cancel = options.watch.cancel});
    });
  }

  static runtime::CompiledModel& model_of(const std::unique_ptr<State>& state) {
    if (state == nullptr) throw Error("Session: it was moved from, and has no model");
    if (state->cancel.is_cancelled()) throw Cancelled();
    return *state->compiled;
  }
};

Session::Session(const Model& model, const SessionOptions& options)
    : state_(State::watched(options, model.source(), [&] {
        return engine_of(options.engine).compile(toolkit::model_of(model), compile_options(options));
      })) {}

Session::Session(const CutNetwork& network, const SessionOptions& options)
    : state_(State::watched(options, network.tensorrt.source() + " and " + network.host.source(), [&] {
        const onnx::Model& tensorrt = toolkit::model_of(network.tensorrt);
        const onnx::Model& host = toolkit::model_of(network.host);
        return network.tensorrt_is_first
                   ? compile(tensorrt, host, network.outputs, compile_options(options), engine_of(options.engine))
                   : compile(host, tensorrt, network.outputs, compile_options(options), engine_of(options.engine));
      })) {}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Tensors Session::run(const Tensors& inputs) {
  return to_public(believed([&] { return State::model_of(state_).run(to_internal(inputs, "input")); }), "output");
}

TensorViews Session::run_views(const TensorViews& inputs) {
  runtime::CompiledModel& model = State::model_of(state_);
  const runtime::TensorMap given = to_internal(inputs, "input");
  auto* keeps = dynamic_cast<runtime::KeepsOutputs*>(&model);
  const runtime::TensorMap outputs =
      believed([&] { return keeps != nullptr ? keeps->run_and_keep(given) : model.run(given); });
  TensorViews views = views_of(outputs, "output");
  for (auto& [name, view] : views) view.owner = std::make_shared<const onnx::Bytes>(outputs.find(name)->second.bytes);
  return views;
}

void Session::run(const TensorViews& inputs, const std::function<void(const TensorViews& outputs)>& look) {
  believed([&] {
    State::model_of(state_).run(to_internal(inputs, "input"),
                                [&](const runtime::TensorMap& outputs) { look(views_of(outputs, "output")); });
  });
}

namespace {

std::unique_ptr<runtime::CompiledModel> compile_files(const ModelFiles& files,
                                                      const std::map<std::string, Shape, std::less<>>& shapes,
                                                      const runtime::CompileOptions& options,
                                                      const runtime::Engine& engine) {
  if (is_cut_network(files.model)) {
    const graft::CutNetwork network = read_cut_network(files.model);
    return compile(network.first(), network.second(), network.outputs, options, engine);
  }
  return engine.compile(
      read_model(files.model, files.weights, {.outputs = files.outputs, .input_shapes = shapes, .origin = nullptr}),
      options);
}

}  // namespace

RunReport run_files(const ModelFiles& files, const runtime::TensorMap& inputs, runtime::OperatorKernels kernels,
                    int threads, CpuEngine engine) {
  check_own_kernels(engine, kernels != runtime::OperatorKernels::functions);
  std::map<std::string, Shape, std::less<>> shapes;
  for (const auto& [name, tensor] : inputs) shapes.emplace(name, Shape(tensor.dims.begin(), tensor.dims.end()));
  const std::unique_ptr<runtime::CompiledModel> compiled =
      compile_files(files, shapes, {.kernels = kernels, .extra_outputs = {}, .threads = threads}, engine_of(engine));
  const auto started = std::chrono::steady_clock::now();
  RunReport report;
  report.outputs = believed([&] { return compiled->run(inputs); });
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace graft::toolkit
