// Pairs inputs and outputs by name and order. Searches sizes for synthetic inputs, from small to large and then among
// the constants in the network.
#include "verify/compare/ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "onnx/bytes_part.hpp"
#include "onnx/faults.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/schema.hpp"
#include "runtime/budget.hpp"
#include "runtime/engine_limit.hpp"
#include "verify/compare/pieces.hpp"
#include "verify/inputs/fitting_sizes.hpp"
#include "verify/inputs/input_ranges.hpp"

namespace graft::verify {
namespace {

std::size_t count_empty(const runtime::TensorMap& tensors) {
  return static_cast<std::size_t>(std::count_if(tensors.begin(), tensors.end(),
                                                [](const auto& entry) { return entry.second.element_count() == 0; }));
}

/// A size that is written as a constant in the network, and the node that reads it.
struct HeldSize {
  std::int64_t size;
  const onnx::Node* node;
};

bool has_shape_operand(const onnx::Node& node) { return node.is("Reshape") || node.is("Expand"); }

/// Returns the elements of a shape tensor, with nothing for each element that is not constant. The elements of a Concat
/// are those of its inputs.
std::vector<std::optional<std::int64_t>> constant_sizes(const onnx::Value& shape) {
  constexpr std::int64_t most = 16;
  if (const auto constant = shape.constant()) {
    const auto numbers = constant->element_count() <= most ? constant->ints() : std::nullopt;
    if (numbers) return {numbers->begin(), numbers->end()};
    return {std::nullopt};
  }
  const onnx::Node* node = shape.producer;
  if (node == nullptr) return {std::nullopt};
  const bool gives_on = has_trait(*node, onnx::trait::view) || node->is("Cast");
  if (gives_on && node->input(0) != nullptr) return constant_sizes(*node->input(0));
  if (!node->is("Concat")) return {std::nullopt};
  std::vector<std::optional<std::int64_t>> sizes;
  for (const onnx::Value* part : node->inputs) {
    for (const auto& size : constant_sizes(*part)) sizes.push_back(size);
  }
  return sizes;
}

/// Returns up to 12 different sizes from 2 to 1024 that are constants in the network. Sizes in shape operands come
/// first, then sizes of constants that are added or multiplied, such as position embeddings; each group is in the order
/// of the nodes.
std::vector<HeldSize> held_sizes(const onnx::Model& model) {
  constexpr std::size_t most = 12;
  constexpr std::int64_t largest = 1024;
  std::vector<HeldSize> held;
  const auto add = [&](std::int64_t size, const onnx::Node* node) {
    if (size < 2 || size > largest || held.size() == most) return;
    const bool is_known = std::any_of(held.begin(), held.end(), [&](const HeldSize& h) { return h.size == size; });
    if (!is_known) held.push_back({size, node});
  };
  for (const onnx::Node* node : model.graph().nodes()) {
    if (!has_shape_operand(*node) || node->input(1) == nullptr) continue;
    for (const auto& size : constant_sizes(*node->input(1))) add(size.value_or(0), node);
  }
  for (const onnx::Node* node : model.graph().nodes()) {
    if (!node->is("Add") && !node->is("Sub") && !node->is("Mul") && !node->is("Div")) continue;
    for (const onnx::Value* input : node->inputs) {
      const auto constant = input == nullptr ? std::nullopt : input->constant();
      if (!constant || constant->dims.size() < 2) continue;
      // The last axis usually holds the features, whose size the inputs declare.
      for (std::size_t axis = 0; axis + 1 < constant->dims.size(); ++axis) add(constant->dims[axis], node);
    }
  }
  return held;
}

/// Returns up to 12 symbols in the shapes of inputs, without the symbols of first dimensions (batches) and those whose
/// sizes the options set.
std::vector<std::string> symbols_to_vary(const onnx::Model& model, const InputOptions& options) {
  constexpr std::size_t most = 12;
  std::set<std::string, std::less<>> settled;
  for (const auto& [name, size] : options.dims) settled.insert(name);
  for (const onnx::Value* input : fed_inputs(model)) {
    if (!input->shape) continue;
    for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
      const Dim& dim = (*input->shape)[axis];
      if (dim.kind() == Dim::Kind::symbol && (axis == 0 || options.shapes.contains(input->name)))
        settled.insert(dim.name());
    }
  }
  std::vector<std::string> symbols = symbols_of_inputs(model);
  std::erase_if(symbols, [&](const std::string& symbol) { return settled.contains(symbol); });
  if (symbols.size() > most) symbols.resize(most);
  return symbols;
}

/// Returns words for the size of a symbol in messages, such as "the size 'K'", or "one size of input 'mask'" if the
/// model has no name for the dimension.
std::string name_of_size(const onnx::Model& model, const std::string& symbol) {
  if (!onnx::is_unknown(Dim::symbol(symbol))) return fmt::format("the size '{}'", symbol);
  for (const onnx::Value* input : fed_inputs(model)) {
    if (!input->shape) continue;
    for (const Dim& dim : *input->shape) {
      if (dim.kind() == Dim::Kind::symbol && dim.name() == symbol)
        return fmt::format("one size of input '{}'", input->name);
    }
  }
  return "one size";
}

/// Returns the first Reshape with a constant, fixed target that begins with 1, so that its output does not follow the
/// batch, or null.
const onnx::Node* holder_of_batch(const onnx::Model& model) {
  for (const onnx::Node* node : model.graph().nodes()) {
    if (!node->is("Reshape") || node->input(0) == nullptr || node->input(1) == nullptr) continue;
    if (node->input(0)->constant()) continue;
    const auto sizes = constant_sizes(*node->input(1));
    const bool is_fixed = sizes.size() > 1 && sizes.front() == 1 &&
                          std::all_of(sizes.begin(), sizes.end(), [](const auto& size) { return size && *size > 0; });
    if (is_fixed) return node;
  }
  return nullptr;
}

/// Returns advice for the error message if no sizes worked: how to set the dynamic sizes. Returns an empty string if no
/// size of an input is dynamic.
std::string advice_on_sizes(const onnx::Model& model) {
  std::vector<std::string> open;
  std::string example;
  for (const onnx::Value* input : fed_inputs(model)) {
    if (!input->shape) continue;
    const Shape& shape = *input->shape;
    if (onnx::has_known_sizes(shape)) continue;
    open.push_back(fmt::format("'{}' is declared {}", input->name, to_string(shape)));
    if (!example.empty()) continue;
    constexpr std::int64_t any = 8;
    for (const Dim& dim : shape)
      example += fmt::format("{}{}", example.empty() ? "" : "x", dim.is_constant() ? dim.value() : any);
    example = fmt::format("{}:{}", input->name, example);
  }
  if (open.empty()) return "";
  return fmt::format(
      "\nThe model ran with none of the sizes that were tried; set sizes that the model accepts, for example {} {}: {}",
      setting_name(Setting::synthetic_shapes), example, fmt::join(open, ", "));
}

/// Returns advice for the error message if no synthetic values worked: how to provide inputs and, if `offers_ranges`,
/// ranges. Returns an empty string if the model has no inputs.
std::string advice_on_numbers(const onnx::Model& model, bool offers_ranges) {
  constexpr std::size_t most_named = 4;
  const std::vector<const onnx::Value*> inputs = fed_inputs(model);
  if (inputs.empty()) return "";
  const std::string_view data = setting_name(Setting::data);
  std::string files;
  for (const onnx::Value* input : inputs) files += fmt::format(" {0} {1}={1}.npy", data, input->name);
  if (inputs.size() > most_named) files = fmt::format(" {} inputs.npz, one array per input", data);
  std::string text = fmt::format("\nThe inputs were synthetic; provide real inputs with{}", files);
  const auto sizes = inputs_of_sizes(model);
  for (const onnx::Value* input : inputs) {
    if (sizes.contains(input->name)) return text + fmt::format("; the network computes sizes from '{}'", input->name);
  }
  const auto found = std::find_if(inputs.begin(), inputs.end(),
                                  [](const onnx::Value* input) { return input->type && is_integer(*input->type); });
  if (!offers_ranges || found == inputs.end()) return text;
  const InputRanges ranges = infer_input_ranges(model);
  const auto known = ranges.find((*found)->name);
  const InputRange example = known == ranges.end() ? InputRange{.lowest = 0, .highest = 1, .why = {}} : known->second;
  return text + fmt::format(", or set the range of these integers, for example {} {}={}..{}",
                            setting_name(Setting::synthetic_ranges), (*found)->name,
                            static_cast<std::int64_t>(example.lowest), static_cast<std::int64_t>(example.highest));
}

}  // namespace

std::vector<const onnx::Value*> fed_inputs(const onnx::Model& model) {
  std::vector<const onnx::Value*> inputs;
  for (const onnx::Value* value : model.graph().inputs()) {
    if (!value->initializer) inputs.push_back(value);
  }
  return inputs;
}

std::vector<const onnx::Value*> all_outputs(const onnx::Model& model) {
  return {model.graph().outputs().begin(), model.graph().outputs().end()};
}

std::vector<IoPair> pair_io(const std::vector<const onnx::Value*>& reference,
                            const std::vector<const onnx::Value*>& candidate, const char* what,
                            std::vector<std::string>& problems) {
  std::vector<IoPair> pairs;
  std::set<const onnx::Value*> taken;
  std::vector<std::size_t> alone;
  for (const onnx::Value* left : reference) {
    const auto right = std::find_if(candidate.begin(), candidate.end(),
                                    [&](const onnx::Value* value) { return value->name == left->name; });
    if (right == candidate.end()) alone.push_back(pairs.size());
    if (right != candidate.end()) taken.insert(*right);
    pairs.push_back({left, right == candidate.end() ? nullptr : *right});
  }
  std::vector<const onnx::Value*> left_over;
  for (const onnx::Value* right : candidate) {
    if (!taken.contains(right)) left_over.push_back(right);
  }
  if (alone.size() == left_over.size()) {
    for (std::size_t i = 0; i < alone.size(); ++i) pairs[alone[i]].candidate = left_over[i];
    return pairs;
  }
  for (const std::size_t i : alone)
    problems.push_back(fmt::format("the candidate has no {} '{}'", what, pairs[i].reference->name));
  for (const onnx::Value* right : left_over)
    problems.push_back(fmt::format("the reference has no {} '{}'", what, right->name));
  std::erase_if(pairs, [](const IoPair& pair) { return pair.candidate == nullptr; });
  return pairs;
}

onnx::TensorData in_type(const onnx::TensorData& tensor, std::optional<onnx::ElementType> type) {
  if (!type || *type == tensor.type || !is_real(tensor.type) || !is_real(*type)) return tensor;
  return onnx::TensorData::from_numbers(*type, tensor.dims, *tensor.numbers());
}

bool can_have(const onnx::Value& value, const std::vector<std::int64_t>& dims) {
  if (!value.shape) return true;
  if (value.shape->size() != dims.size()) return false;
  for (std::size_t axis = 1; axis < dims.size(); ++axis) {
    const Dim& dim = (*value.shape)[axis];
    if (dim.is_constant() && dim.value() != dims[axis]) return false;
  }
  return true;
}

std::optional<Rearrangement> order_of_input(const onnx::Value& input, const std::vector<std::int64_t>& dims) {
  const auto fits = [&](const std::vector<std::int64_t>& sizes) { return can_have(input, sizes); };
  return fits(dims) ? std::nullopt : exchange_channels(dims, fits);
}

onnx::TensorData as_input(const onnx::Value& input, const onnx::TensorData& given) {
  const auto order = order_of_input(input, given.dims);
  return in_type(order ? rearrange(given, *order) : given, input.type);
}

std::optional<Rearrangement> exchanged_output(const std::vector<std::int64_t>& reference,
                                              const std::vector<std::int64_t>& candidate) {
  if (reference == candidate) return std::nullopt;
  return exchange_channels(reference, [&](const std::vector<std::int64_t>& dims) { return dims == candidate; });
}

runtime::TensorMap inputs_for(const std::vector<IoPair>& pairs, const runtime::TensorMap& inputs) {
  runtime::TensorMap result;
  for (const IoPair& pair : pairs) {
    const auto found = inputs.find(pair.reference->name);
    if (found != inputs.end()) result[pair.candidate->name] = as_input(*pair.candidate, found->second);
  }
  return result;
}

std::optional<std::int64_t> fixed_batch(const onnx::Value& input) {
  if (!input.shape || input.shape->empty() || !input.shape->front().is_constant()) return std::nullopt;
  return input.shape->front().value();
}

std::vector<runtime::TensorMap> split_into_runs(const runtime::TensorMap& data,
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
      throw Error(
          fmt::format("{} {}: the array has {} samples; the batch size of the model is {}, so the number of samples "
                      "must be a multiple of {}",
                      option, name, samples, batch, batch));
    }
    if (!decided_by.empty() && runs != samples / batch) {
      throw Error(
          fmt::format("{} {}: the array has samples for {} runs, and the array of '{}' for {}; all arrays must have "
                      "samples for the same number of runs",
                      option, name, samples / batch, decided_by, runs));
    }
    runs = samples / batch;
    decided_by = name;
  }
  if (runs == 1) return {data};
  std::vector<runtime::TensorMap> parts(static_cast<std::size_t>(runs));
  for (const auto& [name, all] : data) {
    const auto batch = batches.find(name);
    const bool is_split = batch != batches.end() && !all.dims.empty() && all.dims.front() == runs * batch->second;
    const std::size_t bytes = all.bytes.size() / static_cast<std::size_t>(runs);
    for (std::size_t run = 0; run < parts.size(); ++run) {
      onnx::TensorData part = all;
      if (is_split) {
        part.dims.front() = batch->second;
        part.bytes = onnx::part_of(all.bytes, run * bytes, bytes);
      }
      parts[run].emplace(name, std::move(part));
    }
  }
  return parts;
}

std::vector<runtime::TensorMap> split_into_runs(const runtime::TensorMap& data, const onnx::Model& model,
                                                const std::string& option) {
  std::map<std::string, std::int64_t, std::less<>> batches;
  for (const onnx::Value* input : fed_inputs(model)) {
    if (const auto batch = fixed_batch(*input)) batches.emplace(input->name, *batch);
  }
  return split_into_runs(data, batches, option);
}

bool MadeUpInputs::narrow(const onnx::Model& model, const InputRanges& given) {
  // The last ranges are for indices from which the model subtracts a constant.
  constexpr std::array<std::pair<double, double>, 7> narrower{
      {{0, 3}, {0, 1}, {1, 1}, {0, 0}, {4, 7}, {12, 15}, {100, 103}}};
  const auto is_inferred = [](const auto& entry) { return !entry.second.why.empty(); };
  // Integers of more than 8 bits are from 0 to 3 by default, so this range was already tried.
  if (narrowings_ == 0 && std::none_of(given.begin(), given.end(), is_inferred)) narrowings_ = 1;
  if (narrowings_ == narrower.size()) return false;
  const std::size_t first = std::none_of(given.begin(), given.end(), is_inferred) ? 1 : 0;
  const auto tried_before = [&](const onnx::Value& input) {
    const auto known = given.find(input.name);
    std::vector<std::string> tried{known == given.end()
                                       ? "the default integers"
                                       : fmt::format("{:g} to {:g}", known->second.lowest, known->second.highest)};
    if (known == given.end() && onnx::bits_of(*input.type) > 8) tried.front() = "0 to 3";
    for (std::size_t i = first; i < narrowings_; ++i) {
      std::string range = fmt::format("{:g} to {:g}", narrower[i].first, narrower[i].second);
      if (range != tried.front()) tried.push_back(std::move(range));
    }
    return fmt::format("{}", fmt::join(tried, ", "));
  };
  const auto [lowest, highest] = narrower[narrowings_];
  const auto any_integers = inputs_of_any_integers(model);
  bool found = false;
  for (const onnx::Value* input : fed_inputs(model)) {
    if (!input->type || !is_integer(*input->type)) continue;
    const auto known = given.find(input->name);
    if (known != given.end() ? !is_inferred(*known) : any_integers.contains(input->name)) continue;
    narrowed_[input->name] = {lowest, highest, "the network did not run with " + tried_before(*input)};
    found = true;
  }
  if (found) ++narrowings_;
  return found;
}

void MadeUpInputs::apply(const Sizes& sizes, InputOptions& options) {
  if (sizes.first) options.first_size = *sizes.first;
  options.size = sizes.size;
  if (sizes.other) options.dims.insert(*sizes.other);
}

bool MadeUpInputs::attempt(runtime::CompiledModel& compiled, const onnx::Model& model, InputOptions options,
                           const Sizes& sizes, Run& run) {
  const InputRanges given = options.ranges;
  apply(sizes, options);
  std::vector<FittingSizes> fitting = find_fitting_sizes(model, options);
  const auto add_searched = [&] {
    for (FittingSizes& found : search_fitting_sizes(model, options)) fitting.push_back(std::move(found));
  };
  if (searches_) add_searched();
  for (;;) {
    options.numbers.clear();
    if (fit_ < fitting.size()) options.numbers = fitting[fit_].numbers;
    options.ranges = narrowed_;
    options.ranges.insert(given.begin(), given.end());
    if (refuses_large_) options.large_integers.clear();
    run.inputs = make_inputs(model, options);
    try {
      run.expected = compiled.run(run.inputs);
      if (!options.large_integers.empty()) large_integers_ = options.large_integers;
      why_numbers_ = fit_ < fitting.size() ? fitting[fit_].why : "";
      return true;
    } catch (const runtime::EngineLimit&) {
      throw;  // Another engine may run the network with these inputs.
    } catch (const runtime::OverLimit& limit) {
      if (!refusal_) over_limit_ = std::current_exception();
      if (!refusal_) refusal_ = limit;
      return false;  // Other values of the same sizes would be refused too.
    } catch (const Error& error) {
      if (!options.large_integers.empty()) {
        refuses_large_ = true;
        continue;
      }
      if (!refusal_) refusal_ = error;
      if (fit_ < fitting.size()) {
        ++fit_;
        continue;
      }
      if (narrow(model, given)) continue;
      if (searches_) return false;
      searches_ = true;
      add_searched();
      if (fit_ == fitting.size()) return false;
      narrowed_.clear();
    }
  }
}

runtime::TensorMap MadeUpInputs::inputs(runtime::CompiledModel& compiled, const onnx::Model& model,
                                        const InputOptions& options, runtime::TensorMap& expected) {
  refusal_.reset();
  over_limit_ = nullptr;
  const auto take = [&](Run& run) {
    expected = std::move(run.expected);
    return std::move(run.inputs);
  };
  Run run;
  if (chosen_) {
    if (!attempt(compiled, model, options, *chosen_, run)) {
      if (over_limit_) std::rethrow_exception(over_limit_);
      throw Error(refusal_->kind(), refusal_->what() + advice_on_numbers(model, options.offers_ranges));
    }
    return take(run);
  }
  std::vector<Sizes> attempts;
  for (const std::int64_t size : {16, 64, 224, 640}) {
    attempts.push_back({.first = std::nullopt, .size = size, .holder = nullptr});
    attempts.push_back({.first = 1, .size = size, .holder = nullptr});
  }
  const std::size_t usual = attempts.size();
  std::set<std::map<std::string, std::vector<std::int64_t>, std::less<>>> tried;
  std::optional<Run> with_empty;
  InputRanges narrowed_with_empty;
  std::size_t fit_with_empty = 0;
  bool searches_with_empty = false;
  std::size_t fewest_empty = 0;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const Sizes sizes = attempts[i];
    InputOptions shaped = options;
    apply(sizes, shaped);
    // If a size runs but leads to empty outputs, the same size with another batch would do so too.
    const bool needs_other_batch = !with_empty || chosen_->size != sizes.size;
    if ((needs_other_batch || !sizes.first) && tried.insert(input_shapes(model, shaped)).second) {
      narrowings_ = 0;
      narrowed_.clear();
      fit_ = 0;
      searches_ = false;
      if (attempt(compiled, model, options, sizes, run)) {
        const std::size_t empty = count_empty(run.expected);
        if (empty == 0 || count_empty(run.inputs) != 0) {
          chosen_ = sizes;
          why_sizes_ = why(model, options, sizes);
          return take(run);
        }
        // An output may be empty for every size. Other sizes are better than the usual ones only if fewer outputs are
        // empty.
        if (!with_empty || empty < fewest_empty) {
          chosen_ = sizes;
          fewest_empty = empty;
          with_empty = std::move(run);
          narrowed_with_empty = narrowed_;
          fit_with_empty = fit_;
          searches_with_empty = searches_;
        }
      }
    }
    if (i + 1 == usual && !with_empty) {
      for (const HeldSize& held : held_sizes(model)) {
        for (const std::optional<std::int64_t> first : {std::optional<std::int64_t>(), std::optional<std::int64_t>(1)})
          attempts.push_back({.first = first, .size = held.size, .holder = held.node});
        attempts.push_back({.first = held.size, .size = options.size, .holder = held.node});
      }
      for (const std::string& symbol : symbols_to_vary(model, options)) {
        // The sizes are those for one new token, and for as many new tokens as the cache contains.
        for (const std::int64_t size : {options.size + 1, 2 * options.size}) {
          attempts.push_back(
              {.first = std::nullopt, .size = options.size, .holder = nullptr, .other = {{symbol, size}}});
        }
      }
    }
  }
  if (!with_empty && over_limit_) std::rethrow_exception(over_limit_);
  if (!with_empty)
    throw Error(refusal_->kind(),
                refusal_->what() + advice_on_sizes(model) + advice_on_numbers(model, options.offers_ranges));
  narrowed_ = std::move(narrowed_with_empty);
  fit_ = fit_with_empty;
  searches_ = searches_with_empty;
  why_sizes_ = why(model, options, *chosen_);
  return take(*with_empty);
}

std::string MadeUpInputs::why_sizes() const {
  return why_sizes_ + (why_sizes_.empty() || why_numbers_.empty() ? "" : "; ") + why_numbers_;
}

std::string MadeUpInputs::why(const onnx::Model& model, const InputOptions& options, const Sizes& sizes) {
  std::string text;
  const auto add = [&](const char* what, std::int64_t size, std::int64_t usual) {
    text += fmt::format("{}{} of {} instead of {}", text.empty() ? "" : " and ", what, size, usual);
  };
  if (sizes.first && *sizes.first != options.first_size) add("a first dimension", *sizes.first, options.first_size);
  if (sizes.holder != nullptr && sizes.size != options.size) add("other dynamic sizes", sizes.size, options.size);
  if (sizes.other) {
    return fmt::format("'{}' runs if {} is {} and the other dynamic sizes are {}", model.source,
                       name_of_size(model, sizes.other->first), sizes.other->second, sizes.size);
  }
  if (text.empty()) return "";
  const onnx::Node* holder = sizes.holder != nullptr ? sizes.holder : holder_of_batch(model);
  return fmt::format("'{}' runs with {}{}", model.source, text,
                     holder == nullptr
                         ? ""
                         : fmt::format(": {} has a {}", onnx::describe(*holder),
                                       has_shape_operand(*holder) ? "constant shape" : "constant of that size"));
}

bool is_declared_empty(const onnx::Value& value) {
  return value.shape && std::any_of(value.shape->begin(), value.shape->end(),
                                    [](const Dim& dim) { return dim.is_constant() && dim.value() == 0; });
}

}  // namespace graft::verify
