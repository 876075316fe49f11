// improve_tool - changes models for the tests that judge them in other runtimes.
//
// Usage: improve_tool fold|equalize IN.onnx OUT.onnx
//        improve_tool correct IN.onnx OUT.onnx REFERENCE.onnx DATA.npz SAMPLES MEMORY
//        improve_tool round IN.onnx OUT.onnx REFERENCE.onnx DATA.npz ROWS
//        improve_tool smooth IN.onnx OUT.onnx DATA.npz ALPHA [convolutions]
// Prints what was changed, a line for each.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>

#include "graph/onnx_io.hpp"
#include "quant/adaround.hpp"
#include "quant/calibration_data.hpp"
#include "quant/correct_bias.hpp"
#include "quant/equalize.hpp"
#include "quant/fold_scales.hpp"
#include "quant/smooth.hpp"
#include "runtime/default_engine.hpp"

namespace {

graft::CalibrationData open_data(const char* path, const graft::Model& model) {
  return graft::open_calibration_data(path, model, std::nullopt);
}

void correct(graft::Model& model, char** arguments) {
  const graft::Model reference = graft::read_onnx(arguments[4]);
  graft::ObserveOptions options;
  options.samples = std::strtol(arguments[6], nullptr, 10);
  const std::size_t memory = std::strtoul(arguments[7], nullptr, 10);
  for (const auto& layer : graft::correct_bias(graft::runtime::default_engine(), model, reference,
                                               open_data(arguments[5], reference), options, memory)) {
    std::printf("%s %s: %g %g %g\n", layer.layer.c_str(), layer.tensor.c_str(), layer.mean, layer.largest,
                layer.deviation);
  }
}

void smooth(graft::Model& model, int count, char** arguments) {
  graft::SmoothOptions options;
  options.alpha = std::strtod(arguments[5], nullptr);
  options.convolutions = count == 7;
  for (const graft::Smoothed& tensor :
       graft::smooth_quant(graft::runtime::default_engine(), model, open_data(arguments[4], model), options)) {
    std::printf("%s, %zu layers: %g to %g %s\n", tensor.tensor.c_str(), tensor.layers.size(), tensor.smallest,
                tensor.largest, tensor.why_not.c_str());
  }
}

void round(graft::Model& model, char** arguments) {
  const graft::Model reference = graft::read_onnx(arguments[4]);
  graft::RoundOptions options;
  options.rows = std::strtol(arguments[6], nullptr, 10);
  for (const auto& layer : graft::adaround(graft::runtime::default_engine(), model, reference,
                                           open_data(arguments[5], reference), options)) {
    std::printf("%s: %zu of %zu, %g to %g %s\n", layer.layer.c_str(), layer.changed, layer.weights, layer.before,
                layer.after, layer.why_not.c_str());
  }
}

int improve(std::string_view what, int count, char** arguments) {
  graft::Model model = graft::read_onnx(arguments[2]);
  if (what == "fold" && count == 4) {
    std::printf("%zu\n", graft::fold_scales(model));
  } else if (what == "equalize" && count == 4) {
    for (const graft::Equalized& pair : graft::equalize_across_layers(model)) {
      std::printf("%s, %s: from %g to %g\n", pair.first.c_str(), pair.second.c_str(), pair.smallest, pair.largest);
    }
  } else if (what == "correct" && count == 8) {
    correct(model, arguments);
  } else if (what == "round" && count == 7) {
    round(model, arguments);
  } else if (what == "smooth" && (count == 6 || count == 7)) {
    smooth(model, count, arguments);
  } else {
    std::fprintf(stderr, "improve_tool: see the head of its source\n");
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
