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

std::vector<std::string> ReducedFiles::names() const {
  std::vector<std::string> names;
  for (const std::string& name : {candidate, reference, inputs}) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

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
  if (report.failure && !report.failure->nodes.empty()) {
    files.reference.clear();
    onnx::write_onnx(report.failure->part, files.candidate);
    write_inputs(files, report.failure->inputs);
    return files;
  }
  if (!report.first) return std::nullopt;
  const verify::ReducedCase& reduced = report.first->reduced;
  onnx::write_onnx(reduced.candidate, files.candidate);
  onnx::write_onnx(reduced.reference, files.reference);
  write_inputs(files, reduced.inputs);
  return files;
}

}  // namespace graft::toolkit
