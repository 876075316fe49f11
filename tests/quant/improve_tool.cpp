// improve_tool - changes models for the tests that judge them in other runtimes.
//
// Usage: improve_tool fold|equalize IN.onnx OUT.onnx
// Prints what was changed, a line for each.
#include <cstdio>
#include <exception>
#include <string_view>

#include "graph/onnx_io.hpp"
#include "quant/equalize.hpp"
#include "quant/fold_scales.hpp"

namespace {

int improve(std::string_view what, int count, char** arguments) {
  graft::Model model = graft::read_onnx(arguments[2]);
  if (what == "fold" && count == 4) {
    std::printf("%zu\n", graft::fold_scales(model));
  } else if (what == "equalize" && count == 4) {
    for (const graft::Equalized& pair : graft::equalize(model)) {
      std::printf("%s, %s: from %g to %g\n", pair.first.c_str(), pair.second.c_str(), pair.smallest, pair.largest);
    }
  } else {
    std::fprintf(stderr, "usage: improve_tool fold|equalize IN.onnx OUT.onnx\n");
    return 2;
  }
  model.graph().check();
  graft::write_onnx(model, arguments[3]);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return count < 4 ? 2 : improve(arguments[1], count, arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
