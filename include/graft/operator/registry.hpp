// The operators of a program or plugin library: linked operators, and operators of loaded libraries.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/operator.hpp"

namespace graft {

/// Returns the operators linked into this program, in the order of ops.inc. Operators of loaded libraries are not
/// included. Each program has one definition of this function, generated from the list that its build names.
[[nodiscard]] std::span<const OperatorType* const> linked_operators();

/// Rules of a library that replace subgraphs of a network with operators. The guide "Your first operator" describes the
/// language of the rules.
struct FusionRules {
  const char* file;  ///< The file name of the rules in messages, such as "squareplus_fusion.yaml".
  const char* text;
};

/// Returns the fusion rules of the linked operators. They do not include Graft's own fusions, which are passes.
[[nodiscard]] std::span<const FusionRules> linked_fusions();

/// Registers the CUDA kernels of the linked operators. Defined only in programs and plugin libraries with kernels,
/// which call it before they create the first operator. Later calls, from any thread, do nothing.
void register_cuda_kernels();

/// Returns all operators: the linked ones first, then those added by add_operator_library.
[[nodiscard]] std::span<const OperatorType* const> operators();

/// Returns the operator of this name, or null if there is no such operator.
[[nodiscard]] const OperatorType* find_operator(std::string_view name);

/// The operators of a shared library that is not part of Graft.
struct OperatorLibrary {
  std::string file;
  std::string plugin_namespace;  ///< The namespace of the library's TensorRT plugins.
  std::vector<const OperatorType*> operators;
  std::vector<FusionRules> fusions = {};
};

/// Adds all operators of a library, or none of them. Fails as check_operators does, and if another operator already has
/// the name of one of them or replaces the same plugin or ONNX operator. May be called from any thread at any time.
/// Spans that were returned before stay valid and do not contain the new operators.
[[nodiscard]] Status add_operator_library(OperatorLibrary library);

/// Checks the definitions and names of operators that are added together: the definitions are complete, there are at
/// most TypeRow::max_ports ports, the orders of inputs are valid, and no name occurs twice. A program that links
/// operators from outside Graft calls this function with linked_operators() before it uses them, because nothing else
/// checks linked operators.
[[nodiscard]] Status check_operators(std::span<const OperatorType* const> together);

/// Returns the loaded libraries in the order in which they were added.
[[nodiscard]] std::span<const OperatorLibrary> operator_libraries();

/// Returns the library that an operator was loaded from; null for a linked operator.
[[nodiscard]] const OperatorLibrary* library_of(const OperatorType& type);

}  // namespace graft
