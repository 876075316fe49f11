// The findings of a command as an HTML page: graphs with a verdict on each node, tables, and charts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graft/report/inspect.hpp"
#include "graft/report/node_cost.hpp"

namespace graft::html {

/// The version of the JSON schema. It increases if a key is removed or gets another meaning, so that readers have to
/// change.
inline constexpr int schema_version = 1;

/// A color. The viewer has one shade of it for light pages and one for dark pages.
enum class Tone : std::uint8_t { plain, blue, green, violet, amber, red };

/// A kind of nodes or tensors, such as a verdict or a size of the error, with its mark and its color in the viewer.
struct Kind {
  std::string key;    ///< The key by which nodes and cells refer to the kind.
  std::string mark;   ///< A character that is shown with the color, since not everybody sees colors.
  std::string title;  ///< The name of the kind for readers, for example "unsupported".
  std::string meaning;
  Tone tone = Tone::plain;
  bool is_problem = false;  ///< Whether the viewer steps through the nodes of this kind.
};

/// A string with a name.
struct Fact {
  std::string name;
  std::string text;
};

/// A tensor that a node reads or computes.
struct Port {
  std::string name;
  std::string type;          ///< The type and shape, for example "f32[1, 64, 56, 56]".
  bool is_constant = false;  ///< Whether the tensor is a constant; constants are not drawn.
};

/// A node of one of the report's graphs. The viewer shows the node's name as a link to the node.
struct Place {
  std::size_t graph = 0;
  std::size_t node = 0;
  std::string text = {};  ///< The text of the link; if empty, the node's name is shown.
};

struct Node {
  std::string op;
  std::string name;
  std::string type;  ///< The type of the first output.
  std::string kind;  ///< The key of a Kind; empty if there is no verdict.
  std::string reason;
  std::string advice;       ///< The action that the user can take.
  bool is_end = false;      ///< Whether the node is an input or output of the graph.
  std::vector<Fact> facts;  ///< Findings, such as figures or the replacement of the node.
  std::vector<Fact> attributes;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<std::size_t> graphs;               ///< The node's sub-graphs, as indices of Report::graphs.
  std::optional<std::size_t> distribution = {};  ///< The result's distribution, as an index of Report::distributions.
  report::NodeCost cost = {};                    ///< The work and the memory of the node.
  /// The nodes of the other graph in Report::compared that compute the same values.
  std::vector<std::size_t> counterparts = {};
};

struct Edge {
  std::size_t from = 0;
  std::size_t to = 0;
  std::string tensor;
};

/// A graph with its nodes in topological order: an edge leads from an earlier to a later node.
struct Graph {
  std::string title;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

/// A histogram of the absolute values in a tensor. The viewer draws it small in a table and larger next to the node.
struct Distribution {
  std::string title;
  double bin_width = 0;  ///< The width of each bin; the first bin begins at 0.
  std::vector<std::uint64_t> counts;
  std::uint64_t zeros = 0;  ///< The number of zeros, which no bin counts.
  std::optional<double> threshold = {};
  std::string threshold_title = {};
};
/// A cell with a distribution, given by its index in Report::distributions.
struct DistributionAt {
  std::size_t index = 0;
};

/// A cell of a table: nothing, a string (in a column of kinds, the key of a Kind), a number, a node, or a distribution.
using Cell = std::variant<std::monostate, std::string, double, Place, DistributionAt>;
/// Returns a cell with the number, or an empty cell if there is no number.
[[nodiscard]] inline Cell cell_of(const std::optional<double>& number) { return number ? Cell(*number) : Cell(); }

struct Column {
  enum class Type : std::uint8_t { text, code, number, kind, node, distribution };
  std::string title;
  Type type = Type::text;
  std::string meaning = {};
  bool is_low_first = false;  ///< Whether sorting by this column shows the smallest values first.
};

struct Table {
  std::string title;
  std::string note = {};
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows = {};
  bool is_folded = false;  ///< Whether only the title is shown at first.
};

/// The number of values in each of several ranges.
struct Histogram {
  struct Bin {
    std::string label;
    std::size_t count = 0;
    std::string kind;  ///< The key of a Kind, or empty.
  };
  std::string title;
  std::string note = {};
  std::string axis;     ///< The quantity on the axis: "error / allowed".
  std::string counted;  ///< The name of the counted things: "tensors".
  std::vector<Bin> bins;
};

/// Rows with a bar for each of several series.
struct BarChart {
  struct Series {
    std::string title;
    Tone tone = Tone::plain;
  };
  struct Row {
    std::string label;
    std::string note;
    std::vector<std::optional<double>> values;  ///< The values of the row, one for each series.
    /// The target of the row, such as an attainable speed, which the chart marks.
    std::optional<double> mark = {};
    bool is_problem = false;
  };
  std::string title;
  std::string note = {};
  int digits = 1;                   ///< Number of digits after the decimal point.
  std::optional<double> line = {};  ///< A value that is drawn as a line across all rows.
  std::string line_title = {};
  std::vector<Series> series;
  std::vector<Row> rows;
};

/// Points with one y value and one or more x values. For each x axis, the viewer shows a plot of all points.
struct Scatter {
  struct Axis {
    std::string title;
    int digits = 1;  ///< Number of digits after the decimal point.
  };
  /// A series of points. The first series is drawn as discs, the second as crosses, and so on in turn.
  struct Series {
    std::string title;
    Tone tone = Tone::plain;
  };
  struct Point {
    std::string label;
    std::vector<double> x;  ///< The x values of the point, one for each x axis.
    double y = 0;
    std::size_t series = 0;
    bool is_chosen = false;
  };
  struct Line {
    std::string title;
    double y = 0;
  };
  std::string title;
  std::string note = {};
  std::vector<Axis> x;
  Axis y;
  std::vector<Series> series;
  std::vector<Line> lines = {};  ///< Horizontal lines.
  std::vector<Point> points;
};

using Section = std::variant<Table, Histogram, BarChart, Scatter>;

/// A problem and what to do about it, which the viewer shows above the graph.
struct Problem {
  std::string title;  ///< The number of nodes and their operator, for example "3 NonMaxSuppression".
  std::string kind;   ///< The key of a Kind; empty if the problem is not a verdict on nodes.
  std::string reason;
  std::string advice;
  std::vector<Place> nodes = {};  ///< The nodes that have the problem.
};

/// Nodes that belong together, such as nodes that a conversion fuses. The viewer highlights them together.
struct Group {
  std::string title;  ///< The operator that replaces the nodes, for example "InstanceNorm, as a plugin".
  std::string note;
  std::vector<Place> nodes;
};

/// Two graphs that the viewer shows side by side, as indices of Report::graphs.
struct Comparison {
  std::size_t before = 0;
  std::size_t after = 0;
};

struct Report {
  std::string command;       ///< The command that wrote the report, for example "inspect".
  std::string command_line;  ///< The command line that wrote the report; empty if a program called the library.
  std::string version;       ///< The version of Graft.
  std::string date;          ///< The time of the report in UTC, for example "2026-11-22T09:30:00Z".
  std::string title;
  std::string verdict;            ///< The result in one sentence.
  std::vector<Problem> problems;  ///< The worst problem first.
  std::vector<report::NextCommand> next;
  std::vector<Fact> summary;
  std::vector<Kind> kinds;  ///< The kinds, from best to worst.
  std::vector<Graph> graphs;
  std::vector<Group> groups;
  std::optional<Comparison> compared = {};
  /// The graph that the page shows first; if empty, the graphs in `compared` or, without them, the first graph.
  std::optional<std::size_t> opens = {};
  std::vector<Distribution> distributions;
  std::vector<Section> sections;  ///< The sections below the graph, in this order.
};

/// Returns a histogram of absolute values with one bin for each power of ten. Zeros and values that are not finite have
/// bins of their own.
[[nodiscard]] Histogram histogram_of(const std::vector<double>& values);

/// Returns the report as JSON, with keys in a fixed order and without the layout that only the page needs.
[[nodiscard]] std::string json_of(const Report& report);
/// Returns an HTML page that needs no other file and no network.
[[nodiscard]] std::string html_of(const Report& report);

/// Returns the path of the JSON file of a page: "page.html.json" for "page.html".
[[nodiscard]] std::filesystem::path json_beside(const std::filesystem::path& page);
/// Throws Error if SOURCE_DATE_EPOCH has a date that cannot be read. Commands call it before long work.
void check_date();
/// Throws Error if the page or its JSON file cannot be written, and as check_date() does. Commands call it before long
/// work.
void check_writable(const std::filesystem::path& page);
/// Writes the page and its JSON file. Each file is written completely or not at all.
void write(const Report& report, const std::filesystem::path& page);

}  // namespace graft::html
