// The inputs and outputs of two models: which belongs to which, and what they are given.
#pragma once

#include <cstddef>
#include <cstdint>
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
#include "verify/inputs.hpp"
#include "verify/rearrangement.hpp"

namespace graft::verify {

struct IoPair {
  const onnx::Value* reference;
  const onnx::Value* candidate;
};

/// Inputs without a default.
[[nodiscard]] std::vector<const onnx::Value*> fed_inputs(const onnx::Model& model);
[[nodiscard]] std::vector<const onnx::Value*> all_outputs(const onnx::Model& model);

/// By name; then, if as many are left on both sides, by order. What is left after that is a problem: "the candidate has
/// no output 'y'", with `what` for "output".
[[nodiscard]] std::vector<IoPair> pair_io(const std::vector<const onnx::Value*>& reference,
                                          const std::vector<const onnx::Value*>& candidate, const char* what,
                                          std::vector<std::string>& problems);

/// The numbers in another type; the same where one of both holds none.
[[nodiscard]] onnx::TensorData in_type(const onnx::TensorData& tensor, std::optional<onnx::ElementType> type);

/// Whether a shape can have these dimensions. A first one of another size is a batch that the caller answers for.
[[nodiscard]] bool can_have(const onnx::Value& value, const std::vector<std::int64_t>& dims);

/// How dimensions get into the form that a model declares for an input, where it is the same with its channels in
/// another place.
[[nodiscard]] std::optional<Rearrangement> order_of_input(const onnx::Value& input,
                                                          const std::vector<std::int64_t>& dims);

/// The tensor in the order and type that the input has.
[[nodiscard]] onnx::TensorData as_input(const onnx::Value& input, const onnx::TensorData& given);

/// How an output of the reference gets into the candidate's dimensions, where these are the same with channels in
/// another place.
[[nodiscard]] std::optional<Rearrangement> exchanged_output(const std::vector<std::int64_t>& reference,
                                                            const std::vector<std::int64_t>& candidate);

/// What the candidate is given where the reference is given `inputs`.
[[nodiscard]] runtime::TensorMap inputs_for(const std::vector<IoPair>& pairs, const runtime::TensorMap& inputs);

/// The first dimension, where the model fixes it: how many samples one run takes.
[[nodiscard]] std::optional<std::int64_t> fixed_batch(const onnx::Value& input);

/// The runs that data are enough for: where a model's batch is fixed and the tensors have a multiple of it, one run for
/// each part; a tensor that has the fixed size itself belongs to all of them. Otherwise one run. `batches` are the
/// first dimensions that the models fix, by the names of the data. Throws Error, quoting the option, where the number
/// of samples is no multiple, or two tensors are enough for different numbers of runs.
[[nodiscard]] std::vector<runtime::TensorMap> split_into_runs(
    const runtime::TensorMap& data, const std::map<std::string, std::int64_t, std::less<>>& batches,
    const std::string& option);
/// The same for one model's inputs.
[[nodiscard]] std::vector<runtime::TensorMap> split_into_runs(const runtime::TensorMap& data, const onnx::Model& model,
                                                              const std::string& option);

/// Synthetic inputs with which a model runs. Networks with many strides need large images; small ones make empty
/// tensors, or are refused. So sizes for symbolic dimensions are tried from small to large, each also with a first
/// dimension of 1, and then the sizes that shapes inside the network hold: exporters freeze a batch or a length there
/// that the inputs declare dynamic. At last one named size differs from the others: a decoder with a cache takes a mask
/// that is longer than its past by the new tokens. Integers that become an index or a count (a mask whose sums are
/// positions) are tried from 0 to 3, then in narrower ranges. Without large ones where it does not run with them. What
/// worked is used again.
class MadeUpInputs {
 public:
  /// `compiled` is `model`. Returns the inputs, and what it gave for them in `expected`. Throws Error where it does not
  /// run; where a size is dynamic, with what to do.
  [[nodiscard]] runtime::TensorMap inputs(runtime::CompiledModel& compiled, const onnx::Model& model,
                                          const InputOptions& options, runtime::TensorMap& expected);

  /// Those with narrower ranges than usual, without which the model did not run.
  [[nodiscard]] const InputRanges& narrowed() const { return narrowed_; }
  /// The inputs of InputOptions::large_integers that were large in a run.
  [[nodiscard]] const std::set<std::string, std::less<>>& large_integers() const { return large_integers_; }
  /// "'net.onnx' runs with a first dimension of 1, not of 2: node 'view' (Reshape) has a shape of constants"; empty
  /// where the usual sizes worked. After it what inputs are that become sizes themselves.
  [[nodiscard]] std::string why_sizes() const;

 private:
  struct Sizes {
    std::optional<std::int64_t> first;  ///< Nothing for that of the options.
    std::int64_t size;
    const onnx::Node* holder;  ///< The node that shows them; null for the usual ones.
    /// A dimension with a size of its own.
    std::optional<std::pair<std::string, std::int64_t>> other = std::nullopt;
  };
  struct Run {
    runtime::TensorMap inputs;
    runtime::TensorMap expected;
  };

  static void apply(const Sizes& sizes, InputOptions& options);
  /// Whether the model runs with these sizes, with narrower integers where it needs them.
  bool attempt(runtime::CompiledModel& compiled, const onnx::Model& model, InputOptions options, const Sizes& sizes,
               Run& run);
  /// The next narrower ranges for integers that `given` has no range of. False where there are none.
  [[nodiscard]] bool narrow(const onnx::Model& model, const InputRanges& given);
  [[nodiscard]] static std::string why(const onnx::Model& model, const InputOptions& options, const Sizes& sizes);

  std::optional<Sizes> chosen_;
  std::optional<Error> refusal_;  ///< The first one: of the usual numbers and the smallest size.
  std::size_t narrowings_ = 0;
  InputRanges narrowed_;
  std::set<std::string, std::less<>> large_integers_;
  bool refuses_large_ = false;  ///< The model did not run with large integers.
  std::size_t fit_ = 0;  ///< Which of the sizes that fit is used for inputs that become sizes; past the end: none.
  std::string why_sizes_;
  std::string why_numbers_;
};

/// Whether a size is 0, as it is declared.
[[nodiscard]] bool is_always_empty(const onnx::Value& value);

}  // namespace graft::verify
