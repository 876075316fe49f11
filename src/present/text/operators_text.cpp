// Writes the parts of an operator's definition one after another.
#include "present/text/operators_text.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "graft/input_order.hpp"

namespace graft::present {
namespace {

std::string format_text(const Format& format) {
  const std::string dtype(to_string(format.dtype));
  return format.layout == Layout::linear ? dtype : fmt::format("{} {}", dtype, to_string(format.layout));
}

std::string_view kind_text(PortKind kind) {
  switch (kind) {
    case PortKind::optional_input: return "optional input";
    case PortKind::variadic_input: return "variadic input";
    case PortKind::shape_input: return "shape input";
    case PortKind::output: return "output";
    case PortKind::size_output: return "size output";
    case PortKind::input: break;
  }
  return "input";
}

/// Returns the types of one row: "f32 -> f32", or "f32, f32... -> f32" with a variadic input.
std::string row_text(const OperatorType& type, const TypeRow& row) {
  std::string text;
  for (std::size_t i = 0; i < row.count; ++i) {
    if (i != 0) text += i == type.input_count() ? " -> " : ", ";
    text += format_text(row.formats[i]) + (type.ports[i].is_variadic() ? "..." : "");
  }
  return text;
}

std::string drop_in_text(const DropIn& drop_in) { return fmt::format("{} {}", drop_in.plugin_name, drop_in.version); }

}  // namespace

std::string allowed_text(const AttributeInfo& info) {
  std::string text;
  for (const std::string_view choice : info.choices) text += fmt::format("{}{}", text.empty() ? "" : ", ", choice);
  return text.empty() ? info.range.to_string() : text;
}

Listing operators_text(const std::vector<toolkit::OperatorFacts>& operators) {
  Table table;
  for (const toolkit::OperatorFacts& facts : operators) {
    table.add({{std::string(facts.type->name), Color::strong}, std::string(facts.type->doc)});
    std::string names;
    for (const DropIn& drop_in : facts.type->drop_ins) names += (names.empty() ? "" : ", ") + drop_in_text(drop_in);
    if (!names.empty()) table.add({"", {"stands in for " + names, Color::faint}});
    const auto& form = facts.type->onnx_form;
    if (form) table.add({"", {fmt::format("computes ONNX's {}", form->name), Color::faint}});
    if (!facts.library.empty()) table.add({"", {"from " + facts.library, Color::faint}});
  }
  Listing listing;
  listing.add(std::move(table));
  listing.add("");
  listing.add("`graft ops NAME` shows attributes, types and the reason for a plugin.");
  return listing;
}

Listing operator_text(const toolkit::OperatorFacts& facts) {
  const OperatorType& type = *facts.type;
  Listing listing;
  listing.add({{std::string(type.name), Color::strong}, {fmt::format(" {}", type.version)}});
  Table doc;
  doc.add({std::string(type.doc)});
  listing.add(std::move(doc));

  const auto section = [&](std::string_view title, const Table& table) {
    if (table.empty()) return;
    listing.add("");
    listing.add(std::string(title));
    listing.add(table);
  };
  Table ports;
  for (const Port& port : type.ports) {
    ports.add({std::string(kind_text(port.kind)),
               {std::string(port.name), Color::strong},
               std::string(port.shape),
               std::string(port.doc)});
  }
  section("Tensors", ports);
  Table attributes;
  for (const AttributeInfo& info : type.attributes) {
    const std::string allowed = allowed_text(info);
    attributes.add({{std::string(info.name), Color::strong},
                    std::string(to_string(info.type)),
                    info.required ? "required" : to_string(info.default_value),
                    std::string(info.doc) + (allowed.empty() ? "" : fmt::format(" ({})", allowed))});
  }
  section("Attributes", attributes);
  Table rows;
  for (const TypeRow& row : type.type_rows) rows.add({row_text(type, row)});
  section("Types", rows);
  Table drop_ins;
  for (const DropIn& drop_in : type.drop_ins) {
    std::string fields;
    for (const DropInField& field : drop_in.fields) {
      fields += (fields.empty() ? "" : ", ") + std::string(field.name);
      if (field.attribute.empty()) {
        fields += fmt::format(" ({})", field.doc);
      } else if (field.name != field.attribute) {
        fields += fmt::format(" = {}", field.attribute);
      }
    }
    const std::string inputs = drop_in.inputs.empty() ? "" : InputOrder::of(type, &drop_in).to_string(type) + "; ";
    drop_ins.add({{drop_in_text(drop_in), Color::strong}, inputs + fields, std::string(drop_in.doc)});
  }
  if (type.onnx_form) {
    const OnnxForm& form = *type.onnx_form;
    const std::string inputs = form.inputs.empty() ? "" : fmt::format("inputs {}", fmt::join(form.inputs, ","));
    drop_ins.add({{std::string(form.name), Color::strong}, inputs, "ONNX, for a TensorRT that has no such layer"});
  }
  section("Stands in for", drop_ins);
  Table why;
  why.add({std::string(type.why_plugin)});
  section("Why a plugin", why);
  Table source;
  source.add({std::string(type.source)});
  section("Source", source);
  Table from;
  if (!facts.library.empty()) from.add({facts.library});
  section("Library", from);
  return listing;
}

Table layers_table(const std::vector<CaffeLayer>& layers) {
  Table table;
  for (const CaffeLayer& layer : layers) {
    table.add({{std::string(layer.type), Color::strong}, std::string(layer.doc)});
  }
  return table;
}

Table operators_table(const std::vector<TensorFlowOperator>& operators) {
  Table table;
  for (const TensorFlowOperator& op : operators) {
    table.add({{std::string(op.name), Color::strong}, std::string(op.limits.empty() ? op.group : op.limits)});
  }
  return table;
}

}  // namespace graft::present
