// Runs the model, counts the values of its tensors on several threads, and stores the counts in a file.
#include "quant/calibrate/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "core/archive.hpp"
#include "core/parts.hpp"
#include "graft/error.hpp"
#include "io/npy.hpp"
#include "onnx/shape_inference.hpp"

namespace graft::quant {
namespace {

/// Computes an FNV-1a hash of everything on which the histograms of a calibration depend. With the hash, a state file
/// that belongs to another calibration is detected.
class Fingerprint {
 public:
  void add(std::string_view bytes) {
    constexpr std::uint64_t prime = 1099511628211U;
    for (const char c : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * prime;
  }
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 14695981039346656037U;
};

std::string fingerprint_of(const onnx::Model& model) {
  Fingerprint fingerprint;
  for (const onnx::Value* value : model.graph().initializers()) {
    fingerprint.add(value->name);
    fingerprint.add(value->initializer->bytes.view());
  }
  model.graph().for_each_node([&](const onnx::Node& node) {
    fingerprint.add(node.op_type);
    for (const onnx::Value* input : node.inputs) fingerprint.add(input == nullptr ? "" : input->name);
    for (const onnx::Value* output : node.outputs) fingerprint.add(output == nullptr ? "" : output->name);
  });
  return fingerprint.text();
}

io::NpyArray text_array(std::string_view text) {
  io::NpyArray array{.type = onnx::ElementType::u8, .shape = {static_cast<std::int64_t>(text.size())}, .data = {}};
  const auto bytes = std::as_bytes(std::span(text));
  array.data.assign(bytes.begin(), bytes.end());
  return array;
}

template <class T>
io::NpyArray array_of(onnx::ElementType type, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  io::NpyArray array{.type = type, .shape = std::move(shape), .data = {}};
  const auto bytes = std::as_bytes(std::span(values));
  array.data.assign(bytes.begin(), bytes.end());
  return array;
}

/// Identifies a calibration by hashes of its model and data and by the names of its tensors. Histograms of two
/// calibrations can only be added if their identities are equal.
class Identity {
 public:
  Identity(const onnx::Model& model, const std::vector<std::string>& tensors, const CalibrationData& data) {
    Fingerprint of_data;
    of_data.add(data.identity);
    entries_ = {{"model", fingerprint_of(model)}, {"data", of_data.text()}, {"tensors", {}}};
    for (const std::string& tensor : tensors) entries_["tensors"] += tensor + "\n";
  }

  [[nodiscard]] const std::map<std::string, std::string>& entries() const { return entries_; }
  /// Returns, for a message about a difference between two identities, the words for the entry that differs: "model",
  /// "set of data" or "choice of tensors". `what` is the key of the entry in entries().
  [[nodiscard]] static std::string_view words(std::string_view what) {
    if (what == "data") return "set of data";
    return what == "model" ? "model" : "choice of tensors";
  }

 private:
  std::map<std::string, std::string> entries_;
};

/// Returns the histogram that has these statistics and bins, or nothing if they are inconsistent.
std::optional<Histogram> restored(const Histogram::Figures& figures, std::vector<std::uint64_t> bins) {
  try {
    return Histogram(figures, std::move(bins));
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Reads and writes the histograms of a calibration in a .npz file, so that an interrupted calibration can continue.
class State {
 public:
  /// All arguments must outlive the object. An empty path disables reading and writing.
  State(std::filesystem::path path, const Identity& identity, const std::vector<std::string>& tensors)
      : path_(std::move(path)), tensors_(tensors), identity_(identity) {}

  void load(Calibration& calibration, std::int64_t count) const {
    std::error_code problem;
    if (path_.empty() || !std::filesystem::exists(path_, problem)) return;
    const io::NpzArrays arrays = io::read_npz(path_);
    for (const auto& [what, mine] : identity_.entries()) {
      const auto found = arrays.find(what);
      if (found == arrays.end()) fail("this is not the state of a calibration");
      const io::NpyArray expected = text_array(mine);
      if (found->second.data != expected.data)
        fail(fmt::format("this is the state of a calibration with another {}", Identity::words(what)));
    }
    const auto rows = static_cast<std::int64_t>(tensors_.size());
    const auto samples = numbers<std::int64_t>(arrays, "samples", onnx::ElementType::i64, {1});
    const auto counts = numbers<std::uint64_t>(arrays, "counts", onnx::ElementType::u64, {rows, 3});
    const auto ranges = numbers<float>(arrays, "ranges", onnx::ElementType::f32, {rows, 2});
    const auto exponents = numbers<std::int32_t>(arrays, "exponents", onnx::ElementType::i32, {rows});
    constexpr auto columns = static_cast<std::int64_t>(Histogram::bin_count);
    const auto bins = numbers<std::uint64_t>(arrays, "bins", onnx::ElementType::u64, {rows, columns});
    if (samples[0] < 0 || samples[0] > count) {
      fail(fmt::format("the file counts {} samples, and the data have only {}", samples[0], count));
    }
    calibration.samples = samples[0];
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const auto begin = bins.begin() + static_cast<std::ptrdiff_t>(i * Histogram::bin_count);
      std::optional<Histogram> histogram = restored({.zeros = counts[3 * i],
                                                     .nan = counts[3 * i + 1],
                                                     .infinite = counts[3 * i + 2],
                                                     .lowest = ranges[2 * i],
                                                     .highest = ranges[2 * i + 1],
                                                     .exponent = exponents[i]},
                                                    {begin, begin + static_cast<std::ptrdiff_t>(Histogram::bin_count)});
      if (!histogram) fail("the file is damaged");
      calibration.tensors[tensors_[i]] = std::move(*histogram);
    }
  }

  void save(const Calibration& calibration) const {
    if (path_.empty()) return;
    std::vector<std::uint64_t> counts;
    std::vector<float> ranges;
    std::vector<std::int32_t> exponents;
    std::vector<std::uint64_t> bins;
    for (const std::string& tensor : tensors_) {
      const Histogram& histogram = calibration.tensors.find(tensor)->second;
      const Histogram::Figures& figures = histogram.figures();
      counts.insert(counts.end(), {figures.zeros, figures.nan, figures.infinite});
      ranges.insert(ranges.end(), {figures.lowest, figures.highest});
      exponents.push_back(figures.exponent);
      bins.insert(bins.end(), histogram.bins().begin(), histogram.bins().end());
    }
    const auto rows = static_cast<std::int64_t>(tensors_.size());
    constexpr auto columns = static_cast<std::int64_t>(Histogram::bin_count);
    io::NpzArrays arrays;
    for (const auto& [what, mine] : identity_.entries()) arrays.emplace(what, text_array(mine));
    arrays.emplace("samples", array_of<std::int64_t>(onnx::ElementType::i64, {1}, {calibration.samples}));
    arrays.emplace("counts", array_of(onnx::ElementType::u64, {rows, 3}, counts));
    arrays.emplace("ranges", array_of(onnx::ElementType::f32, {rows, 2}, ranges));
    arrays.emplace("exponents", array_of(onnx::ElementType::i32, {rows}, exponents));
    arrays.emplace("bins", array_of(onnx::ElementType::u64, {rows, columns}, bins));
    write_npz(path_, arrays);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw Error(fmt::format("{}: {}\nRemove the file, or pass a different file", path_.string(), message));
  }

  template <class T>
  [[nodiscard]] std::vector<T> numbers(const io::NpzArrays& arrays, const char* name, onnx::ElementType type,
                                       const std::vector<std::int64_t>& shape) const {
    const auto found = arrays.find(name);
    if (found == arrays.end() || found->second.type != type || found->second.shape != shape)
      fail("the file is damaged");
    std::vector<T> values(found->second.data.size() / sizeof(T));
    std::memcpy(values.data(), found->second.data.data(), values.size() * sizeof(T));
    return values;
  }

  std::filesystem::path path_;
  const std::vector<std::string>& tensors_;
  const Identity& identity_;
};

/// The histograms of all tensors over a range of samples, which one process serializes and sends to another.
struct CountedPart {
  struct Tensor {
    std::string name;
    Histogram::Figures figures;
    std::vector<std::uint64_t> bins;  ///< The bins up to the last one that is not empty.
  };
  std::vector<std::pair<std::string, std::string>> identity;
  SampleRange range;
  std::vector<Tensor> tensors;
};

template <class Archive>
void archive(Archive& bytes, CountedPart::Tensor& tensor) {
  Histogram::Figures& figures = tensor.figures;
  bytes(tensor.name, figures.zeros, figures.nan, figures.infinite, figures.lowest, figures.highest, figures.exponent,
        tensor.bins);
}

template <class Archive>
void archive(Archive& bytes, CountedPart& part) {
  bytes(part.identity, part.range.begin, part.range.end, part.tensors);
}

void count(const onnx::TensorData& tensor, Histogram& histogram) {
  if (tensor.type == onnx::ElementType::f32) {
    const auto* values = reinterpret_cast<const float*>(tensor.bytes.data());
    histogram.add({values, static_cast<std::size_t>(tensor.element_count())});
    return;
  }
  const std::vector<double> numbers = tensor.numbers().value_or(std::vector<double>());
  const std::vector<float> values(numbers.begin(), numbers.end());
  histogram.add(values);
}

/// Stores the exception of the item with the lowest index among the items that fail on several threads, so that the
/// reported error does not depend on timing.
class FirstFailure {
 public:
  void keep(std::int64_t order) {
    const std::lock_guard lock(mutex_);
    if (failure_ && order_ <= order) return;
    failure_ = std::current_exception();
    order_ = order;
  }
  void raise() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::int64_t order_ = 0;
};

struct Task {
  const onnx::TensorData* tensor = nullptr;
  Histogram* histogram = nullptr;
};

/// Counts the values of all tensors on several threads. A histogram is used by one thread only. The largest tensors are
/// counted first, so that all threads end at about the same time.
void count_all(std::vector<Task> tasks, std::size_t threads) {
  std::sort(tasks.begin(), tasks.end(),
            [](const Task& a, const Task& b) { return a.tensor->bytes.size() > b.tensor->bytes.size(); });
  std::atomic<std::size_t> next = 0;
  FirstFailure failure;
  const auto work = [&] {
    std::size_t i = 0;
    try {
      for (i = next++; i < tasks.size(); i = next++) count(*tasks[i].tensor, *tasks[i].histogram);
    } catch (...) {
      failure.keep(static_cast<std::int64_t>(i));
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min(threads, tasks.size()); ++i) others.emplace_back(work);
  work();
  for (std::jthread& other : others) other.join();
  failure.raise();
}

using Histograms = std::map<std::string, Histogram, std::less<>>;

/// Runs samples and counts the values of their tensors in its own histograms, so that several workers can run at the
/// same time.
class Worker {
 public:
  Worker(std::unique_ptr<runtime::CompiledModel> compiled, const std::vector<std::string>& tensors, std::size_t threads)
      : threads_(threads), compiled_(std::move(compiled)) {
    for (const std::string& tensor : tensors) counted_[tensor];
  }

  void run(const runtime::TensorMap& sample) {
    compiled_->run(sample, [&](const runtime::TensorMap& outputs) {
      std::vector<Task> tasks;
      for (auto& [name, histogram] : counted_) {
        const auto given = sample.find(name);
        tasks.push_back({given != sample.end() ? &given->second : &outputs.find(name)->second, &histogram});
      }
      count_all(std::move(tasks), threads_);
    });
  }

  /// Adds the values counted since the previous call to the histograms in `all`, and empties the worker's own
  /// histograms.
  void move_counts_to(Histograms& all) {
    for (auto& [name, histogram] : counted_) all.find(name)->second.add(std::exchange(histogram, Histogram()));
  }

 private:
  std::size_t threads_;
  std::unique_ptr<runtime::CompiledModel> compiled_;
  Histograms counted_;
};

/// Returns the number of workers that leaves the fewest of `threads` threads idle, at most 4 because each worker stores
/// inner tensors. Running two images on one core each takes less time than running them one after the other on both
/// cores: for ResNet-50 with 57 counted tensors, calibration takes 1.3 instead of 1.8 times the time of the network
/// alone.
std::size_t count_of_workers(std::size_t threads) {
  constexpr std::size_t most_workers = 4;
  if (threads <= most_workers) return threads;
  std::size_t best = most_workers;
  for (std::size_t count = most_workers; count > 1; --count) {
    if (threads % count < threads % best) best = count;
  }
  return best;
}

/// Runs a range of the samples and adds the values of their tensors to the histograms `counts`. If `after_round` is
/// set, it is called each time `counts` contains complete samples only: `done` is the index of the first sample of the
/// range that is not counted yet.
void count_samples(const runtime::Engine& engine, const onnx::Model& model, const std::vector<std::string>& tensors,
                   const CalibrationData& data, SampleRange range, const CalibrateOptions& options, Histograms& counts,
                   const std::function<void(std::int64_t done)>& after_round) {
  std::vector<std::string> computed;
  for (const std::string& tensor : tensors) {
    const onnx::Value* value = model.graph().find_local(tensor);
    if (value == nullptr || !value->is_input) computed.push_back(tensor);
  }
  const std::size_t threads = options.threads > 0 ? static_cast<std::size_t>(options.threads)
                                                  : std::max(1U, std::thread::hardware_concurrency());
  const std::size_t worker_count = count_of_workers(threads);
  const std::size_t threads_of_each = threads / worker_count;
  std::unique_ptr<runtime::CompiledModel> compiled = engine.compile(model, {.kernels = options.kernels,
                                                                            .extra_outputs = computed,
                                                                            .threads = static_cast<int>(threads),
                                                                            .streams = static_cast<int>(worker_count)});
  std::vector<Worker> workers;
  for (std::size_t i = 1; i < worker_count; ++i)
    workers.emplace_back(compiled->new_request(), tensors, threads_of_each);
  workers.emplace_back(std::move(compiled), tensors, threads_of_each);
  // The state can be saved only between two rounds, when all earlier samples are counted and no later one is.
  constexpr std::int64_t samples_of_each = 8;
  const std::int64_t round = workers.size() == 1 ? 1 : samples_of_each * static_cast<std::int64_t>(workers.size());
  for (std::int64_t begin = range.begin; begin < range.end; begin = std::min(range.end, begin + round)) {
    const std::int64_t end = std::min(range.end, begin + round);
    std::atomic<std::int64_t> next = begin;
    FirstFailure failure;
    const auto work = [&](Worker& worker, bool tells) {
      std::int64_t i = 0;
      try {
        for (i = next++; i < end; i = next++) {
          if (tells && options.progress) options.progress(i, data.count);
          worker.run(data.sample(i));
        }
      } catch (...) {
        failure.keep(i);
        next = end;
      }
    };
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < workers.size(); ++i) others.emplace_back(work, std::ref(workers[i]), false);
    work(workers.front(), true);
    for (std::jthread& other : others) other.join();
    failure.raise();
    if (!after_round && end != range.end) continue;
    for (Worker& worker : workers) worker.move_counts_to(counts);
    if (after_round) after_round(end);
  }
}

/// Adds the histograms of other processes to `calibration`. `next` returns the results of calibrate_part() one after
/// the other, then nothing. `report` is called with the number of samples counted so far. Throws Error if a result is
/// damaged or belongs to another calibration, or if the results do not contain each sample of `range` once.
void add_parts(const NextPart& next, SampleRange range, const Identity& identity, Calibration& calibration,
               const std::function<void(std::int64_t done)>& report) {
  CoveredSamples covered(range, "calibration");
  report(0);
  while (const std::optional<std::string> bytes = next()) {
    CountedPart part;
    ArchiveReader reader(*bytes);
    reader(part);
    reader.check_end();
    for (const auto& [what, text] : part.identity) {
      const auto mine = identity.entries().find(what);
      if (mine != identity.entries().end() && mine->second == text) continue;
      throw Error(
          fmt::format("a process that counts samples {} to {} has another {} than this process\nThe files of "
                      "the model and of the data must be the same on all machines",
                      part.range.begin, part.range.end, Identity::words(what)));
    }
    covered.add(part.range);
    for (CountedPart::Tensor& tensor : part.tensors) {
      tensor.bins.resize(std::max(tensor.bins.size(), Histogram::bin_count));  // restored() refuses too many bins
      const std::optional<Histogram> histogram = restored(tensor.figures, std::move(tensor.bins));
      const auto sum = calibration.tensors.find(tensor.name);
      if (!histogram || sum == calibration.tensors.end()) {
        throw Error(Error::Kind::internal,
                    fmt::format("a part of the calibration has wrong counts of '{}'", tensor.name));
      }
      sum->second.add(*histogram);
    }
    report(covered.count());
  }
  covered.check_complete();
  calibration.samples = range.end;
}

}  // namespace

Calibration calibrate(const runtime::Engine& engine, const onnx::Model& model, const std::vector<std::string>& tensors,
                      const CalibrationData& data, const CalibrateOptions& options) {
  Calibration calibration;
  for (const std::string& tensor : tensors) calibration.tensors[tensor];
  const Identity identity(model, tensors, data);
  const State state(options.state, identity, tensors);
  state.load(calibration, data.count);
  if (calibration.samples == data.count) return calibration;
  const SampleRange missing{.begin = calibration.samples, .end = data.count};
  if (options.parts) {
    add_parts(options.parts(missing), missing, identity, calibration, [&](std::int64_t done) {
      if (options.progress) options.progress(missing.begin + done, data.count);
    });
  } else {
    auto saved = std::chrono::steady_clock::now();
    count_samples(engine, model, tensors, data, missing, options, calibration.tensors, [&](std::int64_t done) {
      calibration.samples = done;
      const auto now = std::chrono::steady_clock::now();
      if (std::chrono::duration<double>(now - saved).count() < options.save_seconds) return;
      if (calibration.samples != data.count) state.save(calibration);
      saved = now;
    });
  }
  state.save(calibration);
  if (options.progress) options.progress(calibration.samples, data.count);
  return calibration;
}

std::string calibrate_part(const runtime::Engine& engine, const onnx::Model& model,
                           const std::vector<std::string>& tensors, const CalibrationData& data, SampleRange range,
                           const CalibrateOptions& options) {
  if (range.begin < 0 || range.begin >= range.end || range.end > data.count) {
    throw Error(
        fmt::format("the part has the samples {} to {}, and the data have {} samples here\nThe data must be the "
                    "same on all machines",
                    range.begin, range.end, data.count));
  }
  const Identity identity(model, tensors, data);
  Histograms counts;
  for (const std::string& tensor : tensors) counts[tensor];
  count_samples(engine, model, tensors, data, range, options, counts, {});
  CountedPart part{.identity = {identity.entries().begin(), identity.entries().end()}, .range = range, .tensors = {}};
  for (const auto& [name, histogram] : counts) {
    const auto bins = histogram.bins().begin();
    part.tensors.push_back({.name = name,
                            .figures = histogram.figures(),
                            .bins = {bins, bins + static_cast<std::ptrdiff_t>(histogram.used_bins())}});
  }
  ArchiveWriter writer;
  writer(part);
  return std::move(writer.bytes());
}

std::vector<std::string> floating_tensors(const onnx::Model& model) {
  onnx::Model inferred = model.clone();
  infer_shapes(inferred);
  std::vector<std::string> names;
  const auto add = [&](const onnx::Value* value) {
    if (value != nullptr && value->type == onnx::ElementType::f32 && !value->constant()) names.push_back(value->name);
  };
  for (const onnx::Value* input : inferred.graph().inputs()) {
    if (!input->initializer) add(input);
  }
  for (const onnx::Node* node : inferred.graph().nodes()) {
    for (const onnx::Value* output : node->outputs) add(output);
  }
  return names;
}

}  // namespace graft::quant
