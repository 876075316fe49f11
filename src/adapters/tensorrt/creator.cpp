// The plugin creator, with one instance per schema.
#include "adapters/tensorrt/creator.hpp"

#include <algorithm>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "adapters/tensorrt/convert.hpp"
#include "adapters/tensorrt/logger.hpp"
#include "adapters/tensorrt/plugin.hpp"
#include "graft/operator/registry.hpp"

namespace graft::tensorrt {
namespace {

std::string field_list(const PluginSchema& schema) {
  std::string text;
  for (const SchemaField& field : schema.fields) text += (text.empty() ? "" : ", ") + field.name;
  return text;
}

Status read_field(const PluginSchema& schema, const nvinfer1::PluginField& field, NamedAttribute& result) {
  if (field.name == nullptr) return invalid_argument("a field of the plugin has no name");
  const SchemaField* known = schema.find(field.name);
  if (known == nullptr) {
    return invalid_argument("field `" + std::string(field.name) + "` is unknown; the fields are " + field_list(schema));
  }
  result.name = known->name;
  if (Status status = from_tensorrt(field, known->type, result.value); !status.ok()) return status;
  if (known->attribute == nullptr) return {};
  Status status = check_attribute(*known->attribute, result.value);
  if (status.ok() || known->name == known->attribute->name) return status;
  return invalid_argument("field `" + known->name + "`: " + status.message());
}

/// Creates the operator from the fields that TensorRT passes to a creator, and stores it in `result`. Sets `order` to
/// the input order in the engine's field `input_order_field` or, if that field is absent, to the schema's input order.
Status make_operator(const PluginSchema& schema, const nvinfer1::PluginFieldCollection* fields,
                     nvinfer1::TensorRTPhase phase, std::unique_ptr<Operator>& result, InputOrder& order) {
  const bool is_loaded = phase == nvinfer1::TensorRTPhase::kRUNTIME && schema.drop_in == nullptr;
  order = InputOrder::of(*schema.type, schema.drop_in);
  std::vector<NamedAttribute> given;
  const std::int32_t count = fields == nullptr ? 0 : fields->nbFields;
  for (std::int32_t i = 0; i < count; ++i) {
    const nvinfer1::PluginField& field = fields->fields[i];
    if (is_loaded && field.name != nullptr && std::string_view(field.name) == input_order_field) {
      AttributeValue names;
      if (Status status = from_tensorrt(field, AttributeType::text, names); !status.ok()) return status;
      Status status = InputOrder::parse(*schema.type, std::get<std::string>(names), order);
      if (!status.ok()) return status;
      continue;
    }
    if (Status status = read_field(schema, field, given.emplace_back()); !status.ok()) return status;
  }
  for (const SchemaField& field : schema.fields) {
    const auto is_it = [&](const NamedAttribute& attribute) { return attribute.name == field.name; };
    if (!field.has_changed_default || std::any_of(given.begin(), given.end(), is_it)) continue;
    return invalid_argument("`" + field.name + "` is missing, and the result of " + schema.name +
                            " without it depends on the model's opset, which TensorRT does not pass to plugins: write "
                            "the attribute on the node, as `graft convert` does for models of older opsets, or build "
                            "the file with `graft build`, which writes it too");
  }
  return graft::make_operator(*schema.type, schema.drop_in, given, result);
}

}  // namespace

Creator::Creator(PluginSchema schema, const PluginSchema& own) : schema_(std::move(schema)), own_(own) {
  for (const SchemaField& field : schema_.fields) {
    field_names_.emplace_back(field.name.c_str(), nullptr, field_type(field.type), 1);
  }
  field_collection_ = {static_cast<std::int32_t>(field_names_.size()), field_names_.data()};
}

nvinfer1::IPluginV3* Creator::createPlugin(const char* name, const nvinfer1::PluginFieldCollection* fields,
                                           nvinfer1::TensorRTPhase phase) noexcept {
  try {
    std::unique_ptr<Operator> op;
    InputOrder order;
    const Status status = make_operator(schema_, fields, phase, op, order);
    if (status.ok())
      return std::make_unique<Plugin>(own_, std::move(op), order).release();  // From here on TensorRT owns the plugin.
    const std::string layer = name == nullptr || *name == '\0' ? "" : " for `" + std::string(name) + "`";
    log_error(("graft plugin " + schema_.name + " " + schema_.version + layer + ": " + status.message()).c_str());
  } catch (const std::exception& error) {  // No message is composed, because memory may have run out.
    log_error(error.what());
  } catch (...) {
    log_error("graft plugin: createPlugin: an exception of unknown type was thrown");
  }
  return nullptr;
}

const nvinfer1::PluginFieldCollection* Creator::getFieldNames() noexcept { return &field_collection_; }
const char* Creator::getPluginName() const noexcept { return schema_.name.c_str(); }
const char* Creator::getPluginVersion() const noexcept { return schema_.version.c_str(); }
const char* Creator::getPluginNamespace() const noexcept { return schema_.space.c_str(); }

namespace {

/// Returns Graft's own schema of each operator, in the plugin namespace `space` and in the order of operators(). The
/// schemas are created in the first call, so every call must pass the same namespace.
const std::deque<PluginSchema>& own_schemas(std::string_view space) {
  static const std::deque<PluginSchema> schemas = [&] {
    std::deque<PluginSchema> result;
    for (const OperatorType* type : operators()) result.push_back(own_schema(*type, space));
    return result;
  }();
  return schemas;
}

/// Creators that the function `fill` appends to `owned`, and their addresses. The addresses stay valid, because a deque
/// does not move its elements when it grows.
struct Creators {
  template <class Fill>
  explicit Creators(const Fill& fill) {
    fill(owned);
    for (Creator& creator : owned) pointers.push_back(&creator);
  }
  std::deque<Creator> owned;
  std::vector<nvinfer1::IPluginCreatorInterface*> pointers;
};

}  // namespace

const std::vector<nvinfer1::IPluginCreatorInterface*>& creators(std::string_view space) {
  static const Creators made([&](std::deque<Creator>& owned) {
    for (const PluginSchema& own : own_schemas(space)) owned.emplace_back(own, own);
  });
  return made.pointers;
}

const std::vector<nvinfer1::IPluginCreatorInterface*>& stand_in_creators(std::string_view space) {
  static const Creators made([&](std::deque<Creator>& owned) {
    for (const PluginSchema& own : own_schemas(space)) {
      for (PluginSchema& schema : stand_in_schemas(*own.type)) owned.emplace_back(std::move(schema), own);
    }
  });
  return made.pointers;
}

const std::vector<nvinfer1::IPluginCreatorInterface*>& onnx_creators(std::string_view space) {
  static const Creators made([&](std::deque<Creator>& owned) {
    for (const PluginSchema& own : own_schemas(space)) {
      if (std::optional<PluginSchema> schema = onnx_schema(*own.type)) owned.emplace_back(*std::move(schema), own);
    }
  });
  return made.pointers;
}

}  // namespace graft::tensorrt
