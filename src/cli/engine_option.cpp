// Maps the names of --engine to engines.
#include "cli/engine_option.hpp"

namespace graft::cli {

void add_engine_option(Command& command, std::string& engine) {
  command
      .add_option("--engine", engine,
                  "CPU engine that runs models: onnxruntime, in a Python process; openvino; both, and no verdict is "
                  "given if they disagree; auto: onnxruntime for values and comparisons, openvino for proofs of "
                  "rewrites and for models that onnxruntime does not run (default: auto)")
      ->type_name("WHICH")
      ->check(one_of({"auto", "openvino", "onnxruntime", "both"}));
}

toolkit::CpuEngine engine_of(const std::string& name) {
  if (name == "openvino") return toolkit::CpuEngine::openvino;
  if (name == "onnxruntime") return toolkit::CpuEngine::onnxruntime;
  return name == "both" ? toolkit::CpuEngine::both : toolkit::CpuEngine::automatic;
}

}  // namespace graft::cli
