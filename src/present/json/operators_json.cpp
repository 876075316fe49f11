// Lists are in the order of the definitions.
#include "present/json/operators_json.hpp"

#include <utility>
#include <variant>

#include "present/text/operators_text.hpp"

namespace graft::present {
namespace {

Json json_of(const AttributeValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

}  // namespace

Json to_json(const toolkit::OperatorFacts& facts) {
  const OperatorType& type = *facts.type;
  Json attributes = Json::array();
  for (const AttributeInfo& info : type.attributes) {
    attributes.push_back({{"name", info.name},
                          {"type", to_string(info.type)},
                          {"required", info.required},
                          {"default", info.required ? Json() : json_of(info.default_value)},
                          {"default_text", info.required ? "" : to_string(info.default_value)},
                          {"allowed", allowed_text(info)},
                          {"doc", info.doc}});
  }
  Json ports = Json::array();
  for (const Port& port : type.ports) {
    ports.push_back({{"name", port.name},
                     {"output", port.is_output()},
                     {"optional", port.is_optional()},
                     {"variadic", port.is_variadic()},
                     {"shape_input", port.is_shape()},
                     {"size", port.is_size()},
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
    Json inputs = Json::array();
    for (const std::string_view input : drop_in.inputs) inputs.push_back(input.empty() ? Json() : Json(input));
    for (std::size_t i = 0; drop_in.inputs.empty() && i < type.input_count(); ++i) inputs.push_back(type.ports[i].name);
    drop_ins.push_back({{"name", drop_in.plugin_name},
                        {"version", drop_in.version},
                        {"inputs", inputs},
                        {"fields", fields},
                        {"doc", drop_in.doc}});
  }
  Json onnx_plugin;
  if (type.takes_onnx_nodes()) {
    onnx_plugin = {{"needs_override", type.onnx_form->needs_override},
                   {"needs_attributes", type.onnx_form->changed_defaults}};
  }
  Json functions = Json::array();
  for (const auto& function : facts.functions) functions.push_back({{"name", function.name}, {"body", function.body}});
  return {{"name", type.name},
          {"version", type.version},
          {"domain", onnx_domain},
          {"library", facts.library.empty() ? Json() : Json(facts.library)},
          {"doc", type.doc},
          {"source", type.source},
          {"why_plugin", type.why_plugin},
          {"attributes", attributes},
          {"ports", ports},
          {"type_rows", rows},
          {"drop_ins", drop_ins},
          {"onnx_name", type.onnx_form ? Json(type.onnx_form->name) : Json()},
          {"onnx_inputs", type.onnx_form ? Json(type.onnx_form->inputs) : Json::array()},
          {"onnx_plugin", onnx_plugin},
          {"functions", functions},
          {"native_form", facts.native_form ? Json(*facts.native_form) : Json()}};
}

Json to_json(const std::vector<toolkit::OperatorFacts>& operators) {
  Json list = Json::array();
  for (const toolkit::OperatorFacts& facts : operators) list.push_back(to_json(facts));
  return {{"operators", list}};
}

Json to_json(const std::vector<CaffeLayer>& layers) {
  Json list = Json::array();
  for (const CaffeLayer& layer : layers) {
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
  return {{"layers", list}};
}

Json to_json(const std::vector<TensorFlowOperator>& operators) {
  Json list = Json::array();
  for (const TensorFlowOperator& op : operators) {
    list.push_back({{"name", op.name}, {"group", op.group}, {"limits", op.limits}});
  }
  return {{"operators", list}};
}

}  // namespace graft::present
