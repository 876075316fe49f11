// Cases: problems with which an operator is tested and timed, and how a result is judged.
//
// `<op>_cases.hpp` beside a definition has `std::vector<OperatorCase> cases(const Definition&)`; the build lists them
// from the operator list, so an operator without cases does not compile. Operators of other repositories do the same.
// `std::vector<TimedCase> timings(const Definition&)` in the same file, if it is there, lists what `graft bench` times.
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

#include "graft/define_operator.hpp"
#include "graft/tensor.hpp"

namespace graft::ops {

/// What the inputs hold.
enum class Fill : std::uint8_t {
  normal,  ///< Normally distributed; i8: every value alike.
  zeros,
  huge,     ///< Near the largest finite number, so that squares overflow.
  tiny,     ///< Squares underflow f32; f16: subnormal numbers.
  special,  ///< Normal, sprinkled with NaN, infinities and both zeros.
  sparse,   ///< Normal; of four elements three are zero, of either sign.
  offset,   ///< The first input normal with a mean of 1e4 (f16: 1e3, where a step is 0.5); the others normal.
};

struct HostTensor;

struct OperatorCase {
  std::string name;  ///< Unique for the operator; letters, digits and `_`.
  std::shared_ptr<const Operator> op;
  std::vector<TensorDesc> inputs;  ///< Those that kernels get: shape inputs have `shape_values`.
  Fill fill = Fill::normal;
  /// Bound on the relative error of the kernel's f32 arithmetic; rounding to the output's type comes on top.
  double tolerance = 0;
  /// Bound on what comes on top of that regardless of the result's size, where terms of a sum cancel. In real numbers.
  double absolute = 0;
  std::int64_t shift = 0;  ///< Elements by which every tensor lies off its alignment.
  bool large = false;  ///< More than 2^31 elements, all items of the first input's batch alike: on a GPU, on request.
  /// Makes valid what was filled in at random: indices, sizes, boxes. Called with all inputs.
  void (*arrange)(std::span<HostTensor> inputs) = nullptr;
  std::string refused = {};  ///< If not empty: `check` refuses the case with a message that contains this.
  std::vector<Extents> shape_values = {};  ///< Of each shape input.
  bool any_order = false;     ///< The order of a sum is not fixed, so that two runs may differ within the tolerance.
  bool may_overflow = false;  ///< Finite inputs may give NaN, as 0 / 0 does, and normal ones infinity.
};

/// An attribute of a case. Numbers may be written as they come, `1.5` for a float and `3U` for an integer.
struct CaseAttribute : std::pair<std::string, AttributeValue> {
  CaseAttribute(std::string name, AttributeValue value) : pair(std::move(name), std::move(value)) {}
  template <std::floating_point Value>
  requires(!std::same_as<Value, float>) CaseAttribute(std::string name, Value value)
      : pair(std::move(name), static_cast<float>(value)) {}
  template <std::unsigned_integral Value>
  CaseAttribute(std::string name, Value value) : pair(std::move(name), static_cast<std::int64_t>(value)) {}
};
using Attributes = std::vector<CaseAttribute>;

/// Throws std::invalid_argument with the operator's message if it refuses an attribute.
[[nodiscard]] std::shared_ptr<const Operator> make_operator(const OperatorType& type, const Attributes& attributes);

/// "f16_hwc8_2x8x3x3".
[[nodiscard]] std::string case_name(const TensorDesc& desc);

/// The relative error of f32 arithmetic that rounds `operations` times in sequence.
[[nodiscard]] constexpr double f32_error(double operations) { return operations / (1 << 24); }

/// A problem whose speed `graft bench` reports, and what it has to reach. Zero: nothing is asked.
struct TimedCase {
  Attributes attributes = {};
  std::vector<TensorDesc> inputs;  ///< Optional ones may be left out at the end.
  double of_copy = 0;              ///< Fraction of the bandwidth of a device-to-device copy.
  double of_eager = 0;             ///< Speed as a multiple of PyTorch's, layer by layer.
  double operations = 0;           ///< Multiplications and additions, where those and not the memory set the limit.
};

inline const std::vector<Format> linear_formats{DType::f32, DType::f16, DType::bf16, DType::i8};
inline const std::vector<Format> vector_formats{
    {DType::f16, Layout::hwc8}, {DType::bf16, Layout::hwc8}, {DType::i8, Layout::chw32}};

/// Each case with its first input in each of the formats. i8 gets scales, and 0.85 of a copy to reach unless it is
/// small.
[[nodiscard]] std::vector<TimedCase> in_formats(const std::vector<Format>& formats,
                                                const std::vector<TimedCase>& cases);

/// The timings of a definition that has any.
template <class Definition>
[[nodiscard]] std::vector<TimedCase> timings_of() {
  if constexpr (requires { timings(Definition{}); }) return timings(Definition{});
  return {};
}

/// A random problem of a definition that has `TimedCase draw(const Definition&, Draw&)`, see ops/random_cases.hpp; null
/// for one that has none.
class Draw;
using DrawCase = TimedCase (*)(Draw& draw);
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
  std::vector<std::byte> bytes;  ///< storage_bytes() of them.
};

/// The type row that these inputs fit, of which optional ones may be left out; null where there is none.
[[nodiscard]] const TypeRow* matching_row(const OperatorType& type, std::span<const TensorDesc> inputs);

/// The output descriptions that infer_extents and the type rows give. Throws std::invalid_argument where there are
/// none.
[[nodiscard]] std::vector<TensorDesc> output_descs(const Operator& op, std::span<const TensorDesc> inputs,
                                                   std::span<const Extents> shape_values = {});

/// The same for the same case, always. `batch` replaces the first dimension of the first input, unless negative.
[[nodiscard]] std::vector<HostTensor> make_inputs(const OperatorCase& test, std::int64_t batch = -1);

/// What an output has to hold: real numbers, or integers where the operator computes those.
struct ExpectedOutput {
  Extents extents;  ///< The true ones where they depend on data.
  std::vector<float> numbers;
  std::vector<std::int64_t> integers;
};

/// The reference kernel's outputs for these inputs, computed in linear layout, in f32 in the place of other
/// floating-point types and of i8; what i8 inputs stand for is taken from the attributes `<port>_scale`: one number, or
/// one for each index of the first axis. Integers stay as they are.
[[nodiscard]] std::vector<ExpectedOutput> expected_outputs(const Operator& op, std::span<const HostTensor> inputs,
                                                           std::span<const Extents> shape_values = {});

/// Empty if every element lies between the bounds that the tolerance allows, both rounded to the output's type, and the
/// padding of a vectorized layout is zero; otherwise says where not. Integers have to be equal. `scale` is that of an
/// i8 output; `absolute` is allowed on top of the relative `tolerance`. `found` may have room for more than is
/// expected.
[[nodiscard]] std::string compare(const HostTensor& found, const ExpectedOutput& expected, double tolerance,
                                  float scale, double absolute = 0);

/// How far results are from the expected values rounded to the output's type, where both are finite.
struct Errors {
  std::int64_t results = 0;
  std::int64_t off = 0;     ///< Not the rounded expected value.
  std::int64_t beyond = 0;  ///< Further from it than one step of the type, a unit in its last place.
  double of_bound = 0;      ///< The largest distance as a part of what compare allows.
  double beyond_size = 0;   ///< The largest expected value whose result is beyond, as a part of the tensor's largest;
  double beyond_error = 0;  ///< and the largest distance from such a value, as the same part.
  double from_tie = 0;  ///< i8: steps from the middle of two to an expected value whose result is off, but not beyond.

  /// Of both.
  Errors& operator+=(const Errors& other);
};
/// For arguments as compare takes them, where nothing is wrong; nothing is counted of integers.
[[nodiscard]] Errors errors_of(const HostTensor& found, const ExpectedOutput& expected, double tolerance, float scale,
                               double absolute = 0);

/// The attribute `<port>_scale`, 1 where there is none.
[[nodiscard]] float scale_of(const Operator& op, std::string_view port);

/// Every operator's cases, in the order of the operator list. Defined by the build.
struct OperatorCases {
  const OperatorType* type;
  std::vector<OperatorCase> cases;
};
[[nodiscard]] const std::vector<OperatorCases>& operator_cases();

/// What `make` returns, the cases of a file; whatever it throws begins with the file's name.
template <class Make>
[[nodiscard]] auto made_in(std::string_view file, const Make& make) {
  try {
    return make();
  } catch (const std::exception& error) {
    throw std::invalid_argument(std::string(file) + ": " + error.what());
  }
}

/// What `cases` lacks: names that are there twice, type rows without a case, nothing that is refused. Empty where it
/// lacks nothing.
[[nodiscard]] std::string check_coverage(const OperatorCases& all);

/// Whether `check` refuses what it has to and nothing else, and whether the reference kernel computes in the case's
/// type what it computes in f32, its loops in pieces that run backwards; and that nothing overflows there,
/// which all kernels would agree on if they make the same mistake. Empty, or what is wrong.
[[nodiscard]] std::string check_on_cpu(const OperatorCase& test);

/// Every operator's timed cases, and how random ones are drawn, in the same order. Defined by the build.
struct OperatorTimings {
  const OperatorType* type;
  std::vector<TimedCase> timings;
  DrawCase draw;
};
[[nodiscard]] const std::vector<OperatorTimings>& operator_timings();

}  // namespace graft::ops
