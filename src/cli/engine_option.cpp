// The names of the engines.
#include "cli/engine_option.hpp"

namespace graft::cli {

void add_engine_option(Command& command, std::string& engine) {
  command
      .add_option("--engine", engine,
                  "what runs models on the CPU: openvino; onnxruntime, which a Python with onnxruntime is started for; "
                  "both, and neither is believed where they disagree; auto: openvino, and onnxruntime in doubt (auto)")
      ->type_name("WHICH")
      ->check(one_of({"auto", "openvino", "onnxruntime", "both"}));
}

toolkit::CpuEngine engine_of(const std::string& name) {
  if (name == "openvino") return toolkit::CpuEngine::openvino;
  if (name == "onnxruntime") return toolkit::CpuEngine::onnxruntime;
  return name == "both" ? toolkit::CpuEngine::both : toolkit::CpuEngine::automatic;
}

}  // namespace graft::cli
