// What a command found, as a page to look at: graphs with a verdict on each node, tables, charts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace graft::report {

/// Raised when a reader of the JSON would have to change: a key that goes or gets another meaning.
inline constexpr int schema_version = 1;

/// The viewer has a pair of colors for each, for light and dark pages.
enum class Tone : std::uint8_t { plain, blue, green, violet, amber, red };

/// A verdict on a node, or how far a tensor is from what it should be.
struct Kind {
  std::string key;    ///< What nodes and cells refer to it by.
  std::string mark;   ///< One character that is shown with the color: not everybody sees colors.
  std::string title;  ///< "unsupported"
  std::string meaning;
  Tone tone = Tone::plain;
  bool is_problem = false;  ///< The viewer leads from one to the next.
};

/// A name and a text beside it.
struct Fact {
  std::string name;
  std::string text;
};

/// A tensor that goes into a node or comes out of it.
struct Port {
  std::string name;
  std::string type;          ///< "f32[1, 64, 56, 56]"
  bool is_constant = false;  ///< Constants are not drawn.
};

struct Node {
  std::string op;
  std::string name;
  std::string type;  ///< Of the first output.
  std::string kind;  ///< Key of a Kind; empty where there is no verdict.
  std::string reason;
  std::string advice;       ///< What to do about it.
  bool is_end = false;      ///< An input or output of the graph.
  std::vector<Fact> facts;  ///< What was found: figures, what becomes of it.
  std::vector<Fact> attributes;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<std::size_t> graphs;               ///< Its sub-graphs, by their place in the report.
  std::optional<std::size_t> distribution = {};  ///< Of what it gives, by its place in the report.
};

struct Edge {
  std::size_t from = 0;
  std::size_t to = 0;
  std::string tensor;
};

/// Nodes in topological order: an edge goes from an earlier to a later one.
struct Graph {
  std::string title;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
};

/// A node of one of the report's graphs; the viewer shows its name and goes there.
struct Place {
  std::size_t graph = 0;
  std::size_t node = 0;
  std::string text = {};  ///< Shown in place of the node's name.
};

/// How often which size occurs in a tensor: small in a table, larger beside its node.
struct Distribution {
  std::string title;
  double bin_width = 0;  ///< Of sizes; the first bin begins at 0.
  std::vector<std::uint64_t> counts;
  std::uint64_t zeros = 0;  ///< In none of the bins.
  std::optional<double> threshold = {};
  std::string threshold_title = {};
};
/// As a cell: by its place in the report.
struct DistributionAt {
  std::size_t index = 0;
};

/// Nothing, a text (in a column of kinds, a key), a number, a node, or a distribution.
using Cell = std::variant<std::monostate, std::string, double, Place, DistributionAt>;
/// Empty where there is no number.
[[nodiscard]] inline Cell cell_of(const std::optional<double>& number) { return number ? Cell(*number) : Cell(); }

struct Column {
  enum class Type : std::uint8_t { text, code, number, kind, node, distribution };
  std::string title;
  Type type = Type::text;
  std::string meaning = {};
  bool is_low_first = false;  ///< Small numbers are those to look at: they come first when it is sorted.
};

struct Table {
  std::string title;
  std::string note = {};
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows = {};
  bool is_folded = false;  ///< Only its title is shown at first.
};

/// How many values fall into each range.
struct Histogram {
  struct Bin {
    std::string label;
    std::size_t count = 0;
    std::string kind;  ///< Key of a Kind, or empty.
  };
  std::string title;
  std::string note = {};
  std::string axis;     ///< What the labels are.
  std::string counted;  ///< "tensors"
  std::vector<Bin> bins;
};

/// Bars of several series for each row, beside each other.
struct BarChart {
  struct Series {
    std::string title;
    Tone tone = Tone::plain;
  };
  struct Row {
    std::string label;
    std::string note;
    std::vector<std::optional<double>> values;  ///< One for each series.
    std::optional<double> mark = {};            ///< What was to be reached.
    bool is_problem = false;
  };
  std::string title;
  std::string note = {};
  int digits = 1;                   ///< Behind the decimal point.
  std::optional<double> line = {};  ///< Drawn across all rows.
  std::string line_title = {};
  std::vector<Series> series;
  std::vector<Row> rows;
};

/// Points by two measures. With several measures for x there is a plot of each, and a point is in all of them.
struct Scatter {
  struct Axis {
    std::string title;
    int digits = 1;  ///< Behind the decimal point.
  };
  /// Each has a mark of its own: a disc, a cross.
  struct Series {
    std::string title;
    Tone tone = Tone::plain;
  };
  struct Point {
    std::string label;
    std::vector<double> x;  ///< One for each axis.
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
  std::vector<Line> lines = {};  ///< Drawn across.
  std::vector<Point> points;
};

using Section = std::variant<Table, Histogram, BarChart, Scatter>;

struct Report {
  std::string command;  ///< "inspect"
  std::string version;  ///< Of the program.
  std::string title;
  std::vector<Fact> summary;
  std::vector<Kind> kinds;  ///< From best to worst.
  std::vector<Graph> graphs;
  std::vector<Distribution> distributions;
  std::vector<Section> sections;  ///< Below the graph, in this order.
};

/// Values in one bin for each power of ten. Zeros and what is not finite have bins of their own.
[[nodiscard]] Histogram histogram_of(const std::vector<double>& values);

/// The same with nothing that only the drawing needs. Keys stay in order.
[[nodiscard]] std::string json_of(const Report& report);
/// One page that needs no other file and no network.
[[nodiscard]] std::string html_of(const Report& report);

/// Where the JSON beside a page is written.
[[nodiscard]] std::filesystem::path json_beside(const std::filesystem::path& page);
/// Throws Error where one of the two could not be written, before long work is begun.
void check_writable(const std::filesystem::path& page);
/// The page, and the JSON beside it; each whole or not at all.
void write(const Report& report, const std::filesystem::path& page);

}  // namespace graft::report
