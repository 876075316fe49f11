// The name, version, namespace and fields under which TensorRT finds a plugin: one schema for the operator itself, and
// one for each of its drop-ins.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator/operator.hpp"

namespace graft::tensorrt {

struct SchemaField {
  std::string name;                          ///< The name of the field in PluginField.
  const AttributeInfo* attribute = nullptr;  ///< The attribute that the field sets; null if DropIn::translate reads it.
  AttributeType type = AttributeType::float_number;
  bool has_changed_default = false;  ///< Whether OnnxForm::changed_defaults contains the field.
};

struct PluginSchema {
  std::string name;
  std::string version;
  std::string space;  ///< The plugin namespace.
  const OperatorType* type = nullptr;
  const DropIn* drop_in = nullptr;  ///< The plugin that the operator replaces under its name; null for its own schema.
  std::vector<SchemaField> fields;

  [[nodiscard]] const SchemaField* find(const char* field) const;
};

/// Returns the operator's own schema, with a field for each attribute. Engines store this schema. `space` is the plugin
/// namespace, `graft` for Graft's own operators.
[[nodiscard]] PluginSchema own_schema(const OperatorType& type, std::string_view space = onnx_domain);
/// Returns a schema for each plugin of another library under whose name TensorRT can create this operator
/// (can_stand_in). The schema has the fields that the other library defines, and the empty namespace.
[[nodiscard]] std::vector<PluginSchema> stand_in_schemas(const OperatorType& type);
/// Returns a schema under the name of the standard ONNX operator that the operator implements, version 1 in the empty
/// namespace, where TensorRT's parser looks for it. Returns nothing if the operator implements none, or if the parser
/// does not create plugins for such nodes.
[[nodiscard]] std::optional<PluginSchema> onnx_schema(const OperatorType& type);

}  // namespace graft::tensorrt
