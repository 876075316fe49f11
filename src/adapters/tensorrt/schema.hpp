// Under which name, version and fields a plugin is found: an operator's own, and those of its drop-ins.
#pragma once

#include <string>
#include <vector>

#include "graft/operator.hpp"

namespace graft::tensorrt {

struct SchemaField {
  std::string name;                          ///< As in PluginField.
  const AttributeInfo* attribute = nullptr;  ///< The attribute that takes its value; null for a translated field.
  AttributeType type = AttributeType::float_number;
};

struct PluginSchema {
  std::string name;
  std::string version;
  const OperatorType* type = nullptr;
  const DropIn* drop_in = nullptr;  ///< Null for the operator's own schema.
  std::vector<SchemaField> fields;

  [[nodiscard]] const SchemaField* find(const char* field) const;
};

/// The operator's own schema first. A drop-in has its own fields and, under Graft's names, every attribute that none of
/// them covers, so that x_scale and y_scale can be given to it too.
[[nodiscard]] std::vector<PluginSchema> schemas_of(const OperatorType& type);

}  // namespace graft::tensorrt
