// Two compiled models that run one after the other, as one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/engine.hpp"

namespace graft::runtime {

struct Link {
  std::unique_ptr<CompiledModel> model;
  std::vector<std::string> inputs;  ///< That it takes.
};

/// What the second model has as an input, it gets from the outputs of the first or else from the caller. Shows the
/// outputs that are named, of either model.
[[nodiscard]] std::unique_ptr<CompiledModel> chain(Link first, Link second, std::vector<std::string> outputs);

/// The inputs of a model, for a Link.
[[nodiscard]] Link link_of(std::unique_ptr<CompiledModel> compiled, const onnx::Model& model);

}  // namespace graft::runtime
