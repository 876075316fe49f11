// Runs models on the CPU engine, for the Python tests:
//   run_model attach IN.onnx OUT.onnx                        attaches the functions of Graft's nodes
//   run_model functions|own MODEL IN.npz OUT.npz [EXTRA...]  runs a model
//   run_model serve                                          runs the commands in the lines of its input
// Exits with 2 and the message where graft::Error is thrown.
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "io/npy.hpp"
#include "onnx/functions.hpp"
#include "onnx/onnx_io.hpp"
#include "runtime/openvino/openvino_engine.hpp"

namespace {

graft::onnx::TensorData to_tensor(const graft::io::NpyArray& array) {
  graft::onnx::TensorData tensor;
  tensor.type = array.type;
  tensor.dims = array.shape;
  tensor.bytes = graft::onnx::Bytes(std::string(reinterpret_cast<const char*>(array.data.data()), array.data.size()));
  return tensor;
}

graft::io::NpyArray to_array(const graft::onnx::TensorData& tensor) {
  graft::io::NpyArray array{tensor.type, tensor.dims, std::vector<std::byte>(tensor.bytes.size())};
  if (tensor.bytes.size() != 0) std::memcpy(array.data.data(), tensor.bytes.data(), tensor.bytes.size());
  return array;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 3 && arguments[0] == "attach") {
    graft::onnx::Model model = graft::onnx::read_onnx(arguments[1]);
    graft::onnx::attach_functions(model);
    graft::onnx::write_onnx(model, arguments[2]);
    return 0;
  }
  if (arguments.size() < 4 || (arguments[0] != "functions" && arguments[0] != "own")) {
    std::cerr << "see the head of run_model.cpp\n";
    return 64;
  }
  graft::runtime::CompileOptions options;
  options.kernels =
      arguments[0] == "own" ? graft::runtime::OperatorKernels::own : graft::runtime::OperatorKernels::functions;
  options.extra_outputs.assign(arguments.begin() + 4, arguments.end());
  const auto model = graft::runtime::openvino_engine().compile(graft::onnx::read_onnx(arguments[1]), options);
  graft::runtime::TensorMap inputs;
  for (const auto& [name, array] : graft::io::read_npz(arguments[2])) inputs[name] = to_tensor(array);
  graft::io::NpzArrays outputs;
  for (const auto& [name, tensor] : model->run(inputs)) outputs[name] = to_array(tensor);
  graft::io::write_npz(arguments[3], outputs);
  return 0;
}

int run_or_say_why(const std::vector<std::string>& arguments) {
  try {
    return run(arguments);
  } catch (const graft::Error& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}

/// Runs each line of arguments, separated by tabs, and prints its exit code.
void serve() {
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::string> arguments;
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, '\t');) arguments.push_back(part);
    std::cout << run_or_say_why(arguments) << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments != std::vector<std::string>{"serve"}) return run_or_say_why(arguments);
  serve();
  return 0;
}
