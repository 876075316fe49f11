// DFT of a signal of fixed length: the product with the matrix of the transform.
//
//   before                     after
//   y = DFT(x)  [B, 400, 1]    rows = Reshape(x, [0, 400])
//                              z = MatMul(rows, matrix)   [400, 201 * 2]: cosines and sines
//                              y = Reshape(z, [0, 201, 2])
//
// Real and imaginary parts are next to each other, so one real matrix holds the whole complex product. The inverse has
// the opposite sign and the factor 1 / length. The inverse of a one-sided spectrum, whose other half follows from the
// first, is real.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

struct Transform {
  std::int64_t axis = 0;
  std::int64_t size = 0;    ///< The length of the signal.
  std::int64_t length = 0;  ///< The length of the transform.
  /// The number of signal elements along the axis that the MatMul reads: the size of the axis, cropped to the length of
  /// the transform.
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t parts_in = 1;  ///< 2 if the elements of the signal are complex, otherwise 1.
  std::int64_t parts_out = 2;
  bool inverse = false;
  bool onesided = false;
};

/// Returns the matrix of the transform, row-major [input element, real or imaginary part, output element, real or
/// imaginary part].
std::vector<double> matrix_of(const Transform& t) {
  std::vector<double> matrix;
  matrix.reserve(static_cast<std::size_t>(t.rows * t.parts_in * t.columns * t.parts_out));
  const double sign = t.inverse ? 1 : -1;
  for (std::int64_t row = 0; row < t.rows; ++row) {
    // In a one-sided spectrum each number stands for two, except the first and, if the length is even, the last.
    const bool is_twice = t.parts_out == 1 && row != 0 && 2 * row != t.length;
    const double factor = (is_twice ? 2.0 : 1.0) / (t.inverse ? static_cast<double>(t.length) : 1.0);
    for (std::int64_t part = 0; part < t.parts_in; ++part) {
      for (std::int64_t column = 0; column < t.columns; ++column) {
        // The product is reduced before it is rounded, because it can be large.
        const auto turns = static_cast<double>((row * column) % t.length) / static_cast<double>(t.length);
        const double angle = sign * 2 * std::numbers::pi * turns;
        const bool is_ignored = t.parts_out == 1 && !is_twice && part == 1;  // the imaginary part of the first and the
                                                                             // last number
        const double real = part == 0 ? std::cos(angle) : -std::sin(angle);
        const double imaginary = part == 0 ? std::sin(angle) : std::cos(angle);
        matrix.push_back(is_ignored ? 0 : factor * real);
        if (t.parts_out == 2) matrix.push_back(factor * imaginary);
      }
    }
  }
  return matrix;
}

/// Returns the axis of the transform, negative if it counts from the end. Returns nothing, and stores the reason with
/// site.no(), if the axis is not a constant.
std::optional<std::int64_t> read_axis(Site& site) {
  if (site.opset() < 20) return site.node().int_or("axis", 1);
  if (!site.has_input(2)) return -2;
  const auto given = site.ints(2);
  if (!given || given->size() != 1) return site.no("its axis is not a constant");
  return given->front();
}

/// Reads the sizes and attributes of a DFT. Returns nothing, and stores the reason with site.no(), if a length is
/// dynamic or the node is invalid.
std::optional<Transform> read_transform(Site& site) {
  const Shape* shape = site.shape(0);
  if (shape == nullptr || !site.is_real(0))
    return site.no("its signal must have a known rank and the type f32, f16 or bf16");
  const auto rank = static_cast<std::int64_t>(shape->size());
  const auto given_axis = read_axis(site);
  if (!given_axis) return std::nullopt;
  const std::int64_t axis = *given_axis < 0 ? *given_axis + rank : *given_axis;
  if (rank < 2 || axis < 0 || axis > rank - 2)
    return site.no(
        "its axis must be an axis of the signal, and not the last one, which holds the real and imaginary parts");
  const auto size = site.size(0, axis);
  const auto parts = site.size(0, rank - 1);
  if (!size || !parts) return site.no_size("the length of its signal is dynamic");

  Transform t{.axis = axis, .size = *size};
  t.inverse = site.node().int_or("inverse", 0) != 0;
  t.onesided = site.node().int_or("onesided", 0) != 0;
  const bool to_real = t.inverse && t.onesided;
  t.length = to_real ? 2 * (*size - 1) : *size;
  if (site.has_input(1)) {
    const auto given = site.ints(1);
    if (!given || given->size() != 1) return site.no("its input dft_length is not a constant");
    t.length = given->front();
  }
  if (t.length < 1 || *size < 1) return site.no("the length of its signal and of its transform must be at least 1");
  t.rows = std::min(*size, to_real ? t.length / 2 + 1 : t.length);
  t.columns = t.onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  t.parts_in = *parts;
  t.parts_out = to_real ? 1 : 2;
  return t;
}

}  // namespace

std::optional<Replacement> lower_dft(Site& site) {
  const auto transform = read_transform(site);
  if (!transform) return std::nullopt;
  const Transform& t = *transform;
  const auto rank = static_cast<std::int64_t>(site.shape(0)->size());
  const std::int64_t inner = t.rows * t.parts_in;
  const std::int64_t outer = t.columns * t.parts_out;
  if (inner > most_constants / outer)
    return site.no(fmt::format("its matrix would have {} x {} elements; at most {} elements are supported", inner,
                               outer, most_constants));

  Replacement result;
  const std::string matrix = result.constant("matrix", f32_tensor({inner, outer}, matrix_of(t)));
  std::string x = result.in_f32("x0", site.type(0));
  const auto step = [&](const char* name, const std::string& text) {
    result.line(fmt::format("{} = {}", name, text));
    x = name;
  };
  if (t.rows < t.size) {
    const std::string from = result.ints("from", {0});
    const std::string to = result.ints("to", {t.rows});
    const std::string along = result.ints("along", {t.axis});
    step("used", fmt::format("Slice({}, {}, {}, {})", x, from, to, along));
  }
  // The axis is moved next to the parts, and back after the product.
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<std::size_t>(t.axis)], order[static_cast<std::size_t>(rank - 2)]);
  const bool moves = t.axis != rank - 2;
  if (moves) step("beside", fmt::format("Transpose<perm={}>({})", order, x));
  std::vector<std::int64_t> rows(static_cast<std::size_t>(rank - 2), 0);
  std::vector<std::int64_t> spectrum = rows;
  if (rank == 2) rows.push_back(1);
  rows.push_back(inner);
  spectrum.insert(spectrum.end(), {t.columns, t.parts_out});
  const std::string flat = result.ints("rows", rows);
  const std::string whole = result.ints("spectrum", spectrum);
  step("flat", fmt::format("Reshape({}, {})", x, flat));
  step("product", fmt::format("MatMul({}, {})", x, matrix));
  std::string last = fmt::format("Reshape({}, {})", x, whole);
  if (moves) {
    step("parts", last);
    last = fmt::format("Transpose<perm={}>({})", order, x);
  }
  result.give("y0", site.type(0), last);
  // OpenVINO 2026.4.1 uses axis 1 whatever the axis is, accepts no length beyond the signal's, and is a hundred times
  // farther from the exact result than the product.
  result.by_definition =
      "by definition: the transform is this sum of products; the DFT of the CPU engine is wrong along most axes and "
      "less exact, so it cannot verify this; the lowering is tested with results of ONNX's own tests and of ONNX "
      "Runtime";
  result.summary =
      fmt::format("MatMul with the {} x {} matrix of the {}transform", inner, outer, t.inverse ? "inverse " : "");
  return result;
}

}  // namespace graft::passes
