// The reports of `bench`: the times of a model, and the times of operators.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "graft/report/field.hpp"

namespace graft::report {

/// The times of a model's runs on the CPU. At least one run was timed.
struct ModelTimes {
  std::string model;
  std::string device = "cpu";
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes;
  std::string why_sizes;        ///< Why these input sizes were chosen. See VerifyReport::why_sizes.
  std::vector<double> seconds;  ///< The time of each run, in the order of the runs.

  [[nodiscard]] std::size_t runs() const { return seconds.size(); }
  [[nodiscard]] double median_ms() const { return median() * 1e3; }
  [[nodiscard]] double fastest_ms() const { return *std::ranges::min_element(seconds) * 1e3; }
  [[nodiscard]] double slowest_ms() const { return *std::ranges::max_element(seconds) * 1e3; }
  [[nodiscard]] double runs_a_second() const { return 1 / median(); }

  static constexpr Schema schema{"graft bench", 1, "Timed operators, or a model's runs."};
  static constexpr auto fields() {
    return std::tuple{
        field("model", &ModelTimes::model, "The file of the model."),
        field("device", &ModelTimes::device, "Always 'cpu'."),
        field("inputs", &ModelTimes::shapes, "The shapes of the inputs, which are synthetic."),
        field("why_sizes", &ModelTimes::why_sizes,
              "Why these sizes were chosen for inputs whose sizes were not specified, or empty."),
        field("runs", &ModelTimes::runs, "The number of runs."),
        field("median_ms", &ModelTimes::median_ms, "The median of the times in milliseconds."),
        field("fastest_ms", &ModelTimes::fastest_ms, "The shortest time in milliseconds."),
        field("slowest_ms", &ModelTimes::slowest_ms, "The longest time in milliseconds."),
        field("runs_a_second", &ModelTimes::runs_a_second, "The number of runs per second at the median.")};
  }

 private:
  [[nodiscard]] double median() const {
    std::vector<double> sorted = seconds;
    std::ranges::sort(sorted);
    return sorted[sorted.size() / 2];
  }
};

/// A tensor of a timed case.
struct CaseTensor {
  std::string dtype;
  std::string layout;
  std::string port;
  std::vector<std::int64_t> shape;

  static constexpr auto fields() {
    return std::tuple{field("dtype", &CaseTensor::dtype, "The type of the elements, such as 'f16'."),
                      field("layout", &CaseTensor::layout, "The layout in memory, such as 'linear'."),
                      field("port", &CaseTensor::port, "The input or output of the operator."),
                      field("shape", &CaseTensor::shape, "The sizes.")};
  }
};

/// The speed that a kernel has to reach on a case; 0 means that the case sets no such target.
struct SpeedToReach {
  double of_copy = 0;
  double of_eager = 0;

  static constexpr auto fields() {
    return std::tuple{
        field("of_copy", &SpeedToReach::of_copy,
              "The memory traffic per second, as a fraction of the bandwidth of a copy; 0: no target."),
        field("of_eager", &SpeedToReach::of_eager, "The speed as a fraction of the speed of PyTorch; 0: no target.")};
  }
};

/// The times of one implementation on a case of an operator.
struct PeerTimes {
  /// A figure of an implementation. The outer optional is empty if the implementation failed, and the inner one is
  /// empty if the figure does not apply.
  using Figure = std::optional<std::optional<double>>;

  std::optional<std::string> failed = {};
  Figure us = {};
  Figure warm_us = {};
  Figure of_copy = {};
  Figure tflop_s = {};

  static constexpr auto failed_field() {
    return field_if_any("failed", &PeerTimes::failed, "Why the case did not run, in place of the measurements.");
  }
  static constexpr auto of_copy_field() {
    return field_if_any("of_copy", &PeerTimes::of_copy,
                        "The memory traffic per second, as a fraction of the bandwidth of a copy.");
  }
  static constexpr auto tflop_s_field() {
    return field_if_any("tflop_s", &PeerTimes::tflop_s,
                        "The operations per second in 10^12; null where memory sets the limit.");
  }
  static constexpr auto us_field() {
    return field_if_any("us", &PeerTimes::us, "The median time with a cold cache in microseconds.");
  }
  static constexpr auto warm_us_field() {
    return field_if_any("warm_us", &PeerTimes::warm_us,
                        "The median time with a warm cache in microseconds; null for large tensors.");
  }
  static constexpr auto fields() {
    return std::tuple{failed_field(), of_copy_field(), tflop_s_field(), us_field(), warm_us_field()};
  }
};

/// The times of Graft's kernel, and of the implementations it is compared with, on a case of an operator.
struct CaseTimes : PeerTimes {
  JsonText attributes = {"{}"};
  std::int64_t bytes = 0;
  bool choose_variant = false;
  std::optional<double> difference = {};
  std::string dtype = {};
  std::int64_t index = 0;
  std::vector<CaseTensor> inputs = {};
  std::vector<std::string> missed = {};
  std::vector<std::string> misses = {};
  std::string name = {};
  double operations = 0;
  std::string op = {};
  std::vector<CaseTensor> outputs = {};
  std::map<std::string, PeerTimes, std::less<>> peers = {};
  double seconds = 0;
  SpeedToReach to_reach = {};
  std::optional<std::string> variant = {};

  static constexpr auto fields() {
    return std::tuple{
        field("attributes", &CaseTimes::attributes, "The attributes of the operator."),
        field("bytes", &CaseTimes::bytes,
              "The memory traffic in bytes: every input is read once and every output is written once."),
        field("choose_variant", &CaseTimes::choose_variant,
              "Whether the fastest variant is timed, as TensorRT chooses it."),
        field("difference", &CaseTimes::difference,
              "The Euclidean norm of the difference from PyTorch's result, divided by the norm of PyTorch's result; "
              "null without a peer."),
        field("dtype", &CaseTimes::dtype, "The type of the first input."),
        failed_field(),
        field("index", &CaseTimes::index, "The position in the list of cases."),
        field("inputs", &CaseTimes::inputs, "The inputs."),
        field("missed", &CaseTimes::missed, "The names of the targets that were missed."),
        field("misses", &CaseTimes::misses, "One sentence for each target that was missed."),
        field("name", &CaseTimes::name, "The name of the case: operator, type, shapes and attributes."),
        of_copy_field(),
        field("operations", &CaseTimes::operations, "The number of operations; 0 where memory sets the limit."),
        field("op", "operator", &CaseTimes::op, "The operator."),
        field("outputs", &CaseTimes::outputs, "The outputs."),
        field("peers", &CaseTimes::peers, "The times of 'eager', 'compiled' and 'onnxruntime'."),
        field("seconds", &CaseTimes::seconds, "The time of the measurement."),
        tflop_s_field(),
        field("to_reach", &CaseTimes::to_reach, "The required speed."),
        us_field(),
        field_if_any("variant", &CaseTimes::variant, "The variant of the kernel."),
        warm_us_field(),
    };
  }
};

/// The speed of an operator relative to the fastest other implementation, on random problems.
struct RandomSpeed {
  std::int64_t below = 0;
  std::int64_t cases = 0;
  double geometric_mean = 0;
  double mean_to_reach = 0;
  std::string op = {};
  bool reaches = false;
  double worst = 0;
  std::string worst_case = {};
  std::string worst_peer = {};
  double worst_to_reach = 0;

  static constexpr auto fields() {
    return std::tuple{
        field("below", &RandomSpeed::below, "The number of cases below `worst_to_reach`."),
        field("cases", &RandomSpeed::cases, "The number of cases with a peer."),
        field("geometric_mean", &RandomSpeed::geometric_mean,
              "The geometric mean of the fastest peer's cold time divided by the operator's."),
        field("mean_to_reach", &RandomSpeed::mean_to_reach, "The required geometric mean."),
        field("op", "operator", &RandomSpeed::op, "The operator."),
        field("reaches", &RandomSpeed::reaches, "Whether the mean and the worst case are reached."),
        field("worst", &RandomSpeed::worst, "The smallest ratio."),
        field("worst_case", &RandomSpeed::worst_case, "The name of the case with this ratio."),
        field("worst_peer", &RandomSpeed::worst_peer, "The fastest peer in this case."),
        field("worst_to_reach", &RandomSpeed::worst_to_reach, "The required ratio of every case."),
    };
  }
};

/// The summary of the measurements on random problems.
struct RandomTimes {
  std::int64_t cases = 0;
  std::vector<RandomSpeed> operators = {};
  std::int64_t seed = 0;

  static constexpr auto fields() {
    return std::tuple{field("cases", &RandomTimes::cases, "The number of random problems for each operator."),
                      field("operators", &RandomTimes::operators, "The operators for which a peer was timed."),
                      field("seed", &RandomTimes::seed, "The seed of the problems.")};
  }
};

/// The times of operators, as python/graft/bench measures them.
struct OperatorTimes {
  std::optional<double> copy_gb_s = {};
  std::string device = {};
  std::optional<double> empty_kernel_us = {};
  std::string graft = {};
  std::vector<std::string> left_out = {};
  std::optional<std::map<std::string, std::optional<double>, std::less<>>> matmul_tflop_s = {};
  std::optional<std::vector<std::string>> missing = {};
  std::string name = {};
  std::optional<std::string> onnxruntime = {};
  std::optional<RandomTimes> random = {};
  std::vector<CaseTimes> results = {};
  double seconds = 0;
  std::optional<std::int64_t> threads = {};
  std::optional<std::string> torch = {};
  std::vector<std::string> wrong = {};

  [[nodiscard]] bool is_on_gpu() const { return device == "cuda"; }

  static constexpr auto fields() {
    return std::tuple{
        field("copy_gb_s", &OperatorTimes::copy_gb_s, "The bandwidth of a copy in GB/s."),
        field("device", &OperatorTimes::device, "'cuda' or 'cpu'."),
        field("empty_kernel_us", &OperatorTimes::empty_kernel_us,
              "The time of an empty kernel in microseconds; null on the CPU."),
        field("graft", &OperatorTimes::graft, "The version of Graft."),
        field("left_out", &OperatorTimes::left_out, "The names of the cases that the time limit left out."),
        field_if_any(
            "matmul_tflop_s", &OperatorTimes::matmul_tflop_s,
            "On a GPU: the speed of a multiplication of matrices with 8192 rows and columns in PyTorch, by type."),
        field_if_any("missing", &OperatorTimes::missing, "On the CPU: the peers that are not installed."),
        field("name", &OperatorTimes::name, "The name of the GPU or of the processor."),
        field_if_any("onnxruntime", &OperatorTimes::onnxruntime, "The version of ONNX Runtime, if it was timed."),
        field_if_any("random", &OperatorTimes::random, "The summary of random problems, if they were timed."),
        field("results", &OperatorTimes::results, "The cases, in the order in which they were timed."),
        field("seconds", &OperatorTimes::seconds, "The time of the whole run."),
        field_if_any("threads", &OperatorTimes::threads, "On the CPU: the number of threads."),
        field_if_any("torch", &OperatorTimes::torch, "The version of PyTorch, if it was timed."),
        field("wrong", &OperatorTimes::wrong,
              "The names of the cases that failed or whose result differs from the result of the peer."),
    };
  }
};

}  // namespace graft::report
