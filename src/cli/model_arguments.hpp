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

/// Returns the model, its weights, and `others`, which are further files that a command reads, for check_files_apart.
[[nodiscard]] std::vector<NamedFile> files_of(const ModelArguments& arguments, std::vector<NamedFile> others = {});

/// Adds the arguments MODEL and WEIGHTS.
void add_model_files(Command& command, ModelArguments& arguments);
/// Adds --input, which sets the shape of an input.
void add_input_shapes(Command& command, ModelArguments& arguments);
/// Adds --keep-output.
void add_kept_outputs(Command& command, ModelArguments& arguments);

/// Returns the import options that WEIGHTS, --input and --keep-output set.
[[nodiscard]] toolkit::ImportOptions import_options(const ModelArguments& arguments);

/// Reads the model. A network of another format is read with these shapes of its inputs; an ONNX model keeps the shapes
/// of its file.
[[nodiscard]] toolkit::Model load_model(const ModelArguments& arguments, const toolkit::Shapes& shapes);

/// Throws Error for a network of another format, with the `graft convert` command that converts the network to ONNX.
void check_is_onnx(const std::string& model);

/// Returns the written files: "out.onnx", or "out.onnx and out.onnx.data, which has its weights ...".
[[nodiscard]] std::string written_text(const Console& console, const std::string& file,
                                       const std::optional<std::filesystem::path>& data_file);

}  // namespace graft::cli
