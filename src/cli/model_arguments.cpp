// Adds the arguments and converts their values. Paths are compared after following links, whether the files exist or
// not.
#include "cli/model_arguments.hpp"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/guide_pages.hpp"
#include "core/shell_quoted.hpp"
#include "graft/error.hpp"

namespace graft::cli {
namespace {

bool is_one_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code ignored;
  if (std::filesystem::equivalent(a, b, ignored)) return true;
  const std::filesystem::path first = std::filesystem::weakly_canonical(std::filesystem::absolute(a, ignored), ignored);
  const std::filesystem::path second =
      std::filesystem::weakly_canonical(std::filesystem::absolute(b, ignored), ignored);
  return !first.empty() && first == second;
}

}  // namespace

void check_files_apart(const std::vector<NamedFile>& written, const std::vector<NamedFile>& read) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    const NamedFile& file = written[i];
    // Writing to a device such as /dev/null overwrites no file.
    std::error_code ignored;
    if (std::filesystem::exists(file.path, ignored) && !std::filesystem::is_regular_file(file.path, ignored)) continue;
    for (const NamedFile& other : read) {
      if (!is_one_file(file.path, other.path)) continue;
      throw Error(fmt::format("{} {}: this file is {}, which is never overwritten\nChoose another file to write",
                              file.what, file.path, other.what));
    }
    for (std::size_t k = 0; k < i; ++k) {
      if (!is_one_file(file.path, written[k].path)) continue;
      throw Error(fmt::format("{} {}: {} writes the same file\nChoose another name for one of the two files", file.what,
                              file.path, written[k].what));
    }
  }
}

TypedShapes parse_shapes(const std::string& option, const std::vector<std::string>& texts, bool unknown_allowed) {
  TypedShapes shapes;
  for (const std::string& text : texts) {
    const auto refuse = [&](const std::string& why) {
      throw Error(fmt::format("{} {}: {}\nWrite NAME:SIZES, for example image:1x3x224x224{}", option, text, why,
                              unknown_allowed ? ", with ? for a dynamic size" : ""));
    };
    // Names may contain colons, so that the last colon ends the name. --shapes and --data use an equals sign instead.
    const std::size_t colon = text.find_last_of(":=");
    if (colon == std::string::npos || colon == 0) refuse("the name of an input and a colon must come before the sizes");
    std::vector<std::int64_t> sizes;
    std::string_view rest = std::string_view(text).substr(colon + 1);
    while (true) {
      const std::string_view part = rest.substr(0, rest.find('x'));
      std::int64_t size = -1;
      if (!(unknown_allowed && (part == "?" || part == "-1"))) {
        const auto [end, failed] = std::from_chars(part.data(), part.data() + part.size(), size);
        if (failed != std::errc{} || end != part.data() + part.size())
          refuse(fmt::format("'{}' is not a size; every size must be an integer", part));
        if (size < 1) refuse(fmt::format("found a size of {}; every size must be at least 1", size));
      }
      sizes.push_back(size);
      if (part.size() == rest.size()) break;
      rest = rest.substr(part.size() + 1);
    }
    if (!shapes.emplace(text.substr(0, colon), std::move(sizes)).second)
      refuse("this input already has a shape on the command line");
  }
  return shapes;
}

void add_data(Command& command, const std::string& option, toolkit::DataFiles& data, const std::string& purpose) {
  command
      .add_option(option, data.sources,
                  purpose +
                      ": FILE.npy, FILE.npz, an image, or a folder of arrays or images; NAME=FILE selects the "
                      "input and FILE.npz:ARRAY the array where several are possible; the first axis counts "
                      "samples (" +
                      guide_page("data") + ")")
      ->type_name("DATA");
  command
      .add_option("--recipe", data.recipe,
                  "YAML file that describes how images are prepared: resize, crop, mean, scale ...")
      ->type_name("FILE");
}

void add_labels(Command& command, toolkit::DataFiles& data, std::vector<std::string>& judge_outputs,
                const std::string& group) {
  Option* labels = command.add_option(
      "--labels", data.labels,
      "classes of a folder's images, for the accuracy: folders (the name of the folder of each image) or a text or CSV "
      "file with a line NAME,CLASS for each image (see " +
          guide_page("data") + ")");
  labels->type_name("LABELS");
  Option* outputs = command.add_option(
      "--judge-output", judge_outputs,
      "output with the scores of a classifier, for the accuracy and the top-1 agreement; repeatable (default: outputs "
      "next to a Softmax or ArgMax or named like logits or prob; without these, the [batch, classes] outputs of last "
      "layers)");
  outputs->type_name("NAME");
  if (group.empty()) return;
  labels->group(group);
  outputs->group(group);
}

std::vector<NamedFile> files_of(const std::string& option, const toolkit::DataFiles& data) {
  std::vector<NamedFile> files;
  for (const std::filesystem::path& file : toolkit::data_paths({.sources = data.sources})) {
    files.push_back({"a file of " + option, file.string()});
  }
  files.push_back({"the recipe", data.recipe.string()});
  files.push_back({"the file of --labels", data.labels});
  return files;
}

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

toolkit::Model load_model(const ModelArguments& arguments, const toolkit::Shapes& shapes,
                          const toolkit::DataFiles& data) {
  const bool is_onnx = toolkit::format_of(arguments.model) == toolkit::Format::onnx;
  return toolkit::load(
      arguments.model,
      {.weights = arguments.weights, .shapes = is_onnx ? toolkit::Shapes() : shapes, .outputs = arguments.outputs},
      data);
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
    text += fmt::format(" and {}, which contains the model's weights and must stay in the same folder",
                        console.paint(data_file->string(), Color::strong));
  }
  return text;
}

}  // namespace graft::cli
