#include "verify/compare/run_records.hpp"

#include <utility>

#include "core/archive.hpp"
#include "core/parts.hpp"
#include "graft/error.hpp"

// ArchiveWriter and ArchiveReader find these functions in the namespace of the structures.
namespace graft::report {

template <class Archive>
static void archive(Archive& bytes, Tolerance& tolerance) {
  bytes(tolerance.relative, tolerance.absolute, tolerance.of_largest, tolerance.by_slice, tolerance.snr_db,
        tolerance.least_snr_db, tolerance.why, tolerance.is_step);
}

template <class Archive>
static void archive(Archive& bytes, SelectionDifference& selection) {
  std::uint64_t axis = selection.axis;
  bytes(axis, selection.lowest, selection.highest, selection.without_partner, selection.between_draws);
  selection.axis = static_cast<std::size_t>(axis);
}

template <class Archive>
static void archive(Archive& bytes, Difference& difference) {
  bytes(difference.count, difference.finite, difference.mismatched, difference.within_noise, difference.undecided,
        difference.nan_disagreements, difference.infinity_disagreements, difference.nan_agreements,
        difference.max_absolute, difference.max_relative, difference.max_absolute_at, difference.max_relative_at,
        difference.excess, difference.snr_db, difference.missed_snr_db, difference.cosine, difference.first_index,
        difference.first_reference, difference.first_candidate, difference.first_integers, difference.selection,
        difference.is_choice, difference.is_shifted, difference.incomparable);
}

template <class Archive>
static void archive(Archive& bytes, OutputFigures& figures) {
  bytes(figures.name, figures.snr_db, figures.largest_error, figures.elements, figures.differing, figures.not_finite,
        figures.rows, figures.same_top, figures.is_real, figures.incomparable, figures.signal, figures.noise);
}

}  // namespace graft::report

namespace graft::verify {

template <class Archive>
static void archive(Archive& bytes, OutputRecord& record) {
  bytes(record.tolerance, record.difference, record.figures, record.reference_type, record.candidate_type, record.order,
        record.choice);
}

std::string format_records(std::int64_t begin, std::vector<RunRecord>& records) {
  ArchiveWriter writer;
  writer(begin, records);
  return std::move(writer.bytes());
}

std::map<std::int64_t, RunRecord> read_records(const NextPart& next, SampleRange runs, std::size_t outputs,
                                               const std::function<void(std::int64_t done)>& report) {
  std::map<std::int64_t, RunRecord> all;
  CoveredSamples covered(runs, "comparison");
  while (const std::optional<std::string> bytes = next()) {
    std::int64_t begin = 0;
    std::vector<RunRecord> records;
    ArchiveReader reader(*bytes);
    reader(begin, records);
    reader.check_end();
    covered.add({.begin = begin, .end = begin + static_cast<std::int64_t>(records.size())});
    for (RunRecord& record : records) {
      if (!record.empty() && record.size() != outputs) {
        throw Error(
            "a process that compares some of the runs has a model with other outputs\nThe models must be the same "
            "on all machines");
      }
      all.emplace(begin++, std::move(record));
    }
    report(covered.count());
  }
  covered.check_complete();
  return all;
}

}  // namespace graft::verify
