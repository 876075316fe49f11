// ScatterElements and ScatterND with computed indices: every place is compared with every index.
//
//   before                                    after
//   y = ScatterND<reduction="add">(x, i, u)   match = Cast(Equal(places, i)); y = Add(x, MatMul(match, u))
//   y = ScatterND<reduction="max">(x, i, u)   chosen = Where(Equal(places, i), u, -inf); y = Max(x, ReduceMax(chosen))
//
// That is exact also for a place that occurs in several indices, or in none: the place is then combined with the
// neutral number. The comparison has a number for each pair of a place and an index, so it is only used for small
// tensors.
#include "passes/lowering/scatter_matches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace graft::passes {
namespace {

/// The maximum number of comparisons between positions of the data and indices in one replacement. With more
/// comparisons, running the node outside TensorRT is cheaper.
constexpr std::int64_t most_matches = std::int64_t{1} << 24;

struct Reduction {
  std::string compute;  ///< The operator that combines two tensors.
  std::string reduce;   ///< The operator that reduces an axis.
  double neutral = 0;
};

Reduction reduction_of(const std::string& name) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (name == "mul") return {"Mul", "ReduceProd", 1};
  if (name == "max") return {"Max", "ReduceMax", -infinity};
  if (name == "min") return {"Min", "ReduceMin", infinity};
  if (name == "add") return {"Add", "ReduceSum", 0};
  return {};
}

/// Writes the tensor `to`, the reduction of `from` along `axis`, which is removed. ReduceSum reads its axes from an
/// input, the other operators from an attribute.
void reduce_axis(Replacement& result, const Reduction& reduction, const std::string& from, const std::string& to,
                 std::int64_t axis) {
  if (reduction.reduce == "ReduceSum") {
    result.line(fmt::format("{} = ReduceSum<keepdims=0>({}, {})", to, from, result.ints("reduced_axis", {axis})));
  } else {
    result.line(fmt::format("{} = {}<axes=[{}], keepdims=0>({})", to, reduction.reduce, axis, from));
  }
}

/// Writes nodes that make negative `indices` along an axis of `size` elements non-negative, and returns the name of the
/// result.
std::string from_front(Replacement& result, const std::string& indices, std::int64_t size) {
  const std::string zero = result.integer("zero", 0);
  const std::string places = result.integer(indices + "_size", size);
  result.line(fmt::format("{0}_is_negative = Less({0}, {1})", indices, zero));
  result.line(fmt::format("{0}_from_end = Add({0}, {1})", indices, places));
  result.line(fmt::format("{0}_place = Where({0}_is_negative, {0}_from_end, {0})", indices));
  return indices + "_place";
}

/// Adds an i64 constant of shape [count, 1, 1 ...] and rank `rank` with the values 0 to `count` - 1, and returns its
/// name.
std::string counted(Replacement& result, std::string name, std::int64_t count, std::size_t rank) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::vector<std::int64_t> dims(rank, 1);
  dims.front() = count;
  return result.constant(std::move(name), ints_tensor(std::move(dims), numbers));
}

std::string as_i64(Replacement& result, const std::string& indices, onnx::ElementType type) {
  if (type == onnx::ElementType::i64) return indices;
  result.line(fmt::format("{0}_i64 = Cast<to=int64>({0})", indices));
  return indices + "_i64";
}

bool is_affordable(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  return std::none_of(sizes.begin(), sizes.end(), [&](std::int64_t size) {
    return size == 0 || __builtin_mul_overflow(count, size, &count) || count > most_matches;
  });
}

/// Returns the replacement of a scatter of `count` rows of `width` elements into `rows` rows: row k of the updates (x2)
/// is combined with the row of x0 whose index is element k of `places`, [1, count]. `data` is the shape of x0.
Replacement rows_by_matches(Replacement result, const Site& site, const Reduction& reduction, const std::string& places,
                            std::int64_t rows, std::int64_t count, std::int64_t width,
                            const std::vector<std::int64_t>& data) {
  const std::string all = counted(result, "all_rows", rows, 2);
  result.line(fmt::format("match = Equal({}, {})", all, places));
  const std::string updates = result.in_f32("x2", site.type(2));
  result.line(fmt::format("updates = Reshape({}, {})", updates, result.ints("updates_rows", {count, width})));
  if (reduction.compute == "Add") {
    result.line("weights = Cast<to=float>(match)");
    result.line("found = MatMul(weights, updates)");
  } else {
    const std::string neutral = result.constant("neutral", f32_tensor({}, {reduction.neutral}));
    result.line(fmt::format("is_chosen = Unsqueeze(match, {})", result.ints("last_axis", {2})));
    result.line(fmt::format("of_each = Unsqueeze(updates, {})", result.ints("first_axis", {0})));
    result.line(fmt::format("chosen = Where(is_chosen, of_each, {})", neutral));
    reduce_axis(result, reduction, "chosen", "found", 1);
  }
  result.line(fmt::format("reduced = Reshape(found, {})", result.ints("data_shape", data)));
  const std::string old = result.in_f32("x0", site.type(0));
  result.give("y0", site.type(0), fmt::format("{}({}, reduced)", reduction.compute, old));
  result.summary = reduction.compute == "Add"
                       ? fmt::format("MatMul with the {} comparisons of positions with indices, and Add", rows * count)
                       : fmt::format("{} of the updates that {} comparisons of positions with indices select, and {}",
                                     reduction.reduce, rows * count, reduction.compute);
  return result;
}

constexpr std::string_view too_many = "the comparisons of positions with updates would have more than 16 M elements";

/// The shapes of the data and of the indices of a ScatterElements, and its axis counted from the front.
struct ScatteredElements {
  std::vector<std::int64_t> data;
  std::vector<std::int64_t> indices;
  std::size_t axis = 0;

  [[nodiscard]] std::int64_t places() const { return data[axis]; }
  [[nodiscard]] bool covers_other_axes() const {
    for (std::size_t i = 0; i < data.size(); ++i) {
      if (i != axis && data[i] != indices[i]) return false;
    }
    return true;
  }
};

std::optional<ScatteredElements> elements_of(Site& site) {
  const auto data = site.sizes(0);
  const auto indices = site.sizes(1);
  if (!data || !indices || data->empty() || data->size() != indices->size()) {
    return site.no_size("a size of its data or of its indices is dynamic");
  }
  const auto rank = static_cast<std::int64_t>(data->size());
  std::int64_t axis = site.node().int_or("axis", 0);
  axis += axis < 0 ? rank : 0;
  if (axis < 0 || axis >= rank) return site.no("its axis is out of range for the rank of its data");
  const auto updates = site.sizes(2);
  if (!updates) return site.no("a size of its updates is unknown");
  if (updates != indices) return site.no("the shape of its updates does not fit its indices");
  return ScatteredElements{*data, *indices, static_cast<std::size_t>(axis)};
}

/// Writes the boolean tensor `match`: on a new axis before the scatter axis it has one entry for each position along
/// that axis, true where the index equals the position.
void match_elements(Replacement& result, const ScatteredElements& elements, onnx::ElementType index_type) {
  const std::string new_axis = result.ints("new_axis", {static_cast<std::int64_t>(elements.axis)});
  const std::string at = from_front(result, as_i64(result, "x1", index_type), elements.places());
  const std::string all = counted(result, "all_places", elements.places(), elements.data.size() - elements.axis + 1);
  result.line(fmt::format("named = Unsqueeze({}, {})", at, new_axis));
  result.line(fmt::format("match = Equal({}, named)", all));
}

/// Returns the replacement if the indices are a column that an Expand repeats along all axes except axis 0, so that
/// only the column must be compared; otherwise nothing.
std::optional<Replacement> add_expanded_rows(Site& site, const ScatteredElements& elements) {
  onnx::Node* expand = site.producer(1);
  if (expand == nullptr || !expand->is("Expand") || elements.axis != 0 || !elements.covers_other_axes()) {
    return std::nullopt;
  }
  ShapesOnDemand& shapes = site.shapes();
  const Shape* column = shapes.of(*expand->input(0));
  const std::int64_t count = elements.indices.front();
  if (column == nullptr || column->empty() || column->size() != elements.data.size()) return std::nullopt;
  for (std::size_t i = 0; i < column->size(); ++i) {
    if ((*column)[i] != Dim(i == 0 ? count : 1)) return std::nullopt;
  }
  if (!is_affordable({elements.places(), count})) return std::nullopt;
  Replacement result;
  result.together_with = {expand};
  result.reads.emplace("column", expand->input(0));
  result.line(fmt::format("named = Reshape(column, {})", result.ints("one_row", {1, count})));
  const std::string places = from_front(result, as_i64(result, "named", site.type(1)), elements.places());
  const std::int64_t width = product({elements.data.begin() + 1, elements.data.end()});
  return rows_by_matches(std::move(result), site, reduction_of("add"), places, elements.places(), count, width,
                         elements.data);
}

}  // namespace

std::string computation_of(const std::string& reduction) { return reduction_of(reduction).compute; }

std::optional<Replacement> scatter_nd_by_matches(Site& site, const std::string& reduction_name) {
  const auto data = site.sizes(0);
  const auto index_shape = site.sizes(1);
  if (!data || !index_shape || index_shape->empty())
    return site.no_size("a size of its data or of its indices is dynamic");
  const auto depth = static_cast<std::size_t>(index_shape->back());
  if (depth == 0 || depth > data->size())
    return site.no(fmt::format("the last dimension of its indices is {}; it must be 1 to {}, the rank of its data",
                               depth, data->size()));
  const Reduction reduction = reduction_of(reduction_name);
  const std::int64_t count = product({index_shape->begin(), index_shape->end() - 1});
  const std::int64_t rows = product({data->begin(), data->begin() + static_cast<std::ptrdiff_t>(depth)});
  const std::int64_t width = product({data->begin() + static_cast<std::ptrdiff_t>(depth), data->end()});
  const auto updates = site.sizes(2);
  if (!updates) return site.no("a size of its updates is unknown");
  if (product(*updates) != count * width) return site.no("the shape of its updates does not fit its indices");
  if (!is_affordable({rows, count, reduction.compute == "Add" ? 1 : width})) return site.no(std::string(too_many));

  Replacement result;
  if (depth == 1) {
    result.line(fmt::format("named = Reshape(x1, {})", result.ints("one_row", {1, count})));
    const std::string places = from_front(result, "named", rows);
    return rows_by_matches(std::move(result), site, reduction, places, rows, count, width, *data);
  }
  result.line(fmt::format("each = Reshape(x1, {})", result.ints("one_a_row", {1, count, index_shape->back()})));
  std::string places;
  for (std::size_t axis = 0; axis < depth; ++axis) {
    const std::string part = fmt::format("part{}", axis);
    const std::string which = result.integer(fmt::format("axis{}", axis), static_cast<std::int64_t>(axis));
    result.line(fmt::format("{} = Gather<axis=2>(each, {})", part, which));
    const std::string along = from_front(result, part, (*data)[axis]);
    if (axis == 0) {
      places = along;
      continue;
    }
    const std::string size = result.integer(fmt::format("size{}", axis), (*data)[axis]);
    result.line(fmt::format("before{} = Mul({}, {})", axis, places, size));
    result.line(fmt::format("places{0} = Add(before{0}, {1})", axis, along));
    places = fmt::format("places{}", axis);
  }
  return rows_by_matches(std::move(result), site, reduction, places, rows, count, width, *data);
}

std::optional<Replacement> scatter_elements_by_matches(Site& site, const std::string& reduction_name) {
  const auto elements = elements_of(site);
  if (!elements) return std::nullopt;
  const Reduction reduction = reduction_of(reduction_name);
  if (reduction.compute == "Add") {
    if (auto rows = add_expanded_rows(site, *elements)) return rows;
  }
  if (!is_affordable({elements->places(), product(elements->indices)})) return site.no(std::string(too_many));
  const auto axis = static_cast<std::int64_t>(elements->axis);
  Replacement result;
  match_elements(result, *elements, site.type(1));
  const std::string neutral = result.constant("neutral", f32_tensor({}, {reduction.neutral}));
  result.line(fmt::format("of_each = Unsqueeze({}, new_axis)", result.in_f32("x2", site.type(2))));
  result.line(fmt::format("chosen = Where(match, of_each, {})", neutral));
  reduce_axis(result, reduction, "chosen", "found", axis + 1);
  std::string found = "found";
  if (!elements->covers_other_axes()) {
    std::vector<std::int64_t> pads(2 * elements->data.size(), 0);
    for (std::size_t i = 0; i < elements->data.size(); ++i) {
      if (i != elements->axis) pads[elements->data.size() + i] = elements->data[i] - elements->indices[i];
    }
    result.line(fmt::format("everywhere = Pad(found, {}, {})", result.ints("pads", pads), neutral));
    found = "everywhere";
  }
  const std::string old = result.in_f32("x0", site.type(0));
  result.give("y0", site.type(0), fmt::format("{}({}, {})", reduction.compute, old, found));
  result.summary = fmt::format("{} of the updates that {} comparisons of positions with indices select, and {}",
                               reduction.reduce, elements->places() * product(elements->indices), reduction.compute);
  return result;
}

std::optional<Replacement> scatter_more_than_fit(Site& site) {
  const auto data = site.sizes(0);
  const auto indices = site.sizes(1);
  if (!data || !indices || data->size() != indices->size()) return std::nullopt;
  const auto elements = elements_of(site);
  if (!elements || elements->indices[elements->axis] <= elements->places()) return std::nullopt;
  if (!elements->covers_other_axes())
    return site.no("its indices do not have the sizes of its data along the other axes");
  const std::int64_t count = elements->indices[elements->axis];
  if (!is_affordable({elements->places(), product(elements->indices)})) return site.no(std::string(too_many));
  const auto axis = static_cast<std::int64_t>(elements->axis);
  // If several updates go to one place, the last one counts, as in CPU engines; ONNX does not define which. The numbers
  // of the updates are compared in f32, which has all integers up to 2^24.
  Replacement result;
  match_elements(result, *elements, site.type(1));
  std::vector<std::int64_t> dims(elements->data.size() - elements->axis, 1);
  dims.front() = count;
  std::vector<double> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0.0);
  const std::string order = result.constant("order", f32_tensor(std::move(dims), numbers));
  const std::string none = result.constant("none", f32_tensor({}, {-1}));
  const std::string first = result.constant("first", f32_tensor({}, {0}));
  result.line(fmt::format("chosen = Where(match, {}, {})", order, none));
  result.line(fmt::format("last = ReduceMax<axes=[{}], keepdims=0>(chosen)", axis + 1));
  result.line(fmt::format("is_named = GreaterOrEqual(last, {})", first));
  result.line(fmt::format("from = Max(last, {})", first));
  result.line("from_i64 = Cast<to=int64>(from)");
  result.line(fmt::format("new = GatherElements<axis={}>(x2, from_i64)", axis));
  result.line("y0 = Where(is_named, new, x0)");
  result.summary = fmt::format("GatherElements of the last update of each position, by {} comparisons",
                               elements->places() * product(elements->indices));
  return result;
}

}  // namespace graft::passes
