// Reference kernel of RegionAlign.
#include <limits>

#include "ops/reference.hpp"
#include "ops/region_align/plan.hpp"

namespace graft::ops {
namespace {

/// The weighted pixels (taps) of one bin along an axis.
struct RegionWindow {
  std::vector<Tap> taps;
  bool has_outside = false;
};

std::vector<RegionWindow> windows_of(const RegionAxis& axis, const RegionGrid& grid, bool is_mean) {
  std::vector<RegionWindow> windows(static_cast<std::size_t>(grid.bins));
  for (int bin = 0; bin < grid.bins; ++bin) {
    RegionWindow& window = windows[static_cast<std::size_t>(bin)];
    const SampleRange range = range_of(axis, grid, bin);
    window.taps.resize(2 * static_cast<std::size_t>(std::max(range.end - range.first, 0)));
    const Taps taps = write_taps(axis, grid, bin, range, is_mean, 1, window.taps.data());
    window.taps.resize(static_cast<std::size_t>(taps.count));
    window.has_outside = taps.has_outside;
  }
  return windows;
}

template <class Element>
double pool(const Element* plane, std::int64_t width, const RegionWindow& rows, const RegionWindow& columns,
            bool is_mean) {
  if (rows.taps.empty() || columns.taps.empty()) return 0;
  const bool has_zero = is_mean || rows.has_outside || columns.has_outside;
  double result = has_zero ? 0 : -std::numeric_limits<double>::infinity();
  for (const Tap& row : rows.taps) {
    for (const Tap& column : columns.taps) {
      const double weight = static_cast<double>(row.weight) * static_cast<double>(column.weight);
      const double value = weight * static_cast<double>(static_cast<float>(plane[row.index * width + column.index]));
      result = is_mean ? result + value : larger(result, value);
    }
  }
  return result;
}

}  // namespace

Status run(const RegionAlign& op, const Problem& problem, const Buffers& buffers, const CpuContext& context) {
  return dispatch(problem.inputs[0].dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const RegionSizes sizes(op, problem);
    const bool is_mean = op.mode == RegionPooling::avg;
    const auto* x = static_cast<const Element*>(buffers.inputs[0]);
    const auto* rois = static_cast<const Element*>(buffers.inputs[1]);
    const auto* items = static_cast<const std::int64_t*>(buffers.inputs[2]);
    auto* y = static_cast<Element*>(buffers.outputs[0]);
    const std::int64_t outputs = sizes.channels * sizes.bins();
    context.parallel_for(sizes.regions, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t region = begin; region < end; ++region) {
        Element* to = y + region * outputs;
        if (items[region] < 0 || items[region] >= sizes.items) {
          std::fill_n(to, outputs, Element(0.F));
          continue;
        }
        float corners[4];
        for (std::int64_t i = 0; i < 4; ++i) corners[i] = static_cast<float>(rois[region * 4 + i]);
        const auto rows = windows_of(axis_of(corners[1], corners[3], sizes.rows), sizes.rows, is_mean);
        const auto columns = windows_of(axis_of(corners[0], corners[2], sizes.columns), sizes.columns, is_mean);
        for (std::int64_t channel = 0; channel < sizes.channels; ++channel) {
          const Element* plane = x + (items[region] * sizes.channels + channel) * sizes.area();
          for (const RegionWindow& row : rows) {
            for (const RegionWindow& column : columns) {
              *to++ = store<Element>(pool(plane, sizes.columns.size, row, column, is_mean), 1);
            }
          }
        }
      }
    });
    return {};
  });
}

}  // namespace graft::ops
