// Test data, reference results and their comparison, for operators of any type and layout.
#include "ops/operator_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>

#include "core/hash.hpp"
#include "ops/reference.hpp"

namespace graft::ops {
namespace {

void check(const Status& status) {
  if (!status.ok()) throw std::invalid_argument(status.message());
}

/// Calls `f(storage index, linear index)` for every element; padding has the linear index -1.
template <class F>
void for_each_element(const TensorDesc& desc, F&& f) {
  const std::int64_t vector = channels_per_vector(desc.layout);
  if (vector == 1) {
    const std::int64_t count = desc.storage_count();
    for (std::int64_t i = 0; i < count; ++i) f(i, i);
    return;
  }
  const std::int64_t batch = desc.extents[0];
  const std::int64_t channels = desc.extents[1];
  const std::int64_t pixels = desc.extents[2] * desc.extents[3];
  const std::int64_t padded = (channels + vector - 1) / vector * vector;
  for (std::int64_t n = 0; n < batch; ++n) {
    for (std::int64_t c = 0; c < padded; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        const std::int64_t storage = desc.layout == Layout::hwc8
                                         ? (n * pixels + p) * padded + c
                                         : ((n * (padded / vector) + c / vector) * pixels + p) * vector + c % vector;
        f(storage, c < channels ? (n * channels + c) * pixels + p : -1);
      }
    }
  }
}

double value_for(Fill fill, DType dtype, std::mt19937& random) {
  const double gauss = std::normal_distribution<double>()(random);
  const double largest = dtype == DType::f16 ? 65504 : 3e38;
  switch (fill) {
    case Fill::normal: return gauss;
    case Fill::offset: return gauss + (dtype == DType::f16 ? 1e3 : 1e4);
    case Fill::zeros: return 0;
    case Fill::sparse: {
      const auto chance = random() % 8;
      return chance < 3 ? 0. : chance < 6 ? -0. : gauss;
    }
    case Fill::huge: return std::clamp(gauss, -3., 3.) / 3 * largest;
    case Fill::tiny: return gauss * (dtype == DType::f16 ? 1e-6 : 1e-30);
    case Fill::special: {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      constexpr std::array<double, 5> specials{std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, 0., -0.};
      const auto chance = random() % 60;
      return chance < specials.size() ? specials[chance] : gauss;
    }
  }
  return 0;
}

/// Whether an element type stores plain integers, as opposed to quantized values.
template <class Element>
inline constexpr bool is_plain_integer = std::integral<Element> && !std::same_as<Element, std::int8_t>;

/// Calls `f` with a value of the C++ type that stores `dtype`, for every type that an operator may have.
template <class F>
Status dispatch_every(DType dtype, F&& f) {
  if (dtype == DType::f8e4m3fn) return f(Float8E4M3FN{});
  return dispatch_any(dtype, f);
}

template <class Element>
double as_number(Element value) {
  return static_cast<double>(static_cast<float>(value));
}

}  // namespace

std::shared_ptr<const Operator> make_operator(const OperatorType& type, const Attributes& attributes) {
  std::shared_ptr<Operator> op = type.create();
  // All attributes are set together, because the values that one attribute allows may depend on another.
  std::vector<NamedAttribute> all;
  for (const auto& [name, value] : attributes) all.push_back({name, value});
  check(op->set(all));
  return op;
}

std::string case_name(const TensorDesc& desc) {
  std::string name = to_string(desc);
  for (char& c : name) {
    if (c == ' ') c = '_';
  }
  return name;
}

std::vector<TimedCase> in_formats(const std::vector<Format>& formats, const std::vector<TimedCase>& cases) {
  constexpr std::int64_t small = 8 << 20;  // The tensor fits into the cache together with its result.
  std::vector<TimedCase> result;
  for (const Format& format : formats) {
    for (TimedCase timed : cases) {
      timed.inputs[0].dtype = format.dtype;
      timed.inputs[0].layout = format.layout;
      if (is_quantized(format.dtype)) {
        timed.attributes.insert(timed.attributes.end(), {{"x_scale", 0.05F}, {"y_scale", 1 / 127.F}});
        if (timed.of_copy > 0 || timed.inputs[0].storage_bytes() > small) timed.of_copy = 0.85;
      }
      result.push_back(std::move(timed));
    }
  }
  return result;
}

const TypeRow* matching_row(const OperatorType& type, std::span<const TensorDesc> inputs) {
  for (const TypeRow& row : type.type_rows) {
    bool matches = true;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      matches = matches && type.format_of(row, inputs.size(), i) == Format(inputs[i].dtype, inputs[i].layout);
    }
    if (matches) return &row;
  }
  return nullptr;
}

std::vector<TensorDesc> output_descs(const Operator& op, std::span<const TensorDesc> inputs,
                                     std::span<const Extents> shape_values) {
  std::vector<Extents> results;
  check(infer_extents(op, inputs, results, shape_values));
  const TypeRow* row = matching_row(op.type(), inputs);
  std::vector<TensorDesc> outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    // If no row matches, the case must be refused, and any output format will do.
    const Format format = row == nullptr ? Format(inputs[0].dtype, inputs[0].layout)
                                         : op.type().format_of(*row, inputs.size(), inputs.size() + i);
    outputs.push_back({.dtype = format.dtype, .layout = format.layout, .extents = results[i]});
  }
  return outputs;
}

std::vector<HostTensor> make_inputs(const OperatorCase& test, std::int64_t batch) {
  std::mt19937 random(hash_of(test.name));
  std::vector<HostTensor> tensors;
  for (TensorDesc desc : test.inputs) {
    const bool is_first = tensors.empty();
    if (batch >= 0 && is_first) desc.extents[0] = batch;
    const Fill fill = test.fill == Fill::offset && !is_first ? Fill::normal : test.fill;
    HostTensor tensor{.desc = desc, .bytes = std::vector<std::byte>(static_cast<std::size_t>(desc.storage_bytes()))};
    check(dispatch_every(desc.dtype, [&](auto element) -> Status {
      using Element = decltype(element);
      auto* values = reinterpret_cast<Element*>(tensor.bytes.data());
      for_each_element(desc, [&](std::int64_t at, std::int64_t linear) {
        if constexpr (is_plain_integer<Element>) {
          constexpr unsigned values_of_booleans = 2;
          const auto value = desc.dtype == DType::boolean ? random() % values_of_booleans : random();
          const bool is_zero = fill == Fill::zeros || (fill == Fill::sparse && random() % 4 != 0);
          values[at] = is_zero ? 0 : static_cast<Element>(value);
        } else if constexpr (std::same_as<Element, std::int8_t>) {
          // The contents of padding are undefined, so random padding must not change a result.
          values[at] = fill == Fill::zeros && linear >= 0 ? 0 : static_cast<std::int8_t>(random());
        } else {
          const double value = linear < 0 ? 77 : value_for(fill, desc.dtype, random);
          values[at] = static_cast<Element>(static_cast<float>(value));
        }
      });
      return {};
    }));
    tensors.push_back(std::move(tensor));
  }
  if (test.arrange != nullptr) test.arrange(tensors);
  return tensors;
}

namespace {

/// Returns the scale of a quantized port for each of the `count` indices of the first axis of the tensor.
std::vector<float> scales_of(const Operator& op, std::string_view port, std::int64_t count) {
  const auto value = op.get(std::string(port) + "_scale");
  const auto* list = value ? std::get_if<std::vector<float>>(&*value) : nullptr;
  if (list != nullptr && list->size() == static_cast<std::size_t>(count)) return *list;
  const float one = list != nullptr && list->size() == 1 ? list->front() : scale_of(op, port);
  return std::vector<float>(static_cast<std::size_t>(count), one);
}

}  // namespace

float scale_of(const Operator& op, std::string_view port) {
  const auto value = op.get(std::string(port) + "_scale");
  return value && std::holds_alternative<float>(*value) ? std::get<float>(*value) : 1.F;
}

std::vector<ExpectedOutput> expected_outputs(const Operator& op, std::span<const HostTensor> inputs,
                                             std::span<const Extents> shape_values) {
  // The addresses stay valid, because a deque does not move its elements when it grows.
  std::deque<std::vector<float>> values;
  std::vector<TensorDesc> descs;
  std::vector<const void*> addresses;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const HostTensor& input = inputs[i];
    if (!is_floating_point(input.desc.dtype) && !is_quantized(input.desc.dtype)) {
      descs.push_back(input.desc);
      addresses.push_back(input.bytes.data());
      continue;
    }
    const bool is_scalar = input.desc.extents.rank() == 0;
    const Port& port = op.type().ports[op.type().port_of(inputs.size(), i)];
    const std::vector<float> scales = scales_of(op, port.name, is_scalar ? 1 : input.desc.extents[0]);
    const std::int64_t per_scale = input.desc.extents.element_count() / std::max<std::int64_t>(1, std::ssize(scales));
    auto& linear = values.emplace_back(static_cast<std::size_t>(input.desc.extents.element_count()));
    check(dispatch_and_f8(input.desc.dtype, [&](auto element) -> Status {
      const auto* stored = reinterpret_cast<const decltype(element)*>(input.bytes.data());
      for_each_element(input.desc, [&](std::int64_t at, std::int64_t to) {
        if (to < 0) return;
        const double scale = scales[static_cast<std::size_t>(to / per_scale)];
        linear[static_cast<std::size_t>(to)] = static_cast<float>(load(stored[at], scale));
      });
      return {};
    }));
    descs.push_back({.dtype = DType::f32, .layout = Layout::linear, .extents = input.desc.extents});
    addresses.push_back(linear.data());
  }
  const std::vector<TensorDesc> outputs = output_descs(op, descs, shape_values);
  std::vector<std::vector<std::byte>> results;
  for (const TensorDesc& desc : outputs) results.emplace_back(static_cast<std::size_t>(desc.storage_bytes()));
  std::vector<void*> result_addresses;
  for (auto& result : results) result_addresses.push_back(result.data());
  const Problem problem{descs, outputs};
  check(op.run_cpu(problem, {addresses, result_addresses}, {}));

  std::vector<Extents> extents;
  check(read_extents(op, problem, std::vector<const void*>(result_addresses.begin(), result_addresses.end()), extents));
  std::vector<ExpectedOutput> expected;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    ExpectedOutput& output =
        expected.emplace_back(ExpectedOutput{.extents = extents[i], .numbers = {}, .integers = {}});
    check(dispatch_every(outputs[i].dtype, [&](auto element) -> Status {
      using Element = decltype(element);
      const std::span elements(reinterpret_cast<const Element*>(results[i].data()),
                               static_cast<std::size_t>(extents[i].element_count()));
      if constexpr (is_plain_integer<Element>) {
        output.integers.assign(elements.begin(), elements.end());
      } else {
        for (const Element value : elements) output.numbers.push_back(static_cast<float>(value));
      }
      return {};
    }));
  }
  return expected;
}

namespace {

/// The lowest and the highest result that `compare` allows, and the expected result rounded to the type.
struct Allowed {
  double low;
  double rounded;
  double high;
};

template <class Element>
Allowed allowed_for(double exact, double tolerance, float scale, double absolute) {
  // The f32 result may also lose digits below the smallest subnormal number of f32.
  const double slack =
      std::isfinite(exact) ? std::abs(exact) * tolerance + absolute + std::numeric_limits<float>::denorm_min() : 0;
  return {as_number(store<Element>(exact - slack, scale)), as_number(store<Element>(exact, scale)),
          as_number(store<Element>(exact + slack, scale))};
}

/// Returns the distance from a number of the type to the next number that is farther from zero.
template <class Element>
double step_at(double value) {
  if constexpr (std::same_as<Element, std::int8_t>) return 1;
  constexpr bool is_f8 = std::same_as<Element, Float8E4M3FN>;
  constexpr int digits = is_f8 ? 4 : std::same_as<Element, float> ? 24 : std::same_as<Element, Eigen::half> ? 11 : 8;
  constexpr int lowest = is_f8 ? -5 : std::same_as<Element, Eigen::half> ? -13 : -125;
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1., std::max(exponent, lowest) - digits);
}

}  // namespace

Errors& Errors::operator+=(const Errors& other) {
  results += other.results;
  off += other.off;
  beyond += other.beyond;
  of_bound = std::max(of_bound, other.of_bound);
  beyond_size = std::max(beyond_size, other.beyond_size);
  beyond_error = std::max(beyond_error, other.beyond_error);
  from_tie = std::max(from_tie, other.from_tie);
  return *this;
}

Errors errors_of(const HostTensor& found, const ExpectedOutput& expected, double tolerance, float scale,
                 double absolute) {
  Errors errors;
  if (expected.numbers.empty()) return errors;
  double largest = 0;
  const TensorDesc desc{.dtype = found.desc.dtype, .layout = found.desc.layout, .extents = expected.extents};
  check(dispatch_and_f8(desc.dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* stored = reinterpret_cast<const Element*>(found.bytes.data());
    for_each_element(desc, [&](std::int64_t at, std::int64_t linear) {
      if (linear < 0) return;
      const double value = as_number(stored[at]);
      const double exact = static_cast<double>(expected.numbers[static_cast<std::size_t>(linear)]);
      const auto [low, rounded, high] = allowed_for<Element>(exact, tolerance, scale, absolute);
      if (!std::isfinite(value) || !std::isfinite(rounded) || !std::isfinite(exact)) return;
      ++errors.results;
      largest = std::max(largest, std::abs(exact));
      if (value == rounded) return;
      ++errors.off;
      errors.of_bound = std::max(errors.of_bound, (value - rounded) / ((value < rounded ? low : high) - rounded));
      constexpr bool is_i8 = std::same_as<Element, std::int8_t>;
      const double unit = is_quantized(desc.dtype) ? static_cast<double>(scale) : 1;
      if (std::abs(value - rounded) > step_at<Element>(rounded)) {
        ++errors.beyond;
        errors.beyond_size = std::max(errors.beyond_size, std::abs(exact));
        errors.beyond_error = std::max(errors.beyond_error, std::abs(value * unit - exact));
      } else if (is_i8) {
        errors.from_tie = std::max(errors.from_tie, std::abs(exact / unit - (value + rounded) / 2));
      }
    });
    return {};
  }));
  if (errors.beyond > 0 && largest > 0) {
    errors.beyond_size /= largest;
    errors.beyond_error /= largest;
  }
  return errors;
}

std::string compare(const HostTensor& found, const ExpectedOutput& expected, double tolerance, float scale,
                    double absolute) {
  std::string message;
  const TensorDesc desc{.dtype = found.desc.dtype, .layout = found.desc.layout, .extents = expected.extents};
  if (std::ssize(found.bytes) < desc.storage_bytes()) {
    return "the output has " + std::to_string(found.bytes.size()) + " bytes; " + to_string(desc) + " has " +
           std::to_string(desc.storage_bytes());
  }
  check(dispatch_every(desc.dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* stored = reinterpret_cast<const Element*>(found.bytes.data());
    std::int64_t wrong = 0;
    for_each_element(desc, [&](std::int64_t at, std::int64_t linear) {
      std::string found_and_allowed;
      if constexpr (is_plain_integer<Element>) {
        const std::int64_t allowed = expected.integers[static_cast<std::size_t>(linear)];
        if (static_cast<std::int64_t>(stored[at]) == allowed) return;
        found_and_allowed = std::to_string(stored[at]) + ", expected " + std::to_string(allowed);
      } else {
        const double value = as_number(stored[at]);
        const double exact = linear < 0 ? 0 : static_cast<double>(expected.numbers[static_cast<std::size_t>(linear)]);
        const auto [low, rounded, high] = allowed_for<Element>(exact, tolerance, scale, absolute);
        if (value >= low && value <= high) return;
        if (std::isnan(value) && std::isnan(low)) return;
        found_and_allowed = std::to_string(value) + ", expected " + std::to_string(low) + " to " + std::to_string(high);
      }
      if (++wrong == 1) {
        message =
            (linear < 0 ? "the padding at stored element " + std::to_string(at) : "element " + std::to_string(linear)) +
            " of " + to_string(desc) + ": found " + found_and_allowed;
      }
    });
    if (wrong > 1) message += "; " + std::to_string(wrong) + " elements are wrong";
    return {};
  }));
  return message;
}

namespace {

/// Runs the iterations of a loop in groups of 1000, the last group first, as threads in any order might run them.
const CpuContext in_pieces{[](std::int64_t count, const CpuContext::Body& body) {
  constexpr std::int64_t piece = 1000;
  for (std::int64_t begin = (count - 1) / piece * piece; begin >= 0; begin -= piece) {
    body(begin, std::min(begin + piece, count));
  }
}};

bool is_finite(const HostTensor& tensor) {
  bool finite = true;
  check(dispatch_every(tensor.desc.dtype, [&](auto element) -> Status {
    using Element = decltype(element);
    const auto* stored = reinterpret_cast<const Element*>(tensor.bytes.data());
    for_each_element(tensor.desc,
                     [&](std::int64_t at, std::int64_t) { finite = finite && std::isfinite(as_number(stored[at])); });
    return {};
  }));
  return finite;
}

/// Returns a description of the first result that is NaN, or that is infinite for inputs of Fill::normal; an empty
/// string if there is no such result.
std::string find_overflow(const ExpectedOutput& expected, Fill fill) {
  const auto found = std::find_if(expected.numbers.begin(), expected.numbers.end(), [&](float number) {
    return std::isnan(number) || (std::isinf(number) && fill == Fill::normal);
  });
  if (found == expected.numbers.end()) return "";
  return "element " + std::to_string(found - expected.numbers.begin()) + " of " + to_string(expected.extents) +
         ": the reference kernel computes " + (std::isnan(*found) ? "NaN" : "infinity") +
         " from finite inputs\nPrevent the overflow in the kernel, or write `.may_overflow = true` in the case if it "
         "is correct";
}

std::string check_refusal(const OperatorCase& test, const std::string& message) {
  if (test.refused.empty()) return "the operator refuses the case: " + message;
  if (message.find(test.refused) != std::string::npos) return "";
  return "the operator refuses the case with: " + message +
         "\nthe case expects a message that contains: " + test.refused;
}

}  // namespace

std::string check_coverage(const OperatorCases& all) {
  std::string lacking;
  std::set<std::string> names;
  for (const OperatorCase& test : all.cases) {
    if (!names.insert(test.name).second) lacking += test.name + ": two cases have this name\n";
    if (&test.op->type() != all.type) lacking += test.name + ": the case creates another operator\n";
  }
  for (const TypeRow& row : all.type->type_rows) {
    const bool has_case = std::any_of(all.cases.begin(), all.cases.end(), [&](const OperatorCase& test) {
      return test.refused.empty() && matching_row(*all.type, test.inputs) == &row;
    });
    if (!has_case)
      lacking +=
          "there is no case with an input of " + case_name({row.formats[0].dtype, row.formats[0].layout, {}}) + "\n";
  }
  const bool refuses =
      std::any_of(all.cases.begin(), all.cases.end(), [](const OperatorCase& test) { return !test.refused.empty(); });
  return refuses ? lacking : lacking + "there is no case that the operator must refuse\n";
}

std::string check_on_cpu(const OperatorCase& test) {
  std::vector<TensorDesc> descs;
  try {
    descs = output_descs(*test.op, test.inputs, test.shape_values);
    // An output shape cannot be inferred, so the case is refused when an engine is built.
  } catch (const std::invalid_argument& error) {
    return check_refusal(test, error.what());
  }
  if (const Status status = test.op->check({test.inputs, descs}); !status.ok()) {
    if (test.op->run_cpu({test.inputs, descs}, {}, {}).ok())
      return "`check` refuses the case, but the reference kernel runs it";
    return check_refusal(test, status.message());
  }
  if (!test.refused.empty())
    return "the operator does not refuse the case; expected a message that contains: " + test.refused;
  if (test.large || test.inputs[0].layout != Layout::linear) return "";

  const std::vector<HostTensor> inputs = make_inputs(test);
  std::vector<const void*> input_addresses;
  for (const HostTensor& input : inputs) input_addresses.push_back(input.bytes.data());
  std::vector<HostTensor> outputs;
  std::vector<void*> output_addresses;
  for (const TensorDesc& desc : descs) {
    outputs.push_back({desc, std::vector<std::byte>(static_cast<std::size_t>(desc.storage_bytes()), std::byte{0xA5})});
  }
  for (HostTensor& output : outputs) output_addresses.push_back(output.bytes.data());
  const Status status = test.op->run_cpu({test.inputs, descs}, {input_addresses, output_addresses, nullptr}, in_pieces);
  if (!status.ok()) return "the reference kernel failed: " + status.message();
  const auto expected = expected_outputs(*test.op, inputs, test.shape_values);
  const OperatorType& type = test.op->type();
  const bool may_overflow = test.may_overflow || !std::all_of(inputs.begin(), inputs.end(), is_finite);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::string overflow = may_overflow ? "" : find_overflow(expected[i], test.fill);
    if (!overflow.empty()) return overflow;
    const float scale = scale_of(*test.op, type.ports[type.input_count() + i].name);
    const std::string wrong = compare(outputs[i], expected[i], f32_error(4), scale, test.absolute);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace graft::ops
