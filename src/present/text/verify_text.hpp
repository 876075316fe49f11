// `graft verify` in words.
#pragma once

#include <string>
#include <vector>

#include "present/html/verify_page.hpp"
#include "present/text/listing.hpp"
#include "toolkit/compare_models.hpp"

namespace graft::present {

/// Of one tensor: "same", "differs", "nothing compared".
[[nodiscard]] Cell verdict_cell(Verdict verdict);
/// Of whole models: "the same", "not the same", "not compared".
[[nodiscard]] std::string result_text(Verdict verdict);

/// The files, and what the synthetic inputs are made of.
[[nodiscard]] Listing inputs_text(const VerifiedFiles& files, const InputRanges& ranges, const std::string& why_sizes);

/// The result, then a row for each output.
[[nodiscard]] Listing verify_text(const toolkit::OutputComparison& compared, const VerifiedFiles& files, bool verbose);

/// Where hardly anything would be called a difference, or nothing was compared.
[[nodiscard]] std::vector<std::string> verify_warnings(const VerifyReport& report, bool has_data);

/// The same of a tensor; for verify_warnings and layer_warnings.
[[nodiscard]] std::vector<std::string> noise_warnings(const std::vector<ComparedTensor>& tensors, bool has_data);
[[nodiscard]] std::string nothing_compared_text(const std::string& name, bool is_lost_in_noise, bool has_data);

}  // namespace graft::present
