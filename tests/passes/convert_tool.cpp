// convert_tool - converts models for the tests that judge them in other runtimes.
//
// Usage: convert_tool auto|always|never OUT_FOLDER MODEL.onnx...
// A model that is refused is a line `MODEL.onnx: message` on standard error, and the others follow.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string_view>

#include "onnx/onnx_io.hpp"
#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"

int main(int count, char** arguments) {
  using graft::passes::PluginMode;
  if (count < 4) {
    std::fprintf(stderr, "usage: convert_tool auto|always|never OUT_FOLDER MODEL.onnx...\n");
    return 2;
  }
  const std::string_view mode = arguments[1];
  const std::filesystem::path folder = arguments[2];
  int refused = 0;
  for (int i = 3; i < count; ++i) {
    const std::filesystem::path path = arguments[i];
    try {
      graft::onnx::Model model = graft::onnx::read_onnx(path);
      graft::passes::ConvertOptions options;
      options.plugins = mode == "always"  ? graft::passes::PluginMode::always
                        : mode == "never" ? graft::passes::PluginMode::never
                                          : graft::passes::PluginMode::automatic;
      static_cast<void>(graft::passes::convert(graft::runtime::default_engine(), model, options));
      graft::onnx::write_onnx(model, folder / path.filename());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), error.what());
      ++refused;
    }
  }
  return refused == 0 ? 0 : 1;
}
