// Operators that are a formula of other operators.
//
//   MatMul(v, m)         becomes   Squeeze(MatMul(Unsqueeze(v), m)), for a vector and more than one matrix
//   SwiGLU(x, z)         becomes   Mul(Mul(x, Sigmoid(x)), z)
//   Celu(x)              becomes   Cast(Celu(Cast(x))), in f16 and bf16
//   Mod(x, y)            becomes   r = Mod<fmod=1>(x, y); Where(r * y < 0, r + y, r), for floating-point numbers
//   CumProd(x)           becomes   products with the elements 1, 2, 4 ... positions before
//   Det(x)               becomes   the sum of products of a small matrix
//   ReduceMax(x)         becomes   Greater(ReduceMax(Cast(x)), 0), for booleans
//   DepthToSpace(x)      becomes   Cast(DepthToSpace(Cast(x))), for booleans; SpaceToDepth likewise
//   BitShift(x, n)       becomes   a product or a quotient with a power of two
//   BitwiseAnd(x, y)     becomes   quotients and remainders by powers of two; BitwiseOr, Xor and Not follow from it
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

std::string i32(Replacement& result, const std::string& name, std::int64_t value) {
  return result.constant(name,
                         onnx::TensorData::from_numbers(onnx::ElementType::i32, {}, {static_cast<double>(value)}));
}

/// Returns the number of bits of u8, i8 or i32, or 0 for any other type.
int bits_of_type(onnx::ElementType type) {
  using enum onnx::ElementType;
  if (type == u8 || type == i8) return 8;
  return type == i32 ? 32 : 0;
}

std::string no_such_integers(const Site& site) {
  return fmt::format("its inputs are {}; only u8, i8 and i32 are supported", to_string(site.type(0)));
}

/// Writes BitwiseAnd, BitwiseOr or BitwiseXor of the inputs x0 and x1, named a and b, as i32 arithmetic.
class BitwiseWriter {
 public:
  explicit BitwiseWriter(const Site& site)
      : site_(site),
        bits_(bits_of_type(site.type(0))),
        is_signed_(site.type(0) != onnx::ElementType::u8),
        low_bits_(is_signed_ ? bits_ - 1 : bits_) {}

  Replacement write() {
    i32(result_, "zero", 0);
    i32(result_, "lowest", is_signed_ ? -(std::int64_t{1} << low_bits_) : 0);
    separate_sign("a", "x0");
    separate_sign("b", "x1");
    const auto mask = site_.ints(1);
    if (mask && mask->size() == 1) {
      add_runs_of(mask->front());
    } else {
      add_products_of_bits();
    }
    const std::string low = combine_low_bits();
    result_.line(fmt::format("y0 = Cast<to={}>({})", to_string(site_.type(0)), is_signed_ ? with_sign(low) : low));
    if (bits_ == 32) {
      result_.by_definition =
          "by definition: the result is the sum of the bits set in both integers; the CPU engine computes such "
          "integers in f32, so it cannot verify this; the lowering is tested with results of ONNX's own tests and of "
          "ONNX Runtime";
    }
    result_.summary = "arithmetic on the single bits";
    return std::move(result_);
  }

 private:
  /// Writes the nodes that compute `<name>_is_negative`, the sign of `input`, and `<name>_low`, the non-negative number
  /// of its lower bits. An unsigned input has no sign.
  void separate_sign(const char* name, const char* input) {
    result_.line(fmt::format("{} = Cast<to=int32>({})", name, input));
    if (!is_signed_) {
      result_.line(fmt::format("{0}_low = Identity({0})", name));
      return;
    }
    result_.line(fmt::format("{0}_is_negative = Less({0}, zero)", name));
    result_.line(fmt::format("{0}_raised = Sub({0}, lowest)", name));
    result_.line(fmt::format("{0}_low = Where({0}_is_negative, {0}_raised, {0})", name));
  }

  /// Adds the tensor `part` to the sum `common_`, which in the end contains the bits that are set in both inputs.
  void add(const std::string& part) {
    if (!common_.empty()) {
      result_.line(fmt::format("sum{} = Add({}, {})", parts_, common_, part));
      common_ = fmt::format("sum{}", parts_);
    } else {
      common_ = part;
    }
    ++parts_;
  }

  /// Writes the nodes that extract `span` bits of `<of>_low`, from bit `low` on, as a number of 0 to 2^span - 1, and
  /// returns the name of the result.
  std::string cut(const char* of, int low, int span) {
    std::string name = fmt::format("{}_low", of);
    if (low != 0) {
      i32(result_, fmt::format("from{}", low), std::int64_t{1} << low);
      result_.line(fmt::format("{0}_from{1} = Div({0}_low, from{1})", of, low));
      name = fmt::format("{}_from{}", of, low);
    }
    if (low + span < low_bits_) {
      i32(result_, fmt::format("span{}", span), std::int64_t{1} << span);
      result_.line(fmt::format("{0}_cut{1} = Mod({2}, span{3})", of, low, name, span));
      name = fmt::format("{}_cut{}", of, low);
    }
    return name;
  }

  /// Writes a multiplication of the tensor `name` by 2^low, which reverses the shift of cut(), and returns the name of
  /// the result.
  std::string back(const std::string& name, int low) {
    if (low == 0) return name;
    result_.line(fmt::format("up{0} = Mul({1}, from{0})", low, name));
    return fmt::format("up{}", low);
  }

  /// Adds to `common_` the bits of `a` that are set in the constant `mask`, one consecutive run of bits at a time.
  void add_runs_of(std::int64_t mask) {
    for (int low = 0; low < low_bits_; ++low) {
      if (((mask >> low) & 1) == 0) continue;
      int high = low;
      while (high < low_bits_ && ((mask >> high) & 1) != 0) ++high;
      add(back(cut("a", low, high - low), low));
      low = high;
    }
    if (!common_.empty()) return;
    result_.line("nothing = Mul(a_low, zero)");
    common_ = "nothing";
  }

  void add_products_of_bits() {
    for (int low = 0; low < low_bits_; ++low) {
      const std::string a = cut("a", low, 1);
      const std::string b = cut("b", low, 1);
      result_.line(fmt::format("bit{} = Mul({}, {})", low, a, b));
      add(back(fmt::format("bit{}", low), low));
    }
  }

  /// Returns the name of the lower bits of the result, computed from `common_` = a & b: a | b = (a - common) + b, a ^ b
  /// = (a - common) + (b - common). Neither sum overflows.
  std::string combine_low_bits() {
    if (site_.node().is("BitwiseAnd")) return common_;
    const bool is_or = site_.node().is("BitwiseOr");
    result_.line(fmt::format("a_alone = Sub(a_low, {})", common_));
    if (!is_or) result_.line(fmt::format("b_alone = Sub(b_low, {})", common_));
    result_.line(fmt::format("low = Add(a_alone, {})", is_or ? "b_low" : "b_alone"));
    return "low";
  }

  std::string with_sign(const std::string& low) {
    const std::string of_signs = site_.node().op_type.substr(std::string_view("Bitwise").size());  // And, Or, Xor
    result_.line(fmt::format("is_negative = {}(a_is_negative, b_is_negative)", of_signs));
    result_.line(fmt::format("lowered = Add({}, lowest)", low));
    result_.line(fmt::format("signed = Where(is_negative, lowered, {})", low));
    return "signed";
  }

  const Site& site_;
  int bits_;
  bool is_signed_;
  int low_bits_;
  Replacement result_;
  std::string common_;
  int parts_ = 0;
};

/// Writes a BitShift of i32 or i64. No number exceeds the range of the type: a shift by `places` cuts the bits that are
/// lost before it multiplies, and adds the sign last.
class SignedShiftWriter {
 public:
  explicit SignedShiftWriter(const Site& site)
      : site_(site), type_(site.type(0)), bits_(type_ == onnx::ElementType::i32 ? 32 : 64) {}

  Replacement write() {
    number("zero", 0);
    number("bits", bits_);
    // Other numbers of places shift out all bits.
    result_.line("is_below = Less(x1, zero)");
    result_.line("is_above = GreaterOrEqual(x1, bits)");
    result_.line("is_outside = Or(is_below, is_above)");
    result_.line("places = Where(is_outside, zero, x1)");
    result_.line("is_negative = Less(x0, zero)");
    if (site_.node().string_or("direction", "") == "LEFT") {
      shift_left();
    } else {
      shift_right();
    }
    result_.by_definition =
        "by definition: a shift is a product with or a quotient by a power of two; the CPU engine computes such "
        "integers in f32, so it cannot verify this; the lowering is tested with results of ONNX's own tests and of "
        "onnx.reference";
    result_.summary = "a product with or a quotient by a power of two";
    return std::move(result_);
  }

 private:
  void number(const std::string& name, std::int64_t value) { table(name, {value}, {}); }

  void table(const std::string& name, const std::vector<std::int64_t>& values, const std::vector<std::int64_t>& dims) {
    onnx::TensorData tensor = ints_tensor(dims, values);
    if (type_ == onnx::ElementType::i32) {
      tensor = onnx::TensorData::from_numbers(type_, dims, std::vector<double>(values.begin(), values.end()));
    }
    result_.constant(name, std::move(tensor));
  }

  /// Writes the nodes that select entry `places` of a table with an entry for each number of places.
  void select(const std::string& name, const std::vector<std::int64_t>& values) {
    table(name + "_table", values, {bits_});
    result_.line(fmt::format("{0} = Gather<axis=0>({0}_table, places)", name));
  }

  [[nodiscard]] static std::int64_t power(int exponent) { return std::int64_t{1} << exponent; }

  /// Writes the quotient of `x`, or of -1 - x if x is negative, both of which are not negative.
  void shift_right() {
    std::vector<std::int64_t> powers;
    for (int places = 0; places < bits_ - 1; ++places) powers.push_back(power(places));
    powers.push_back(power(bits_ - 2));
    number("all", -1);
    select("divisor", powers);
    result_.line("inverse = Sub(all, x0)");
    result_.line("bits_of_x = Where(is_negative, inverse, x0)");
    result_.line("quotient = Div(bits_of_x, divisor)");
    number("most", bits_ - 2);
    result_.line("is_last = Greater(places, most)");
    result_.line("has_none = Or(is_outside, is_last)");
    result_.line("shifted = Where(has_none, zero, quotient)");
    result_.line("inverse_shifted = Sub(all, shifted)");
    result_.line("y0 = Where(is_negative, inverse_shifted, shifted)");
  }

  /// Writes the product of the bits that are kept. The bit before them becomes the sign.
  void shift_left() {
    std::vector<std::int64_t> ranges{power(bits_ - 2)};
    std::vector<std::int64_t> factors{1};
    for (int places = 1; places < bits_; ++places) {
      ranges.push_back(power(bits_ - 1 - places));
      factors.push_back(places == bits_ - 1 ? 1 : power(places));
    }
    number("two", 2);
    number("lowest", bits_ == 32 ? -power(31) : std::numeric_limits<std::int64_t>::min());
    select("range", ranges);
    select("factor", factors);
    result_.line("raised = Sub(x0, lowest)");
    result_.line("low = Where(is_negative, raised, x0)");
    result_.line("kept = Mod(low, range)");
    result_.line("product = Mul(kept, factor)");
    result_.line("high = Div(low, range)");
    result_.line("sign = Mod(high, two)");
    result_.line("is_positive = Equal(sign, zero)");
    result_.line("lowered = Add(product, lowest)");
    result_.line("moved = Where(is_positive, product, lowered)");
    result_.line("is_same = Equal(places, zero)");
    result_.line("same_or_moved = Where(is_same, x0, moved)");
    result_.line("y0 = Where(is_outside, zero, same_or_moved)");
  }

  const Site& site_;
  onnx::ElementType type_;
  int bits_;
  Replacement result_;
};

}  // namespace

std::optional<Replacement> lower_vector_product(Site& site) {
  if (!site.is_real(0)) return site.no_type(0);
  Replacement result;
  // A vector on the left is a matrix of one row, whose axis the result of ONNX does not have.
  result.line(fmt::format("row = Unsqueeze(x0, {})", result.ints("first", {0})));
  result.line("rows = MatMul(row, x1)");
  result.line(fmt::format("y0 = Squeeze(rows, {})", result.ints("second_to_last", {-2})));
  result.summary = "MatMul of a matrix of one row";
  return result;
}

std::optional<Replacement> lower_swiglu(Site& site) {
  if (!site.is_real(0)) return site.no_type(0);
  Replacement result;
  const float alpha = site.node().float_or("alpha", 1);
  std::string gate = "x0";
  if (alpha != 1) {
    const std::string factor = result.constant("alpha", onnx::TensorData::from_numbers(site.type(0), {}, {alpha}));
    result.line(fmt::format("bent = Mul(x0, {})", factor));
    gate = "bent";
  }
  result.line(fmt::format("open = Sigmoid({})", gate));
  result.line("swish = Mul(x0, open)");
  result.line("y0 = Mul(swish, x1)");
  result.summary = "Sigmoid and Mul";
  return result;
}

std::optional<Replacement> lower_celu(Site& site) {
  Replacement result;
  const std::string x = result.in_f32("x0", site.type(0));
  result.give("y0", site.type(0), fmt::format("Celu<alpha={:#}>({})", site.node().float_or("alpha", 1), x));
  result.summary = "Celu in f32";
  return result;
}

std::optional<Replacement> lower_mod(Site& site) {
  if (!site.is_real(0)) return std::nullopt;
  Replacement result;
  const std::string x = result.in_f32("x0", site.type(0));
  const std::string by = result.in_f32("x1", site.type(1));
  const std::string zero = result.constant("zero", f32_tensor({}, {0}));
  // The result of fmod has the sign of x, the result of this Mod that of the divisor.
  result.line(fmt::format("rest = Mod<fmod=1>({}, {})", x, by));
  result.line(fmt::format("signs = Mul(rest, {})", by));
  result.line(fmt::format("is_other = Less(signs, {})", zero));
  result.line(fmt::format("turned = Add(rest, {})", by));
  result.give("y0", site.type(0), "Where(is_other, turned, rest)");
  result.summary = "Mod with fmod = 1, and the divisor added where the sign differs";
  return result;
}

std::optional<Replacement> lower_boolean_reduction(Site& site) {
  if (site.node().int_or("noop_with_empty_axes", 0) != 0)
    return site.no("noop_with_empty_axes is set, which the rewrite does not support");
  std::string axes;
  if (site.has_input(1)) {
    const auto given = site.ints(1);
    if (!given) return site.no("its axes are not constants");
    if (!given->empty()) axes = fmt::format("axes={}, ", *given);
  }
  const Shape* shape = site.shape(0);
  if (shape == nullptr) return site.no("the rank of its input is unknown");
  if (std::any_of(shape->begin(), shape->end(), [](const Dim& dim) { return dim == Dim(0); }))
    return site.no("its input has no elements");
  Replacement result;
  result.line("numbers = Cast<to=int32>(x0)");
  result.line(fmt::format("reduced = {}<{}keepdims={}>(numbers)", site.node().op_type, axes,
                          site.node().int_or("keepdims", 1)));
  // ReduceMax of no elements returns the smallest integer, ReduceMin the largest.
  result.line(fmt::format("y0 = Greater(reduced, {})", i32(result, "zero", 0)));
  result.summary = fmt::format("{} of 0 and 1", site.node().op_type);
  return result;
}

std::optional<Replacement> lower_boolean_permutation(Site& site) {
  const onnx::Node& node = site.node();
  const std::string mode = node.is("DepthToSpace") ? fmt::format(", mode=\"{}\"", node.string_or("mode", "DCR")) : "";
  Replacement result;
  result.line("numbers = Cast<to=float>(x0)");
  result.line(fmt::format("moved = {}<blocksize={}{}>(numbers)", node.op_type, node.int_or("blocksize", 1), mode));
  result.line("y0 = Cast<to=bool>(moved)");
  result.summary = fmt::format("{} of 0 and 1", node.op_type);
  return result;
}

std::optional<Replacement> lower_cum_prod(Site& site) {
  const auto given = site.ints(1);
  const Shape* shape = site.shape(0);
  if (!given || given->size() != 1) return site.no("its axis is not a constant");
  if (shape == nullptr) return site.no("the rank of its input is unknown");
  const bool is_integer = site.type(0) == onnx::ElementType::i32 || site.type(0) == onnx::ElementType::i64;
  if (!site.is_real(0) && !is_integer)
    return site.no(fmt::format("the type of its input is {}; only f32, f16, bf16, i32 and i64 are supported",
                               to_string(site.type(0))));
  const auto rank = static_cast<std::int64_t>(shape->size());
  const std::int64_t axis = given->front() < 0 ? given->front() + rank : given->front();
  const auto length = site.size(0, axis);
  if (!length) return site.no_size("the length of its axis is dynamic");
  if (*length < 2) return site.no(fmt::format("the length of its axis is {}; it must be at least 2", *length));
  const bool reverse = site.node().int_or("reverse", 0) != 0;
  const bool exclusive = site.node().int_or("exclusive", 0) != 0;

  Replacement result;
  const std::string one = result.number("one", 1, is_integer ? site.type(0) : onnx::ElementType::f32);
  const std::string along = result.ints("along", {axis});
  std::string x = is_integer ? "x0" : result.in_f32("x0", site.type(0));
  // Moves the elements by `distance` places, and fills in 1.
  const auto moved = [&](std::int64_t distance, const std::string& name) {
    const std::string from = result.ints(name + "_from", {reverse ? distance : 0});
    const std::string to = result.ints(name + "_to", {reverse ? *length : *length - distance});
    std::vector<std::int64_t> pads(static_cast<std::size_t>(2 * rank), 0);
    pads[static_cast<std::size_t>(reverse ? axis + rank : axis)] = distance;
    const std::string padding = result.ints(name + "_pads", pads);
    result.line(fmt::format("{}_kept = Slice({}, {}, {}, {})", name, x, from, to, along));
    result.line(fmt::format("{0} = Pad({0}_kept, {1}, {2})", name, padding, one));
    return name;
  };
  if (exclusive) x = moved(1, "before");
  int steps = 0;
  for (std::int64_t distance = 1; distance < *length; distance *= 2, ++steps) {
    const std::string other = moved(distance, fmt::format("moved{}", steps));
    result.line(fmt::format("product{} = Mul({}, {})", steps, x, other));
    x = fmt::format("product{}", steps);
  }
  result.give("y0", is_integer ? onnx::ElementType::f32 : site.type(0), fmt::format("Identity({})", x));
  result.summary = fmt::format("{} products with the elements 1, 2, 4 ... positions before", steps);
  return result;
}

std::optional<Replacement> lower_det(Site& site) {
  const Shape* shape = site.shape(0);
  const auto size = site.size(0, -1);
  if (shape == nullptr || shape->size() < 2 || !size || site.size(0, -2) != size)
    return site.no_size("its matrices are not square, or their size is dynamic");
  if (!site.is_real(0)) return site.no_type(0);
  if (*size < 1 || *size > 4)
    return site.no(fmt::format("its matrices are {0} x {0}; only 1 x 1 to 4 x 4 is supported", *size));
  Replacement result;
  std::vector<std::int64_t> flat(shape->size() - 2, 0);
  flat.push_back(*size * *size);
  const std::string target = result.ints("flat_shape", flat);
  result.line(fmt::format("flat = Reshape({}, {})", result.in_f32("x0", site.type(0)), target));
  for (std::int64_t i = 0; i < *size * *size; ++i) {
    result.line(fmt::format("e{0} = Gather<axis=-1>(flat, {1})", i, result.integer(fmt::format("place{}", i), i)));
  }
  int count = 0;
  const auto combine = [&](const char* op, const std::string& a, const std::string& b) {
    const std::string name = fmt::format("t{}", count++);
    result.line(fmt::format("{} = {}({}, {})", name, op, a, b));
    return name;
  };
  /// Returns the name of the 2x2 determinant of the rows `row` and `row` + 1 and the columns `a` and `b`.
  const auto minor = [&](std::int64_t row, std::int64_t a, std::int64_t b) {
    const auto e = [&](std::int64_t r, std::int64_t c) { return fmt::format("e{}", r * *size + c); };
    return combine("Sub", combine("Mul", e(row, a), e(row + 1, b)), combine("Mul", e(row, b), e(row + 1, a)));
  };
  std::string det = "e0";
  if (*size == 2) det = minor(0, 0, 1);
  if (*size == 3) {
    const std::string first = combine("Mul", "e0", minor(1, 1, 2));
    const std::string second = combine("Mul", "e1", minor(1, 0, 2));
    const std::string third = combine("Mul", "e2", minor(1, 0, 1));
    det = combine("Add", combine("Sub", first, second), third);
  }
  if (*size == 4) {
    // The expansion by the minors of the upper and of the lower two rows.
    const auto term = [&](std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
      return combine("Mul", minor(0, a, b), minor(2, c, d));
    };
    det = combine("Sub", term(0, 1, 2, 3), term(0, 2, 1, 3));
    det = combine("Add", det, term(0, 3, 1, 2));
    det = combine("Add", det, term(1, 2, 0, 3));
    det = combine("Sub", det, term(1, 3, 0, 2));
    det = combine("Add", det, term(2, 3, 0, 1));
  }
  result.give("y0", site.type(0), fmt::format("Identity({})", det));
  result.by_definition =
      "by definition: a determinant is this sum of products; OpenVINO has no Det, and ONNX Runtime factorizes the "
      "matrix, which overflows f32 for other numbers; the lowering is tested with results of ONNX's own tests and of "
      "ONNX Runtime";
  result.summary = fmt::format("the determinant of a {0} x {0} matrix as a sum of products", *size);
  return result;
}

std::optional<Replacement> lower_bit_shift(Site& site) {
  if (site.type(0) == onnx::ElementType::i32 || site.type(0) == onnx::ElementType::i64) {
    return SignedShiftWriter(site).write();
  }
  if (site.type(0) != onnx::ElementType::u8) {
    return site.no(fmt::format("its inputs are {}; only u8, i32 and i64 are supported", to_string(site.type(0))));
  }
  Replacement result;
  result.line("number = Cast<to=int32>(x0)");
  result.line("places = Cast<to=float>(x1)");
  result.line(fmt::format("limited = Min(places, {})", result.constant("most", f32_tensor({}, {8}))));
  result.line(fmt::format("power = Pow({}, limited)", result.constant("two", f32_tensor({}, {2}))));
  result.line("factor = Cast<to=int32>(power)");
  if (site.node().string_or("direction", "") == "LEFT") {
    result.line("shifted = Mul(number, factor)");
    result.line(fmt::format("kept = Mod(shifted, {})", i32(result, "range", 256)));
    // OpenVINO 2026.4.1 limits the result to 255.
    result.by_definition =
        "by definition: bits shifted out of the byte are lost; the CPU engine limits to 255 instead, so it cannot "
        "verify this; the lowering is tested with results of ONNX's own tests and of ONNX Runtime";
  } else {
    result.line("kept = Div(number, factor)");
    // OpenVINO 2026.4.1 rounds some quotients up.
    result.by_definition =
        "by definition: the quotient by a power of two, cut off; the CPU engine rounds some quotients up, so it cannot "
        "verify this; the lowering is tested with results of ONNX's own tests and of ONNX Runtime";
  }
  result.line("y0 = Cast<to=uint8>(kept)");
  result.summary = "a product with or a quotient by a power of two";
  return result;
}

std::optional<Replacement> lower_bitwise_not(Site& site) {
  if (bits_of_type(site.type(0)) == 0) return site.no(no_such_integers(site));
  Replacement result;
  const std::string all = i32(result, "all", site.type(0) == onnx::ElementType::u8 ? 255 : -1);
  result.line("number = Cast<to=int32>(x0)");
  result.line(fmt::format("other = Sub({}, number)", all));
  result.line(fmt::format("y0 = Cast<to={}>(other)", to_string(site.type(0))));
  result.summary = "the difference from the number with all bits set";
  return result;
}

std::optional<Replacement> lower_bitwise(Site& site) {
  if (bits_of_type(site.type(0)) == 0) return site.no(no_such_integers(site));
  return BitwiseWriter(site).write();
}

}  // namespace graft::passes
