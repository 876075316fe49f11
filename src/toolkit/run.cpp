// Session, which runs a compiled model many times.
#include "graft/toolkit/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "data/inputs.hpp"
#include "graft/error.hpp"
#include "runtime/budget.hpp"
#include "runtime/chain.hpp"
#include "runtime/keeps_outputs.hpp"
#include "toolkit/access.hpp"
#include "toolkit/cpu_engines.hpp"
#include "toolkit/data.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {

namespace {

runtime::CompileOptions compile_options(const SessionOptions& options) {
  return {.kernels = options.own_kernels ? runtime::OperatorKernels::own : runtime::OperatorKernels::functions,
          .extra_outputs = {},
          .threads = options.threads,
          .should_stop = [cancel = options.watch.cancel] { return cancel.is_cancelled(); }};
}

std::unique_ptr<runtime::CompiledModel> compile(const onnx::Model& first, const onnx::Model& second,
                                                const std::vector<std::string>& outputs,
                                                const runtime::CompileOptions& options, const runtime::Engine& engine) {
  const auto link = [&](const onnx::Model& half) { return runtime::link_of(engine.compile(half, options), half); };
  return runtime::chain(link(first), link(second), outputs);
}

/// Returns the inputs that a run of these models needs: one model, or the two models of a cut network. Inputs of one
/// model that the other one computes are left out.
data::Inputs inputs_of(const std::vector<const onnx::Model*>& models) {
  data::Inputs inputs;
  for (const onnx::Model* model : models) {
    for (data::Input& input : data::inputs_of(*model).list) {
      const bool is_computed = std::any_of(models.begin(), models.end(), [&](const onnx::Model* other) {
        const auto& outputs = other->graph().outputs();
        return other != model && std::any_of(outputs.begin(), outputs.end(),
                                             [&](const onnx::Value* output) { return output->name == input.name(); });
      });
      if (!is_computed && inputs.find(input.name()) == nullptr) inputs.list.push_back(std::move(input));
    }
  }
  return inputs;
}

/// Joins the outputs of several runs along their first axis.
Tensor join(const std::string& name, const std::vector<Tensors>& runs) {
  Tensor joined = runs.front().at(name);
  for (std::size_t run = 1; run < runs.size(); ++run) {
    const Tensor& next = runs[run].at(name);
    const bool can_join = !joined.shape.empty() && next.shape.size() == joined.shape.size() &&
                          std::equal(next.shape.begin() + 1, next.shape.end(), joined.shape.begin() + 1);
    if (!can_join) {
      throw Error(
          fmt::format("output '{}' has the shape [{}] in one run and [{}] in another; only outputs that differ in the "
                      "first size can be joined\nRun the model on the data of each run separately",
                      name, fmt::join(joined.shape, ", "), fmt::join(next.shape, ", ")));
    }
    joined.shape.front() += next.shape.front();
    joined.data.insert(joined.data.end(), next.data.begin(), next.data.end());
  }
  return joined;
}

std::vector<std::string> sources_of(const std::vector<const onnx::Model*>& models) {
  std::vector<std::string> sources;
  for (const onnx::Model* model : models) sources.push_back(model->source);
  return sources;
}

}  // namespace

struct Session::State {
  std::unique_ptr<runtime::CompiledModel> compiled;
  CancelToken cancel;
  std::string ran_in;
  std::vector<std::string> left_out;
  data::Inputs inputs;
  std::string source;  ///< The name of the model, for messages.
  std::vector<std::string> data_notes = {};

  /// Compiles the models with progress and cancellation. `compile` receives the engine itself, not the wrapper that
  /// Work::engine() returns: the session outlives the Work object, and checks the token itself.
  template <class Compile>
  static std::unique_ptr<State> watched(const SessionOptions& options, const std::vector<const onnx::Model*>& models,
                                        Compile&& compile) {
    check_own_kernels(options.engine, options.own_kernels);
    const Purpose purpose = purpose_of_run(options.own_kernels);
    Work work(options.watch, options.engine, purpose);
    return work.run([&] {
      work.report(0, fmt::format("compiling {}", fmt::join(sources_of(models), " and ")));
      UsedEngines used;
      const std::unique_ptr<runtime::Engine> engine = make_noting_engine(engine_of(options.engine, purpose), used);
      const std::unique_ptr<runtime::Engine> limited = runtime::make_limited_engine(*engine);
      auto state = std::make_unique<State>(State{.compiled = compile(*limited),
                                                 .cancel = options.watch.cancel,
                                                 .ran_in = used.names(),
                                                 .left_out = {},
                                                 .inputs = inputs_of(models),
                                                 .source = models.front()->source});
      state->left_out = engines_left_out(used, options.engine, purpose, models);
      return state;
    });
  }

  static State& of(const std::unique_ptr<State>& state) {
    if (state == nullptr) throw Error("Session: this object was moved from, and has no model");
    return *state;
  }

  /// Returns the inputs of a run, in the types of the model.
  [[nodiscard]] runtime::TensorMap convert(const TensorViews& given) {
    data_notes.clear();
    return data::convert_tensors(to_internal(given, "input"), inputs, source, data_notes);
  }

  /// Returns the result of `run`, which runs the model. Throws Error where two engines dispute a result; Cancelled.
  template <class Run>
  static auto run(const std::unique_ptr<State>& state, Run&& run) {
    if (of(state).cancel.is_cancelled()) throw Cancelled();
    try {
      return run_with_disputes_as_errors([&] { return run(*state->compiled); });
    } catch (const runtime::Stopped&) {
      throw Cancelled();
    }
  }
};

Session::Session(const Model& model, const SessionOptions& options)
    : state_(State::watched(options, {&toolkit::model_of(model)}, [&](const runtime::Engine& engine) {
        return engine.compile(toolkit::model_of(model), compile_options(options));
      })) {}

Session::Session(const CutNetwork& network, const SessionOptions& options)
    : state_(State::watched(options, {&toolkit::model_of(network.tensorrt), &toolkit::model_of(network.host)},
                            [&](const runtime::Engine& engine) {
                              const onnx::Model& tensorrt = toolkit::model_of(network.tensorrt);
                              const onnx::Model& host = toolkit::model_of(network.host);
                              return network.tensorrt_is_first
                                         ? compile(tensorrt, host, network.outputs, compile_options(options), engine)
                                         : compile(host, tensorrt, network.outputs, compile_options(options), engine);
                            })) {}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const std::string& Session::ran_in() const { return State::of(state_).ran_in; }
const std::vector<std::string>& Session::left_out() const { return State::of(state_).left_out; }

const std::vector<std::string>& Session::data_notes() const { return State::of(state_).data_notes; }

Tensors Session::run(const Tensors& inputs) {
  return to_public(
      State::run(state_, [&](auto& model) { return model.run(State::of(state_).convert(views_of(inputs))); }),
      "output");
}

Tensors Session::run_data(const DataFiles& files) { return run_data(read_data(files, State::of(state_).inputs)); }

Tensors Session::run_data(const DataRuns& data) {
  std::vector<Tensors> outputs;
  for (const Tensors& inputs : data.runs) outputs.push_back(run(inputs));
  State::of(state_).data_notes = data.notes;
  if (outputs.size() < 2) return outputs.empty() ? Tensors() : std::move(outputs.front());
  Tensors joined;
  for (const auto& [name, first] : outputs.front()) joined.emplace(name, join(name, outputs));
  return joined;
}

TensorViews Session::run_views(const TensorViews& inputs) {
  const runtime::TensorMap outputs = State::run(state_, [&](runtime::CompiledModel& model) {
    const runtime::TensorMap given = State::of(state_).convert(inputs);
    auto* keeps = dynamic_cast<runtime::KeepsOutputs*>(&model);
    return keeps != nullptr ? keeps->run_and_keep(given) : model.run(given);
  });
  TensorViews views = views_of(outputs, "output");
  for (auto& [name, view] : views) view.owner = std::make_shared<const onnx::Bytes>(outputs.find(name)->second.bytes);
  return views;
}

void Session::run(const TensorViews& inputs, const std::function<void(const TensorViews& outputs)>& look) {
  State::run(state_, [&](auto& model) {
    model.run(State::of(state_).convert(inputs),
              [&](const runtime::TensorMap& outputs) { look(views_of(outputs, "output")); });
  });
}

}  // namespace graft::toolkit
