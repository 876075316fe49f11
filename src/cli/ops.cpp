// graft ops: the operators, from their definitions.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <memory>

#include "cli/program.hpp"
#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "graft/registry.hpp"
#include "import/caffe/import.hpp"
#include "import/tensorflow/import.hpp"

namespace graft::cli {
namespace {

struct Arguments {
  std::string name;
  std::string reads;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string format_text(const Format& format) {
  const std::string dtype(to_string(format.dtype));
  return format.layout == Layout::linear ? dtype : fmt::format("{} {}", dtype, to_string(format.layout));
}

/// "f32 -> f32"
std::string row_text(const OperatorType& type, const TypeRow& row) {
  std::string text;
  for (std::size_t i = 0; i < row.count; ++i) {
    if (i != 0) text += i == type.input_count() ? " -> " : ", ";
    text += format_text(row.formats[i]);
  }
  return text;
}

std::string drop_in_text(const DropIn& drop_in) { return fmt::format("{} {}", drop_in.plugin_name, drop_in.version); }

std::string allowed_text(const AttributeInfo& info) {
  std::string text;
  for (const std::string_view choice : info.choices) text += fmt::format("{}{}", text.empty() ? "" : ", ", choice);
  return text.empty() ? info.range.to_string() : text;
}

Json to_json(const AttributeValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

constexpr int usual_rank = 4;  // N,C,H,W, where a body depends on the rank

/// All bodies that a function can have: one for each combination of what an attribute chooses between.
std::vector<std::unique_ptr<Operator>> with_every_choice(const OperatorType& type) {
  constexpr double few = 8;
  std::vector<std::unique_ptr<Operator>> all;
  all.push_back(type.create());
  for (const AttributeInfo& info : type.attributes) {
    std::vector<AttributeValue> values;
    for (const std::string_view choice : info.choices) values.emplace_back(std::string(choice));
    if (info.type == AttributeType::integer && info.range.highest - info.range.lowest < few) {
      for (auto v = static_cast<std::int64_t>(info.range.lowest); v <= static_cast<std::int64_t>(info.range.highest);
           ++v) {
        values.emplace_back(v);
      }
    }
    if (values.empty()) continue;
    std::vector<std::unique_ptr<Operator>> next;
    for (const auto& op : all) {
      for (const AttributeValue& value : values) {
        auto changed = op->clone();
        if (changed->set(info.name, value).ok()) next.push_back(std::move(changed));
      }
    }
    all = std::move(next);
  }
  return all;
}

Json functions_of(const OperatorType& type) {
  std::map<std::string, std::string> bodies;
  for (const auto& op : with_every_choice(type)) {
    for (const TypeRow& row : type.type_rows) {
      for (std::size_t count = type.required_input_count(); count <= type.input_count(); ++count) {
        const FunctionInputs inputs{.dtype = row.formats[0].dtype, .count = count, .rank = usual_rank};
        if (auto function = op->function(inputs)) bodies.emplace(function->name, function->body);
      }
    }
  }
  Json list = Json::array();
  for (const auto& [name, body] : bodies) list.push_back({{"name", name}, {"body", body}});
  return list;
}

Json to_json(const OperatorType& type) {
  Json attributes = Json::array();
  for (const AttributeInfo& info : type.attributes) {
    attributes.push_back({{"name", info.name},
                          {"type", to_string(info.type)},
                          {"required", info.required},
                          {"default", info.required ? Json() : to_json(info.default_value)},
                          {"default_text", info.required ? "" : to_string(info.default_value)},
                          {"allowed", allowed_text(info)},
                          {"doc", info.doc}});
  }
  Json ports = Json::array();
  for (const Port& port : type.ports) {
    ports.push_back({{"name", port.name},
                     {"output", port.is_output},
                     {"optional", port.is_optional},
                     {"shape", port.shape},
                     {"doc", port.doc}});
  }
  Json rows = Json::array();
  for (const TypeRow& row : type.type_rows) {
    Json formats = Json::array();
    for (std::size_t i = 0; i < row.count; ++i) {
      formats.push_back({{"dtype", to_string(row.formats[i].dtype)}, {"layout", to_string(row.formats[i].layout)}});
    }
    rows.push_back(formats);
  }
  Json drop_ins = Json::array();
  for (const DropIn& drop_in : type.drop_ins) {
    Json fields = Json::array();
    for (const DropInField& field : drop_in.fields) {
      fields.push_back({{"name", field.name}, {"attribute", field.attribute}, {"doc", field.doc}});
    }
    drop_ins.push_back(
        {{"name", drop_in.plugin_name}, {"version", drop_in.version}, {"fields", fields}, {"doc", drop_in.doc}});
  }
  const auto native =
      type.create()->native_form({.dtype = DType::f32, .count = type.required_input_count(), .rank = usual_rank});
  const OperatorLibrary* library = library_of(type);
  return {{"name", type.name},
          {"version", type.version},
          {"domain", onnx_domain},
          {"library", library == nullptr ? Json() : Json(library->file)},
          {"doc", type.doc},
          {"source", type.source},
          {"why_plugin", type.why_plugin},
          {"attributes", attributes},
          {"ports", ports},
          {"type_rows", rows},
          {"drop_ins", drop_ins},
          {"functions", functions_of(type)},
          {"native_form", native ? Json(*native) : Json()}};
}

void print_list(const Console& console) {
  Table table;
  for (const OperatorType* type : operators()) {
    table.add({{std::string(type->name), Color::strong}, std::string(type->doc)});
    std::string names;
    for (const DropIn& drop_in : type->drop_ins) names += (names.empty() ? "" : ", ") + drop_in_text(drop_in);
    if (!names.empty()) table.add({"", {"stands in for " + names, Color::faint}});
    if (const OperatorLibrary* library = library_of(*type)) table.add({"", {"from " + library->file, Color::faint}});
  }
  console.print(table);
  console.print();
  console.print("`graft ops NAME` shows attributes, types and the reason for a plugin.");
}

void print_one(const Console& console, const OperatorType& type) {
  console.print(fmt::format("{} {}", console.paint(type.name, Color::strong), type.version));
  Table facts;
  facts.add({std::string(type.doc)});
  console.print(facts);

  const auto section = [&](std::string_view title, const Table& table) {
    if (table.empty()) return;
    console.print();
    console.print(title);
    console.print(table);
  };
  Table ports;
  for (const Port& port : type.ports) {
    ports.add({port.is_output     ? "output"
               : port.is_optional ? "optional input"
                                  : "input",
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
    drop_ins.add({{drop_in_text(drop_in), Color::strong}, fields, std::string(drop_in.doc)});
  }
  section("Stands in for", drop_ins);
  Table why;
  why.add({std::string(type.why_plugin)});
  section("Why a plugin", why);
  Table source;
  source.add({std::string(type.source)});
  section("Source", source);
  Table from;
  if (const OperatorLibrary* library = library_of(type)) from.add({library->file});
  section("Library", from);
}

const OperatorType& find_type(const std::string& name) {
  std::vector<std::string> known;
  for (const OperatorType* type : operators()) {
    known.emplace_back(type->name);
    if (lower(std::string(type->name)) == lower(name)) return *type;
    for (const DropIn& drop_in : type->drop_ins) {
      known.emplace_back(drop_in.plugin_name);
      if (lower(std::string(drop_in.plugin_name)) == lower(name)) return *type;
    }
  }
  const auto meant = nearest(name, known);
  throw Error(fmt::format("graft ops: no operator or plugin is called {}\n{}", name,
                          meant ? fmt::format("Did you mean {}?", *meant) : "`graft ops` lists them all"));
}

Exit print_caffe_layers(const Console& console) {
  Table table;
  Json list = Json::array();
  for (const CaffeLayer& layer : caffe_layers()) {
    table.add({{std::string(layer.type), Color::strong}, std::string(layer.doc)});
    Json fields = Json::array();
    for (const CaffeField& field : layer.fields) {
      fields.push_back({{"name", field.name}, {"default_text", field.default_text}});
    }
    list.push_back({{"type", layer.type},
                    {"parameters", layer.parameters},
                    {"fields", fields},
                    {"blobs", layer.blobs},
                    {"doc", layer.doc}});
  }
  console.print(table);
  console.result({{"layers", list}});
  return Exit::done;
}

Exit print_tensorflow_operators(const Console& console) {
  Table table;
  Json list = Json::array();
  for (const TensorFlowOperator& op : tensorflow_operators()) {
    table.add({{std::string(op.name), Color::strong}, std::string(op.limits.empty() ? op.group : op.limits)});
    list.push_back({{"name", op.name}, {"group", op.group}, {"limits", op.limits}});
  }
  console.print(table);
  console.result({{"operators", list}});
  return Exit::done;
}

Exit ops(const Console& console, const Arguments& arguments) {
  if (arguments.reads == "caffe") return print_caffe_layers(console);
  if (arguments.reads == "tensorflow") return print_tensorflow_operators(console);
  if (!arguments.name.empty()) {
    const OperatorType& type = find_type(arguments.name);
    print_one(console, type);
    console.result(to_json(type));
    return Exit::done;
  }
  print_list(console);
  Json list = Json::array();
  for (const OperatorType* type : operators()) list.push_back(to_json(*type));
  console.result({{"operators", list}});
  return Exit::done;
}

}  // namespace

void add_ops(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      program.add_command("ops", "Graft's operators: what they compute, their attributes, types and drop-in names",
                          "graft ops L2Normalize", [arguments](const Console& c) { return ops(c, *arguments); });
  auto* name =
      command->add_option("NAME", arguments->name, "an operator, or a plugin that one stands in for; none lists all");
  command->add_option("--reads", arguments->reads, "what `graft convert` reads of another format: caffe, tensorflow")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"caffe", "tensorflow"}))
      ->excludes(name);
  program.add_operators_option(*command);
}

}  // namespace graft::cli
