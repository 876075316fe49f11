// The only place that knows which engines were built.
#include "runtime/default_engine.hpp"

#if GRAFT_WITH_OPENVINO
#include "runtime/openvino/openvino_engine.hpp"
#else
#include <cstdlib>
#include <memory>

#include "runtime/null/null_engine.hpp"
#include "runtime/worker/worker_engine.hpp"
#endif

namespace graft::runtime {

const Engine& default_engine() {
#if GRAFT_WITH_OPENVINO
  return openvino_engine();
#else
  static const std::unique_ptr<Engine> worker = [] {
    const char* const program = std::getenv("GRAFT_ENGINE_WORKER");
    return program != nullptr && *program != '\0' ? make_worker_engine(program) : nullptr;
  }();
  return worker ? *worker : null_engine();
#endif
}

}  // namespace graft::runtime
