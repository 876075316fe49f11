// Unknown dimensions have internal names with a question mark, which are shown as "?".
#include "present/text/model_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace graft::present {
namespace {

std::string sizes_text(const onnx::Value& value) {
  if (!value.shape) return "of unknown rank";
  std::string text;
  constexpr std::size_t longest = 24;
  for (const Dim& dim : *value.shape) {
    const std::string size = size_text(dim);
    text += (text.empty() ? "" : " x ") + (size.size() <= longest ? size : "?");
  }
  return text.empty() ? "scalar" : text;
}

/// Returns the operators with their counts, the most frequent first: "12 Conv2D, 3 BiasAdd".
std::string operators_text(const std::map<std::string, std::size_t>& operators) {
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

std::string size_text(const Dim& dim) {
  std::string text = dim.to_string();
  return text.find('?') == std::string::npos ? text : "?";
}

Table io_table(const onnx::Model& model) {
  Table table;
  const auto add = [&](const char* side, const auto& values) {
    for (const onnx::Value* value : values) {
      table.add({{side, Color::faint},
                 {value->name, Color::strong},
                 value->type ? std::string(to_string(*value->type)) : "?",
                 sizes_text(*value)});
    }
  };
  add("input", model.graph().inputs());
  add("output", model.graph().outputs());
  return table;
}

std::string origin_text(const Origin& origin) {
  return origin.format.empty() ? "" : fmt::format("{} of {}", origin.format, count_text(origin.nodes, origin.unit));
}

Table origin_table(const Origin& origin) {
  Table table;
  table.add({{"read", Color::faint}, operators_text(origin.operators)});
  std::map<std::string, std::map<std::string, std::size_t>> reasons;
  for (const Origin::LeftOut& entry : origin.left_out) reasons[entry.why][entry.op] += entry.count;
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

std::string nodes_text(const onnx::NodeCounts& counts) {
  std::string text = count_text(counts.nodes, "node");
  if (counts.constants != 0) text += fmt::format(" and {}", count_text(counts.constants, "constant"));
  if (counts.in_bodies != 0) text += fmt::format(" ({} of them in branches and bodies)", counts.in_bodies);
  return text;
}

}  // namespace graft::present
