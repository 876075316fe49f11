// Writes a comparison output by output as lines and tables.
#include "present/text/verify_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/comparison_text.hpp"
#include "present/text/quantize_text.hpp"

namespace graft::present {
namespace {

/// Returns the difference in the worst run and, with `names_run`, which run that is and why it is the worst.
std::string difference_of_worst_run(const report::ComparedOutput& output, bool names_run) {
  const report::Difference& worst = output.worst;
  if (!output.tolerance.snr_db || !output.equal()) {
    return (names_run ? fmt::format("worst run ({}): ", output.worst_run + 1) : "") + report::difference_text(worst);
  }
  return fmt::format("worst run ({}): {}, largest error {:.2g}", output.worst_run + 1,
                     worst.snr_db ? fmt::format("SNR {:.1f} dB", *worst.snr_db) : "no difference", worst.max_absolute);
}

void add_rows(Table& table, const report::ComparedOutput& output, std::size_t runs, bool verbose) {
  const std::string name = output.reference.name == output.candidate.name
                               ? output.reference.name
                               : fmt::format("{} / {}", output.reference.name, output.candidate.name);
  const bool was_run = runs > 0;
  const bool is_random = !output.not_compared.empty();
  const bool judged_as_a_whole = output.tolerance.snr_db || !output.tolerance.why.empty();
  const bool has_figures = was_run && judged_as_a_whole && output.figures.is_real &&
                           output.worst.incomparable.empty() &&
                           (output.figures.largest_error != 0 || output.figures.not_finite != 0);
  // The figures are of all runs, whereas the difference is of the worst run.
  const bool says_runs = has_figures && runs > 1;
  // An output that only has to have a signal-to-noise ratio begins with the figures of all runs.
  const bool is_judged_by_ratio = has_figures && output.equal() && output.tolerance.snr_db;
  table.add({!was_run ? Cell("not run", Color::faint) : verdict_cell(output.verdict()),
             {name, Color::strong},
             output.reference.type,
             !was_run                      ? ""
             : is_random && output.equal() ? output.not_compared
             : is_judged_by_ratio          ? quality_text(output.figures)
                                           : difference_of_worst_run(output, says_runs)});
  if (!output.note.empty()) table.add({"", "", "", {output.note, Color::faint}});
  if (is_judged_by_ratio && says_runs) {
    table.add({"", "", "", {difference_of_worst_run(output, says_runs), Color::faint}});
  } else if (has_figures && !is_judged_by_ratio) {
    const std::string of_all = says_runs ? fmt::format("all {} runs: ", runs) : "";
    table.add({"", "", "", of_all + quality_text(output.figures)});
  }
  if (was_run && !is_random && (!output.equal() || verbose || !output.tolerance.why.empty()))
    table.add({"", "", "", {allowed_text(output.tolerance), Color::faint}});
  if (was_run && output.floor) table.add({"", "", "", {output.floor->text, Color::faint}});
}

/// Returns the condition of the verdict "the same", with a comma before it: ", provided that libmy_ops.so defines Snake
/// correctly". Empty if no library defines an operator of the reference.
std::string condition_of_same(const report::ComparedModels& models) {
  if (models.own_definitions.empty()) return "";
  std::map<std::string, std::vector<std::string>> operators;
  for (const report::OwnDefinition& definition : models.own_definitions) {
    operators[definition.library].push_back(definition.op);
  }
  std::vector<std::string> clauses;
  for (const auto& [library, names] : operators) {
    clauses.push_back(fmt::format("{} defines {} correctly", library, fmt::join(names, ", ")));
  }
  return fmt::format(", provided that {}", fmt::join(clauses, " and "));
}

}  // namespace

std::string accuracy_text(const report::LabelAccuracy& accuracy) {
  constexpr double whole = 100;
  const auto percent = [&](std::int64_t correct) {
    return whole * static_cast<double>(correct) / static_cast<double>(accuracy.samples);
  };
  return fmt::format("accuracy of '{}': {:.1f} % in the reference, {:.1f} % in the candidate, of {}", accuracy.output,
                     percent(accuracy.reference_correct), percent(accuracy.candidate_correct),
                     count_text(static_cast<std::size_t>(accuracy.samples), "sample"));
}

Cell verdict_cell(report::Verdict verdict) {
  const Color color = verdict == report::Verdict::same        ? Color::good
                      : verdict == report::Verdict::different ? Color::bad
                                                              : Color::caution;
  return {report::tensor_verdict_text(verdict), color};
}

std::string verdict_text(const report::ComparedModels& models, report::Verdict verdict) {
  const std::string condition = verdict == report::Verdict::same ? condition_of_same(models) : "";
  return report::model_verdict_text(verdict) + condition;
}

std::vector<std::string> definition_lines(const report::ComparedModels& models) {
  std::vector<std::string> lines;
  for (const report::OwnDefinition& definition : models.own_definitions) {
    const bool is_one = definition.nodes == 1;
    std::string line = fmt::format("{} ({}) {} no independent definition: both networks compute {} as {} defines {}",
                                   count_text(definition.nodes, "node"), definition.op, is_one ? "has" : "have",
                                   is_one ? "it" : "them", definition.library, is_one ? "it" : "them");
    const std::string at = definition.nodes_compared == definition.nodes
                               ? ""
                               : fmt::format(" at {} of the nodes", definition.nodes_compared);
    if (definition.kernel == report::Verdict::same) {
      line += fmt::format(
          "; its function and its CPU kernel compute the same{}; compare the results of `graft run` with those of the "
          "original framework to check both",
          at);
    } else if (definition.kernel == report::Verdict::different) {
      line += "; its function and its CPU kernel compute different results";
    } else if (definition.has_function) {
      line += fmt::format(
          "; its function and its CPU kernel were not compared{}{}; `graft verify ... --kernels own` compares them",
          definition.note.empty() ? "" : ": ", definition.note);
    } else {
      line +=
          ", with its CPU kernel; compare the results of `graft run` with those of the original framework to check it";
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

Listing inputs_text(const report::ComparedModels& models) {
  Listing text;
  text.add(fmt::format("reference {}, candidate {}{}{}", models.reference_file, models.candidate_file,
                       models.ran_in.empty() ? "" : ", computed by ", models.ran_in),
           Color::faint);
  for (const auto& [name, range] : models.ranges) {
    text.add(fmt::format("synthetic input '{}' has values from {:g} to {:g}{}", name, range.lowest, range.highest,
                         range.why.empty() ? "" : ", since " + range.why),
             Color::faint);
  }
  for (const std::string& name : models.large_integers) {
    text.add(fmt::format("synthetic input '{}' has integers from 0 to 3 in the first run, and integers of any size in "
                         "the other runs",
                         name),
             Color::faint);
  }
  if (!models.why_sizes.empty()) text.add(models.why_sizes, Color::faint);
  for (const std::string& line : models.left_out) text.add(line, Color::caution);
  for (const std::string& line : definition_lines(models)) text.add(line, Color::caution);
  return text;
}

Listing dispute_text(const report::Dispute& dispute) {
  Listing text;
  text.add({verdict_cell(report::Verdict::disputed),
            ": the CPU engines compute one of the models differently, so no verdict is given"});
  text.add(dispute.text());
  text.add("--engine openvino and --engine onnxruntime show the result of each engine", Color::faint);
  return text;
}

std::string models_verdict_text(const report::VerifyReport& report) {
  if (report.verdict() != report::Verdict::same) return verdict_text(report, report.verdict());
  std::optional<double> lowest;
  std::optional<double> limit;
  for (const report::ComparedOutput& output : report.outputs) {
    if (!output.tolerance.snr_db || !output.figures.snr_db) continue;
    if (lowest && *lowest <= *output.figures.snr_db) continue;
    lowest = output.figures.snr_db;
    limit = output.tolerance.snr_db;
  }
  if (!lowest) return verdict_text(report, report::Verdict::same);
  return fmt::format("within the limit (SNR {:.1f} dB, at least {:g} dB){}", *lowest, *limit,
                     condition_of_same(report));
}

Listing verify_text(const report::VerifyReport& report, bool verbose) {
  if (report.dispute) return dispute_text(*report.dispute);
  Listing text;
  text.add({{models_verdict_text(report), verdict_cell(report.verdict()).color},
            fmt::format(": {} on {} ({})", count_text(report.runs, "run"),
                        report.has_data ? "the given data" : "synthetic inputs", fmt::join(report.inputs, ", "))});
  text.append(inputs_text(report));
  if (report.accuracy && report.accuracy->samples != 0) text.add(accuracy_text(*report.accuracy));
  Table table;
  for (const report::ComparedOutput& output : report.outputs) add_rows(table, output, report.runs, verbose);
  for (const std::string& problem : report.problems) table.add({Cell("differs", Color::bad), problem});
  text.add(std::move(table));
  return text;
}

std::vector<std::string> noise_warnings(const std::vector<ComparedTensor>& tensors, const std::string& ran_in,
                                        bool has_data) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [](const ComparedTensor& tensor) {
    return tensor.floor && tensor.floor->says_little;
  });
  if (found == tensors.end()) return {};
  std::string unconfirmed = found->floor->why_unconfirmed;
  if (unconfirmed.empty() && found->floor->needs_confirmation) {
    const bool ran_in_onnxruntime = ran_in.find("ONNX Runtime") != std::string::npos;
    unconfirmed = fmt::format(
        "no second CPU engine confirms this: omit --engine, and if {0} is not installed, install it with python3 -m "
        "pip install {1}",
        ran_in_onnxruntime ? "OpenVINO" : "ONNX Runtime", ran_in_onnxruntime ? "openvino" : "onnxruntime");
  }
  if (!unconfirmed.empty()) unconfirmed.insert(0, "; ");
  return {fmt::format("the comparison of '{}' is weak: {}{}; {}", found->reference, found->floor->text, unconfirmed,
                      has_data ? "the given data are badly conditioned for this network: use other data"
                               : "synthetic inputs are badly conditioned here: use real inputs with --data, or set "
                                 "their range with --range")};
}

std::string nothing_compared_warning(const std::string& name, const std::string& why, bool is_lost_in_noise,
                                     bool is_empty, const report::Difference& worst, bool has_data) {
  // noise_warnings shows the figures of a tensor that is lost in noise.
  return fmt::format("{}; {}", report::nothing_compared_text(name, why, is_lost_in_noise, is_empty, worst),
                     !why.empty() ? "to compare the tensor, make these random values an input of both models"
                     : has_data   ? "use other data"
                     : is_empty   ? "use real inputs with --data, or other values, for example --range NAME=1..5"
                                  : "use real inputs with --data, or set their range with --range");
}

std::vector<std::string> calibration_warnings(report::Verdict verdict, bool is_quantized_candidate, bool has_data) {
  // Synthetic inputs have at most the right range. They do not produce the values for which the inner layers were
  // calibrated.
  if (verdict != report::Verdict::different || has_data || !is_quantized_candidate) return {};
  return {
      "the candidate was calibrated for real inputs, and these inputs are synthetic: use real inputs with --data "
      "before this "
      "difference counts as an error"};
}

std::vector<std::string> unreached_warnings(const std::vector<std::string>& unreached, bool has_data) {
  std::vector<std::string> warnings;
  for (const std::string& sentence : unreached) {
    warnings.push_back(fmt::format(
        "{}; {}", sentence,
        has_data ? "use other data"
                 : "use real inputs with --data, set their range with --range, or run more often with --seeds 100"));
  }
  return warnings;
}

std::vector<std::string> beyond_rounding_warnings(const report::VerifyReport& report) {
  std::vector<std::string> warnings;
  for (const report::ComparedOutput& output : report.outputs) {
    if (!output.beyond_rounding || report.verdict() != report::Verdict::same) continue;
    const std::string times =
        std::isfinite(*output.beyond_rounding)
            ? fmt::format(
                  "its largest difference, {:.2g}, is {:.2g} times what rounding alone changes in the reference",
                  output.worst.max_absolute, *output.beyond_rounding)
            : fmt::format("it differs by up to {:.2g}, and rounding alone changes nothing in the reference",
                          output.worst.max_absolute);
    warnings.push_back(fmt::format(
        "output '{}' is within the tolerance, but {}, so the difference may have another cause, such as a changed "
        "weight: compare with smaller limits (--rtol, --atol), or {}",
        output.reference.name, times, report.has_data ? "use other data" : "run more often with --seeds 100"));
  }
  return warnings;
}

std::vector<std::string> kernel_warnings(const std::vector<std::string>& without_own_kernels) {
  if (without_own_kernels.empty()) return {};
  const bool is_one = without_own_kernels.size() == 1;
  return {fmt::format(
      "--kernels own: {} of the candidate {} computed as ONNX defines {}, not by Graft's kernel{}, which TensorRT-RTX "
      "runs as {}",
      fmt::join(without_own_kernels, ", "), is_one ? "was" : "were", is_one ? "it" : "them", is_one ? "" : "s",
      is_one ? "a plugin" : "plugins")};
}

std::vector<std::string> verify_warnings(const report::VerifyReport& report) {
  const bool has_data = report.has_data;
  std::vector<std::string> warnings = noise_warnings(tensors_of(report), report.ran_in, has_data);
  for (std::string& warning : calibration_warnings(report.verdict(), report.is_quantized_candidate, has_data)) {
    warnings.push_back(std::move(warning));
  }
  for (std::string& warning : beyond_rounding_warnings(report)) warnings.push_back(std::move(warning));
  for (std::string& warning : unreached_warnings(report.unreached, has_data)) warnings.push_back(std::move(warning));
  for (std::string& warning : kernel_warnings(report.without_own_kernels)) warnings.push_back(std::move(warning));
  for (const report::ComparedOutput& output : report.outputs) {
    if (report.runs > 0 && output.verdict() == report::Verdict::nothing_compared) {
      warnings.push_back(nothing_compared_warning(output.reference.name, output.not_compared, output.is_lost_in_noise(),
                                                  output.is_empty_in_all_runs(), output.worst, has_data));
    }
  }
  return warnings;
}

}  // namespace graft::present
