// The report of `canary`: the folder that was written, and the tensors that its script compares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/report/field.hpp"

namespace graft::report {

/// A tensor that run_canary.py compares with the values from the CPU.
struct CanaryTensor {
  TensorRef tensor;
  NodeRef node;
  bool is_output = false;
  std::int64_t elements = 0;
  std::int64_t samples = 0;

  static constexpr auto fields() {
    return std::tuple{
        field("tensor", &CanaryTensor::tensor, "The tensor."),
        field("node", &CanaryTensor::node, "The node that computes the tensor."),
        field("is_output", &CanaryTensor::is_output, "Whether the tensor is an output of the model."),
        field("elements", &CanaryTensor::elements, "The number of elements of the tensor."),
        field("samples", &CanaryTensor::samples, "The number of elements that are compared, evenly distributed."),
    };
  }
};

/// A tensor that run_canary.py does not compare.
struct CanaryOmission {
  std::string tensor;
  NodeRef node;
  bool is_output = false;
  std::string why;

  static constexpr auto fields() {
    return std::tuple{
        field("tensor", &CanaryOmission::tensor, "The name of the tensor."),
        field("node", nullptr, &CanaryOmission::node, "The node that computes the tensor."),
        field("is_output", "output", &CanaryOmission::is_output,
              "Whether the tensor is an output of the model; the model in the folder does not return it."),
        field("why", &CanaryOmission::why, "Why the tensor is not compared."),
    };
  }
};

struct CanaryReport {
  std::string model;
  std::filesystem::path folder;
  std::vector<std::string> files;
  std::vector<CanaryTensor> tensors;
  std::vector<CanaryOmission> left_out;
  std::size_t runs = 0;
  std::vector<std::string> data_notes = {};

  [[nodiscard]] std::size_t tensor_count() const { return tensors.size(); }
  [[nodiscard]] std::size_t output_count() const {
    return static_cast<std::size_t>(std::ranges::count_if(tensors, &CanaryTensor::is_output));
  }
  /// Returns the commands to run on the machine with the GPU.
  [[nodiscard]] std::vector<std::string> next() const { return {"python3 " + folder.string() + "/run_canary.py"}; }

  static constexpr Schema schema{"graft canary", 1, "The folder that was written."};
  static constexpr auto fields() {
    return std::tuple{
        field(nullptr, "model", &CanaryReport::model, "The file of the model."),
        field("folder", &CanaryReport::folder, "The folder that was written."),
        field("files", &CanaryReport::files, "The names of the files in the folder."),
        field("runs", &CanaryReport::runs, "The number of runs."),
        field("data_notes", &CanaryReport::data_notes,
              "How the arrays of the data were converted, and arrays that were not used; mostly empty."),
        field("tensors", nullptr, &CanaryReport::tensors, "The compared tensors, in the order of computation."),
        field(nullptr, "tensors", &CanaryReport::tensor_count, "The number of tensors that are compared in each run."),
        field(nullptr, "outputs", &CanaryReport::output_count,
              "The number of these tensors that are outputs of the model."),
        field("left_out", &CanaryReport::left_out, "The tensors that are not compared."),
        field(nullptr, "next", &CanaryReport::next, "The command that runs the script on the machine with the GPU."),
    };
  }
};

}  // namespace graft::report
