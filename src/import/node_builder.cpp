// Adds nodes of ONNX with their types and shapes, and permutes constants.
#include "import/node_builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "graft/error.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/operator_node.hpp"

namespace graft {
namespace {

/// Visits the elements of a tensor with the dimensions `dims` and calls `f(source, target)` for each, with its offsets
/// in two buffers, in elements. `from_steps` and `to_steps` contain the steps in these buffers along each axis. Along
/// the axes in `left_out`, only index 0 is visited.
template <class F>
void for_each_place(const Ints& dims, const Ints& from_steps, const Ints& to_steps,
                    const std::vector<std::size_t>& left_out, F&& f) {
  std::vector<std::size_t> axes;
  std::int64_t count = 1;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (std::find(left_out.begin(), left_out.end(), axis) != left_out.end()) continue;
    axes.push_back(axis);
    count *= dims[axis];
  }
  std::vector<std::int64_t> at(dims.size(), 0);
  std::int64_t from = 0;
  std::int64_t to = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    f(from, to);
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      from += from_steps[*axis];
      to += to_steps[*axis];
      if (++at[*axis] < dims[*axis]) break;
      from -= dims[*axis] * from_steps[*axis];
      to -= dims[*axis] * to_steps[*axis];
      at[*axis] = 0;
    }
  }
}

/// Copies elements of `size` bytes to a tensor with the dimensions `dims`; `from_steps` contains the step in the
/// source, in elements, along each axis of the target. Where the source is contiguous along another axis than the
/// target, each cache line of the source is read only once. Copying in the target's order took 20 times as long for a
/// filter of 512 x 512.
template <std::size_t size>
void copy_permuted(const char* from, char* to, const Ints& dims, const Ints& from_steps) {
  const std::size_t last = dims.size() - 1;
  Ints to_steps(dims.size(), 1);
  for (std::size_t i = last; i-- > 0;) to_steps[i] = to_steps[i + 1] * dims[i + 1];
  const auto element = [](std::int64_t place) { return static_cast<std::size_t>(place) * size; };
  std::size_t dense = last;  // the axis of the target along which the source is contiguous
  for (std::size_t axis = 0; axis < last; ++axis) {
    if (from_steps[axis] == 1 && dims[axis] > 1 && from_steps[last] != 1) dense = axis;
  }
  if (from_steps[last] == 1 && dense == last) {
    for_each_place(dims, from_steps, to_steps, {last}, [&](std::int64_t source, std::int64_t target) {
      std::memcpy(to + element(target), from + element(source), element(dims[last]));
    });
    return;
  }
  constexpr std::int64_t line = 64 / size;
  for (std::int64_t begin = 0; begin < dims[dense]; begin += line) {
    const std::int64_t count = dense == last ? 1 : std::min(line, dims[dense] - begin);
    for_each_place(dims, from_steps, to_steps, {dense, last}, [&](std::int64_t source, std::int64_t target) {
      for (std::int64_t k = 0; k < count; ++k) {
        const char* read = from + element(source + (dense == last ? 0 : begin + k));
        char* write = to + element(target + (dense == last ? 0 : (begin + k) * to_steps[dense]));
        for (std::int64_t i = 0; i < dims[last]; ++i) {
          std::memcpy(write + element(i), read + element(i * from_steps[last]), size);
        }
      }
    });
    if (dense == last) break;
  }
}

}  // namespace

onnx::TensorData transposed(const onnx::TensorData& tensor, const Ints& permutation) {
  const std::size_t rank = tensor.dims.size();
  std::vector<std::int64_t> strides(rank, 1);
  // If a tensor has no elements, its other dimensions may have any size, and nothing is copied.
  for (std::size_t i = rank; i-- > 1 && tensor.bytes.size() != 0;) strides[i - 1] = strides[i] * tensor.dims[i];
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> steps;
  for (const std::int64_t axis : permutation) {
    dims.push_back(tensor.dims.at(static_cast<std::size_t>(axis)));
    steps.push_back(strides.at(static_cast<std::size_t>(axis)));
  }
  if (dims.size() != rank) throw Error(Error::Kind::internal, "a permutation and its tensor have different ranks");
  std::string raw(tensor.bytes.size(), '\0');
  if (!raw.empty() && rank != 0) {
    switch (bits_of(tensor.type)) {
      case 8: copy_permuted<1>(tensor.bytes.data(), raw.data(), dims, steps); break;
      case 16: copy_permuted<2>(tensor.bytes.data(), raw.data(), dims, steps); break;
      case 32: copy_permuted<4>(tensor.bytes.data(), raw.data(), dims, steps); break;
      case 64: copy_permuted<8>(tensor.bytes.data(), raw.data(), dims, steps); break;
      default:
        throw Error(
            fmt::format("weights of type {} cannot be transposed; only types of 8, 16, 32 and 64 bits are supported",
                        to_string(tensor.type)));
    }
  } else {
    raw.assign(tensor.bytes.data(), tensor.bytes.size());
  }
  onnx::TensorData result;
  result.type = tensor.type;
  result.dims = std::move(dims);
  result.bytes = onnx::Bytes(std::move(raw));
  return result;
}

onnx::TensorData reshaped(onnx::TensorData tensor, Ints dims) {
  const std::int64_t before = tensor.element_count();
  tensor.dims = std::move(dims);
  if (tensor.element_count() != before) {
    throw Error(
        fmt::format("a constant of {} elements cannot have the shape [{}]", before, fmt::join(tensor.dims, ", ")));
  }
  return tensor;
}

std::optional<onnx::Contents> NodeBuilder::dims_in(const onnx::Value* value) const {
  if (const auto tensor = value->constant()) {
    const auto ints = tensor->ints();
    if (!ints) return std::nullopt;
    return onnx::Contents(ints->begin(), ints->end());
  }
  const auto found = contents_.find(value);
  return found == contents_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Ints> NodeBuilder::ints_in(const onnx::Value* value) const {
  if (const auto tensor = value->constant()) return tensor->ints();
  const auto dims = dims_in(value);
  if (!dims) return std::nullopt;
  Ints result;
  for (const Dim& dim : *dims) {
    if (!dim.is_constant()) return std::nullopt;
    result.push_back(dim.value());
  }
  return result;
}

onnx::Value* NodeBuilder::add(const std::string& onnx_op, std::vector<onnx::Value*> inputs,
                              const Attributes& attributes) {
  return add_many(onnx_op, std::move(inputs), 1, attributes)[0];
}

std::vector<onnx::Value*> NodeBuilder::add_many(const std::string& onnx_op, std::vector<onnx::Value*> inputs,
                                                std::size_t outputs, const Attributes& attributes) {
  const std::string hint = name_ + ":" + onnx_op;
  onnx::Node* node = graph_.add_node(onnx_op, std::move(inputs), std::vector<std::string>(outputs, hint));
  node->name = node->outputs.front()->name;
  node->metadata[std::string(onnx::layer_type_note)] = type_;
  for (const auto& [key, value] : attributes) node->attributes.emplace(key, value);
  onnx::NodeTypes types(*node, contents_);
  try {
    apply_shape_rule(types);
  } catch (const std::overflow_error& error) {
    throw Error(fmt::format("{}: {}", onnx_op, error.what()));
  }
  return node->outputs;
}

onnx::Value* NodeBuilder::add_operator(const Operator& op, std::vector<onnx::Value*> inputs) {
  std::vector<Shape> shapes;
  for (const onnx::Value* value : inputs) {
    if (value->shape) shapes.push_back(*value->shape);
  }
  const bool is_known = shapes.size() == inputs.size();
  const auto type = inputs[0]->type;
  onnx::Node* node = add_operator_node(graph_, op, std::move(inputs), {name_ + ":" + std::string(op.type().name)});
  node->name = node->output()->name;
  node->metadata[std::string(onnx::layer_type_note)] = type_;
  std::vector<Shape> results;
  if (is_known) {
    const Status status = op.infer_shapes(shapes, results);
    if (!status.ok()) throw Error(std::string(status.message()));
    node->output()->shape = onnx::without_data_sizes(std::move(results))[0];
  }
  node->output()->type = type;
  return node->output();
}

void NodeBuilder::check_budget(std::int64_t elements, onnx::ElementType type) const {
  constexpr std::int64_t bits_of_byte = 8;
  const std::int64_t allowed = std::min(ConstantBudget::largest, budget_.left);
  if (elements <= allowed * bits_of_byte / static_cast<std::int64_t>(bits_of(type))) return;
  throw Error(
      fmt::format("it needs a constant of {} elements of type {}; such a constant may have at most {} bytes, and all "
                  "such constants of a network together at most {} bytes",
                  elements, to_string(type), ConstantBudget::largest, ConstantBudget::all));
}

onnx::Value* NodeBuilder::constant_of(onnx::TensorData tensor) {
  check_budget(static_cast<std::int64_t>(tensor.bytes.size()), onnx::ElementType::u8);
  budget_.left -= static_cast<std::int64_t>(tensor.bytes.size());
  return graph_.add_constant(name_ + ":constant", std::move(tensor));
}

onnx::Value* NodeBuilder::ints_of(const Ints& values) { return constant_of(onnx::TensorData::from_ints(values)); }

onnx::Value* NodeBuilder::scalar_of(double value, onnx::ElementType type) {
  return constant_of(onnx::TensorData::scalar_of(type, value));
}

onnx::Value* NodeBuilder::cast(onnx::Value* value, onnx::ElementType type) {
  if (value->type == type) return value;
  if (type == onnx::ElementType::i64) {
    if (const auto tensor = value->constant()) {
      if (const auto numbers = tensor->ints())
        return graph_.add_constant(name_ + ":constant", reshaped(onnx::TensorData::from_ints(*numbers), tensor->dims));
    }
  }
  return add("Cast", {value}, {{"to", static_cast<std::int64_t>(type)}});
}

onnx::Value* NodeBuilder::transpose(onnx::Value* value, const Ints& permutation) {
  if (const auto tensor = value->constant()) {
    if (tensor->dims.size() != permutation.size()) {
      throw Error(fmt::format("the constant '{}' has {} dimensions; it must have {}", value->name, tensor->dims.size(),
                              permutation.size()));
    }
    return graph_.add_constant(value->name, transposed(*tensor, permutation));
  }
  return add("Transpose", {value}, {{"perm", permutation}});
}

onnx::Value* NodeBuilder::reshape(onnx::Value* value, const Ints& dims) {
  const bool is_static = std::all_of(dims.begin(), dims.end(), [](std::int64_t dim) { return dim > 0; });
  if (is_static) {
    if (auto tensor = value->constant()) return graph_.add_constant(value->name, reshaped(*std::move(tensor), dims));
  }
  return add("Reshape", {value, ints_of(value->shape ? onnx::with_inferred_size(*value->shape, dims) : dims)});
}

onnx::Value* NodeBuilder::slice_1d(onnx::Value* value, std::int64_t begin, std::int64_t end) {
  return add("Slice", {value, ints_of({begin}), ints_of({end}), ints_of({0})});
}

}  // namespace graft
