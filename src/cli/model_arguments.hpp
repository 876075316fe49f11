// The arguments that name a model of any format, shared by the commands that read one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/output_files.hpp"
#include "cli/program.hpp"
#include "graft/toolkit/import.hpp"

namespace graft::cli {

struct ModelArguments {
  std::string model;
  std::string weights;
  std::vector<std::string> shapes;   ///< --input
  std::vector<std::string> outputs;  ///< --keep-output
};

inline constexpr auto shapes_option = "--input";

/// Model and weights, and what a command reads beside them, for check_files_apart.
[[nodiscard]] std::vector<NamedFile> files_of(const ModelArguments& arguments, std::vector<NamedFile> others = {});

/// MODEL and WEIGHTS.
void add_model_files(Command& command, ModelArguments& arguments);
/// --input with a shape; --keep-output.
void add_input_shapes(Command& command, ModelArguments& arguments);
void add_kept_outputs(Command& command, ModelArguments& arguments);

/// What --input and --keep-output say.
[[nodiscard]] toolkit::ImportOptions import_options(const ModelArguments& arguments);

/// Throws Error for a network of another format, which `graft convert` has to read first.
void check_is_onnx(const std::string& model);

/// "out.onnx", or "out.onnx and out.onnx.data beside it, which has the weights".
[[nodiscard]] std::string written_text(const Console& console, const std::string& file,
                                       const std::optional<std::filesystem::path>& data_file);

}  // namespace graft::cli
