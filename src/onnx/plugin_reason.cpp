// Looks for a reason in the metadata of a node first, then in the definition of its operator.
#include "onnx/plugin_reason.hpp"

namespace graft::onnx {

std::string reason_for_plugin(const Node& node) {
  for (const std::string_view note : {reason_note, keep_note}) {
    if (const auto said = node.metadata.find(std::string(note)); said != node.metadata.end()) return said->second;
  }
  const OperatorType* type = find_operator_for(node).type;
  if (type == nullptr) return {};
  const Value* x = node.input(0);
  if (x != nullptr && (x->type == ElementType::i8 || x->type == ElementType::f8e4m3fn))
    return std::string(type->why_plugin);
  return std::string(type->why_plugin_for_floats.empty() ? type->why_plugin : type->why_plugin_for_floats);
}

std::optional<RefusedType> type_refused_by_plugin(const OperatorType& type, const Node& node) {
  return refused_type(type, operator_inputs(node),
                      [](ElementType element) { return element == ElementType::f64 ? ElementType::f32 : element; });
}

}  // namespace graft::onnx
