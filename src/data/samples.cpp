// Counts the samples of arrays, and reads those of a run.
#include "data/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "graft/error.hpp"
#include "onnx/bytes_part.hpp"

namespace graft::data {
namespace {

std::optional<std::int64_t> fixed_first(const Port& port) {
  const bool is_fixed = port.shape && !port.shape->empty() && port.shape->front().is_constant();
  return is_fixed ? std::optional(port.shape->front().value()) : std::nullopt;
}

/// Returns the first dimension of an input if it is fixed, or the larger one if it is fixed in both models of a
/// comparison; nothing if it is dynamic.
std::optional<std::int64_t> fixed_first(const Input& input) {
  return std::max(fixed_first(input.port), input.candidate ? fixed_first(*input.candidate) : std::nullopt);
}

/// Returns whether the input has a first axis, which counts samples.
bool has_first_axis(const Column& column) {
  const auto& shape = column.input.port.shape;
  if (shape) return !shape->empty();
  return column.is_images || !column.arrays.front().dims.empty();
}

std::int64_t samples_of(const Array& array) {
  if (!array.type || array.fit.adds_axis || array.dims.empty()) return 1;
  return array.dims.front();
}

onnx::TensorData join(const std::vector<onnx::TensorData>& parts) {
  if (parts.size() == 1) return parts.front();
  onnx::TensorData joined = parts.front();
  joined.dims.front() = 0;
  std::string bytes;
  for (const onnx::TensorData& part : parts) {
    joined.dims.front() += part.dims.front();
    bytes += part.bytes.view();
  }
  joined.bytes = onnx::Bytes(std::move(bytes));
  return joined;
}

onnx::TensorData part_of(const onnx::TensorData& all, std::int64_t begin, std::int64_t count) {
  if (begin == 0 && count == all.dims.front()) return all;
  onnx::TensorData part = all;
  part.dims.front() = count;
  const std::size_t bytes = all.bytes.size() / static_cast<std::size_t>(all.dims.front());
  part.bytes =
      onnx::part_of(all.bytes, static_cast<std::size_t>(begin) * bytes, static_cast<std::size_t>(count) * bytes);
  return part;
}

/// The array that was read last, because several runs may use parts of the same file.
class LastArray {
 public:
  onnx::TensorData get(std::size_t index, const Column& column) {
    const std::lock_guard lock(mutex_);
    if (index_ != index) {
      tensor_ = read(column, index);
      index_ = index;
    }
    return *tensor_;
  }

  static onnx::TensorData read(const Column& column, std::size_t index) {
    const Array& array = column.arrays[index];
    return convert(array.read(), array.fit, column.input, array.place);
  }

 private:
  std::mutex mutex_;
  std::optional<std::size_t> index_;
  std::optional<onnx::TensorData> tensor_;
};

/// The runs of a column: whole arrays, parts with a fixed number of samples, or the same array in every run.
class Division {
 public:
  enum class Unit : std::uint8_t { array, samples, constant };

  Division(Column column, Unit unit, std::int64_t step) : column_(std::move(column)), unit_(unit), step_(step) {
    starts_.push_back(0);
    for (const Array& array : column_.arrays) starts_.push_back(starts_.back() + samples_of(array));
    if (column_.arrays.size() == 1) (void)last_->get(0, column_);  // read before work that takes long
  }

  [[nodiscard]] const std::string& name() const { return column_.input.name(); }
  [[nodiscard]] const std::string& place() const { return column_.arrays.front().place; }
  [[nodiscard]] std::int64_t samples() const { return starts_.back(); }

  /// Returns the number of runs; nothing for an array that is used in every run.
  [[nodiscard]] std::optional<std::int64_t> count() const {
    if (unit_ == Unit::constant) return std::nullopt;
    return unit_ == Unit::array ? std::ssize(column_.arrays) : starts_.back() / step_;
  }

  /// Throws Error if an array contains no finite number. Arrays of a folder are checked when they are read.
  void check_numbers() const {
    if (column_.arrays.size() == 1) check_has_numbers(name(), last_->get(0, column_), place());
  }
  void check_numbers(const onnx::TensorData& tensor, std::int64_t run) const {
    if (column_.arrays.size() == 1) return;
    const std::size_t index = unit_ == Unit::array ? static_cast<std::size_t>(run) : array_at(run * step_);
    check_has_numbers(name(), tensor, column_.arrays[index].place);
  }

  [[nodiscard]] onnx::TensorData read(std::int64_t run) const {
    if (column_.arrays.size() == 1 && unit_ != Unit::samples) return last_->get(0, column_);
    if (unit_ == Unit::array) return LastArray::read(column_, static_cast<std::size_t>(run));
    std::vector<onnx::TensorData> parts;
    std::int64_t begin = run * step_;
    const std::int64_t end = begin + step_;
    while (begin < end) {
      const std::size_t index = array_at(begin);
      const std::int64_t until = std::min(end, starts_[index + 1]);
      parts.push_back(part_of(last_->get(index, column_), begin - starts_[index], until - begin));
      begin = until;
    }
    return join(parts);
  }

 private:
  /// Returns the index of the array with this sample.
  [[nodiscard]] std::size_t array_at(std::int64_t sample) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), sample);
    return static_cast<std::size_t>(after - starts_.begin()) - 1;
  }

  Column column_;
  Unit unit_;
  std::int64_t step_;
  std::vector<std::int64_t> starts_;  ///< The first sample of each array, and the number of all samples.
  std::shared_ptr<LastArray> last_ = std::make_shared<LastArray>();
};

/// Divides columns into runs: with `by_sample`, every array by the first dimension of its input (divide_samples);
/// otherwise only the arrays of folders that need it (read_runs).
class Divider {
 public:
  Divider(Columns& columns, bool by_sample) : columns_(columns), by_sample_(by_sample) {}

  std::vector<Division> divide() {
    check_samples();
    const bool pools = needs_pooling();
    std::vector<Division::Unit> units;
    for (const Column& column : columns_.list) {
      const bool is_divided = column.is_folder ? pools : by_sample_;
      units.push_back(is_constant(column) ? Division::Unit::constant
                      : is_divided        ? Division::Unit::samples
                                          : Division::Unit::array);
    }
    std::vector<Division> divisions;
    for (std::size_t i = 0; i < units.size(); ++i) {
      Column& column = columns_.list[i];
      const std::int64_t first = fixed_first(column.input).value_or(1);
      divisions.emplace_back(std::move(column), units[i], std::max<std::int64_t>(1, first));
    }
    check_counts(divisions);
    return divisions;
  }

 private:
  /// Returns whether the only array of a column is used in every run: it has no axis for samples, or it has exactly the
  /// samples of one run while other columns have more.
  [[nodiscard]] bool is_constant(const Column& column) const {
    if (column.arrays.size() != 1) return false;
    if (!has_first_axis(column)) return true;
    const std::optional<std::int64_t> first = fixed_first(column.input);
    if (!first || samples_of(column.arrays.front()) != *first) return false;
    return std::any_of(columns_.list.begin(), columns_.list.end(), [&](const Column& other) {
      if (&other == &column || !has_first_axis(other)) return false;
      return other.arrays.size() > 1 ||
             (by_sample_ && samples_of(other.arrays.front()) > fixed_first(other.input).value_or(1));
    });
  }

  /// Returns whether the samples of a folder's files are counted one after the other, because a file has another number
  /// of samples than the first dimension of its input.
  [[nodiscard]] bool needs_pooling() const {
    const auto has_other_count = [&](const Column& column) {
      const std::optional<std::int64_t> first = fixed_first(column.input);
      if (!column.is_folder || !first || *first == 0) return false;
      return std::any_of(column.arrays.begin(), column.arrays.end(), [&](const Array& array) {
        return by_sample_ ? samples_of(array) != *first : samples_of(array) % *first != 0;
      });
    };
    return std::any_of(columns_.list.begin(), columns_.list.end(), has_other_count);
  }

  /// Throws Error for an array without samples, and for arrays whose first sizes have the same name in the network and
  /// differ.
  void check_samples() const {
    for (const Column& column : columns_.list) {
      const std::int64_t first = fixed_first(column.input).value_or(1);
      std::int64_t samples = 0;
      for (const Array& array : column.arrays) samples += samples_of(array);
      // Arrays that are one run may be empty.
      const bool is_too_few = (by_sample_ || column.is_folder) && samples < first;
      if (!is_too_few) continue;
      throw Error(fmt::format("{}: the array for the input '{}' has {} samples; one run needs {}{}",
                              column.arrays.front().place, column.input.name(), samples, first,
                              first == 1 ? "" : ", the batch size of the model"));
    }
    if (!by_sample_) check_symbols();
  }

  void check_symbols() const {
    std::map<std::string, const Column*, std::less<>> seen;
    for (const Column& column : columns_.list) {
      const auto& shape = column.input.port.shape;
      if (column.arrays.size() != 1 || column.is_images || !shape || shape->empty()) continue;
      const Dim& dim = shape->front();
      if (dim.kind() != Dim::Kind::symbol || onnx::is_unknown(dim)) continue;
      const auto [other, is_new] = seen.try_emplace(dim.name(), &column);
      if (is_new) continue;
      const std::int64_t samples = samples_of(column.arrays.front());
      const std::int64_t others = samples_of(other->second->arrays.front());
      if (samples == others) continue;
      throw Error(fmt::format(
          "{}: the array for the input '{}' has {} samples, and the array for '{}' has {}; the model "
          "has the same size '{}' for both\nPass arrays with the same number of samples",
          column.arrays.front().place, column.input.name(), samples, other->second->input.name(), others, dim.name()));
    }
  }

  void check_counts(const std::vector<Division>& divisions) const {
    const Division* decides = nullptr;
    for (const Division& division : divisions) {
      if (!division.count()) continue;
      if (decides == nullptr) decides = &division;
      if (division.count() == decides->count()) continue;
      throw Error(
          fmt::format("{}: the array for the input '{}' has samples for {} runs, and the arrays of other inputs for "
                      "{}; all arrays must have samples for the same number of runs",
                      division.place(), division.name(), *division.count(), *decides->count()));
    }
  }

  Columns& columns_;
  bool by_sample_;
};

std::int64_t count_runs(const std::vector<Division>& divisions) {
  for (const Division& division : divisions) {
    if (const auto count = division.count()) return *count;
  }
  return divisions.empty() ? 0 : 1;
}

}  // namespace

Samples divide_samples(Columns columns, std::int64_t limit) {
  Samples samples{.count = 0, .sample = {}, .identity = columns.identity, .notes = columns.notes};
  const auto divisions = std::make_shared<const std::vector<Division>>(Divider(columns, true).divide());
  for (const Division& division : *divisions) division.check_numbers();
  samples.count = count_runs(*divisions);
  if (limit > 0) samples.count = std::min(samples.count, limit);
  samples.sample = [divisions](std::int64_t run) {
    runtime::TensorMap sample;
    for (const Division& division : *divisions) {
      onnx::TensorData tensor = division.read(run);
      division.check_numbers(tensor, run);
      sample.emplace(division.name(), std::move(tensor));
    }
    return sample;
  };
  return samples;
}

Runs read_runs(Columns columns, const SourceOptions& options) {
  // The files of a folder may need any amount of memory. A single file is limited by its own size.
  constexpr std::size_t most_bytes = std::size_t{4} << 30U;
  Runs result{.runs = {}, .notes = columns.notes};
  std::string folder;
  for (const Column& column : columns.list) {
    if (column.is_folder) folder = column.arrays.front().place;
  }
  const std::vector<Division> divisions = Divider(columns, false).divide();
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> nan;
  std::size_t bytes = 0;
  for (std::int64_t run = 0; run < count_runs(divisions); ++run) {
    runtime::TensorMap& tensors = result.runs.emplace_back();
    for (const Division& division : divisions) {
      const onnx::TensorData tensor = division.read(run);
      bytes += division.count() ? tensor.bytes.size() : 0;
      auto& [count, elements] = nan[division.name()];
      count += count_nan(tensor);
      elements += tensor.element_count();
      tensors.emplace(division.name(), tensor);
    }
    if (!folder.empty() && bytes > most_bytes) {
      throw Error(
          fmt::format("{}: the first {} runs of the folder need more than {} GiB of memory, the limit\nPass a "
                      "folder with fewer files",
                      folder, run + 1, most_bytes >> 30U));
    }
  }
  for (const auto& [name, counts] : nan) {
    if (counts.first == 0) continue;
    result.notes.push_back(
        fmt::format("{}: {} of {} elements of input '{}' are NaN, and so are the values computed from them",
                    setting_name(options.setting), counts.first, counts.second, name));
  }
  return result;
}

Samples open_runs(Columns columns) {
  const auto divisions = std::make_shared<const std::vector<Division>>(Divider(columns, false).divide());
  return {.count = count_runs(*divisions),
          .sample =
              [divisions](std::int64_t run) {
                runtime::TensorMap tensors;
                for (const Division& division : *divisions) tensors.emplace(division.name(), division.read(run));
                return tensors;
              },
          .identity = columns.identity,
          .notes = columns.notes};
}

std::map<std::string, std::vector<std::int64_t>, std::less<>> first_shapes(const Columns& columns) {
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes;
  for (const Column& column : columns.list) {
    const Array& array = column.arrays.front();
    if (!array.type) continue;
    std::vector<std::int64_t> dims = array.dims;
    if (array.fit.adds_axis) dims.insert(dims.begin(), 1);
    shapes.emplace(column.input.name(), std::move(dims));
  }
  return shapes;
}

}  // namespace graft::data
