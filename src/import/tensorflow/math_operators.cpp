// Converts elementwise operators, comparisons, reductions and products.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "import/tensorflow/node_converter.hpp"
#include "import/tensorflow/products.hpp"

namespace graft::tensorflow {
namespace {

/// Operators that have the same inputs in ONNX and no attributes, with their ONNX names.
constexpr std::array<std::pair<std::string_view, std::string_view>, 45> same = {{
    {"Abs", "Abs"},
    {"Acos", "Acos"},
    {"Acosh", "Acosh"},
    {"Add", "Add"},
    {"AddV2", "Add"},
    {"Asin", "Asin"},
    {"Asinh", "Asinh"},
    {"Atan", "Atan"},
    {"Atanh", "Atanh"},
    {"Ceil", "Ceil"},
    {"Cos", "Cos"},
    {"Cosh", "Cosh"},
    {"Erf", "Erf"},
    {"Exp", "Exp"},
    {"Floor", "Floor"},
    {"Greater", "Greater"},
    {"Inv", "Reciprocal"},
    {"IsInf", "IsInf"},
    {"IsNan", "IsNaN"},
    {"Less", "Less"},
    {"Log", "Log"},
    {"LogicalAnd", "And"},
    {"LogicalNot", "Not"},
    {"LogicalOr", "Or"},
    {"Maximum", "Max"},
    {"Minimum", "Min"},
    {"Mul", "Mul"},
    {"Neg", "Neg"},
    {"Pow", "Pow"},
    {"RealDiv", "Div"},
    {"Reciprocal", "Reciprocal"},
    {"MatrixDeterminant", "Det"},
    {"Rint", "Round"},
    {"Sign", "Sign"},
    {"Sin", "Sin"},
    {"Sinh", "Sinh"},
    {"Sqrt", "Sqrt"},
    {"Sub", "Sub"},
    {"Tan", "Tan"},
    {"GreaterEqual", "GreaterOrEqual"},
    {"LessEqual", "LessOrEqual"},
    {"Equal", "Equal"},
    {"Div", "Div"},
    {"TruncateDiv", "Div"},
    {"LogicalXor", "Xor"},
}};

void same_operator(NodeConverter& node) {
  const auto* const found =
      std::find_if(same.begin(), same.end(), [&](const auto& entry) { return entry.first == node.op(); });
  std::vector<onnx::Value*> inputs;
  for (std::size_t i = 0; i < node.input_count(); ++i) inputs.push_back(node.input(i));
  if (inputs.empty()) node.fail("it has no input; it needs at least 1");
  node.give(node.add(std::string(found->second), std::move(inputs)));
}

/// AddN(a, b, ...) becomes Sum, or a chain of Add for integers, which ONNX's Sum does not support.
void sum_of_all(NodeConverter& node) {
  std::vector<onnx::Value*> inputs;
  for (std::size_t i = 0; i < node.input_count(); ++i) inputs.push_back(node.input(i));
  if (inputs.empty()) node.fail("it has no input; it needs at least 1");
  if (is_floating_point(node.type(0))) {
    node.give(node.add("Sum", std::move(inputs)));
    return;
  }
  onnx::Value* sum = inputs.size() == 1 ? node.add("Identity", {inputs[0]}) : inputs[0];
  for (std::size_t i = 1; i < inputs.size(); ++i) sum = node.add("Add", {sum, inputs[i]});
  node.give(sum);
}

void rounded(NodeConverter& node) {
  node.give(node.add(is_floating_point(node.type(0)) ? "Round" : "Identity", {node.input(0)}));
}

/// DivNoNan(x, y) becomes Where(y == 0, 0, x / y); Xdivy(x, y) becomes Where(x == 0, 0, x / y).
void guarded_division(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  onnx::Value* y = node.input(1);
  onnx::Value* zero = node.scalar_of(0, node.type(0));
  onnx::Value* guard = node.add("Equal", {node.op() == "DivNoNan" ? y : x, zero});
  node.give(node.add("Where", {guard, zero, node.add("Div", {x, y})}));
}

void not_equal(NodeConverter& node) { node.give(node.add("Not", {node.add("Equal", {node.input(0), node.input(1)})})); }

void squared_difference(NodeConverter& node) {
  onnx::Value* difference = node.add("Sub", {node.input(0), node.input(1)});
  node.give(node.add("Mul", {difference, difference}));
}

void square(NodeConverter& node) { node.give(node.add("Mul", {node.input(0), node.input(0)})); }

void reciprocal_root(NodeConverter& node) { node.give(node.add("Reciprocal", {node.add("Sqrt", {node.input(0)})})); }

void log1p(NodeConverter& node) {
  node.give(node.add("Log", {node.add("Add", {node.input(0), node.scalar_of(1, node.type(0))})}));
}

void expm1(NodeConverter& node) {
  node.give(node.add("Sub", {node.add("Exp", {node.input(0)}), node.scalar_of(1, node.type(0))}));
}

void floor_division(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  onnx::Value* y = node.input(1);
  if (is_floating_point(node.type(0))) {
    node.give(node.add("Floor", {node.add("Div", {x, y})}));
    return;
  }
  // ONNX's Div rounds integers toward zero. x - Mod(x, y), where Mod has the sign of y, is divisible without remainder.
  onnx::Value* rest = node.add("Mod", {x, y});
  node.give(node.add("Div", {node.add("Sub", {x, rest}), y}));
}

/// The remainder of FloorMod(x, y) has the sign of the divisor; that of Mod and TruncateMod has the sign of the
/// dividend (Mod{fmod=1}).
void remainder(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  onnx::Value* y = node.input(1);
  if (node.op() != "FloorMod") {
    node.give(node.add("Mod", {x, y}, {{"fmod", std::int64_t{1}}}));
  } else if (is_floating_point(node.type(0))) {
    // This formula is that of TensorFlow's kernel: x - floor(x / y) * y would lose digits for large x / y.
    onnx::Value* zero = node.scalar_of(0, node.type(0));
    onnx::Value* rest = node.add("Mod", {x, y}, {{"fmod", std::int64_t{1}}});
    onnx::Value* differs = node.add("Xor", {node.add("Less", {rest, zero}), node.add("Less", {y, zero})});
    onnx::Value* is_moved = node.add("And", {differs, node.add("Not", {node.add("Equal", {rest, zero})})});
    node.give(node.add("Where", {is_moved, node.add("Add", {rest, y}), rest}));
  } else {
    node.give(node.add("Mod", {x, y}));
  }
}

void erfc(NodeConverter& node) {
  node.give(node.add("Sub", {node.scalar_of(1, node.type(0)), node.add("Erf", {node.input(0)})}));
}

void clip(NodeConverter& node) {
  // Max and Min broadcast, but the bounds of Clip do not.
  onnx::Value* raised = node.add("Max", {node.input(0), node.input(1)});
  node.give(node.add("Min", {raised, node.input(2)}));
}

void select(NodeConverter& node) {
  onnx::Value* condition = node.input(0);
  if (node.op() == "Select" && condition->shape && condition->shape->size() == 1) {
    // A condition that is a vector selects whole rows.
    const std::size_t rank = node.known_rank(node.input(1), "elements are selected along its first axis");
    if (rank > 1) {
      Ints axes;
      for (std::size_t i = 1; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
      condition = node.add("Unsqueeze", {condition, node.ints_of(axes)});
    }
  }
  node.give(node.add("Where", {condition, node.input(1), node.input(2)}));
}

onnx::Value* swap_last_two(NodeConverter& node, onnx::Value* value, bool is_wanted) {
  if (!is_wanted) return value;
  const std::size_t rank = node.known_rank(value, "its last two axes are swapped");
  if (rank < 2) node.fail(fmt::format("'{}' has {} dimensions; it must have at least 2", value->name, rank));
  Ints permutation(rank);
  for (std::size_t i = 0; i < rank; ++i) permutation[i] = static_cast<std::int64_t>(i);
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  return node.transpose(value, permutation);
}

}  // namespace

onnx::Value* multiplied(NodeConverter& node) {
  const bool batch = node.op().find("Batch") != std::string::npos;
  onnx::Value* a = swap_last_two(node, node.input(0), node.flag_or(batch ? "adj_x" : "transpose_a", false));
  onnx::Value* b = swap_last_two(node, node.input(1), node.flag_or(batch ? "adj_y" : "transpose_b", false));
  return node.add("MatMul", {a, b});
}

namespace {

void matrix_product(NodeConverter& node) { node.give(multiplied(node)); }

/// Returns the equation with its letters replaced by a, b, c ... in the order of their appearance, because TensorRT
/// accepts lower-case letters only and Keras writes equations such as "BTNH,BSNH->BNTS". Returns an empty string if
/// there are more than 26 letters, or for an equation without an arrow, whose output depends on the alphabetical order
/// of the letters.
std::string in_lower_case(std::string equation) {
  if (equation.find("->") == std::string::npos) return {};
  std::map<char, char> letters;
  for (char& c : equation) {
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) continue;
    const auto known = letters.emplace(c, static_cast<char>('a' + letters.size())).first;
    if (known->second > 'z') return {};
    c = known->second;
  }
  return equation;
}

void einsum(NodeConverter& node) {
  const std::string written = node.text_or("equation", "");
  const bool is_lower = std::none_of(written.begin(), written.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  std::string equation = is_lower ? written : in_lower_case(written);
  if (equation.empty()) equation = written;
  std::vector<onnx::Value*> inputs;
  for (std::size_t i = 0; i < node.input_count(); ++i) inputs.push_back(node.input(i));
  node.give(node.add("Einsum", std::move(inputs), {{"equation", std::move(equation)}}));
}

/// Returns the axes of a reduction, which TensorFlow stores as a scalar or a list.
Ints reduction_axes(NodeConverter& node) { return node.known_ints(1, "the axes"); }

void reduction(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  const Ints axes = reduction_axes(node);
  const std::int64_t keep = node.flag_or("keep_dims", node.flag_or("keepdims", false)) ? 1 : 0;
  if (axes.empty()) {  // ONNX reduces all axes if no axes are given.
    node.give(node.add("Identity", {x}));
    return;
  }
  if (node.op() == "All" || node.op() == "Any") {
    onnx::Value* number = node.cast(x, onnx::ElementType::i32);
    onnx::Value* y =
        node.add(node.op() == "All" ? "ReduceMin" : "ReduceMax", {number}, {{"axes", axes}, {"keepdims", keep}});
    node.give(node.cast(y, onnx::ElementType::boolean));
    return;
  }
  if (node.op() == "Sum") {  // ReduceSum is the only reduction whose axes are an input in opset 17.
    node.give(node.add("ReduceSum", {x, node.ints_of(axes)}, {{"keepdims", keep}}));
    return;
  }
  const std::string onnx_op = "Reduce" + node.op();
  node.give(node.add(onnx_op, {x}, {{"axes", axes}, {"keepdims", keep}}));
}

void arg_extreme(NodeConverter& node) {
  const std::int64_t axis = node.input_count() > 1 ? node.known_int(1, "the axis") : 0;
  onnx::Value* y = node.add(node.op(), {node.input(0)}, {{"axis", axis}, {"keepdims", std::int64_t{0}}});
  node.give(node.cast(y, node.type_or("output_type", onnx::ElementType::i64)));
}

void cumulative_sum(NodeConverter& node) {
  node.give(node.add("CumSum", {node.input(0), node.as_i64(1)},
                     {{"exclusive", std::int64_t{node.flag_or("exclusive", false) ? 1 : 0}},
                      {"reverse", std::int64_t{node.flag_or("reverse", false) ? 1 : 0}}}));
}

/// Returns the indices 0, 1, 2 ... along an axis of x.
onnx::Value* indices_along(NodeConverter& node, onnx::Value* x, std::int64_t axis) {
  onnx::Value* length = node.reshape(node.slice_1d(node.shape_of(x), axis, axis + 1), {});
  return node.add("Range",
                  {node.scalar_of(0, onnx::ElementType::i64), length, node.scalar_of(1, onnx::ElementType::i64)});
}

/// Cumprod(x) becomes a chain of Mul: y = y * (y moved by d positions along the axis) for d = 1, 2, 4 ... If the length
/// of the axis is dynamic, it becomes a ReduceProd of a table that contains, for each element of the result, the
/// elements of x to multiply.
void cumulative_product(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  const onnx::ElementType type = node.type(0);
  const auto rank = static_cast<std::int64_t>(node.known_rank(x, "products are computed along one of its axes"));
  const std::int64_t given = node.known_int(1, "the axis");
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank)
    node.fail(fmt::format("axis {} is out of range, because the input has {} dimensions", given, rank));
  const bool is_exclusive = node.flag_or("exclusive", false);
  const bool is_reverse = node.flag_or("reverse", false);
  const Dim& length = (*x->shape)[static_cast<std::size_t>(axis)];
  if (!length.is_constant()) {
    onnx::Value* indices = indices_along(node, x, axis);
    onnx::Value* row = node.add("Unsqueeze", {indices, node.ints_of({0})});
    onnx::Value* column = node.add("Unsqueeze", {indices, node.ints_of({1})});
    if (is_reverse) std::swap(row, column);
    onnx::Value* is_factor = node.add(is_exclusive ? "Less" : "LessOrEqual", {row, column});
    Ints after;
    for (std::int64_t i = axis + 1; i < rank; ++i) after.push_back(i - axis + 1);
    if (!after.empty()) is_factor = node.add("Unsqueeze", {is_factor, node.ints_of(after)});
    onnx::Value* table =
        node.add("Where", {is_factor, node.add("Unsqueeze", {x, node.ints_of({axis})}), node.scalar_of(1, type)});
    node.give(node.add("ReduceProd", {table}, {{"axes", Ints{axis + 1}}, {"keepdims", std::int64_t{0}}}));
    return;
  }
  const std::int64_t count = length.value();
  const auto moved = [&](onnx::Value* value, std::int64_t distance) {
    onnx::Value* kept =
        node.add("Slice", {value, node.ints_of({is_reverse ? distance : 0}),
                           node.ints_of({is_reverse ? count : count - distance}), node.ints_of({axis})});
    Ints pads(static_cast<std::size_t>(2 * rank), 0);
    pads[static_cast<std::size_t>(is_reverse ? axis + rank : axis)] = distance;
    return node.add("Pad", {kept, node.ints_of(pads), node.scalar_of(1, type)});
  };
  onnx::Value* y = is_exclusive && count > 0 ? moved(x, 1) : x;
  for (std::int64_t distance = 1; distance < count; distance *= 2) y = node.add("Mul", {y, moved(y, distance)});
  node.give(y == x ? node.add("Identity", {x}) : y);
}

void is_finite(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  node.give(node.add("Not", {node.add("Or", {node.add("IsInf", {x}), node.add("IsNaN", {x})})}));
}

/// L2Loss(x) becomes 0.5 * ReduceSumSquare(x).
void l2_loss(NodeConverter& node) {
  onnx::Value* sum = node.add("ReduceSumSquare", {node.input(0)}, {{"keepdims", std::int64_t{0}}});
  node.give(node.add("Mul", {sum, node.scalar_of(0.5, node.type(0))}));
}

void euclidean_norm(NodeConverter& node) {
  const Ints axes = node.known_ints(1, "the axes");
  if (axes.empty()) {
    node.give(node.add("Abs", {node.input(0)}));
    return;
  }
  const std::int64_t keep = node.flag_or("keep_dims", false) ? 1 : 0;
  node.give(node.add("ReduceL2", {node.input(0)}, {{"axes", axes}, {"keepdims", keep}}));
}

/// Xlogy, Xlog1py and MulNoNan become x * log(y), x * log(1 + y) and x * y. The result is 0 where x (for MulNoNan, y)
/// is 0, whatever the other factor is.
void guarded_product(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  onnx::Value* y = node.input(1);
  onnx::Value* zero = node.scalar_of(0, node.type(0));
  onnx::Value* other = y;
  if (node.op() == "Xlog1py") other = node.add("Add", {y, node.scalar_of(1, node.type(0))});
  if (node.op() != "MulNoNan") other = node.add("Log", {other});
  onnx::Value* is_zero = node.add("Equal", {node.op() == "MulNoNan" ? y : x, zero});
  node.give(node.add("Where", {is_zero, zero, node.add("Mul", {x, other})}));
}

/// Returns a boolean tensor that is true where x has a minus sign. This includes -0, which is recognized by 1 / -0 =
/// -inf.
onnx::Value* has_minus_sign(NodeConverter& node, onnx::Value* x, onnx::ElementType type) {
  onnx::Value* zero = node.scalar_of(0, type);
  onnx::Value* inverse = node.add("Div", {node.scalar_of(1, type), x});
  return node.add("Or", {node.add("Less", {x, zero}), node.add("Less", {inverse, zero})});
}

/// Atan2(y, x) becomes Atan(|y| / |x|), mirrored into the quadrant of x and y. Where |x| = |y| the quotient is replaced
/// with Sign(|x|): 0 for two zeros, and 1 for two infinities.
void arc_tangent(NodeConverter& node) {
  constexpr double pi = 3.14159265358979323846;
  onnx::Value* y = node.input(0);
  onnx::Value* x = node.input(1);
  const onnx::ElementType type = node.type(0);
  const auto number = [&](double value) { return node.scalar_of(value, type); };
  onnx::Value* height = node.add("Abs", {y});
  onnx::Value* width = node.add("Abs", {x});
  onnx::Value* quotient = node.add(
      "Where", {node.add("Equal", {width, height}), node.add("Sign", {width}), node.add("Div", {height, width})});
  onnx::Value* angle = node.add("Atan", {quotient});
  onnx::Value* upper = node.add("Where", {has_minus_sign(node, x, type), node.add("Sub", {number(pi), angle}), angle});
  onnx::Value* side = node.add("Where", {has_minus_sign(node, y, type), number(-1), number(1)});
  node.give(node.add("Mul", {side, upper}));
}

/// Bucketize(x) becomes ReduceSum(x >= boundaries), the number of boundaries that are at most x.
void bucketize(NodeConverter& node) {
  const auto bounds = node.floats("boundaries");
  if (bounds.empty()) node.fail("attribute `boundaries` is missing or empty; it must have at least 1 element");
  onnx::Value* x = node.add("Unsqueeze", {node.cast(node.input(0), onnx::ElementType::f32), node.ints_of({-1})});
  onnx::Value* is_above = node.add("GreaterOrEqual", {x, node.constant_of(onnx::TensorData::from_floats(bounds))});
  node.give(node.add("ReduceSum", {node.cast(is_above, onnx::ElementType::i32), node.ints_of({-1})},
                     {{"keepdims", std::int64_t{0}}}));
}

void cross_product(NodeConverter& node) {
  const auto turned = [&](std::size_t input, double first, double second, double third) {
    onnx::Value* order =
        node.constant_of(onnx::TensorData::from_numbers(onnx::ElementType::i64, {3}, {first, second, third}));
    return node.add("Gather", {node.input(input), order}, {{"axis", std::int64_t{-1}}});
  };
  onnx::Value* a = node.add("Mul", {turned(0, 1, 2, 0), turned(1, 2, 0, 1)});
  onnx::Value* b = node.add("Mul", {turned(0, 2, 0, 1), turned(1, 1, 2, 0)});
  node.give(node.add("Sub", {a, b}));
}

/// LinSpace becomes `count` evenly spaced values from start to stop, both included.
void even_steps(NodeConverter& node) {
  const std::int64_t count = node.known_int(2, "the count");
  constexpr std::int64_t most = 1 << 24;
  if (count < 1 || count > most) node.fail(fmt::format("the count is {}; it must be between 1 and {}", count, most));
  const onnx::ElementType type = node.type(0);
  node.check_budget(count, onnx::ElementType::f64);
  std::vector<double> parts(static_cast<std::size_t>(count));
  std::iota(parts.begin(), parts.end(), 0.0);
  onnx::Value* steps = node.constant_of(onnx::TensorData::from_numbers(type, {count}, parts));
  onnx::Value* length = node.add("Sub", {node.input(1), node.input(0)});
  onnx::Value* step =
      node.add("Div", {length, node.scalar_of(static_cast<double>(std::max<std::int64_t>(count - 1, 1)), type)});
  node.give(node.add("Add", {node.input(0), node.add("Mul", {steps, step})}));
}

void cast(NodeConverter& node) {
  onnx::Value* x = node.input(0);
  const onnx::ElementType to = node.type_or("DstT", onnx::ElementType::undefined);
  if (to == onnx::ElementType::undefined) node.fail("attribute `DstT`, the type of the result, is missing");
  node.give(x->type == to ? node.add("Identity", {x}) : node.cast(x, to));
}

std::vector<OperatorEntry> make_entries() {
  std::vector<OperatorEntry> entries = entries_of({{sum_of_all, "AddN"},
                                                   {reduction, "All Any Max Mean Min Prod Sum"},
                                                   {arg_extreme, "ArgMax ArgMin"},
                                                   {arc_tangent, "Atan2"},
                                                   {matrix_product, "BatchMatMul BatchMatMulV2 BatchMatMulV3 MatMul"},
                                                   {bucketize, "Bucketize"},
                                                   {cast, "Cast"},
                                                   {clip, "ClipByValue"},
                                                   {cross_product, "Cross"},
                                                   {cumulative_product, "Cumprod"},
                                                   {cumulative_sum, "Cumsum"},
                                                   {guarded_division, "DivNoNan Xdivy"},
                                                   {einsum, "Einsum"},
                                                   {erfc, "Erfc"},
                                                   {euclidean_norm, "EuclideanNorm"},
                                                   {expm1, "Expm1"},
                                                   {floor_division, "FloorDiv"},
                                                   {remainder, "FloorMod Mod TruncateMod"},
                                                   {is_finite, "IsFinite"},
                                                   {l2_loss, "L2Loss"},
                                                   {even_steps, "LinSpace"},
                                                   {log1p, "Log1p"},
                                                   {guarded_product, "MulNoNan Xlog1py Xlogy"},
                                                   {not_equal, "NotEqual"},
                                                   {rounded, "Round"},
                                                   {reciprocal_root, "Rsqrt"},
                                                   {select, "Select SelectV2"},
                                                   {square, "Square"},
                                                   {squared_difference, "SquaredDifference"}});
  for (const auto& [name, onnx_op] : same) entries.push_back({name, same_operator});
  return entries;
}

}  // namespace

OperatorEntries math_operators() {
  static const std::vector<OperatorEntry> entries = make_entries();
  return entries;
}

}  // namespace graft::tensorflow
