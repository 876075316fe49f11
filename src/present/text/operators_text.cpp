// Writes the parts of an operator's definition one after another.
#include "present/text/operators_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace graft::present {
namespace {

std::string format_text(const report::TensorFormat& format) {
  const std::string dtype(to_string(format.dtype));
  return format.layout == Layout::linear ? dtype : fmt::format("{} {}", dtype, to_string(format.layout));
}

std::string_view kind_text(const report::OperatorPort& port) {
  if (port.is_output) return port.is_size ? "size output" : "output";
  return port.is_optional   ? "optional input"
         : port.is_variadic ? "variadic input"
         : port.is_shape    ? "shape input"
                            : "input";
}

/// Returns the types of one row: "f32 -> f32", or "f32, f32... -> f32" with a variadic input.
std::string row_text(const std::vector<report::OperatorPort>& ports, const std::vector<report::TensorFormat>& row) {
  std::string text;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i != 0) text += ports[i].is_output && !ports[i - 1].is_output ? " -> " : ", ";
    text += format_text(row[i]) + (ports[i].is_variadic ? "..." : "");
  }
  return text;
}

std::string drop_in_text(const report::StandIn& drop_in) { return fmt::format("{} {}", drop_in.name, drop_in.version); }

/// Returns the text up to the end of its first sentence.
std::string first_sentence(const std::string& text) {
  return text.substr(0, std::min(text.find(". "), text.size()) + 1);
}

}  // namespace

Listing operators_text(const std::vector<report::OperatorFacts>& operators) {
  Table table;
  for (const report::OperatorFacts& facts : operators) {
    table.add({{facts.name, Color::strong}, first_sentence(facts.doc)});
    std::string names;
    for (const report::StandIn& drop_in : facts.drop_ins) names += (names.empty() ? "" : ", ") + drop_in_text(drop_in);
    if (!names.empty()) {
      table.add(
          {"",
           {(facts.drop_ins.size() == 1 ? "replaces the plugin " : "replaces the plugins ") + names, Color::faint}});
    }
    if (facts.onnx_name) table.add({"", {"computes ONNX's " + *facts.onnx_name, Color::faint}});
    if (facts.library) table.add({"", {"from " + *facts.library, Color::faint}});
  }
  Listing listing;
  listing.add(std::move(table));
  listing.add("");
  listing.add("`graft ops NAME` shows the whole definition, attributes, types and the reason for a plugin.");
  return listing;
}

Listing operator_text(const report::OperatorFacts& facts) {
  Listing listing;
  listing.add({{facts.name, Color::strong}, {fmt::format(" {}", facts.version)}});
  Table doc;
  doc.add({facts.doc});
  listing.add(std::move(doc));

  const auto section = [&](std::string_view title, const Table& table) {
    if (table.empty()) return;
    listing.add("");
    listing.add(std::string(title));
    listing.add(table);
  };
  Table ports;
  for (const report::OperatorPort& port : facts.ports) {
    ports.add({std::string(kind_text(port)), {port.name, Color::strong}, port.shape, port.doc});
  }
  section("Tensors", ports);
  Table attributes;
  for (const report::OperatorAttribute& info : facts.attributes) {
    attributes.add({{info.name, Color::strong},
                    std::string(to_string(info.type)),
                    info.required ? "required" : info.default_text,
                    info.doc + (info.allowed.empty() ? "" : fmt::format(" ({})", info.allowed))});
  }
  section("Attributes", attributes);
  Table rows;
  for (const std::vector<report::TensorFormat>& row : facts.type_rows) rows.add({row_text(facts.ports, row)});
  section("Types", rows);
  Table drop_ins;
  for (const report::StandIn& drop_in : facts.drop_ins) {
    std::string fields;
    for (const report::StandInField& field : drop_in.plugin_fields) {
      fields += (fields.empty() ? "" : ", ") + field.name;
      if (field.attribute.empty()) {
        fields += fmt::format(" ({})", field.doc);
      } else if (field.name != field.attribute) {
        fields += fmt::format(" = {}", field.attribute);
      }
    }
    const std::string inputs = drop_in.input_order.empty() ? "" : drop_in.input_order + "; ";
    drop_ins.add({{drop_in_text(drop_in), Color::strong}, inputs + fields, drop_in.doc});
  }
  if (facts.onnx_name) {
    const std::string inputs =
        facts.onnx_inputs.empty() ? "" : fmt::format("inputs {}", fmt::join(facts.onnx_inputs, ","));
    drop_ins.add({{*facts.onnx_name, Color::strong}, inputs, "ONNX, for releases of TensorRT without this layer"});
  }
  section("Stands in for", drop_ins);
  Table why;
  why.add({facts.why_plugin});
  section("Why a plugin", why);
  Table source;
  source.add({facts.source});
  section("Source", source);
  Table from;
  if (facts.library) from.add({*facts.library});
  section("Library", from);
  return listing;
}

Table layers_table(const std::vector<report::CaffeLayer>& layers) {
  Table table;
  for (const report::CaffeLayer& layer : layers) {
    table.add({{std::string(layer.type), Color::strong}, std::string(layer.doc)});
  }
  return table;
}

Table operators_table(const std::vector<report::TensorFlowOperator>& operators) {
  Table table;
  for (const report::TensorFlowOperator& op : operators) {
    table.add({{std::string(op.name), Color::strong}, std::string(op.limits.empty() ? op.group : op.limits)});
  }
  return table;
}

}  // namespace graft::present
