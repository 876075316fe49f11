// convert_tool - converts models for the tests that judge them in other runtimes.
//
// Usage: convert_tool auto|always|never OUT_FOLDER MODEL.onnx...
// A model that is refused is a line `MODEL.onnx: message` on standard error, and the others follow.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string_view>

#include "graph/onnx_io.hpp"
#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"

int main(int count, char** arguments) {
  using graft::PluginMode;
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
      graft::Model model = graft::read_onnx(path);
      graft::ConvertOptions options;
      options.plugins = mode == "always"  ? PluginMode::always
                        : mode == "never" ? PluginMode::never
                                          : PluginMode::automatic;
      static_cast<void>(graft::convert(graft::runtime::default_engine(), model, options));
      graft::write_onnx(model, folder / path.filename());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), error.what());
      ++refused;
    }
  }
  return refused == 0 ? 0 : 1;
}
