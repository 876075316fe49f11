// Builds an int8 engine from a frozen TensorFlow graph: to_engine digits.pb digits_test.npz digits.engine
#include <cstdio>

#include "graft/toolkit/build.hpp"
#include "graft/toolkit/convert.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/quantize.hpp"
#include "graft/toolkit/verify.hpp"

namespace gt = graft::toolkit;

int main(int argc, char** argv) try {
  if (argc != 4) return 2;
  gt::Watch watch;
  watch.progress = [](double fraction, std::string_view text) {
    std::fprintf(stderr, "%3.0f %% %.*s\n", 100 * fraction, static_cast<int>(text.size()), text.data());
  };
  const gt::Model original = gt::load(argv[1]);
  const gt::ConvertReport converted = gt::convert(original, {.watch = watch});

  const std::string input = original.inputs().front().name;
  gt::Tensor images = gt::read_npz(argv[2]).at("images");
  images.shape = {images.shape[0], 8, 8, 1};  // the graph has channels last (one channel)
  const bool same =
      gt::verify(original, converted.model, {.data = {{input, images}}, .watch = watch}).verdict() == gt::Verdict::same;
  std::printf("%zu rewrites, %s\n", converted.rewrites.size(), same ? "the same" : "not the same");

  const auto quantized =
      gt::quantize(converted.model, {.precision = gt::Precision::int8, .data = {{input, images}}, .watch = watch});
  const gt::ShapeRange shapes{{1, 8, 8, 1}, {8, 8, 8, 1}, {64, 8, 8, 1}};
  const gt::BuildReport built =
      gt::build(quantized.model, argv[3], {.targets = {"sm120"}, .shapes = {{input, shapes}}, .watch = watch});
  std::printf("%s: %zu layers, %s\n", argv[3], built.network.layer_count, built.tensorrt.title().c_str());
  return same ? 0 : 1;
} catch (const graft::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
