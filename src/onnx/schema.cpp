// Holds the tables of schemas and traits, and searches them.
#include "onnx/schema.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "onnx/model.hpp"

namespace graft::onnx {
namespace {

// The rows are sorted by name.
constexpr OperatorSchema schemas[] = {
#include "onnx/schema.inc"
};

// The rows are sorted by name, then by opset.
constexpr SchemaVersion versions[] = {
#include "onnx/schema_versions.inc"
};

struct TraitsRow {
  std::string_view name;
  Traits traits;
};

constexpr std::size_t count = std::size(schemas);

namespace rows {
using namespace trait;  // NOLINT(google-build-using-namespace): the rows would be unreadable
constexpr Traits none = 0;
constexpr TraitsRow traits[] = {
#include "onnx/traits.inc"
};
}  // namespace rows

static_assert(std::size(rows::traits) == count, "traits.inc needs one row for each operator of schema.inc");
static_assert(std::equal(std::begin(schemas), std::end(schemas), std::begin(rows::traits),
                         [](const OperatorSchema& schema, const TraitsRow& row) { return schema.name == row.name; }),
              "traits.inc needs the operators of schema.inc, in the same order");

struct AttributeEntry {
  AttributeSchema schema;
  std::optional<std::string_view> default_text;
};

/// Removes and returns the first entry of a list such as "axis:i=0 mode:s".
AttributeEntry take_entry(std::string_view& attributes) {
  const std::string_view text = attributes.substr(0, attributes.find(' '));
  attributes.remove_prefix(std::min(attributes.size(), text.size() + 1));
  const std::size_t colon = text.find(':');
  AttributeEntry entry;
  entry.schema = {.name = text.substr(0, colon), .kind = text[colon + 1], .is_required = text.substr(colon + 2) == "!"};
  const std::size_t equal = text.find('=');
  if (equal != std::string_view::npos) entry.default_text = text.substr(equal + 1);
  return entry;
}

std::optional<AttributeEntry> find_entry(std::string_view attributes, std::string_view wanted) {
  while (!attributes.empty()) {
    const AttributeEntry entry = take_entry(attributes);
    if (entry.schema.name == wanted) return entry;
  }
  return std::nullopt;
}

template <class T>
T number_in(std::string_view text) {
  T number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::vector<std::int64_t> integers_in(std::string_view text) {
  std::vector<std::int64_t> integers;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    integers.push_back(number_in<std::int64_t>(one));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
  }
  return integers;
}

}  // namespace

std::vector<std::string> OperatorSchema::attribute_names() const {
  std::vector<std::string> names;
  std::string_view rest = attributes;
  while (!rest.empty()) names.emplace_back(take_entry(rest).schema.name);
  return names;
}

bool OperatorSchema::has_attribute(std::string_view attribute) const {
  return find_entry(attributes, attribute).has_value();
}

char OperatorSchema::attribute_kind(std::string_view attribute) const {
  const auto entry = find_entry(attributes, attribute);
  return entry ? entry->schema.kind : '-';
}

std::optional<AttributeType> OperatorSchema::attribute_type(std::string_view attribute) const {
  switch (attribute_kind(attribute)) {
    case 'f': return AttributeType::float_number;
    case 'i': return AttributeType::integer;
    case 's': return AttributeType::text;
    case 'F': return AttributeType::float_numbers;
    case 'I': return AttributeType::integers;
    default: return std::nullopt;
  }
}

std::optional<AttributeValue> OperatorSchema::attribute_default(std::string_view attribute) const {
  const auto entry = find_entry(attributes, attribute);
  if (!entry || !entry->default_text) return std::nullopt;
  switch (entry->schema.kind) {
    case 'f': return number_in<float>(*entry->default_text);
    case 'i': return number_in<std::int64_t>(*entry->default_text);
    case 's': return std::string(*entry->default_text);
    case 'I': return integers_in(*entry->default_text);
    default: return std::nullopt;
  }
}

const OperatorSchema* find_schema(std::string_view op_type) {
  const auto* found =
      std::lower_bound(std::begin(schemas), std::end(schemas), op_type,
                       [](const OperatorSchema& schema, std::string_view name) { return schema.name < name; });
  return found == std::end(schemas) || found->name != op_type ? nullptr : found;
}

const OperatorSchema* find_schema(std::string_view op_type, std::int64_t opset) {
  const OperatorSchema* found = find_schema(op_type);
  const bool exists = found != nullptr && found->since <= opset && (found->removed == 0 || opset < found->removed);
  return exists ? found : nullptr;
}

std::vector<AttributeSchema> SchemaVersion::attributes() const {
  std::vector<AttributeSchema> all;
  std::string_view rest = attribute_text;
  while (!rest.empty()) all.push_back(take_entry(rest).schema);
  return all;
}

std::optional<SchemaVersion> find_schema_version(std::string_view op_type, std::int64_t opset) {
  const OperatorSchema* schema = find_schema(op_type, opset);
  if (schema == nullptr) return std::nullopt;
  std::optional<SchemaVersion> found;
  for (const SchemaVersion& version : versions) {
    if (version.name == op_type && version.since <= opset) found = version;
  }
  if (found) return found;
  return SchemaVersion{schema->name,        schema->since,        schema->fewest_inputs,
                       schema->most_inputs, schema->most_outputs, schema->attributes};
}

std::vector<const OperatorSchema*> all_schemas() {
  std::vector<const OperatorSchema*> all;
  all.reserve(count);
  for (const OperatorSchema& schema : schemas) all.push_back(&schema);
  return all;
}

Traits traits_of(std::string_view op_type) {
  const OperatorSchema* found = find_schema(op_type);
  return found == nullptr ? rows::none : rows::traits[found - std::begin(schemas)].traits;
}

bool has_trait(const Node& node, Traits any_of) {
  return node.domain.empty() && (traits_of(node.op_type) & any_of) != 0;
}

bool is_any_of(const Node& node, std::initializer_list<std::string_view> op_types) {
  return node.domain.empty() && std::find(op_types.begin(), op_types.end(), node.op_type) != op_types.end();
}

}  // namespace graft::onnx
