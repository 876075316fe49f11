// The ONNX Runtime engine, which runs in a separate Python process.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/engine.hpp"
#include "runtime/worker/worker_engine.hpp"

namespace graft::runtime {

class OnnxruntimeEngine : public Engine {
 public:
  /// Loads the unchanged model in ONNX Runtime, without the rewrites that compile() applies. Returns ONNX Runtime's
  /// message if it refuses the model, otherwise an empty string. Throws Error (missing_tool) for a Python without
  /// onnxruntime, and Stopped if `should_stop` returns true; an empty function never stops.
  [[nodiscard]] virtual std::string refusal_of(const onnx::Model& model,
                                               const std::function<bool()>& should_stop = {}) const = 0;
};

/// Returns an engine that runs ONNX Runtime with its optimizations disabled. `find` returns the command line that
/// starts `python -m graft.runtime`; it is called when the process is first needed. A Python without onnxruntime is an
/// Error (missing_tool).
///
/// f16 and bf16 are computed in f32 (see Engine), f64 in f64. Graft's operators run as their ONNX functions; an
/// operator without a function is an Error that names the node. `other` runs Graft's own CPU kernels and must outlive
/// the engine.
[[nodiscard]] std::unique_ptr<OnnxruntimeEngine> make_onnxruntime_engine(std::function<WorkerCommand()> find,
                                                                         const Engine& other);

}  // namespace graft::runtime
