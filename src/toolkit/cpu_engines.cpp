// Where ONNX Runtime's process comes from: the Python that drives TensorRT.
#include "toolkit/cpu_engines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/driver.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "runtime/default_engine.hpp"
#include "runtime/onnxruntime/onnxruntime_engine.hpp"
#include "verify/judges.hpp"
#include "verify/known_faults.hpp"

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

std::unique_ptr<verify::Judges> judges(const JudgesOptions& options) {
  return make_judges(runtime::default_engine(), onnxruntime_engine(), options);
}

const verify::Judges& automatic_engine(Sampling sampling) {
  static const std::unique_ptr<verify::Judges> unsampled = judges({.sampled_nodes = 0});
  static const std::unique_ptr<verify::Judges> sampled = judges({});
  return sampling == Sampling::none ? *unsampled : *sampled;
}

const verify::Judges& both_engines() {
  static const std::unique_ptr<verify::Judges> both = judges({.second = JudgesOptions::Asked::always});
  return *both;
}

/// Of an engine that was asked for by name.
std::string known_fault(const std::string& engine, const graft::onnx::Model& model) {
  const std::string fault = verify::known_faults().of(model, engine);
  if (fault.empty()) return "";
  return fmt::format("{} runs {} though it has {}; where {} is left out the other CPU engine runs it", engine,
                     model.source, fault, setting_name(Setting::cpu_engine));
}

std::string left_out(CpuEngine choice, const graft::onnx::Model& model) {
  switch (choice) {
    case CpuEngine::automatic: return automatic_engine(Sampling::large_networks).left_out(model);
    case CpuEngine::openvino: return known_fault(JudgesOptions{}.first_in_table, model);
    case CpuEngine::onnxruntime: return known_fault(JudgesOptions{}.second_in_table, model);
    case CpuEngine::both: return both_engines().left_out(model);
  }
  return "";
}

}  // namespace

const runtime::Engine& engine_of(CpuEngine choice, Sampling sampling) {
  switch (choice) {
    case CpuEngine::automatic: return automatic_engine(sampling);
    case CpuEngine::openvino: return runtime::default_engine();
    case CpuEngine::onnxruntime: return onnxruntime_engine();
    case CpuEngine::both: return both_engines();
  }
  return runtime::default_engine();
}

std::vector<std::string> engines_left_out(CpuEngine choice, const std::vector<const graft::onnx::Model*>& models) {
  std::vector<std::string> lines;
  for (const graft::onnx::Model* model : models) {
    std::string line = left_out(choice, *model);
    if (!line.empty() && std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
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
