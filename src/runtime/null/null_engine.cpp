// An engine for builds without OpenVINO; every call throws an Error.
#include "runtime/null/null_engine.hpp"

#include "graft/error.hpp"

namespace graft::runtime {
namespace {

class NullEngine final : public Engine {
 public:
  [[nodiscard]] std::string_view name() const override { return "none"; }
  [[nodiscard]] bool can_run() const override { return false; }
  [[nodiscard]] std::unique_ptr<CompiledModel> compile(const onnx::Model& /*model*/,
                                                       const CompileOptions& /*options*/) const override {
    throw missing();
  }
  [[nodiscard]] TensorMap evaluate_constant_graph(const onnx::Model& /*model*/) const override { throw missing(); }

 private:
  static Error missing() {
    return Error(Error::Kind::missing_tool,
                 "this build of Graft has no CPU engine, so no model can be run\nBuild libexec/graft_engine_worker, "
                 "which runs models: make deps build");
  }
};

}  // namespace

const Engine& null_engine() {
  static const NullEngine engine;
  return engine;
}

}  // namespace graft::runtime
