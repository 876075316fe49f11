// Converts diagonals, segments and spectra to other operators, because ONNX has no operator for them, or one that
// TensorRT lacks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "import/messages.hpp"
#include "import/tensorflow/node_converter.hpp"

namespace graft::tensorflow {
namespace {

/// Returns the indices 0, 1, 2 ... along an axis of x, as a column or a row. `axis_from_end` is 1 for the last axis and
/// 2 for the one before it.
onnx::Value* numbers_along(NodeConverter& node, onnx::Value* x, std::int64_t axis_from_end, bool is_column) {
  const std::size_t rank = node.known_rank(x, "its last axes are a matrix");
  const auto from_end = static_cast<std::size_t>(axis_from_end);
  if (rank < from_end) {
    node.fail(fmt::format("'{}' has {} dimensions; it must have at least {}", x->name, rank, from_end));
  }
  const std::size_t axis = rank - from_end;
  const auto at = static_cast<std::int64_t>(axis);
  onnx::Value* size = nullptr;
  if ((*x->shape)[axis].is_constant()) {
    size = node.scalar_of(static_cast<double>((*x->shape)[axis].value()), onnx::ElementType::i64);
  } else {
    size = node.reshape(node.slice_1d(node.shape_of(x), at, at + 1), {});
  }
  onnx::Value* range =
      node.add("Range", {node.scalar_of(0, onnx::ElementType::i64), size, node.scalar_of(1, onnx::ElementType::i64)});
  return node.add("Unsqueeze", {range, node.ints_of({is_column ? 1 : 0})});
}

/// Throws Error unless the operator only uses the main diagonal. Newer versions of the operators support several
/// diagonals, which input `k_input` selects.
void check_main_diagonal(NodeConverter& node, std::size_t k_input) {
  if (!node.op().ends_with("V2") && !node.op().ends_with("V3")) return;
  const Ints k = node.known_ints(k_input, "the diagonals");
  for (const std::int64_t each : k) {
    if (each != 0) node.fail(fmt::format("the diagonal is {}; only the main diagonal, 0, is supported", each));
  }
}

void diagonal_matrix(NodeConverter& node) {
  check_main_diagonal(node, 1);
  if (node.input_count() > 3) {
    const auto rows = node.ints(2);
    const auto columns = node.ints(3);
    if (!rows || !columns || rows->at(0) != -1 || columns->at(0) != -1) {
      node.fail(
          "num_rows (input 2) and num_cols (input 3) must be the constant -1, because only matrices that are as large "
          "as their diagonal are supported");
    }
  }
  onnx::Value* x = node.input(0);
  onnx::Value* is_diagonal = node.add("Equal", {numbers_along(node, x, 1, true), numbers_along(node, x, 1, false)});
  onnx::Value* rest = node.input_count() > 4 ? node.input(4) : node.scalar_of(0, node.type(0));
  node.give(node.add("Where", {is_diagonal, node.add("Unsqueeze", {x, node.ints_of({-1})}), rest}));
}

onnx::Value* on_diagonal(NodeConverter& node, onnx::Value* x) {
  return node.add("Equal", {numbers_along(node, x, 2, true), numbers_along(node, x, 1, false)});
}

void diagonal_part(NodeConverter& node) {
  check_main_diagonal(node, 1);
  onnx::Value* x = node.input(0);
  const std::size_t rank = node.known_rank(x, "its last axes are a matrix");
  if (rank < 2) node.fail(fmt::format("the input has {} dimensions; it must have at least 2", rank));
  const Dim& rows = (*x->shape)[rank - 2];
  const Dim& columns = (*x->shape)[rank - 1];
  if (rows != columns) {
    if (!rows.is_constant() || !columns.is_constant()) {
      node.fail("the shape of its matrices is dynamic; " + give_shapes());
    }
    const std::int64_t size = std::min(rows.value(), columns.value());
    x = node.add("Slice", {x, node.ints_of({0, 0}), node.ints_of({size, size}), node.ints_of({-2, -1})});
  }
  onnx::Value* alone = node.add("Where", {on_diagonal(node, x), x, node.scalar_of(0, node.type(0))});
  node.give(node.add("ReduceSum", {alone, node.ints_of({-1})}, {{"keepdims", std::int64_t{0}}}));
}

void set_diagonal(NodeConverter& node) {
  check_main_diagonal(node, 2);
  onnx::Value* x = node.input(0);
  const std::size_t rank = node.known_rank(x, "its last axes are a matrix");
  if (rank < 2 || (*x->shape)[rank - 2] != (*x->shape)[rank - 1]) {
    node.fail(
        fmt::format("'{}' has the shape {}; the last two dimensions must be equal", x->name, to_string(*x->shape)));
  }
  onnx::Value* diagonal = node.add("Unsqueeze", {node.input(1), node.ints_of({-1})});
  node.give(node.add("Where", {on_diagonal(node, x), diagonal, x}));
}

void band_part(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  onnx::Value* row = numbers_along(node, x, 2, true);
  onnx::Value* column = numbers_along(node, x, 1, false);
  onnx::Value* kept = nullptr;
  const auto limit = [&](std::int64_t most, onnx::Value* a, onnx::Value* b) {  // a - b <= most
    if (most < 0) return;
    onnx::Value* is_near = node.add(
        "LessOrEqual", {node.add("Sub", {a, b}), node.scalar_of(static_cast<double>(most), onnx::ElementType::i64)});
    kept = kept == nullptr ? is_near : node.add("And", {kept, is_near});
  };
  limit(node.known_int(1, "the lower diagonals"), row, column);
  limit(node.known_int(2, "the upper diagonals"), column, row);
  node.give(kept == nullptr ? node.add("Identity", {x})
                            : node.add("Where", {kept, x, node.cast(node.scalar_of(0, node.type(0)), node.type(0))}));
}

// ---- Segments

/// Returns the sum of the rows of each of `count` segments; `segments` contains the segment of each row. If `counts` is
/// true, returns the number of rows of each segment instead.
onnx::Value* summed(NodeConverter& node, onnx::Value* data, onnx::Value* segments, onnx::Value* count, bool counts) {
  onnx::Value* tuples = node.add("Unsqueeze", {segments, node.ints_of({-1})});
  if (counts) data = node.add("Expand", {node.scalar_of(1, *data->type), node.shape_of(segments)});
  onnx::Value* dims = count;
  const std::size_t rank = node.known_rank(data, "its rows are summed");
  const std::size_t named = node.known_rank(segments, "it assigns rows to segments");
  if (rank > named) {
    dims = node.concat(
        {count, node.slice_1d(node.shape_of(data), static_cast<std::int64_t>(named), static_cast<std::int64_t>(rank))});
  }
  onnx::Value* zeros = node.add("Expand", {node.scalar_of(0, *data->type), dims});
  return node.add("ScatterND", {zeros, tuples, data}, {{"reduction", std::string("add")}});
}

/// Replaces rows of `data` whose segment is negative with zeros and assigns them to segment 0, because
/// UnsortedSegmentSum ignores them. `numbers`, the segment of each row, is changed too.
void drop_negative(NodeConverter& node, onnx::Value*& data, onnx::Value*& numbers) {
  const auto known = node.ints_in(numbers);
  if (known && std::all_of(known->begin(), known->end(), [](std::int64_t number) { return number >= 0; })) return;
  onnx::Value* none = node.scalar_of(0, onnx::ElementType::i64);
  onnx::Value* is_out = node.add("Less", {numbers, none});
  const std::size_t rank = node.known_rank(data, "its rows are summed");
  const std::size_t named = node.known_rank(numbers, "it assigns rows to segments");
  Ints axes;
  for (std::size_t i = named; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (!axes.empty()) is_out = node.add("Unsqueeze", {is_out, node.ints_of(axes)});
  data = node.add("Where", {is_out, node.scalar_of(0, node.type(0)), data});
  numbers = node.add("Max", {numbers, none});
}

void segments(NodeConverter& node) {
  const std::string op = node.op();
  const bool is_sparse = op.starts_with("Sparse");
  const bool is_unsorted = op.starts_with("Unsorted");
  onnx::Value* data = node.input(0);
  if (is_sparse) data = node.add("Gather", {data, node.input(1)}, {{"axis", std::int64_t{0}}});
  onnx::Value* numbers = node.as_i64(is_sparse ? 2 : 1);
  onnx::Value* count = nullptr;
  if (is_unsorted || op.ends_with("WithNumSegments")) {
    count = node.as_i64(is_unsorted ? 2 : 3);
  } else {
    count = node.add("Add", {node.add("ReduceMax", {numbers}, {{"keepdims", std::int64_t{0}}}),
                             node.scalar_of(1, onnx::ElementType::i64)});
  }
  if (!count->shape || count->shape->size() != 1) count = node.reshape(count, {1});
  if (is_unsorted) drop_negative(node, data, numbers);
  onnx::Value* sum = summed(node, data, numbers, count, false);
  if (op.find("Mean") == std::string::npos && op.find("SqrtN") == std::string::npos) {
    node.give(sum);
    return;
  }
  onnx::Value* sizes = summed(node, data, numbers, count, true);
  sizes = node.add("Max", {sizes, node.scalar_of(1, node.type(0))});
  if (op.find("SqrtN") != std::string::npos) sizes = node.add("Sqrt", {sizes});
  Ints axes;
  for (std::size_t i = 1; i < node.known_rank(sum, "it is divided by sizes"); ++i)
    axes.push_back(static_cast<std::int64_t>(i));
  if (!axes.empty()) sizes = node.add("Unsqueeze", {sizes, node.ints_of(axes)});
  node.give(node.add("Div", {sum, sizes}));
}

/// Returns the number of segments as a list of one element.
onnx::Value* segment_count(NodeConverter& node, onnx::Value* numbers) {
  if (node.op().starts_with("Unsorted")) {
    onnx::Value* count = node.as_i64(2);
    return count->shape && count->shape->size() == 1 ? count : node.reshape(count, {1});
  }
  onnx::Value* last = node.add("ReduceMax", {numbers}, {{"keepdims", std::int64_t{0}}});
  return node.reshape(node.add("Add", {last, node.scalar_of(1, onnx::ElementType::i64)}), {1});
}

/// Returns the lowest number of a type if `is_lowest` is true, otherwise the highest. For a floating-point type this is
/// an infinity if `may_be_infinite` is true.
onnx::TensorData extreme_number(const NodeConverter& node, onnx::ElementType type, bool is_lowest,
                                bool may_be_infinite) {
  const auto real = [&](double highest) {
    const double number = may_be_infinite ? std::numeric_limits<double>::infinity() : highest;
    return onnx::TensorData::scalar_of(type, is_lowest ? -number : number);
  };
  constexpr double highest_f16 = 65504;
  switch (type) {
    case onnx::ElementType::f16: return real(highest_f16);
    case onnx::ElementType::f32: return real(std::numeric_limits<float>::max());
    case onnx::ElementType::f64: return real(std::numeric_limits<double>::max());
    case onnx::ElementType::i32: {
      using Limits = std::numeric_limits<std::int32_t>;
      return onnx::TensorData::scalar_of(type, is_lowest ? Limits::min() : Limits::max());
    }
    case onnx::ElementType::i64: {
      using Limits = std::numeric_limits<std::int64_t>;
      return reshaped(onnx::TensorData::from_ints({is_lowest ? Limits::min() : Limits::max()}), {});
    }
    default:
      node.fail(fmt::format("its data are {}; only f16, f32, f64, i32 and i64 are supported", onnx::to_string(type)));
  }
}

/// The product, maximum and minimum of the rows of each segment become a reduction of a table [segments, rows ...], in
/// which the rows of other segments do not count.
void reduced_segments(NodeConverter& node) {
  const std::string& op = node.op();
  const bool is_sorted = !op.starts_with("Unsorted");
  const std::string kind = op.substr(op.size() - (op.ends_with("Prod") ? 4 : 3));
  onnx::Value* data = node.input(0);
  onnx::Value* numbers = node.as_i64(1);
  const onnx::ElementType type = node.type(0);
  const std::size_t rank = node.known_rank(data, "its rows are reduced");
  const std::size_t named = node.known_rank(numbers, "it assigns rows to segments");
  if (named > rank) node.fail(fmt::format("the segments have {} dimensions and the data {}", named, rank));
  if (named != 1) {
    onnx::Value* rows = node.ints_of({-1});
    if (rank > named) {
      onnx::Value* sizes = node.shape_of(data);
      rows =
          node.concat({rows, node.slice_1d(sizes, static_cast<std::int64_t>(named), static_cast<std::int64_t>(rank))});
    }
    data = node.add("Reshape", {data, rows});
    numbers = node.reshape(numbers, {-1});
  }
  onnx::Value* count = node.reshape(segment_count(node, numbers), {});
  onnx::Value* segments =
      node.add("Range", {node.scalar_of(0, onnx::ElementType::i64), count, node.scalar_of(1, onnx::ElementType::i64)});
  onnx::Value* is_in = node.add("Equal", {node.add("Unsqueeze", {segments, node.ints_of({1})}),
                                          node.add("Unsqueeze", {numbers, node.ints_of({0})})});
  Ints after;
  for (std::size_t i = named; i < rank; ++i) after.push_back(static_cast<std::int64_t>(i - named + 2));
  if (!after.empty()) is_in = node.add("Unsqueeze", {is_in, node.ints_of(after)});
  onnx::Value* others =
      kind == "Prod" ? node.scalar_of(1, type) : node.constant_of(extreme_number(node, type, kind == "Max", is_sorted));
  onnx::Value* table = node.add("Where", {is_in, node.add("Unsqueeze", {data, node.ints_of({0})}), others});
  const Attributes reduces{{"axes", Ints{1}}, {"keepdims", std::int64_t{0}}};
  onnx::Value* y = node.add("Reduce" + kind, {table}, reduces);
  if (is_sorted && kind != "Prod") {  // A segment without rows is 0.
    onnx::Value* has_rows = node.add("ReduceMax", {node.cast(is_in, onnx::ElementType::i32)}, reduces);
    has_rows = node.cast(has_rows, onnx::ElementType::boolean);
    y = node.add("Where", {has_rows, y, node.scalar_of(0, type)});
  }
  node.give(y);
}

// ---- Complex numbers: pairs of real and imaginary parts along a last axis of size two

/// RFFT(x) becomes a MatMul with a matrix of cosines and sines.
void real_spectrum(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  const std::int64_t length = node.known_int(1, "the length of the transform");
  constexpr std::int64_t most = 1 << 12;
  if (length < 1 || length > most)
    node.fail(fmt::format("the length of the transform is {}; it must be between 1 and {}", length, most));
  const std::size_t rank = node.known_rank(x, "its last axis is transformed");
  if (rank < 1 || !(*x->shape)[rank - 1].is_constant()) {
    node.fail("the length of its signals is dynamic; " + give_shapes());
  }
  const std::int64_t given = (*x->shape)[rank - 1].value();
  if (given > length) {
    x = node.add("Slice", {x, node.ints_of({0}), node.ints_of({length}), node.ints_of({-1})});
  } else if (given < length) {
    Ints pads(2 * rank, 0);
    pads.back() = length - given;
    x = node.add("Pad", {x, node.ints_of(pads)});
  }
  const std::int64_t bins = length / 2 + 1;
  node.check_budget(2 * length * bins, onnx::ElementType::f32);
  const auto product = [&](double (*wave)(double)) {
    std::vector<float> factors;
    factors.reserve(static_cast<std::size_t>(length * bins));
    for (std::int64_t n = 0; n < length; ++n) {
      for (std::int64_t k = 0; k < bins; ++k) {
        const double angle =
            -2 * std::numbers::pi * static_cast<double>((n * k) % length) / static_cast<double>(length);
        factors.push_back(static_cast<float>(wave(angle)));
      }
    }
    onnx::Value* weights = node.constant_of(reshaped(onnx::TensorData::from_floats(factors), {length, bins}));
    return node.add("Unsqueeze", {node.add("MatMul", {x, weights}), node.ints_of({-1})});
  };
  node.give(node.add("Concat", {product([](double angle) { return std::cos(angle); }), product([](double angle) {
                                  return std::sin(angle);
                                })},
                     {{"axis", std::int64_t{-1}}}));
}

onnx::Value* part_of(NodeConverter& node, std::int64_t i) {
  return node.add("Gather", {node.input(0), node.scalar_of(static_cast<double>(i), onnx::ElementType::i64)},
                  {{"axis", std::int64_t{-1}}});
}

void real_part(NodeConverter& node) { node.give(part_of(node, 0)); }
void imaginary_part(NodeConverter& node) { node.give(part_of(node, 1)); }

void magnitude(NodeConverter& node) {
  node.give(node.add("ReduceL2", {node.input(0)}, {{"axes", Ints{-1}}, {"keepdims", std::int64_t{0}}}));
}

void complex_number(NodeConverter& node) {
  onnx::Value* real = node.add("Unsqueeze", {node.input(0), node.ints_of({-1})});
  onnx::Value* imaginary = node.add("Unsqueeze", {node.input(1), node.ints_of({-1})});
  node.give(node.add("Concat", {real, imaginary}, {{"axis", std::int64_t{-1}}}));
}

}  // namespace

OperatorEntries matrix_operators() {
  static const std::vector<OperatorEntry> entries =
      entries_of({{complex_number, "Complex"},
                  {magnitude, "ComplexAbs"},
                  {imaginary_part, "Imag"},
                  {band_part, "MatrixBandPart"},
                  {diagonal_matrix, "MatrixDiag MatrixDiagV2 MatrixDiagV3"},
                  {diagonal_part, "MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3"},
                  {set_diagonal, "MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3"},
                  {real_spectrum, "RFFT"},
                  {real_part, "Real"},
                  {reduced_segments,
                   "SegmentMax SegmentMin SegmentProd UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd"},
                  {segments,
                   "SegmentMean SegmentSum SparseSegmentMean SparseSegmentMeanWithNumSegments SparseSegmentSqrtN "
                   "SparseSegmentSqrtNWithNumSegments SparseSegmentSum SparseSegmentSumWithNumSegments "
                   "UnsortedSegmentSum"}});
  return entries;
}

}  // namespace graft::tensorflow
