// Functions that lowerings share: they read nodes and create tensors.
#include "passes/lowering/lowering.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/known_sizes.hpp"

namespace graft::passes {

std::string Replacement::constant(std::string name, onnx::TensorData tensor) {
  constants.insert_or_assign(name, std::move(tensor));
  return name;
}

std::string Replacement::ints(std::string name, const std::vector<std::int64_t>& values) {
  return constant(std::move(name), onnx::TensorData::from_ints(values));
}

std::string Replacement::integer(std::string name, std::int64_t value) {
  return constant(std::move(name), ints_tensor({}, {value}));
}

std::string Replacement::number(std::string name, double value, onnx::ElementType type) {
  return constant(std::move(name), onnx::TensorData::from_numbers(type, {}, {value}));
}

std::string Replacement::in_f32(const std::string& name, onnx::ElementType from) {
  if (from == onnx::ElementType::f32) return name;
  line(fmt::format("{}_f32 = Cast<to=float>({})", name, name));
  return name + "_f32";
}

void Replacement::give(const std::string& output, onnx::ElementType to, const std::string& computation) {
  if (to == onnx::ElementType::f32) {
    line(fmt::format("{} = {}", output, computation));
    return;
  }
  line(fmt::format("{}_f32 = {}", output, computation));
  line(fmt::format("{} = Cast<to={}>({}_f32)", output, to_string(to), output));
}

std::string real_text(double number) { return fmt::format("{:#.9g}", number); }

onnx::ElementType Site::type(std::size_t input) const {
  const onnx::Value* value = node_.input(input);
  return value == nullptr ? onnx::ElementType::undefined : value->type.value_or(onnx::ElementType::undefined);
}

bool Site::is_real(std::size_t input) const {
  using enum onnx::ElementType;
  return type(input) == f32 || type(input) == f16 || type(input) == bf16;
}

const Shape* Site::shape(std::size_t input) const {
  const onnx::Value* value = node_.input(input);
  return value == nullptr ? nullptr : shapes_.of(*value);
}

onnx::Node* Site::producer(std::size_t input) const {
  const onnx::Value* value = node_.input(input);
  return value == nullptr || value->graph != node_.graph ? nullptr : value->producer;
}

std::optional<std::int64_t> Site::size(std::size_t input, std::int64_t axis) const {
  const Shape* found = shape(input);
  return found == nullptr ? std::nullopt : onnx::known_size(*found, axis);
}

std::optional<std::vector<std::int64_t>> Site::sizes(std::size_t input, std::size_t first) const {
  const Shape* found = shape(input);
  return found == nullptr ? std::nullopt : onnx::known_sizes(*found, first);
}

std::optional<onnx::TensorData> Site::constant(std::size_t input) const {
  const onnx::Value* value = node_.input(input);
  return value == nullptr ? std::nullopt : value->constant();
}

std::optional<std::vector<std::int64_t>> Site::ints(std::size_t input) const {
  return onnx::constant_ints(node_.input(input));
}

std::optional<std::vector<double>> Site::numbers(std::size_t input) const {
  const auto tensor = constant(input);
  return tensor ? tensor->numbers() : std::nullopt;
}

std::vector<std::int64_t> Site::ints_or(std::string_view attribute, std::size_t count, std::int64_t otherwise) const {
  auto given = node_.ints(attribute);
  if (!given || given->empty()) return std::vector<std::int64_t>(count, otherwise);
  if (given->size() == count) return *std::move(given);
  throw Error(fmt::format("{}: attribute `{}` has {} values; it must have {}", onnx::describe(node_), attribute,
                          given->size(), count));
}

std::nullopt_t Site::no(std::string why) {
  why_not_ = std::move(why);
  return std::nullopt;
}

std::nullopt_t Site::no_size(std::string_view what) {
  return no(
      fmt::format("{}; {} sets fixed sizes for the inputs of the network", what, setting_name(Setting::input_shapes)));
}

std::nullopt_t Site::no_type(std::size_t input) {
  return no(
      fmt::format("the type of input {} is {}; only f32, f16 and bf16 are supported", input, to_string(type(input))));
}

std::string convolution_text(const onnx::Node& node) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const char* name : {"kernel_shape", "strides", "dilations", "pads"}) {
    if (const auto list = node.ints(name)) add(fmt::format("{}={}", name, *list));
  }
  add(fmt::format("group={}", node.int_or("group", 1)));
  if (const std::string rule = node.string_or("auto_pad", "NOTSET"); rule != "NOTSET") {
    add(fmt::format("auto_pad=\"{}\"", rule));
  }
  return text;
}

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t result = 1;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(result, size, &result)) throw Error("a product of sizes exceeds 64 bits");
  }
  return result;
}

bool is_within_limit(Site& site, std::int64_t copied, std::int64_t limit, const std::string& what) {
  constexpr std::int64_t most_copied = 64;  // as many nodes of one model as this number of the largest nodes
  const std::string next = fmt::format("set {} to a larger number", setting_name(Setting::unroll));
  if (copied > limit) {
    site.no(fmt::format("{} more than {} nodes; {}", what, limit, next));
  } else if (site.shapes().copied_nodes() + copied > most_copied * limit) {
    site.no(fmt::format("all copies of bodies and tensors of sequences would have more than {} nodes; {}",
                        most_copied * limit, next));
  } else {
    return true;
  }
  return false;
}

void check_table(const std::vector<std::int64_t>& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(count, size, &count)) throw TableTooLarge();
  }
  if (count > most_constants) throw TableTooLarge();
}

onnx::TensorData f32_tensor(std::vector<std::int64_t> dims, const std::vector<double>& values) {
  return onnx::TensorData::from_numbers(onnx::ElementType::f32, std::move(dims), values);
}

onnx::TensorData ints_tensor(std::vector<std::int64_t> dims, const std::vector<std::int64_t>& values) {
  onnx::TensorData tensor = onnx::TensorData::from_ints(values);
  tensor.dims = std::move(dims);
  return tensor;
}

}  // namespace graft::passes
