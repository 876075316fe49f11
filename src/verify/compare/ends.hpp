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

/// Returns the inputs of the main graph that have no initializer as default value, in order.
[[nodiscard]] std::vector<const onnx::Value*> fed_inputs(const onnx::Model& model);
[[nodiscard]] std::vector<const onnx::Value*> all_outputs(const onnx::Model& model);

/// Pairs inputs or outputs of two models by name. Those without a partner are paired by order if both models have
/// equally many of them. Otherwise each of them adds a message such as "the candidate has no output 'y'" to `problems`.
/// `what` is "input" or "output".
[[nodiscard]] std::vector<IoPair> pair_io(const std::vector<const onnx::Value*>& reference,
                                          const std::vector<const onnx::Value*>& candidate, const char* what,
                                          std::vector<std::string>& problems);

/// Returns the tensor converted to `type`. Returns it unchanged if `type` is unknown, or if one of the types is not a
/// real number type.
[[nodiscard]] onnx::TensorData in_type(const onnx::TensorData& tensor, std::optional<onnx::ElementType> type);

/// Returns whether the declared shape of a value allows these dimensions. Does not compare the first dimension, which
/// may be a batch that the caller checks.
[[nodiscard]] bool can_have(const onnx::Value& value, const std::vector<std::int64_t>& dims);

/// Returns how to move the channel axis so that data of these dimensions fit an input, if only the position of the
/// channel axis differs; otherwise nothing.
[[nodiscard]] std::optional<Rearrangement> order_of_input(const onnx::Value& input,
                                                          const std::vector<std::int64_t>& dims);

/// Returns `given` transposed and converted to the layout (see order_of_input) and the type of the input.
[[nodiscard]] onnx::TensorData as_input(const onnx::Value& input, const onnx::TensorData& given);

/// Returns how to move the channel axis of the reference's output to get the candidate's dimensions, or nothing if the
/// position of the channel axis is not the only difference.
[[nodiscard]] std::optional<Rearrangement> exchanged_output(const std::vector<std::int64_t>& reference,
                                                            const std::vector<std::int64_t>& candidate);

/// Returns the inputs of the candidate, by the candidate's names and in its layouts and types, from the `inputs` of the
/// reference.
[[nodiscard]] runtime::TensorMap inputs_for(const std::vector<IoPair>& pairs, const runtime::TensorMap& inputs);

/// Returns the first dimension of an input, which is the number of samples per run, or nothing if it is dynamic.
[[nodiscard]] std::optional<std::int64_t> fixed_batch(const onnx::Value& input);

/// Splits data into runs. `batches` contains the fixed first dimension of inputs, by name. If the first dimension of a
/// tensor is a multiple of it, each run gets one part of the tensor; a tensor with exactly the fixed batch is used in
/// all runs. Without fixed batches there is one run. Throws Error, naming `option`, if the number of samples is not a
/// multiple of the batch, or if two tensors would lead to different numbers of runs.
[[nodiscard]] std::vector<runtime::TensorMap> split_into_runs(
    const runtime::TensorMap& data, const std::map<std::string, std::int64_t, std::less<>>& batches,
    const std::string& option);
/// Splits data into runs by the fixed batches of the model's inputs.
[[nodiscard]] std::vector<runtime::TensorMap> split_into_runs(const runtime::TensorMap& data, const onnx::Model& model,
                                                              const std::string& option);

/// Generates synthetic inputs with which a model runs, and remembers the successful choices for later calls.
///
/// For symbolic dimensions, sizes from small to large are tried, each also with a first dimension of 1: networks with
/// many strides refuse small images or return empty tensors. Then the sizes in constants of the network are tried,
/// because exporters may fix a batch or a length there that the inputs declare as dynamic. Finally one named size is
/// set differently from the others: in a decoder with a cache, the mask is longer than the past by the number of new
/// tokens. Integers that become an index or a count (such as a mask whose sums are positions) are tried from 0 to 3,
/// then in narrower ranges. Integers from which sizes are computed are then set to values that shape inference accepts.
/// Large integers are not used if the model does not run with them.
class MadeUpInputs {
 public:
  /// Returns inputs, by name, with which the model runs, and stores its outputs in `expected`. `compiled` must be
  /// `model`, compiled. Throws Error if the model does not run with any inputs; if a size is dynamic, the message says
  /// how to set it.
  [[nodiscard]] runtime::TensorMap inputs(runtime::CompiledModel& compiled, const onnx::Model& model,
                                          const InputOptions& options, runtime::TensorMap& expected);

  /// Returns the ranges of the inputs for which the model only ran with a narrower range than the default.
  [[nodiscard]] const InputRanges& narrowed() const { return narrowed_; }
  /// Returns `ranges` with the entries of narrowed() added or replaced.
  [[nodiscard]] InputRanges narrowed(InputRanges ranges) const {
    for (const auto& [name, range] : narrowed_) ranges.insert_or_assign(name, range);
    return ranges;
  }
  /// Returns the names of the inputs in InputOptions::large_integers that had large values in at least one run.
  [[nodiscard]] const std::set<std::string, std::less<>>& large_integers() const { return large_integers_; }
  /// Returns why the sizes differ from the default, for reports, followed by the values of inputs that determine sizes.
  /// An example is "'net.onnx' runs with a first dimension of 1, not of 2: node 'view' (Reshape) has a constant shape".
  /// Empty if the default sizes worked.
  [[nodiscard]] std::string why_sizes() const;

 private:
  struct Sizes {
    std::optional<std::int64_t> first;  ///< The first dimension; if empty, the first dimension in the options.
    std::int64_t size;
    const onnx::Node* holder;  ///< The node that contains the size as a constant; null for the default sizes.
    /// A symbol whose size differs from the size of the other symbols, and that size.
    std::optional<std::pair<std::string, std::int64_t>> other = std::nullopt;
  };
  struct Run {
    runtime::TensorMap inputs;
    runtime::TensorMap expected;
  };

  static void apply(const Sizes& sizes, InputOptions& options);
  /// Returns whether the model runs with these sizes, also trying narrower integer ranges. Stores inputs and outputs in
  /// `run`.
  bool attempt(runtime::CompiledModel& compiled, const onnx::Model& model, InputOptions options, const Sizes& sizes,
               Run& run);
  /// Selects the next narrower range for the integer inputs that have no range in `given`. Returns false if all ranges
  /// were tried.
  [[nodiscard]] bool narrow(const onnx::Model& model, const InputRanges& given);
  [[nodiscard]] static std::string why(const onnx::Model& model, const InputOptions& options, const Sizes& sizes);

  std::optional<Sizes> chosen_;
  std::optional<Error> refusal_;   ///< The first error, with the default values and the smallest size.
  std::exception_ptr over_limit_;  ///< The first error if it is an OverLimit, otherwise null.
  std::size_t narrowings_ = 0;
  InputRanges narrowed_;
  std::set<std::string, std::less<>> large_integers_;
  bool refuses_large_ = false;  ///< Whether the model does not run with large integers.
  /// An index into the list of sets of values for inputs that determine sizes (FittingSizes): the set that is tried
  /// now. If it is the length of the list, no set is used.
  std::size_t fit_ = 0;
  bool searches_ = false;  ///< Whether the list of fitting sizes includes the results of search_fitting_sizes.
  std::string why_sizes_;
  std::string why_numbers_;
};

/// Returns whether the value declares a size of 0.
[[nodiscard]] bool is_declared_empty(const onnx::Value& value);

}  // namespace graft::verify
