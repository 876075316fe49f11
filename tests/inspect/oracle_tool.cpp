// oracle_tool - what the rules say of models, for tools/tensorrt_versions.py, which holds it against TensorRT itself.
//
// Usage: oracle_tool RELEASE MODEL.onnx...
// A line for each model, with tabs: the file, "yes", "no" or "unknown", and the first reason.
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "inspect/forecast.hpp"
#include "inspect/tensorrt_release.hpp"
#include "inspect/verdicts.hpp"
#include "onnx/onnx_io.hpp"

int main(int count, char** arguments) {
  try {
    if (count < 2) return 2;
    const graft::inspect::Release release = graft::inspect::release_of(arguments[1], "RELEASE");
    for (int i = 2; i < count; ++i) {
      graft::onnx::Model model = graft::onnx::read_onnx(arguments[i]);
      graft::inspect::infer_and_note_faults(model, {});
      const std::vector<graft::inspect::NodeVerdict> nodes = graft::inspect::judge_nodes(model, {}, release);
      std::string reason;
      bool as_it_is = true;  // what the conversion would write otherwise does not run
      for (const graft::inspect::NodeVerdict& node : nodes) {
        as_it_is = as_it_is && node.verdict != graft::inspect::Verdict::lowered;
        if (reason.empty() && node.verdict != graft::inspect::Verdict::native) reason = node.reason;
      }
      const std::optional<bool> runs = as_it_is ? graft::inspect::runs(nodes) : false;
      std::printf("%s\t%s\t%s\n", arguments[i], !runs ? "unknown" : *runs ? "yes" : "no", reason.c_str());
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oracle_tool: %s\n", error.what());
    return 1;
  }
}
