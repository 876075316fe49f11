// Runs steps of the graph library on ONNX files, for the Python tests: graph_tool IN OUT STEP... or, for each line
// `IN OUT` of a file, graph_tool --list FILE STEP...; then an error is a line `IN: message` and does not stop it.
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "graph/extract.hpp"
#include "graph/functions.hpp"
#include "graph/onnx_io.hpp"
#include "graph/opset.hpp"
#include "graph/shape_inference.hpp"
#include "graph/text.hpp"

namespace {

void run(graft::Model& model, graft::WriteOptions& options, const std::string& step) {
  if (step == "infer") {
    graft::infer_shapes(model);
  } else if (step == "inline") {
    graft::inline_functions(model);
  } else if (step == "attach") {
    graft::attach_functions(model);
  } else if (step == "detach") {
    graft::detach_functions(model);
  } else if (step == "raise") {
    graft::upgrade_opset(model);
  } else if (step == "raise_newest") {
    graft::upgrade_opset(model, 22);
  } else if (step == "adopt") {
    graft::adopt_drop_ins(model.graph());
  } else if (step == "native") {
    model.graph().for_each_node([](graft::Node& node) { graft::replace_with_native_form(node); });
  } else if (step == "body") {
    for (graft::Node* node : model.graph().nodes()) graft::replace_with_function_body(*node);
  } else if (step == "external") {
    options.external_data = graft::ExternalData::always;
    options.external_above = 0;
  } else if (step == "inside") {
    options.external_data = graft::ExternalData::never;
  } else if (step == "clone") {
    model = model.clone();
  } else if (step == "text") {
    std::cout << graft::to_text(model);
  } else {
    throw graft::Error("unknown step " + step);
  }
  model.graph().check();
}

void convert(const std::string& in, const std::string& out, const std::vector<std::string>& steps) {
  graft::Model model = graft::read_onnx(in);
  model.graph().check();
  graft::WriteOptions options;
  for (const std::string& step : steps) run(model, options, step);
  graft::write_onnx(model, out, options);
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

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
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
