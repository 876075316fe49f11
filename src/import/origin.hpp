// Describes a network in the format that it was read from.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace graft {

struct Origin {
  /// Nodes of an operator that have no counterpart in the model.
  struct LeftOut {
    std::string op;
    std::string why;
    std::size_t count = 0;
  };
  std::string format;     ///< "TensorFlow graph" or "Caffe network"; empty for ONNX.
  std::string unit;       ///< "node" or "layer".
  std::size_t nodes = 0;  ///< Number of nodes in the file, with functions inlined.
  /// Number of converted nodes by operator, without constants and inputs.
  std::map<std::string, std::size_t> operators;
  std::vector<LeftOut> left_out;
  std::vector<std::string> notes;  ///< Remarks on the files for the user.
  /// Number of tensors that could not keep their names because another tensor has the name.
  std::size_t renamed = 0;

  void leave_out(std::string_view op, std::string_view why);
};

}  // namespace graft
