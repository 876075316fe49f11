// Selects the engines that run models. ONNX Runtime runs in the Python interpreter that also drives TensorRT.
#include "toolkit/cpu_engines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "engine/driver.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "inspect/f64_nodes.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/check_types.hpp"
#include "runtime/answer.hpp"
#include "runtime/default_engine.hpp"
#include "runtime/onnxruntime/onnxruntime_engine.hpp"
#include "verify/judge/judges.hpp"
#include "verify/judge/known_faults.hpp"
#include "verify/judge/repeats.hpp"

namespace graft::toolkit {
namespace {

using verify::JudgesOptions;

/// The names of both engines as the table in known_faults.inc writes them.
constexpr auto openvino_in_table = "OpenVINO";
constexpr auto onnxruntime_in_table = "ONNX Runtime";

/// The sampling interval of proofs: one in this many models is also run in ONNX Runtime.
constexpr std::size_t sampled_share = 8;

runtime::WorkerCommand onnxruntime_worker() {
  engine::EngineDriver driver = engine::find_engine_driver();
  driver.module = "graft.runtime";
  engine::DriverCommand command = engine::command_of(driver);
  return {.arguments = std::move(command.arguments),
          .environment = std::move(command.environment),
          .name = fmt::format("{} -m {}", driver.python.string(), driver.module)};
}

const runtime::OnnxruntimeEngine& onnxruntime_engine() {
  static const std::unique_ptr<runtime::OnnxruntimeEngine> engine =
      runtime::make_onnxruntime_engine(onnxruntime_worker, runtime::default_engine());
  return *engine;
}

/// Returns an engine that runs models in OpenVINO, repeats the first run of each compiled model and compares the
/// results.
const runtime::Engine& repeating_openvino() {
  static const std::unique_ptr<runtime::Engine> engine = verify::make_repeating_engine(runtime::default_engine());
  return *engine;
}

/// Returns an engine that runs models in ONNX Runtime, and in OpenVINO the models that ONNX Runtime does not run.
const verify::Judges& engine_for_values() {
  static const std::unique_ptr<verify::Judges> engine = verify::make_judges(onnxruntime_engine(), repeating_openvino(),
                                                                            {.second = JudgesOptions::Asked::never,
                                                                             .sampled_nodes = 0,
                                                                             .first_in_table = onnxruntime_in_table,
                                                                             .second_in_table = openvino_in_table});
  return *engine;
}

/// Returns an engine that runs models in OpenVINO. A sample of the models, and models with doubtful results, also run
/// in ONNX Runtime.
const verify::Judges& engine_for_proofs() {
  static const std::unique_ptr<verify::Judges> engine = verify::make_judges(
      repeating_openvino(), onnxruntime_engine(),
      {.sampled_share = sampled_share, .first_in_table = openvino_in_table, .second_in_table = onnxruntime_in_table});
  return *engine;
}

const verify::Judges& both_engines() {
  static const std::unique_ptr<verify::Judges> both = verify::make_judges(repeating_openvino(), onnxruntime_engine(),
                                                                          {.second = JudgesOptions::Asked::always,
                                                                           .first_in_table = openvino_in_table,
                                                                           .second_in_table = onnxruntime_in_table});
  return *both;
}

/// Returns the warning about a model that the chosen engine is known to compute wrongly, or an empty string.
std::string known_fault(const std::string& engine, const graft::onnx::Model& model) {
  const std::string fault = verify::known_faults().of(model, engine);
  if (fault.empty()) return "";
  return fmt::format("{} runs {} although the model has {}; without {} the other CPU engine would run the model",
                     engine, model.source, fault, setting_name(Setting::cpu_engine));
}

std::string left_out(CpuEngine choice, const graft::onnx::Model& model) {
  switch (choice) {
    case CpuEngine::automatic: return engine_for_proofs().left_out(model);
    case CpuEngine::openvino: return known_fault(openvino_in_table, model);
    case CpuEngine::onnxruntime: return known_fault(onnxruntime_in_table, model);
    case CpuEngine::both: return both_engines().left_out(model);
  }
  return "";
}

/// Returns the known wrong results of an engine that is not the first choice: the known fault in this model or, if it
/// has none, the operators that the engine computes wrongly in some forms. Returns an empty string if no wrong result
/// is known.
std::string known_for(const std::string& engine, const graft::onnx::Model& model) {
  const std::string fault = verify::known_faults().of(model, engine);
  if (!fault.empty()) return fmt::format("the model has {}", fault);
  std::set<std::string_view> operators;
  for (const verify::KnownFault& known : verify::known_fault_table()) {
    if (engine.starts_with(known.engine)) operators.insert(known.op);
  }
  if (operators.empty()) return "";
  return fmt::format("this engine is known to compute some forms of {} wrongly, and the model has none of these forms",
                     fmt::join(operators, ", "));
}

/// Whether the model has f64 tensors, which OpenVINO's CPU plugin computes in f32.
bool has_f64(const graft::onnx::Model& model) {
  const auto is_f64 = [](const graft::onnx::Value* value) {
    return value != nullptr && value->type == graft::onnx::ElementType::f64;
  };
  const auto& graph = model.graph();
  bool found = std::any_of(graph.inputs().begin(), graph.inputs().end(), is_f64) ||
               std::any_of(graph.outputs().begin(), graph.outputs().end(), is_f64);
  graph.for_each_node([&](const graft::onnx::Node& node) {
    found = found || std::any_of(node.inputs.begin(), node.inputs.end(), is_f64) ||
            std::any_of(node.outputs.begin(), node.outputs.end(), is_f64) ||
            (node.is("Cast") && node.int_or("to", 0) == static_cast<std::int64_t>(graft::onnx::ElementType::f64));
  });
  return found;
}

class NotingEngine final : public runtime::Engine {
 public:
  NotingEngine(const runtime::Engine& engine, UsedEngines& used) : engine_(engine), used_(used) {}

  using runtime::Engine::compile;
  [[nodiscard]] std::string_view name() const override { return engine_.name(); }
  [[nodiscard]] bool can_run() const override { return engine_.can_run(); }
  [[nodiscard]] const runtime::Engine* second() const override { return engine_.second(); }
  [[nodiscard]] std::unique_ptr<runtime::CompiledModel> compile(const graft::onnx::Model& model,
                                                                const runtime::CompileOptions& options) const override {
    std::unique_ptr<runtime::CompiledModel> compiled = compile_or_name_fault(engine_, model, options);
    used_.note(model, *compiled, engine_);
    return compiled;
  }
  [[nodiscard]] runtime::TensorMap evaluate_constant_graph(const graft::onnx::Model& model) const override {
    return engine_.evaluate_constant_graph(model);
  }

 private:
  const runtime::Engine& engine_;
  UsedEngines& used_;
};

std::string f64_line(std::string_view engine, const graft::onnx::Model& model) {
  return fmt::format("{} computes the f64 tensors of {} {}", engine, model.source, inspect::f64_in_f32);
}

template <class Text>
void add_once(std::vector<std::string>& texts, Text text) {
  if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.emplace_back(std::move(text));
}

}  // namespace

std::string refusal_of_onnxruntime(const graft::onnx::Model& model, const std::function<bool()>& should_stop) {
  const std::string refusal = onnxruntime_engine().refusal_of(model, should_stop);
  return refusal.empty() ? refusal : fmt::format("{}: {}", onnxruntime_engine().name(), refusal);
}

Purpose purpose_of_run(bool own_kernels) { return own_kernels ? Purpose::proofs : Purpose::values; }

const runtime::Engine& engine_of(CpuEngine choice, Purpose purpose) {
  switch (choice) {
    case CpuEngine::automatic: break;
    case CpuEngine::openvino: return repeating_openvino();
    case CpuEngine::onnxruntime: return onnxruntime_engine();
    case CpuEngine::both: return both_engines();
  }
  return purpose == Purpose::values ? engine_for_values() : engine_for_proofs();
}

std::vector<std::string> engines_left_out(const UsedEngines& used, CpuEngine choice, Purpose purpose,
                                          const std::vector<const graft::onnx::Model*>& models) {
  if (choice == CpuEngine::automatic && purpose == Purpose::values) {
    std::vector<std::string> lines = used.reasons();
    for (std::string& line : used.rewrites()) lines.push_back(std::move(line));
    return lines;
  }
  std::vector<std::string> lines = used.rewrites();
  for (const graft::onnx::Model* model : models) {
    std::string line = left_out(choice, *model);
    if (!line.empty()) add_once(lines, std::move(line));
    const bool runs_in_openvino = used.names().find(openvino_in_table) != std::string::npos;
    if (runs_in_openvino && has_f64(*model)) add_once(lines, f64_line(openvino_in_table, *model));
  }
  return lines;
}

void UsedEngines::note(const graft::onnx::Model& model, const runtime::CompiledModel& compiled,
                       const runtime::Engine& engine) {
  const runtime::Answer answer = runtime::answer_of(compiled, engine.name());
  const std::string known = answer.reason.empty() ? "" : known_for(answer.engine, model);
  const std::scoped_lock lock(mutex_);
  add_once(names_, answer.engine);
  if (!answer.rewritten.empty()) add_once(rewrites_, fmt::format("{}: {}", model.source, answer.rewritten));
  if (answer.reason.empty()) return;
  // The remedy is a line of its own, once for all models.
  const std::size_t line_end = answer.reason.find('\n');
  add_once(reasons_, fmt::format("{} ran {}: {}{}{}", answer.engine, model.source, answer.reason.substr(0, line_end),
                                 known.empty() ? "" : "; ", known));
  if (answer.engine.starts_with(openvino_in_table) && has_f64(model))
    add_once(reasons_, f64_line(answer.engine, model));
  if (line_end != std::string::npos) add_once(reasons_, answer.reason.substr(line_end + 1));
}

std::string UsedEngines::names() const {
  const std::scoped_lock lock(mutex_);
  return fmt::format("{}", fmt::join(names_, ", "));
}

std::vector<std::string> UsedEngines::reasons() const {
  const std::scoped_lock lock(mutex_);
  return reasons_;
}

std::vector<std::string> UsedEngines::rewrites() const {
  const std::scoped_lock lock(mutex_);
  return rewrites_;
}

std::unique_ptr<runtime::CompiledModel> compile_or_name_fault(const runtime::Engine& engine,
                                                              const graft::onnx::Model& model,
                                                              const runtime::CompileOptions& options) {
  try {
    return engine.compile(model, options);
  } catch (const Error& refused) {
    if (refused.kind() == Error::Kind::bad_input) {
      check_nodes(model);
      check_types_and_outputs(model);
    }
    throw;
  }
}

std::unique_ptr<runtime::Engine> make_noting_engine(const runtime::Engine& engine, UsedEngines& used) {
  return std::make_unique<NotingEngine>(engine, used);
}

Error error_of(const verify::Disputed& disputed) {
  return {Error::Kind::answer_is_no,
          fmt::format("{}\nNo verdict is given; set {} to openvino or onnxruntime for the result of one engine",
                      disputed.what(), setting_name(Setting::cpu_engine))};
}

void check_own_kernels(CpuEngine choice, bool own_kernels) {
  if (!own_kernels || choice == CpuEngine::automatic || choice == CpuEngine::openvino) return;
  throw Error(fmt::format("{0}: ONNX Runtime does not run Graft's own CPU kernels\nRemove {0}, or set {1} to openvino",
                          setting_name(Setting::own_kernels), setting_name(Setting::cpu_engine)));
}

}  // namespace graft::toolkit
