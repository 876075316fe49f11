// Under which name, version and fields a plugin is found.
#include "adapters/tensorrt/schema.hpp"

#include <algorithm>

namespace graft::tensorrt {

const SchemaField* PluginSchema::find(const char* field) const {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const SchemaField& f) { return f.name == field; });
  return found == fields.end() ? nullptr : &*found;
}

std::vector<PluginSchema> schemas_of(const OperatorType& type) {
  std::vector<PluginSchema> schemas;
  const auto add_uncovered = [&](PluginSchema& schema) {
    for (const AttributeInfo& attribute : type.attributes) {
      const bool covered = std::any_of(schema.fields.begin(), schema.fields.end(),
                                       [&](const SchemaField& field) { return field.attribute == &attribute; });
      if (!covered) schema.fields.push_back({std::string(attribute.name), &attribute, attribute.type});
    }
  };
  add_uncovered(
      schemas.emplace_back(PluginSchema{std::string(type.name), std::to_string(type.version), &type, nullptr, {}}));
  for (const DropIn& drop_in : type.drop_ins) {
    PluginSchema& schema = schemas.emplace_back(
        PluginSchema{std::string(drop_in.plugin_name), std::string(drop_in.version), &type, &drop_in, {}});
    for (const DropInField& field : drop_in.fields) {
      const AttributeInfo* attribute = type.find_attribute(field.attribute);
      schema.fields.push_back(
          {std::string(field.name), attribute, attribute == nullptr ? field.type : attribute->type});
    }
    add_uncovered(schema);
  }
  return schemas;
}

}  // namespace graft::tensorrt
