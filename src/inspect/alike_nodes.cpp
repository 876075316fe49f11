// Serializes everything about a node except its name.
#include "inspect/alike_nodes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>
#include <variant>

#include "onnx/known_sizes.hpp"
#include "onnx/text.hpp"

namespace graft::inspect {
namespace {

constexpr std::int64_t few_elements = 64;

/// Thrown if an attribute or an input of a node cannot be described as a string, so that likeness_of() returns nothing
/// for the node.
struct Incomparable {};

/// Returns the type and dimensions of a constant and, if it has at most `few_elements` elements, its bytes in
/// hexadecimal. Larger constants are considered weights, whose values do not decide whether TensorRT accepts a node.
/// Throws Incomparable for strings.
std::string tensor_text(const onnx::TensorData& tensor) {
  if (tensor.strings != nullptr) throw Incomparable{};
  std::string text = fmt::format("{}{}", to_string(tensor.type), tensor.dims);
  if (tensor.element_count() > few_elements) return text;
  for (const char c : tensor.bytes.view()) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

std::string attribute_text(const onnx::NodeAttribute& attribute) {
  return std::visit(
      [](const auto& value) -> std::string {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, onnx::TensorData>) {
          return tensor_text(value);
        } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, std::int64_t> ||
                             std::is_same_v<T, std::string> || std::is_same_v<T, std::vector<float>> ||
                             std::is_same_v<T, std::vector<std::int64_t>> ||
                             std::is_same_v<T, std::vector<std::string>>) {
          return fmt::format("{}", value);
        } else {
          throw Incomparable{};
        }
      },
      attribute.data);
}

std::string kind_of(const onnx::Value& value) {
  if (!value.type) throw Incomparable{};
  return fmt::format("{} of rank {}", to_string(*value.type),
                     value.shape ? fmt::format("{}", value.shape->size()) : std::string("?"));
}

class Description {
 public:
  explicit Description(bool (*can_be_input)(const onnx::Value&)) : can_be_input_(can_be_input) {}

  Likeness of(const onnx::Node& node) {
    constexpr int most = 32;
    if (++nodes_ > most) throw Incomparable{};
    Likeness text{.kind = fmt::format("{}:{}:{}<", node.domain, node.op_type, node.overload), .exact = {}};
    for (const auto& [name, attribute] : node.attributes) {
      // The type index is included because 2, 2.0 and "2" are three different attributes.
      text.kind += fmt::format("{}={}:{} ", name, attribute.data.index(), attribute_text(attribute));
    }
    text.exact = text.kind;
    for (const onnx::Value* input : node.inputs) {
      text.kind += input == nullptr ? ",-" : "," + kind_of(*input);
      text.exact += "," + input_text(input);
    }
    for (const onnx::Value* output : node.outputs) {
      text.exact += output == nullptr ? ";-" : output->is_unused() ? ";unused" : ";used";
    }
    text.kind += '>';
    text.exact += '>';
    return text;
  }

 private:
  std::string input_text(const onnx::Value* input) {
    if (input == nullptr) return "-";
    if (const auto constant = input->constant()) return tensor_text(*constant);
    if (!input->opaque.empty()) throw Incomparable{};
    if (input->producer != nullptr && !can_be_input_(*input)) {
      return fmt::format("{}.{}", of(*input->producer).exact, input->output_index);
    }
    // A build looks up the range of an input's dynamic dimensions by the name of the input.
    const bool has_range = input->producer == nullptr && !has_known_sizes(*input);
    return has_range ? fmt::format("{} {}", type_text(*input), input->name) : type_text(*input);
  }

  bool (*can_be_input_)(const onnx::Value&);
  int nodes_ = 0;
};

}  // namespace

std::optional<Likeness> likeness_of(const onnx::Node& node, bool (*can_be_input)(const onnx::Value&)) {
  try {
    return Description(can_be_input).of(node);
  } catch (const Incomparable&) {
    return std::nullopt;
  }
}

}  // namespace graft::inspect
