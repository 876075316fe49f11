// Functions that the converters of all operators use.
#include "import/tensorflow/node_converter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "graft/error.hpp"
#include "import/messages.hpp"
#include "import/tensorflow/graph.hpp"
#include "tensorflow/graph_def.pb.h"

namespace graft::tensorflow {

std::vector<OperatorEntry> entries_of(
    std::initializer_list<std::pair<void (*)(NodeConverter& node), std::string_view>> converters) {
  std::vector<OperatorEntry> entries;
  for (const auto& [convert, names] : converters) {
    // clang 14 does not compile std::views::split of libstdc++ 12.
    for (std::string_view rest = names; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      entries.push_back({name, convert});
      rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    }
  }
  std::ranges::sort(entries, {}, &OperatorEntry::name);
  return entries;
}

std::vector<OperatorGroup> all_operators() {
  return {{"Convolutions, pools, norms, activations, resizing", network_operators()},
          {"Blocks and patches", block_operators()},
          {"Resampling with computed weights", sampling_operators()},
          {"Recurrent cells", cell_operators()},
          {"Elementwise, reductions, products", math_operators()},
          {"Diagonals, segments, spectra", matrix_operators()},
          {"Shapes, slices, constants", array_operators()},
          {"Indices", index_operators()},
          {"Boxes", box_operators()},
          {"Lists of tensors", list_operators()},
          {"Fused by TensorFlow's optimizer", fused_operators()},
          {"Quantization", quantize_operators()}};
}

const OperatorEntry* find_converter(std::string_view op) {
  for (const auto& [group, entries] : all_operators()) {
    const auto found =
        std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.name == op; });
    if (found != entries.end()) return &*found;
  }
  return nullptr;
}

NodeConverter::NodeConverter(const NodeDef& node, onnx::Graph& graph, onnx::ContentsMap& contents,
                             ConstantBudget& budget, std::vector<onnx::Value*> inputs)
    : NodeBuilder(graph, contents, budget, node.name(), node.op()), node_(node), inputs_(std::move(inputs)) {}

const std::string& NodeConverter::op() const { return node_.op(); }

void NodeConverter::fail(const std::string& message) const {
  throw Error(fmt::format("node '{}' ({}): {}", node_.name(), node_.op(), message));
}

onnx::Value* NodeConverter::input(std::size_t i) const {
  if (i >= inputs_.size()) fail(fmt::format("it has {} inputs; its operator needs at least {}", inputs_.size(), i + 1));
  return inputs_[i];
}

onnx::ElementType NodeConverter::type(std::size_t i) const {
  return input(i)->type.value_or(onnx::ElementType::undefined);
}

std::optional<std::size_t> NodeConverter::rank(const onnx::Value* value) const {
  if (!value->shape) return std::nullopt;
  return value->shape->size();
}

std::size_t NodeConverter::known_rank(const onnx::Value* value, std::string_view why) const {
  if (const auto found = rank(value)) return *found;
  fail(fmt::format("the rank of '{}' is unknown, but needed, because {}; {}", value->name, why, give_shapes()));
}

std::optional<onnx::TensorData> NodeConverter::constant(std::size_t i) const { return input(i)->constant(); }

Ints NodeConverter::known_ints(std::size_t i, std::string_view what) const {
  if (auto found = ints(i)) return *std::move(found);
  fail(fmt::format(
      "{} (input {}, '{}') must be constant; Graft does not support values here that are computed at run time", what, i,
      input(i)->name));
}

std::int64_t NodeConverter::known_int(std::size_t i, std::string_view what) const {
  const Ints found = known_ints(i, what);
  if (found.size() != 1)
    fail(fmt::format("{} (input {}) has {} values; it must have exactly 1", what, i, found.size()));
  return found[0];
}

namespace {

const AttrValue* find_attribute(const NodeDef& node, const std::string& name) {
  const auto found = node.attr().find(name);
  return found == node.attr().end() ? nullptr : &found->second;
}

}  // namespace

std::int64_t NodeConverter::int_or(const std::string& attribute, std::int64_t otherwise) const {
  const AttrValue* value = find_attribute(node_, attribute);
  return value != nullptr && value->value_case() == AttrValue::kI ? value->i() : otherwise;
}

bool NodeConverter::flag_or(const std::string& attribute, bool otherwise) const {
  const AttrValue* value = find_attribute(node_, attribute);
  return value != nullptr && value->value_case() == AttrValue::kB ? value->b() : otherwise;
}

float NodeConverter::float_or(const std::string& attribute, float otherwise) const {
  const AttrValue* value = find_attribute(node_, attribute);
  return value != nullptr && value->value_case() == AttrValue::kF ? value->f() : otherwise;
}

std::string NodeConverter::text_or(const std::string& attribute, std::string_view otherwise) const {
  const AttrValue* value = find_attribute(node_, attribute);
  return value != nullptr && value->value_case() == AttrValue::kS ? value->s() : std::string(otherwise);
}

std::vector<std::string> NodeConverter::strings(const std::string& attribute) const {
  const AttrValue* value = find_attribute(node_, attribute);
  if (value == nullptr || value->value_case() != AttrValue::kList) return {};
  return {value->list().s().begin(), value->list().s().end()};
}

std::vector<float> NodeConverter::floats(const std::string& attribute) const {
  const AttrValue* value = find_attribute(node_, attribute);
  if (value == nullptr || value->value_case() != AttrValue::kList) return {};
  return {value->list().f().begin(), value->list().f().end()};
}

Ints NodeConverter::ints_or(const std::string& attribute, Ints otherwise) const {
  const AttrValue* value = find_attribute(node_, attribute);
  if (value == nullptr || value->value_case() != AttrValue::kList) return otherwise;
  return {value->list().i().begin(), value->list().i().end()};
}

std::optional<Ints> NodeConverter::shape_or(const std::string& attribute) const {
  const AttrValue* value = find_attribute(node_, attribute);
  if (value == nullptr || value->value_case() != AttrValue::kShape || value->shape().unknown_rank())
    return std::nullopt;
  Ints dims;
  for (const auto& dim : value->shape().dim()) dims.push_back(dim.size());
  return dims;
}

onnx::ElementType NodeConverter::type_or(const std::string& attribute, onnx::ElementType otherwise) const {
  const AttrValue* value = find_attribute(node_, attribute);
  if (value == nullptr || value->value_case() != AttrValue::kType) return otherwise;
  const auto found = element_type(value->type());
  if (!found)
    fail(fmt::format("attribute `{}` is {}, a type that Graft does not support", attribute,
                     data_type_name(value->type())));
  return *found;
}

void NodeConverter::give(std::size_t index, onnx::Value* value) {
  if (results_.size() <= index) results_.resize(index + 1, nullptr);
  const std::string wanted = to_string(TensorName{name(), static_cast<std::int64_t>(index)});
  const bool is_new = value->producer != nullptr && value->name.starts_with(name() + ":") &&
                      std::find(inputs_.begin(), inputs_.end(), value) == inputs_.end();
  if (is_new && graph().unique_name(wanted) == wanted) {
    graph().rename(*value, wanted);
    if (value->output_index == 0) value->producer->name = wanted;
  }
  results_[index] = value;
}

}  // namespace graft::tensorflow
