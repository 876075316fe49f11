// Pairing by name and order; sizes from small to large.
#include "verify/ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <set>
#include <utility>

#include "graft/error.hpp"
#include "verify/pieces.hpp"

namespace graft {
namespace {

bool has_empty(const TensorMap& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const auto& entry) { return entry.second.element_count() == 0; });
}

}  // namespace

std::vector<const Value*> fed_inputs(const Model& model) {
  std::vector<const Value*> inputs;
  for (const Value* value : model.graph().inputs()) {
    if (!value->initializer) inputs.push_back(value);
  }
  return inputs;
}

std::vector<const Value*> all_outputs(const Model& model) {
  return {model.graph().outputs().begin(), model.graph().outputs().end()};
}

std::vector<EndPair> pair_ends(const std::vector<const Value*>& reference, const std::vector<const Value*>& candidate,
                               const char* what, std::vector<std::string>& problems) {
  std::vector<EndPair> pairs;
  std::set<const Value*> taken;
  std::vector<std::size_t> alone;
  for (const Value* left : reference) {
    const auto right =
        std::find_if(candidate.begin(), candidate.end(), [&](const Value* value) { return value->name == left->name; });
    if (right == candidate.end()) alone.push_back(pairs.size());
    if (right != candidate.end()) taken.insert(*right);
    pairs.push_back({left, right == candidate.end() ? nullptr : *right});
  }
  std::vector<const Value*> left_over;
  for (const Value* right : candidate) {
    if (!taken.contains(right)) left_over.push_back(right);
  }
  if (alone.size() == left_over.size()) {
    for (std::size_t i = 0; i < alone.size(); ++i) pairs[alone[i]].candidate = left_over[i];
    return pairs;
  }
  for (const std::size_t i : alone)
    problems.push_back(fmt::format("the candidate has no {} '{}'", what, pairs[i].reference->name));
  for (const Value* right : left_over)
    problems.push_back(fmt::format("the reference has no {} '{}'", what, right->name));
  std::erase_if(pairs, [](const EndPair& pair) { return pair.candidate == nullptr; });
  return pairs;
}

TensorData in_type(const TensorData& tensor, std::optional<ElementType> type) {
  if (!type || *type == tensor.type || !is_real(tensor.type) || !is_real(*type)) return tensor;
  return TensorData::from_numbers(*type, tensor.dims, *tensor.numbers());
}

bool can_have(const Value& value, const std::vector<std::int64_t>& dims) {
  if (!value.shape) return true;
  if (value.shape->size() != dims.size()) return false;
  for (std::size_t axis = 1; axis < dims.size(); ++axis) {
    const Dim& dim = (*value.shape)[axis];
    if (dim.is_constant() && dim.value() != dims[axis]) return false;
  }
  return true;
}

std::optional<Rearrangement> order_of_input(const Value& input, const std::vector<std::int64_t>& dims) {
  const auto fits = [&](const std::vector<std::int64_t>& sizes) { return can_have(input, sizes); };
  return fits(dims) ? std::nullopt : exchange_channels(dims, fits);
}

TensorData as_input(const Value& input, const TensorData& given) {
  const auto order = order_of_input(input, given.dims);
  return in_type(order ? rearrange(given, *order) : given, input.type);
}

std::optional<Rearrangement> exchanged_output(const std::vector<std::int64_t>& reference,
                                              const std::vector<std::int64_t>& candidate) {
  if (reference == candidate) return std::nullopt;
  return exchange_channels(reference, [&](const std::vector<std::int64_t>& dims) { return dims == candidate; });
}

TensorMap inputs_for(const std::vector<EndPair>& pairs, const TensorMap& inputs) {
  TensorMap result;
  for (const EndPair& pair : pairs) {
    const auto found = inputs.find(pair.reference->name);
    if (found != inputs.end()) result[pair.candidate->name] = as_input(*pair.candidate, found->second);
  }
  return result;
}

std::optional<std::int64_t> fixed_batch(const Value& input) {
  if (!input.shape || input.shape->empty() || !input.shape->front().is_constant()) return std::nullopt;
  return input.shape->front().value();
}

std::vector<TensorMap> split_into_runs(const TensorMap& data,
                                       const std::map<std::string, std::int64_t, std::less<>>& batches,
                                       const std::string& option) {
  std::int64_t runs = 1;
  std::string decided_by;
  for (const auto& [name, batch] : batches) {
    const auto found = data.find(name);
    if (found == data.end() || found->second.dims.empty() || batch <= 0) continue;
    const std::int64_t samples = found->second.dims.front();
    if (samples == batch || samples == 0) continue;
    if (samples % batch != 0) {
      throw Error(fmt::format("{} {}: {} samples; the model takes {} at a time, so allowed is a multiple of {}", option,
                              name, samples, batch, batch));
    }
    if (!decided_by.empty() && runs != samples / batch) {
      throw Error(
          fmt::format("{} {}: enough for {} runs, '{}' for {}", option, name, samples / batch, decided_by, runs));
    }
    runs = samples / batch;
    decided_by = name;
  }
  if (runs == 1) return {data};
  std::vector<TensorMap> parts(static_cast<std::size_t>(runs));
  for (const auto& [name, all] : data) {
    const auto batch = batches.find(name);
    const bool is_split = batch != batches.end() && !all.dims.empty() && all.dims.front() == runs * batch->second;
    const std::size_t bytes = all.bytes.size() / static_cast<std::size_t>(runs);
    for (std::size_t run = 0; run < parts.size(); ++run) {
      TensorData part = all;
      if (is_split) {
        part.dims.front() = batch->second;
        part.bytes = Bytes(std::string(all.bytes.view().substr(run * bytes, bytes)));
      }
      parts[run].emplace(name, std::move(part));
    }
  }
  return parts;
}

std::vector<TensorMap> split_into_runs(const TensorMap& data, const Model& model, const std::string& option) {
  std::map<std::string, std::int64_t, std::less<>> batches;
  for (const Value* input : fed_inputs(model)) {
    if (const auto batch = fixed_batch(*input)) batches.emplace(input->name, *batch);
  }
  return split_into_runs(data, batches, option);
}

bool MadeUpInputs::narrow(const Model& model, const InputRanges& given) {
  constexpr std::array<std::pair<double, double>, 3> narrower{{{0, 1}, {1, 1}, {0, 0}}};
  if (narrowings_ == narrower.size()) return false;
  const auto [lowest, highest] = narrower[narrowings_];
  const auto any_integers = inputs_of_any_integers(model);
  bool found = false;
  for (const Value* input : fed_inputs(model)) {
    if (!input->type || !is_integer(*input->type)) continue;
    if (given.contains(input->name) || any_integers.contains(input->name)) continue;
    narrowed_[input->name] = {lowest, highest, "the network does not run with larger integers"};
    found = true;
  }
  if (found) ++narrowings_;
  return found;
}

TensorMap MadeUpInputs::inputs(runtime::CompiledModel& compiled, const Model& model, InputOptions options,
                               bool may_grow, TensorMap& expected) {
  constexpr std::array<std::int64_t, 4> sizes{16, 64, 224, 640};
  const InputRanges given = options.ranges;
  std::exception_ptr refusal;  // the first one: of the usual numbers and the smallest size
  for (;;) {
    const bool last = size_index_ + 1 == sizes.size() || !may_grow || symbols_of_inputs(model).empty();
    options.size = sizes[size_index_];
    options.ranges = given;
    options.ranges.insert(narrowed_.begin(), narrowed_.end());
    TensorMap inputs = make_inputs(model, options);
    try {
      expected = compiled.run(inputs);
    } catch (const Error&) {
      if (!refusal) refusal = std::current_exception();
      if (narrow(model, given)) continue;
      if (last) std::rethrow_exception(refusal);
      narrowings_ = 0;
      narrowed_.clear();
      ++size_index_;
      continue;
    }
    if (last || has_empty(inputs) || !has_empty(expected)) return inputs;
    ++size_index_;
  }
}

bool is_always_empty(const Value& value) {
  return value.shape && std::any_of(value.shape->begin(), value.shape->end(),
                                    [](const Dim& dim) { return dim.is_constant() && dim.value() == 0; });
}

}  // namespace graft
