// The report of `bench` about a model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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
  std::string why_sizes;        ///< See VerifyReport::why_sizes.
  std::vector<double> seconds;  ///< The time of each run, in the order of the runs.

  [[nodiscard]] std::size_t runs() const { return seconds.size(); }
  [[nodiscard]] double median_ms() const { return median() * 1e3; }
  [[nodiscard]] double fastest_ms() const { return *std::ranges::min_element(seconds) * 1e3; }
  [[nodiscard]] double slowest_ms() const { return *std::ranges::max_element(seconds) * 1e3; }
  [[nodiscard]] double runs_a_second() const { return 1 / median(); }

  static constexpr auto fields() {
    return std::tuple{
        field("model", &ModelTimes::model, "The file of the model."),
        field("device", &ModelTimes::device, "'cpu'."),
        field("inputs", &ModelTimes::shapes, "The shapes of the inputs, which are synthetic."),
        field("why_sizes", &ModelTimes::why_sizes, "The reason for sizes of inputs that were not given, or empty."),
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

}  // namespace graft::report
