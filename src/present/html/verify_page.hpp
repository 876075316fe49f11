// The page of `graft verify --report`: the candidate, colored by the errors of its tensors against the reference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graft/toolkit/model.hpp"
#include "graft/toolkit/verify.hpp"
#include "present/html/report.hpp"

namespace graft::present {

/// The comparison of one tensor.
struct ComparedTensor {
  std::string reference;  ///< The tensor's name in the reference.
  std::string candidate;  ///< The tensor's name in the candidate.
  std::string type;       ///< The type of the candidate's tensor.
  report::Tolerance tolerance;
  report::Difference difference;
  std::optional<report::NoiseFloor> floor;
  bool is_equal = false;
  bool is_first = false;      ///< Whether it is the first divergence: it differs, but its inputs are right.
  bool is_reordered = false;  ///< Whether the candidate has the elements in another order.
  std::string diagnosis;
  std::string not_compared;  ///< Why the tensor was not compared; empty if it was.
  std::optional<double> snr_db = {};
  std::vector<html::Fact> facts;
  std::vector<html::Histogram::Bin> errors = {};  ///< The errors of the elements, shown below the graph.
};

/// Returns a tolerance in words: "relative 0.00012 + 3.1e-05 of the largest".
[[nodiscard]] std::string tolerance_text(const report::Tolerance& tolerance);
/// Returns a tolerance with its reason, if there is one: "allowed: relative 0.016 + 0.016 of the largest, since
/// it is computed from f16 in the candidate".
[[nodiscard]] std::string allowed_text(const report::Tolerance& tolerance);

[[nodiscard]] std::vector<ComparedTensor> tensors_of(const report::VerifyReport& report);

/// Returns a page whose summary has the files, the result, the inputs, the CPU engines that ran the models and those
/// that did not.
[[nodiscard]] html::Report new_comparison_page(const report::ComparedModels& models, const std::string& verdict);

/// Adds the kinds, the candidate's graph, histograms of errors and a table of `tensors`, which are in the order of
/// computation.
void add_comparison(html::Report& page, const toolkit::Model& candidate, const std::vector<ComparedTensor>& tensors,
                    const std::vector<std::string>& problems);

[[nodiscard]] html::Report verify_page(const toolkit::VerifyResult& result);

}  // namespace graft::present
