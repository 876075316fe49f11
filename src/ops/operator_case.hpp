// Cases: problems with which an operator is tested and timed, and the rules by which a result is compared.
//
// `<op>_cases.hpp` next to a definition defines `std::vector<OperatorCase> cases(const Definition&)`. The build
// collects these functions from the operator list, so an operator without cases does not compile. Operators of other
// repositories are built the same way. An optional `std::vector<TimedCase> timings(const Definition&)` in the same file
// lists the problems that `graft bench` times.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graft/operator/define_operator.hpp"
#include "graft/operator/tensor.hpp"

namespace graft::ops {

/// The kind of values with which the inputs of a case are filled.
enum class Fill : std::uint8_t {
  normal,  ///< The values are normally distributed; for i8, all 256 values are equally likely.
  zeros,
  /// The values are normally distributed, scaled so that three standard deviations are the largest finite number, and
  /// their squares overflow.
  huge,
  tiny,     ///< The values are so small that their squares underflow f32; for f16, they are subnormal numbers.
  special,  ///< The values are normally distributed, with NaN, infinities and both zeros interspersed.
  sparse,   ///< The values are normally distributed, with three of four elements replaced by a zero of either sign.
  /// The first input is normally distributed with a mean of 1e4 (f16: 1e3, where neighboring values are 0.5 apart);
  /// further inputs are normally distributed.
  offset,
};

struct HostTensor;

struct OperatorCase {
  /// The name of the case, which is unique for the operator and consists of letters, digits and `_`.
  std::string name;
  std::shared_ptr<const Operator> op;
  /// The inputs that kernels receive. The values of shape inputs are in `shape_values`.
  std::vector<TensorDesc> inputs;
  Fill fill = Fill::normal;
  /// The bound on the relative error of the kernel's f32 arithmetic. Rounding to the output's type is allowed in
  /// addition.
  double tolerance = 0;
  /// The bound on an additional absolute error, in units of the dequantized output, for sums whose terms cancel.
  double absolute = 0;
  std::int64_t shift = 0;  ///< The number of elements by which every tensor's address is moved off its alignment.
  /// Whether the case has more than 2^31 elements. All items of the first input's batch are equal. The case runs on a
  /// GPU only, and only on request.
  bool large = false;
  /// Turns random contents into valid indices, sizes or boxes. Called once with all inputs; null if random
  /// contents are valid.
  void (*arrange)(std::span<HostTensor> inputs) = nullptr;
  /// A part of the message with which `check` must refuse the case; empty if it must accept it.
  std::string refused = {};
  std::vector<Extents> shape_values = {};  ///< The values of each shape input.
  bool any_order = false;     ///< Whether the order of a sum varies, so that two runs may differ within the tolerance.
  bool may_overflow = false;  ///< Whether finite inputs may produce NaN, as 0 / 0 does, and normal inputs infinity.
};

/// An attribute of a case. Numbers may be written as plain literals: `1.5` for a float and `3U` for an integer.
struct CaseAttribute : std::pair<std::string, AttributeValue> {
  CaseAttribute(std::string name, AttributeValue value) : pair(std::move(name), std::move(value)) {}
  template <std::floating_point Value>
  requires(!std::same_as<Value, float>) CaseAttribute(std::string name, Value value)
      : pair(std::move(name), static_cast<float>(value)) {}
  template <std::unsigned_integral Value>
  CaseAttribute(std::string name, Value value) : pair(std::move(name), static_cast<std::int64_t>(value)) {}
};
using Attributes = std::vector<CaseAttribute>;

/// Returns an operator with these attributes. Throws std::invalid_argument with the operator's message if the operator
/// refuses an attribute.
[[nodiscard]] std::shared_ptr<const Operator> make_operator(const OperatorType& type, const Attributes& attributes);

/// Returns a name such as "f16_hwc8_2x8x3x3".
[[nodiscard]] std::string case_name(const TensorDesc& desc);

/// Returns the relative error of f32 arithmetic that rounds `operations` times in sequence: operations / 2^24.
[[nodiscard]] constexpr double f32_error(double operations) { return operations / (1 << 24); }

/// A problem whose speed `graft bench` reports, and the speed that kernels must reach. A required speed of 0 means no
/// requirement.
struct TimedCase {
  Attributes attributes = {};
  std::vector<TensorDesc> inputs;  ///< The inputs; optional ones at the end may be absent.
  double of_copy = 0;              ///< The required fraction of the bandwidth of a device-to-device copy.
  double of_eager = 0;             ///< The required speed as a multiple of PyTorch's eager mode.
  /// The number of multiplications and additions if arithmetic limits the speed; 0 if memory does.
  double operations = 0;
};

inline const std::vector<Format> linear_formats{DType::f32, DType::f16, DType::bf16, DType::i8};
inline const std::vector<Format> vector_formats{
    {DType::f16, Layout::hwc8}, {DType::bf16, Layout::hwc8}, {DType::i8, Layout::chw32}};

/// Returns each case once per format of its first input. i8 cases receive scales, and 0.85 of the bandwidth of a copy
/// as their requirement, except small cases without a requirement of their own.
[[nodiscard]] std::vector<TimedCase> in_formats(const std::vector<Format>& formats,
                                                const std::vector<TimedCase>& cases);

/// Returns the timings of a definition, or an empty list where its header defines none.
template <class Definition>
[[nodiscard]] std::vector<TimedCase> timings_of() {
  if constexpr (requires { timings(Definition{}); }) return timings(Definition{});
  return {};
}

class Draw;
using DrawCase = TimedCase (*)(Draw& draw);
/// Returns the function that draws a random problem of a definition with `TimedCase draw(const Definition&, Draw&)`,
/// see ops/random_cases.hpp, or null if the definition has no such function.
template <class Definition>
[[nodiscard]] constexpr DrawCase draw_of() {
  if constexpr (requires(Draw & from) { draw(Definition{}, from); }) {
    return [](Draw& from) { return draw(Definition{}, from); };
  } else {
    return nullptr;
  }
}

/// A tensor in host memory.
struct HostTensor {
  TensorDesc desc;
  std::vector<std::byte> bytes;  ///< The data, desc.storage_bytes() bytes.
};

/// Returns the row of the operator's type table that these inputs match, or null if no row does. Optional inputs may be
/// absent.
[[nodiscard]] const TypeRow* matching_row(const OperatorType& type, std::span<const TensorDesc> inputs);

/// Returns the descriptions of the outputs, with the extents from infer_extents and the types from the operator's type
/// table. Throws std::invalid_argument if infer_extents refuses the inputs.
[[nodiscard]] std::vector<TensorDesc> output_descs(const Operator& op, std::span<const TensorDesc> inputs,
                                                   std::span<const Extents> shape_values = {});

/// Returns the inputs of a case, identical in every call. A `batch` of 0 or more replaces the first dimension of the
/// first input.
[[nodiscard]] std::vector<HostTensor> make_inputs(const OperatorCase& test, std::int64_t batch = -1);

/// The expected contents of an output: real numbers, or integers if the operator computes integers.
struct ExpectedOutput {
  Extents extents;  ///< The actual extents, if they depend on the data.
  std::vector<float> numbers;
  std::vector<std::int64_t> integers;
};

/// Returns the outputs of the reference kernel for these inputs. Floating-point and quantized inputs are converted to
/// f32 in linear layout first; quantized values are multiplied by the attribute `<port>_scale`, which is one number, or
/// one number for each index of the first axis. Integers are passed unchanged.
[[nodiscard]] std::vector<ExpectedOutput> expected_outputs(const Operator& op, std::span<const HostTensor> inputs,
                                                           std::span<const Extents> shape_values = {});

/// Compares an output with the expected one. Returns an empty string if every element lies between the bounds that the
/// tolerance allows, both rounded to the output's type, and the padding of a vectorized layout is zero; otherwise a
/// description of the first wrong element. Integers have to be equal. `scale` is the scale of an i8 output; `absolute`
/// is allowed in addition to the relative `tolerance`. `found` may be larger than the expected extents.
[[nodiscard]] std::string compare(const HostTensor& found, const ExpectedOutput& expected, double tolerance,
                                  float scale, double absolute = 0);

/// The distances between results and the expected values rounded to the output's type, for results of which both are
/// finite.
struct Errors {
  std::int64_t results = 0;
  std::int64_t off = 0;  ///< The number of results that differ from the rounded expected value.
  /// The number of results that differ from the rounded expected value by more than one unit in the last place of
  /// the type.
  std::int64_t beyond = 0;
  double of_bound = 0;  ///< The largest distance, as a fraction of the distance that compare() allows.
  /// The largest expected value among the results that are counted in `beyond`, divided by the tensor's largest
  /// expected value.
  double beyond_size = 0;
  /// The largest distance among the results that are counted in `beyond`, divided by the tensor's largest expected
  /// value.
  double beyond_error = 0;
  /// For i8, the largest distance in steps between an expected value and the rounding tie, among results that are
  /// off by one step.
  double from_tie = 0;

  /// Adds the counts, and keeps the larger one of each pair of distances.
  Errors& operator+=(const Errors& other);
};
/// Returns the errors of an output that `compare` accepts with the same arguments. Integer outputs are not counted.
[[nodiscard]] Errors errors_of(const HostTensor& found, const ExpectedOutput& expected, double tolerance, float scale,
                               double absolute = 0);

/// Returns the attribute `<port>_scale`, or 1 if the operator has no such attribute or it is a list.
[[nodiscard]] float scale_of(const Operator& op, std::string_view port);

/// The cases of one operator.
struct OperatorCases {
  const OperatorType* type;
  std::vector<OperatorCase> cases;
};
/// Returns every operator's cases, in the order of the operator list. The build generates the definition of this
/// function.
[[nodiscard]] const std::vector<OperatorCases>& operator_cases();

/// Returns the result of `make`, the cases of a file. Prefixes the message of an exception with the file's name.
template <class Make>
[[nodiscard]] auto made_in(std::string_view file, const Make& make) {
  try {
    return make();
  } catch (const std::exception& error) {
    throw std::invalid_argument(std::string(file) + ": " + error.what());
  }
}

/// Returns a description of what a list of cases lacks: unique names, a case for each row of the operator's type table,
/// and a case that is refused. Empty if it lacks nothing.
[[nodiscard]] std::string check_coverage(const OperatorCases& all);

/// Checks a case on the CPU. If the case is marked as refused, `check` must refuse it. Otherwise the reference kernel
/// must compute the same in the case's type as in f32, with the iterations of its loops in another order, and no result
/// may overflow, because an overflow that the reference and the CUDA kernels share would stay undetected. Returns an
/// empty string, or a description of the error.
[[nodiscard]] std::string check_on_cpu(const OperatorCase& test);

/// The timed cases of one operator, and the function that draws random ones, or null.
struct OperatorTimings {
  const OperatorType* type;
  std::vector<TimedCase> timings;
  DrawCase draw;
};
/// Returns every operator's timed cases, in the order of the operator list. The build generates the definition of this
/// function.
[[nodiscard]] const std::vector<OperatorTimings>& operator_timings();

}  // namespace graft::ops
