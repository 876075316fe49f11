// The only place that knows which engines were built.
#include "runtime/default_engine.hpp"

#if GRAFT_WITH_OPENVINO
#include "runtime/openvino/openvino_engine.hpp"
#else
#include "runtime/null/null_engine.hpp"
#endif

namespace graft::runtime {

const Engine& default_engine() {
#if GRAFT_WITH_OPENVINO
  return openvino_engine();
#else
  return null_engine();
#endif
}

}  // namespace graft::runtime
