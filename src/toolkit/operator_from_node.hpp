// Writes the definition of an operator that has the ports and attributes of a node.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace graft::toolkit {

/// A source file of an operator. Its name is the name of the operator's folder followed by `suffix`, such as
/// "blur_cpu.cpp" with the suffix "_cpu.cpp".
struct OperatorSource {
  std::string suffix;
  std::string text;
};

/// The names that the generated sources of an operator contain.
struct OperatorNames {
  std::string space;       ///< The C++ namespace of the project, such as "my_ops".
  std::string definition;  ///< The C++ type of the operator, such as "Blur".
  std::string folder;      ///< The operator's folder in the project, such as "blur".
};

/// Returns the node of this name, also in branches and bodies of loops. Throws Error where no node or several nodes
/// have the name.
[[nodiscard]] const onnx::Node& find_named_node(const onnx::Model& model, const std::string& name);

/// Returns why an operator of your own cannot have this name: ONNX or Graft has an operator of the name. Returns an
/// empty string for other names.
[[nodiscard]] std::string owner_of_name(const std::string& name);

/// Returns the C++ type for an operator: its name, beginning with an upper-case letter, with `_` in place of characters
/// that C++ does not allow in a name. Throws Error for an operator without a name.
[[nodiscard]] std::string definition_name(const onnx::Node& node);

/// Returns the folder of an operator by its C++ type: "beta_swish" for "BetaSwish", "rms_norm" for "RMSNorm".
[[nodiscard]] std::string operator_folder(std::string_view type);
/// Returns whether `graft new` projects have a folder of this name that is not the folder of an operator: "tests" or
/// "build".
[[nodiscard]] bool is_folder_of_project(std::string_view folder);

/// Returns the names of the nodes for which operator_sources() writes an operator and find_named_node() finds one node.
[[nodiscard]] std::set<std::string, std::less<>> find_nodes_to_define(const onnx::Model& model);

/// Returns whether the operator of the node may be elementwise: its definition then has one function for the formula,
/// which its kernels call. Throws Error as operator_sources() does.
[[nodiscard]] bool has_formula(const onnx::Node& node);

/// Returns the source files of an operator for a node: its definition, its kernels and its test cases. The types and
/// shapes of the node's tensors have to be inferred. Until its author writes the computation, the operator returns an
/// error that names the file for it. Throws Error for a node with an input left out, or with a tensor of a type that
/// operators do not have.
[[nodiscard]] std::vector<OperatorSource> operator_sources(const onnx::Node& node, const OperatorNames& names);

}  // namespace graft::toolkit
