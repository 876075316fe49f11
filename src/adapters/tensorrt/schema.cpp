// The name, version and fields under which TensorRT finds a plugin.
#include "adapters/tensorrt/schema.hpp"

#include <algorithm>

#include "core/plugin_form.hpp"

namespace graft::tensorrt {

const SchemaField* PluginSchema::find(const char* field) const {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const SchemaField& f) { return f.name == field; });
  return found == fields.end() ? nullptr : &*found;
}

PluginSchema own_schema(const OperatorType& type, std::string_view space) {
  PluginSchema schema{.name = std::string(type.name),
                      .version = std::to_string(type.version),
                      .space = std::string(space),
                      .type = &type,
                      .drop_in = nullptr,
                      .fields = {}};
  for (const AttributeInfo& attribute : type.attributes) {
    schema.fields.push_back({std::string(attribute.name), &attribute, attribute.type});
  }
  return schema;
}

std::vector<PluginSchema> stand_in_schemas(const OperatorType& type) {
  std::vector<PluginSchema> schemas;
  for (const DropIn& drop_in : type.drop_ins) {
    if (!can_stand_in(drop_in.plugin_name)) continue;
    PluginSchema& schema = schemas.emplace_back(PluginSchema{.name = std::string(drop_in.plugin_name),
                                                             .version = std::string(drop_in.version),
                                                             .space = {},
                                                             .type = &type,
                                                             .drop_in = &drop_in,
                                                             .fields = {}});
    for (const DropInField& field : drop_in.fields) {
      const AttributeInfo* attribute = type.find_attribute(field.attribute);
      schema.fields.push_back(
          {std::string(field.name), attribute, attribute == nullptr ? field.type : attribute->type});
    }
  }
  return schemas;
}

std::optional<PluginSchema> onnx_schema(const OperatorType& type) {
  if (!type.takes_onnx_nodes()) return std::nullopt;
  const OnnxForm& form = *type.onnx_form;
  PluginSchema schema = own_schema(type, "");
  schema.name = std::string(form.name);
  schema.version = "1";
  for (SchemaField& field : schema.fields) {
    field.has_changed_default = std::find(form.changed_defaults.begin(), form.changed_defaults.end(), field.name) !=
                                form.changed_defaults.end();
  }
  return schema;
}

}  // namespace graft::tensorrt
