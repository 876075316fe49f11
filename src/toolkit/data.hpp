// The data of options, from files or from memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/samples.hpp"
#include "graft/toolkit/data.hpp"
#include "runtime/engine.hpp"

namespace graft::toolkit {

/// Data that a caller gave in the options of a function: files, or tensors in memory.
struct GivenData {
  DataFiles files = {};
  runtime::TensorMap tensors = {};
  Setting setting = Setting::data;  ///< The name of the data in messages.

  [[nodiscard]] bool empty() const { return files.empty() && tensors.empty(); }
};

/// Throws Error if the caller gave both files and tensors, or a recipe without files. `setting` is the option that the
/// message names.
void check_kinds_of_data(const DataFiles& files, bool has_tensors, Setting setting);

/// Finds the file or tensor in `given` for each of the inputs, and returns them without the elements: only the headers
/// of files are read.
[[nodiscard]] data::Columns open_columns(const GivenData& given, const data::Inputs& inputs);

/// Reads the data in `given` and divides them into runs, see data::read_runs.
/// Returns the classes of the images of a folder by DataFiles::labels, one for each file that is read; empty without
/// labels.
[[nodiscard]] std::vector<std::int64_t> read_labels(const GivenData& given, const data::Inputs& inputs);

/// Reads the data as data::read_runs does.
[[nodiscard]] data::Runs read_runs(const GivenData& given, const data::Inputs& inputs);

/// Reads the data in the files for these inputs. Divides them into runs as the function read_data in
/// graft/toolkit/data.hpp does.
[[nodiscard]] DataRuns read_data(const DataFiles& files, const data::Inputs& inputs);

/// Opens the data in `given` as samples for a calibration, at most `limit` of them; 0 means all.
[[nodiscard]] data::Samples open_samples(const GivenData& given, const data::Inputs& inputs, std::int64_t limit);

}  // namespace graft::toolkit
