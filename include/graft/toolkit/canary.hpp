// Writes a canary: a model with inputs and the CPU's values of every tensor, to compare with TensorRT on a user's GPU.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "graft/report/canary.hpp"
#include "graft/toolkit/data.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/tensor.hpp"

namespace graft::toolkit {

using report::CanaryOmission;
using report::CanaryTensor;
using CanaryResult = report::CanaryReport;

struct CanaryOptions {
  Tensors data = {};          ///< Inputs by name; the first axis counts samples. If empty, inputs are synthetic.
  DataFiles data_files = {};  ///< Files of inputs, in place of `data`.
  std::size_t seeds = 1;      ///< Number of runs with synthetic inputs.
  Shapes shapes = {};         ///< Shapes of synthetic inputs, without a dynamic dimension.
  /// Plugin libraries that are copied into the folder and loaded there; the model then has plugin nodes in place of the
  /// functions of Graft's operators. If empty, TensorRT builds the functions from its own layers.
  std::vector<std::filesystem::path> plugin_libraries = {};
  Watch watch = {};
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
