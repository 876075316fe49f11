// Tests the layout of graphs: nothing overlaps, data flow down, chains are straight, and large graphs are fast.
#include "present/html/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace graft::html {
namespace {

constexpr double pixel = 1;

/// Checks the properties of every layout.
void check(const Layout& layout, const std::vector<Link>& links, const LayoutSizes& sizes = {}) {
  ASSERT_EQ(layout.edges.size(), links.size());
  std::vector<std::vector<std::pair<double, double>>> taken(layout.layers);
  for (const Layout::Point& node : layout.nodes) {
    taken.at(node.layer).emplace_back(node.x - sizes.node_width / 2, node.x + sizes.node_width / 2);
  }
  for (auto& row : taken) {
    std::sort(row.begin(), row.end());
    for (std::size_t i = 0; i < row.size(); ++i) {
      EXPECT_GE(row[i].first, -pixel);
      EXPECT_LE(row[i].second, layout.width + pixel);
      if (i > 0) {
        EXPECT_GE(row[i].first, row[i - 1].second) << "two nodes overlap";
      }
    }
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Layout::Point& from = layout.nodes[links[i].first];
    const Layout::Point& to = layout.nodes[links[i].second];
    EXPECT_LT(from.layer, to.layer);
    if (!layout.edges[i]) continue;
    ASSERT_EQ(layout.edges[i]->size(), to.layer - from.layer - 1);
    for (std::size_t bend = 0; bend < layout.edges[i]->size(); ++bend) {
      const double x = (*layout.edges[i])[bend];
      for (const auto& [left, right] : taken[from.layer + 1 + bend]) {
        EXPECT_FALSE(left < x && x < right) << "a line crosses a node";
      }
    }
  }
}

TEST(Layout, NothingIsDrawnOfNothing) {
  EXPECT_EQ(lay_out(0, {}).layers, 0);
  const Layout one = lay_out(1, {});
  EXPECT_EQ(one.layers, 1);
  EXPECT_EQ(one.width, LayoutSizes{}.node_width);
}

TEST(Layout, AChainIsStraightWithItsShortcutsBesideIt) {
  std::vector<Link> links;
  for (std::size_t i = 0; i + 1 < 60; ++i) links.emplace_back(i, i + 1);
  for (std::size_t i = 0; i + 4 < 60; i += 4) links.emplace_back(i, i + 4);
  const Layout layout = lay_out(60, links);
  check(layout, links);
  EXPECT_EQ(layout.layers, 60);
  for (const Layout::Point& node : layout.nodes) EXPECT_NEAR(node.x, layout.nodes[0].x, 2 * pixel);
}

TEST(Layout, SideInputsDoNotBendTheChain) {
  std::vector<Link> links;  // 0 1 2 ... is the chain; 100 + i feeds i
  for (std::size_t i = 0; i + 1 < 100; ++i) links.emplace_back(2 * i + 1, 2 * i + 3);
  for (std::size_t i = 1; i < 100; ++i) links.emplace_back(2 * i, 2 * i + 1);
  std::sort(links.begin(), links.end());
  const Layout layout = lay_out(200, links);
  check(layout, links);
  for (std::size_t i = 10; i < 100; ++i) EXPECT_NEAR(layout.nodes[2 * i + 1].x, layout.nodes[21].x, 20 * pixel);
  // A node without inputs is directly above the node that reads it.
  EXPECT_EQ(layout.nodes[100].layer + 1, layout.nodes[101].layer);
}

TEST(Layout, EqualBranchesStandSideBySide) {
  const std::vector<Link> links{{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 4}, {3, 4}};
  const Layout layout = lay_out(5, links);
  check(layout, links);
  EXPECT_EQ(layout.layers, 3);
  EXPECT_NEAR(layout.nodes[0].x, layout.nodes[2].x, pixel);
  EXPECT_NEAR(layout.nodes[4].x, layout.nodes[2].x, pixel);
}

TEST(Layout, RandomGraphsKeepTheRules) {
  std::mt19937 random(7);
  for (std::size_t count = 2; count < 80; count += 7) {
    std::vector<Link> links;
    for (std::size_t to = 1; to < count; ++to) {
      for (std::size_t k = 0; k < 1 + random() % 3; ++k) links.emplace_back(random() % to, to);
    }
    check(lay_out(count, links), links);
  }
}

TEST(Layout, LinesBeyondTheBoundAreDrawnStraight) {
  std::vector<Link> links;
  for (std::size_t i = 0; i + 1 < 50; ++i) links.emplace_back(i, i + 1);
  links.emplace_back(0, 49);
  links.emplace_back(10, 20);
  const LayoutSizes sizes{.most_bends = 20};
  const Layout layout = lay_out(50, links, sizes);
  check(layout, links, sizes);
  EXPECT_FALSE(layout.edges[49]) << "the long one";
  EXPECT_TRUE(layout.edges[50]) << "the short one";
}

TEST(Layout, LinksThatGoBackDoNoHarm) {
  const std::vector<Link> links{{1, 0}, {1, 1}, {0, 7}, {1, 2}};
  const Layout layout = lay_out(3, links);
  ASSERT_EQ(layout.nodes.size(), 3);
  EXPECT_FALSE(layout.edges[0] || layout.edges[1] || layout.edges[2]);
  EXPECT_TRUE(layout.edges[3]);
}

TEST(Layout, ALargeGraphIsLaidOut) {
  constexpr std::size_t count = 5000;
  std::vector<Link> links;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    links.emplace_back(i, i + 1);
    if (i % 10 == 0 && i + 10 < count) links.emplace_back(i, i + 10);
    if (i % 3 == 0) links.emplace_back(0, i + 1);  // a mask that everything reads
  }
  const Layout layout = lay_out(count, links);
  EXPECT_EQ(layout.nodes.size(), count);
}

}  // namespace
}  // namespace graft::html
