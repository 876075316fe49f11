// The arguments that several commands have: a model of any format, shapes, tensors, and the files that they read and
// write.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "graft/toolkit/data.hpp"
#include "graft/toolkit/import.hpp"

namespace graft::cli {

/// A file of the command line, with the option or argument that names it in messages: "-o", "the model itself".
struct NamedFile {
  std::string what;
  std::string path;  ///< Empty if the option was not given.
};

/// Throws Error if a file to be written is also read or would be written twice, even under different names. Commands
/// call it before long work.
void check_files_apart(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read);

/// Shapes by the name of an input. The size -1 is a dynamic dimension, which the user writes as "?" or "-1".
using TypedShapes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

/// Parses strings such as NAME:1x3x8x8 or NAME=1x3x8x8; "?" and "-1" are allowed as sizes if `unknown_allowed`. Throws
/// Error, quoting the option, for other strings, for a size below 1, and for a name that occurs twice.
[[nodiscard]] TypedShapes parse_shapes(const std::string& option, const std::vector<std::string>& texts,
                                       bool unknown_allowed);

inline constexpr auto data_option = "--data";

/// Adds the options --labels, which sets `data.labels`, and --judge-output, which sets `judge_outputs`, for the
/// accuracy of a classifier. `group` is the heading of the help text under which they are listed; empty for the usual
/// one.
void add_labels(Command& command, toolkit::DataFiles& data, std::vector<std::string>& judge_outputs,
                const std::string& group = "");

/// Adds two options that set `data`: the one named `option`, for example data_option, for files of arrays or images,
/// and --recipe for the preparation of images. `purpose`, such as "inputs", begins the help text of the first option.
void add_data(Command& command, const std::string& option, toolkit::DataFiles& data, const std::string& purpose);

/// Returns the files that `data` names, for check_files_apart. `option` is the option that set the data; messages name
/// it.
[[nodiscard]] std::vector<NamedFile> files_of(const std::string& option, const toolkit::DataFiles& data);

struct ModelArguments {
  std::string model;
  std::string weights;
  std::vector<std::string> shapes;   ///< The values of --input, such as "NAME:1x3x8x8".
  std::vector<std::string> outputs;  ///< The values of --keep-output, which are names of tensors.
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

/// Reads the model. A network of another format than ONNX is read with the input shapes in `shapes` or, if these are
/// empty, with the shapes of the arrays in `data`; an ONNX model keeps the shapes of its file.
[[nodiscard]] toolkit::Model load_model(const ModelArguments& arguments, const toolkit::Shapes& shapes,
                                        const toolkit::DataFiles& data);

/// Throws Error for a network of another format, with the `graft convert` command that converts the network to ONNX.
void check_is_onnx(const std::string& model);

/// Returns the written files: "out.onnx" or, if `data_file` is the file with the weights, "out.onnx and out.onnx.data,
/// which has its weights ...".
[[nodiscard]] std::string written_text(const Console& console, const std::string& file,
                                       const std::optional<std::filesystem::path>& data_file);

}  // namespace graft::cli
