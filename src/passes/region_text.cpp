#include "passes/region_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "onnx/onnx_io.hpp"
#include "verify/prove/prove.hpp"

namespace graft::passes {
namespace {

/// The minimum number of elements of a floating-point constant that counts as weights. Rewrites may read smaller
/// constants element by element, for example an epsilon.
constexpr std::size_t fewest_weights = 9;

bool is_weight(const onnx::TensorData& tensor) {
  return is_floating_point(tensor.type) && tensor.element_count() >= static_cast<std::int64_t>(fewest_weights) &&
         tensor.numbers().has_value();
}

/// Returns a string with the properties of weights on which a rewrite may depend (signs, zeros, infinities, magnitude,
/// whether they are integers or all equal). It does not contain the values.
template <class Numbers>
std::string nature_of(const Numbers& numbers) {
  constexpr double large = 1e4;  // the square is beyond f16
  bool negative = false;
  bool zero = false;
  bool positive = false;
  bool not_finite = false;
  bool beyond = false;
  bool whole = true;
  bool same = true;
  for (const double number : numbers) {
    negative = negative || number < 0;
    zero = zero || number == 0;
    positive = positive || number > 0;
    not_finite = not_finite || !std::isfinite(number);
    beyond = beyond || std::abs(number) > large;
    whole = whole && number == std::trunc(number);
    same = same && number == static_cast<double>(numbers.front());
  }
  return fmt::format("{} weights:{:d}{:d}{:d}{:d}{:d}{:d}{:d}", numbers.size(), negative, zero, positive, not_finite,
                     beyond, whole, same);
}

/// Replaces weights in the attributes of a node by a string with their type, shape and properties (nature_of).
void forget_weights(onnx::Node& node) {
  for (auto& [name, attribute] : node.attributes) {
    if (const auto* list = attribute.get<std::vector<float>>(); list != nullptr && list->size() >= fewest_weights) {
      attribute = onnx::NodeAttribute(onnx::AttributeData(nature_of(*list)));
    } else if (const auto* tensor = attribute.get<onnx::TensorData>(); tensor != nullptr && is_weight(*tensor)) {
      attribute = onnx::NodeAttribute(onnx::AttributeData(fmt::format(
          "{} [{}] {}", to_string(tensor->type), fmt::join(tensor->dims, ", "), nature_of(*tensor->numbers()))));
    }
  }
}

/// Returns a string that is equal for two models if they are equal except for names of values and nodes. Large
/// constants are included as hashes to keep the string short. If `with_weights` is false, only the properties of
/// weights are included.
std::string anonymous_text(const onnx::Model& model, bool with_weights) {
  onnx::Model copy = model.clone();
  copy.doc.clear();
  copy.producer_name.clear();
  copy.graph().name.clear();
  std::size_t count = 0;
  std::unordered_set<const onnx::Value*> renamed;
  const auto rename = [&](onnx::Value* value) {
    if (value == nullptr || !renamed.insert(value).second) return;
    copy.graph().rename(*value, fmt::format("\x01{}", count++));
  };
  for (onnx::Value* value : copy.graph().inputs()) rename(value);
  for (onnx::Node* node : copy.graph().nodes()) {
    node->name.clear();
    node->doc.clear();
    node->metadata.clear();
    for (onnx::Value* value : node->inputs) rename(value);
    for (onnx::Value* value : node->outputs) rename(value);
    if (!with_weights) forget_weights(*node);
  }
  for (onnx::Value* value : copy.graph().initializers()) {
    constexpr std::size_t large = 4096;
    if (!with_weights && is_weight(*value->initializer)) {
      value->initializer->bytes = onnx::Bytes(nature_of(*value->initializer->numbers()));
      continue;
    }
    const std::string_view bytes = value->initializer->bytes.view();
    if (bytes.size() <= large) continue;
    const std::hash<std::string_view> hash;
    value->initializer->bytes =
        onnx::Bytes(fmt::format("{} {:x} {:x}", bytes.size(), hash(bytes), hash(bytes.substr(large / 2))));
  }
  return serialize_onnx(copy);
}

}  // namespace

std::string region_text(const onnx::Model& region) { return anonymous_text(region, true); }

std::string kind_text(const onnx::Model& before, const onnx::Model& after) {
  const auto opened = verify::with_open_sizes(before, after);
  return anonymous_text(opened ? opened->before : before, false) +
         anonymous_text(opened ? opened->after : after, false);
}

}  // namespace graft::passes
