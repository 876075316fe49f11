// Under which name, version, namespace and fields a plugin is found: an operator's own, and those of its drop-ins.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graft/operator.hpp"

namespace graft::tensorrt {

struct SchemaField {
  std::string name;                          ///< As in PluginField.
  const AttributeInfo* attribute = nullptr;  ///< The attribute that takes its value; null for a translated field.
  AttributeType type = AttributeType::float_number;
  bool has_changed_default = false;  ///< Whether OnnxForm::changed_defaults names it.
};

struct PluginSchema {
  std::string name;
  std::string version;
  std::string space;  ///< The plugin namespace.
  const OperatorType* type = nullptr;
  const DropIn* drop_in = nullptr;  ///< Null for the operator's own schema.
  std::vector<SchemaField> fields;

  [[nodiscard]] const SchemaField* find(const char* field) const;
};

/// The operator's own, with a field for each attribute: what engines hold. `space` is the plugin namespace, `graft` for
/// Graft's own operators.
[[nodiscard]] PluginSchema own_schema(const OperatorType& type, std::string_view space = onnx_domain);
/// One for each drop-in, with the fields that its owner gave it, in the empty namespace.
[[nodiscard]] std::vector<PluginSchema> stand_in_schemas(const OperatorType& type);
/// Under the name of the standard ONNX operator that it computes, where TensorRT's parser looks for that: version 1 in
/// the empty namespace. Nothing where it computes none, or the parser makes no plugin of such a node.
[[nodiscard]] std::optional<PluginSchema> onnx_schema(const OperatorType& type);

}  // namespace graft::tensorrt
