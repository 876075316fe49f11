// Computes a layered layout of a graph: layers from top to bottom, with lines that are as straight as possible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace graft::html {

struct LayoutSizes {
  double node_width = 196;
  double line_width = 14;  ///< The width that a line occupies in a layer that it passes.
  double gap = 22;         ///< The distance between neighbors in a layer.
  /// The maximum number of bends of all lines together. If there would be more, the longest lines are drawn straight,
  /// beneath the nodes.
  std::size_t most_bends = 40000;
};

struct Layout {
  struct Point {
    double x = 0;  ///< The middle of the node.
    std::size_t layer = 0;
  };
  /// The x positions at which the line of an edge passes the layers between its nodes; nothing for an edge that is
  /// drawn straight.
  using Bends = std::optional<std::vector<double>>;

  std::vector<Point> nodes;
  std::vector<Bends> edges;
  double width = 0;
  double node_width = 0;
  std::size_t layers = 0;
};

using Link = std::pair<std::size_t, std::size_t>;

/// Computes the layout. `links` lead from earlier to later nodes; a link that does not is drawn straight.
[[nodiscard]] Layout lay_out(std::size_t node_count, const std::vector<Link>& links, const LayoutSizes& sizes = {});

}  // namespace graft::html
