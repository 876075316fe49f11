// Runs the trials of a proof: all combinations of sizes, values and implementations of Graft's operators.
#include "verify/prove/prove.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/comparison_text.hpp"
#include "onnx/low_precision.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "onnx/shape_inference.hpp"
#include "runtime/budget.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/ends.hpp"
#include "verify/inputs/inputs.hpp"
#include "verify/inputs/random_values.hpp"
#include "verify/judge/noisy_model.hpp"

namespace graft::verify {
namespace {

using Shapes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

struct Numbers {
  InputValues values;
  double scale;
  bool every_seed;
};

// The magnitudes detect a different epsilon, which has an effect only for values near its square root or near itself.
constexpr std::array<Numbers, 16> all_numbers{{
    {InputValues::normal, 1, true},
    {InputValues::zeros, 1, false},
    {InputValues::ones, 1, false},
    {InputValues::negative, 1, false},
    {InputValues::normal, 1e-15, false},
    {InputValues::normal, 1e-9, false},
    {InputValues::normal, 1e-6, false},
    {InputValues::normal, 1e-4, false},
    {InputValues::normal, 1e-2, false},
    {InputValues::normal, 30, false},  // Beyond the limits of clipping layers, with a square that f16 can represent.
    {InputValues::normal, 1e3, false},
    {InputValues::normal, 1e9, false},
    {InputValues::normal, 1e15, false},
    {InputValues::chosen, 1, true},
    {InputValues::infinite, 1, false},
    {InputValues::nan, 1, false},
}};

constexpr Numbers one_run{InputValues::uniform, 1, false};

constexpr std::array<Numbers, 2> numbers_for_spot_check{
    {{InputValues::normal, 1, false}, {InputValues::chosen, 1, false}}};

/// The values for ProofOptions::small_values.
constexpr std::array<Numbers, 1> small_numbers{{{InputValues::normal, 0.1, true}}};

/// The kinds of values for the runs whose sizes test broadcasting: only normally distributed ones.
constexpr std::array<Numbers, 1> numbers_for_broadcasting{{{InputValues::normal, 1, false}}};

std::string text_of(const Numbers& numbers) {
  switch (numbers.values) {
    case InputValues::zeros: return "zeros";
    case InputValues::ones: return "ones";
    case InputValues::negative: return "negative values";
    case InputValues::chosen: return "the constants of the region";
    case InputValues::infinite: return "infinities among normally distributed values";
    case InputValues::nan: return "NaN among normally distributed values";
    case InputValues::uniform: return "uniformly distributed values";
    case InputValues::normal: break;
  }
  return numbers.scale == 1 ? "normally distributed values"
                            : fmt::format("normally distributed values times {:g}", numbers.scale);
}

std::string text_of(const Shapes& shapes) {
  std::string text;
  for (const auto& [name, dims] : shapes)
    text += fmt::format("{}{}: [{}]", text.empty() ? "" : ", ", name, fmt::join(dims, ", "));
  return text;
}

/// Returns values at which a region may change its behavior: -1, 0, 1, its small constants and floating-point
/// attributes, and their negatives. Random values would never equal, for example, the 0.5 of x > 0.5.
std::vector<double> numbers_of(const onnx::Model& model) {
  std::set<double> numbers{-1, 0, 1};
  constexpr std::size_t most = 64;
  const auto add = [&](double number) {
    if (!std::isfinite(number) || numbers.size() >= most) return;
    numbers.insert(number);
    numbers.insert(-number);
  };
  const auto add_tensor = [&](const onnx::TensorData& tensor) {
    constexpr std::int64_t few = 8;
    const auto elements = tensor.element_count() <= few ? tensor.numbers() : std::nullopt;
    if (elements) std::for_each(elements->begin(), elements->end(), add);
  };
  const auto add_constants = [&](const onnx::Graph& graph) {
    for (const onnx::Value* value : graph.values()) {
      if (const auto constant = value->constant()) add_tensor(*constant);
    }
  };
  add_constants(model.graph());
  model.graph().for_each_node([&](const onnx::Node& node) {
    for (const onnx::Graph* inner : node.subgraphs()) add_constants(*inner);
    for (const auto& [name, attribute] : node.attributes) {
      if (const auto* number = attribute.get<float>()) add(*number);
    }
  });
  return {numbers.begin(), numbers.end()};
}

/// Returns whether every output element depends only on the input elements at its position, so that an infinite input
/// affects no other element (as it would in a mean). The list of operators contains only arithmetic, comparisons and
/// logic.
bool is_element_by_element(const onnx::Model& model) {
  static const std::set<std::string_view> element_by_element{
      "Abs",      "Add",   "And",   "Cast", "Clip",        "Constant", "Div", "Equal", "Greater", "GreaterOrEqual",
      "Identity", "IsInf", "IsNaN", "Less", "LessOrEqual", "Max",      "Min", "Mod",   "Mul",     "Neg",
      "Not",      "Or",    "PRelu", "Relu", "Sign",        "Sub",      "Sum", "Where", "Xor"};
  bool all = true;
  model.graph().for_each_node(
      [&](const onnx::Node& node) { all = all && node.domain.empty() && element_by_element.contains(node.op_type); });
  return all;
}

/// The magnitude above which the result of the original counts as infinite when the rewrite's result is infinite.
constexpr double huge = 1e30;

/// Replaces elements of the rewrite's result, `other`, that need not agree by the elements of the original's result,
/// `reference`. These are the elements where the original is infinite or NaN, and those where the rewrite is infinite
/// and the original is beyond `huge` with the same sign: exporters clip to the largest float if no limit was intended.
void forgive_where_not_finite(const onnx::TensorData& reference, onnx::TensorData& other) {
  if (!is_floating_point(reference.type) || reference.dims != other.dims) return;
  const auto expected = reference.numbers();
  auto found = other.numbers();
  if (!expected || !found) return;
  for (std::size_t i = 0; i < found->size(); ++i) {
    const double wanted = (*expected)[i];
    if (std::isinf((*found)[i]) && std::abs(wanted) > huge && std::signbit(wanted) == std::signbit((*found)[i]))
      (*found)[i] = wanted;
    if (!std::isfinite(wanted)) (*found)[i] = wanted;
  }
  other = onnx::TensorData::from_numbers(other.type, other.dims, *found);
}

/// Returns the types of the outputs, by name, as inferred from the inputs. Running the model does not show a wrong
/// type, because the engine converts results to the declared types.
std::map<std::string, onnx::ElementType> inferred_types(const onnx::Model& model) {
  onnx::Model bare = model.clone();
  for (onnx::Value* value : bare.graph().values()) {
    if (value->producer != nullptr) value->type.reset();
  }
  infer_shapes(bare);
  std::map<std::string, onnx::ElementType> types;
  for (const onnx::Value* output : bare.graph().outputs()) {
    if (output->type) types.emplace(output->name, *output->type);
  }
  return types;
}

/// Returns the largest number that all inputs can represent: 65504 if an input is f16, otherwise the largest number of
/// f32.
double largest_number(const onnx::Model& model) {
  double largest = std::numeric_limits<float>::max();
  for (const onnx::Value* input : model.graph().inputs()) {
    if (input->type == onnx::ElementType::f16) largest = 65504;
  }
  return largest;
}

std::int64_t largest_count(const Shapes& shapes) {
  std::int64_t largest = 0;
  for (const auto& [name, dims] : shapes) {
    std::int64_t count = 1;
    for (const std::int64_t dim : dims) {
      if (__builtin_mul_overflow(count, dim, &count)) return std::numeric_limits<std::int64_t>::max();
    }
    largest = std::max(largest, count);
  }
  return largest;
}

/// Returns a clause that names the input that needs more memory than a proof may use, even if all dynamic dimensions
/// are 1, or an empty string. A file of a few bytes may declare any sizes.
std::string too_large(const onnx::Model& model, std::int64_t max_elements) {
  constexpr std::int64_t times_at_most = 256;
  InputOptions ones;
  for (const std::string& symbol : symbols_of_inputs(model)) ones.dims[symbol] = 1;
  std::int64_t left = 0;
  if (__builtin_mul_overflow(max_elements, times_at_most, &left)) return "";
  for (const auto& [name, dims] : input_shapes(model, ones)) {
    const std::int64_t count = largest_count({{name, dims}});
    if (count > left) return fmt::format("its inputs are too large to be run: '{}' [{}]", name, fmt::join(dims, ", "));
    left -= count;
  }
  return "";
}

/// Returns whether an input dimension that is an expression of symbols, such as the size after a pool, has a size from
/// `lowest` to 2 in `shapes`. A normalization over two similar elements returns little more than rounding errors.
bool has_tiny_derived_size(const onnx::Model& model, const Shapes& shapes, std::int64_t lowest = 0) {
  for (const onnx::Value* input : model.graph().inputs()) {
    const auto found = shapes.find(input->name);
    if (found == shapes.end() || !input->shape) continue;
    for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
      const Dim::Kind kind = (*input->shape)[axis].kind();
      const bool derived = kind != Dim::Kind::constant && kind != Dim::Kind::symbol;
      if (derived && found->second[axis] >= lowest && found->second[axis] < 3) return true;
    }
  }
  return false;
}

// ---- Large fixed sizes

constexpr std::string_view opened_prefix = "fixed ";
constexpr std::int64_t smallest_opened = 9;
constexpr std::int64_t few_elements = 1 << 14;  ///< Up to this number of elements, runs take about the same time.

void add_numbers(const onnx::TensorData& tensor, std::set<std::int64_t>& numbers) {
  numbers.insert(tensor.dims.begin(), tensor.dims.end());
  if (!is_integer(tensor.type) || tensor.element_count() > few_elements) return;
  if (const auto values = tensor.ints()) numbers.insert(values->begin(), values->end());
}

/// Adds all integers in the constants and attributes of a model to `numbers`. An input size that equals one of them may
/// depend on it.
void add_numbers(const onnx::Model& model, std::set<std::int64_t>& numbers) {
  const auto add_constants = [&](const onnx::Graph& graph) {
    for (const onnx::Value* value : graph.initializers()) add_numbers(*value->initializer, numbers);
  };
  add_constants(model.graph());
  model.graph().for_each_node([&](const onnx::Node& node) {
    for (const onnx::Graph* inner : node.subgraphs()) add_constants(*inner);
    for (const auto& [name, attribute] : node.attributes) {
      if (const auto* number = attribute.get<std::int64_t>()) numbers.insert(*number);
      if (const auto* list = attribute.get<std::vector<std::int64_t>>()) numbers.insert(list->begin(), list->end());
      if (const auto* tensor = attribute.get<onnx::TensorData>()) add_numbers(*tensor, numbers);
    }
  });
}

/// Returns whether an input that with_open_sizes() made dynamic is so large that each run takes long.
bool opens_large_input(const onnx::Model& before, const onnx::Model& opened) {
  const auto& inputs = before.graph().inputs();
  return std::any_of(inputs.begin(), inputs.end(), [&](const onnx::Value* input) {
    std::int64_t count = 1;
    for (const Dim& dim : *input->shape) {
      if (dim.is_constant() && __builtin_mul_overflow(count, dim.value(), &count)) {
        count = std::numeric_limits<std::int64_t>::max();
        break;
      }
    }
    return count > few_elements && *opened.graph().find_local(input->name)->shape != *input->shape;
  });
}

}  // namespace

std::optional<OpenSizes> with_open_sizes(const onnx::Model& before, const onnx::Model& after) {
  std::set<std::int64_t> bound;
  add_numbers(before, bound);
  add_numbers(after, bound);
  std::map<std::string, Shape, std::less<>> shapes;
  std::map<std::int64_t, Dim> symbols;
  for (const onnx::Value* input : before.graph().inputs()) {
    if (!input->shape) return std::nullopt;
    Shape shape;
    for (const Dim& dim : *input->shape) {
      if (dim.is_constant() && dim.value() >= smallest_opened && !bound.contains(dim.value())) {
        const std::string name = fmt::format("{}{}", opened_prefix, symbols.size());
        shape.push_back(symbols.try_emplace(dim.value(), Dim::symbol(name)).first->second);
      } else {
        shape.push_back(dim);
      }
    }
    shapes.emplace(input->name, std::move(shape));
  }
  if (symbols.empty()) return std::nullopt;
  OpenSizes opened{.before = before.clone(), .after = after.clone(), .symbols = {}};
  for (const auto& [size, symbol] : symbols) opened.symbols.push_back(symbol.name());
  constexpr std::int64_t to_the_end = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t number : bound) {
    if (std::abs(number) < to_the_end) opened.largest_named = std::max(opened.largest_named, std::abs(number));
  }
  try {
    for (onnx::Model* model : {&opened.before, &opened.after}) {
      for (onnx::Value* input : model->graph().inputs()) input->shape = shapes.at(input->name);
      infer_shapes(*model, shapes);
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return opened;
}

namespace {

/// Returns the sets of input shapes to try: symbols with different small sizes, with larger different sizes, all 4, and
/// all 1. Sets in which an input has more than `max_elements` elements are omitted, unless none would remain. Symbols
/// that replace fixed sizes of the file begin with larger sizes, because the borders and windows of the network need
/// them.
std::vector<Shapes> shapes_to_try(const onnx::Model& model, std::int64_t max_elements) {
  const std::vector<std::string> symbols = symbols_of_inputs(model);
  constexpr std::array<std::int64_t, 8> different{2, 3, 5, 7, 4, 6, 9, 8};
  constexpr std::array<std::int64_t, 8> different_opened{6, 7, 9, 11, 10, 12, 13, 8};
  constexpr std::array<std::int64_t, 8> larger{3, 17, 19, 13, 11, 16, 15, 14};
  const auto fixed = [](std::int64_t size) { return [size](std::size_t) { return size; }; };
  const std::vector<std::function<std::int64_t(std::size_t)>> ways{
      [&](std::size_t i) { return different[i % different.size()]; },
      [&](std::size_t i) { return larger[i % larger.size()]; }, fixed(4), fixed(1)};
  std::vector<Shapes> result;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    InputOptions options;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      const bool opened = way == 0 && symbols[i].starts_with(opened_prefix);
      options.dims[symbols[i]] = opened ? different_opened[i % different_opened.size()] : ways[way](i);
    }
    Shapes shapes = input_shapes(model, options);
    for (int doubled = 0; way < 2 && doubled < 3 && has_tiny_derived_size(model, shapes); ++doubled) {
      for (auto& [name, size] : options.dims) size *= 2;
      shapes = input_shapes(model, options);
    }
    const bool last = way + 1 == ways.size();
    // A large region whose dimensions are all 1 proves little, so different sizes are tried as far as memory allows.
    constexpr std::int64_t at_most = 16;
    const bool needed = result.empty() && (last || (way == 0 && largest_count(shapes) / at_most <= max_elements));
    if (largest_count(shapes) > max_elements && !needed) continue;
    if (std::find(result.begin(), result.end(), shapes) == result.end()) result.push_back(std::move(shapes));
  }
  return result;
}

/// Returns sets of input shapes in each of which one symbol is 1 and all others are 4. Only such sizes broadcast an
/// input against the others.
std::vector<Shapes> shapes_that_broadcast(const onnx::Model& model, std::int64_t max_elements) {
  constexpr std::size_t most = 4;
  std::vector<std::string> symbols = symbols_of_inputs(model);
  const std::vector<std::string> all = symbols;
  std::erase_if(symbols, [](const std::string& symbol) { return symbol.starts_with(opened_prefix); });
  std::vector<Shapes> result;
  if (all.size() < 2) return result;
  for (std::size_t i = 0; i < std::min(symbols.size(), most); ++i) {
    InputOptions options;
    for (const std::string& symbol : all) options.dims[symbol] = symbol == symbols[i] ? 1 : 4;
    Shapes shapes = input_shapes(model, options);
    if (largest_count(shapes) > max_elements || has_tiny_derived_size(model, shapes, 2)) continue;
    result.push_back(std::move(shapes));
  }
  return result;
}

/// Returns sets of input shapes in which an axis of an input in `emptied` has size 0. All symbols that need not be 0
/// for that are 3.
std::vector<Shapes> shapes_without_elements(const onnx::Model& model, const std::vector<std::string>& emptied) {
  constexpr std::int64_t others = 3;
  const std::vector<std::string> all = symbols_of_inputs(model);
  std::vector<Shapes> result;
  const auto add = [&](const Dim& dim, const std::set<std::string, std::less<>>& zeros) {
    const auto size = [&](const std::string& symbol) -> std::optional<std::int64_t> {
      return zeros.contains(symbol) ? 0 : others;
    };
    if (zeros.empty() || dim.evaluate(size) != 0) return;
    InputOptions options;
    for (const std::string& symbol : all) options.dims[symbol] = *size(symbol);
    Shapes shapes;
    try {
      shapes = input_shapes(model, options);
    } catch (const Error&) {
      return;  // A size of another input would be negative.
    }
    if (std::find(result.begin(), result.end(), shapes) == result.end()) result.push_back(std::move(shapes));
  };
  for (const std::string& name : emptied) {
    const onnx::Value* input = model.graph().find_local(name);
    if (input == nullptr || !input->shape) continue;
    for (const Dim& dim : *input->shape) {
      const std::set<std::string, std::less<>> symbols = symbols_of(dim);
      add(dim, symbols);
      for (const std::string& symbol : symbols) add(dim, {symbol});
    }
  }
  return result;
}

template <class Values>
std::set<std::string> names_of(const Values& values) {
  std::set<std::string> names;
  for (const onnx::Value* value : values) names.insert(value->name);
  return names;
}

void check_same_names(const onnx::Model& before, const onnx::Model& after) {
  const auto check = [&](const char* what, const std::set<std::string>& left, const std::set<std::string>& right) {
    if (left == right) return;
    throw Error(Error::Kind::internal, fmt::format("a region and its rewrite have different {}: {} against {}", what,
                                                   fmt::join(left, ", "), fmt::join(right, ", ")));
  };
  check("inputs", names_of(before.graph().inputs()), names_of(after.graph().inputs()));
  check("outputs", names_of(before.graph().outputs()), names_of(after.graph().outputs()));
}

bool has_operators(const onnx::Model& model) {
  bool found = false;
  model.graph().for_each_node([&](const onnx::Node& node) { found = found || find_operator_for(node); });
  return found;
}

/// Returns whether f16 or bf16 tensors inside the model are inputs of arithmetic. The original computes them in f32,
/// and Graft's kernels must do so too, because each further node would amplify their rounding errors. If the model has
/// a single operator, only its outputs are rounded, as the original's are, and its kernel is tested in the type in
/// which it will run.
bool narrow_inside(const onnx::Model& model) {
  onnx::Model inferred = model.clone();
  infer_shapes(inferred);
  bool found = false;
  std::as_const(inferred.graph()).for_each_node([&](const onnx::Node& node) {
    for (const onnx::Value* output : node.outputs) {
      if (output == nullptr || !onnx::is_low_precision(output->type) || output->constant()) continue;
      found = found || std::any_of(output->uses.begin(), output->uses.end(), [](const auto& use) {
                return !has_trait(*use.node, onnx::trait::moves_data | onnx::trait::reads_shape);
              });
    }
  });
  return found;
}

struct Candidate {
  std::unique_ptr<runtime::CompiledModel> model;
  std::string how;
};

class Proof {
 public:
  Proof(const runtime::Engine& engine, const onnx::Model& before, const onnx::Model& after, const ProofOptions& options)
      : engine_(engine),
        before_(before),
        after_(after),
        options_(options),
        noisy_(std::in_place, engine, before, runtime::CompileOptions{}) {
    if (const runtime::Engine* second = engine.second()) {
      second_noisy_.emplace(*second, before, runtime::CompileOptions{}, F64Noise::of_f32);
    }
  }

  /// Runs all trials and returns the verdict. `fixed` are input shapes that are tried after all others; it may be null.
  ProofResult run(const Shapes* fixed = nullptr) {
    check_same_names(before_, after_);
    try {
      reference_ = engine_.compile(before_);
    } catch (const Error& refused) {
      return not_proven(fmt::format("the original cannot be run: {}", refused.what()));
    }
    try {
      const bool own = has_operators(after_);
      candidates_.push_back({engine_.compile(after_), own ? " (operators as functions)" : ""});
      if (own) {
        const bool in_f32 = narrow_inside(after_);
        const auto kernels = in_f32 ? runtime::OperatorKernels::own_in_f32 : runtime::OperatorKernels::own;
        candidates_.push_back({engine_.compile(after_, {.kernels = kernels, .extra_outputs = {}, .threads = 0}),
                               in_f32 ? " (operators' own kernels, in f32)" : " (operators' own kernels)"});
      }
    } catch (const Error& refused) {
      return not_proven(fmt::format("the rewrite cannot be run: {}", refused.what()));
    }
    if (std::string why = type_difference(); !why.empty()) return not_proven(std::move(why));
    choices_ = numbers_of(before_);
    const std::vector<double> more = numbers_of(after_);
    choices_.insert(choices_.end(), more.begin(), more.end());
    std::erase_if(choices_, [&](double number) { return number * number > largest_number(before_); });
    any_integers_ = inputs_of_any_integers(before_);
    tries_infinities_ = is_element_by_element(before_) || holds("IsInf");
    tries_nan_ = holds("IsNaN") || holds("IsInf");
    const std::vector<Shapes> tried = shapes_to_try(before_, options_.max_elements);
    const std::span<const Numbers> small = options_.small_values ? small_numbers : std::span<const Numbers>();
    if (options_.spot_check) {
      for (std::size_t i = 0; i < tried.size() && result_.trials == 0; ++i) {
        if (!agree_with(tried[i], small.empty() ? numbers_for_spot_check : small)) return std::move(result_);
      }
      if (result_.trials != 0) return proven();
    }
    for (const Shapes& shapes : tried) {
      if (!agree_with(shapes, small.empty() ? all_numbers : small)) return std::move(result_);
    }
    for (const Shapes& shapes : shapes_that_broadcast(before_, options_.max_elements)) {
      if (!agree_with(shapes, small.empty() ? numbers_for_broadcasting : small)) return std::move(result_);
    }
    if (result_.trials == 0)
      return not_proven(fmt::format("the original runs with none of the sizes that were tried: {}", refusal_));
    if (!options_.emptied.empty()) {
      const std::size_t before = result_.trials;
      for (const Shapes& shapes : shapes_without_elements(before_, options_.emptied)) {
        if (!agree_with(shapes, numbers_for_broadcasting)) return std::move(result_);
      }
      result_.without_elements = result_.trials - before;
      if (result_.without_elements == 0) {
        return not_proven(fmt::format("the original was not run where '{}' has no elements{}{}",
                                      fmt::join(options_.emptied, "', '"), refusal_.empty() ? "" : ": ", refusal_));
      }
    }
    if (fixed != nullptr) {
      if (const std::string why = runtime::refusal_of(*reference_, *fixed); !why.empty()) {
        ProofResult result = proven();
        if (result.proven) result.text += fmt::format("; the sizes of the file were not run: {}", why);
        return result;
      }
      const std::size_t before = result_.trials;
      if (!agree_with(*fixed, std::span(&one_run, 1))) return std::move(result_);
      if (result_.trials == before)
        return not_proven(fmt::format("the original does not run with its sizes: {}", refusal_));
    }
    return proven();
  }

 private:
  ProofResult proven() {
    for (const onnx::Value* output : before_.graph().outputs()) {
      const Evidence& evidence = evidence_[output->name];
      if (evidence.is_enough() || (is_declared_empty(*output) && !evidence.has_elements)) continue;
      result_.output = output->name;
      const char* why = evidence.is_in_noise
                            ? "rounding alone changes the original as much as the rewrite does, wherever the two differ"
                            : "the output has no finite value";
      return not_proven(
          fmt::format("output '{}' proves nothing, because in {} runs {}", output->name, result_.trials, why));
    }
    result_.proven = true;
    result_.text = fmt::format("{} runs, {}", result_.trials, difference_text(result_.worst));
    if (result_.without_elements != 0) {
      result_.text += fmt::format("; '{}' has no elements in {} of them", fmt::join(options_.emptied, "', '"),
                                  result_.without_elements);
    }
    if (result_.within_noise != 0) {
      result_.text +=
          fmt::format("; {} of the runs are within the rounding noise of the original, on badly conditioned inputs",
                      result_.within_noise);
    }
    return std::move(result_);
  }

  bool holds(std::string_view op_type) const {
    bool found = false;
    for (const onnx::Model* model : {&before_, &after_})
      model->graph().for_each_node([&](const onnx::Node& node) { found = found || node.is(op_type); });
    return found;
  }

  std::string type_difference() const {
    const auto before = inferred_types(before_);
    for (const auto& [name, type] : inferred_types(after_)) {
      const auto known = before.find(name);
      if (known == before.end() || known->second == type) continue;
      return fmt::format("output '{}' becomes {}; it was {}", name, to_string(type), to_string(known->second));
    }
    return "";
  }

  /// Returns whether original and rewrite agree for these input shapes and kinds of values. Also returns true, and
  /// counts a skipped trial, if the original refuses the shapes because they are inconsistent.
  bool agree_with(const Shapes& shapes, std::span<const Numbers> trials) {
    if (std::string why = runtime::refusal_of(*reference_, shapes); !why.empty()) {
      refusal_ = std::move(why);
      ++result_.skipped;
      return true;
    }
    bool has_run = false;
    for (const Numbers& numbers : trials) {
      // If inner values overflow their type, the original's result depends on the runtime and proves nothing.
      if (numbers.scale * numbers.scale > largest_number(before_)) continue;
      const bool infinities_show = tries_infinities_ && largest_number(before_) > huge;
      if (numbers.values == InputValues::infinite && !infinities_show) continue;
      if (numbers.values == InputValues::nan && !tries_nan_) continue;
      const std::size_t seeds = numbers.every_seed ? std::max<std::size_t>(options_.seeds, 1) : 1;
      for (std::uint64_t seed = options_.seed; seed < options_.seed + seeds; ++seed) {
        const runtime::TensorMap inputs = make_inputs(before_, {.seed = seed,
                                                                .values = numbers.values,
                                                                .scale = numbers.scale,
                                                                .wide_integers = any_integers_,
                                                                .choices = choices_,
                                                                .dims = {},
                                                                .shapes = shapes});
        runtime::TensorMap expected;
        try {
          expected = reference_->run(inputs);
        } catch (const Error& refused) {
          refusal_ = refused.what();
          ++result_.skipped;
          if (!has_run) return true;
          continue;  // Only these values are refused.
        }
        has_run = true;
        const bool only_finite = numbers.values == InputValues::infinite || numbers.values == InputValues::nan;
        const std::string where = fmt::format("{}, {}, seed {}", text_of(shapes), text_of(numbers), seed);
        for (Candidate& candidate : candidates_) {
          if (!agrees(candidate, inputs, expected, where, only_finite)) return false;
        }
      }
    }
    return true;
  }

  ProofResult not_proven(std::string why) {
    result_.proven = false;
    result_.text = std::move(why);
    return std::move(result_);
  }

  /// Returns the absolute rounding error of an output that is a mean, one epsilon of the largest input, or 0 for other
  /// outputs. A mean of values of both signs is far smaller than the values, but its rounding error is not. Measured
  /// with 65,536 normally distributed values: 3.2e-8 between two orders of summation, for means down to 5e-4.
  static double rounding_of_mean(const onnx::Value* value, const runtime::TensorMap& inputs) {
    const onnx::Value* source = value == nullptr ? nullptr : mean_of(*value);
    const auto input = source == nullptr ? inputs.end() : inputs.find(source->name);
    return input == inputs.end() ? 0 : std::ldexp(largest_finite(input->second), -23);
  }

  bool agrees(Candidate& candidate, const runtime::TensorMap& inputs, const runtime::TensorMap& expected,
              const std::string& where, bool only_finite) {
    runtime::TensorMap found;
    try {
      found = candidate.model->run(inputs);
    } catch (const Error& refused) {
      result_.text =
          fmt::format("with {}{} the original runs and the rewrite does not: {}", where, candidate.how, refused.what());
      return false;
    }
    ++result_.trials;
    std::map<std::string, ComparedOutput> compared;
    for (const auto& [name, reference] : expected) {
      if (only_finite) forgive_where_not_finite(reference, found.at(name));
      if (reference.same_as(found.at(name)) && !result_.output.empty()) {
        evidence_[name].add(reference);
        continue;
      }
      compared.emplace(name, compare_output(name, reference, found.at(name), inputs));
    }
    if (!options_.tolerance) judge_by_floors(compared, inputs, expected, found);
    bool is_within_noise = false;
    for (auto& [name, output] : compared) {
      const onnx::TensorData& reference = expected.at(name);
      Difference& difference = output.difference;
      if (output.has_steps && difference.equal()) check_steps(reference, found.at(name), difference);
      if (!difference.equal()) {
        result_.output = name;
        result_.text =
            fmt::format("output '{}' with {}{}: {}", name, where, candidate.how, difference_text(difference));
        result_.worst = std::move(difference);
        return false;
      }
      Evidence& evidence = evidence_[name];
      is_within_noise = is_within_noise || difference.within_noise > 0;
      evidence.is_in_noise = evidence.is_in_noise || difference.within_noise > 0;
      if (is_lost_in_noise(difference, output.floor)) {
        evidence.has_lost = true;
      } else if (2 * difference.within_noise <= difference.count) {
        evidence.add(reference);
      }
      if (result_.output.empty() || difference.excess > result_.worst.excess) {
        result_.output = name;
        result_.worst = std::move(difference);
      }
    }
    if (is_within_noise) ++result_.within_noise;
    return true;
  }

  /// The result of comparing one output of the original and of the rewrite in one trial.
  struct ComparedOutput {
    Tolerance tolerance;
    Difference difference;
    std::optional<NoiseFloor> floor;
    bool has_steps = false;  ///< Whether the elements are 8-bit integers that come from rounding real numbers.
  };

  /// The results of all trials so far for one output, from which is_enough() decides whether they prove the output.
  struct Evidence {
    bool has_elements = false;
    bool has_finite = false;   ///< Whether most of the output was within the tolerance in a trial with a finite number.
    bool has_nonzero = false;  ///< Whether such a trial had a finite number other than 0.
    bool is_in_noise = false;  ///< Whether only the noise floor explained a difference in a trial.
    bool has_lost = false;     ///< Whether only an unreliable noise floor explained a difference in a trial.

    /// Adds the reference's output of a trial in which most of its elements were within the tolerance.
    void add(const onnx::TensorData& reference) {
      has_elements = has_elements || reference.element_count() > 0;
      if (has_nonzero) return;
      const auto numbers = reference.numbers();
      if (!numbers) {
        has_finite = has_nonzero = has_finite || reference.element_count() > 0;
        return;
      }
      for (const double number : *numbers) {
        has_finite = has_finite || std::isfinite(number);
        has_nonzero = has_nonzero || (std::isfinite(number) && number != 0);
      }
    }

    /// Returns whether the trials prove the output: it had finite elements within the tolerance. If the output was lost
    /// in noise in another trial, at least one of these elements must be other than 0, because inputs of 0 often give 0
    /// whatever is computed.
    [[nodiscard]] bool is_enough() const { return has_lost ? has_nonzero : has_finite; }
  };

  [[nodiscard]] ComparedOutput compare_output(const std::string& name, const onnx::TensorData& reference,
                                              const onnx::TensorData& other, const runtime::TensorMap& inputs) const {
    ComparedOutput output;
    if (reference.type != other.type) {
      output.difference.incomparable = fmt::format("element types differ: {} in the reference, {} in the candidate",
                                                   to_string(reference.type), to_string(other.type));
      return output;
    }
    const onnx::Value* value = before_.graph().find_local(name);
    const bool quantized = value != nullptr && is_quantized(*value);
    output.tolerance = options_.tolerance.value_or(rewrite_tolerance(reference.type, quantized));
    output.tolerance.absolute += rounding_of_mean(value, inputs);
    output.difference = compare(reference, other, output.tolerance);
    output.has_steps = quantized && !is_floating_point(reference.type) && !options_.tolerance;
    return output;
  }

  /// Judges the outputs in `compared` that exceed their tolerance by the noise floor: how much rounding alone changes
  /// the original on these inputs.
  void judge_by_floors(std::map<std::string, ComparedOutput>& compared, const runtime::TensorMap& inputs,
                       const runtime::TensorMap& expected, const runtime::TensorMap& found) {
    std::vector<DoubtfulTensor> doubtful;
    std::map<std::string, Difference> before;
    for (auto& [name, output] : compared) {
      if (output.difference.equal() || expected.at(name).type != found.at(name).type) continue;
      before.emplace(name, output.difference);
      const onnx::Value* value = before_.graph().find_local(name);
      doubtful.push_back({.name = name,
                          .reference = &expected.at(name),
                          .candidate = &found.at(name),
                          .tolerance = output.tolerance,
                          .difference = &output.difference,
                          .floor = &output.floor,
                          .is_of_f64 = value != nullptr && depends_on_f64(*value)});
    }
    const runtime::Engine* second = engine_.second();
    judge_by_noise(doubtful, draws_of(noisy_, inputs), draws_of(second_noisy_, inputs),
                   second == nullptr ? "" : second->name());
    for (auto& [name, difference] : before) {
      // A comparison without regard to order proves nothing.
      if (compared.at(name).difference.selection) compared.at(name).difference = std::move(difference);
    }
  }

  /// Fails the proof if 8-bit integers that result from rounding differ too often: if more than an eighth of at least
  /// 32 of them differ by a step, replaces `difference` by that of an exact comparison. Different rounding changes only
  /// values close to the middle between two steps, which are rare.
  static void check_steps(const onnx::TensorData& reference, const onnx::TensorData& other, Difference& difference) {
    constexpr std::int64_t enough = 32;
    constexpr std::int64_t share = 8;
    const Difference exact = compare(reference, other, {});
    if (exact.count >= enough && exact.mismatched * share > exact.count) difference = exact;
  }

  const runtime::Engine& engine_;
  const onnx::Model& before_;
  const onnx::Model& after_;
  const ProofOptions& options_;
  std::vector<double> choices_;
  std::set<std::string, std::less<>> any_integers_;
  bool tries_infinities_ = false;
  bool tries_nan_ = false;
  std::unique_ptr<runtime::CompiledModel> reference_;
  std::optional<NoisyModel> noisy_;
  std::optional<NoisyModel> second_noisy_;
  std::vector<Candidate> candidates_;
  std::map<std::string, Evidence> evidence_;  ///< The evidence by output.
  std::string refusal_;
  ProofResult result_;
};

}  // namespace

namespace {

ProofResult measure(const runtime::Engine& engine, const onnx::Model& before, const onnx::Model& after,
                    const ProofOptions& options) {
  check_same_names(before, after);
  ProofResult result;
  result.text = too_large(before, options.max_elements);
  if (!result.text.empty()) return result;
  std::string refusal;
  const auto compute = [&](const char* which, const onnx::Model& model, const runtime::TensorMap& inputs) {
    try {
      return engine.compile(model)->run(inputs);
    } catch (const Error& refused) {
      throw Error(fmt::format("{} cannot be run: {}", which, refused.what()));
    }
  };
  for (const Shapes& shapes : shapes_to_try(before, options.max_elements)) {
    const runtime::TensorMap inputs = make_inputs(
        before, {.seed = options.seed, .values = InputValues::normal, .scale = 1, .dims = {}, .shapes = shapes});
    runtime::TensorMap expected;
    try {
      expected = compute("the original", before, inputs);
    } catch (const Error& refused) {
      ++result.skipped;
      refusal = refused.what();
      continue;
    }
    runtime::TensorMap found;
    try {
      found = compute("the rewrite", after, inputs);
    } catch (const Error& refused) {
      result.text = refused.what();
      return result;
    }
    ++result.trials;
    for (const auto& [name, reference] : expected) {
      Difference difference = compare(reference, found.at(name), {});
      if (result.output.empty() || difference.max_absolute >= result.worst.max_absolute) {
        result.output = name;
        result.worst = std::move(difference);
      }
    }
  }
  if (result.trials == 0) {
    result.text = refusal;
    return result;
  }
  result.proven = true;
  const Difference& worst = result.worst;
  if (!worst.incomparable.empty()) {
    result.text = fmt::format("the result changes, as requested: {}", worst.incomparable);
  } else {
    result.text = fmt::format("the result changes, as requested; {} runs, largest difference {:.2g}{}", result.trials,
                              worst.max_absolute, worst.cosine ? fmt::format(", cosine {:.6f}", *worst.cosine) : "");
  }
  return result;
}

ProofResult prove_with(const runtime::Engine& engine, const onnx::Model& before, const onnx::Model& after,
                       const ProofOptions& options) {
  std::string why = too_large(before, options.max_elements);
  for (const onnx::Model* model : {&before, &after}) {
    const std::string node = random_node_of_outputs(*model);
    if (!node.empty()) why = fmt::format("{} draws new random numbers in each run, so no run is a proof", node);
  }
  if (!why.empty()) {
    check_same_names(before, after);
    ProofResult refused;
    refused.text = std::move(why);
    return refused;
  }
  const auto opened = with_open_sizes(before, after);
  if (opened && opens_large_input(before, opened->before)) {
    InputOptions ones;
    for (const std::string& symbol : symbols_of_inputs(before)) ones.dims[symbol] = 1;
    const Shapes fixed = input_shapes(before, ones);
    ProofResult result = Proof(engine, opened->before, opened->after, options).run(&fixed);
    // A rewrite that fails for smaller sizes may still be valid for the fixed sizes, which are the only ones that
    // matter.
    if (result.proven) return result;
  }
  return Proof(engine, before, after, options).run();
}

template <class Prove>
ProofResult not_proven_where_disputed(const Prove& prove) {
  try {
    return prove();
  } catch (const Disputed& disputed) {
    ProofResult result;
    result.text = disputed.what();
    result.dispute = disputed.dispute();
    return result;
  }
}

}  // namespace

ProofResult measure_region(const runtime::Engine& engine, const onnx::Model& before, const onnx::Model& after,
                           const ProofOptions& options) {
  return not_proven_where_disputed([&] { return measure(engine, before, after, options); });
}

ProofResult prove_region(const runtime::Engine& engine, const onnx::Model& before, const onnx::Model& after,
                         const ProofOptions& options) {
  // In OpenVINO 2026.4.1, an If whose branch returns a constant without elements returns one element.
  const runtime::Engine* second = options.emptied.empty() ? nullptr : engine.second();
  if (second != nullptr) {
    return not_proven_where_disputed([&] { return prove_with(*second, before, after, options); });
  }
  ProofResult result = not_proven_where_disputed([&] { return prove_with(engine, before, after, options); });
  const bool found_difference = !result.proven && !result.dispute && result.trials != 0;
  const runtime::Engine* checked = found_difference ? engine.checked() : nullptr;
  if (checked == nullptr || checked == &engine) return result;
  ProofResult again = not_proven_where_disputed([&] { return prove_with(*checked, before, after, options); });
  return again.dispute ? std::move(again) : std::move(result);
}

}  // namespace graft::verify
