// The attention operators of ONNX Runtime: projections, rotary embedding, masks, past keys and values around two
// products and Softmax.
//
//   MultiHeadAttention(q, k, v, bias, mask)   becomes   scores = MatMul(heads of q * scale, Transpose(heads of k))
//                                                       y = MatMul(Softmax(scores + masks), heads of v)
//   Attention(x, w, b, mask)                  becomes   q, k, v = Split(MatMul(x, w) + b), and the same
//   QAttention(x, w, b, scales)               becomes   q, k, v = Split(MatMulInteger(x, w) * scales + b), and the same
//   GroupQueryAttention(q, k, v, lengths)     becomes   the same, with each head of keys repeated
//   RotaryEmbedding(x, positions, cos, sin)   becomes   Concat(a * cos - b * sin, a * sin + b * cos), a, b halves of x
//
// TensorRT-RTX builds a MultiHeadAttention with query, key, value and attention_bias itself. With unidirectional = 1 it
// hides the keys after the number of the query, which is right only if there are as many keys as queries: the engines
// of TensorRT-RTX 1.7.1 hold this condition as the source of their kernels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graft/error.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/lowering/refused_forms.hpp"
#include "passes/pipeline.hpp"

namespace graft::passes {
namespace {

/// The required size of an input along one axis; any size if `size` is empty. If `may_be_one`, 1 is accepted too.
struct WantedSize {
  std::string_view name;  ///< The word for the size in messages, if it is unknown.
  std::optional<std::int64_t> size;
  bool may_be_one = false;

  [[nodiscard]] std::string text() const {
    const std::string words = size ? fmt::format("{}", *size) : std::string(name);
    return may_be_one && size != 1 ? fmt::format("1 or {}", words) : words;
  }
};

using WantedSizes = std::vector<WantedSize>;

/// Returns the sum, or nothing if an operand is unknown or the sum exceeds 64 bits.
std::optional<std::int64_t> sum_of(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  std::int64_t sum = 0;
  return a && b && !__builtin_add_overflow(*a, *b, &sum) ? std::optional(sum) : std::nullopt;
}

/// Writes nodes that apply a rotary embedding to `x`, and returns the name of the result. `x` is [batch, length, heads,
/// size] if `heads_axis` is 2, [batch, heads, length, size] if it is 1. The first `rotated` elements of each head are
/// rotated (all of them if `is_whole`), in pairs: neighboring elements if `is_interleaved`, otherwise element i with
/// element i + rotated / 2. `cos` and `sin` are [batch or 1, length, rotated / 2]. The names of all new tensors begin
/// with `name`.
std::string rotate(Replacement& result, const std::string& name, const std::string& x, const std::string& cos,
                   const std::string& sin, int heads_axis, std::int64_t rotated, bool is_whole, bool is_interleaved) {
  const auto line = [&](const std::string& output, const std::string& computation) {
    result.line(fmt::format("{}_{} = {}", name, output, computation));
    return fmt::format("{}_{}", name, output);
  };
  std::string turning = x;
  if (!is_whole) {
    const std::string start = result.ints("start", {0});
    const std::string end = result.ints("rotated", {rotated});
    const std::string last = result.ints("last", {-1});
    turning = line("turning", fmt::format("Slice({}, {}, {}, {})", x, start, end, last));
    line("staying", fmt::format("Slice({}, {}, {}, {})", x, end, result.ints("whole", {INT64_MAX}), last));
  }
  std::string a = name + "_a";
  std::string b = name + "_b";
  if (is_interleaved) {
    const std::string pairs =
        line("pairs", fmt::format("Reshape({}, {})", turning, result.ints("pairs", {0, 0, 0, rotated / 2, 2})));
    line("a", fmt::format("Gather<axis=-1>({}, {})", pairs, result.integer("zero", 0)));
    line("b", fmt::format("Gather<axis=-1>({}, {})", pairs, result.integer("one", 1)));
  } else {
    result.line(fmt::format("{}, {} = Split<axis=-1>({})", a, b, turning));
  }
  const std::string axes = result.ints("heads_axis", {heads_axis});
  const std::string c = line("cos", fmt::format("Unsqueeze({}, {})", cos, axes));
  const std::string s = line("sin", fmt::format("Unsqueeze({}, {})", sin, axes));
  line("ac", fmt::format("Mul({}, {})", a, c));
  line("bs", fmt::format("Mul({}, {})", b, s));
  line("as", fmt::format("Mul({}, {})", a, s));
  line("bc", fmt::format("Mul({}, {})", b, c));
  line("first", fmt::format("Sub({0}_ac, {0}_bs)", name));
  line("second", fmt::format("Add({0}_as, {0}_bc)", name));
  std::string turned;
  if (is_interleaved) {
    const std::string last = result.ints("last", {-1});
    line("first_of_pair", fmt::format("Unsqueeze({}_first, {})", name, last));
    line("second_of_pair", fmt::format("Unsqueeze({}_second, {})", name, last));
    line("turned_pairs", fmt::format("Concat<axis=-1>({0}_first_of_pair, {0}_second_of_pair)", name));
    turned =
        line("turned", fmt::format("Reshape({}_turned_pairs, {})", name, result.ints("joined", {0, 0, 0, rotated})));
  } else {
    turned = line("turned", fmt::format("Concat<axis=-1>({0}_first, {0}_second)", name));
  }
  return is_whole ? turned : line("all", fmt::format("Concat<axis=-1>({}, {}_staying)", turned, name));
}

/// The names of the query, key and value tensors, each [batch, heads, length, size].
struct HeadTensors {
  std::string query, key, value;
};

/// Writes the nodes of the attention operators of ONNX Runtime. Output y0 has the type of the input `typed`.
class HeadsWriter {
 public:
  /// `typed` is the index of an input that has the type of the results.
  explicit HeadsWriter(Site& site, std::size_t typed = 0) : site_(site), node_(site.node()), type_(site.type(typed)) {}

  std::optional<Replacement> write_packed();
  std::optional<Replacement> write_quantized();
  std::optional<Replacement> write_multi_head();
  std::optional<Replacement> write_group_query();

 private:
  /// The indices of the inputs that are at different positions in Attention and in QAttention; all of these inputs are
  /// optional.
  struct PackedInputs {
    std::size_t mask = 0;
    std::size_t past = 0;
    std::size_t bias = 0;  ///< The index of an input that is added to the scores; 0 if the operator has none.
  };
  /// Writes attention for `all`, a tensor that holds query, key and value of these widths concatenated along the last
  /// axis. Returns nothing, and stores the reason with site.no(), if it cannot be written.
  std::optional<Replacement> write_projected(const std::string& all, const std::vector<std::int64_t>& sizes,
                                             const PackedInputs& inputs);
  /// Returns the widths of query, key and value along the last axis of the projected tensor. Returns nothing, and
  /// stores the reason with site.no(), if they are unknown or invalid.
  std::optional<std::vector<std::int64_t>> packed_sizes();

  std::string line(const std::string& output, const std::string& computation) {
    result_.line(fmt::format("{} = {}", output, computation));
    return output;
  }

  /// Writes nodes that change `x` from [batch, length, heads * size] to [batch, heads, length, size], and returns the
  /// name of the result, which begins with `name`.
  std::string apart(const std::string& name, const std::string& x, std::int64_t heads) {
    const std::string shape = result_.ints(fmt::format("apart_{}", heads), {0, 0, heads, -1});
    const std::string rows = line(name + "_rows", fmt::format("Reshape({}, {})", x, shape));
    return line(name + "_heads", fmt::format("Transpose<perm=[0, 2, 1, 3]>({})", rows));
  }

  /// Writes a Split of `x` along its last axis into query, key and value of these sizes, and returns their names, each
  /// with `suffix` appended.
  HeadTensors split(const std::string& x, const std::string& suffix, const std::vector<std::int64_t>& sizes) {
    HeadTensors parts{"q" + suffix, "k" + suffix, "v" + suffix};
    result_.line(fmt::format("{}, {}, {} = Split<axis=-1>({}, {})", parts.query, parts.key, parts.value, x,
                             result_.ints("split" + suffix, sizes)));
    return parts;
  }

  /// Registers a tensor, by name, that write_core() adds to the scores.
  void add_mask(const std::string& name) { masks_.push_back(name); }

  /// Returns `value`, but at least half of the lowest number of the type, so that the sum of two such values and scores
  /// stays finite.
  [[nodiscard]] double limited(double value) const {
    constexpr double half_of_lowest_f16 = -32752;
    constexpr double half_of_lowest = -1.6e38;  // of bf16 and of f32
    return std::max(value, type_ == onnx::ElementType::f16 ? half_of_lowest_f16 : half_of_lowest);
  }

  /// Writes a mask for the scores, 0 where `mask` is 1 and the attribute mask_filter_value where it is 0, and registers
  /// it. The mask is unsqueezed at `axes` to rank 4, unless `axes` is empty.
  void add_padding(const std::string& mask, const std::vector<std::int64_t>& axes) {
    const double filter = limited(node_.float_or("mask_filter_value", -10000));
    line("shown", fmt::format("Cast<to=bool>({})", mask));
    const std::string nothing = result_.number("nothing", 0, type_);
    const std::string padded = result_.number("padded", filter, type_);
    line("padding", fmt::format("Where(shown, {}, {})", nothing, padded));
    add_mask(axes.empty()
                 ? "padding"
                 : line("padding_of_heads", fmt::format("Unsqueeze(padding, {})", result_.ints("to_heads", axes))));
  }

  /// Writes the boolean tensor `name`, [batch, keys], that is true where the index of the key is less than the length
  /// of its sequence, and returns its name. `lengths` is the name of a tensor [batch], `key` of a tensor [batch, heads,
  /// keys, size].
  std::string keys_below(const std::string& name, const std::string& lengths, const std::string& key) {
    const std::string count = line(name + "_count", fmt::format("Shape<start=2, end=3>({})", key));
    const std::string scalar =
        line(name + "_scalar", fmt::format("Squeeze({}, {})", count, result_.ints("first", {0})));
    const std::string columns = line(name + "_columns", fmt::format("Range({}, {}, {})", result_.integer("zero", 0),
                                                                    scalar, result_.integer("one", 1)));
    const std::string wide = line(name + "_wide", fmt::format("Cast<to=int64>({})", lengths));
    const std::string rows = line(name + "_rows", fmt::format("Unsqueeze({}, {})", wide, result_.ints("second", {1})));
    return line(name, fmt::format("Less({}, {})", columns, rows));
  }

  void add_causal(const AxisOf& queries, const AxisOf& keys, const AxisOf& past) {
    write_causal_table(result_, "hidden", queries, keys, past, type_, limited(-HUGE_VAL));
    if (masks_.empty()) {
      add_mask("hidden");
      return;
    }
    // All keys of a query may be hidden or padded. ONNX Runtime then gives all of them the same share.
    line("hidden_and_padded", fmt::format("Add({}, hidden)", masks_.back()));
    const std::string least = result_.number("least", limited(-HUGE_VAL), type_);
    masks_.back() = line("hidden_or_padded", fmt::format("Max(hidden_and_padded, {})", least));
  }

  /// The known sizes with which the shapes of masks, biases and past tensors are checked.
  struct Sizes {
    std::optional<std::int64_t> batch = {}, heads = {}, queries = {}, keys = {}, head_size = {};
  };

  /// Returns whether an input is absent or its known sizes do not contradict `wanted`. Otherwise throws Error or, if
  /// the node is in a body, which may never run, stores the reason and returns false. `name` is the input's name in
  /// messages.
  bool fits(std::size_t input, std::string_view name, const WantedSizes& wanted);
  bool does_mask_fit(std::size_t input, std::string_view name, const Sizes& sizes);
  bool does_bias_of_scores_fit(std::size_t input, const Sizes& sizes);

  /// Registers the mask in input `input`, which may be a padding mask of rank 2 or 3 or the sequence lengths (rank 1).
  /// Returns false, and stores the reason with site.no(), if it has another form. `name` is its name in messages, `key`
  /// the key tensor [batch, heads, keys, size].
  bool add_mask_input(std::size_t input, const std::string& name, const std::string& key);

  /// Registers input `input`, if it is present, as a tensor that is added to the scores.
  void add_bias_input(std::size_t input) {
    if (site_.has_input(input)) add_mask(fmt::format("x{}", input));
  }

  /// Returns the factor of the scores: the attribute `scale`, or 1 / sqrt(head_size) if it is absent or 0. Returns
  /// nothing if that size is needed and unknown.
  [[nodiscard]] std::optional<double> scale(std::optional<std::int64_t> head_size) const {
    if (const double given = node_.float_or("scale", 0); given != 0) return given;
    if (!head_size || *head_size < 1) return std::nullopt;
    return 1 / std::sqrt(static_cast<double>(*head_size));
  }

  /// Writes the attention itself: scores, softcap, the registered masks, Softmax, the product with the values, and
  /// output y0 as [batch, length, heads * size].
  void write_core(const HeadTensors& heads, double scale) {
    const std::string factor = result_.number("factor", scale, type_);
    line("q_scaled", fmt::format("Mul({}, {})", heads.query, factor));
    line("k_swapped", fmt::format("Transpose<perm=[0, 1, 3, 2]>({})", heads.key));
    std::string scores = line("scores", "MatMul(q_scaled, k_swapped)");
    if (const float cap = node_.float_or("softcap", 0); cap > 0) {
      const std::string limit = result_.number("cap", cap, type_);
      line("uncapped", fmt::format("Div(scores, {})", limit));
      line("bent", "Tanh(uncapped)");
      scores = line("capped", fmt::format("Mul(bent, {})", limit));
    }
    for (std::size_t i = 0; i < masks_.size(); ++i) {
      scores = line(fmt::format("masked{}", i), fmt::format("Add({}, {})", scores, masks_[i]));
    }
    line("shares", fmt::format("Softmax<axis=-1>({})", scores));
    line("of_heads", fmt::format("MatMul(shares, {})", heads.value));
    line("together", "Transpose<perm=[0, 2, 1, 3]>(of_heads)");
    line("y0", fmt::format("Reshape(together, {})", result_.ints("joined_heads", {0, 0, -1})));
  }

  Site& site_;
  const onnx::Node& node_;
  onnx::ElementType type_;
  Replacement result_;
  std::vector<std::string> masks_;
};

bool HeadsWriter::fits(std::size_t input, std::string_view name, const WantedSizes& wanted) {
  const Shape* shape = site_.has_input(input) ? site_.shape(input) : nullptr;
  if (shape == nullptr) return true;
  bool is_wrong = shape->size() != wanted.size();
  for (std::size_t axis = 0; axis < wanted.size() && !is_wrong; ++axis) {
    const auto& [axis_name, size, may_be_one] = wanted[axis];
    const Dim& found = (*shape)[axis];
    is_wrong = size && found.is_constant() && found.value() != *size && !(may_be_one && found.value() == 1);
  }
  if (!is_wrong) return true;
  std::vector<std::string> allowed;
  for (const WantedSize& size : wanted) allowed.push_back(size.text());
  std::string what = fmt::format("its input {} '{}' has the shape {}; it must be [{}]", name, node_.input(input)->name,
                                 to_string(*shape), fmt::join(allowed, ", "));
  if (node_.graph->parent() == nullptr) throw Error(fmt::format("{}: {}", onnx::describe(node_), what));
  static_cast<void>(site_.no(std::move(what)));
  return false;
}

bool HeadsWriter::does_mask_fit(std::size_t input, std::string_view name, const Sizes& sizes) {
  const Shape* shape = site_.has_input(input) ? site_.shape(input) : nullptr;
  const WantedSize batch{"batch", sizes.batch};
  const WantedSize keys{"length of all keys", sizes.keys};
  if (shape != nullptr && shape->size() == 2) return fits(input, name, {batch, keys});
  if (shape == nullptr || shape->size() != 3) return true;
  return fits(input, name, {batch, {"length of the query", sizes.queries}, keys});
}

bool HeadsWriter::does_bias_of_scores_fit(std::size_t input, const Sizes& sizes) {
  return fits(input, "attention_bias",
              {{"batch", sizes.batch, true},
               {"num_heads", sizes.heads, true},
               {"length of the query", sizes.queries},
               {"length of all keys", sizes.keys}});
}

bool HeadsWriter::add_mask_input(std::size_t input, const std::string& name, const std::string& key) {
  if (!site_.has_input(input)) return true;
  const std::string mask = fmt::format("x{}", input);
  const Shape* shape = site_.shape(input);
  const auto refuse = [&](std::string_view why) {
    static_cast<void>(site_.no(fmt::format("its {} {}", name, why)));
    return false;
  };
  if (shape == nullptr) return refuse("has an unknown rank");
  if (shape->size() == 2) {
    add_padding(mask, {1, 2});
  } else if (shape->size() == 3) {
    add_padding(mask, {1});
  } else if (shape->size() == 1) {
    // The lengths without padding, one for each sequence. The other forms have more elements than sequences.
    const Shape* x = site_.shape(0);
    if (x == nullptr || x->empty() || x->front() != shape->front()) {
      return refuse("has rank 1 and not one length for each sequence of the batch");
    }
    add_padding(keys_below("below", mask, key), {1, 2});
  } else {
    return refuse("has rank 4");
  }
  return true;
}

std::optional<std::vector<std::int64_t>> HeadsWriter::packed_sizes() {
  for (const char* attribute : {"do_rotary", "past_present_share_buffer"}) {
    if (node_.int_or(attribute, 0) != 0) return site_.no(fmt::format("its attribute {} is not 0", attribute));
  }
  const std::int64_t heads = node_.int_or("num_heads", 0);
  const auto width = site_.size(1, -1);
  if (heads < 1 || !width) return site_.no("the number or the size of its heads is not known");
  std::vector<std::int64_t> sizes =
      site_.node().ints("qkv_hidden_sizes").value_or(std::vector<std::int64_t>(3, *width / 3));
  if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != *width || sizes[0] % heads != 0 || sizes[2] % heads != 0) {
    return site_.no("its qkv_hidden_sizes or num_heads do not divide the width of its weights");
  }
  if (*std::min_element(sizes.begin(), sizes.end()) < 1) return site_.no("the size of its heads is not positive");
  return sizes;
}

std::optional<Replacement> HeadsWriter::write_packed() {
  if (!site_.is_real(0)) return site_.no_type(0);
  if (site_.has_input(6)) return site_.no("its input past_sequence_length is used");
  const auto sizes = packed_sizes();
  if (!sizes) return std::nullopt;
  std::string all = line("projected", "MatMul(x0, x1)");
  if (site_.has_input(2)) all = line("with_bias", "Add(projected, x2)");
  return write_projected(all, *sizes, {.mask = 3, .past = 4, .bias = 5});
}

std::optional<Replacement> HeadsWriter::write_quantized() {
  enum Input : std::size_t { x, weights, bias, x_scale, weight_scale, mask, x_zero, weight_zero, past };
  if (type_ != onnx::ElementType::f32) return site_.no("its bias is not f32");
  const auto sizes = packed_sizes();
  if (!sizes) return std::nullopt;
  const auto zero = [&](std::size_t i) { return site_.has_input(i) ? fmt::format("x{}", i) : std::string("_"); };
  std::string zeros;
  if (site_.has_input(weight_zero)) {
    zeros = fmt::format(", {}, {}", zero(x_zero), zero(weight_zero));
  } else if (site_.has_input(x_zero)) {
    zeros = ", " + zero(x_zero);
  }
  line("sums", fmt::format("MatMulInteger(x0, x1{})", zeros));
  line("real_sums", "Cast<to=float>(sums)");
  line("scale", "Mul(x3, x4)");
  line("projected", "Mul(real_sums, scale)");
  return write_projected(line("with_bias", "Add(projected, x2)"), *sizes, {.mask = mask, .past = past, .bias = 0});
}

std::optional<Replacement> HeadsWriter::write_projected(const std::string& all, const std::vector<std::int64_t>& sizes,
                                                        const PackedInputs& inputs) {
  const std::int64_t heads = node_.int_or("num_heads", 0);
  Sizes own{.batch = site_.size(0, 0), .heads = heads, .queries = site_.size(0, 1)};
  own.head_size = sizes[1] / heads;
  const auto past_keys = site_.has_input(inputs.past) ? site_.size(inputs.past, 3) : 0;
  own.keys = sum_of(past_keys, own.queries);
  if (!fits(0, "input", {{"batch", own.batch}, {"length", own.queries}, {"width", site_.size(1, 0)}}) ||
      !fits(2, "bias", {{"width", sizes[0] + sizes[1] + sizes[2]}}) ||
      !fits(inputs.past, "past",
            {{"2", 2}, {"batch", own.batch}, {"heads", heads}, {"past length", past_keys}, {"size", own.head_size}}) ||
      !does_mask_fit(inputs.mask, "mask_index", own) ||
      (inputs.bias != 0 && !does_bias_of_scores_fit(inputs.bias, own))) {
    return std::nullopt;
  }
  const HeadTensors parts = split(all, "_part", sizes);
  HeadTensors now{apart("q", parts.query, heads), apart("k", parts.key, heads), apart("v", parts.value, heads)};
  const AxisOf queries{now.query, 2};
  const AxisOf keys{now.key, 2};
  AxisOf past{"", 2};
  if (site_.has_input(inputs.past)) {
    past.tensor = line("k_past", fmt::format("Gather<axis=0>(x{}, {})", inputs.past, result_.integer("zero", 0)));
    line("v_past", fmt::format("Gather<axis=0>(x{}, {})", inputs.past, result_.integer("one", 1)));
    now.key = line("k_all", fmt::format("Concat<axis=2>(k_past, {})", now.key));
    now.value = line("v_all", fmt::format("Concat<axis=2>(v_past, {})", now.value));
  }
  if (site_.is_used(1)) {
    const std::string front = result_.ints("first", {0});
    line("k_present", fmt::format("Unsqueeze({}, {})", now.key, front));
    line("v_present", fmt::format("Unsqueeze({}, {})", now.value, front));
    line("y1", "Concat<axis=0>(k_present, v_present)");
  }
  if (!add_mask_input(inputs.mask, "mask_index", now.key)) return std::nullopt;
  if (node_.int_or("unidirectional", 0) != 0) add_causal(queries, keys, past);
  if (inputs.bias != 0) add_bias_input(inputs.bias);
  write_core(now, *scale(sizes[0] / heads));
  result_.summary = fmt::format("MatMul, Softmax and MatMul of {} heads", heads);
  return std::move(result_);
}

std::optional<Replacement> HeadsWriter::write_multi_head() {
  enum Input { query, key, value, bias, padding, attention_bias, past_key, past_value, past_length, indirection };
  const Shape* q = site_.shape(query);
  if (q == nullptr || !site_.is_real(query)) return site_.no("the rank or the type of its query is not known");
  if (q->size() != 3 || !site_.has_input(key) || !site_.has_input(value)) {
    return site_.no("its query, key and value are packed in one tensor");
  }
  const Shape* k = site_.shape(key);
  const Shape* v = site_.shape(value);
  if (k == nullptr || v == nullptr) return site_.no("the rank of its key or value is not known");
  if (k->size() == 5) return site_.no("its key and value are packed in one tensor");
  const bool has_past = site_.has_input(past_key) || site_.has_input(past_value);
  const bool is_unidirectional = node_.int_or("unidirectional", 0) != 0;
  const bool has_equal_lengths = k->size() == 3 && (*k)[1] == (*q)[1];
  const bool has_more = site_.has_input(bias) || site_.has_input(padding) || has_past || site_.is_used(1) ||
                        site_.is_used(2) || site_.is_used(3) || k->size() != 3 || q->back() != v->back();
  const bool is_computed_wrongly = has_scale_without_root(node_) || (is_unidirectional && !has_equal_lengths);
  // TensorRT builds no attention layer in a body.
  const bool is_in_body = node_.graph->parent() != nullptr;
  const bool is_plain = !has_more && !has_mask_filter_value(node_);
  const bool is_native =
      is_plain && !is_in_body && !is_computed_wrongly && site_.shapes().options().has_multi_head_attention;
  if (is_plain) {
    result_.reason = is_in_body            ? "TensorRT builds no attention layer in the body of a node"
                     : is_computed_wrongly ? "TensorRT multiplies query and key by the square root of its scale"
                                           : "the release of TensorRT does not have com.microsoft::MultiHeadAttention";
  } else {
    result_.reason = has_more ? "TensorRT accepts only query, key, value and attention_bias of equal widths and one "
                                "output of com.microsoft::MultiHeadAttention"
                              : "TensorRT refuses mask_filter_value of com.microsoft::MultiHeadAttention";
  }
  if (site_.has_input(past_length)) return site_.no("its input past_sequence_length is used");
  if (site_.has_input(indirection)) return site_.no("its input cache_indirection is used");
  if (site_.is_used(3)) return site_.no("its output qk is used");
  if (site_.has_input(past_key) != site_.has_input(past_value)) return site_.no("one of its past tensors is missing");
  // ONNX Runtime's CPU kernel hides no key from the last query, which matters if there are more keys than queries.
  if (is_unidirectional && !has_equal_lengths) {
    return site_.no("its attribute unidirectional is 1, and its query and key may have different lengths");
  }
  const std::int64_t heads = node_.int_or("num_heads", 0);
  if (heads < 1) return site_.no("its num_heads is not positive");
  const auto width = site_.size(query, -1);
  if (width && *width % heads != 0) return site_.no("its num_heads does not divide the width of its query");
  const auto factor = scale(width ? std::optional(*width / heads) : std::nullopt);
  if (!factor && !is_native) return site_.no("the size of its heads is not known");

  Sizes own{.batch = site_.size(query, 0), .heads = heads, .queries = site_.size(query, 1)};
  if (width) own.head_size = *width / heads;
  const auto keys_now = site_.size(key, k->size() == 4 ? 2 : 1);
  const auto past_keys = has_past ? site_.size(past_key, 2) : 0;
  own.keys = sum_of(past_keys, keys_now);
  const WantedSize batch{"batch", own.batch};
  const WantedSize head_count{"num_heads", heads};
  const WantedSizes rows_of_keys = k->size() == 4
                                       ? WantedSizes{batch, head_count, {"length", keys_now}, {"size", own.head_size}}
                                       : WantedSizes{batch, {"length", keys_now}, {"width of the query", width}};
  const WantedSizes rows_of_values = v->size() == 4
                                         ? WantedSizes{batch, head_count, {"length", keys_now}, {"size", {}}}
                                         : WantedSizes{batch, {"length of the key", keys_now}, {"width", {}}};
  const WantedSizes past{batch, head_count, {"past length", past_keys}, {"size of a head", {}}};
  if (!fits(key, "key", rows_of_keys) || !fits(value, "value", rows_of_values) || !fits(past_key, "past_key", past) ||
      !fits(past_value, "past_value", past) || !does_mask_fit(padding, "key_padding_mask", own) ||
      !does_bias_of_scores_fit(attention_bias, own)) {
    return std::nullopt;
  }
  if (is_native) return std::nullopt;

  HeadTensors rows{"x0", "x1", "x2"};
  if (site_.has_input(bias)) {
    const auto v_width = site_.size(value, v->size() == 4 ? 3 : -1);
    if (!width || !v_width || k->size() != 3 || v->size() != 3) {
      return site_.no("its bias is used, and its key and value do not have rank 3 and known sizes");
    }
    if (!fits(bias, "bias", {{"widths of query, key and value", sum_of(sum_of(width, width), v_width)}})) {
      return std::nullopt;
    }
    const HeadTensors parts = split("x3", "_bias", {*width, *width, *v_width});
    rows = {line("q_biased", fmt::format("Add(x0, {})", parts.query)),
            line("k_biased", fmt::format("Add(x1, {})", parts.key)),
            line("v_biased", fmt::format("Add(x2, {})", parts.value))};
  }
  HeadTensors now{apart("q", rows.query, heads), k->size() == 4 ? rows.key : apart("k", rows.key, heads),
                  v->size() == 4 ? rows.value : apart("v", rows.value, heads)};
  const AxisOf queries{now.query, 2};
  const AxisOf keys{now.key, 2};
  if (has_past) {
    now.key = line(site_.is_used(1) ? "y1" : "k_all", fmt::format("Concat<axis=2>(x6, {})", now.key));
    now.value = line(site_.is_used(2) ? "y2" : "v_all", fmt::format("Concat<axis=2>(x7, {})", now.value));
  } else {
    if (site_.is_used(1)) line("y1", fmt::format("Identity({})", now.key));
    if (site_.is_used(2)) line("y2", fmt::format("Identity({})", now.value));
  }
  if (!add_mask_input(padding, "key_padding_mask", now.key)) return std::nullopt;
  if (is_unidirectional) add_causal(queries, keys, {has_past ? "x6" : "", 2});
  add_bias_input(attention_bias);
  write_core(now, *factor);
  result_.summary = fmt::format("MatMul, Softmax and MatMul of {} heads", heads);
  return std::move(result_);
}

std::optional<Replacement> HeadsWriter::write_group_query() {
  enum Input { query, key, value, past_key, past_value, lengths, total, cos, sin, positions, attention_bias };
  if (!site_.is_real(query)) return site_.no_type(query);
  constexpr std::pair<std::size_t, const char*> refused[] = {{past_key, "past_key"},
                                                             {past_value, "past_value"},
                                                             {positions, "position_ids"},
                                                             {11, "head_sink"},
                                                             {12, "k_scale"},
                                                             {13, "v_scale"},
                                                             {14, "q_norm_weight"},
                                                             {15, "k_norm_weight"}};
  for (const auto& [input, name] : refused) {
    if (site_.has_input(input)) return site_.no(fmt::format("its input {} is used", name));
  }
  if (site_.is_used(3)) return site_.no("its output output_qk is used");
  if (node_.int_or("smooth_softmax", -1) > 0) return site_.no("its attribute smooth_softmax is 1");
  if (node_.int_or("sliding_window_cache", 0) != 0) return site_.no("its attribute sliding_window_cache is not 0");
  if (node_.int_or("local_window_size", -1) > 0) return site_.no("its attribute local_window_size is used");
  const std::int64_t heads = node_.int_or("num_heads", 0);
  const std::int64_t kv_heads = node_.int_or("kv_num_heads", 0);
  const auto width = site_.size(query, -1);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || !width) {
    return site_.no("the number or the size of its heads is not known");
  }
  const bool is_packed = !site_.has_input(key);
  const std::int64_t size = *width / (is_packed ? heads + 2 * kv_heads : heads);
  if (size < 1) return site_.no("its query is narrower than its number of heads");
  Sizes own{.batch = site_.size(query, 0), .heads = heads, .queries = site_.size(query, 1)};
  own.keys = is_packed ? own.queries : site_.size(key, 1);
  const WantedSize batch{"batch", own.batch};
  const WantedSize kv_width{"kv_num_heads times the size of a head", kv_heads * size};
  if (!fits(key, "key", {batch, {"length", own.keys}, kv_width}) ||
      !fits(value, "value", {batch, {"length of the key", own.keys}, kv_width}) ||
      !does_bias_of_scores_fit(attention_bias, own)) {
    return std::nullopt;
  }
  const HeadTensors rows = is_packed ? split("x0", "_part", {heads * size, kv_heads * size, kv_heads * size})
                                     : HeadTensors{"x0", "x1", "x2"};
  HeadTensors now{apart("q", rows.query, heads), apart("k", rows.key, kv_heads), apart("v", rows.value, kv_heads)};
  if (node_.int_or("do_rotary", 0) != 0) {
    const auto half = site_.size(cos, -1);
    if (!half) return site_.no("its attribute do_rotary is 1, and the size of its cos_cache is not known");
    const std::string first = result_.ints("first", {0});
    line("length", fmt::format("Shape<start=2, end=3>({})", now.query));
    for (const auto& [name, cache] : {std::pair{"cos", "x7"}, std::pair{"sin", "x8"}}) {
      line(fmt::format("{}_rows", name), fmt::format("Slice({0}, {1}, length, {1})", cache, first));
      line(name, fmt::format("Unsqueeze({}_rows, {})", name, first));
    }
    const bool is_interleaved = node_.int_or("rotary_interleaved", 0) != 0;
    const bool is_whole = 2 * *half == size;
    now.query = rotate(result_, "q", now.query, "cos", "sin", 1, 2 * *half, is_whole, is_interleaved);
    now.key = rotate(result_, "k", now.key, "cos", "sin", 1, 2 * *half, is_whole, is_interleaved);
  }
  if (site_.is_used(1)) line("y1", fmt::format("Identity({})", now.key));
  if (site_.is_used(2)) line("y2", fmt::format("Identity({})", now.value));
  // The last key of each sequence is given: those after it are padding.
  line("limits", fmt::format("Add(x5, {})", result_.constant("one_i32", onnx::TensorData::from_numbers(
                                                                            onnx::ElementType::i32, {}, {1}))));
  add_padding(keys_below("below", "limits", now.key), {1, 2});
  if (node_.int_or("causal", 1) != 0) add_causal({now.query, 2}, {now.key, 2}, {"", 2});
  add_bias_input(attention_bias);
  if (heads != kv_heads) {
    std::vector<std::int64_t> head_of;
    for (std::int64_t head = 0; head < heads; ++head) head_of.push_back(head / (heads / kv_heads));
    const std::string which = result_.ints("which_head", head_of);
    now.key = line("k_of_all", fmt::format("Gather<axis=1>({}, {})", now.key, which));
    now.value = line("v_of_all", fmt::format("Gather<axis=1>({}, {})", now.value, which));
  }
  write_core(now, *scale(size));
  result_.summary = fmt::format("MatMul, Softmax and MatMul of {} heads", heads);
  return std::move(result_);
}

}  // namespace

std::optional<Replacement> lower_packed_attention(Site& site) { return HeadsWriter(site).write_packed(); }
std::optional<Replacement> lower_quantized_attention(Site& site) { return HeadsWriter(site, 2).write_quantized(); }
std::optional<Replacement> lower_multi_head_attention(Site& site) { return HeadsWriter(site).write_multi_head(); }
std::optional<Replacement> lower_group_query_attention(Site& site) { return HeadsWriter(site).write_group_query(); }

std::optional<Replacement> lower_rotary_embedding(Site& site) {
  const onnx::Node& node = site.node();
  if (!site.is_real(0)) return site.no_type(0);
  if (node.int_or("is_packed_batching", 0) != 0) return site.no("its attribute is_packed_batching is not 0");
  if (node.float_or("scale", 1) != 1) return site.no("its attribute scale is not 1");
  const Shape* shape = site.shape(0);
  const Shape* positions = site.shape(1);
  if (shape == nullptr || positions == nullptr)
    return site.no("the rank of its input or of its position_ids is not known");
  if (shape->size() != 3 && shape->size() != 4) return site.no("its input has neither rank 3 nor rank 4");
  const auto half = site.size(2, -1);
  if (!half) return site.no("the width of its cos_cache is not known");
  if (*half < 1 || *half > most_constants) return site.no("the width of its cos_cache is outside of what is supported");
  const std::int64_t rotated = 2 * *half;
  const std::int64_t heads = node.int_or("num_heads", 0);
  const bool is_flat = shape->size() == 3;
  const auto width = site.size(0, -1);
  if (!width) return site.no("the size of the last axis of its input is not known");
  const bool is_part = node.int_or("rotary_embedding_dim", 0) > 0;
  if (is_part && is_flat && heads < 1) return site.no("its rotary_embedding_dim is given, and its num_heads is not");
  const std::int64_t size = !is_flat ? *width : is_part ? *width / heads : rotated;
  if (size < rotated || *width % size != 0) return site.no("its cos_cache is wider than half of a head");

  const onnx::ElementType type = site.type(0);
  Replacement result;
  const int length_axis = is_flat ? 1 : 2;
  std::string at = "x1";
  if (positions->size() == 1) {  // the position of the first element
    const std::string first = result.ints("first", {0});
    result.line(fmt::format("length = Shape<start={}, end={}>(x0)", length_axis, length_axis + 1));
    result.line(fmt::format("length_scalar = Squeeze(length, {})", first));
    result.line(
        fmt::format("numbers = Range({}, length_scalar, {})", result.integer("zero", 0), result.integer("one", 1)));
    result.line("moved = Add(numbers, x1)");
    result.line(fmt::format("at = Unsqueeze(moved, {})", first));
    at = "at";
  }
  result.line(fmt::format("cos = Gather({}, {})", result.in_f32("x2", type), at));
  result.line(fmt::format("sin = Gather({}, {})", result.in_f32("x3", type), at));
  std::string x = result.in_f32("x0", type);
  if (is_flat) {
    result.line(fmt::format("apart = Reshape({}, {})", x, result.ints("apart_shape", {0, 0, *width / size, size})));
    x = "apart";
  }
  const std::string turned = rotate(result, "x", x, "cos", "sin", is_flat ? 2 : 1, rotated, rotated == size,
                                    node.int_or("interleaved", 0) != 0);
  result.give("y0", type,
              is_flat ? fmt::format("Reshape({}, {})", turned, result.ints("y_shape", {0, 0, *width}))
                      : fmt::format("Identity({})", turned));
  result.summary = "Gather, Mul, Add and Concat";
  return result;
}

}  // namespace graft::passes
