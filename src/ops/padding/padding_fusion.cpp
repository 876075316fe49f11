// Pass fuse_padding: nodes that mirror, repeat or wrap a tensor at its borders become one Padding. For example
//   Concat(Slice(x, step=-1), x, Slice(x, step=-1))  becomes  Padding(x, mode=reflect)
//
// PyTorch writes slices, flips (slices with a negative step) and concatenations, or a Gather for each axis; older
// exporters write a chain of Pad, one axis each. A single ONNX Pad stays unless plugins are requested.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "graft/operator/registry.hpp"
#include "passes/fuse.hpp"
#include "passes/layout/movement.hpp"
#include "passes/operator_fusion.hpp"
#include "passes/pipeline.hpp"

namespace graft::passes {
namespace {

/// The modes in the order of preference if several fit; modes that TensorRT supports itself come first.
constexpr std::array<std::string_view, 5> modes = {"reflect", "edge", "constant", "wrap", "symmetric"};

/// Returns the index of the element that `mode` copies to position i of an axis of n elements, or AxisMaps::outside for
/// the constant. i may lie outside of 0 to n - 1.
std::int64_t continued(std::string_view mode, std::int64_t i, std::int64_t n) {
  const auto modulo = [](std::int64_t a, std::int64_t b) { return (a % b + b) % b; };
  if (i >= 0 && i < n) return i;
  if (mode == "constant") return AxisMaps::outside;
  if (mode == "edge") return std::clamp<std::int64_t>(i, 0, n - 1);
  if (mode == "wrap") return modulo(i, n);
  const std::int64_t period = mode == "reflect" ? std::max<std::int64_t>(2 * n - 2, 1) : 2 * n;
  const std::int64_t place = modulo(i, period);
  return place < n ? place : period - place - (mode == "reflect" ? 0 : 1);
}

bool fits(std::string_view mode, const std::vector<std::int64_t>& map, std::int64_t n, std::int64_t begin) {
  const auto count = static_cast<std::int64_t>(map.size());
  // ONNX and TensorRT mirror at most once, up to the other end. Wrapping by a whole length or more is a repetition.
  const std::int64_t most = mode == "reflect" || mode == "wrap" ? n - 1 : mode == "symmetric" ? n : count;
  if (begin > most || count - n - begin > most) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    if (map[static_cast<std::size_t>(i)] != continued(mode, i - begin, n)) return false;
  }
  return true;
}

/// Returns the number of elements that `mode` adds before the axis. Returns nothing unless one number fits every run of
/// the nodes.
std::optional<std::int64_t> begin_of(std::string_view mode, const std::vector<AxisMaps>& runs, std::size_t axis) {
  const auto growth = [axis](const AxisMaps& run) {
    return static_cast<std::int64_t>(run.axes[axis].size()) - run.x_dims[axis];
  };
  const std::int64_t most = growth(runs[0]);
  for (std::int64_t begin = 0; begin <= most; ++begin) {
    const bool in_all = std::all_of(runs.begin(), runs.end(), [&](const AxisMaps& run) {
      return growth(run) == most && fits(mode, run.axes[axis], run.x_dims[axis], begin);
    });
    if (in_all) return begin;
  }
  return std::nullopt;
}

/// Returns why the runs of the nodes are not a padding in one mode, for a message.
std::string describe_obstacle(const std::vector<AxisMaps>& runs) {
  const AxisMaps& run = runs[0];
  for (const AxisMaps& other : runs) {
    for (std::size_t axis = 0; axis < run.axes.size(); ++axis) {
      const auto fits_one = [&](const std::vector<AxisMaps>& some) {
        return std::any_of(modes.begin(), modes.end(),
                           [&](auto mode) { return begin_of(mode, some, axis).has_value(); });
      };
      if (fits_one({run}) && !fits_one({run, other})) {
        return fmt::format(
            "the nodes pad x if axis {} has {} elements; with {} elements they compute another padding or none", axis,
            run.x_dims[axis], other.x_dims[axis]);
      }
    }
  }
  std::string text;
  for (std::size_t axis = 0; axis < run.axes.size(); ++axis) {
    const auto n = run.x_dims[axis];
    const std::vector<std::int64_t>& map = run.axes[axis];
    std::string fitting;
    for (const std::string_view mode : modes) {
      if (begin_of(mode, {run}, axis)) fitting += fmt::format("{}{}", fitting.empty() ? "" : " or ", mode);
    }
    if (fitting.empty()) {
      const std::size_t shown = std::min<std::size_t>(map.size(), 12);
      return fmt::format("axis {} of {} elements becomes [{}{}], which is not a mode of Padding", axis, n,
                         fmt::join(map.begin(), map.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                         shown < map.size() ? ", ..." : "");
    }
    if (static_cast<std::int64_t>(map.size()) != n) {
      text += fmt::format("{}axis {} as {}", text.empty() ? "" : ", ", axis, fitting);
    }
  }
  return "no single mode pads all axes: " + text;
}

MovementFusion read(Rewriter& rewriter, const Movement& movement, const std::vector<AxisMaps>& runs) {
  const std::size_t rank = runs[0].axes.size();
  for (const std::string_view mode : modes) {
    std::vector<std::int64_t> pads(2 * rank, 0);
    bool in_this_mode = true;
    for (std::size_t axis = 0; axis < rank && in_this_mode; ++axis) {
      const auto begin = begin_of(mode, runs, axis);
      in_this_mode = begin.has_value();
      if (!begin) break;
      pads[axis] = *begin;
      pads[axis + rank] = static_cast<std::int64_t>(runs[0].axes[axis].size()) - runs[0].x_dims[axis] - *begin;
    }
    const bool same_constant =
        std::all_of(runs.begin(), runs.end(), [&](const AxisMaps& run) { return run.constant == runs[0].constant; });
    if (!in_this_mode || (mode == "constant" && !same_constant)) continue;
    std::shared_ptr<Operator> op = find_operator("Padding")->create();
    const auto value = static_cast<float>(mode == "constant" ? runs[0].constant : 0);
    const std::vector<NamedAttribute> attributes{{"mode", std::string(mode)}, {"pads", pads}, {"value", value}};
    if (const Status status = op->set(attributes); !status.ok()) return MovementFusion::none(status.message());
    if (!is_wanted(rewriter, *op, *movement.x, *movement.y)) return {};
    return {.edit = operator_edit(op, {movement.x->name}, movement.y->name),
            .replacement = to_text(*op),
            .why = fmt::format("{} nodes move elements like padding in mode {}", movement.nodes.size(), mode),
            .obstacle = ""};
  }
  return MovementFusion::none(describe_obstacle(runs));
}

void fuse_padding(Rewriter& rewriter) {
  const auto of_any_length = [](std::int64_t, std::int64_t) { return true; };
  fuse_movements(rewriter, "Padding", of_any_length, [&](const Movement& movement, const std::vector<AxisMaps>& runs) {
    return read(rewriter, movement, runs);
  });
}

}  // namespace

extern const OperatorFusion padding_fusion{
    .pass =
        {"fuse_padding",
         "the nodes only move elements; runs after fuse_upsampling, because parts of a repetition look like a border",
         fuse_padding},
    .after = "fuse_upsampling"};

}  // namespace graft::passes
