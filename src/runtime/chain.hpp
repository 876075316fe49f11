// Combines two compiled models that run one after the other into a single compiled model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/engine.hpp"

namespace graft::runtime {

struct Link {
  std::unique_ptr<CompiledModel> model;
  std::vector<std::string> inputs;  ///< The names of the model's inputs.
};

/// Returns a compiled model that runs `first`, then `second`. An input of `second` is read from the outputs of `first`
/// if they contain its name, and from the caller's inputs otherwise. `outputs` are names of outputs of either model.
[[nodiscard]] std::unique_ptr<CompiledModel> chain(Link first, Link second, std::vector<std::string> outputs);

/// Returns the compiled model as an argument for chain(), with the names of the inputs of `model`, from which it was
/// compiled.
[[nodiscard]] Link link_of(std::unique_ptr<CompiledModel> compiled, const onnx::Model& model);

}  // namespace graft::runtime
