// Runs models on the CPU engine, for the Python tests:
//   run_model attach IN.onnx OUT.onnx                        gives Graft's nodes their functions
//   run_model functions|own MODEL IN.npz OUT.npz [EXTRA...]  runs a model
// Exit code 2 with the message where graft::Error is thrown.
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "graph/functions.hpp"
#include "graph/onnx_io.hpp"
#include "io/npy.hpp"
#include "runtime/openvino/openvino_engine.hpp"

namespace {

graft::TensorData to_tensor(const graft::NpyArray& array) {
  graft::TensorData tensor;
  tensor.type = array.type;
  tensor.dims = array.shape;
  tensor.bytes = graft::Bytes(std::string(reinterpret_cast<const char*>(array.data.data()), array.data.size()));
  return tensor;
}

graft::NpyArray to_array(const graft::TensorData& tensor) {
  graft::NpyArray array{tensor.type, tensor.dims, std::vector<std::byte>(tensor.bytes.size())};
  if (tensor.bytes.size() != 0) std::memcpy(array.data.data(), tensor.bytes.data(), tensor.bytes.size());
  return array;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() == 3 && arguments[0] == "attach") {
      graft::Model model = graft::read_onnx(arguments[1]);
      graft::attach_functions(model);
      graft::write_onnx(model, arguments[2]);
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
    const auto model = graft::runtime::openvino_engine().compile(graft::read_onnx(arguments[1]), options);
    graft::TensorMap inputs;
    for (const auto& [name, array] : graft::read_npz(arguments[2])) inputs[name] = to_tensor(array);
    graft::NpzArrays outputs;
    for (const auto& [name, tensor] : model->run(inputs)) outputs[name] = to_array(tensor);
    graft::write_npz(arguments[3], outputs);
  } catch (const graft::Error& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
  return 0;
}
