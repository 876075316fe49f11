// Pass inline_functions: replaces calls of model-local functions, except the functions of Graft operators, by the
// bodies of the functions.
//
//   y = my::Swish(x)   becomes   s = Sigmoid(x); y = Mul(x, s), where my::Swish is a function of the model
#include <fmt/format.h>

#include "onnx/functions.hpp"
#include "onnx/operator_calls.hpp"
#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {

void inline_functions_of_exporters(Rewriter& rewriter) {
  const onnx::InlineOptions options{.which = onnx::is_plain_call};
  const std::size_t calls = inline_functions(rewriter.model(), options);
  if (calls == 0) return;
  rewriter.record(
      {.others = fmt::format("{} calls of functions", calls)}, "the bodies of the functions",
      "patterns match across the boundaries of functions, and TensorRT uses the wrong body of an overloaded function",
      "by definition: a call computes its body");
}

}  // namespace graft::passes
