// The page of `graft verify --report`: the candidate, colored by the errors of its tensors against the reference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onnx/model.hpp"
#include "present/html/report.hpp"
#include "verify/compare/compare.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::present {

/// The files that were compared, as the user named them.
struct VerifiedFiles {
  std::string reference;
  std::string candidate;
  bool has_data = false;  ///< Whether the user gave inputs; otherwise they are synthetic.
};

/// The comparison of one tensor.
struct ComparedTensor {
  std::string reference;  ///< The tensor's name in the reference.
  std::string candidate;  ///< The tensor's name in the candidate.
  std::string type;       ///< The type of the candidate's tensor.
  verify::Tolerance tolerance;
  verify::Difference difference;
  std::optional<verify::NoiseFloor> floor;
  bool is_equal = false;
  bool is_first = false;      ///< Whether it is the first divergence: it differs, but its inputs are right.
  bool is_reordered = false;  ///< Whether the candidate has the numbers in another order.
  std::string diagnosis;
  std::string not_compared;  ///< Why the tensor was not compared; empty if it was.
  std::optional<double> snr_db = {};
  std::vector<html::Fact> facts;
  std::vector<html::Histogram::Bin> errors = {};  ///< The errors of the elements, shown below the graph.
};

/// Returns a tolerance in words: "relative 0.00012 + 3.1e-05 of the largest".
[[nodiscard]] std::string tolerance_text(const verify::Tolerance& tolerance);
/// Returns a tolerance with the reason `why`, if there is one: "allowed: relative 0.016 + 0.016 of the largest, since
/// it is computed from f16 in the candidate".
[[nodiscard]] std::string allowed_text(const verify::Tolerance& tolerance, const std::string& why);

[[nodiscard]] std::vector<ComparedTensor> tensors_of(const verify::VerifyReport& report);

/// Returns a page whose summary has the files, the result, the inputs, the CPU engines that ran the models (`ran_in`)
/// and those that did not (`left_out`).
[[nodiscard]] html::Report new_comparison_page(const VerifiedFiles& files, const std::string& result, std::size_t runs,
                                               const std::vector<std::string>& inputs, const std::string& ran_in,
                                               const std::vector<std::string>& left_out);

/// Adds the kinds, the candidate's graph, histograms of errors and a table of `tensors`, which are in the order of
/// computation.
void add_comparison(html::Report& page, const onnx::Model& candidate, const std::vector<ComparedTensor>& tensors,
                    const std::vector<std::string>& problems);

[[nodiscard]] html::Report verify_page(const onnx::Model& candidate, const verify::VerifyReport& report,
                                       const VerifiedFiles& files);

}  // namespace graft::present
