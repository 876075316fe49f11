// Assigns the data, shapes and ranges of a caller to the inputs of two models.
#include "verify/inputs/given_inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/faults.hpp"
#include "onnx/known_sizes.hpp"
#include "verify/compare/ends.hpp"
#include "verify/compare/rearrangement.hpp"
#include "verify/inputs/input_ranges.hpp"

namespace graft::verify {
namespace {

std::string wanted_text(const onnx::Model& model) {
  std::string text;
  for (const onnx::Value* input : fed_inputs(model)) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", input->name, input->type ? to_string(*input->type) : "?",
                        input->shape ? to_string(*input->shape) : " of any shape");
  }
  return fmt::format("{} expects {}", model.source, text);
}

std::vector<std::int64_t> sizes_for(const onnx::Value& input, const std::vector<std::int64_t>& given) {
  const auto order = order_of_input(input, given);
  return order ? order->final_dims : given;
}

/// Finds the inputs that the caller's options name. A name may be that of either model, and data may have the layout of
/// either model.
class GivenInputs {
 public:
  GivenInputs(const onnx::Model& reference, const onnx::Model& candidate)
      : reference_(reference), candidate_(candidate), references_(fed_inputs(reference)) {
    std::vector<std::string> ignored;
    pairs_ = pair_io(references_, fed_inputs(candidate), "input", ignored);
  }

  /// Returns the pair of inputs, of which at least one has this name. Throws Error for a name that neither model has,
  /// and for sizes that neither model accepts. `option` is the setting that messages name.
  [[nodiscard]] IoPair find(Setting option, const std::string& name, const std::vector<std::int64_t>& sizes) const {
    const IoPair pair = find(option, name);
    const auto fits = [&](const onnx::Value* value) {
      return value == nullptr || can_have(*value, sizes_for(*value, sizes));
    };
    if (!fits(pair.reference) && !fits(pair.candidate)) {
      throw Error(fmt::format(
          "{} {}: the shape [{}] fits neither model; {}; {}\nUse the shape that one of the models expects; for a model "
          "with its channels at another axis Graft transposes the input",
          setting_name(option), name, fmt::join(sizes, ", "), wanted_text(reference_), wanted_text(candidate_)));
    }
    return pair;
  }

  /// Returns the pair of inputs, of which at least one has this name. Throws Error for a name that neither model has.
  /// `option` is the setting that messages name.
  [[nodiscard]] IoPair find(Setting option, const std::string& name) const {
    for (const IoPair& pair : pairs_) {
      if (pair.reference->name == name) return pair;
    }
    for (const IoPair& pair : pairs_) {
      if (pair.candidate->name == name) return pair;
    }
    for (const onnx::Value* input : references_) {
      if (input->name == name) return {.reference = input, .candidate = nullptr};
    }
    for (const onnx::Value* input : fed_inputs(candidate_)) {
      if (input->name == name) return {.reference = nullptr, .candidate = input};
    }
    throw Error(fmt::format("{} {}: neither model has an input of this name; {}; {}", setting_name(option), name,
                            wanted_text(reference_), wanted_text(candidate_)));
  }

 private:
  const onnx::Model& reference_;
  const onnx::Model& candidate_;
  std::vector<const onnx::Value*> references_;
  std::vector<IoPair> pairs_;
};

/// Returns the tensors in `given` under the names of the reference's inputs and transposed to their layouts.
runtime::TensorMap placed(const GivenInputs& inputs, Setting setting, const runtime::TensorMap& given) {
  runtime::TensorMap data;
  for (const auto& [name, tensor] : given) {
    const onnx::Value* input = inputs.find(setting, name, tensor.dims).reference;
    const auto order = input == nullptr ? std::nullopt : order_of_input(*input, tensor.dims);
    data.emplace(input == nullptr ? name : input->name, order ? rearrange(tensor, *order) : tensor);
  }
  return data;
}

/// Splits each entry of `data` into runs, each with as many samples as the fixed batch of one of the models. Throws the
/// errors of split_into_runs.
void split_data(const onnx::Model& reference, const onnx::Model& candidate, std::vector<runtime::TensorMap>& data,
                const std::string& option) {
  std::map<std::string, std::int64_t, std::less<>> batches;
  std::vector<std::string> ignored;
  const auto add = [&](const std::string& name, const onnx::Value& input) {
    if (const auto batch = fixed_batch(input)) batches.emplace(name, *batch);
  };
  for (const IoPair& pair : pair_io(fed_inputs(reference), fed_inputs(candidate), "input", ignored)) {
    add(pair.reference->name, *pair.reference);
    add(pair.reference->name, *pair.candidate);
  }
  std::vector<runtime::TensorMap> runs;
  for (const runtime::TensorMap& given : data) {
    for (runtime::TensorMap& run : split_into_runs(given, batches, option)) runs.push_back(std::move(run));
  }
  data = std::move(runs);
}

/// If an input has dynamic sizes in the reference and fixed sizes in the candidate, adds its fixed sizes to `shapes`,
/// by input name. This occurs, for example, with a candidate that comes from Caffe.
void fix_dynamic_dimensions(const onnx::Model& reference, const onnx::Model& candidate,
                            std::map<std::string, std::vector<std::int64_t>, std::less<>>& shapes) {
  for (const onnx::Value* input : candidate.graph().inputs()) {
    const onnx::Value* other = reference.graph().find_local(input->name);
    if (other == nullptr || !other->is_input || other->initializer) continue;
    if (has_known_sizes(*other) || !has_known_sizes(*input)) continue;
    std::vector<std::int64_t> sizes;
    for (const Dim& dim : *input->shape) sizes.push_back(dim.value());
    sizes = sizes_for(*other, sizes);
    const bool has_batch = other->shape && !other->shape->empty() && other->shape->front().is_constant();
    if (!can_have(*other, sizes) || (has_batch && other->shape->front().value() != sizes.front())) continue;
    shapes.emplace(input->name, std::move(sizes));
  }
}

/// Returns the ranges in `given`, under the names of the reference's inputs, and inferred ranges for the other inputs.
InputRanges complete_ranges(const onnx::Model& reference, const onnx::Model& candidate, const InputRanges& given) {
  InputRanges ranges;
  const GivenInputs inputs(reference, candidate);
  for (const auto& [name, range] : given) {
    const onnx::Value* input = inputs.find(Setting::synthetic_ranges, name).reference;
    ranges.emplace(input == nullptr ? name : input->name, range);
  }
  ranges.merge(infer_input_ranges(reference));
  // The scale of a quantized candidate shows the range for which it was calibrated.
  for (auto& [name, range] : infer_input_ranges(candidate)) {
    const onnx::Value* input = reference.graph().find_local(name);
    if (input != nullptr && input->is_input && input->type && is_floating_point(*input->type))
      ranges.emplace(name, std::move(range));
  }
  return ranges;
}

/// Returns the names of the reference's integer inputs that inputs_of_large_integers() finds in both models and for
/// which the caller set no range. Synthetic values of such an input may be large.
std::set<std::string, std::less<>> find_large_integers(const onnx::Model& reference, const onnx::Model& candidate,
                                                       const InputRanges& ranges) {
  const auto needs_none = [&](const onnx::Value* input) {
    return ranges.contains(input->name) || !input->type || !is_integer(*input->type);
  };
  const std::vector<const onnx::Value*> inputs = fed_inputs(reference);
  if (std::all_of(inputs.begin(), inputs.end(), needs_none)) return {};
  const auto find = [](const onnx::Model& model) {
    onnx::Model inferred = model.clone();
    infer_around_faults(inferred, [](const onnx::Node&, const Error&) {});  // A fault is reported when the model runs.
    return inputs_of_large_integers(inferred);
  };
  const auto in_reference = find(reference);
  if (in_reference.empty()) return {};
  const auto in_candidate = find(candidate);
  std::set<std::string, std::less<>> both;
  std::vector<std::string> ignored;
  for (const IoPair& pair : pair_io(inputs, fed_inputs(candidate), "input", ignored)) {
    const bool may_be = in_reference.contains(pair.reference->name) && in_candidate.contains(pair.candidate->name);
    if (may_be && !ranges.contains(pair.reference->name)) both.insert(pair.reference->name);
  }
  return both;
}

}  // namespace

PlacedShapes place_shapes(const onnx::Model& reference, const onnx::Model& candidate, const VerifyOptions& options) {
  const GivenInputs inputs(reference, candidate);
  PlacedShapes placed;
  const auto place = [&](Setting option, const std::string& name, const std::vector<std::int64_t>& sizes) {
    const IoPair pair = inputs.find(option, name, sizes);
    for (const auto& [input, to] :
         {std::pair(pair.reference, &placed.reference), std::pair(pair.candidate, &placed.candidate)}) {
      if (input == nullptr) continue;
      const std::vector<std::int64_t> own = sizes_for(*input, sizes);
      to->emplace(input->name, Shape(own.begin(), own.end()));
    }
  };
  for (const auto& [name, sizes] : options.shapes) place(options.shapes_setting, name, sizes);
  for (const runtime::TensorMap& data : options.data) {
    for (const auto& [name, tensor] : data) place(options.data_setting, name, tensor.dims);
  }
  return placed;
}

void place_inputs(const onnx::Model& reference, const onnx::Model& candidate, VerifyOptions& options) {
  const GivenInputs inputs(reference, candidate);
  const auto given_shapes = std::exchange(options.shapes, {});
  for (const auto& [name, sizes] : given_shapes) {
    const onnx::Value* input = inputs.find(options.shapes_setting, name, sizes).reference;
    options.shapes.emplace(input == nullptr ? name : input->name, input == nullptr ? sizes : sizes_for(*input, sizes));
  }
  for (runtime::TensorMap& data : options.data) data = placed(inputs, options.data_setting, data);
  if (options.data_set.count == 0) return;
  options.data_set.sample = [&reference, &candidate, setting = options.data_setting,
                             given = std::move(options.data_set.sample)](std::int64_t run) {
    return placed(GivenInputs(reference, candidate), setting, given(run));
  };
}

void complete_inputs(const onnx::Model& reference, const onnx::Model& candidate, VerifyOptions& options) {
  if (options.has_data()) {
    split_data(reference, candidate, options.data, std::string(setting_name(options.data_setting)));
    return;
  }
  fix_dynamic_dimensions(reference, candidate, options.shapes);
  options.ranges = complete_ranges(reference, candidate, options.ranges);
  options.large_integers = find_large_integers(reference, candidate, options.ranges);
}

}  // namespace graft::verify
