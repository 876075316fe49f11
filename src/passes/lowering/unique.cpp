// Unique, at fixed size: all elements are compared with all others. The results have the size of the input, with the
// unique elements first, and are cut to the number of these.
//
//   Unique(x)   becomes   first = ReduceMin(Where(x[i] == x[j], j, n))      is_first = (first == i)
//                         rank = the number of first elements below x[i]
//                         y = Slice(x[the first element of each rank], 0, ReduceSum(is_first))
//
// With the attribute axis, the elements are the subtensors along that axis, which are ordered by their first different
// numbers. NaN, which equals nothing, is not among the results.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

class UniqueWriter {
 public:
  explicit UniqueWriter(Site& site) : site_(site), node_(site.node()) {}

  std::optional<Replacement> write() {
    using enum onnx::ElementType;
    const onnx::ElementType type = site_.type(0);
    if (!site_.is_real(0) && type != i32 && type != i64) {
      return site_.no(
          fmt::format("the type of its input is {}; only f32, f16, bf16, i32 and i64 are supported", to_string(type)));
    }
    const auto sizes = site_.sizes(0);
    if (!sizes) return site_.no_size("the sizes of its input are dynamic");
    const auto rank = static_cast<std::int64_t>(sizes->size());
    has_axis_ = node_.attribute("axis") != nullptr;
    axis_ = node_.int_or("axis", 0);
    if (axis_ < 0) axis_ += rank;
    if (has_axis_ && (axis_ < 0 || axis_ >= rank)) return site_.no("its axis is not an axis of its input");
    count_ = has_axis_ ? (*sizes)[static_cast<std::size_t>(axis_)] : product(*sizes);
    if (product(*sizes) == 0) return site_.no("its input has no elements");
    width_ = product(*sizes) / count_;
    constexpr std::int64_t most = 4096;  // as many elements have 16 M comparisons
    if (count_ > most || count_ * count_ * width_ > most_constants)
      return site_.no(
          fmt::format("its {} elements of size {} need more than {} comparisons", count_, width_, most_constants));
    compare(rank);
    select();
    give_outputs();
    result_.summary = fmt::format("{} comparisons of {} elements, and Slice", count_ * count_, count_);
    // OpenVINO 2026.4.1 returned the count 1 for five equal elements.
    result_.is_proven_by_onnxruntime = true;
    return std::move(result_);
  }

 private:
  void line(const std::string& text) { result_.line(text); }

  /// Writes is_equal and is_below, [elements, elements]: whether the element of the column equals that of the row, and
  /// whether it comes before that of the row in ascending order.
  void compare(std::int64_t rank) {
    std::string x = site_.is_real(0) ? result_.in_f32("x0", site_.type(0)) : "x0";
    if (has_axis_ && axis_ != 0) {
      std::vector<std::int64_t> order{axis_};
      for (std::int64_t i = 0; i < rank; ++i) {
        if (i != axis_) order.push_back(i);
      }
      line(fmt::format("turned = Transpose<perm=[{}]>({})", fmt::join(order, ", "), x));
      x = "turned";
    }
    line(fmt::format("of_rows = Reshape({}, {})", x, result_.ints("rows_shape", {count_, 1, width_})));
    line(fmt::format("of_columns = Reshape({}, {})", x, result_.ints("columns_shape", {1, count_, width_})));
    line("are_equal = Equal(of_rows, of_columns)");
    line("are_below = Less(of_columns, of_rows)");
    if (width_ > 1) {
      line("are_different = Not(are_equal)");
      line("differences = Cast<to=float>(are_different)");
      line(fmt::format("differences_before = CumSum<exclusive=1>(differences, {})", result_.integer("last", 2)));
      line(fmt::format("are_first = Equal(differences_before, {})", result_.number("zero", 0)));
      line("decide = And(are_below, are_first)");
    }
    line(fmt::format("below_numbers = Cast<to=float>({})", width_ > 1 ? "decide" : "are_below"));
    line("equal_numbers = Cast<to=float>(are_equal)");
    line("is_below = ReduceMax<axes=[2], keepdims=0>(below_numbers)");
    line("is_equal = ReduceMin<axes=[2], keepdims=0>(equal_numbers)");
  }

  /// Writes `rank`, [elements], the place of each element among the unique ones; `is_first`, whether it is the first of
  /// its kind; and `chosen`, [elements, elements], which is 1 where the element of the column is the first one of the
  /// kind whose place is the row, and 0 elsewhere.
  void select() {
    std::vector<double> numbers(static_cast<std::size_t>(count_));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    result_.constant("numbers", f32_tensor({count_}, numbers));
    result_.constant("rows", f32_tensor({count_, 1}, numbers));
    const std::string columns = result_.ints("columns", {1});
    line(fmt::format("is_same = Greater(is_equal, {})", result_.number("half", 0.5)));
    const std::string end = result_.number("end", static_cast<double>(count_));
    line(fmt::format("equal_places = Where(is_same, numbers, {})", end));
    line("first = ReduceMin<axes=[1], keepdims=0>(equal_places)");
    line("is_first = Equal(first, numbers)");
    line("firsts = Cast<to=float>(is_first)");
    if (node_.int_or("sorted", 1) != 0) {
      line("lower = Mul(is_below, firsts)");
    } else {
      line(fmt::format("first_column = Unsqueeze(first, {})", columns));
      line("comes_before = Less(numbers, first_column)");
      line("before = Cast<to=float>(comes_before)");
      line("lower = Mul(before, firsts)");
    }
    line(fmt::format("rank = ReduceSum<keepdims=0>(lower, {})", columns));
    line("has_rank = Equal(rank, rows)");
    line("is_chosen = And(has_rank, is_first)");
    line("chosen = Cast<to=float>(is_chosen)");
    line(fmt::format("count_real = ReduceSum<keepdims=1>(firsts, {})", result_.ints("elements", {0})));
    line("count_now = Cast<to=int64>(count_real)");
    // TensorRT reads the result when the engine runs, and does not compute the size from integer inputs itself.
    line(fmt::format("count = CumSum(count_now, {})", result_.integer("first_axis", 0)));
  }

  /// Writes output `output` as the first `count` entries of a tensor along an axis.
  void cut(std::size_t output, const std::string& tensor, std::int64_t axis) {
    const std::string along = result_.ints(fmt::format("along{}", output), {axis});
    line(fmt::format("y{} = Slice({}, {}, count, {})", output, tensor, result_.ints("begin", {0}), along));
  }

  /// Writes the sums of the numbers `values` of the chosen elements as i64, and returns the name of the result.
  std::string sum_chosen(const std::string& name, const std::string& values) {
    line(fmt::format("{}_chosen = Mul(chosen, {})", name, values));
    line(fmt::format("{0}_real = ReduceSum<keepdims=0>({0}_chosen, columns)", name));
    line(fmt::format("{0} = Cast<to=int64>({0}_real)", name));
    return name;
  }

  void give_outputs() {
    const std::string places = sum_chosen("places", "numbers");
    std::string x = "x0";
    if (!has_axis_) {
      line(fmt::format("flat = Reshape(x0, {})", result_.ints("flat_shape", {count_})));
      x = "flat";
    }
    line(fmt::format("selected = Gather<axis={}>({}, {})", axis_, x, places));
    cut(0, "selected", axis_);
    if (site_.is_used(1)) cut(1, places, 0);
    if (site_.is_used(2)) line("y2 = Cast<to=int64>(rank)");
    if (!site_.is_used(3)) return;
    line("frequencies = ReduceSum<keepdims=0>(is_equal, columns)");
    cut(3, sum_chosen("counts", "frequencies"), 0);
  }

  Site& site_;
  const onnx::Node& node_;
  Replacement result_;
  bool has_axis_ = false;
  std::int64_t axis_ = 0;
  std::int64_t count_ = 0;  ///< The number of elements that are compared.
  std::int64_t width_ = 0;  ///< The size of each of them.
};

}  // namespace

std::optional<Replacement> lower_unique(Site& site) { return UniqueWriter(site).write(); }

}  // namespace graft::passes
