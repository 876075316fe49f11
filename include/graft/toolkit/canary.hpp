// Writes a canary: a model with inputs and the CPU's values of every tensor, to compare with TensorRT on a user's GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/tensor.hpp"

namespace graft::toolkit {

struct CanaryOptions {
  Tensors data = {};      ///< Inputs by name; the first axis of each counts samples. Empty: synthetic inputs.
  std::size_t seeds = 1;  ///< Number of runs with synthetic inputs.
  Shapes shapes = {};     ///< Shapes of synthetic inputs, without a dynamic dimension.
  /// Plugin libraries that are copied into the folder and loaded there; the model then has plugin nodes in place of the
  /// functions of Graft's operators. Empty: TensorRT builds the functions from its own layers.
  std::vector<std::filesystem::path> plugin_libraries = {};
  Watch watch = {};
};

/// A tensor that the canary compares.
struct CanaryTensor {
  TensorRef tensor;
  NodeRef node;  ///< The node that computes the tensor.
  bool is_output = false;
  std::int64_t elements = 0;
  std::int64_t samples = 0;  ///< Number of elements that are compared, evenly distributed.
};

/// A tensor that the canary does not compare.
struct CanaryOmission {
  std::string tensor;
  NodeRef node;
  /// Whether the tensor is an output of the model; the model in the folder does not return it.
  bool is_output = false;
  std::string why;
};

struct CanaryResult {
  std::string model;  ///< Model::source of the model that was written.
  std::filesystem::path folder;
  std::vector<std::string> files;     ///< Names of the files in the folder.
  std::vector<CanaryTensor> tensors;  ///< The compared tensors, in the order of computation.
  std::vector<CanaryOmission> left_out;
  std::size_t runs = 0;
};

/// Writes a folder, completely or not at all: the model, inputs, the CPU's values of its tensors, the tolerance of each
/// element, and run_canary.py, which builds the model with the TensorRT that is installed where it runs and names the
/// first node that is wrong. That machine needs Python with NumPy, TensorRT and PyTorch or cuda-python, but not Graft.
///
/// Tensors that depend on the numbers in the inputs are compared, except those that depend on random numbers or whose
/// size depends on data. Throws Error for a folder that exists already, data and shapes that do not fit the model, a
/// model that does not run on the CPU, and a model without an output that can be compared; Error (missing_tool) in a
/// build without a CPU engine; Cancelled.
[[nodiscard]] GRAFT_API CanaryResult write_canary(const Model& model, const std::filesystem::path& folder,
                                                  const CanaryOptions& options = {});

}  // namespace graft::toolkit
