// ScatterElements and ScatterND with a reduction, as gathering, computing, and scattering without a reduction.
//
//   before                                    after
//   y = ScatterND<reduction="add">(x, i, u)   a = Add(GatherND(x, i), u); y = ScatterND(x, i, a)
//   y = TensorScatter(cache, u, first)        y = Where(is_kept, cache, GatherElements(u, position - first))
//
// The first is exact if no index occurs twice. If constant indices occur more than once, the updates are applied in
// turns: the first of each place, then the second, and so on. Indices that are not constant are compared with all
// places, see scatter_matches.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "passes/lowering/refused_forms.hpp"
#include "passes/lowering/scatter_matches.hpp"
#include "passes/lowering/windows.hpp"

namespace graft::passes {
namespace {

constexpr std::size_t most_turns = 16;

/// Divides the updates of a scatter into groups, so that no group writes twice to one position: group 0 has the indices
/// of the updates that write to a position for the first time, group 1 for the second time, and so on. `places` holds
/// the position of each update.
std::vector<std::vector<std::int64_t>> turns_of(const std::vector<std::vector<std::int64_t>>& places) {
  std::map<std::vector<std::int64_t>, std::size_t> seen;
  std::vector<std::vector<std::int64_t>> turns;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t turn = seen[places[i]]++;
    if (turn == turns.size()) turns.emplace_back();
    turns[turn].push_back(static_cast<std::int64_t>(i));
  }
  return turns;
}

/// Returns the result of GatherND on `data`, a row-major tensor of shape `dims`, for a flat list of positions with
/// `depth` indices each.
std::vector<double> rows_at(const std::vector<double>& data, const std::vector<std::int64_t>& places,
                            const std::vector<std::int64_t>& dims, std::size_t depth) {
  const std::int64_t row = product({dims.begin() + static_cast<std::ptrdiff_t>(depth), dims.end()});
  std::vector<double> rows;
  for (std::size_t first = 0; first < places.size(); first += depth) {
    std::int64_t begin = 0;
    for (std::size_t axis = 0; axis < depth; ++axis) begin = begin * dims[axis] + places[first + axis];
    const auto from = data.begin() + begin * row;
    rows.insert(rows.end(), from, from + row);
  }
  return rows;
}

/// Returns the name of the updates of group `turn` (see turns_of): `updates` if there is one group, otherwise the
/// result of a Gather that is added.
std::string updates_of(Replacement& result, const std::vector<std::vector<std::int64_t>>& turns, std::size_t turn) {
  if (turns.size() == 1) return "updates";
  const std::string which = result.ints(fmt::format("which{}", turn), turns[turn]);
  result.line(fmt::format("updates{} = Gather<axis=0>(updates, {})", turn, which));
  return fmt::format("updates{}", turn);
}

}  // namespace

std::optional<Replacement> lower_scatter_nd(Site& site) {
  const std::string reduction = site.node().string_or("reduction", "none");
  const std::string compute = computation_of(reduction);
  const auto indices = site.ints(1);
  const auto data = site.sizes(0);
  const auto index_shape = site.sizes(1);
  if (compute.empty()) return site.no(fmt::format("its reduction is '{}', which ONNX does not define", reduction));
  if (!site.is_real(0)) return site.no_type(0);
  if (!indices) return scatter_nd_by_matches(site, reduction);
  if (!index_shape || index_shape->empty()) return site.no("the shape of its indices is unknown");
  const auto depth = static_cast<std::size_t>(index_shape->back());
  if (!data || depth == 0 || depth > data->size()) return site.no_size("a size of its data is dynamic");
  const std::size_t count = indices->size() / depth;
  if (count == 0 || count > most_constants) return site.no("it must have at least one update, and at most 16 M");
  std::vector<std::vector<std::int64_t>> places;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<std::int64_t>& place = places.emplace_back();
    for (std::size_t axis = 0; axis < depth; ++axis) {
      const std::int64_t at = (*indices)[i * depth + axis];
      place.push_back(at < 0 ? at + (*data)[axis] : at);
      if (place.back() < 0 || place.back() >= (*data)[axis]) return site.no("an index lies outside of its data");
    }
  }
  const auto turns = turns_of(places);
  if (turns.size() > most_turns) return scatter_nd_by_matches(site, reduction);
  const auto updates_shape = site.sizes(2);
  const std::vector<std::int64_t> row(data->begin() + static_cast<std::ptrdiff_t>(depth), data->end());
  if (!updates_shape) return site.no("a size of its updates is unknown");
  if (product(*updates_shape) != static_cast<std::int64_t>(count) * product(row))
    return site.no("the shape of its updates does not fit its indices");

  // For constant data, GatherND is computed here: OpenVINO 2026.4.1 gathers once and then adds into the result in every
  // run, so that `Add(GatherND(constant, constant), u)` grows.
  const std::optional<std::vector<double>> constant = site.numbers(0);

  Replacement result;
  std::vector<std::int64_t> rows{static_cast<std::int64_t>(count)};
  rows.insert(rows.end(), row.begin(), row.end());
  const std::string shape = result.ints("rows", rows);
  result.line(fmt::format("updates = Reshape(x2, {})", shape));
  std::string x = "x0";
  for (std::size_t turn = 0; turn < turns.size(); ++turn) {
    std::vector<std::int64_t> at;
    for (const std::int64_t i : turns[turn]) {
      const auto& place = places[static_cast<std::size_t>(i)];
      at.insert(at.end(), place.begin(), place.end());
    }
    const auto length = static_cast<std::int64_t>(turns[turn].size());
    const std::string where =
        result.constant(fmt::format("places{}", turn), ints_tensor({length, static_cast<std::int64_t>(depth)}, at));
    const std::string updates = updates_of(result, turns, turn);
    const std::string y = turn + 1 == turns.size() ? "y0" : fmt::format("data{}", turn);
    std::string old = fmt::format("old{}", turn);
    if (turn == 0 && constant) {
      std::vector<std::int64_t> old_dims{length};
      old_dims.insert(old_dims.end(), row.begin(), row.end());
      old = result.constant(
          old, onnx::TensorData::from_numbers(site.type(0), old_dims, rows_at(*constant, at, *data, depth)));
    } else {
      result.line(fmt::format("{} = GatherND({}, {})", old, x, where));
    }
    result.line(fmt::format("new{} = {}({}, {})", turn, compute, old, updates));
    result.line(fmt::format("{} = ScatterND({}, {}, new{})", y, x, where, turn));
    x = y;
  }
  result.summary = fmt::format("{} times GatherND, {} and ScatterND", turns.size(), compute);
  return result;
}

std::optional<Replacement> lower_scatter_elements(Site& site) {
  if (!has_reduction(site.node())) return scatter_more_than_fit(site);
  const std::string reduction = site.node().string_or("reduction", "none");
  const std::string compute = computation_of(reduction);
  const auto indices = site.ints(1);
  const auto data = site.sizes(0);
  const auto index_shape = site.sizes(1);
  if (compute.empty()) return site.no(fmt::format("its reduction is '{}', which ONNX does not define", reduction));
  if (!site.is_real(0)) return site.no_type(0);
  if (!indices) return scatter_elements_by_matches(site, reduction);
  if (!index_shape) return site.no("the shape of its indices is unknown");
  if (!data || data->empty() || index_shape->size() != data->size())
    return site.no_size("a size of its data is dynamic");
  const std::size_t rank = data->size();
  std::int64_t axis = site.node().int_or("axis", 0);
  axis += axis < 0 ? static_cast<std::int64_t>(rank) : 0;
  if (axis < 0 || axis >= static_cast<std::int64_t>(rank))
    return site.no("its axis is out of range for the rank of its data");
  if (indices->empty() || static_cast<std::int64_t>(indices->size()) > most_constants ||
      product(*data) > most_constants) {
    return site.no("it must have at least one update, and its data and indices at most 16 M elements each");
  }
  // Each place is an index of the flattened data.
  std::vector<std::vector<std::int64_t>> places;
  for_each_index(*index_shape, [&](const std::vector<std::int64_t>& at) {
    const std::int64_t index = (*indices)[places.size()];
    std::int64_t place = 0;
    for (std::size_t i = 0; i < rank; ++i) {
      std::int64_t here = at[i];
      if (static_cast<std::int64_t>(i) == axis) here = index < 0 ? index + (*data)[i] : index;
      place = place * (*data)[i] + here;
    }
    places.push_back({place});
  });
  const auto turns = turns_of(places);
  if (turns.size() > most_turns) return scatter_elements_by_matches(site, reduction);

  const auto updates_shape = site.sizes(2);
  if (!updates_shape) return site.no("a size of its updates is unknown");
  if (updates_shape != index_shape) return site.no("the shape of its updates does not fit its indices");
  Replacement result;
  const std::string line = result.ints("line", {-1});
  const std::string shape = result.ints("data_shape", *data);
  result.line(fmt::format("data = Reshape(x0, {})", line));
  result.line(fmt::format("updates = Reshape(x2, {})", line));
  std::string x = "data";
  for (std::size_t turn = 0; turn < turns.size(); ++turn) {
    std::vector<std::int64_t> where;
    for (const std::int64_t i : turns[turn]) where.push_back(places[static_cast<std::size_t>(i)].front());
    const std::string to = result.ints(fmt::format("places{}", turn), where);
    const std::string updates = updates_of(result, turns, turn);
    result.line(fmt::format("old{} = Gather<axis=0>({}, {})", turn, x, to));
    result.line(fmt::format("new{0} = {1}(old{0}, {2})", turn, compute, updates));
    result.line(fmt::format("data{0} = ScatterElements<axis=0>({1}, {2}, new{0})", turn, x, to));
    x = fmt::format("data{}", turn);
  }
  result.line(fmt::format("y0 = Reshape({}, {})", x, shape));
  result.summary = fmt::format("{} times Gather, {} and ScatterElements", turns.size(), compute);
  return result;
}

std::optional<Replacement> lower_tensor_scatter(Site& site) {
  const Shape* cache = site.shape(0);
  if (cache == nullptr) return site.no("the rank of its cache is unknown");
  const auto rank = static_cast<std::int64_t>(cache->size());
  std::int64_t axis = site.node().int_or("axis", -2);
  axis += axis < 0 ? rank : 0;
  if (axis < 1 || axis >= rank) return site.no("its axis is out of range for the rank of its cache");
  const std::string mode = site.node().string_or("mode", "linear");
  if (mode != "linear" && mode != "circular") return site.no(fmt::format("its mode is '{}'", mode));
  if (mode == "linear" && rank == 4) return std::nullopt;  // TensorRT has this form.
  const auto length = site.size(0, axis);
  const auto added = site.size(1, axis);
  if (!length || !added) return site.no_size("the length of its cache or of its update is dynamic");
  if (*added < 1 || *added > *length) return site.no("its update is empty or longer than its cache");
  std::vector<std::int64_t> positions(static_cast<std::size_t>(*length));
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<std::int64_t> aligned(static_cast<std::size_t>(rank), 1);  // the positions, beside the axes of the cache
  aligned[static_cast<std::size_t>(axis)] = *length;

  Replacement result;
  std::string offset = result.constant("positions", ints_tensor(aligned, positions));
  if (site.has_input(2)) {
    std::vector<std::int64_t> beside(static_cast<std::size_t>(rank), 1);
    beside[0] = -1;
    result.line("first = Cast<to=int64>(x2)");
    result.line(fmt::format("begin = Reshape(first, {})", result.ints("of_batch", beside)));
    result.line(fmt::format("distance = Sub({}, begin)", offset));
    offset = "distance";
    if (mode == "circular") {
      result.line(fmt::format("around = Mod(distance, {})", result.integer("length", *length)));
      offset = "around";
    }
  }
  // An element of the cache is replaced by the element of the update at its distance from the first replaced one.
  result.integer("zero", 0);
  result.line(fmt::format("is_before = Less({}, zero)", offset));
  result.line(fmt::format("is_behind = GreaterOrEqual({}, {})", offset, result.integer("added", *added)));
  result.line("is_kept = Or(is_before, is_behind)");
  result.line(fmt::format("place = Where(is_kept, zero, {})", offset));
  result.line("shape = Shape(x0)");
  result.line("index = Expand(place, shape)");
  result.line(fmt::format("written = GatherElements<axis={}>(x1, index)", axis));
  result.line("y0 = Where(is_kept, x0, written)");
  result.summary = "GatherElements of the update, and Where";
  return result;
}

}  // namespace graft::passes
