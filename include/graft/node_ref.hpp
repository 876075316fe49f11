// How reports name nodes and tensors: as data, from which programs make their own words.
#pragma once

#include <string>

namespace graft {

/// A node of a model.
struct NodeRef {
  std::string id;      ///< The name of its first output, which no other node has.
  std::string name;    ///< As the model calls it; the id where the model has no name for it.
  std::string op;      ///< "Conv".
  std::string domain;  ///< "graft"; empty for ONNX's own operators.
  friend bool operator==(const NodeRef&, const NodeRef&) = default;
};

/// A tensor of a model.
struct TensorRef {
  std::string name;
  std::string type;  ///< "f32[2, 10]", with the sizes of the run; empty where the model has no such tensor.
  friend bool operator==(const TensorRef&, const TensorRef&) = default;
};

}  // namespace graft
