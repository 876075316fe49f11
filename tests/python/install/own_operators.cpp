// An application that loads a user's operators: own_operators LIBRARY NETWORK.onnx OTHER_LIBRARY
#include <cstdio>

#include "graft/toolkit/convert.hpp"
#include "graft/toolkit/error.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/operators.hpp"
#include "graft/toolkit/quantize.hpp"
#include "graft/toolkit/run.hpp"
#include "graft/toolkit/verify.hpp"

namespace gt = graft::toolkit;

int main(int argc, char** argv) try {
  if (argc != 4) return 2;
  const gt::Model network = gt::load(argv[2]);
  std::printf("rewrites before: %zu\n", gt::convert(network).rewrites.size());

  // Loads the library twice: the second call has no effect. Afterwards convert finds the library's operator.
  for (int i = 0; i < 2; ++i) {
    for (const std::string& name : gt::load_operators(argv[1])) std::printf("loaded: %s\n", name.c_str());
  }
  const gt::ConvertReport converted = gt::convert(network);
  for (const gt::Rewrite& rewrite : converted.rewrites) std::printf("rewrite: %s\n", rewrite.replacement.c_str());
  for (const gt::OperatorChoice& choice : converted.choices) std::printf("choice: %s\n", choice.op.c_str());

  // Compares the function of the operator with its kernel.
  const gt::VerifyResult verified = gt::verify(network, converted.model, {.own_kernels = true});
  std::printf("verified: %s\n", verified.verdict() == gt::Verdict::same ? "the same" : "not the same");
  const auto quantized = gt::quantize(converted.model, {.precision = gt::Precision::f16});
  std::printf("f16: %zu nodes\n", quantized.model.node_count());

  try {
    static_cast<void>(gt::load_operators(argv[3]));
  } catch (const gt::Error& error) {
    std::printf("refused: %d %s\n", static_cast<int>(error.kind()), error.what());
  }
} catch (const gt::Error& error) {
  std::printf("%s\n", error.what());
  return 1;
}
