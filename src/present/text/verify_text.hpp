// The result of `graft verify` in words.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "present/html/verify_page.hpp"
#include "present/text/listing.hpp"
#include "toolkit/compare_models.hpp"

namespace graft::present {

/// Returns the verdict on one tensor: "same", "differs", "nothing compared" or "disputed".
[[nodiscard]] Cell verdict_cell(report::Verdict verdict);
/// Returns the verdict on two models: "the same", "not the same", "not compared" or "disputed".
[[nodiscard]] std::string result_text(report::Verdict verdict);

/// Returns the files, the CPU engines that ran them (`ran_in`) and those that did not (`left_out`), and the ranges,
/// integers and unusual sizes of synthetic inputs.
[[nodiscard]] Listing inputs_text(const VerifiedFiles& files, const verify::InputRanges& ranges,
                                  const std::set<std::string, std::less<>>& large_integers,
                                  const std::string& why_sizes, const std::string& ran_in,
                                  const std::vector<std::string>& left_out);
/// Returns inputs_text for a VerifyReport or a LayerReport.
template <class Report>
[[nodiscard]] Listing inputs_text(const VerifiedFiles& files, const verify::InputRanges& ranges, const Report& report) {
  return inputs_text(files, ranges, report.large_integers, report.why_sizes, report.ran_in, report.left_out);
}

/// Returns the message that two CPU engines disagree on a model, so that no verdict is given.
[[nodiscard]] Listing dispute_text(const verify::Dispute& dispute);

/// Returns the result, then a row for each output.
[[nodiscard]] Listing verify_text(const toolkit::OutputComparison& compared, const VerifiedFiles& files, bool verbose);

/// Returns warnings about comparisons that prove little: a large noise floor, an output of which nothing was compared,
/// synthetic inputs for a quantized candidate, parts of the network that the runs did not reach, or operators without
/// Graft's kernels.
[[nodiscard]] std::vector<std::string> verify_warnings(const toolkit::OutputComparison& compared, bool has_data);

/// Returns a warning about the first tensor whose noise floor is so large that hardly any difference would be found.
[[nodiscard]] std::vector<std::string> noise_warnings(const std::vector<ComparedTensor>& tensors, bool has_data);
/// Returns a warning about an output of which nothing was compared. `why` is the reason in the report; it is empty if
/// the numbers themselves are the reason.
[[nodiscard]] std::string nothing_compared_text(const std::string& name, const std::string& why, bool is_lost_in_noise,
                                                bool has_data);
/// Returns a warning for each string of VerifyReport::unreached.
[[nodiscard]] std::vector<std::string> unreached_warnings(const std::vector<std::string>& unreached, bool has_data);
/// Returns a warning about operators that `--kernels own` did not run with Graft's kernels.
[[nodiscard]] std::vector<std::string> kernel_warnings(const std::vector<std::string>& without_own_kernels);
/// Returns a warning if a candidate that was calibrated for real inputs differs on synthetic inputs.
[[nodiscard]] std::vector<std::string> calibration_warnings(report::Verdict verdict, bool is_quantized_candidate,
                                                            bool has_data);

}  // namespace graft::present
