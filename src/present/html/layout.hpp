// Places for the nodes of a graph: layers from top to bottom, lines as straight as they can be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace graft::report {

struct LayoutSizes {
  double node_width = 196;
  double line_width = 14;          ///< What a line takes that passes a layer.
  double gap = 22;                 ///< Between what stands side by side.
  std::size_t most_bends = 40000;  ///< Lines of more layers in all are drawn straight, beneath the nodes.
};

struct Layout {
  struct Point {
    double x = 0;  ///< Of the middle.
    std::size_t layer = 0;
  };
  /// Where the line of an edge passes the layers between both nodes; nothing for one that is drawn straight.
  using Bends = std::optional<std::vector<double>>;

  std::vector<Point> nodes;
  std::vector<Bends> edges;
  double width = 0;
  double node_width = 0;
  std::size_t layers = 0;
};

using Link = std::pair<std::size_t, std::size_t>;

/// `links` go from earlier to later nodes; others are drawn straight.
[[nodiscard]] Layout lay_out(std::size_t node_count, const std::vector<Link>& links, const LayoutSizes& sizes = {});

}  // namespace graft::report
