// A long expression for a dimension is shown as "?".
#include "present/text/model_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <variant>

namespace graft::present {
namespace {

std::string sizes_text(const report::ModelPort& port) {
  if (!port.shape) return "of unknown rank";
  std::string text;
  constexpr std::size_t longest = 24;
  for (const auto& size : *port.shape) {
    const std::string written = std::visit([](const auto& value) { return fmt::format("{}", value); }, size);
    text += (text.empty() ? "" : " x ") + (written.size() <= longest ? written : "?");
  }
  return text.empty() ? "scalar" : text;
}

/// The number of nodes by operator.
using OperatorCounts = std::map<std::string, std::size_t, std::less<>>;

/// Returns the operators with their counts, the most frequent first: "12 Conv2D, 3 BiasAdd".
std::string operators_text(const OperatorCounts& operators) {
  std::vector<std::pair<std::string, std::size_t>> sorted(operators.begin(), operators.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  constexpr std::size_t few = 12;
  std::string text;
  for (std::size_t i = 0; i < sorted.size() && i < few; ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", sorted[i].second, sorted[i].first);
  }
  return sorted.size() <= few ? text : fmt::format("{} and {} other kinds", text, sorted.size() - few);
}

}  // namespace

Table io_table(const std::vector<report::ModelPort>& inputs, const std::vector<report::ModelPort>& outputs) {
  Table table;
  const auto add = [&](const char* side, const std::vector<report::ModelPort>& ports) {
    for (const report::ModelPort& port : ports) {
      table.add({{side, Color::faint}, {port.name, Color::strong}, port.type, sizes_text(port)});
    }
  };
  add("input", inputs);
  add("output", outputs);
  return table;
}

std::string origin_text(const report::Origin& origin) {
  return origin.format.empty() ? "" : fmt::format("{} of {}", origin.format, count_text(origin.nodes, origin.unit));
}

Table origin_table(const report::Origin& origin) {
  Table table;
  table.add({{"read", Color::faint}, operators_text(origin.operators)});
  std::map<std::string, OperatorCounts> reasons;
  for (const report::LeftOut& entry : origin.left_out) reasons[entry.why][entry.op] += entry.count;
  for (const auto& [why, operators] : reasons) {
    table.add({{"left out", Color::faint}, fmt::format("{}: {}", operators_text(operators), why)});
  }
  if (origin.renamed != 0) {
    table.add({{"renamed", Color::faint},
               fmt::format("{}: the output of an in-place layer gets the name of the layer",
                           count_text(origin.renamed, "tensor"))});
  }
  return table;
}

std::string nodes_text(const report::NodeCounts& counts) {
  std::string text = count_text(counts.nodes, "node");
  if (counts.constants != 0) text += fmt::format(" and {}", count_text(counts.constants, "constant"));
  if (counts.in_bodies != 0) text += fmt::format(" ({} of them in branches and bodies)", counts.in_bodies);
  return text;
}

}  // namespace graft::present
