// Writes a reduced case as ONNX and .npz files.
#include "toolkit/reduced_case.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/onnx_io.hpp"
#include "toolkit/tensor_files.hpp"

namespace graft::toolkit {
namespace {

void write_inputs(ReducedFiles& files, const runtime::TensorMap& inputs) {
  if (inputs.empty()) {
    files.inputs.clear();
  } else {
    write_tensors(files.inputs, inputs);
  }
}

}  // namespace

ReducedFiles reduced_files(const std::string& path) {
  std::filesystem::path name(path);
  if (name.extension() != ".onnx") {
    throw Error(fmt::format("{} {}: a reduced model is written as ONNX\nEnd the name in .onnx",
                            setting_name(Setting::reduce), path));
  }
  ReducedFiles files;
  files.candidate = path;
  files.reference = name.replace_extension(".reference.onnx").string();
  files.inputs = std::filesystem::path(path).replace_extension(".npz").string();
  return files;
}

std::optional<ReducedFiles> write_reduced(const std::string& path, const verify::LayerReport& report) {
  ReducedFiles files = reduced_files(path);
  if (!report.reduced) return std::nullopt;
  onnx::write_onnx(report.reduced->candidate, files.candidate);
  if (report.failure) {
    files.reference.clear();
  } else {
    onnx::write_onnx(report.reduced->reference, files.reference);
  }
  write_inputs(files, report.reduced->inputs);
  return files;
}

}  // namespace graft::toolkit
