// The page of `graft verify --report`: the judged network, colored by how far its tensors are from the reference's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "present/html/report.hpp"
#include "verify/compare/compare.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::present {

/// What was compared, as it was named.
struct VerifiedFiles {
  std::string reference;
  std::string candidate;
  bool has_data = false;  ///< Inputs were given; without them they are synthetic.
};

/// What was found of one tensor.
struct ComparedTensor {
  std::string reference;  ///< Its names.
  std::string candidate;
  std::string type;  ///< Of the candidate's.
  verify::Tolerance tolerance;
  verify::Difference difference;
  std::optional<verify::NoiseFloor> floor;
  bool is_equal = false;
  bool is_first = false;      ///< What it is made of is right.
  bool is_reordered = false;  ///< Equal but for the order of its numbers.
  std::string diagnosis;
  std::string not_compared;  ///< Why, where it was not.
  std::optional<double> snr_db = {};
  std::vector<report::Fact> facts;
  std::vector<report::Histogram::Bin> errors = {};  ///< Of its elements; shown below the graph.
};

/// "relative 0.00012 + 3.1e-05 of the largest".
[[nodiscard]] std::string tolerance_text(const verify::Tolerance& tolerance);
/// "allowed: relative 0.016 + 0.016 of the largest, since it is computed from f16 in the candidate".
[[nodiscard]] std::string allowed_text(const verify::Tolerance& tolerance, const std::string& why);

[[nodiscard]] std::vector<ComparedTensor> tensors_of(const verify::VerifyReport& report);

/// A page with its summary: files, result, inputs, the CPU engines that ran the models and those that did not.
[[nodiscard]] report::Report new_comparison_page(const VerifiedFiles& files, const std::string& result,
                                                 std::size_t runs, const std::vector<std::string>& inputs,
                                                 const std::string& ran_in, const std::vector<std::string>& left_out);

/// Adds kinds, graph, histogram and table. Tensors are in the order of computation.
void add_comparison(report::Report& page, const onnx::Model& candidate, const std::vector<ComparedTensor>& tensors,
                    const std::vector<std::string>& problems);

[[nodiscard]] report::Report verify_page(const onnx::Model& candidate, const verify::VerifyReport& report,
                                         const VerifiedFiles& files);

}  // namespace graft::present
