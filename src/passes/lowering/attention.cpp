// Attention, where TensorRT's builder fails or its parser refuses it: two products, a sum with the masks, and Softmax.
//
//   Attention(q, k, v, mask)   becomes   scores = MatMul(Mul(q, root), Transpose(Mul(k, root)))   root = sqrt(scale)
//                                        y = MatMul(Softmax(Add(scores, mask)), v)
//
// Measured in TensorRT-RTX 1.7.1: in f16 and bf16, heads of 32 to 256 channels build outside of bodies; in f32 every
// node fails, except with one query; further outputs, past keys, softcap, softmax_precision, and a mask together with
// is_causal are refused. Its parser ignores nonpad_kv_seqlen and the windows, so that the engine attends to all keys.
// As ONNX defines it, queries and keys are each multiplied by the root of the scale, softcap comes before the masks, a
// mask may be shorter than the keys, and a row that is masked as a whole is 0.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <set>

#include "onnx/known_sizes.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/lowering/refused_forms.hpp"

namespace graft::passes {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Returns the row-major [queries, keys] table that is added to the scores: -inf where query row + `offset` must not
/// attend to the key of the column, because of causality or of a window of `left` and `right` keys (-1: no limit), and
/// 0 elsewhere.
std::vector<double> bias_table(std::int64_t queries, std::int64_t keys, std::int64_t offset, bool is_causal,
                               std::int64_t left, std::int64_t right) {
  std::vector<double> table;
  for (std::int64_t row = 0; row < queries; ++row) {
    for (std::int64_t column = 0; column < keys; ++column) {
      const std::int64_t ahead = column - (row + offset);
      const bool is_hidden = (is_causal && ahead > 0) || (left >= 0 && -ahead > left) || (right >= 0 && ahead > right);
      table.push_back(is_hidden ? -infinity : 0);
    }
  }
  return table;
}

class AttentionWriter {
 public:
  explicit AttentionWriter(Site& site) : site_(site), node_(site.node()) {}

  std::optional<Replacement> write() {
    using enum onnx::ElementType;
    const Shape* q_shape = shape_of(0);
    if (q_shape == nullptr || !site_.is_real(0))
      return site_.no("its queries must have a known rank and the type f32, f16 or bf16");
    rank_ = q_shape->size();
    if (rank_ != 3 && rank_ != 4) return site_.no("its queries have neither rank 3 nor rank 4");
    if (!read_heads()) return site_.no("the number or the size of its heads is unknown");
    if (!is_refused()) return std::nullopt;
    if (site_.has_input(4) != site_.has_input(5))
      return site_.no("it has only one of the inputs past_key and past_value");
    if (site_.has_input(4) && site_.has_input(6))
      return site_.no("it has both past_key and nonpad_kv_seqlen, which ONNX does not allow together");
    const std::int64_t mode = node_.int_or("qk_matmul_output_mode", 0);
    auto precision = static_cast<onnx::ElementType>(node_.int_or("softmax_precision", 0));
    const bool is_narrowed = precision == f64;
    if (is_narrowed) precision = f32;  // TensorRT has no f64.
    if (precision != undefined && precision != f32 && precision != f16 && precision != bf16) {
      return site_.no("its softmax_precision is not a floating-point type of 16, 32 or 64 bits");
    }

    const std::string query = heads_of("x0", "q", q_heads_, q_size_);
    std::string key = heads_of("x1", "k", kv_heads_, k_size_);
    std::string value = heads_of("x2", "v", kv_heads_, v_size_);
    key = with_past("x4", key, 1);
    value = with_past("x5", value, 2);
    const auto mask = bias();
    if (!mask) return std::nullopt;
    if (q_heads_ != kv_heads_) repeat_heads(key, value);
    const double scale = node_.float_or("scale", static_cast<float>(1 / std::sqrt(static_cast<double>(q_size_))));
    const std::string root = number("root", std::sqrt(scale));
    result_.line(fmt::format("q_scaled = Mul({}, {})", query, root));
    result_.line(fmt::format("k_scaled = Mul({}, {})", key, root));
    result_.line("k_turned = Transpose<perm=[0, 1, 3, 2]>(k_scaled)");
    std::string scores = "products";
    const auto give_scores = [&](std::int64_t of_mode, const std::string& tensor) {
      if (site_.is_used(3) && mode == of_mode) result_.line(fmt::format("y3 = Identity({})", tensor));
    };
    result_.line("products = MatMul(q_scaled, k_turned)");
    give_scores(0, scores);
    if (const float cap = node_.float_or("softcap", 0); cap > 0) {
      result_.line(fmt::format("uncapped = Div({}, {})", scores, number("cap", cap)));
      result_.line("bent = Tanh(uncapped)");
      result_.line("capped = Mul(bent, cap)");
      scores = "capped";
    }
    give_scores(1, scores);
    if (!mask->empty()) {
      result_.line(fmt::format("masked = Add({}, {})", scores, *mask));
      scores = "masked";
    }
    give_scores(2, scores);
    const std::string shares = softmax(scores, *mask, precision);
    give_scores(3, shares);
    result_.line(fmt::format("{} = MatMul({}, {})", rank_ == 4 ? "y0" : "of_heads", shares, value));
    if (rank_ == 3) {
      result_.line("together = Transpose<perm=[0, 2, 1, 3]>(of_heads)");
      const std::string shape = result_.ints("y_shape", {0, 0, q_heads_ * v_size_});
      result_.line(fmt::format("y0 = Reshape(together, {})", shape));
    }
    result_.summary = fmt::format("MatMul, {}Softmax and MatMul of {} heads{}", mask->empty() ? "" : "Add, ", q_heads_,
                                  is_narrowed ? ", in f32 because TensorRT has no f64" : "");
    // OpenVINO 2026.4.1 counts the places of causal queries without the past keys. ONNX Runtime 1.31.1 returns the
    // lowest number for hidden scores, which are -inf.
    result_.is_proven_by_onnxruntime = !(site_.is_used(3) && mode == 2);
    return std::move(result_);
  }

 private:
  /// Returns the shape of an input, or null if it is unknown. If the shape does not follow from the inputs of the
  /// network, as in the body of a Loop, returns the shape that the model declares.
  [[nodiscard]] const Shape* shape_of(std::size_t input) const {
    const onnx::Value* value = node_.input(input);
    const Shape* proven = site_.shape(input);
    return proven == nullptr && value != nullptr && value->shape ? &*value->shape : proven;
  }
  [[nodiscard]] std::optional<std::int64_t> size_of(std::size_t input, std::int64_t axis) const {
    const Shape* shape = shape_of(input);
    return shape == nullptr ? std::nullopt : onnx::known_size(*shape, axis);
  }

  bool read_heads() {
    const auto q_last = size_of(0, -1);
    const auto k_last = size_of(1, -1);
    const auto v_last = size_of(2, -1);
    if (!q_last || !k_last || !v_last) return false;
    if (rank_ == 4) {
      q_heads_ = size_of(0, 1).value_or(0);
      kv_heads_ = size_of(1, 1).value_or(0);
      q_size_ = *q_last;
      k_size_ = *k_last;
      v_size_ = *v_last;
    } else {
      q_heads_ = node_.int_or("q_num_heads", 0);
      kv_heads_ = node_.int_or("kv_num_heads", 0);
      if (q_heads_ < 1 || kv_heads_ < 1) return false;
      q_size_ = *q_last / q_heads_;
      k_size_ = *k_last / kv_heads_;
      v_size_ = *v_last / kv_heads_;
    }
    return q_heads_ > 0 && kv_heads_ > 0 && q_heads_ % kv_heads_ == 0 && q_size_ > 0 && q_size_ == k_size_;
  }

  /// Returns whether TensorRT's parser or builder refuses the node, according to measurements.
  [[nodiscard]] bool is_refused() const {
    constexpr std::int64_t smallest_head = 32;
    constexpr std::int64_t largest_head = 256;
    const bool has_kernel =
        site_.type(0) != onnx::ElementType::f32 && q_size_ >= smallest_head && q_size_ <= largest_head;
    const bool is_in_body = node_.graph->parent() != nullptr;
    return is_in_body || returns_more_than_attention(node_) || !has_kernel || node_.float_or("softcap", 0) > 0 ||
           has_softmax_precision(node_) || site_.has_input(4) || has_ignored_masks(node_) ||
           is_masked_and_causal(node_) || has_short_mask(node_) || v_size_ != k_size_;
  }

  std::string number(const std::string& name, double value) { return result_.number(name, value, site_.type(0)); }

  /// Writes the nodes that change `x` from [batch, length, heads * size] to [batch, heads, length, size], and returns
  /// the name of the result. Returns `x` if it has rank 4 already.
  std::string heads_of(const std::string& x, const std::string& name, std::int64_t heads, std::int64_t size) {
    if (rank_ == 4) return x;
    const std::string shape = result_.ints(name + "_shape", {0, 0, heads, size});
    result_.line(fmt::format("{0}_apart = Reshape({1}, {2})", name, x, shape));
    result_.line(fmt::format("{0} = Transpose<perm=[0, 2, 1, 3]>({0}_apart)", name));
    return name;
  }

  std::string with_past(const std::string& past, const std::string& now, std::size_t output) {
    std::string name = fmt::format("y{}", output);
    if (site_.has_input(4)) {
      result_.line(fmt::format("{} = Concat<axis=2>({}, {})", name, past, now));
      return name;
    }
    if (site_.is_used(output)) result_.line(fmt::format("{} = Identity({})", name, now));
    return now;
  }

  /// Writes the tensor that is added to the scores (mask, padding, causality and window), and returns its name, or ""
  /// if nothing is added. Returns nothing, and stores the reason with site.no(), if the tensor cannot be written.
  std::optional<std::string> bias() {
    const auto queries = site_.size(0, rank_ == 4 ? 2 : 1);
    const auto now = site_.size(1, rank_ == 4 ? 2 : 1);
    const auto past = site_.has_input(4) ? site_.size(4, 2) : std::optional<std::int64_t>(0);
    const auto keys = now && past ? std::optional(*now + *past) : std::nullopt;
    std::string all;
    if (site_.has_input(3)) {
      if (site_.type(3) != onnx::ElementType::boolean && site_.type(3) != site_.type(0))
        return site_.no("the type of its mask differs from the type of its queries");
      const Shape* shape = site_.shape(3);
      if (shape == nullptr || shape->empty()) return site_.no("the rank of its mask is unknown or 0");
      if (keys && site_.size(3, -1) > keys) return site_.no("its mask is longer than its keys");
      all = pad_mask(keys, past);
      may_mask_rows_ = true;
    }
    const bool is_causal = node_.int_or("is_causal", 0) != 0;
    const std::int64_t left = node_.int_or("left_window_size", -1);
    const std::int64_t right = node_.int_or("right_window_size", -1);
    const bool has_lengths = site_.has_input(6);
    if (!is_causal && left < 0 && right < 0 && !has_lengths) return all;
    if (!has_lengths && queries && keys && *queries * *keys <= most_table) {
      result_.constant("hidden",
                       onnx::TensorData::from_numbers(site_.type(0), {*queries, *keys},
                                                      bias_table(*queries, *keys, *past, is_causal, left, right)));
    } else {
      write_hidden(left, is_causal ? 0 : right);
    }
    if (left >= 0 || right >= 0 || has_lengths) may_mask_rows_ = true;
    if (all.empty()) return "hidden";
    result_.line(fmt::format("both = Add({}, hidden)", all));
    return "both";
  }

  /// Writes the nodes that read the size of an axis of an input, as a scalar, and returns the name of the result.
  std::string length(const std::string& name, std::size_t input, std::int64_t axis) {
    if (const auto size = site_.size(input, axis)) return result_.integer(name, *size);
    if (!lengths_.insert(name).second) return name;
    result_.line(fmt::format("{}_size = Shape<start={}, end={}>(x{})", name, axis, axis + 1, input));
    result_.line(fmt::format("{0} = Squeeze({0}_size, {1})", name, result_.ints("first", {0})));
    return name;
  }

  /// Writes the nodes that compute the number of keys, past ones included, and returns the name of the result.
  std::string count_keys() {
    std::string now = length("keys_now", 1, rank_ == 4 ? 2 : 1);
    if (!site_.has_input(4)) return now;
    const std::string past = length("keys_past", 4, 2);
    if (lengths_.insert("keys_all").second) result_.line(fmt::format("keys_all = Add({}, {})", past, now));
    return "keys_all";
  }

  /// Writes the mask as numbers that are added to the scores, with -inf for the keys beyond its end, and returns its
  /// name. `keys` is the number of keys and `past` that of past keys, if they are known.
  std::string pad_mask(std::optional<std::int64_t> keys, std::optional<std::int64_t> past) {
    std::string mask = "x3";
    if (site_.type(3) == onnx::ElementType::boolean) {
      result_.line(fmt::format("mask = Where(x3, {}, {})", number("nothing", 0), number("lowest", -infinity)));
      mask = "mask";
    }
    const Shape& shape = *site_.shape(3);
    const Shape* key = site_.shape(1);
    const bool is_same =
        past == 0 && key != nullptr && key->size() == rank_ && shape.back() == (*key)[rank_ == 4 ? 2 : 1];
    const auto width = site_.size(3, -1);
    if (is_same || (keys && width == keys)) return mask;
    std::vector<std::int64_t> pads(2 * shape.size(), 0);
    std::string padding;
    if (keys && width) {
      pads.back() = *keys - *width;
      padding = result_.ints("mask_pads", pads);
    } else {
      pads.pop_back();
      const auto last = static_cast<std::int64_t>(shape.size()) - 1;
      result_.line(fmt::format("missing = Sub({}, {})", count_keys(), length("mask_width", 3, last)));
      result_.line(fmt::format("missing_list = Unsqueeze(missing, {})", result_.ints("first", {0})));
      padding = "mask_pads";
      result_.line(fmt::format("mask_pads = Concat<axis=0>({}, missing_list)", result_.ints("no_pads", pads)));
    }
    result_.line(fmt::format("mask_padded = Pad({}, {}, {})", mask, padding, number("lowest", -infinity)));
    return "mask_padded";
  }

  /// Writes the table `hidden`, [queries, keys] or, with nonpad_kv_seqlen, [batch, 1, queries, keys]: -inf for a key
  /// that is padding, that is more than `left` places before the query or more than `right` places after it (-1: no
  /// limit), and 0 elsewhere. The last query has the place of the last key that is not padding; without padding, the
  /// first query has the place after the past keys.
  void write_hidden(std::int64_t left, std::int64_t right) {
    const std::string zero = result_.integer("zero", 0);
    const std::string one = result_.integer("one", 1);
    std::string hidden;
    const auto hide = [&](const std::string& name, const std::string& condition) {
      result_.line(fmt::format("{} = {}", name, condition));
      if (!hidden.empty()) result_.line(fmt::format("{0}_too = Or({1}, {0})", name, hidden));
      hidden = hidden.empty() ? name : name + "_too";
    };
    result_.line(fmt::format("columns = Range({}, {}, {})", zero, count_keys(), one));
    if (site_.has_input(6)) {
      result_.line(fmt::format("key_ends = Reshape(x6, {})", result_.ints("ends_shape", {-1, 1, 1, 1})));
      // If keys after the query are hidden, so is the padding.
      if (right != 0) hide("is_padding", "GreaterOrEqual(columns, key_ends)");
    }
    if (left >= 0 || right >= 0) {
      const std::string queries = length("queries", 0, rank_ == 4 ? 2 : 1);
      result_.line(fmt::format("row_numbers = Range({}, {}, {})", zero, queries, one));
      result_.line(fmt::format("rows = Unsqueeze(row_numbers, {})", result_.ints("second", {1})));
      std::string before;
      if (site_.has_input(6)) {
        before = "keys_before";
        result_.line(fmt::format("keys_before = Sub(key_ends, {})", queries));
      } else if (site_.has_input(4)) {
        before = length("keys_past", 4, 2);
      }
      if (!before.empty()) result_.line(fmt::format("places = Add(rows, {})", before));
      result_.line(fmt::format("ahead = Sub(columns, {})", before.empty() ? "rows" : "places"));
      if (right >= 0) hide("is_ahead", fmt::format("Greater(ahead, {})", result_.integer("right", right)));
      if (left >= 0) hide("is_behind", fmt::format("Less(ahead, {})", result_.integer("left", -left)));
    }
    result_.line(fmt::format("hidden = Where({}, {}, {})", hidden, number("lowest", -infinity), number("nothing", 0)));
  }

  /// Writes nodes that repeat the heads of keys and values so that each query head has its own, and changes `key` and
  /// `value` to the names of the results.
  void repeat_heads(std::string& key, std::string& value) {
    std::vector<std::int64_t> heads;
    for (std::int64_t head = 0; head < q_heads_; ++head) heads.push_back(head / (q_heads_ / kv_heads_));
    const std::string which = result_.ints("which_head", heads);
    result_.line(fmt::format("k_of_all = Gather<axis=1>({}, {})", key, which));
    result_.line(fmt::format("v_of_all = Gather<axis=1>({}, {})", value, which));
    key = "k_of_all";
    value = "v_of_all";
  }

  /// Writes the Softmax of `scores`, computed in `precision` unless that is undefined, and returns the name of the
  /// result. If rows may be masked completely, the result is 0 in rows where all of `mask` is -inf.
  std::string softmax(const std::string& scores, const std::string& mask, onnx::ElementType precision) {
    std::string shares = "shares";
    if (precision != onnx::ElementType::undefined && precision != site_.type(0)) {
      result_.line(fmt::format("precise = Cast<to={}>({})", to_string(precision), scores));
      result_.line("shares = Softmax<axis=-1>(precise)");
      result_.line(fmt::format("shares_back = Cast<to={}>(shares)", to_string(site_.type(0))));
      shares = "shares_back";
    } else {
      result_.line(fmt::format("shares = Softmax<axis=-1>({})", scores));
    }
    if (!may_mask_rows_) return shares;
    result_.line(fmt::format("most = ReduceMax<axes=[-1], keepdims=1>({})", mask));
    result_.line(fmt::format("is_masked = Equal(most, {})", number("lowest", -infinity)));
    result_.line(fmt::format("open = Where(is_masked, {}, {})", number("nothing", 0), shares));
    return "open";
  }

  static constexpr std::int64_t most_table = 1 << 20;

  Site& site_;
  const onnx::Node& node_;
  Replacement result_;
  std::size_t rank_ = 0;
  std::int64_t q_heads_ = 0;
  std::int64_t kv_heads_ = 0;
  std::int64_t q_size_ = 0;
  std::int64_t k_size_ = 0;
  std::int64_t v_size_ = 0;
  bool may_mask_rows_ = false;
  std::set<std::string> lengths_;  ///< The lengths that nodes compute, by the names of the results.
};

}  // namespace

void write_causal_table(Replacement& result, const std::string& name, const AxisOf& queries, const AxisOf& keys_now,
                        const AxisOf& past, onnx::ElementType type, double hidden) {
  const std::string zero = result.integer("zero", 0);
  const std::string one = result.integer("one", 1);
  const std::string first = result.ints("first", {0});
  const std::string second = result.ints("second", {1});
  const auto length = [&](const std::string& of, const AxisOf& axis) {
    result.line(fmt::format("{}_size = Shape<start={}, end={}>({})", of, axis.axis, axis.axis + 1, axis.tensor));
    result.line(fmt::format("{0} = Squeeze({0}_size, {1})", of, first));
  };
  length("queries", queries);
  length("keys_now", keys_now);
  std::string keys = "keys_now";
  std::string from = zero;
  std::string to = "queries";
  if (!past.tensor.empty()) {
    length("keys_past", past);
    result.line("keys_all = Add(keys_past, keys_now)");
    result.line("last_query = Add(keys_past, queries)");
    keys = "keys_all";
    from = "keys_past";
    to = "last_query";
  }
  result.line(fmt::format("row_numbers = Range({}, {}, {})", from, to, one));
  result.line(fmt::format("rows = Unsqueeze(row_numbers, {})", second));
  result.line(fmt::format("columns = Range({}, {}, {})", zero, keys, one));
  result.line("is_ahead = Greater(columns, rows)");
  const std::string lowest = result.number("lowest", hidden, type);
  result.line(fmt::format("{} = Where(is_ahead, {}, {})", name, lowest, result.number("nothing", 0, type)));
}

std::optional<Replacement> lower_attention(Site& site) { return AttentionWriter(site).write(); }

}  // namespace graft::passes
