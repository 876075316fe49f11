// Finds differences between two models that none of the runs could show.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"

namespace graft::verify {

/// A function that returns the inputs of a model in run number `run`, by name.
using InputsOfRun = std::function<runtime::TensorMap(std::size_t run)>;

/// A model that was run, the options with which it was compiled, and the inputs of its runs.
struct ModelThatRan {
  const onnx::Model& model;
  runtime::CompileOptions options;
  InputsOfRun inputs_of;
};

/// Returns sentences on differences between two models that the runs did not exercise, although the outputs agree.
///
/// - Weights of the same name, type and shape whose elements differ in the two files, if the reference returns the same
///   bits with other values in place of these elements: "the weights 'w' differ in 24 of 40 elements, and no output
///   shows it: the inputs may not reach them". Weights that change the outputs are not reported, because another change
///   in the candidate compensates for them.
/// - The nodes of find_changed_nodes, whether or not an output depends on them.
/// - Branches of an If and bodies of a Loop that no run executed, if the condition or the number of iterations is
///   computed: "no run executed else_branch of node 'choose' (If), so nothing in it was compared". Those of the
///   candidate are reported only if the reference has no such node. Functions and nested bodies are included; a body
///   inside one that is reported is not reported itself.
///
/// Models without such weights, Ifs and Loops are not run. The number of groups of weights that are tested is limited;
/// weights that were not tested are not reported.
[[nodiscard]] std::vector<std::string> find_unreached(const runtime::Engine& engine, ModelThatRan reference,
                                                      ModelThatRan candidate, std::size_t runs);

}  // namespace graft::verify
