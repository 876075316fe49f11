// Where ONNX Runtime's process comes from: the Python that drives TensorRT.
#include "toolkit/cpu_engines.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "engine/driver.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "runtime/default_engine.hpp"
#include "runtime/onnxruntime/onnxruntime_engine.hpp"
#include "verify/judges.hpp"

namespace graft::toolkit {
namespace {

using verify::JudgesOptions;

runtime::WorkerCommand onnxruntime_worker() {
  engine::EngineDriver driver = engine::find_engine_driver();
  driver.module = "graft.runtime";
  engine::DriverCommand command = engine::command_of(driver);
  return {.arguments = std::move(command.arguments),
          .environment = std::move(command.environment),
          .name = fmt::format("{} -m {}", driver.python.string(), driver.module)};
}

const runtime::Engine& onnxruntime_engine() {
  static const std::unique_ptr<runtime::Engine> engine =
      runtime::make_onnxruntime_engine(onnxruntime_worker, runtime::default_engine());
  return *engine;
}

std::unique_ptr<runtime::Engine> judges(const JudgesOptions& options) {
  return make_judges(runtime::default_engine(), onnxruntime_engine(), options);
}

const runtime::Engine& automatic_engine(Sampling sampling) {
  static const std::unique_ptr<runtime::Engine> unsampled = judges({.sampled_nodes = 0});
  static const std::unique_ptr<runtime::Engine> sampled = judges({});
  return sampling == Sampling::none ? *unsampled : *sampled;
}

}  // namespace

const runtime::Engine& engine_of(CpuEngine choice, Sampling sampling) {
  static const std::unique_ptr<runtime::Engine> both = judges({.second = JudgesOptions::Asked::always});
  switch (choice) {
    case CpuEngine::automatic: return automatic_engine(sampling);
    case CpuEngine::openvino: return runtime::default_engine();
    case CpuEngine::onnxruntime: return onnxruntime_engine();
    case CpuEngine::both: return *both;
  }
  return runtime::default_engine();
}

Error error_of(const verify::Disputed& disputed) {
  return {Error::Kind::answer_is_no,
          fmt::format("{}\nNeither is believed; set {} to openvino or onnxruntime for what one of them says",
                      disputed.what(), setting_name(Setting::cpu_engine))};
}

void check_own_kernels(CpuEngine choice, bool own_kernels) {
  if (!own_kernels || choice == CpuEngine::automatic || choice == CpuEngine::openvino) return;
  throw Error(fmt::format("{}: ONNX Runtime does not run Graft's own CPU kernels\nLeave it out, or set {} to openvino",
                          setting_name(Setting::own_kernels), setting_name(Setting::cpu_engine)));
}

}  // namespace graft::toolkit
