// Looking at a model that has nodes with something wrong in them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "graft/error.hpp"
#include "onnx/model.hpp"

namespace graft::onnx {

/// Metadata of nodes: what is wrong with one, in words. It is no operator of Graft then, and nothing is inferred
/// through it, so that the rest of the model can be looked at all the same.
inline constexpr std::string_view fault_note = "graft.fault";

/// What hears of a node that contradicts itself or its inputs.
using OnFault = std::function<void(Node&, const Error&)>;

/// infer_shapes of a model that may have faults: after one it goes on, and the node's outputs stay as they are.
std::size_t infer_around_faults(Model& model, const OnFault& on_fault);

/// The same from given input shapes. What the file declares of values that cannot be inferred is taken up again, for an
/// unknown operator may be before them.
std::size_t infer_around_faults(Model& model, const std::map<std::string, Shape, std::less<>>& input_shapes,
                                const OnFault& on_fault);

}  // namespace graft::onnx
