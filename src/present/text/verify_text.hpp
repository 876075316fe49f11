// The result of `graft verify` in words.
#pragma once

#include <string>
#include <vector>

#include "graft/report/layers.hpp"
#include "graft/report/verify.hpp"
#include "present/html/verify_page.hpp"
#include "present/text/listing.hpp"

namespace graft::present {

/// Returns the accuracy of a classifier in both models: "accuracy of 'logits': 97.0 % in the reference, 96.5 % in the
/// candidate, of 200 samples". `accuracy` must have counted at least one sample.
[[nodiscard]] std::string accuracy_text(const report::LabelAccuracy& accuracy);

/// Returns the verdict on one tensor in its color: "same", "differs", "nothing compared" or "disputed".
[[nodiscard]] Cell verdict_cell(report::Verdict verdict);

/// Returns the verdict on two models. The verdict "the same" supposes that the libraries define their operators
/// correctly, if they compute nodes of the reference: "the same, provided that libmy_ops.so defines Snake correctly".
[[nodiscard]] std::string verdict_text(const report::ComparedModels& models, report::Verdict verdict);
/// Returns a line for each operator of a library that computes nodes of the reference: "1 node (Snake) has no
/// independent definition: ...".
[[nodiscard]] std::vector<std::string> definition_lines(const report::ComparedModels& models);

/// Returns the files, the CPU engines that ran them and those that did not, and the ranges, integers and unusual sizes
/// of synthetic inputs, and the operators that only a library defines.
[[nodiscard]] Listing inputs_text(const report::ComparedModels& models);

/// Returns the message that two CPU engines disagree on a model, so that no verdict is given.
[[nodiscard]] Listing dispute_text(const report::Dispute& dispute);

/// Returns the verdict on both models as verdict_text does. For models that are the same only within a limit on the
/// signal-to-noise ratio, it has the limit and the lowest ratio instead of "the same": "within the limit (SNR 32.3 dB,
/// at least 20 dB)".
[[nodiscard]] std::string models_verdict_text(const report::VerifyReport& report);

/// Returns the result, then a row for each output. With `verbose`, the tolerance of each output is shown too.
[[nodiscard]] Listing verify_text(const report::VerifyReport& report, bool verbose);

/// Returns warnings about comparisons that prove little: a large noise floor, an output of which nothing was compared,
/// a difference within the tolerance that rounding does not explain, synthetic inputs for a quantized candidate, parts
/// of the network that the runs did not reach, or operators without Graft's kernels.
[[nodiscard]] std::vector<std::string> verify_warnings(const report::VerifyReport& report);

/// Returns a warning about the first tensor whose noise floor is so large that hardly any difference would be found;
/// an empty list if no tensor has such a floor. `ran_in` names the engines of the report. `has_data` is true if the
/// inputs are the user's and not synthetic. The advice depends on both.
[[nodiscard]] std::vector<std::string> noise_warnings(const std::vector<ComparedTensor>& tensors,
                                                      const std::string& ran_in, bool has_data);
/// Returns a warning about the output `name`, which has no verdict. `why` is the reason in the report. If `why` is
/// empty, the reason follows from the other arguments: the difference in the worst run is within the noise
/// (`is_lost_in_noise`), the output is empty in all runs (`is_empty`), or no element is finite in both models. With
/// `has_data`, the advice is about the user's inputs instead of synthetic ones.
[[nodiscard]] std::string nothing_compared_warning(const std::string& name, const std::string& why,
                                                   bool is_lost_in_noise, bool is_empty,
                                                   const report::Difference& worst, bool has_data);
/// Returns a warning for each string of ComparedModels::unreached, with the advice to use other inputs. With
/// `has_data`, the inputs are the user's; otherwise they are synthetic.
[[nodiscard]] std::vector<std::string> unreached_warnings(const std::vector<std::string>& unreached, bool has_data);
/// Returns a warning for each output that is the same by its tolerance, but differs by more than rounding explains
/// (ComparedOutput::beyond_rounding).
[[nodiscard]] std::vector<std::string> beyond_rounding_warnings(const report::VerifyReport& report);
/// Returns a warning about operators that `--kernels own` did not run with Graft's kernels.
[[nodiscard]] std::vector<std::string> kernel_warnings(const std::vector<std::string>& without_own_kernels);
/// Returns a warning if a quantized candidate, which was calibrated for real inputs, differs from the reference on
/// synthetic inputs; otherwise an empty list.
[[nodiscard]] std::vector<std::string> calibration_warnings(report::Verdict verdict, bool is_quantized_candidate,
                                                            bool has_data);

}  // namespace graft::present
