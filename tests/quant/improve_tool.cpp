// improve_tool - changes models for tests that run them in other runtimes.
//
// Usage: improve_tool fold|equalize IN.onnx OUT.onnx
//        improve_tool correct IN.onnx OUT.onnx REFERENCE.onnx DATA.npz SAMPLES MEMORY
//        improve_tool round IN.onnx OUT.onnx REFERENCE.onnx DATA.npz ROWS
//        improve_tool smooth IN.onnx OUT.onnx DATA.npz ALPHA [convolutions]
// Prints a line for each change.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>

#include "onnx/onnx_io.hpp"
#include "quant/calibrate/calibration_data.hpp"
#include "quant/improve/adaround.hpp"
#include "quant/improve/correct_bias.hpp"
#include "quant/improve/equalize.hpp"
#include "quant/improve/smooth.hpp"
#include "quant/plan/fold_scales.hpp"
#include "runtime/default_engine.hpp"

namespace {

graft::quant::CalibrationData open_data(const char* path, const graft::onnx::Model& model) {
  return graft::quant::open_calibration_data(path, model);
}

void correct(graft::onnx::Model& model, char** arguments) {
  const graft::onnx::Model reference = graft::onnx::read_onnx(arguments[4]);
  graft::quant::ObserveOptions options;
  options.samples = std::strtol(arguments[6], nullptr, 10);
  const std::size_t memory = std::strtoul(arguments[7], nullptr, 10);
  for (const auto& layer : graft::quant::correct_bias(graft::runtime::default_engine(), model, reference,
                                                      open_data(arguments[5], reference), options, memory)) {
    std::printf("%s %s: %g %g %g\n", layer.layer.c_str(), layer.tensor.c_str(), layer.mean, layer.largest,
                layer.deviation);
  }
}

void smooth(graft::onnx::Model& model, int count, char** arguments) {
  graft::quant::SmoothOptions options;
  options.alpha = std::strtod(arguments[5], nullptr);
  options.convolutions = count == 7;
  for (const graft::quant::Smoothed& tensor :
       graft::quant::smooth_quant(graft::runtime::default_engine(), model, open_data(arguments[4], model), options)) {
    std::printf("%s, %zu layers: %g to %g %s\n", tensor.tensor.c_str(), tensor.layers.size(), tensor.smallest,
                tensor.largest, tensor.why_not.c_str());
  }
}

void round(graft::onnx::Model& model, char** arguments) {
  const graft::onnx::Model reference = graft::onnx::read_onnx(arguments[4]);
  graft::quant::RoundOptions options;
  options.rows = std::strtol(arguments[6], nullptr, 10);
  for (const auto& layer : graft::quant::adaround(graft::runtime::default_engine(), model, reference,
                                                  open_data(arguments[5], reference), options)) {
    std::printf("%s: %zu of %zu, %g to %g %s\n", layer.layer.c_str(), layer.changed, layer.weights, layer.before,
                layer.after, layer.why_not.c_str());
  }
}

int improve(std::string_view what, int count, char** arguments) {
  graft::onnx::Model model = graft::onnx::read_onnx(arguments[2]);
  if (what == "fold" && count == 4) {
    std::printf("%zu\n", graft::quant::fold_scales(model));
  } else if (what == "equalize" && count == 4) {
    for (const graft::quant::Equalized& pair : graft::quant::equalize_across_layers(model)) {
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
  graft::onnx::write_onnx(model, arguments[3]);
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
