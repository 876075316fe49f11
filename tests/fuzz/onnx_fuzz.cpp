// What libFuzzer calls: any bytes as an ONNX file, through everything that reads before a person has looked at it.
// Build with clang and -DGRAFT_FUZZ=ON, then: onnx_fuzz -rss_limit_mb=2048 corpus tests/golden/models
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "graph/functions.hpp"
#include "graph/onnx_io.hpp"
#include "graph/shape_inference.hpp"
#include "graph/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    graft::Model model = graft::parse_onnx({reinterpret_cast<const char*>(data), size}, "", "fuzz");
    model.graph().check();
    (void)graft::to_text(model);
    const std::string bytes = graft::serialize_onnx(model);
    (void)graft::parse_onnx(bytes, "", "written");  // what Graft writes it can read
    graft::infer_shapes(model);
    graft::InlineOptions options;
    options.max_nodes = 10'000;
    graft::inline_functions(model, options);
    model.graph().check();
  } catch (const graft::Error& error) {
    if (error.kind() == graft::Error::Kind::internal) throw;  // a defect of ours, not of the file
  }
  return 0;
}
