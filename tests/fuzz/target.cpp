// Runs a model's file through Graft, and counts its memory.
#include "tests/fuzz/target.hpp"

#include "graft/error.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/text.hpp"
#include "passes/pipeline.hpp"
#include "tests/fuzz/counting.hpp"
#include "tests/fuzz/zero_engine.hpp"

namespace graft::fuzz {

void run(std::string_view bytes) {
  try {
    onnx::Model model;
    {
      const Counting while_it_runs(memory_limit(bytes.size()), single_limit(bytes.size()));
      model = read(bytes);
      model.graph().check();
      passes::ConvertOptions options;
      options.proof.seeds = 1;
      options.proof.max_elements = 256;
      (void)convert(zero_engine(), model, options);
      model.graph().check();
      (void)to_text(model);
    }
    // Not counted: `graft convert` writes tensors one after another to a file, and does not read them again.
    const std::string written = serialize_onnx(model);
    model = onnx::Model();
    onnx::parse_onnx(written, "", "written").graph().check();  // Graft can read its own files
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::internal) throw;  // a defect of Graft, not of the file
  }
}

}  // namespace graft::fuzz
