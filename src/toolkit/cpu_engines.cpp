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

namespace graft::toolkit {
namespace {

runtime::WorkerCommand onnxruntime_worker() {
  engine::EngineDriver driver = engine::find_engine_driver();
  driver.module = "graft.runtime";
  engine::DriverCommand command = engine::command_of(driver);
  return {.arguments = std::move(command.arguments),
          .environment = std::move(command.environment),
          .name = fmt::format("{} -m {}", driver.python.string(), driver.module)};
}

}  // namespace

const runtime::Engine& engine_of(CpuEngine choice) {
  if (choice == CpuEngine::openvino) return runtime::default_engine();
  static const std::unique_ptr<runtime::Engine> onnxruntime =
      runtime::make_onnxruntime_engine(onnxruntime_worker, runtime::default_engine());
  return *onnxruntime;
}

void check_own_kernels(CpuEngine choice, bool own_kernels) {
  if (!own_kernels || choice != CpuEngine::onnxruntime) return;
  throw Error(fmt::format("{}: ONNX Runtime does not run Graft's own CPU kernels\nLeave it out, or set {} to openvino",
                          setting_name(Setting::own_kernels), setting_name(Setting::cpu_engine)));
}

}  // namespace graft::toolkit
