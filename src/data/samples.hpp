// Divides data into runs of a network.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/sources.hpp"
#include "runtime/engine.hpp"

namespace graft::data {

/// Samples by index. Several threads may call `sample`. Only the samples in use, a few images and the files that are
/// not in a folder are in memory.
struct Samples {
  std::int64_t count = 0;
  std::function<runtime::TensorMap(std::int64_t)> sample;
  std::string identity;  ///< See Columns::identity.
  std::vector<std::string> notes;
};

/// The inputs of several runs.
struct Runs {
  std::vector<runtime::TensorMap> runs;
  std::vector<std::string> notes;
};

/// Divides data into runs for calibration. Each run has as few samples as possible: the first dimension of the inputs,
/// or one sample if it is dynamic. A file of a folder is one run if the first dimension is dynamic; otherwise the
/// samples of all files are counted one after the other. Samples that do not fill a run are not used. An array with the
/// samples of exactly one run is used in every run if other inputs have more samples. `limit` is the maximum number of
/// runs; 0: all. Throws Error if the inputs have samples for different numbers of runs, or if there is no sample.
[[nodiscard]] Samples divide_samples(Columns columns, std::int64_t limit = 0);

/// Reads data for a few runs. A file that is not in a folder, or a tensor in memory, is one run, whatever the first
/// dimension is. Each file of a folder is one run; if a file has fewer samples than the first dimension of an input,
/// the samples of all files are counted one after the other. A note reports elements that are NaN, with their number.
/// Throws Error as divide_samples does, and for files of a folder that need too much memory.
[[nodiscard]] Runs read_runs(Columns columns, const SourceOptions& options);

/// Returns the same runs as read_runs, but reads each run when it is requested, so that only the run in use is in
/// memory. There is no note on NaN and no limit on the size of the files.
[[nodiscard]] Samples open_runs(Columns columns);

/// Returns the dimensions of the first run, without reading data; an image has no dimensions.
[[nodiscard]] std::map<std::string, std::vector<std::int64_t>, std::less<>> first_shapes(const Columns& columns);

}  // namespace graft::data
