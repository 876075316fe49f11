// A probe network: what a user's own TensorRT is asked on their GPU, with what the CPU has for every tensor.
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
  Tensors data = {};      ///< Inputs to run with, by name; the first axis of each counts samples. Empty: synthetic.
  std::size_t seeds = 1;  ///< Runs with synthetic inputs.
  Shapes shapes = {};     ///< Of synthetic inputs, without a dynamic dimension.
  /// Copied into the folder and loaded there; the model then has plugin nodes in place of the functions of Graft's
  /// operators. Empty: TensorRT builds the functions from its own layers.
  std::vector<std::filesystem::path> plugin_libraries = {};
  Watch watch = {};
};

/// A tensor that is compared.
struct CanaryTensor {
  TensorRef tensor;
  NodeRef node;  ///< What computes it.
  bool is_output = false;
  std::int64_t elements = 0;
  std::int64_t samples = 0;  ///< Elements that are compared, evenly spread.
};

/// A tensor that is not.
struct CanaryOmission {
  std::string tensor;
  NodeRef node;
  bool is_output = false;  ///< The model in the folder does not return it.
  std::string why;
};

struct CanaryResult {
  std::string model;  ///< Model::source of what the folder is made of.
  std::filesystem::path folder;
  std::vector<std::string> files;     ///< In the folder.
  std::vector<CanaryTensor> tensors;  ///< In the order of computation.
  std::vector<CanaryOmission> left_out;
  std::size_t runs = 0;
};

/// Writes a folder, whole or not at all: the model, inputs, what the CPU has for its tensors, what each element may be
/// off by, and run_canary.py, which builds the model with the TensorRT that is installed where it runs and names the
/// first node that is wrong. It needs Python with NumPy, TensorRT and PyTorch or cuda-python there, and no Graft.
///
/// Compared are the tensors that depend on the inputs' numbers; not those that depend on random numbers, or whose size
/// depends on numbers. Throws Error for a folder that is there already, data and shapes that do not fit the model, a
/// model that does not run on the CPU, and one without an output that can be compared; (missing_tool) in a build
/// without a CPU engine; Cancelled.
[[nodiscard]] GRAFT_API CanaryResult write_canary(const Model& model, const std::filesystem::path& folder,
                                                  const CanaryOptions& options = {});

}  // namespace graft::toolkit
