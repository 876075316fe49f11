// The covariance of a layer's inputs, from sampled rows, tells what any choice of roundings costs.
#include "quant/round_adaptively.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <random>

#include "quant/weighted_layers.hpp"

namespace graft {
namespace {

using Sizes = std::vector<std::int64_t>;
/// A row for each input of the layer.
using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// Counts up the last axis first.
Sizes coordinates_of(std::int64_t index, const Sizes& sizes) {
  Sizes result(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;) {
    result[i] = index % sizes[i];
    index /= sizes[i];
  }
  return result;
}

/// How a convolution goes over its input; empty for a matrix product, whose rows lie there as they are.
struct Window {
  Sizes kernel;
  Sizes strides;
  Sizes dilations;
  Sizes pads;
};

/// Covariance of the inputs of a layer, for each of its groups.
class InputStatistics {
 public:
  InputStatistics(const WeightedLayer& layer, Window window)
      : window_(std::move(window)),
        groups_(layer.layout.groups),
        size_(static_cast<std::int64_t>(layer.layout.elements() / layer.layout.outputs())) {
    covariance_.assign(static_cast<std::size_t>(groups_), Eigen::MatrixXf::Zero(size_, size_));
    sums_.assign(static_cast<std::size_t>(groups_), Eigen::VectorXd::Zero(size_));
  }

  /// So many rows of the tensor, at random places.
  void add(const TensorData& x, std::int64_t most_rows) {
    const Sizes places = places_of(x);
    const std::int64_t total = product(places);
    const std::int64_t taken = std::min(total, most_rows);
    Rows rows(taken, size_);
    std::vector<std::int64_t> chosen(static_cast<std::size_t>(taken));
    for (std::int64_t i = 0; i < taken; ++i) {
      const std::int64_t begin = i * total / taken;
      const std::int64_t end = (i + 1) * total / taken;
      chosen[static_cast<std::size_t>(i)] = std::uniform_int_distribution<std::int64_t>(begin, end - 1)(random_);
    }
    for (std::size_t group = 0; group < covariance_.size(); ++group) {
      for (std::int64_t i = 0; i < taken; ++i) {
        fill(x, coordinates_of(chosen[static_cast<std::size_t>(i)], places), static_cast<std::int64_t>(group),
             rows.row(i).data());
      }
      covariance_[group].selfadjointView<Eigen::Lower>().rankUpdate(rows.transpose());
      sums_[group] += rows.colwise().sum().transpose().cast<double>();
    }
    count_ += taken;
  }

  [[nodiscard]] Eigen::MatrixXf covariance(std::size_t group) const {
    const auto count = static_cast<float>(count_);
    const Eigen::VectorXf mean = (sums_[group] / static_cast<double>(count_)).cast<float>();
    Eigen::MatrixXf result = covariance_[group].selfadjointView<Eigen::Lower>();
    result = result / count - mean * mean.transpose();
    // What the rows do not tell apart shall not be rounded at will.
    constexpr float damping = 0.01F;
    result.diagonal().array() += damping * result.diagonal().mean();
    return result;
  }

  [[nodiscard]] std::int64_t size() const { return size_; }

 private:
  /// One row is made at each: images, then axes of the output; or the rows of a matrix.
  [[nodiscard]] Sizes places_of(const TensorData& x) const {
    if (window_.kernel.empty()) return {x.element_count() / size_};
    Sizes places = {x.dims[0]};
    const std::size_t axes = window_.kernel.size();
    for (std::size_t i = 0; i < axes; ++i) {
      const std::int64_t reach = window_.dilations[i] * (window_.kernel[i] - 1) + 1;
      places.push_back((x.dims[i + 2] + window_.pads[i] + window_.pads[i + axes] - reach) / window_.strides[i] + 1);
    }
    return places;
  }

  void fill(const TensorData& x, const Sizes& place, std::int64_t group, float* row) const {
    const auto* numbers = reinterpret_cast<const float*>(x.bytes.data());
    if (window_.kernel.empty()) {
      std::copy_n(numbers + place[0] * size_, size_, row);
      return;
    }
    const Sizes plane(x.dims.begin() + 2, x.dims.end());
    const std::int64_t plane_size = product(plane);
    const std::int64_t taps = product(window_.kernel);
    const std::int64_t channels = size_ / taps;
    const float* first = numbers + (place[0] * x.dims[1] + group * channels) * plane_size;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const Sizes at = coordinates_of(tap, window_.kernel);
      std::int64_t offset = 0;
      bool is_inside = true;
      for (std::size_t i = 0; i < at.size(); ++i) {
        const std::int64_t position =
            place[i + 1] * window_.strides[i] + at[i] * window_.dilations[i] - window_.pads[i];
        is_inside = is_inside && position >= 0 && position < plane[i];
        offset = offset * plane[i] + position;
      }
      for (std::int64_t c = 0; c < channels; ++c) row[c * taps + tap] = is_inside ? first[c * plane_size + offset] : 0;
    }
  }

  Window window_;
  std::int64_t groups_;
  std::int64_t size_;
  std::vector<Eigen::MatrixXf> covariance_;  // the lower half, of sums
  std::vector<Eigen::VectorXd> sums_;
  std::int64_t count_ = 0;
  std::minstd_rand random_;
};

std::optional<Window> window_of(const WeightedLayer& layer) {
  const Node& node = *layer.node;
  if (!node.is("Conv")) return Window{};
  const std::size_t axes = layer.axes_behind_channels();
  if (node.string_or("auto_pad", "NOTSET") != "NOTSET") return std::nullopt;
  return Window{.kernel = Sizes(layer.layout.dims.begin() + 2, layer.layout.dims.end()),
                .strides = node.ints("strides").value_or(Sizes(axes, 1)),
                .dilations = node.ints("dilations").value_or(Sizes(axes, 1)),
                .pads = node.ints("pads").value_or(Sizes(2 * axes, 0))};
}

/// A layer with its unrounded weights.
struct Task {
  WeightedLayer layer;
  std::vector<double> unrounded;
  std::vector<double> steps;  ///< Of each output channel.
  std::optional<Window> window;
  Rounded result;

  [[nodiscard]] std::int64_t bytes() const {
    const auto size = static_cast<std::int64_t>(layer.layout.elements() / layer.layout.outputs());
    return size * size * layer.layout.groups * static_cast<std::int64_t>(sizeof(float));
  }
};

/// What one weight of a row may become.
struct Choice {
  double low = 0;
  double high = 0;
};

Choice choice_of(double unrounded) {
  constexpr double most = 127;
  const double low = std::clamp(std::floor(unrounded), -most, most);
  return {.low = low, .high = std::clamp(std::ceil(unrounded), -most, most)};
}

/// The errors of a row of weights, in steps, and what each costs.
class Row {
 public:
  Row(const Eigen::MatrixXf& covariance, const Eigen::VectorXd& unrounded, Eigen::VectorXd& rounded)
      : covariance_(covariance), unrounded_(unrounded), rounded_(rounded) {
    for (Eigen::Index i = 0; i < rounded.size(); ++i) {
      const Choice choice = choice_of(unrounded[i]);
      rounded[i] = std::clamp(rounded[i], choice.low, choice.high);
    }
    slope_ = covariance * (rounded - unrounded).cast<float>();
  }

  [[nodiscard]] double cost() const {
    const Eigen::VectorXf error = (rounded_ - unrounded_).cast<float>();
    return static_cast<double>(error.dot(covariance_ * error));
  }

  /// Rounds to the other side whatever gains by it, until nothing does.
  void improve() {
    constexpr int most_sweeps = 100;
    for (int sweep = 0; sweep < most_sweeps; ++sweep) {
      bool is_better = false;
      for (Eigen::Index i = 0; i < rounded_.size(); ++i) is_better = flip_if_better(i) || is_better;
      if (!is_better) return;
    }
  }

 private:
  bool flip_if_better(Eigen::Index i) {
    const Choice choice = choice_of(unrounded_[i]);
    const double other = rounded_[i] == choice.low ? choice.high : choice.low;
    const auto change = static_cast<float>(other - rounded_[i]);
    const float own = change * change * covariance_(i, i);
    // Less than the rounding of the sums is no gain.
    constexpr float negligible = 1e-5F;
    if (2 * change * slope_[i] + own >= -negligible * own || change == 0) return false;
    rounded_[i] = other;
    slope_ += change * covariance_.col(i);
    return true;
  }

  const Eigen::MatrixXf& covariance_;
  const Eigen::VectorXd& unrounded_;
  Eigen::VectorXd& rounded_;
  Eigen::VectorXf slope_;
};

/// Where the weights of an output channel lie.
std::vector<std::vector<std::size_t>> elements_of_outputs(const WeightLayout& layout) {
  std::vector<std::vector<std::size_t>> result(layout.outputs());
  for (std::size_t i = 0; i < layout.elements(); ++i) result[layout.channels_of(i).output].push_back(i);
  return result;
}

void round_layer(Task& task, const InputStatistics& statistics) {
  const WeightLayout& layout = task.layer.layout;
  const std::vector<double> before = *task.layer.weights->constant()->numbers();
  std::vector<double> after = before;
  const auto elements = elements_of_outputs(layout);
  const std::size_t outputs_of_group = elements.size() / static_cast<std::size_t>(layout.groups);
  double signal = 0;
  Eigen::MatrixXf covariance;
  for (std::size_t output = 0; output < elements.size(); ++output) {
    if (output % outputs_of_group == 0) covariance = statistics.covariance(output / outputs_of_group);
    const std::vector<std::size_t>& places = elements[output];
    const double step = task.steps[output];
    Eigen::VectorXd unrounded(statistics.size());
    Eigen::VectorXd rounded(statistics.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      unrounded[static_cast<Eigen::Index>(i)] = task.unrounded[places[i]] / step;
      rounded[static_cast<Eigen::Index>(i)] = before[places[i]];
    }
    Row row(covariance, unrounded, rounded);
    task.result.before += row.cost() * step * step;
    row.improve();
    task.result.after += row.cost() * step * step;
    const Eigen::VectorXf numbers = (unrounded * step).cast<float>();
    signal += static_cast<double>(numbers.dot(covariance * numbers));
    for (std::size_t i = 0; i < places.size(); ++i) after[places[i]] = rounded[static_cast<Eigen::Index>(i)];
  }
  task.result.before = signal > 0 ? std::sqrt(task.result.before / signal) : 0;
  task.result.after = signal > 0 ? std::sqrt(task.result.after / signal) : 0;
  for (std::size_t i = 0; i < after.size(); ++i) task.result.changed += after[i] != before[i] ? 1 : 0;
  Graph& graph = *task.layer.node->graph;
  graph.set_initializer(*task.layer.weights, TensorData::from_numbers(ElementType::i8, layout.dims, after));
}

/// The steps of the output channels; empty where they are of another axis.
std::vector<double> steps_of(const WeightedLayer& layer) {
  const Node& node = *layer.dequantize;
  const auto constant = node.input(1) == nullptr ? std::nullopt : node.input(1)->constant();
  const auto numbers = constant ? constant->numbers() : std::nullopt;
  const auto zero = node.input(2) == nullptr ? std::nullopt : node.input(2)->constant();
  const auto zeros = zero ? zero->numbers() : std::optional(std::vector<double>());
  if (!numbers || node.int_or("block_size", 0) != 0) return {};
  const bool is_positive = std::all_of(numbers->begin(), numbers->end(), [](double step) { return step > 0; });
  const bool is_symmetric =
      node.input(2) == nullptr || (zero && std::all_of(zeros->begin(), zeros->end(), [](double z) { return z == 0; }));
  if (!is_positive || !is_symmetric) return {};
  const std::size_t outputs = layer.layout.outputs();
  if (constant->dims.empty()) return std::vector<double>(outputs, (*numbers)[0]);
  const auto rank = static_cast<std::int64_t>(layer.layout.dims.size());
  const std::int64_t axis = node.int_or("axis", 1);
  const std::int64_t of_outputs = layer.layout.outputs_first ? 0 : 1;
  return (axis + rank) % rank == of_outputs && numbers->size() == outputs ? *numbers : std::vector<double>();
}

Task make_task(const WeightedLayer& layer, const Model& reference) {
  Task task{.layer = layer, .unrounded = {}, .steps = steps_of(layer), .window = window_of(layer), .result = {}};
  task.result.layer = describe(*layer.node);
  task.result.weights = layer.layout.elements();
  const Value* same = reference.graph().find_local(layer.node->output()->name);
  if (same == nullptr || same->producer == nullptr) same = reference.graph().find_local(layer.output().name);
  const auto original =
      same == nullptr || same->producer == nullptr ? std::nullopt : find_weighted_layer(*same->producer);
  if (original && original->dequantize == nullptr && original->layout.dims == layer.layout.dims &&
      original->layout.outputs_first == layer.layout.outputs_first) {
    task.unrounded = *original->weights->constant()->numbers();
  }
  if (layer.node->is("ConvTranspose")) {
    task.result.why_not = "its windows overlap in the output";
  } else if (!layer.owns_weights() || !layer.weights->initializer) {
    task.result.why_not = "its weights are shared";
  } else if (task.unrounded.empty()) {
    task.result.why_not = "the reference has no such layer";
  } else if (task.steps.empty()) {
    task.result.why_not = "its weights have no step for each channel of the output";
  } else if (!task.window) {
    task.result.why_not = "its padding follows from a rule (auto_pad)";
  }
  return task;
}

void round_layers(const std::vector<Task*>& tasks, const Model& quantized, const CalibrationData& data,
                  const RoundOptions& options, const ObserveOptions& observing) {
  std::vector<InputStatistics> statistics;
  std::vector<std::string> tensors;
  for (const Task* task : tasks) {
    statistics.emplace_back(task->layer, *task->window);
    tensors.push_back(task->layer.node->input(0)->name);
  }
  const std::int64_t rows = std::max<std::int64_t>(1, options.rows / samples_of(data, observing));
  observe(quantized, tensors, data, observing, [&](const TensorMap& seen) {
    for (std::size_t i = 0; i < tasks.size(); ++i) statistics[i].add(seen.find(tensors[i])->second, rows);
  });
  for (std::size_t i = 0; i < tasks.size(); ++i) round_layer(*tasks[i], statistics[i]);
}

}  // namespace

std::vector<Rounded> round_adaptively(Model& quantized, const Model& reference, const CalibrationData& data,
                                      const RoundOptions& options) {
  std::vector<Task> tasks;
  for (const WeightedLayer& layer : weighted_layers(quantized)) {
    if (layer.dequantize != nullptr) tasks.push_back(make_task(layer, reference));
  }
  std::vector<std::vector<Task*>> groups;
  std::int64_t bytes = 0;
  for (Task& task : tasks) {
    if (!task.result.why_not.empty()) continue;
    if (groups.empty() || bytes + task.bytes() > options.memory) {
      groups.emplace_back();
      bytes = 0;
    }
    bytes += task.bytes();
    groups.back().push_back(&task);
  }
  const std::int64_t samples = samples_of(data, options.observe);
  const std::int64_t total = samples * static_cast<std::int64_t>(groups.size());
  std::int64_t before = 0;
  ObserveOptions observing = options.observe;
  if (observing.progress) {
    observing.progress = [&](std::int64_t done, std::int64_t /*of_one_run*/) {
      options.observe.progress(before + done, total);
    };
  }
  for (const std::vector<Task*>& group : groups) {
    if (samples != 0) round_layers(group, quantized, data, options, observing);
    before += samples;
  }
  std::vector<Rounded> result;
  for (Task& task : tasks) result.push_back(std::move(task.result));
  return result;
}

}  // namespace graft
