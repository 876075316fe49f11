// Reading what was named, and describing its ends.
#include "cli/model_arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string_view>
#include <utility>

#include "cli/dimensions.hpp"
#include "graft/error.hpp"
#include "import/messages.hpp"
#include "import/read_model.hpp"

namespace graft::cli {
namespace {

/// Sizes that nobody knows have names for Graft's own use, also within a computation.
std::string known_size_text(const Dim& dim) {
  std::string text = dim.to_string();
  return text.find('?') == std::string::npos ? text : "?";
}

std::string sizes_text(const Value& value) {
  if (!value.shape) return "of unknown rank";
  std::string text;
  constexpr std::size_t longest = 24;
  for (const Dim& dim : *value.shape) {
    const std::string size = known_size_text(dim);
    text += (text.empty() ? "" : " x ") + (size.size() <= longest ? size : "?");
  }
  return text.empty() ? "scalar" : text;
}

/// What the file itself says of its inputs; empty where it cannot be read.
std::string inputs_without_shapes(const ModelArguments& arguments) {
  try {
    return inputs_text(read_model(arguments.model, arguments.weights,
                                  {.outputs = arguments.outputs, .input_shapes = {}, .origin = nullptr})
                           .graph());
  } catch (const Error&) {
    return {};
  }
}

std::string type_text(const Value& value) { return value.type ? std::string(to_string(*value.type)) : "?"; }

}  // namespace

std::vector<NamedFile> files_of(const ModelArguments& arguments, std::vector<NamedFile> others) {
  others.push_back({"the model itself", arguments.model});
  others.push_back({"the model itself", arguments.weights});
  return others;
}

void add_model_files(CLI::App& command, ModelArguments& arguments) {
  command
      .add_option("MODEL", arguments.model,
                  "an ONNX model, a frozen TensorFlow graph (.pb, .pbtxt) or a Caffe network (.prototxt)")
      ->required();
  command.add_option("WEIGHTS", arguments.weights, "the .caffemodel of a Caffe network");
}

void add_input_shapes(CLI::App& command, ModelArguments& arguments) {
  command
      .add_option(
          "--input", arguments.shapes,
          "shape of an input, in place of the file's, NAME:1x3x224x224 with ? for a dynamic dimension; once for each")
      ->type_name("SHAPE");
}

void add_kept_outputs(CLI::App& command, ModelArguments& arguments) {
  command
      .add_option("--keep-output", arguments.outputs,
                  "tensor of a TensorFlow or Caffe network that becomes an output, in place of all that no node "
                  "reads; once for each")
      ->type_name("TENSOR");
}

InputShapes input_shapes(const ModelArguments& arguments) {
  InputShapes shapes;
  for (const auto& [name, sizes] : parse_shapes("--input", arguments.shapes, true)) {
    Shape shape;
    for (const std::int64_t size : sizes) shape.push_back(size < 0 ? unknown_dim() : Dim(size));
    shapes.emplace(name, std::move(shape));
  }
  return shapes;
}

Model read(const ModelArguments& arguments, const InputShapes& shapes, Origin* origin) {
  try {
    return read_model(arguments.model, arguments.weights,
                      {.outputs = arguments.outputs, .input_shapes = shapes, .origin = origin});
  } catch (const Error& error) {
    if (arguments.shapes.empty() || error.kind() != Error::Kind::bad_input) throw;
    const std::string said = inputs_without_shapes(arguments);
    if (said.empty() || std::string_view(error.what()).find(said) != std::string_view::npos) throw;
    throw Error(fmt::format("{}\nWithout --input {}", error.what(), said));
  }
}

bool is_imported(const std::string& model) {
  const std::filesystem::path end = std::filesystem::path(model).extension();
  return end == ".pb" || end == ".pbtxt" || end == ".prototxt";
}

void check_is_onnx(const std::string& model) {
  if (!is_imported(model)) return;
  const bool is_caffe = std::filesystem::path(model).extension() == ".prototxt";
  throw Error(fmt::format("{}: {}; this command takes an ONNX model\nMake one with: graft convert {}{} -o model.onnx",
                          model, is_caffe ? "a Caffe network" : "a TensorFlow graph", model,
                          is_caffe ? " WEIGHTS.caffemodel" : ""));
}

void warn_of_missing_ranks(const Console& console, const Model& model) {
  for (const Value* input : model.graph().inputs()) {
    if (input->shape || !input->type) continue;
    console.warn(fmt::format("the input {0} has no shape in the file, and TensorRT needs one: --input {0}:1x224x224x3",
                             input->name));
  }
}

Table table_of_ends(const Model& model) {
  Table table;
  const auto add = [&](const char* side, const auto& values) {
    for (const Value* value : values) {
      table.add({{side, Color::faint}, {value->name, Color::strong}, type_text(*value), sizes_text(*value)});
    }
  };
  add("input", model.graph().inputs());
  add("output", model.graph().outputs());
  return table;
}

Json json_of_ends(const Model& model) {
  const auto listed = [](const auto& values) {
    Json list = Json::array();
    for (const Value* value : values) {
      Json shape;  // null: not even the rank is known
      if (value->shape) {
        shape = Json::array();
        for (const Dim& dim : *value->shape) {
          shape.push_back(dim.is_constant() ? Json(dim.value()) : Json(known_size_text(dim)));
        }
      }
      list.push_back({{"name", value->name}, {"type", type_text(*value)}, {"shape", shape}});
    }
    return list;
  };
  return {{"inputs", listed(model.graph().inputs())}, {"outputs", listed(model.graph().outputs())}};
}

Json json_of_origin(const Origin& origin) {
  if (origin.format.empty()) return {{"origin", nullptr}, {"notes", origin.notes}};
  Json left_out = Json::array();
  for (const Origin::LeftOut& entry : origin.left_out) {
    left_out.push_back({{"operator", entry.op}, {"count", entry.count}, {"why", entry.why}});
  }
  return {{"origin",
           {{"format", origin.format},
            {"nodes", origin.nodes},
            {"operators", origin.operators},
            {"left_out", left_out},
            {"tensors_renamed", origin.renamed}}},
          {"notes", origin.notes}};
}

std::string origin_text(const Origin& origin) {
  return origin.format.empty() ? "" : fmt::format("{} of {}", origin.format, count_text(origin.nodes, origin.unit));
}

std::string written_text(const Console& console, const std::string& file,
                         const std::optional<std::filesystem::path>& data_file) {
  std::string text = console.paint(file, Color::strong);
  if (data_file) {
    text += fmt::format(" and {}, which has its weights and has to stay beside it",
                        console.paint(data_file->string(), Color::strong));
  }
  return text;
}

Json json_of_data_file(const std::optional<std::filesystem::path>& data_file) {
  return data_file ? Json(data_file->string()) : Json();
}

}  // namespace graft::cli
