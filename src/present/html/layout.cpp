// Assigns layers by the longest path, orders the nodes of a layer by barycenters, and computes positions by least
// squares. The edges that leave one node share a line.
#include "present/html/layout.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace graft::html {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

/// A node, or the position at which a line passes a layer.
struct Slot {
  std::size_t layer = 0;
  std::size_t node = none;  ///< The index of the node; `none` for a part of a line.
  double x = 0;
  double half_width = 0;
  std::vector<std::size_t> above;  ///< Connected slots in the layer above.
  std::vector<std::size_t> below;  ///< Connected slots in the layer below.
  std::size_t before = 0;          ///< Number of nodes on the longest path that ends here; 0 for a part of a line.
  std::size_t after = 0;           ///< Number of nodes on the longest path that begins here; 0 for a part of a line.
};

/// Returns the layer of each node: the length of the longest path to it. A node with at least as many outgoing as
/// incoming edges is moved down to the layer right above the nearest node that it feeds.
std::vector<std::size_t> layers_of(std::size_t count, const std::vector<std::vector<std::size_t>>& feeds) {
  std::vector<std::size_t> layers(count, 0);
  std::vector<std::size_t> reads(count, 0);
  for (std::size_t from = 0; from < count; ++from) {
    for (const std::size_t to : feeds[from]) {
      layers[to] = std::max(layers[to], layers[from] + 1);
      ++reads[to];
    }
  }
  for (std::size_t from = count; from-- > 0;) {
    if (feeds[from].empty() || feeds[from].size() < reads[from]) continue;
    std::size_t nearest = none;
    for (const std::size_t to : feeds[from]) nearest = std::min(nearest, layers[to]);
    layers[from] = nearest - 1;
  }
  return layers;
}

/// The members of Slot that are used in one direction: up or down from a layer.
struct Side {
  std::vector<std::size_t> Slot::*neighbors;
  std::size_t Slot::*way;  ///< The longest path that continues from a neighbor in this direction.
  /// The longest path in the opposite direction. Of two slots with the same wanted position, the one with the longer
  /// path comes nearer to it.
  std::size_t Slot::*claim;
};

class Drawing {
 public:
  Drawing(std::size_t count, const std::vector<Link>& links, const LayoutSizes& sizes) : sizes_(sizes), lines_(count) {
    std::vector<std::vector<std::size_t>> feeds(count);
    for (const auto& [from, to] : links) {
      if (from < to && to < count) feeds[from].push_back(to);
    }
    for (std::vector<std::size_t>& each : feeds) {
      std::sort(each.begin(), each.end());
      each.erase(std::unique(each.begin(), each.end()), each.end());
    }
    const std::vector<std::size_t> layers = layers_of(count, feeds);
    for (std::size_t node = 0; node < count; ++node) add_slot(layers[node], node);
    measure_ways(feeds);
    add_lines(feeds);
    order();
    place();
  }

  [[nodiscard]] Layout result(const std::vector<Link>& links) const {
    Layout layout;
    layout.layers = rows_.size();
    double left = slots_.front().x;
    double right = left;
    for (const Slot& slot : slots_) {
      left = std::min(left, slot.x - slot.half_width);
      right = std::max(right, slot.x + slot.half_width);
    }
    layout.width = right - left;
    layout.node_width = sizes_.node_width;
    for (std::size_t node = 0; node < lines_.size(); ++node) {
      layout.nodes.push_back({.x = slots_[node].x - left, .layer = slots_[node].layer});
    }
    for (const auto& [from, to] : links) layout.edges.push_back(bends(from, to, left));
    return layout;
  }

 private:
  /// The slots that the edges of one node pass, beginning with the layer below the node; nothing if the edges are drawn
  /// straight.
  using Line = std::optional<std::vector<std::size_t>>;

  std::size_t add_slot(std::size_t layer, std::size_t node) {
    Slot slot;
    slot.layer = layer;
    slot.node = node;
    slot.half_width = (node == none ? sizes_.line_width : sizes_.node_width) / 2;
    if (rows_.size() <= layer) rows_.resize(layer + 1);
    rows_[layer].push_back(slots_.size());
    slots_.push_back(std::move(slot));
    return slots_.size() - 1;
  }

  void connect(std::size_t above, std::size_t below) {
    slots_[above].below.push_back(below);
    slots_[below].above.push_back(above);
  }

  void measure_ways(const std::vector<std::vector<std::size_t>>& feeds) {
    for (std::size_t node = 0; node < feeds.size(); ++node) {
      slots_[node].before = std::max<std::size_t>(slots_[node].before, 1);
      for (const std::size_t to : feeds[node]) slots_[to].before = std::max(slots_[to].before, slots_[node].before + 1);
    }
    for (std::size_t node = feeds.size(); node-- > 0;) {
      for (const std::size_t to : feeds[node]) slots_[node].after = std::max(slots_[node].after, slots_[to].after);
      ++slots_[node].after;
    }
  }

  /// Adds lines, the shortest first, until there are too many bends.
  void add_lines(const std::vector<std::vector<std::size_t>>& feeds) {
    std::vector<std::pair<std::size_t, std::size_t>> lengths;
    for (std::size_t node = 0; node < feeds.size(); ++node) {
      std::size_t last = slots_[node].layer + 1;
      for (const std::size_t to : feeds[node]) last = std::max(last, slots_[to].layer);
      lengths.emplace_back(last - slots_[node].layer - 1, node);
    }
    std::sort(lengths.begin(), lengths.end());
    std::size_t bends = 0;
    for (const auto& [length, node] : lengths) {
      bends += length;
      if (bends > sizes_.most_bends) return;
      std::vector<std::size_t> line;
      std::size_t before = node;
      for (std::size_t i = 0; i < length; ++i) {
        line.push_back(add_slot(slots_[node].layer + 1 + i, none));
        connect(before, line.back());
        before = line.back();
      }
      for (const std::size_t to : feeds[node]) {
        const std::size_t passed = slots_[to].layer - slots_[node].layer - 1;
        connect(passed == 0 ? node : line[passed - 1], to);
      }
      lines_[node] = std::move(line);
    }
  }

  void order() {
    constexpr int rounds = 8;
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t row = 1; row < rows_.size(); ++row) order_row(rows_[row], &Slot::above);
      for (std::size_t row = rows_.size(); row-- > 0;) order_row(rows_[row], &Slot::below);
    }
    for (std::size_t row = 1; row < rows_.size(); ++row) order_row(rows_[row], &Slot::above);
  }

  /// Sorts a row by the mean position of the neighbors on one side. During ordering, `x` holds the index in the row.
  void order_row(std::vector<std::size_t>& row, std::vector<std::size_t> Slot::*side) {
    std::map<std::size_t, double> means;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::vector<std::size_t>& neighbors = slots_[row[i]].*side;
      double sum = 0;
      for (const std::size_t neighbor : neighbors) sum += slots_[neighbor].x;
      means[row[i]] = neighbors.empty() ? static_cast<double>(i) : sum / static_cast<double>(neighbors.size());
    }
    std::stable_sort(row.begin(), row.end(), [&](std::size_t a, std::size_t b) { return means[a] < means[b]; });
    for (std::size_t i = 0; i < row.size(); ++i) slots_[row[i]].x = static_cast<double>(i);
  }

  void place() {
    constexpr int rounds = 12;
    constexpr Side above{&Slot::above, &Slot::before, &Slot::after};
    constexpr Side below{&Slot::below, &Slot::after, &Slot::before};
    for (const std::vector<std::size_t>& row : rows_) {
      double x = 0;
      for (const std::size_t slot : row) {
        slots_[slot].x = x + slots_[slot].half_width;
        x += 2 * slots_[slot].half_width + sizes_.gap;
      }
    }
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t row = 1; row < rows_.size(); ++row) place_row(rows_[row], above);
      for (std::size_t row = rows_.size(); row-- > 0;) place_row(rows_[row], below);
    }
    for (std::size_t row = 1; row < rows_.size(); ++row) place_row(rows_[row], above);
  }

  /// Returns the best position of a slot: in line with the neighbor on the longest path, so that most of the network is
  /// straight. A slot that an edge passes is put in line with the other slots of the same edge.
  [[nodiscard]] double wanted(const Slot& slot, const Side& side) const {
    double sum = 0;
    double count = 0;
    std::size_t longest = 0;
    for (const std::size_t index : slot.*side.neighbors) {
      const Slot& neighbor = slots_[index];
      const std::size_t way = slot.node == none && neighbor.node == none ? none : neighbor.*side.way;
      if (way < longest) continue;
      if (way > longest) sum = count = 0;
      longest = way;
      sum += neighbor.x;
      ++count;
    }
    return count > 0 ? sum / count : slot.x;
  }

  /// Moves the slots of a row as near to their wanted positions as the order and the widths allow, by least squares:
  /// neighbors that are too close are merged into one block and moved together.
  void place_row(const std::vector<std::size_t>& row, const Side& side) {
    constexpr double free_weight = 0.01;
    struct Block {
      double start;  ///< The middle of the first slot.
      double weight;
      std::size_t size;
      double length;  ///< The minimum distance from `start` to the start of the next block.
    };
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Slot& slot = slots_[row[i]];
      const double next = i + 1 < row.size() ? slot.half_width + sizes_.gap + slots_[row[i + 1]].half_width : 0;
      // A slot without neighbors on this side keeps its position, but with so little weight that other slots can move
      // it. Parts of lines have the same weight.
      const bool is_free = (slot.*side.neighbors).empty() || slot.node == none;
      const double claim = 1 + static_cast<double>(slot.*side.claim);
      blocks.push_back({wanted(slot, side), is_free ? free_weight : claim * claim * claim * claim, 1, next});
      while (blocks.size() > 1) {
        Block& last = blocks.back();
        Block& before = blocks[blocks.size() - 2];
        if (before.start + before.length <= last.start) break;
        const double both = before.weight + last.weight;
        before.start = (before.start * before.weight + (last.start - before.length) * last.weight) / both;
        before.weight = both;
        before.size += last.size;
        before.length += last.length;
        blocks.pop_back();
      }
    }
    std::size_t i = 0;
    for (const Block& block : blocks) {
      double x = block.start;
      for (std::size_t k = 0; k < block.size; ++k, ++i) {
        slots_[row[i]].x = x;
        if (i + 1 < row.size()) x += slots_[row[i]].half_width + sizes_.gap + slots_[row[i + 1]].half_width;
      }
    }
  }

  [[nodiscard]] Layout::Bends bends(std::size_t from, std::size_t to, double left) const {
    if (from >= to || to >= lines_.size() || !lines_[from]) return std::nullopt;
    std::vector<double> bends;
    const std::size_t passed = slots_[to].layer - slots_[from].layer - 1;
    for (std::size_t i = 0; i < passed; ++i) bends.push_back(slots_[(*lines_[from])[i]].x - left);
    return bends;
  }

  LayoutSizes sizes_;
  std::vector<Slot> slots_;  ///< The slots of the nodes, followed by the slots of the lines.
  std::vector<std::vector<std::size_t>> rows_;
  std::vector<Line> lines_;
};

}  // namespace

Layout lay_out(std::size_t node_count, const std::vector<Link>& links, const LayoutSizes& sizes) {
  if (node_count == 0) return {};
  return Drawing(node_count, links, sizes).result(links);
}

}  // namespace graft::html
