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

/// Rules that replace subgraphs of a network by operators of a library, in the language of
/// docs/guide/add_an_operator.md.
struct FusionRules {
  const char* file;  ///< The file name that messages show: "squareplus_fusion.yaml".
  const char* text;
};

/// Returns the fusion rules of the linked operators. Graft's own fusions are passes and not included.
[[nodiscard]] std::span<const FusionRules> linked_fusions();

/// Registers the CUDA kernels of the linked operators. Defined only in programs and plugin libraries with kernels,
/// which call it before they create the first operator. Later calls, from any thread, do nothing.
void register_cuda_kernels();

/// Returns all operators: the linked ones first, then those added by add_operator_library.
[[nodiscard]] std::span<const OperatorType* const> operators();

/// Returns null for an unknown name.
[[nodiscard]] const OperatorType* find_operator(std::string_view name);

/// The operators of a shared library that is not part of Graft.
struct OperatorLibrary {
  std::string file;
  std::string plugin_namespace;  ///< The namespace of the library's TensorRT plugins.
  std::vector<const OperatorType*> operators;
  std::vector<FusionRules> fusions = {};
};

/// Adds all operators of a library, or none. Fails as check_operators does, and for an operator whose name, drop-in or
/// ONNX operator another operator has already. May be called from any thread at any time: spans that were returned
/// before stay valid, and do not contain the new operators.
[[nodiscard]] Status add_operator_library(OperatorLibrary library);

/// Checks the definitions and names of operators that are added together: complete definitions, at most
/// TypeRow::max_ports ports, valid orders of inputs, and no name twice. A program that links operators which are not
/// Graft's calls it with linked_operators() before it uses them, because nothing else checks these.
[[nodiscard]] Status check_operators(std::span<const OperatorType* const> together);

/// Returns the loaded libraries in the order in which they were added.
[[nodiscard]] std::span<const OperatorLibrary> operator_libraries();

/// Returns the library of an operator; null for a linked operator.
[[nodiscard]] const OperatorLibrary* library_of(const OperatorType& type);

}  // namespace graft
