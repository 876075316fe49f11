// Writes a report as JSON and as a page, which is the viewer with the JSON inside.
#include "present/html/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/atomic_file.hpp"
#include "core/report_date.hpp"
#include "present/html/layout.hpp"
#include "present/html/viewer.hpp"

namespace graft::html {
namespace {

using Json = nlohmann::ordered_json;

template <std::size_t size>
std::string_view name_in(const std::array<std::string_view, size>& names, std::size_t index) {
  return names.at(index);
}

std::string_view name_of(Tone tone) {
  constexpr std::array<std::string_view, 6> names{"plain", "blue", "green", "violet", "amber", "red"};
  return name_in(names, static_cast<std::size_t>(tone));
}

std::string_view name_of(Column::Type type) {
  constexpr std::array<std::string_view, 6> names{"text", "code", "number", "kind", "node", "distribution"};
  return name_in(names, static_cast<std::size_t>(type));
}

/// Returns a JSON number, or a string for infinity and NaN, which JSON cannot represent.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(); }

Json json_of(const std::vector<Fact>& facts) {
  Json list = Json::array();
  for (const Fact& fact : facts) list.push_back({{"name", fact.name}, {"text", fact.text}});
  return list;
}

Json json_of(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& port : ports) {
    list.push_back({{"name", port.name}, {"type", port.type}, {"constant", port.is_constant}});
  }
  return list;
}

Json json_of(const Place& place) {
  Json json;
  json["graph"] = place.graph;
  json["node"] = place.node;
  if (!place.text.empty()) json["text"] = place.text;
  return json;
}

Json json_of(const std::vector<Place>& places) {
  Json list = Json::array();
  for (const Place& place : places) list.push_back(json_of(place));
  return list;
}

Json json_of(const std::optional<std::uint64_t>& count) { return count ? Json(*count) : Json(); }

Json json_of(const Node& node) {
  return {{"op", node.op},
          {"name", node.name},
          {"type", node.type},
          {"kind", node.kind},
          {"reason", node.reason},
          {"advice", node.advice},
          {"end", node.is_end},
          {"facts", json_of(node.facts)},
          {"attributes", json_of(node.attributes)},
          {"inputs", json_of(node.inputs)},
          {"outputs", json_of(node.outputs)},
          {"graphs", node.graphs},
          {"distribution", node.distribution ? Json(*node.distribution) : Json()},
          {"macs", json_of(node.cost.macs)},
          {"parameters", json_of(node.cost.parameters)},
          {"weight_bytes", json_of(node.cost.weight_bytes)},
          {"tensor_bytes", json_of(node.cost.tensor_bytes)},
          {"counterparts", node.counterparts}};
}

Json json_of(const Graph& graph) {
  Json nodes = Json::array();
  for (const Node& node : graph.nodes) nodes.push_back(json_of(node));
  Json edges = Json::array();
  for (const Edge& edge : graph.edges) {
    edges.push_back({{"from", edge.from}, {"to", edge.to}, {"tensor", edge.tensor}});
  }
  return {{"title", graph.title}, {"nodes", nodes}, {"edges", edges}};
}

Json json_of(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  if (const auto* value = std::get_if<double>(&cell)) return number(*value);
  if (const auto* place = std::get_if<Place>(&cell)) return json_of(*place);
  if (const auto* distribution = std::get_if<DistributionAt>(&cell)) return distribution->index;
  return nullptr;
}

Json json_of(const Table& table) {
  Json columns = Json::array();
  for (const Column& column : table.columns) {
    columns.push_back({{"title", column.title},
                       {"type", name_of(column.type)},
                       {"meaning", column.meaning},
                       {"low_first", column.is_low_first}});
  }
  Json rows = Json::array();
  for (const std::vector<Cell>& row : table.rows) {
    Json cells = Json::array();
    for (const Cell& cell : row) cells.push_back(json_of(cell));
    rows.push_back(std::move(cells));
  }
  return {{"section", "table"},        {"title", table.title}, {"note", table.note},
          {"folded", table.is_folded}, {"columns", columns},   {"rows", rows}};
}

Json json_of(const Histogram& histogram) {
  Json bins = Json::array();
  for (const Histogram::Bin& bin : histogram.bins) {
    bins.push_back({{"label", bin.label}, {"count", bin.count}, {"kind", bin.kind}});
  }
  return {{"section", "histogram"}, {"title", histogram.title},     {"note", histogram.note},
          {"axis", histogram.axis}, {"counted", histogram.counted}, {"bins", bins}};
}

Json json_of(const BarChart& chart) {
  Json series = Json::array();
  for (const BarChart::Series& each : chart.series) {
    series.push_back({{"title", each.title}, {"tone", name_of(each.tone)}});
  }
  Json rows = Json::array();
  for (const BarChart::Row& row : chart.rows) {
    Json values = Json::array();
    for (const std::optional<double>& value : row.values) values.push_back(number(value));
    rows.push_back({{"label", row.label},
                    {"note", row.note},
                    {"values", values},
                    {"mark", number(row.mark)},
                    {"problem", row.is_problem}});
  }
  return {
      {"section", "bars"},          {"title", chart.title},           {"note", chart.note}, {"digits", chart.digits},
      {"line", number(chart.line)}, {"line_title", chart.line_title}, {"series", series},   {"rows", rows}};
}

Json json_of(const Scatter::Axis& axis) { return {{"title", axis.title}, {"digits", axis.digits}}; }

Json json_of(const Scatter& scatter) {
  Json axes = Json::array();
  for (const Scatter::Axis& axis : scatter.x) axes.push_back(json_of(axis));
  Json series = Json::array();
  for (const Scatter::Series& each : scatter.series) {
    series.push_back({{"title", each.title}, {"tone", name_of(each.tone)}});
  }
  Json lines = Json::array();
  for (const Scatter::Line& line : scatter.lines) lines.push_back({{"title", line.title}, {"y", number(line.y)}});
  Json points = Json::array();
  for (const Scatter::Point& point : scatter.points) {
    Json x = Json::array();
    for (const double value : point.x) x.push_back(number(value));
    points.push_back({{"label", point.label},
                      {"x", x},
                      {"y", number(point.y)},
                      {"series", point.series},
                      {"chosen", point.is_chosen}});
  }
  return {{"section", "scatter"},    {"title", scatter.title}, {"note", scatter.note}, {"x", axes},
          {"y", json_of(scatter.y)}, {"series", series},       {"lines", lines},       {"points", points}};
}

Json json_of(const Distribution& distribution) {
  return {{"title", distribution.title},
          {"bin_width", number(distribution.bin_width)},
          {"counts", distribution.counts},
          {"zeros", distribution.zeros},
          {"threshold", number(distribution.threshold)},
          {"threshold_title", distribution.threshold_title}};
}

Json document(const Report& report) {
  Json kinds = Json::array();
  for (const Kind& kind : report.kinds) {
    kinds.push_back({{"key", kind.key},
                     {"mark", kind.mark},
                     {"title", kind.title},
                     {"meaning", kind.meaning},
                     {"tone", name_of(kind.tone)},
                     {"problem", kind.is_problem}});
  }
  Json problems = Json::array();
  for (const Problem& problem : report.problems) {
    Json& json = problems.emplace_back();
    json["title"] = problem.title;
    json["kind"] = problem.kind;
    json["reason"] = problem.reason;
    json["advice"] = problem.advice;
    json["nodes"] = json_of(problem.nodes);
  }
  Json next = Json::array();
  for (const report::NextCommand& command : report.next) {
    Json& json = next.emplace_back();
    json["command"] = command.command;
    json["why"] = command.why;
  }
  Json graphs = Json::array();
  for (const Graph& graph : report.graphs) graphs.push_back(json_of(graph));
  Json groups = Json::array();
  for (const Group& group : report.groups) {
    Json& json = groups.emplace_back();
    json["title"] = group.title;
    json["note"] = group.note;
    json["nodes"] = json_of(group.nodes);
  }
  Json compared;
  if (report.compared) {
    compared["before"] = report.compared->before;
    compared["after"] = report.compared->after;
  }
  Json distributions = Json::array();
  for (const Distribution& distribution : report.distributions) distributions.push_back(json_of(distribution));
  Json sections = Json::array();
  for (const Section& section : report.sections) {
    sections.push_back(std::visit([](const auto& each) { return json_of(each); }, section));
  }
  return {{"schema", "graft.report"},
          {"version", schema_version},
          {"graft", report.version},
          {"command", report.command},
          {"command_line", report.command_line},
          {"date", report.date},
          {"title", report.title},
          {"verdict", report.verdict},
          {"problems", problems},
          {"next", next},
          {"summary", json_of(report.summary)},
          {"kinds", kinds},
          {"graphs", graphs},
          {"groups", groups},
          {"compared", compared},
          {"opens", report.opens ? Json(*report.opens) : Json()},
          {"distributions", distributions},
          {"sections", sections}};
}

/// Returns a layout as JSON. Positions are rounded to integers, since a tenth of a pixel is not visible.
Json json_of(const Layout& layout) {
  Json nodes = Json::array();
  for (const Layout::Point& point : layout.nodes) nodes.push_back({std::lround(point.x), point.layer});
  Json edges = Json::array();
  for (const Layout::Bends& bends : layout.edges) {
    Json xs = bends ? Json::array() : Json();
    if (bends) {
      for (const double x : *bends) xs.push_back(std::lround(x));
    }
    edges.push_back(std::move(xs));
  }
  return {{"width", std::lround(layout.width)},
          {"node_width", std::lround(layout.node_width)},
          {"layers", layout.layers},
          {"nodes", nodes},
          {"edges", edges}};
}

Json layout_of(const Graph& graph) {
  std::vector<Link> links;
  links.reserve(graph.edges.size());
  for (const Edge& edge : graph.edges) links.emplace_back(edge.from, edge.to);
  return json_of(lay_out(graph.nodes.size(), links));
}

/// Returns JSON as a string. Names in models can contain any bytes; invalid UTF-8 is replaced instead of refused.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// Escapes each `<`, so that the JSON cannot end the HTML element that contains it. In JSON, `<` occurs only inside
/// strings.
std::string without_tags(const std::string& json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

/// Removes the keys of a node whose values are empty, which are more than half of the text of a large network. The
/// viewer adds them again.
void leave_out_empty(Json& node) {
  for (auto member = node.begin(); member != node.end();) {
    const Json& value = member.value();
    const bool is_empty_text = value.is_string() && value.get_ref<const std::string&>().empty();
    const bool is_empty = value.is_null() || is_empty_text || value == false || (value.is_array() && value.empty());
    member = is_empty ? node.erase(member) : std::next(member);
  }
}

constexpr int smallest_power = -12;
constexpr int largest_power = 12;

std::string bin_label(int power) {
  if (power < smallest_power) return fmt::format("below 1e{}", smallest_power);
  if (power > largest_power) return fmt::format("from 1e{}", power);
  return fmt::format("1e{} to 1e{}", power, power + 1);
}

}  // namespace

Histogram histogram_of(const std::vector<double>& values) {
  std::size_t zeros = 0;
  std::size_t others = 0;
  std::map<int, std::size_t> powers;
  for (const double value : values) {
    const double size = std::abs(value);
    if (size == 0) {
      ++zeros;
    } else if (!std::isfinite(size)) {
      ++others;
    } else {
      ++powers[std::clamp(static_cast<int>(std::floor(std::log10(size))), smallest_power - 1, largest_power + 1)];
    }
  }
  Histogram histogram;
  if (zeros != 0) histogram.bins.push_back({"0", zeros, {}});
  if (!powers.empty()) {
    for (int power = powers.begin()->first; power <= powers.rbegin()->first; ++power) {
      const auto found = powers.find(power);
      histogram.bins.push_back({bin_label(power), found == powers.end() ? 0 : found->second, {}});
    }
  }
  if (others != 0) histogram.bins.push_back({"not finite", others, {}});
  return histogram;
}

std::string json_of(const Report& report) { return text_of(document(report), 1) + "\n"; }

std::string html_of(const Report& report) {
  Json data = document(report);
  for (std::size_t i = 0; i < report.graphs.size(); ++i) {
    Json& graph = data["graphs"][i];
    for (Json& node : graph["nodes"]) leave_out_empty(node);
    graph["layout"] = layout_of(report.graphs[i]);
  }
  const std::size_t place = viewer.find(viewer_data);
  std::string page(viewer.substr(0, place));
  page += without_tags(text_of(data, -1));
  page += viewer.substr(place + viewer_data.size());
  return page;
}

std::filesystem::path json_beside(const std::filesystem::path& page) { return page.string() + ".json"; }

void check_date() { static_cast<void>(report_date()); }

void check_writable(const std::filesystem::path& page) {
  check_date();
  const AtomicFile html(page);
  const AtomicFile json(json_beside(page));
}

void write(const Report& report, const std::filesystem::path& page) {
  write_file(page, html_of(report));
  write_file(json_beside(page), json_of(report));
}

}  // namespace graft::html
