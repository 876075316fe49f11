// The names of the engines.
#include "cli/engine_option.hpp"

namespace graft::cli {

void add_engine_option(Command& command, std::string& engine) {
  command
      .add_option("--engine", engine,
                  "what runs models on the CPU: openvino, or onnxruntime, which a Python with onnxruntime is started "
                  "for (openvino)")
      ->type_name("WHICH")
      ->check(one_of({"openvino", "onnxruntime"}));
}

toolkit::CpuEngine engine_of(const std::string& name) {
  return name == "onnxruntime" ? toolkit::CpuEngine::onnxruntime : toolkit::CpuEngine::openvino;
}

}  // namespace graft::cli
