// Derives the values from the nodes that read them, or searches values with shape inference.
#include "verify/inputs/fitting_sizes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "graft/error.hpp"
#include "onnx/faults.hpp"

namespace graft::verify {
namespace {

using Sizes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

/// Returns whether the range of an input comes from the caller and was not inferred.
bool is_given(const InputOptions& options, const std::string& input) {
  const auto range = options.ranges.find(input);
  return range != options.ranges.end() && range->second.why.empty();
}

/// Returns the number of elements of a tensor of rank 0 or 1.
std::int64_t count_of(const std::vector<std::int64_t>& dims) { return dims.empty() ? 1 : dims.front(); }

std::map<std::string, Shape, std::less<>> shapes_of(const Sizes& sizes) {
  std::map<std::string, Shape, std::less<>> shapes;
  for (const auto& [name, dims] : sizes) shapes.emplace(name, Shape(dims.begin(), dims.end()));
  return shapes;
}

/// Returns dimensions of rank `rank` with the same number of elements: surplus leading dimensions are multiplied into
/// one, and missing ones are 1.
std::vector<double> regroup(const std::vector<std::int64_t>& dims, std::size_t rank) {
  std::vector<double> sizes(rank, 1);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t from_end = dims.size() - 1 - i;
    sizes[rank - 1 - std::min(from_end, rank - 1)] *= static_cast<double>(dims[i]);
  }
  return sizes;
}

/// Returns values for the sizes that a Reshape, Expand or Resize reads from an input; `rank` is their number. The
/// values are the data's own sizes or, with `is_other`, sizes that change the data: reversed (Reshape), axes of size 1
/// enlarged (Expand), or enlarged images (Resize). Empty if the sizes of the data are not known and no value fits all
/// of them.
std::vector<double> fitting_sizes(const onnx::Node& node, std::size_t rank, bool is_other) {
  const onnx::Value* data = node.input(0);
  if (data == nullptr || rank == 0) return {};
  std::vector<std::int64_t> dims;
  if (!data->shape ||
      !std::all_of(data->shape->begin(), data->shape->end(), [](const Dim& d) { return d.is_constant(); })) {
    if (node.is("Resize")) return {};
    std::vector<double> sizes(rank, 1);
    if (node.is("Reshape")) sizes[is_other ? 0 : rank - 1] = -1;
    return sizes;
  }
  for (const Dim& dim : *data->shape) dims.push_back(dim.value());
  if (node.is("Reshape")) {
    if (is_other) std::reverse(dims.begin(), dims.end());
    return regroup(dims, rank);
  }
  if (dims.size() > rank || (node.is("Resize") && dims.size() != rank)) return {};
  std::vector<double> sizes(rank - dims.size(), is_other ? 2 : 1);
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const bool grows = is_other && (node.is("Resize") ? axis >= 2 : dims[axis] == 1);
    sizes.push_back(static_cast<double>(dims[axis] * (grows ? 2 : 1)));
  }
  return sizes;
}

/// Returns candidates for sizes, without duplicates: the sizes of the inputs and constants, their numbers of elements,
/// and the divisors of these.
std::vector<std::int64_t> likely_sizes(const onnx::Model& model, const Sizes& inputs) {
  constexpr std::size_t most_tensors = 16;
  constexpr std::size_t most_sizes = 48;
  constexpr std::int64_t largest = 1 << 16;
  std::vector<std::vector<std::int64_t>> tensors;
  for (const auto& [name, dims] : inputs) tensors.push_back(dims);
  for (const onnx::Value* constant : model.graph().initializers()) {
    if (tensors.size() < most_tensors && !constant->initializer->dims.empty())
      tensors.push_back(constant->initializer->dims);
  }
  std::vector<std::int64_t> sizes;
  const auto add = [&](std::int64_t size) {
    const bool is_known = std::find(sizes.begin(), sizes.end(), size) != sizes.end();
    if (size > 0 && size <= largest && sizes.size() < most_sizes && !is_known) sizes.push_back(size);
  };
  for (const std::vector<std::int64_t>& dims : tensors) {
    for (const std::int64_t size : dims) add(size);
  }
  for (const std::vector<std::int64_t>& dims : tensors) {
    std::int64_t count = 1;
    for (const std::int64_t size : dims) count = std::min(largest, count * std::clamp<std::int64_t>(size, 1, largest));
    add(count);
    for (std::int64_t divisor = 2; divisor * divisor <= count; ++divisor) {
      if (count % divisor == 0) {
        add(divisor);
        add(count / divisor);
      }
    }
  }
  return sizes;
}

}  // namespace

std::vector<FittingSizes> find_fitting_sizes(const onnx::Model& model, const InputOptions& options) {
  struct Taker {
    std::string input;
    const onnx::Node* node;
    std::size_t rank;
  };
  std::vector<Taker> takers;
  const auto shapes = input_shapes(model, options);
  for (const onnx::Value* input : model.graph().inputs()) {
    if (input->initializer) continue;
    const auto& dims = shapes.at(input->name);
    if (is_given(options, input->name) || !input->type || !is_integer(*input->type) || dims.size() != 1) continue;
    for (const onnx::Value* value = input; value != nullptr;) {
      const onnx::Value* next = nullptr;
      for (const onnx::Use& use : value->uses) {
        const bool takes = ((use.node->is("Reshape") || use.node->is("Expand")) && use.index == 1) ||
                           (use.node->is("Resize") && use.index == 3);
        const bool is_first = takers.empty() || takers.back().input != input->name;
        if (takes && is_first && use.node->graph == &model.graph())
          takers.push_back({input->name, use.node, static_cast<std::size_t>(dims[0])});
        if (use.node->is("Cast") || use.node->is("Identity")) next = use.node->output();
      }
      value = next;
    }
  }
  if (takers.empty()) return {};
  onnx::Model inferred = model.clone();
  // A fault is reported when the model runs.
  infer_around_faults(inferred, shapes_of(shapes), [](const onnx::Node&, const Error&) {});
  std::vector<FittingSizes> fitting;
  for (const bool is_other : {true, false}) {
    FittingSizes& sizes = fitting.emplace_back();
    for (const Taker& taker : takers) {
      const onnx::Value* data = taker.node->input(0);
      const onnx::Value* known = data == nullptr ? nullptr : inferred.graph().find_local(data->name);
      if (known == nullptr) continue;
      const onnx::Node* node = taker.node;
      for (const onnx::Use& use : known->uses) {
        if (use.index == 0 && use.node->op_type == node->op_type && use.node->output()->name == node->output()->name)
          node = use.node;
      }
      const std::vector<double> numbers = fitting_sizes(*node, taker.rank, is_other);
      if (numbers.empty()) continue;
      sizes.numbers.emplace(taker.input, numbers);
      sizes.why += fmt::format("{}synthetic '{}' is [{:g}], sizes that fit {}", sizes.why.empty() ? "" : "; ",
                               taker.input, fmt::join(numbers, ", "), onnx::describe(*taker.node));
    }
    if (sizes.numbers.empty()) fitting.pop_back();
  }
  return fitting;
}

std::vector<FittingSizes> search_fitting_sizes(const onnx::Model& model, const InputOptions& options) {
  constexpr std::int64_t most_integers = 3;
  constexpr std::size_t most_found = 4;
  constexpr std::size_t most_trials = 600;
  constexpr std::size_t most_inferred_nodes = 20000;
  Sizes shapes = input_shapes(model, options);
  const auto any_integers = inputs_of_any_integers(model);
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> searched;  // The inputs with their dimensions.
  std::int64_t integers = 0;
  for (const onnx::Value* input : model.graph().inputs()) {
    const auto dims = shapes.find(input->name);
    const bool is_integer = input->type == onnx::ElementType::i64 || input->type == onnx::ElementType::i32;
    if (dims == shapes.end() || !is_integer || dims->second.size() > 1) continue;
    if (any_integers.contains(input->name) || is_given(options, input->name)) continue;
    searched.emplace_back(*dims);
    integers += count_of(dims->second);
  }
  if (searched.empty() || integers < 1 || integers > most_integers) return {};
  std::vector<std::int64_t> sizes = likely_sizes(model, shapes);
  std::size_t nodes = 0;  // The number includes nodes in subgraphs, whose types are inferred too.
  model.graph().for_each_node([&](const onnx::Node&) { ++nodes; });
  const std::size_t trials = std::min(most_trials, most_inferred_nodes / std::max<std::size_t>(nodes, 1));
  const auto combinations = [&] {
    std::size_t count = 1;
    for (std::int64_t i = 0; i < integers; ++i) count *= sizes.size();
    return count;
  };
  while (!sizes.empty() && combinations() > trials) sizes.pop_back();
  if (sizes.empty()) return {};
  for (const auto& [name, dims] : searched) shapes.erase(name);
  std::vector<FittingSizes> found;
  for (std::size_t trial = 0; trial < combinations() && found.size() < most_found; ++trial) {
    onnx::Model tried = model.clone();
    FittingSizes fitting;
    std::size_t rest = trial;
    for (const auto& [name, dims] : searched) {
      std::vector<double>& numbers = fitting.numbers[name];
      for (std::int64_t i = 0; i < count_of(dims); ++i, rest /= sizes.size())
        numbers.push_back(static_cast<double>(sizes[rest % sizes.size()]));
      onnx::Value* input = tried.graph().find_local(name);
      tried.graph().set_is_input(*input, false);
      tried.graph().set_initializer(*input, onnx::TensorData::from_numbers(*input->type, dims, numbers));
      fitting.why +=
          fmt::format("{}synthetic '{}' is [{:g}]", fitting.why.empty() ? "" : " and ", name, fmt::join(numbers, ", "));
    }
    bool fits = true;
    infer_around_faults(tried, shapes_of(shapes), [&](const onnx::Node&, const Error&) { fits = false; });
    if (!fits) continue;
    fitting.why += ", for which the sizes of all tensors are consistent";
    found.push_back(std::move(fitting));
  }
  return found;
}

}  // namespace graft::verify
