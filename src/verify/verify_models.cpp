// Pairs the inputs and outputs of two models, runs both, and keeps the worst of each output.
#include "verify/verify_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace graft {
namespace {

struct Pair {
  const Value* reference;
  const Value* candidate;
};

std::vector<const Value*> fed(const Model& model) {
  std::vector<const Value*> inputs;
  for (const Value* value : model.graph().inputs()) {
    if (!value->initializer) inputs.push_back(value);
  }
  return inputs;
}

std::vector<const Value*> outputs_of(const Model& model) {
  return {model.graph().outputs().begin(), model.graph().outputs().end()};
}

/// By name; then, if as many are left on both sides, by order. What is left after that is a problem.
std::vector<Pair> pair_up(const std::vector<const Value*>& reference, const std::vector<const Value*>& candidate,
                          const char* what, std::vector<std::string>& problems) {
  std::vector<Pair> pairs;
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
  std::erase_if(pairs, [](const Pair& pair) { return pair.candidate == nullptr; });
  return pairs;
}

std::string declared_text(const Value& value) {
  return (value.type ? to_string(*value.type) : "unknown type ") +
         (value.shape ? to_string(*value.shape) : " of any shape");
}

bool can_be_the_same(const Value& reference, const Value& candidate) {
  if (reference.type != candidate.type) return false;
  if (!reference.shape || !candidate.shape) return true;
  if (reference.shape->size() != candidate.shape->size()) return false;
  for (std::size_t axis = 0; axis < reference.shape->size(); ++axis) {
    const Dim& left = (*reference.shape)[axis];
    const Dim& right = (*candidate.shape)[axis];
    if (left.is_constant() && right.is_constant() && !(left == right)) return false;
  }
  return true;
}

std::string text_of(const TensorData& tensor) {
  return fmt::format("{}[{}]", to_string(tensor.type), fmt::join(tensor.dims, ", "));
}

bool has_empty(const TensorMap& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const auto& entry) { return entry.second.element_count() == 0; });
}

class Verification {
 public:
  Verification(const Model& reference, const Model& candidate, const VerifyOptions& options)
      : reference_(reference), candidate_(candidate), options_(options) {}

  VerifyReport run() {
    inputs_ = pair_up(fed(reference_), fed(candidate_), "input", report_.problems);
    const std::vector<Pair> outputs =
        pair_up(outputs_of(reference_), outputs_of(candidate_), "output", report_.problems);
    const bool inputs_agree = check_inputs();
    for (const Pair& pair : outputs) {
      OutputReport& output = report_.outputs.emplace_back();
      output.reference_name = pair.reference->name;
      output.candidate_name = pair.candidate->name;
    }
    if (!inputs_agree) return std::move(report_);

    CpuModel reference(reference_,
                       {.kernels = options_.reference_kernels, .extra_outputs = {}, .threads = options_.threads});
    CpuModel candidate(candidate_,
                       {.kernels = options_.candidate_kernels, .extra_outputs = {}, .threads = options_.threads});
    const std::size_t total = options_.data.empty() ? options_.seeds : options_.data.size();
    for (std::size_t run = 0; run < total; ++run) {
      TensorMap inputs;
      TensorMap expected;
      if (options_.data.empty()) {
        run_made_up(reference, run, inputs, expected);
      } else {
        inputs = options_.data[run];
        expected = reference.run(inputs);
      }
      if (run == 0) {
        for (const Pair& pair : inputs_) {
          report_.inputs.push_back(
              fmt::format("{}: {}", pair.reference->name, text_of(inputs.at(pair.reference->name))));
        }
      }
      compare_run(run, expected, candidate.run(renamed(inputs)));
      report_.runs = run + 1;
      if (options_.progress) options_.progress(run + 1, total);
    }
    return std::move(report_);
  }

 private:
  bool check_inputs() {
    const std::size_t before = report_.problems.size();
    for (const Pair& pair : inputs_) {
      if (!can_be_the_same(*pair.reference, *pair.candidate)) {
        report_.problems.push_back(fmt::format("input '{}' is {} in the reference and {} in the candidate",
                                               pair.reference->name, declared_text(*pair.reference),
                                               declared_text(*pair.candidate)));
      }
    }
    return report_.problems.size() == before && inputs_.size() == fed(reference_).size() &&
           inputs_.size() == fed(candidate_).size();
  }

  /// Networks with many strides need large images; small ones make empty tensors, or are refused.
  void run_made_up(CpuModel& reference, std::size_t seed, TensorMap& inputs, TensorMap& expected) {
    constexpr std::array<std::int64_t, 4> sizes{16, 64, 224, 640};
    for (;; ++size_index_) {
      const bool last = size_index_ + 1 == sizes.size() || seed != 0 || symbols_of_inputs(reference_).empty();
      inputs = make_inputs(
          reference_, {.seed = seed, .dims = options_.dims, .shapes = options_.shapes, .size = sizes[size_index_]});
      try {
        expected = reference.run(inputs);
      } catch (const Error&) {
        if (last) throw;
        continue;
      }
      if (last || has_empty(inputs) || !has_empty(expected)) return;
    }
  }

  [[nodiscard]] TensorMap renamed(const TensorMap& inputs) const {
    TensorMap result;
    for (const Pair& pair : inputs_) {
      const auto found = inputs.find(pair.reference->name);
      if (found != inputs.end()) result[pair.candidate->name] = found->second;
    }
    return result;
  }

  [[nodiscard]] Tolerance tolerance_for(ElementType type, const std::string& output) const {
    if (!options_.relative && !options_.absolute) {
      const Value* value = reference_.graph().find_local(output);
      return Tolerance::of_network(type, value != nullptr && is_quantised(*value));
    }
    return {.relative = options_.relative.value_or(0), .absolute = options_.absolute.value_or(0), .of_largest = 0};
  }

  void compare_run(std::size_t run, const TensorMap& expected, const TensorMap& found) {
    for (OutputReport& output : report_.outputs) {
      const TensorData& reference = expected.at(output.reference_name);
      const TensorData& candidate = found.at(output.candidate_name);
      const Tolerance tolerance = tolerance_for(reference.type, output.reference_name);
      Difference difference = compare(reference, candidate, tolerance);
      if (reference.type != candidate.type && difference.incomparable.empty()) {
        difference.incomparable =
            fmt::format("element types differ: {} against {}", to_string(reference.type), to_string(candidate.type));
      }
      if (!difference.equal()) ++output.failed_runs;
      const bool worse = std::pair(difference.incomparable.empty() ? 0 : 1, difference.excess) >
                         std::pair(output.worst.incomparable.empty() ? 0 : 1, output.worst.excess);
      if (run == 0 || worse) {
        output.worst = std::move(difference);
        output.worst_run = run;
        output.tolerance = tolerance;
        output.reference_type = text_of(reference);
        output.candidate_type = text_of(candidate);
      }
    }
  }

  const Model& reference_;
  const Model& candidate_;
  const VerifyOptions& options_;
  std::vector<Pair> inputs_;
  std::size_t size_index_ = 0;
  VerifyReport report_;
};

}  // namespace

bool VerifyReport::equal() const {
  return runs > 0 && problems.empty() &&
         std::all_of(outputs.begin(), outputs.end(), [](const OutputReport& output) { return output.equal(); });
}

VerifyReport verify_models(const Model& reference, const Model& candidate, const VerifyOptions& options) {
  return Verification(reference, candidate, options).run();
}

}  // namespace graft
