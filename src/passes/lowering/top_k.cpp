// TopK with K beyond what TensorRT's builder accepts: the largest 3840, then the largest of the remaining keys, and so
// on.
//
//   before                     after
//   v, i = TopK(x, 8000)       a, i = TopK(keys, 3840)         keys: x / 2, limited to finite values
//                              rest = ScatterElements(keys, i, -inf)
//                              b, j = TopK(rest, 3840) ...
//                              indices = Concat(i, j, ...); values = GatherElements(x, indices)
//
// Keys that were taken become -infinity, below all other keys. The other keys are finite: -infinity in x becomes the
// lowest finite value, and half of any finite value is above it. Halving keeps the order, except for values so small
// (2.4e-38 in f32) that only their last bit differs. Equal elements stay in the order of their indices, as in ONNX.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "passes/lowering/lowering.hpp"
#include "passes/lowering/refused_forms.hpp"

namespace graft::passes {

std::optional<Replacement> lower_top_k(Site& site) {
  constexpr std::int64_t most = largest_k;
  const std::int64_t k = site.ints(1)->front();
  if (!site.is_real(0)) return site.no_type(0);
  const std::int64_t axis = site.node().int_or("axis", -1);
  if (const auto size = site.size(0, axis); size && *size < k)
    return site.no(fmt::format("K is {}, but the axis has only {} elements", k, *size));
  constexpr std::int64_t most_rounds = 16;
  if (k > most * most_rounds) return site.no(fmt::format("K is {}; at most {} is supported", k, most * most_rounds));

  const bool largest = site.node().int_or("largest", 1) != 0;
  const double sign = largest ? -1 : 1;
  Replacement result;
  const auto scalar = [&](const char* name, double value) { return result.constant(name, f32_tensor({}, {value})); };
  const std::string half = scalar("half", 0.5);
  const std::string limit = scalar("limit", sign * static_cast<double>(std::numeric_limits<float>::max()));
  const std::string taken = scalar("taken", sign * std::numeric_limits<double>::infinity());
  result.line(fmt::format("halves = Mul({}, {})", result.in_f32("x0", site.type(0)), half));
  result.line(fmt::format("keys0 = {}(halves, {})", largest ? "Max" : "Min", limit));
  std::string indices;
  std::int64_t rounds = 0;
  for (std::int64_t left = k; left > 0; left -= most, ++rounds) {
    const std::string count = result.ints(fmt::format("k{}", rounds), {std::min(left, most)});
    result.line(fmt::format("top{0}, i{0} = TopK<axis={1}, largest={2:d}, sorted=1>(keys{0}, {3})", rounds, axis,
                            largest, count));
    indices += fmt::format("{}i{}", indices.empty() ? "" : ", ", rounds);
    if (left <= most) continue;
    result.line(fmt::format("s{0} = Shape(i{0})", rounds));
    result.line(fmt::format("t{0} = Expand({1}, s{0})", rounds, taken));
    result.line(fmt::format("keys{1} = ScatterElements<axis={2}>(keys{0}, i{0}, t{0})", rounds, rounds + 1, axis));
  }
  result.line(fmt::format("y1 = Concat<axis={}>({})", axis, indices));
  result.line(fmt::format("y0 = GatherElements<axis={}>(x0, y1)", axis));
  if (site.is_used(1)) {
    // OpenVINO 2026.4.1 returns equal elements in another order if fewer than half of many are requested.
    result.by_definition =
        "by definition: selected elements rank below all remaining ones; the CPU engine orders equal numbers "
        "differently from ONNX, so it cannot verify indices; the lowering is tested with results of ONNX Runtime";
  }
  result.summary =
      fmt::format("{} TopK of at most {}, each without the elements that earlier ones selected", rounds, most);
  return result;
}

}  // namespace graft::passes
