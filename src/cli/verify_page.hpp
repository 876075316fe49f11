// The page of `graft verify --report`: the judged network, colored by how far its tensors are from the reference's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "graph/model.hpp"
#include "report/report.hpp"
#include "verify/compare.hpp"
#include "verify/verify_models.hpp"

namespace graft::cli {

/// What was found of one tensor.
struct ComparedTensor {
  std::string reference;  ///< Its names.
  std::string candidate;
  std::string type;  ///< Of the candidate's.
  Tolerance tolerance;
  Difference difference;
  std::optional<NoiseFloor> floor;
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
[[nodiscard]] std::string tolerance_text(const Tolerance& tolerance);
/// "allowed: relative 0.016 + 0.016 of the largest, since it is computed from f16 in the candidate".
[[nodiscard]] std::string allowed_text(const Tolerance& tolerance, const std::string& why);

/// null without one.
[[nodiscard]] Json to_json(const std::optional<NoiseFloor>& floor);
[[nodiscard]] Json to_json(const std::optional<SelectionDifference>& selection);

[[nodiscard]] std::vector<ComparedTensor> tensors_of(const VerifyReport& report);

/// Adds kinds, graph, histogram and table. Tensors are in the order of computation.
void add_comparison(report::Report& page, const Model& candidate, const std::vector<ComparedTensor>& tensors,
                    const std::vector<std::string>& problems);

}  // namespace graft::cli
