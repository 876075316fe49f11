// The results of the runs of a comparison, as one process sends them to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graft/parts.hpp"
#include "graft/report/comparison.hpp"

namespace graft::verify {

/// The result of comparing one output in one run.
struct OutputRecord {
  report::Tolerance tolerance;
  report::Difference difference;
  std::optional<report::OutputFigures> figures;  ///< Empty if the tensors cannot be compared element by element.
  std::string reference_type;                    ///< The type and shape of the output of the reference.
  std::string candidate_type;
  std::string order;   ///< The transposition that maps the reference's output to the candidate's; mostly empty.
  std::string choice;  ///< A note about indices that were judged by their scores; mostly empty.
  std::optional<report::NoiseFloor> floor;  ///< The noise floor, which is not sent to other processes.
  bool is_lost = false;                     ///< Whether the output is lost in noise, which is not sent either.
};

/// The comparison of all outputs in one run, in the order of the report.
using RunRecord = std::vector<OutputRecord>;

/// Serializes the records of consecutive runs, of which the first has the index `begin`, without noise floors. A run
/// that was not compared has an empty record.
[[nodiscard]] std::string format_records(std::int64_t begin, std::vector<RunRecord>& records);

/// Reads the records that other processes serialized with format_records() and that `next` returns, and returns them by
/// the index of the run. Throws Error (internal) for damaged bytes, for a run that is missing or occurs twice, and for
/// a run that does not have `outputs` outputs. `report` is called with the number of runs read so far.
[[nodiscard]] std::map<std::int64_t, RunRecord> read_records(const NextPart& next, SampleRange runs,
                                                             std::size_t outputs,
                                                             const std::function<void(std::int64_t done)>& report);

}  // namespace graft::verify
