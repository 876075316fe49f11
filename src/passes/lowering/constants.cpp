// Operators that TensorRT cannot compute when the network runs, but whose results follow from constants.
//
//   NonZero(constant)                      becomes   a constant: the places of elements that are not zero
//   Compress(x, condition)                 becomes   Gather(x, indices), where the condition is constant
//   MelWeightMatrix(bins, length, rate)    becomes   a constant: the filters of a mel spectrogram
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "passes/lowering/windows.hpp"

namespace graft::passes {

std::optional<Replacement> lower_non_zero(Site& site) {
  const auto tensor = site.constant(0);
  const auto numbers = tensor ? tensor->numbers() : std::nullopt;
  if (!numbers) return site.no("its input is not a constant");
  std::vector<std::vector<std::int64_t>> along(tensor->dims.size());
  std::size_t place = 0;
  for_each_index(tensor->dims, [&](const std::vector<std::int64_t>& at) {
    if ((*numbers)[place++] == 0) return;
    for (std::size_t axis = 0; axis < at.size(); ++axis) along[axis].push_back(at[axis]);
  });
  std::vector<std::int64_t> all;
  for (const auto& axis : along) all.insert(all.end(), axis.begin(), axis.end());
  const auto rank = static_cast<std::int64_t>(along.size());
  if (rank == 0) return site.no("its input has no axes");
  if (all.empty()) return site.no("its input has no element other than zero");
  Replacement result;
  const std::string table =
      result.constant("places", ints_tensor({rank, static_cast<std::int64_t>(all.size()) / rank}, all));
  result.line(fmt::format("y0 = Identity({})", table));
  result.summary = "a constant";
  return result;
}

std::optional<Replacement> lower_compress(Site& site) {
  const auto condition = site.ints(1);
  if (!condition) return site.no("its condition is not a constant");
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < condition->size(); ++i) {
    if ((*condition)[i] != 0) kept.push_back(static_cast<std::int64_t>(i));
  }
  if (kept.empty()) return site.no("its condition selects no elements");
  Replacement result;
  const std::string which = result.ints("which", kept);
  if (site.node().attribute("axis") != nullptr) {
    result.line(fmt::format("y0 = Gather<axis={}>(x0, {})", site.node().int_or("axis", 0), which));
  } else {
    result.line(fmt::format("line = Reshape(x0, {})", result.ints("line_shape", {-1})));
    result.line(fmt::format("y0 = Gather<axis=0>(line, {})", which));
  }
  result.summary = "Gather with constant indices";
  return result;
}

std::optional<Replacement> lower_mel_weight_matrix(Site& site) {
  std::vector<double> given;
  for (std::size_t i = 0; i < 5; ++i) {
    const auto tensor = site.constant(i);
    const auto number = tensor ? tensor->scalar() : std::nullopt;
    if (!number) return site.no("its inputs are not constants");
    given.push_back(*number);
  }
  const auto bins = static_cast<std::int64_t>(given[0]);
  const auto length = static_cast<std::int64_t>(given[1]);
  const auto rate = given[2];
  const std::int64_t rows = length / 2 + 1;
  if (bins < 1 || length < 1 || rate < 1 || bins > most_constants / rows)
    return site.no(
        "num_mel_bins, dft_length and sample_rate must be at least 1, and the matrix may have at most 16 M elements");
  const auto mel_of = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel_of(given[3]);
  const double step = (mel_of(given[4]) - low) / static_cast<double>(bins + 2);
  std::vector<std::int64_t> edges;
  for (std::int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10.0, (low + static_cast<double>(i) * step) / 2595) - 1);
    edges.push_back(static_cast<std::int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate)));
    if (edges.back() < 0 || edges.back() > rows)
      return site.no("lower_edge_hertz and upper_edge_hertz must lie within the spectrum");
  }
  std::vector<double> matrix(static_cast<std::size_t>(rows * bins), 0);
  const auto set = [&](std::int64_t row, std::int64_t bin, double value) {
    if (row < rows) matrix[static_cast<std::size_t>(row * bins + bin)] = value;
  };
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    const std::int64_t left = edges[static_cast<std::size_t>(bin)];
    const std::int64_t center = edges[static_cast<std::size_t>(bin + 1)];
    const std::int64_t right = edges[static_cast<std::size_t>(bin + 2)];
    if (left == center) set(center, bin, 1);
    for (std::int64_t row = left; left != center && row <= center; ++row) {
      set(row, bin, static_cast<double>(row - left) / static_cast<double>(center - left));
    }
    for (std::int64_t row = center; row < right; ++row) {
      set(row, bin, static_cast<double>(right - row) / static_cast<double>(right - center));
    }
  }
  const auto type = static_cast<onnx::ElementType>(site.node().int_or("output_datatype", 1));
  if (!is_floating_point(type)) return site.no("its output_datatype must be a floating-point type");
  Replacement result;
  const std::string table = result.constant("filters", onnx::TensorData::from_numbers(type, {rows, bins}, matrix));
  result.line(fmt::format("y0 = Identity({})", table));
  result.summary = "a constant";
  return result;
}

}  // namespace graft::passes
