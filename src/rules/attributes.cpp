// Checks names, types and ranges of attributes against the schemas of ONNX and the operators of Graft.
#include "rules/attributes.hpp"

#include <fmt/format.h>

#include <optional>

#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/schema.hpp"

namespace graft::rules {
namespace {

[[noreturn]] void fail_attribute(const RuleOperator& with, const std::string& name, const Place& place,
                                 const std::vector<std::string>& known) {
  throw Error(fmt::format("{}: {}", place.to_string(), no_attribute(with.to_string(), name, known)));
}

}  // namespace

void check_attributes(const RuleOperator& with, const std::vector<std::pair<std::string, RuleValue>>& given) {
  const onnx::OperatorSchema* form =
      with.domain.empty() ? onnx::find_schema(with.op_type, onnx::newest_opset) : nullptr;
  for (const auto& [name, value] : given) {
    std::optional<AttributeType> type;
    if (with.graft != nullptr) {
      const AttributeInfo* info = with.graft->find_attribute(name);
      std::vector<std::string> known;
      for (const AttributeInfo& attribute : with.graft->attributes) known.emplace_back(attribute.name);
      if (info == nullptr) fail_attribute(with, name, value.place, known);
      type = info->type;
    } else if (form != nullptr) {
      if (!form->has_attribute(name)) fail_attribute(with, name, value.place, form->attribute_names());
      type = form->attribute_type(name);
      if (!type) {
        throw Error(fmt::format("{}: attribute `{}` of {} is neither a number nor a string; a rule cannot set it",
                                value.place.to_string(), name, with.to_string()));
      }
    } else {
      continue;
    }
    if (value.is_expression()) continue;
    const auto attribute = to_attribute(value, *type);
    if (!attribute) {
      throw Error(fmt::format("{}: attribute `{}` of {} is {}; allowed is {}", value.place.to_string(), name,
                              with.to_string(), value.to_string(), to_string(*type)));
    }
    if (with.graft == nullptr) continue;
    if (const Status status = check_attribute(*with.graft->find_attribute(name), *attribute); !status.ok()) {
      throw Error(fmt::format("{}: {}: {}", value.place.to_string(), with.to_string(), status.message()));
    }
  }
}

}  // namespace graft::rules
