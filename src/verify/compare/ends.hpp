// The inputs and outputs of two models: their pairs, and the tensors that are passed to the inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "onnx/model.hpp"
#include "runtime/engine.hpp"
#include "verify/compare/rearrangement.hpp"
#include "verify/inputs/inputs.hpp"

namespace graft::verify {

struct IoPair {
  const onnx::Value* reference;
  const onnx::Value* candidate;
};

/// Returns the inputs without a default.
[[nodiscard]] std::vector<const onnx::Value*> fed_inputs(const onnx::Model& model);
[[nodiscard]] std::vector<const onnx::Value*> all_outputs(const onnx::Model& model);

/// Pairs inputs or outputs by name, and the remaining ones by order if their counts are equal. Otherwise each
/// remaining one adds a problem: "the candidate has no output 'y'", where `what` is "output".
[[nodiscard]] std::vector<IoPair> pair_io(const std::vector<const onnx::Value*>& reference,
                                          const std::vector<const onnx::Value*>& candidate, const char* what,
                                          std::vector<std::string>& problems);

/// Returns the tensor converted to another type, or unchanged if one of the two types is not a real number type.
[[nodiscard]] onnx::TensorData in_type(const onnx::TensorData& tensor, std::optional<onnx::ElementType> type);

/// Returns whether a value can have these dimensions. The first dimension may differ from the declared one, because the
/// caller checks the batch.
[[nodiscard]] bool can_have(const onnx::Value& value, const std::vector<std::int64_t>& dims);

/// Returns the rearrangement that converts dimensions to those that an input declares, if only the position of the
/// channel axis differs; otherwise nothing.
[[nodiscard]] std::optional<Rearrangement> order_of_input(const onnx::Value& input,
                                                          const std::vector<std::int64_t>& dims);

/// Returns the tensor in the layout and type of the input.
[[nodiscard]] onnx::TensorData as_input(const onnx::Value& input, const onnx::TensorData& given);

/// Returns the rearrangement that converts an output of the reference to the candidate's dimensions, if only the
/// position of the channel axis differs; otherwise nothing.
[[nodiscard]] std::optional<Rearrangement> exchanged_output(const std::vector<std::int64_t>& reference,
                                                            const std::vector<std::int64_t>& candidate);

/// Returns the candidate's inputs for the `inputs` of the reference.
[[nodiscard]] runtime::TensorMap inputs_for(const std::vector<IoPair>& pairs, const runtime::TensorMap& inputs);

/// Returns the first dimension, the number of samples per run, if the model fixes it.
[[nodiscard]] std::optional<std::int64_t> fixed_batch(const onnx::Value& input);

/// Splits data into runs. If a model's batch is fixed and the first dimension of a tensor is a multiple of it, there is
/// one run for each part. A tensor with exactly the fixed batch is used in all runs. Otherwise there is one run.
/// `batches` contains the first dimensions that the models fix, by the name of the data. Throws Error, quoting the
/// option, if the number of samples is not a multiple of the batch, or if two tensors would lead to different numbers
/// of runs.
[[nodiscard]] std::vector<runtime::TensorMap> split_into_runs(
    const runtime::TensorMap& data, const std::map<std::string, std::int64_t, std::less<>>& batches,
    const std::string& option);
/// Splits data into runs by the fixed batches of one model's inputs.
[[nodiscard]] std::vector<runtime::TensorMap> split_into_runs(const runtime::TensorMap& data, const onnx::Model& model,
                                                              const std::string& option);

/// Generates synthetic inputs with which a model runs, and remembers the successful choices for later calls.
///
/// Networks with many strides need large images; small ones lead to empty tensors or are refused. Therefore sizes for
/// symbolic dimensions are tried from small to large, each also with a first dimension of 1. Then the sizes in
/// constants of the network are tried, because exporters may fix a batch or a length there that the inputs declare as
/// dynamic. Finally one named size is chosen differently from the other sizes: in a decoder with a cache, the mask is
/// longer than the past by the number of new tokens. Integers that become an index or a count (a mask whose sums are
/// positions) are tried from 0 to 3, then in narrower ranges. Integers from which sizes are computed are then set to
/// values that shape inference accepts. Large integers are not used if the model does not run with them.
class MadeUpInputs {
 public:
  /// Returns inputs with which the model runs, and stores its outputs in `expected`. `compiled` is `model`, compiled.
  /// Throws Error if the model does not run; if a size is dynamic, the message gives the next step.
  [[nodiscard]] runtime::TensorMap inputs(runtime::CompiledModel& compiled, const onnx::Model& model,
                                          const InputOptions& options, runtime::TensorMap& expected);

  /// Returns the inputs that needed a narrower range than the default for the model to run.
  [[nodiscard]] const InputRanges& narrowed() const { return narrowed_; }
  /// Returns `ranges`, with the narrower ranges in place of the original ones.
  [[nodiscard]] InputRanges narrowed(InputRanges ranges) const {
    for (const auto& [name, range] : narrowed_) ranges.insert_or_assign(name, range);
    return ranges;
  }
  /// Returns the inputs in InputOptions::large_integers that had large values in a run.
  [[nodiscard]] const std::set<std::string, std::less<>>& large_integers() const { return large_integers_; }
  /// Returns why the sizes differ from the default: "'net.onnx' runs with a first dimension of 1, not of 2: node 'view'
  /// (Reshape) has a constant shape"; empty if the default sizes worked. The values of inputs that determine sizes
  /// follow.
  [[nodiscard]] std::string why_sizes() const;

 private:
  struct Sizes {
    std::optional<std::int64_t> first;  ///< The first dimension; if empty, the first dimension in the options.
    std::int64_t size;
    const onnx::Node* holder;  ///< The node that contains the size as a constant; null for the default sizes.
    /// The symbol of a dimension that differs from the other symbols, with its size.
    std::optional<std::pair<std::string, std::int64_t>> other = std::nullopt;
  };
  struct Run {
    runtime::TensorMap inputs;
    runtime::TensorMap expected;
  };

  static void apply(const Sizes& sizes, InputOptions& options);
  /// Returns whether the model runs with these sizes, if necessary with narrower integer ranges.
  bool attempt(runtime::CompiledModel& compiled, const onnx::Model& model, InputOptions options, const Sizes& sizes,
               Run& run);
  /// Sets the next narrower range for integer inputs that have no range in `given`. Returns false if no range is left.
  [[nodiscard]] bool narrow(const onnx::Model& model, const InputRanges& given);
  [[nodiscard]] static std::string why(const onnx::Model& model, const InputOptions& options, const Sizes& sizes);

  std::optional<Sizes> chosen_;
  std::optional<Error> refusal_;   ///< The first error, with the default values and the smallest size.
  std::exception_ptr over_limit_;  ///< The first error if it is an OverLimit, otherwise null.
  std::size_t narrowings_ = 0;
  InputRanges narrowed_;
  std::set<std::string, std::less<>> large_integers_;
  bool refuses_large_ = false;  ///< Whether the model does not run with large integers.
  /// The index of the current candidate in the list of fitting sizes; past the end, no candidate is used.
  std::size_t fit_ = 0;
  bool searches_ = false;  ///< Whether the list of fitting sizes includes the results of search_fitting_sizes.
  std::string why_sizes_;
  std::string why_numbers_;
};

/// Returns whether the value declares a size of 0.
[[nodiscard]] bool is_declared_empty(const onnx::Value& value);

}  // namespace graft::verify
