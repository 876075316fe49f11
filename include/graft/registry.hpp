// The operators of a program or plugin library: those linked into it, and those of libraries that it has loaded.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator.hpp"

namespace graft {

/// Those that are linked in, in the order of ops.inc. Defined once in each program, by the list that its build names.
[[nodiscard]] std::span<const OperatorType* const> linked_operators();

/// What networks write for operators of a library, as text in the language of rules (docs/guide/add_an_operator.md).
struct FusionRules {
  const char* file;  ///< For messages: "squareplus_fusion.yaml".
  const char* text;
};

/// Those of the linked operators. Defined beside them; Graft's own fusions are passes, and none is among these.
[[nodiscard]] std::span<const FusionRules> linked_fusions();

/// Gives the linked operators their CUDA kernels, in a program or plugin library that carries kernels: it is defined
/// beside them, and called before the first operator is made. Later calls, from any thread, do nothing.
void register_cuda_kernels();

/// All of them: the linked ones first, then those of add_operator_library.
[[nodiscard]] std::span<const OperatorType* const> operators();

/// Nothing for an unknown name.
[[nodiscard]] const OperatorType* find_operator(std::string_view name);

/// Operators that came with a shared library of somebody's own.
struct OperatorLibrary {
  std::string file;
  std::string plugin_namespace;  ///< Of its TensorRT plugins.
  std::vector<const OperatorType*> operators;
  std::vector<FusionRules> fusions = {};
};

/// Adds a library's operators, or none of them: refuses a name that another operator has already, also as a drop-in
/// or in ONNX.
/// From any thread, at any time: what was returned before stays valid, and does not have them.
[[nodiscard]] Status add_operator_library(OperatorLibrary library);

/// What add_operator_library would refuse of these, which come together. A program that has operators of somebody's own
/// linked in asks it of linked_operators() before it uses them: nothing else has looked at those.
[[nodiscard]] Status check_operators(std::span<const OperatorType* const> together);

/// In the order in which they were added.
[[nodiscard]] std::span<const OperatorLibrary> operator_libraries();

/// The library that an operator came with; null for one that is linked in.
[[nodiscard]] const OperatorLibrary* library_of(const OperatorType& type);

}  // namespace graft
