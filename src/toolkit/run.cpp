// A compiled model.
#include "graft/toolkit/run.hpp"

#include "runtime/default_engine.hpp"
#include "toolkit/access.hpp"
#include "toolkit/tensors.hpp"

namespace graft::toolkit {

struct Session::State {
  std::unique_ptr<runtime::CompiledModel> compiled;
};

Session::Session(const Model& model, const SessionOptions& options)
    : state_(std::make_unique<State>(State{runtime::default_engine().compile(
          model_of(model),
          {.kernels = options.own_kernels ? runtime::OperatorKernels::own : runtime::OperatorKernels::functions,
           .extra_outputs = {},
           .threads = options.threads})})) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Tensors Session::run(const Tensors& inputs) {
  return to_public(state_->compiled->run(to_internal(inputs, "input")), "output");
}

}  // namespace graft::toolkit
