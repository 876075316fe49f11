// Runs steps of the graph library on ONNX files, for the Python tests: graph_tool IN OUT STEP... or, for each line `IN
// OUT` of a file, graph_tool --list FILE STEP..., which prints an error as a line `IN: message` and continues.
// graph_tool --types prints a line for each input of each operator of ai.onnx in each opset.
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "onnx/extract.hpp"
#include "onnx/functions.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/opset.hpp"
#include "onnx/schema.hpp"
#include "onnx/schema_types.hpp"
#include "onnx/shape_inference.hpp"
#include "onnx/text.hpp"

namespace {

void run(graft::onnx::Model& model, graft::onnx::WriteOptions& options, const std::string& step) {
  if (step == "infer") {
    graft::onnx::infer_shapes(model);
  } else if (step == "inline") {
    graft::onnx::inline_functions(model);
  } else if (step == "attach") {
    graft::onnx::attach_functions(model);
  } else if (step == "detach") {
    graft::onnx::detach_functions(model);
  } else if (step == "raise") {
    graft::onnx::upgrade_opset(model);
  } else if (step == "raise_newest") {
    graft::onnx::upgrade_opset(model, 22);
  } else if (step == "adopt") {
    graft::onnx::adopt_drop_ins(model);
  } else if (step == "native") {
    model.graph().for_each_node([](graft::onnx::Node& node) { graft::onnx::replace_with_native_form(node); });
  } else if (step == "body") {
    for (graft::onnx::Node* node : model.graph().nodes()) graft::onnx::replace_with_function_body(*node);
  } else if (step == "external") {
    options.external_data = graft::onnx::ExternalData::always;
    options.external_above = 0;
  } else if (step == "inside") {
    options.external_data = graft::onnx::ExternalData::never;
  } else if (step == "clone") {
    model = model.clone();
  } else if (step == "text") {
    std::cout << graft::onnx::to_text(model);
  } else {
    throw graft::Error("unknown step " + step);
  }
  model.graph().check();
}

void convert(const std::string& in, const std::string& out, const std::vector<std::string>& steps) {
  graft::onnx::Model model = graft::onnx::read_onnx(in);
  model.graph().check();
  graft::onnx::WriteOptions options;
  for (const std::string& step : steps) run(model, options, step);
  graft::onnx::write_onnx(model, out, options);
}

int convert_list(const std::string& list, const std::vector<std::string>& steps) {
  std::ifstream lines(list);
  std::string in;
  std::string out;
  while (lines >> in >> out) {
    try {
      convert(in, out, steps);
    } catch (const graft::Error& error) {
      std::cout << in << ": " << error.what() << '\n';
    }
  }
  return 0;
}

/// Prints "Pow 17 1 b: f32, i32": operator, opset, input, letter of the type parameter, and types. The last letter also
/// applies to all further inputs.
int print_types() {
  constexpr std::int64_t first_opset = 13;
  for (const graft::onnx::OperatorSchema* schema : graft::onnx::all_schemas()) {
    for (std::int64_t opset = first_opset; opset <= graft::onnx::newest_opset; ++opset) {
      const graft::onnx::SchemaTypes* types = graft::onnx::find_schema_types(schema->name, opset);
      for (std::size_t i = 0; types != nullptr && i < types->inputs.size(); ++i) {
        const graft::onnx::TypeSet* allowed = types->types_of(types->inputs[i]);
        std::cout << schema->name << ' ' << opset << ' ' << i << ' ' << types->inputs[i] << ": "
                  << (allowed == nullptr ? "any" : allowed->to_string()) << '\n';
      }
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments == std::vector<std::string>{"--types"}) return print_types();
  const std::vector<std::string> steps(arguments.begin() + 2, arguments.end());
  try {
    if (arguments.at(0) == "--list") return convert_list(arguments.at(1), steps);
    convert(arguments.at(0), arguments.at(1), steps);
    return 0;
  } catch (const graft::Error& error) {
    std::cerr << error.what() << '\n';
    return 1 + static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    std::cerr << "unexpected: " << error.what() << '\n';
    return 99;
  }
}
