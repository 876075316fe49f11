// Operators that are a formula of others: SwiGLU, Celu in 16 bits, Mod of real numbers, CumProd, Det of small matrices,
// the largest of truth values, and the bits of integers.
#include <fmt/format.h>

#include <algorithm>

#include "passes/lowerings/lowering.hpp"

namespace graft::passes {
namespace {

std::string i64(Replacement& result, const std::string& name, std::int64_t value) {
  return result.constant(name, ints_tensor({}, {value}));
}

int bits_of_type(onnx::ElementType type) {
  using enum onnx::ElementType;
  if (type == u8 || type == i8) return 8;
  return type == i32 ? 32 : 0;
}

/// Integers of `bits` bits in i64 as TensorRT computes them come back to their type: above the highest they begin anew.
void give_wrapped(Replacement& result, const std::string& x, onnx::ElementType type) {
  const std::int64_t range = std::int64_t{1} << bits_of_type(type);
  if (type == onnx::ElementType::u8) {
    result.line(fmt::format("wrapped = Mod({}, {})", x, i64(result, "range", range)));
  } else {
    result.line(fmt::format("raised = Add({}, {})", x, i64(result, "half_range", range / 2)));
    result.line(fmt::format("modulo = Mod(raised, {})", i64(result, "range", range)));
    result.line("wrapped = Sub(modulo, half_range)");
  }
  result.line(fmt::format("y0 = Cast<to={}>(wrapped)", text_of(type)));
}

}  // namespace

std::optional<Replacement> lower_swiglu(Site& site) {
  if (!site.is_real(0)) return site.no("its type is not known");
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
  if (!site.is_real(0) || site.type(0) == onnx::ElementType::f32) return std::nullopt;
  Replacement result;
  const std::string x = result.in_f32("x0", site.type(0));
  result.give("y0", site.type(0), fmt::format("Celu<alpha={:#}>({})", site.node().float_or("alpha", 1), x));
  result.summary = "Celu in f32";
  return result;
}

std::optional<Replacement> lower_mod(Site& site) {
  if (!site.is_real(0) || site.node().int_or("fmod", 0) != 0) return std::nullopt;
  Replacement result;
  const std::string x = result.in_f32("x0", site.type(0));
  const std::string by = result.in_f32("x1", site.type(1));
  const std::string zero = result.constant("zero", f32_tensor({}, {0}));
  // fmod has the sign of x, this one that of the divisor.
  result.line(fmt::format("rest = Mod<fmod=1>({}, {})", x, by));
  result.line(fmt::format("signs = Mul(rest, {})", by));
  result.line(fmt::format("is_other = Less(signs, {})", zero));
  result.line(fmt::format("turned = Add(rest, {})", by));
  result.give("y0", site.type(0), "Where(is_other, turned, rest)");
  result.summary = "Mod with fmod = 1, and the divisor added where the sign differs";
  return result;
}

std::optional<Replacement> lower_boolean_reduction(Site& site) {
  if (site.type(0) != onnx::ElementType::boolean) return std::nullopt;
  if (site.node().int_or("noop_with_empty_axes", 0) != 0) return site.no("noop_with_empty_axes is set");
  std::string axes;
  if (site.has_input(1)) {
    const auto given = site.ints(1);
    if (!given) return site.no("its axes are not constants");
    if (!given->empty()) axes = fmt::format("axes={}, ", list_text(*given));
  }
  Replacement result;
  result.line("numbers = Cast<to=int32>(x0)");
  result.line(fmt::format("reduced = {}<{}keepdims={}>(numbers)", site.node().op_type, axes,
                          site.node().int_or("keepdims", 1)));
  result.line("y0 = Cast<to=bool>(reduced)");
  result.summary = fmt::format("{} of 0 and 1", site.node().op_type);
  return result;
}

std::optional<Replacement> lower_cum_prod(Site& site) {
  const auto given = site.ints(1);
  const Shape* shape = site.shape(0);
  if (!given || given->size() != 1 || shape == nullptr) return site.no("its axis is not a constant");
  if (!site.is_real(0)) return site.no("its numbers are not real");
  const auto rank = static_cast<std::int64_t>(shape->size());
  const std::int64_t axis = given->front() < 0 ? given->front() + rank : given->front();
  const auto length = site.size(0, axis);
  if (!length || *length < 2) return site.no("the length of its axis is open, or below 2");
  const bool reverse = site.node().int_or("reverse", 0) != 0;
  const bool exclusive = site.node().int_or("exclusive", 0) != 0;

  Replacement result;
  const std::string one = result.constant("one", f32_tensor({}, {1}));
  const std::string along = result.constant("along", ints_tensor({1}, {axis}));
  std::string x = result.in_f32("x0", site.type(0));
  // Moves the numbers on by `distance` places; those that come in are 1.
  const auto moved = [&](std::int64_t distance, const std::string& name) {
    const std::string from = result.constant(name + "_from", ints_tensor({1}, {reverse ? distance : 0}));
    const std::string to =
        result.constant(name + "_to", ints_tensor({1}, {reverse ? *length : *length - distance}));
    std::vector<std::int64_t> pads(static_cast<std::size_t>(2 * rank), 0);
    pads[static_cast<std::size_t>(reverse ? axis + rank : axis)] = distance;
    const std::string padding = result.constant(name + "_pads", ints_tensor({2 * rank}, pads));
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
  result.give("y0", site.type(0), fmt::format("Identity({})", x));
  result.summary = fmt::format("{} products with the numbers 1, 2, 4 ... places before", steps);
  return result;
}

std::optional<Replacement> lower_det(Site& site) {
  const Shape* shape = site.shape(0);
  const auto size = site.size(0, -1);
  if (shape == nullptr || shape->size() < 2 || !size || site.size(0, -2) != size) return site.no("its matrices are open");
  if (!site.is_real(0)) return site.no("its numbers are not real");
  if (*size < 1 || *size > 4) return site.no(fmt::format("its matrices are {0} x {0}; allowed are at most 4 x 4", *size));
  Replacement result;
  std::vector<std::int64_t> flat(shape->size() - 2, 0);
  flat.push_back(*size * *size);
  const std::string target =
      result.constant("flat_shape", ints_tensor({static_cast<std::int64_t>(flat.size())}, flat));
  result.line(fmt::format("flat = Reshape({}, {})", result.in_f32("x0", site.type(0)), target));
  for (std::int64_t i = 0; i < *size * *size; ++i) {
    result.line(fmt::format("e{0} = Gather<axis=-1>(flat, {1})", i, i64(result, fmt::format("place{}", i), i)));
  }
  int count = 0;
  const auto combine = [&](const char* op, const std::string& a, const std::string& b) {
    const std::string name = fmt::format("t{}", count++);
    result.line(fmt::format("{} = {}({}, {})", name, op, a, b));
    return name;
  };
  /// Of the rows r and r + 1, columns a and b.
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
    // By the minors of the upper and of the lower two rows.
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
  result.summary = fmt::format("the sum of products of a {0} x {0} matrix", *size);
  return result;
}

std::optional<Replacement> lower_bit_shift(Site& site) {
  const int bits = bits_of_type(site.type(0));
  if (bits == 0) return site.no(fmt::format("its integers are {}, which TensorRT does not have, or too long", to_string(site.type(0))));
  Replacement result;
  const std::string most = result.constant("most", f32_tensor({}, {static_cast<double>(bits - 1)}));
  const std::string two = result.constant("two", f32_tensor({}, {2}));
  result.line("number = Cast<to=int64>(x0)");
  result.line("places = Cast<to=float>(x1)");
  result.line(fmt::format("limited = Min(places, {})", most));
  result.line(fmt::format("power = Pow({}, limited)", two));
  result.line("factor = Cast<to=int64>(power)");
  if (site.node().string_or("direction", "") == "LEFT") {
    result.line("shifted = Mul(number, factor)");
    give_wrapped(result, "shifted", site.type(0));
  } else {
    result.line("lost = Mod(number, factor)");
    result.line("kept = Sub(number, lost)");
    result.line("shifted = Div(kept, factor)");
    result.line(fmt::format("y0 = Cast<to={}>(shifted)", text_of(site.type(0))));
  }
  result.summary = "a product or quotient with a power of two";
  return result;
}

std::optional<Replacement> lower_bitwise_not(Site& site) {
  const int bits = bits_of_type(site.type(0));
  if (bits == 0) return site.no(fmt::format("its integers are {}, which TensorRT does not have, or too long", to_string(site.type(0))));
  Replacement result;
  result.line("number = Cast<to=int64>(x0)");
  result.line(fmt::format("other = Sub({}, number)", i64(result, "all", site.type(0) == onnx::ElementType::u8 ? 255 : -1)));
  result.line(fmt::format("y0 = Cast<to={}>(other)", text_of(site.type(0))));
  result.summary = "the difference to all bits";
  return result;
}

std::optional<Replacement> lower_bitwise(Site& site) {
  const int bits = bits_of_type(site.type(0));
  if (bits == 0) return site.no(fmt::format("its integers are {}, which TensorRT does not have, or too long", to_string(site.type(0))));
  Replacement result;
  const std::int64_t range = std::int64_t{1} << bits;
  i64(result, "all_range", range);
  result.line("a = Cast<to=int64>(x0)");
  result.line("b = Cast<to=int64>(x1)");
  result.line("a_bits = Mod(a, all_range)");  // not negative
  const auto given = site.ints(1);
  std::string sum;
  int count = 0;
  const auto add = [&](const std::string& part) {
    if (sum.empty()) {
      sum = part;
      return;
    }
    result.line(fmt::format("sum{} = Add({}, {})", count, sum, part));
    sum = fmt::format("sum{}", count);
  };
  if (given && given->size() == 1) {
    // Of a mask that is constant, each row of set bits at once.
    const std::int64_t mask = (given->front() % range + range) % range;
    for (int low = 0; low < bits; ++low) {
      if (((mask >> low) & 1) == 0) continue;
      int high = low;
      while (high < bits && ((mask >> high) & 1) != 0) ++high;
      i64(result, fmt::format("low{}", count), std::int64_t{1} << low);
      i64(result, fmt::format("span{}", count), std::int64_t{1} << (high - low));
      result.line(fmt::format("down{0} = Div(a_bits, low{0})", count));
      result.line(fmt::format("cut{0} = Mod(down{0}, span{0})", count));
      result.line(fmt::format("up{0} = Mul(cut{0}, low{0})", count));
      add(fmt::format("up{}", count));
      ++count;
      low = high;
    }
    if (sum.empty()) {
      result.line(fmt::format("nothing = Mul(a, {})", i64(result, "zero", 0)));
      sum = "nothing";
    }
  } else {
    i64(result, "two", 2);
    result.line("b_bits = Mod(b, all_range)");
    for (; count < bits; ++count) {
      i64(result, fmt::format("low{}", count), std::int64_t{1} << count);
      result.line(fmt::format("a_down{0} = Div(a_bits, low{0})", count));
      result.line(fmt::format("b_down{0} = Div(b_bits, low{0})", count));
      result.line(fmt::format("a_bit{0} = Mod(a_down{0}, two)", count));
      result.line(fmt::format("b_bit{0} = Mod(b_down{0}, two)", count));
      result.line(fmt::format("bit{0} = Mul(a_bit{0}, b_bit{0})", count));
      result.line(fmt::format("up{0} = Mul(bit{0}, low{0})", count));
      add(fmt::format("up{}", count));
    }
  }
  // a | b = a + b - (a & b), a ^ b = a + b - 2 (a & b)
  std::string bits_of_both = sum;
  if (!site.node().is("BitwiseAnd")) {
    result.line("together = Add(a, b)");
    std::string common = sum;
    if (site.node().is("BitwiseXor")) {
      result.line(fmt::format("twice = Add({0}, {0})", sum));
      common = "twice";
    }
    result.line(fmt::format("rest = Sub(together, {})", common));
    bits_of_both = "rest";
  }
  give_wrapped(result, bits_of_both, site.type(0));
  result.summary = "arithmetic with the bits";
  return result;
}

}  // namespace graft::passes
