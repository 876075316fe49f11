// Adds the arguments and converts their values.
#include "cli/model_arguments.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "cli/dimensions.hpp"
#include "core/shell_quoted.hpp"
#include "graft/error.hpp"

namespace graft::cli {

std::vector<NamedFile> files_of(const ModelArguments& arguments, std::vector<NamedFile> others) {
  others.push_back({"the input model", arguments.model});
  others.push_back({"the input model", arguments.weights});
  return others;
}

void add_model_files(Command& command, ModelArguments& arguments) {
  command
      .add_option("MODEL", arguments.model,
                  "an ONNX model, a frozen TensorFlow graph (.pb, .pbtxt) or a Caffe network (.prototxt)")
      ->required();
  command.add_option("WEIGHTS", arguments.weights, "the .caffemodel of a Caffe network");
}

void add_input_shapes(Command& command, ModelArguments& arguments) {
  command
      .add_option(shapes_option, arguments.shapes,
                  "shape of an input, which replaces its shape in the file, NAME:1x3x224x224 with ? for a dynamic "
                  "dimension; repeatable")
      ->type_name("SHAPE");
}

void add_kept_outputs(Command& command, ModelArguments& arguments) {
  command
      .add_option("--keep-output", arguments.outputs,
                  "tensor of a TensorFlow or Caffe network that becomes an output, instead of all tensors that no node "
                  "reads; repeatable")
      ->type_name("TENSOR");
}

toolkit::ImportOptions import_options(const ModelArguments& arguments) {
  const TypedShapes shapes = parse_shapes(shapes_option, arguments.shapes, true);
  return {.weights = arguments.weights, .shapes = {shapes.begin(), shapes.end()}, .outputs = arguments.outputs};
}

toolkit::Model load_model(const ModelArguments& arguments, const toolkit::Shapes& shapes) {
  const bool is_onnx = toolkit::format_of(arguments.model) == toolkit::Format::onnx;
  return toolkit::load(
      arguments.model,
      {.weights = arguments.weights, .shapes = is_onnx ? toolkit::Shapes() : shapes, .outputs = arguments.outputs});
}

void check_is_onnx(const std::string& model) {
  const toolkit::Format format = toolkit::format_of(model);
  if (format == toolkit::Format::onnx) return;
  const bool is_caffe = format == toolkit::Format::caffe;
  std::string files = shell_path(model);
  if (is_caffe) {
    std::filesystem::path weights = model;
    weights.replace_extension(".caffemodel");
    std::error_code ignored;
    files += " " + (std::filesystem::is_regular_file(weights, ignored) ? shell_path(weights) : "WEIGHTS.caffemodel");
  }
  std::filesystem::path converted = model;
  converted.replace_extension(".graft.onnx");
  throw Error(fmt::format("{}: {}; this command needs an ONNX model\nCreate one with: graft convert {} -o {}", model,
                          is_caffe ? "a Caffe network" : "a TensorFlow graph", files, shell_path(converted)));
}

std::string written_text(const Console& console, const std::string& file,
                         const std::optional<std::filesystem::path>& data_file) {
  std::string text = console.paint(file, Color::strong);
  if (data_file) {
    text += fmt::format(" and {}, which contains its weights and has to stay next to it",
                        console.paint(data_file->string(), Color::strong));
  }
  return text;
}

}  // namespace graft::cli
