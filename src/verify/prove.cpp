// The trials of a proof: sizes x numbers x ways to calculate Graft's operators.
#include "verify/prove.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <vector>

#include "adapters/openvino/cpu_engine.hpp"
#include "graph/operator_node.hpp"
#include "verify/inputs.hpp"

namespace graft {
namespace {

using Shapes = std::map<std::string, std::vector<std::int64_t>, std::less<>>;

struct Numbers {
  InputValues values;
  double scale;
  bool every_seed;
};

// The magnitudes find an epsilon that differs: what it changes shows only near its square root, or near itself.
constexpr std::array<Numbers, 12> all_numbers{{
    {InputValues::normal, 1, true},
    {InputValues::zeros, 1, false},
    {InputValues::ones, 1, false},
    {InputValues::negative, 1, false},
    {InputValues::normal, 1e-15, false},
    {InputValues::normal, 1e-9, false},
    {InputValues::normal, 1e-6, false},
    {InputValues::normal, 1e-4, false},
    {InputValues::normal, 1e-2, false},
    {InputValues::normal, 1e3, false},
    {InputValues::normal, 1e9, false},
    {InputValues::normal, 1e15, false},
}};

std::string text_of(const Numbers& numbers) {
  switch (numbers.values) {
    case InputValues::zeros: return "zeros";
    case InputValues::ones: return "ones";
    case InputValues::negative: return "negative numbers";
    case InputValues::normal: break;
  }
  return numbers.scale == 1 ? "normally distributed numbers"
                            : fmt::format("normally distributed numbers times {:g}", numbers.scale);
}

std::string text_of(const Shapes& shapes) {
  std::string text;
  for (const auto& [name, dims] : shapes)
    text += fmt::format("{}{}: [{}]", text.empty() ? "" : ", ", name, fmt::join(dims, ", "));
  return text;
}

/// Of the narrowest floating-point input.
double largest_number(const Model& model) {
  double largest = std::numeric_limits<float>::max();
  for (const Value* input : model.graph().inputs()) {
    if (input->type == ElementType::f16) largest = 65504;
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

/// Whether a size that follows from others, behind layers that shrink, is 1 or 2. What is normalised over two numbers
/// is rounding and little else wherever the two are close.
bool has_tiny_derived_size(const Model& model, const Shapes& shapes) {
  for (const Value* input : model.graph().inputs()) {
    const auto found = shapes.find(input->name);
    if (found == shapes.end() || !input->shape) continue;
    for (std::size_t axis = 0; axis < input->shape->size(); ++axis) {
      const Dim::Kind kind = (*input->shape)[axis].kind();
      const bool derived = kind != Dim::Kind::constant && kind != Dim::Kind::symbol;
      if (derived && found->second[axis] < 3) return true;
    }
  }
  return false;
}

/// All different, larger and different, all the same, all 1; without those that are too large, the smallest apart.
std::vector<Shapes> shapes_to_try(const Model& model, std::int64_t max_elements) {
  const std::vector<std::string> symbols = symbols_of_inputs(model);
  constexpr std::array<std::int64_t, 8> different{2, 3, 5, 7, 4, 6, 9, 8};
  constexpr std::array<std::int64_t, 8> larger{3, 17, 19, 13, 11, 16, 15, 14};
  const auto fixed = [](std::int64_t size) { return [size](std::size_t) { return size; }; };
  const std::vector<std::function<std::int64_t(std::size_t)>> ways{
      [&](std::size_t i) { return different[i % different.size()]; },
      [&](std::size_t i) { return larger[i % larger.size()]; }, fixed(4), fixed(1)};
  std::vector<Shapes> result;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    InputOptions options;
    for (std::size_t i = 0; i < symbols.size(); ++i) options.dims[symbols[i]] = ways[way](i);
    Shapes shapes = input_shapes(model, options);
    for (int doubled = 0; way < 2 && doubled < 3 && has_tiny_derived_size(model, shapes); ++doubled) {
      for (auto& [name, size] : options.dims) size *= 2;
      shapes = input_shapes(model, options);
    }
    const bool last = way + 1 == ways.size();
    if (largest_count(shapes) > max_elements && !(last && result.empty())) continue;
    if (std::find(result.begin(), result.end(), shapes) == result.end()) result.push_back(std::move(shapes));
  }
  return result;
}

template <class Values>
std::set<std::string> names_of(const Values& values) {
  std::set<std::string> names;
  for (const Value* value : values) names.insert(value->name);
  return names;
}

void check_same_names(const Model& before, const Model& after) {
  const auto check = [&](const char* what, const std::set<std::string>& left, const std::set<std::string>& right) {
    if (left == right) return;
    throw Error(Error::Kind::internal, fmt::format("a region and its rewrite have different {}: {} against {}", what,
                                                   fmt::join(left, ", "), fmt::join(right, ", ")));
  };
  check("inputs", names_of(before.graph().inputs()), names_of(after.graph().inputs()));
  check("outputs", names_of(before.graph().outputs()), names_of(after.graph().outputs()));
}

bool has_operators(const Model& model) {
  bool found = false;
  model.graph().for_each_node([&](const Node& node) { found = found || find_operator_for(node); });
  return found;
}

struct Candidate {
  CpuModel model;
  std::string how;
};

class Proof {
 public:
  Proof(const Model& before, const Model& after, const ProofOptions& options)
      : before_(before), after_(after), options_(options) {}

  ProofResult run() {
    check_same_names(before_, after_);
    try {
      reference_.emplace(before_);
    } catch (const Error& refused) {
      return not_proven(fmt::format("the original cannot be run: {}", refused.what()));
    }
    try {
      const bool own = has_operators(after_);
      candidates_.push_back({CpuModel(after_), own ? " (operators as functions)" : ""});
      if (own)
        candidates_.push_back({CpuModel(after_, {.kernels = OperatorKernels::own, .extra_outputs = {}, .threads = 0}),
                               " (operators' own kernels)"});
    } catch (const Error& refused) {
      return not_proven(fmt::format("the rewrite cannot be run: {}", refused.what()));
    }
    for (const Shapes& shapes : shapes_to_try(before_, options_.max_elements)) {
      if (!agree_with(shapes)) return std::move(result_);
    }
    if (result_.trials == 0)
      return not_proven(fmt::format("no sizes were found that the original runs with: {}", refusal_));
    result_.proven = true;
    result_.text = fmt::format("{} runs, {}", result_.trials, result_.worst.to_string());
    return std::move(result_);
  }

 private:
  /// True also for sizes that the original refuses: they do not fit together.
  bool agree_with(const Shapes& shapes) {
    for (const Numbers& numbers : all_numbers) {
      // Where inner values overflow their type, the original is what its runtime makes of that, and proves nothing.
      if (numbers.scale * numbers.scale > largest_number(before_)) continue;
      const std::size_t seeds = numbers.every_seed ? std::max<std::size_t>(options_.seeds, 1) : 1;
      for (std::uint64_t seed = options_.seed; seed < options_.seed + seeds; ++seed) {
        const TensorMap inputs = make_inputs(
            before_, {.seed = seed, .values = numbers.values, .scale = numbers.scale, .dims = {}, .shapes = shapes});
        TensorMap expected;
        try {
          expected = reference_->run(inputs);
        } catch (const Error& refused) {
          refusal_ = refused.what();
          ++result_.skipped;
          return true;
        }
        const std::string where = fmt::format("{}, {}, seed {}", text_of(shapes), text_of(numbers), seed);
        for (Candidate& candidate : candidates_) {
          if (!agrees(candidate, inputs, expected, where)) return false;
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

  bool agrees(Candidate& candidate, const TensorMap& inputs, const TensorMap& expected, const std::string& where) {
    TensorMap found;
    try {
      found = candidate.model.run(inputs);
    } catch (const Error& refused) {
      result_.text =
          fmt::format("with {}{} the original runs and the rewrite does not: {}", where, candidate.how, refused.what());
      return false;
    }
    ++result_.trials;
    for (const auto& [name, reference] : expected) {
      const TensorData& other = found.at(name);
      Difference difference;
      if (reference.type != other.type) {
        difference.incomparable =
            fmt::format("element types differ: {} against {}", to_string(reference.type), to_string(other.type));
      } else {
        const Value* value = before_.graph().find_local(name);
        const bool quantised = value != nullptr && is_quantised(*value);
        difference =
            compare(reference, other, options_.tolerance.value_or(Tolerance::of_rewrite(reference.type, quantised)));
      }
      if (!difference.equal()) {
        result_.output = name;
        result_.text = fmt::format("output '{}' with {}{}: {}", name, where, candidate.how, difference.to_string());
        result_.worst = std::move(difference);
        return false;
      }
      if (result_.output.empty() || difference.excess > result_.worst.excess) {
        result_.output = name;
        result_.worst = std::move(difference);
      }
    }
    return true;
  }

  const Model& before_;
  const Model& after_;
  const ProofOptions& options_;
  std::optional<CpuModel> reference_;
  std::vector<Candidate> candidates_;
  std::string refusal_;
  ProofResult result_;
};

}  // namespace

ProofResult prove_region(const Model& before, const Model& after, const ProofOptions& options) {
  return Proof(before, after, options).run();
}

}  // namespace graft
