// What `graft verify --layers` says.
#pragma once

#include <string>
#include <vector>

#include "cli/program.hpp"
#include "present/html/verify_page.hpp"
#include "verify/layers.hpp"

namespace graft::cli {

/// Of one tensor: "same", "differs", "nothing compared".
[[nodiscard]] Cell verdict_cell(Verdict verdict);

/// The report as JSON, for `--json` and for reports; it names its `schema` and its version.
[[nodiscard]] Json to_json(const LayerReport& report);

/// The node and what it does: "'features', by node 'conv' (Conv): 1.01 times the reference". Empty where there is none.
[[nodiscard]] std::string first_divergence_text(const LayerReport& report);

/// What is to be said where the outputs agree and tensors inside do not; empty otherwise.
[[nodiscard]] std::string hidden_difference_text(const LayerReport& report);

/// For the page of `--report`.
[[nodiscard]] std::vector<present::ComparedTensor> tensors_of(const LayerReport& report);

/// As text: the first divergence, then a row for each tensor; of many, those round it.
void say(const Console& console, const LayerReport& report);

/// The files that `--reduce` writes.
struct ReducedFiles {
  std::string candidate;  ///< The part of the candidate: what the option names.
  std::string reference;  ///< The same part of the reference.
  std::string inputs;     ///< What both are given; empty if they take nothing.
  std::string command;    ///< Shows the difference.
  [[nodiscard]] std::vector<std::string> names() const;
};

/// Throws Error for a name that does not end in .onnx.
[[nodiscard]] ReducedFiles reduced_files(const std::string& path);

/// Writes them. `options` are added to the command.
[[nodiscard]] ReducedFiles write_reduced(const std::string& path, const ReducedCase& reduced,
                                         const std::string& options);

/// The smallest part that does not run, with its inputs and a command that shows it; `reference` is empty.
[[nodiscard]] ReducedFiles write_failure(const std::string& path, const Failure& failure, const std::string& options);

}  // namespace graft::cli
