// ONNX Runtime, in a Python process of its own.
#pragma once

#include <functional>
#include <memory>

#include "runtime/engine.hpp"
#include "runtime/worker/worker_engine.hpp"

namespace graft::runtime {

/// ONNX Runtime without its optimizations. `find` says how `python -m graft.runtime` is started, when it is first
/// needed; a Python without onnxruntime is an Error (missing_tool).
///
/// f16 and bf16 are computed in f32, as Engine says, f64 in f64; Graft's operators run as their ONNX functions, and one
/// without a function is an Error that names the node. Graft's own CPU kernels are run by `other`, which has to outlive
/// the engine.
[[nodiscard]] std::unique_ptr<Engine> make_onnxruntime_engine(std::function<WorkerCommand()> find, const Engine& other);

}  // namespace graft::runtime
