// The table of the operators' forms, and looking things up in it.
#include "graph/operator_forms.hpp"

#include <algorithm>
#include <iterator>

namespace graft {
namespace {

// Sorted by name.
constexpr OperatorSchema forms[] = {
#include "graph/operator_forms.inc"
};

/// The letter behind the attribute's name; nothing where there is no such attribute.
std::optional<char> letter_of(std::string_view attributes, std::string_view wanted) {
  while (!attributes.empty()) {
    const std::string_view entry = attributes.substr(0, attributes.find(' '));
    const std::size_t colon = entry.find(':');
    if (entry.substr(0, colon) == wanted) return entry[colon + 1];
    attributes.remove_prefix(std::min(attributes.size(), entry.size() + 1));
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> OperatorSchema::attribute_names() const {
  std::vector<std::string> names;
  std::string_view rest = attributes;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(' '));
    names.emplace_back(entry.substr(0, entry.find(':')));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
  }
  return names;
}

bool OperatorSchema::has_attribute(std::string_view attribute) const {
  return letter_of(attributes, attribute).has_value();
}

std::optional<AttributeType> OperatorSchema::attribute_type(std::string_view attribute) const {
  switch (letter_of(attributes, attribute).value_or('-')) {
    case 'f': return AttributeType::float_number;
    case 'i': return AttributeType::integer;
    case 's': return AttributeType::text;
    case 'F': return AttributeType::float_numbers;
    case 'I': return AttributeType::integers;
    default: return std::nullopt;
  }
}

const OperatorSchema* find_operator_form(std::string_view name) {
  const auto* found = std::lower_bound(std::begin(forms), std::end(forms), name,
                                       [](const OperatorSchema& form, std::string_view n) { return form.name < n; });
  return found == std::end(forms) || found->name != name ? nullptr : found;
}

std::vector<std::string> standard_operator_names() {
  std::vector<std::string> names;
  for (const OperatorSchema& form : forms) names.emplace_back(form.name);
  return names;
}

}  // namespace graft
