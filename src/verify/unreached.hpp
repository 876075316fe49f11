// Differences between two models that no run could have shown.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "runtime/engine.hpp"

namespace graft::verify {

/// The inputs of the reference in a run.
using InputsOfRun = std::function<runtime::TensorMap(std::size_t run)>;

/// For two models whose outputs were found to be the same: what the runs did not reach, a sentence for each.
///
/// Weights of the same name, type and shape whose elements differ in the two files, where the reference returns the
/// same bits with other numbers in the place of these elements: "the weights 'w' differ in 24 of 40 elements, and no
/// output shows it: the inputs may not reach them". Weights that change the outputs are not among them: something else
/// in the candidate makes up for those. And branches of an If and bodies of a Loop in the reference's main graph that
/// no run executed, where the condition or the number of iterations is computed: "no run executed else_branch of node
/// 'choose' (If), so nothing was compared of it".
///
/// Models without such weights, Ifs and Loops are not run. Many groups of weights are not searched through: those that
/// are left are not reported. `options` are those of the reference.
[[nodiscard]] std::vector<std::string> find_unreached(const runtime::Engine& engine, const onnx::Model& reference,
                                                      const onnx::Model& candidate,
                                                      const runtime::CompileOptions& options, std::size_t runs,
                                                      const InputsOfRun& inputs_of);

}  // namespace graft::verify
