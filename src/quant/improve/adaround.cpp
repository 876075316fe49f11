// Computes the cost of a choice of roundings from the covariance of a layer's inputs, which is estimated from sampled
// rows.
#include "quant/improve/adaround.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "quant/plan/weighted_layers.hpp"

namespace graft::quant {
namespace {

using Sizes = std::vector<std::int64_t>;
/// A matrix whose rows are sampled input vectors of a layer.
using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// Returns the multi-dimensional index of element `index` of a row-major tensor of these sizes.
Sizes coordinates_of(std::int64_t index, const Sizes& sizes) {
  Sizes result(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;) {
    result[i] = index % sizes[i];
    index /= sizes[i];
  }
  return result;
}

/// The window of a convolution, one entry per spatial axis (pads: begin of all axes, then end). All lists are empty for
/// a matrix product, whose input vectors are rows of the tensor.
struct Window {
  Sizes kernel;
  Sizes strides;
  Sizes dilations;
  Sizes pads;
};

/// Accumulates the sums and the covariance of a layer's input vectors, one matrix per group.
class InputStatistics {
 public:
  InputStatistics(const WeightedLayer& layer, Window window)
      : window_(std::move(window)),
        groups_(layer.layout.groups),
        size_(static_cast<std::int64_t>(layer.layout.elements() / layer.layout.outputs())) {
    covariance_.assign(static_cast<std::size_t>(groups_), Eigen::MatrixXf::Zero(size_, size_));
    sums_.assign(static_cast<std::size_t>(groups_), Eigen::VectorXd::Zero(size_));
  }

  /// Adds at most `most_rows` input vectors of the tensor `x`, sampled at random positions that are spread evenly over
  /// it.
  void add(const onnx::TensorData& x, std::int64_t most_rows) {
    const Sizes places = places_of(x);
    const std::int64_t total = product(places);
    const std::int64_t taken = std::min(total, most_rows);
    Rows rows(taken, size_);
    std::vector<std::int64_t> chosen(static_cast<std::size_t>(taken));
    for (std::int64_t i = 0; i < taken; ++i) {
      const std::int64_t begin = i * total / taken;
      const std::int64_t end = (i + 1) * total / taken;
      chosen[static_cast<std::size_t>(i)] = begin + scatter(end - begin);
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
    // Without damping, weights that the sampled rows do not distinguish would be rounded arbitrarily.
    constexpr float damping = 0.01F;
    result.diagonal().array() += damping * result.diagonal().mean();
    return result;
  }

 private:
  /// Returns the sizes of the index space of input vectors: {images, output height, output width ...} for a
  /// convolution, {rows} for a matrix product.
  [[nodiscard]] Sizes places_of(const onnx::TensorData& x) const {
    if (window_.kernel.empty()) return {x.element_count() / size_};
    Sizes places = {x.dims[0]};
    const std::size_t axes = window_.kernel.size();
    for (std::size_t i = 0; i < axes; ++i) {
      const std::int64_t reach = window_.dilations[i] * (window_.kernel[i] - 1) + 1;
      places.push_back((x.dims[i + 2] + window_.pads[i] + window_.pads[i + axes] - reach) / window_.strides[i] + 1);
    }
    return places;
  }

  /// Returns a pseudorandom index from 0 to `count` - 1. The indices follow multiples of the golden ratio, which do not
  /// align with rows or planes and are the same in each run.
  std::int64_t scatter(std::int64_t count) {
    constexpr std::uint32_t golden_ratio = 2654435769U;  // 2^32 divided by the golden ratio.
    scattered_ += golden_ratio;
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(scattered_) * static_cast<std::uint64_t>(count)) >>
                                     32U);
  }

  void fill(const onnx::TensorData& x, const Sizes& place, std::int64_t group, float* row) const {
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
  std::vector<Eigen::MatrixXf> covariance_;  // the sums of products are in the lower half
  std::vector<Eigen::VectorXd> sums_;
  std::int64_t count_ = 0;
  std::uint32_t scattered_ = 0;
};

std::optional<Window> window_of(const WeightedLayer& layer) {
  const onnx::Node& node = *layer.node;
  if (!node.is("Conv")) return Window{};
  const std::size_t axes = layer.axes_after_channels();
  if (node.string_or("auto_pad", "NOTSET") != "NOTSET") return std::nullopt;
  return Window{.kernel = Sizes(layer.layout.dims.begin() + 2, layer.layout.dims.end()),
                .strides = node.ints("strides").value_or(Sizes(axes, 1)),
                .dilations = node.ints("dilations").value_or(Sizes(axes, 1)),
                .pads = node.ints("pads").value_or(Sizes(2 * axes, 0))};
}

/// A layer to be rounded, with its unrounded weights and its result.
struct Task {
  WeightedLayer layer;
  std::vector<double> unrounded;
  std::vector<double> steps;  ///< The quantization step of each output channel.
  std::optional<Window> window;
  Rounded result;

  [[nodiscard]] std::int64_t bytes() const {
    const auto size = static_cast<std::int64_t>(layer.layout.elements() / layer.layout.outputs());
    return size * size * layer.layout.groups * static_cast<std::int64_t>(sizeof(float));
  }
};

/// The integers below and above a weight, in quantization steps, to which it can be rounded.
struct Choice {
  double low = 0;
  double high = 0;
};

Choice choice_of(double unrounded) {
  constexpr double most = 127;
  const double low = std::clamp(std::floor(unrounded), -most, most);
  return {.low = low, .high = std::clamp(std::ceil(unrounded), -most, most)};
}

/// The weights of one output channel, in quantization steps, while their rounding is optimized.
class Column {
 public:
  /// `unrounded` and `rounded` are the weights in quantization steps; `slope` is the covariance times (rounded -
  /// unrounded).
  Column(const Eigen::MatrixXf& covariance, const Eigen::VectorXd& unrounded, Eigen::VectorXd rounded,
         Eigen::VectorXf slope)
      : covariance_(covariance), unrounded_(unrounded), rounded_(std::move(rounded)), slope_(std::move(slope)) {
    change_.resize(rounded_.size());
    for (Eigen::Index i = 0; i < rounded_.size(); ++i) {
      const Choice choice = choice_of(unrounded_[i]);
      change_[i] = static_cast<float>((rounded_[i] == choice.low ? choice.high : choice.low) - rounded_[i]);
    }
  }

  [[nodiscard]] const Eigen::VectorXd& rounded() const { return rounded_; }
  [[nodiscard]] double cost() const { return static_cast<double>((rounded_ - unrounded_).cast<float>().dot(slope_)); }

  /// Repeatedly flips the rounding direction of the weight whose flip reduces the squared output error most, until no
  /// flip reduces it.
  void improve() {
    // A gain smaller than the rounding error of the sums does not count.
    constexpr float negligible = 1e-5F;
    const Eigen::ArrayXf own = change_.array().square() * covariance_.diagonal().array();
    // Each change lowers the cost, apart from rounding errors; the limit guarantees that the loop ends.
    for (Eigen::Index flips = 0; flips < 4 * rounded_.size(); ++flips) {
      Eigen::Index best = 0;
      const float gain = (2 * change_.array() * slope_.array() + own).minCoeff(&best);
      if (gain >= -negligible * own[best]) return;
      rounded_[best] += static_cast<double>(change_[best]);
      slope_ += change_[best] * covariance_.col(best);
      change_[best] = -change_[best];
    }
  }

 private:
  const Eigen::MatrixXf& covariance_;
  const Eigen::VectorXd& unrounded_;
  Eigen::VectorXd rounded_;
  Eigen::VectorXf slope_;
  Eigen::VectorXf change_;  // The change of each weight if its rounding direction is changed.
};

/// Returns, for each output channel, the row-major indices of its weights.
std::vector<std::vector<std::size_t>> elements_of_outputs(const WeightLayout& layout) {
  std::vector<std::vector<std::size_t>> result(layout.outputs());
  layout.for_each([&](std::size_t i, std::size_t, std::size_t output) { result[output].push_back(i); });
  return result;
}

/// Optimizes the rounding of the output channels of one group, starting at channel `first`, and writes the rounded
/// values to `weights`. Adds to the statistics in `task.result` and to `signal`, the power of the outputs.
void round_group(Task& task, const Eigen::MatrixXf& covariance, std::size_t first,
                 const std::vector<std::vector<std::size_t>>& elements, std::vector<double>& weights, double& signal) {
  const std::size_t outputs = elements.size() / static_cast<std::size_t>(task.layer.layout.groups);
  Eigen::MatrixXd unrounded(covariance.rows(), static_cast<Eigen::Index>(outputs));
  Eigen::MatrixXd rounded(unrounded.rows(), unrounded.cols());
  Eigen::VectorXf steps(unrounded.cols());
  for (Eigen::Index column = 0; column < unrounded.cols(); ++column) {
    const std::size_t output = first + static_cast<std::size_t>(column);
    steps[column] = static_cast<float>(task.steps[output]);
    for (Eigen::Index i = 0; i < unrounded.rows(); ++i) {
      const std::size_t place = elements[output][static_cast<std::size_t>(i)];
      unrounded(i, column) = task.unrounded[place] / task.steps[output];
      const Choice choice = choice_of(unrounded(i, column));
      rounded(i, column) = std::clamp(weights[place], choice.low, choice.high);
    }
  }
  const Eigen::MatrixXf slopes = covariance * (rounded - unrounded).cast<float>();
  const Eigen::MatrixXf originals = unrounded.cast<float>() * steps.asDiagonal();
  signal += static_cast<double>((covariance * originals).cwiseProduct(originals).sum());
  for (Eigen::Index i = 0; i < unrounded.cols(); ++i) {
    const std::size_t output = first + static_cast<std::size_t>(i);
    const Eigen::VectorXd exact = unrounded.col(i);
    Column column(covariance, exact, rounded.col(i), slopes.col(i));
    const double square = task.steps[output] * task.steps[output];
    task.result.before += column.cost() * square;
    column.improve();
    task.result.after += column.cost() * square;
    for (std::size_t k = 0; k < elements[output].size(); ++k) {
      weights[elements[output][k]] = column.rounded()[static_cast<Eigen::Index>(k)];
    }
  }
}

void round_layer(Task& task, const InputStatistics& statistics) {
  const WeightLayout& layout = task.layer.layout;
  const std::vector<double> before = *task.layer.weights->constant()->numbers();
  std::vector<double> after = before;
  const auto elements = elements_of_outputs(layout);
  const auto groups = static_cast<std::size_t>(layout.groups);
  double signal = 0;
  for (std::size_t group = 0; group < groups; ++group) {
    round_group(task, statistics.covariance(group), group * elements.size() / groups, elements, after, signal);
  }
  task.result.before = signal > 0 ? std::sqrt(std::max(task.result.before, 0.0) / signal) : 0;
  task.result.after = signal > 0 ? std::sqrt(std::max(task.result.after, 0.0) / signal) : 0;
  for (std::size_t i = 0; i < after.size(); ++i) task.result.changed += after[i] != before[i] ? 1 : 0;
  onnx::Graph& graph = *task.layer.node->graph;
  graph.set_initializer(*task.layer.weights, onnx::TensorData::from_numbers(onnx::ElementType::i8, layout.dims, after));
}

/// Returns the quantization step of each output channel. Returns an empty list if the steps are not constant and
/// positive, if there is neither one per channel nor one for all, or if a zero point is not 0.
std::vector<double> steps_of(const WeightedLayer& layer) {
  const onnx::Node& node = *layer.dequantize;
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

Task make_task(const WeightedLayer& layer, const onnx::Model& reference, std::int64_t memory) {
  Task task{.layer = layer, .unrounded = {}, .steps = steps_of(layer), .window = window_of(layer), .result = {}};
  task.result.layer = onnx::describe(*layer.node);
  task.result.weights = layer.layout.elements();
  const onnx::Value* same = reference.graph().find_local(layer.node->output()->name);
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
    task.result.why_not = "its weights do not have a scale for each output channel";
  } else if (!task.window) {
    task.result.why_not = "its padding is not explicit (auto_pad)";
  } else if (task.bytes() > memory) {
    task.result.why_not =
        fmt::format("the covariance of its inputs needs {} bytes, and the limit is {}", task.bytes(), memory);
  }
  return task;
}

void round_layers(const runtime::Engine& engine, const std::vector<Task*>& tasks, const onnx::Model& quantized,
                  const CalibrationData& data, const RoundOptions& options, const ObserveOptions& observing) {
  std::vector<InputStatistics> statistics;
  std::vector<std::string> tensors;
  for (const Task* task : tasks) {
    statistics.emplace_back(task->layer, *task->window);
    tensors.push_back(task->layer.node->input(0)->name);
  }
  const std::int64_t rows = std::max<std::int64_t>(1, options.rows / samples_of(data, observing));
  observe(engine, quantized, tensors, data, observing, [&](const runtime::TensorMap& seen) {
    for (std::size_t i = 0; i < tasks.size(); ++i) statistics[i].add(seen.find(tensors[i])->second, rows);
  });
  for (std::size_t i = 0; i < tasks.size(); ++i) round_layer(*tasks[i], statistics[i]);
}

}  // namespace

std::vector<Rounded> adaround(const runtime::Engine& engine, onnx::Model& quantized, const onnx::Model& reference,
                              const CalibrationData& data, const RoundOptions& options) {
  std::vector<Task> tasks;
  for (const WeightedLayer& layer : weighted_layers(quantized)) {
    if (layer.dequantize != nullptr) tasks.push_back(make_task(layer, reference, options.memory));
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
    if (samples != 0) round_layers(engine, group, quantized, data, options, observing);
    before += samples;
  }
  std::vector<Rounded> result;
  for (Task& task : tasks) result.push_back(std::move(task.result));
  return result;
}

}  // namespace graft::quant
