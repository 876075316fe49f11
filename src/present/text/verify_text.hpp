// `graft verify` in words.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "present/html/verify_page.hpp"
#include "present/text/listing.hpp"
#include "toolkit/compare_models.hpp"

namespace graft::present {

/// Of one tensor: "same", "differs", "nothing compared".
[[nodiscard]] Cell verdict_cell(verify::Verdict verdict);
/// Of whole models: "the same", "not the same", "not compared".
[[nodiscard]] std::string result_text(verify::Verdict verdict);

/// The files, which CPU engine ran them and which did not, and what the synthetic inputs are made of.
[[nodiscard]] Listing inputs_text(const VerifiedFiles& files, const verify::InputRanges& ranges,
                                  const std::set<std::string, std::less<>>& large_integers,
                                  const std::string& why_sizes, const std::string& ran_in,
                                  const std::vector<std::string>& left_out);
/// The same of a report of outputs or of all tensors.
template <class Report>
[[nodiscard]] Listing inputs_text(const VerifiedFiles& files, const verify::InputRanges& ranges, const Report& report) {
  return inputs_text(files, ranges, report.large_integers, report.why_sizes, report.ran_in, report.left_out);
}

/// Of models on which two engines disagree.
[[nodiscard]] Listing dispute_text(const verify::Dispute& dispute);

/// The result, then a row for each output.
[[nodiscard]] Listing verify_text(const toolkit::OutputComparison& compared, const VerifiedFiles& files, bool verbose);

/// Where hardly anything would be called a difference, or nothing was compared.
[[nodiscard]] std::vector<std::string> verify_warnings(const toolkit::OutputComparison& compared, bool has_data);

/// The same of a tensor; for verify_warnings and layers_warnings.
[[nodiscard]] std::vector<std::string> noise_warnings(const std::vector<ComparedTensor>& tensors, bool has_data);
/// `why` is the report's own reason; empty where the numbers alone are.
[[nodiscard]] std::string nothing_compared_text(const std::string& name, const std::string& why, bool is_lost_in_noise,
                                                bool has_data);
/// `unreached` is that of a report.
[[nodiscard]] std::vector<std::string> unreached_warnings(const std::vector<std::string>& unreached, bool has_data);
[[nodiscard]] std::vector<std::string> kernel_warnings(const std::vector<std::string>& without_own_kernels);
[[nodiscard]] std::vector<std::string> calibration_warnings(verify::Verdict verdict, bool is_quantized_candidate,
                                                            bool has_data);

}  // namespace graft::present
