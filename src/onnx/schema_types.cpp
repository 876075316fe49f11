// Holds the table of element types, and searches it.
#include "onnx/schema_types.hpp"

#include <algorithm>
#include <iterator>

#include "onnx/schema.hpp"

namespace graft::onnx {
namespace {

namespace rows {
using enum ElementType;  // The rows would be unreadable without this declaration.
// The rows are sorted by name, then by opset.
constexpr SchemaTypes types[] = {
#include "onnx/schema_types.inc"
};
}  // namespace rows

constexpr char none = '.';

char letter_at(std::string_view letters, std::size_t index) {
  return letters.empty() ? none : letters[std::min(index, letters.size() - 1)];
}

}  // namespace

std::string TypeSet::to_string() const {
  std::string text;
  for (std::int32_t code = 1; code < 32; ++code) {
    const auto type = static_cast<ElementType>(code);
    if (contains(type)) text += (text.empty() ? "" : ", ") + onnx::to_string(type);
  }
  return text.empty() ? "no tensor" : text;
}

char SchemaTypes::input_letter(std::size_t index) const { return letter_at(inputs, index); }
char SchemaTypes::output_letter(std::size_t index) const { return letter_at(outputs, index); }

const TypeSet* SchemaTypes::types_of(char letter) const {
  return letter == none ? nullptr : &of.at(static_cast<std::size_t>(letter - 'a'));
}

std::span<const SchemaTypes> schema_types(std::string_view op_type) {
  const auto* first = std::lower_bound(std::begin(rows::types), std::end(rows::types), op_type,
                                       [](const SchemaTypes& row, std::string_view name) { return row.name < name; });
  const auto* last =
      std::find_if(first, std::end(rows::types), [&](const SchemaTypes& row) { return row.name != op_type; });
  return {first, last};
}

const SchemaTypes* find_schema_types(std::string_view op_type, std::int64_t opset) {
  if (find_schema(op_type, opset) == nullptr) return nullptr;
  const SchemaTypes* found = nullptr;
  for (const SchemaTypes& row : schema_types(op_type)) {
    if (row.since <= opset) found = &row;
  }
  return found;
}

}  // namespace graft::onnx
