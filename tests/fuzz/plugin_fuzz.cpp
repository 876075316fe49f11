// Fuzzes the creation of plugins: from serialized fields by the creators for TensorRT, and from fields of any name,
// type and length by an operator or a plugin that it replaces.
#include <memory>
#include <vector>

#include "graft/operator/registry.hpp"
#include "tests/fuzz/counting.hpp"
#include "tests/fuzz/created_plugins.hpp"
#include "tests/fuzz/target.hpp"

namespace graft::fuzz {
namespace {

template <class T>
std::vector<T> list(TakenBytes& bytes) {
  constexpr std::size_t longest = 20;
  std::vector<T> values(bytes.below(longest));
  for (T& value : values) value = bytes.take<T>();
  return values;
}

/// Returns an 8-bit or a 64-bit number with equal probability.
std::int64_t integer(TakenBytes& bytes) {
  return bytes.below(2) == 0 ? bytes.take<std::int8_t>() : bytes.take<std::int64_t>();
}

AttributeValue value_of(TakenBytes& bytes) {
  switch (bytes.below(5)) {
    case 0: return bytes.take<float>();
    case 1: return integer(bytes);
    case 2: return list<float>(bytes);
    case 3: {
      std::vector<std::int64_t> values(bytes.below(20));
      for (std::int64_t& value : values) value = integer(bytes);
      return values;
    }
    default: {
      const std::vector<char> text = list<char>(bytes);
      return std::string(text.begin(), text.end());
    }
  }
}

/// Returns a value, in three of four cases of the type of the field.
AttributeValue value_of(TakenBytes& bytes, const AttributeInfo& attribute) {
  if (bytes.below(4) == 0) return value_of(bytes);
  switch (attribute.type) {
    case AttributeType::float_number: return bytes.take<float>();
    case AttributeType::integer: return integer(bytes);
    case AttributeType::float_numbers: return list<float>(bytes);
    case AttributeType::integers: {
      std::vector<std::int64_t> values(bytes.below(20));
      for (std::int64_t& value : values) value = integer(bytes);
      return values;
    }
    case AttributeType::text: break;
  }
  if (!attribute.choices.empty()) return std::string(attribute.choices[bytes.below(attribute.choices.size())]);
  return value_of(bytes);
}

Shape shape_of(TakenBytes& bytes) {
  Shape shape;
  const std::size_t rank = bytes.below(6);
  for (std::size_t i = 0; i < rank; ++i) {
    if (bytes.below(3) == 0) {
      shape.push_back(Dim::symbol("n"));
    } else {
      shape.emplace_back(bytes.below(2) == 0 ? std::int64_t{bytes.take<std::uint8_t>()}
                                             : std::int64_t{bytes.take<std::uint32_t>()});
    }
  }
  return shape;
}

/// Calls the functions of an operator that TensorRT reaches while it builds and loads.
void use(const Operator& op, TakenBytes& bytes) {
  std::vector<NamedAttribute> attributes;
  for (const AttributeInfo& attribute : op.type().attributes) {
    attributes.push_back({attribute.name, op.get(attribute.name).value()});
  }
  std::unique_ptr<Operator> again;
  // serialized attributes must be readable
  if (!make_operator(op.type(), nullptr, attributes, again).ok()) std::abort();
  std::vector<Shape> inputs(bytes.below(op.type().most_inputs() + 1));
  for (Shape& input : inputs) input = shape_of(bytes);
  std::vector<Shape> outputs;
  if (!op.infer_shapes(inputs, outputs).ok()) return;
  std::optional<Function> function;
  const FunctionInputs of{.dtype = DType::f32, .count = inputs.size(), .rank = static_cast<int>(bytes.below(6))};
  if (!op.function(of, function).ok()) std::abort();
}

}  // namespace

void run(std::string_view data) {
  const Counting while_it_runs(memory_limit(data.size()), single_limit(data.size()));
  TakenBytes bytes(data);
  if (bytes.below(2) == 0) return create_plugin(bytes);
  const auto& all = operators();
  const OperatorType& type = *all[bytes.below(all.size())];
  const std::size_t which = bytes.below(type.drop_ins.size() + 1);
  const DropIn* drop_in = which == 0 ? nullptr : &type.drop_ins[which - 1];
  std::vector<NamedAttribute> fields;
  constexpr std::size_t most_fields = 24;
  for (std::size_t i = bytes.below(most_fields); i-- > 0 && !bytes.empty();) {
    if (drop_in != nullptr && !drop_in->fields.empty() && bytes.below(2) == 0) {
      const DropInField& field = drop_in->fields[bytes.below(drop_in->fields.size())];
      fields.push_back({field.name, value_of(bytes)});
    } else if (!type.attributes.empty()) {
      const AttributeInfo& attribute = type.attributes[bytes.below(type.attributes.size())];
      fields.push_back({attribute.name, value_of(bytes, attribute)});
    }
  }
  std::unique_ptr<Operator> op;
  if (make_operator(type, drop_in, fields, op).ok()) use(*op, bytes);
}

std::string mutate(std::string_view /*bytes*/, std::uint64_t /*seed*/) { return ""; }

}  // namespace graft::fuzz
