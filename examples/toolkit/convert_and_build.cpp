// Builds digits.engine from the frozen TensorFlow graph digits.pb in the current folder.
#include <cstdio>

#include "graft/toolkit/build.hpp"
#include "graft/toolkit/convert.hpp"
#include "graft/toolkit/import.hpp"

int main() {
  const auto converted = graft::toolkit::convert(graft::toolkit::load("digits.pb"));
  const graft::toolkit::ShapeRange shapes{{1, 8, 8, 1}, {8, 8, 8, 1}, {64, 8, 8, 1}};
  const graft::toolkit::BuildOptions options{.targets = {"sm120"}, .shapes = {{"image", shapes}}};
  const auto built = graft::toolkit::build(converted.model, "digits.engine", options);
  std::printf("digits.engine: %zu layers, %zu plugins\n", built.network.layer_count, built.network.plugins.size());
}
