// Describes operators and the operators of other formats that Graft reads, and loads operators that are not part of
// Graft.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "graft/report/ops.hpp"
#include "graft/toolkit/export.hpp"

namespace graft::toolkit {

using report::CaffeLayer;
using report::OperatorFacts;
using report::TensorFlowOperator;

/// Loads a library of operators, as `graft new` creates one (the guide "Your first operator"), and returns the names of
/// its operators. Afterwards the toolkit supports them as it supports Graft's own: CPU kernels, ONNX functions,
/// fusions, int8; and `build` loads the library's plugins into TensorRT. Call it before models with these operators are
/// loaded. A library that is loaded already is not loaded again.
///
/// Loading a library runs its code, and the library stays loaded until the process ends. Throws Error (bad_input) for a
/// file that is not such a library or was built with the headers of another Graft, for an operator whose name is taken,
/// and, naming the line, for a fusion or a function that cannot be parsed or that uses an operator, attribute or input
/// that ONNX does not have.
GRAFT_API std::vector<std::string> load_operators(const std::filesystem::path& library);

/// Returns the facts of every operator of Graft and of loaded libraries.
[[nodiscard]] GRAFT_API std::vector<OperatorFacts> operator_facts();

/// Returns the facts of the operator with this name, or of the operator that replaces a plugin with this name. The case
/// of letters is ignored. Throws Error for an unknown name.
[[nodiscard]] GRAFT_API OperatorFacts operator_facts(const std::string& name);

/// Returns the types of layers that `load` reads from Caffe networks, in the order of their names.
[[nodiscard]] GRAFT_API std::vector<CaffeLayer> caffe_layers();

/// Returns the operators that `load` reads from TensorFlow graphs, in the order of their names.
[[nodiscard]] GRAFT_API std::vector<TensorFlowOperator> tensorflow_operators();

/// A library of operators that was loaded.
struct LoadedLibrary {
  std::string file;                    ///< The path of the library.
  std::string plugin_namespace;        ///< The namespace of its TensorRT plugins.
  std::vector<std::string> operators;  ///< The names of its operators.
  bool has_plugins = false;            ///< False for a library that was built without CUDA.
};

/// Returns the libraries that load_operators loaded, in this order.
[[nodiscard]] GRAFT_API std::vector<LoadedLibrary> loaded_libraries();

}  // namespace graft::toolkit
