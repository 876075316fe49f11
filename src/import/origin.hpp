// What a network was in the format that it was read from.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

struct Origin {
  /// Nodes of one operator that match nothing in the model.
  struct LeftOut {
    std::string op;
    std::string why;
    std::size_t count = 0;
  };
  std::string format;                            ///< "TensorFlow graph", "Caffe network"; empty for ONNX.
  std::string unit;                              ///< "node", "layer".
  std::size_t nodes = 0;                         ///< In the file, with functions inlined.
  std::map<std::string, std::size_t> operators;  ///< How many of each were converted, constants and inputs apart.
  std::vector<LeftOut> left_out;
  std::vector<std::string> notes;  ///< What the user should know of the files.
  std::size_t renamed = 0;         ///< Tensors that could not keep their names, since another has it.

  void leave_out(std::string_view op, std::string_view why);
};

}  // namespace graft
