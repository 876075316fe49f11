// Pass fold_transposes: removes a Transpose before a flattening and products with constant matrices by reordering the
// rows of these matrices.
//
//   MatMul(Flatten(Transpose(x)), w)   becomes   MatMul(Flatten(x), v), where v has the rows of w in another order
//
// A network with channels last flattens height, width, channels, and its fully connected layers were trained in that
// order. When it is read with channels first, it needs a Transpose before the flattening, or every number would meet
// the wrong weight. Reordered rows compute the same and cost nothing at run time.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "passes/passes.hpp"
#include "passes/rewriter.hpp"

namespace graft::passes {
namespace {

/// The total size, in bytes, up to which constant matrices are reordered. For larger matrices the Transpose takes a
/// negligible part of the time, and the reordered copies would need memory.
constexpr std::int64_t most_folded_bytes = 32 << 20;

/// The nodes after a Transpose that have to change when it is removed, or in `obstacle` why it cannot be removed.
struct Found {
  onnx::Value* x = nullptr;           ///< The input of the Transpose.
  std::vector<onnx::Node*> reshapes;  ///< The nodes that flatten to [N, K].
  std::vector<onnx::Node*> products;  ///< The MatMul and Gemm nodes.
  /// places[k] is the index, in a flattened batch item of x, of element k after the Transpose.
  std::vector<std::int64_t> places;
  std::string obstacle;
};

/// Returns, for each element k of the transposed tensor, its index in the row-major tensor of shape `dims` before the
/// Transpose.
std::vector<std::int64_t> places_of(const std::vector<std::int64_t>& dims,
                                    const std::vector<std::int64_t>& permutation) {
  const std::size_t rank = dims.size();
  std::vector<std::int64_t> strides(rank, 1);
  for (std::size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  std::vector<std::int64_t> places;
  places.reserve(static_cast<std::size_t>(count));
  std::vector<std::int64_t> at(rank, 0);
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t place = 0;
    for (std::size_t i = 0; i < rank; ++i) place += at[i] * strides[static_cast<std::size_t>(permutation[i])];
    places.push_back(place);
    for (std::size_t i = rank; i-- > 0;) {
      if (++at[i] < dims[static_cast<std::size_t>(permutation[i])]) break;
      at[i] = 0;
    }
  }
  return places;
}

/// Returns the dimensions of x, the input of a Transpose, without the batch axis 0. Returns nothing if one of these
/// dimensions is unknown or 0, if there are too many elements, or if the Transpose moves axis 0.
std::optional<std::vector<std::int64_t>> item_dims(const onnx::Node& transpose) {
  const auto permutation = transpose.ints("perm");
  const onnx::Value* x = transpose.input(0);
  if (!permutation || permutation->empty() || x == nullptr || !x->shape || x->shape->size() != permutation->size() ||
      (*permutation)[0] != 0) {
    return std::nullopt;
  }
  std::vector<std::int64_t> dims;
  std::int64_t count = 1;
  for (std::size_t axis = 1; axis < x->shape->size(); ++axis) {
    const Dim& dim = (*x->shape)[axis];
    if (!dim.is_constant() || dim.value() < 1 || __builtin_mul_overflow(count, dim.value(), &count))
      return std::nullopt;
    dims.push_back(dim.value());
  }
  return count <= most_folded_bytes ? std::optional(dims) : std::nullopt;
}

bool is_flat(const onnx::Value& value, std::int64_t count) {
  return value.shape && value.shape->size() == 2 && (*value.shape)[1].is_constant() &&
         (*value.shape)[1].value() == count;
}

/// Returns why the rows of the constant matrix of `product` cannot be reordered, or an empty string if they can. `use`
/// is the use of the flattened tensor by `product`, and `count` the number of elements of one batch item.
std::string obstacle_of(const onnx::Node& product, const onnx::Use& use, std::int64_t count) {
  const bool is_product = product.is("MatMul") || (product.is("Gemm") && product.int_or("transA", 0) == 0);
  if (!is_product || use.index != 0)
    return fmt::format(
        "{} also reads the flattened tensor, and is not a MatMul or a Gemm without transA with this tensor as first "
        "input",
        onnx::describe(product));
  const onnx::Value* matrix = product.input(1);
  const auto constant = matrix == nullptr ? std::nullopt : matrix->constant();
  if (!constant || constant->dims.size() != 2)
    return fmt::format("the second input of {} is not a constant matrix", onnx::describe(product));
  const std::size_t axis = product.is("Gemm") && product.int_or("transB", 0) != 0 ? 1 : 0;
  const bool has_bytes = bits_of(constant->type) % 8 == 0 && !constant->bytes.view().empty();
  if (constant->dims[axis] != count || !has_bytes)
    return fmt::format("the matrix of {} does not have one row for each flattened element", onnx::describe(product));
  if (matrix->uses.size() != 1 || matrix->is_output())
    return fmt::format("'{}' is also read by other nodes", matrix->name);
  return "";
}

/// Returns the nodes after a Transpose, or an obstacle, if every reader of the Transpose flattens its result to [N, K];
/// otherwise nothing. One reader that cannot change is enough for an obstacle, because the Transpose would then stay.
std::optional<Found> find(const onnx::Node& transpose) {
  const auto dims = item_dims(transpose);
  const onnx::Value* y = transpose.output();
  if (!dims || y == nullptr || y->is_unused() || y->is_output()) return std::nullopt;
  Found found{transpose.input(0), {}, {}, {}, ""};
  std::int64_t count = 1;
  for (const std::int64_t dim : *dims) count *= dim;
  std::int64_t bytes = 0;
  for (const onnx::Use& use : y->uses) {
    // The target of a Reshape may be computed from the shape of its input.
    if (use.node->is("Shape")) continue;
    onnx::Value* flat = use.node->output();
    const bool flattens = (use.node->is("Reshape") || use.node->is("Flatten")) && use.index == 0 && flat != nullptr;
    if (!flattens || use.node->graph != transpose.graph || !is_flat(*flat, count) || flat->is_output())
      return std::nullopt;
    found.reshapes.push_back(use.node);
    for (const onnx::Use& reader : flat->uses) {
      if (found.obstacle.empty()) found.obstacle = obstacle_of(*reader.node, reader, count);
      if (!found.obstacle.empty()) continue;
      if (reader.node->graph != transpose.graph) return std::nullopt;
      found.products.push_back(reader.node);
      bytes += static_cast<std::int64_t>(reader.node->input(1)->constant()->bytes.size());
    }
  }
  if (found.reshapes.empty()) return std::nullopt;
  if (found.obstacle.empty() && bytes > most_folded_bytes) {
    found.obstacle =
        fmt::format("the time of the Transpose is negligible compared with matrices of {} MB", bytes >> 20);
  }
  if (!found.obstacle.empty()) return found;
  std::vector<std::int64_t> permutation = *transpose.ints("perm");
  permutation.erase(permutation.begin());
  for (std::int64_t& axis : permutation) --axis;
  found.places = places_of(*dims, permutation);
  return found;
}

/// Returns a copy of the 2-D matrix in which row k (column k if `columns`) is moved to index places[k].
onnx::TensorData reordered(const onnx::TensorData& matrix, const std::vector<std::int64_t>& places, bool columns) {
  const auto size = static_cast<std::size_t>(bits_of(matrix.type) / 8);
  const auto width = static_cast<std::size_t>(matrix.dims[1]) * size;
  std::string bytes(matrix.bytes.size(), '\0');
  const char* from = matrix.bytes.data();
  for (std::size_t k = 0; k < places.size(); ++k) {
    const auto place = static_cast<std::size_t>(places[k]);
    if (!columns) {
      std::copy_n(from + k * width, width, bytes.data() + place * width);
      continue;
    }
    for (std::size_t row = 0; row < static_cast<std::size_t>(matrix.dims[0]); ++row) {
      std::copy_n(from + row * width + k * size, size, bytes.data() + row * width + place * size);
    }
  }
  onnx::TensorData result;
  result.type = matrix.type;
  result.dims = matrix.dims;
  result.bytes = onnx::Bytes(std::move(bytes));
  return result;
}

void edit(onnx::Graph& graph, const std::string& x, const std::vector<std::string>& outputs,
          const std::vector<onnx::TensorData>& matrices) {
  // The Flatten is inserted at the Transpose, which comes before all of the products.
  const onnx::Node& reshape = *graph.find(outputs.front())->producer->input(0)->producer;
  onnx::Node* flatten = graph.add_node("Flatten", {graph.find(x)}, {x + "/flat"}, reshape.input(0)->producer);
  flatten->attributes.emplace("axis", onnx::NodeAttribute(onnx::AttributeData(std::int64_t{1})));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    onnx::Node& product = *graph.find(outputs[i])->producer;
    onnx::Value* matrix = graph.add_constant(product.input(1)->name + "/reordered", matrices[i]);
    graph.set_input(product, 0, flatten->output());
    graph.set_input(product, 1, matrix);
  }
}

void propose(Rewriter& rewriter, onnx::Node& transpose, const Found& found) {
  Proposal proposal{.nodes = {&transpose},
                    .inputs = {found.x},
                    .replacement = fmt::format(
                        "a different order of the rows of {}",
                        found.products.size() == 1 ? "a matrix" : fmt::format("{} matrices", found.products.size())),
                    .reason = "the rows have the order of the flattened elements"};
  proposal.nodes.insert(proposal.nodes.end(), found.reshapes.begin(), found.reshapes.end());
  proposal.nodes.insert(proposal.nodes.end(), found.products.begin(), found.products.end());
  std::vector<std::string> outputs;
  std::vector<onnx::TensorData> matrices;
  for (const onnx::Node* product : found.products) {
    proposal.outputs.push_back(product->output());
    outputs.push_back(product->output()->name);
    const bool columns = product->is("Gemm") && product->int_or("transB", 0) != 0;
    matrices.push_back(reordered(*product->input(1)->constant(), found.places, columns));
  }
  proposal.edit = [x = found.x->name, outputs, matrices](onnx::Graph& edited) { edit(edited, x, outputs, matrices); };
  rewriter.apply(proposal);
}

}  // namespace

void fold_transposes(Rewriter& rewriter) {
  for (onnx::Graph* graph : rewriter.graphs()) {
    for (onnx::Node* node : graph->nodes()) {
      if (!node->is("Transpose")) continue;
      const auto found = find(*node);
      if (!found) continue;
      if (found->obstacle.empty()) {
        propose(rewriter, *node, *found);
      } else {
        rewriter.near_miss("Transpose before a product",
                           {.node = node, .matched_nodes = 2, .pattern_nodes = 3, .reason = found->obstacle});
      }
    }
  }
}

}  // namespace graft::passes
