// oracle_tool - prints the rules' verdicts on models; tools/tensorrt_versions.py compares them with TensorRT.
//
// Usage: oracle_tool RELEASE MODEL.onnx...
// Prints a line for each model, with tabs: the file, "yes", "no" or "unknown", and the first reason.
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
      const std::vector<graft::report::NodeSupport> nodes = graft::inspect::judge_nodes(model, {}, release);
      std::string reason;
      // TensorRT alone is the judge: nothing is converted for it, and it runs no plugin of Graft's.
      bool as_it_is = true;
      for (const graft::report::NodeSupport& node : nodes) {
        as_it_is = as_it_is && node.support != graft::report::Support::lowered &&
                   node.support != graft::report::Support::plugin;
        if (reason.empty() && node.support != graft::report::Support::native) reason = node.reason;
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
