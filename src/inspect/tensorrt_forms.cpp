// Forms that a node shows itself: its attributes, its constants, and the types and shapes of its tensors.
// tensorrt_surroundings.cpp has the forms that depend on other nodes.
#include "inspect/tensorrt_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "inspect/tensorrt_release.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/schema.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/lowering/refused_forms.hpp"

namespace graft::inspect {
namespace {

constexpr std::string_view for_evaluation =
    "export the network in evaluation mode, as with PyTorch's model.eval(): it is in training mode";
constexpr std::string_view no_complex_numbers =
    "export the network with the real and the imaginary parts as separate tensors";
constexpr std::string_view other_integers =
    "export the network with i32 or i64 instead of this type, or cast its inputs to one of these types";
constexpr std::string_view different_value_size =
    "its keys and values have different sizes; TensorRT's Attention accepts only equal ones";

std::optional<double> constant_of(const onnx::Value* value) {
  const std::optional<onnx::TensorData> constant = value == nullptr ? std::nullopt : value->constant();
  return constant ? constant->scalar() : std::nullopt;
}

void add_top_k(const onnx::Node& node, Forms& forms) {
  if (!passes::has_large_k(node)) return;
  forms.push_back({"top_k_above_3840", fmt::format("K is {}; TensorRT's builder accepts at most {}",
                                                   onnx::constant_ints(node.input(1))->front(), passes::largest_k)});
}

void add_resize(const onnx::Node& node, Forms& forms) {
  if (passes::keeps_aspect_ratio(node)) {
    forms.push_back(
        {"resize_aspect_ratio", fmt::format("keep_aspect_ratio_policy = {}; TensorRT's Resize supports only stretch",
                                            node.string_or("keep_aspect_ratio_policy", ""))});
  }
  if (passes::has_refused_coordinates(node)) {
    forms.push_back({"resize_coordinates",
                     fmt::format("coordinate_transformation_mode = {}, which TensorRT's Resize does not support",
                                 node.string_or("coordinate_transformation_mode", ""))});
  }
}

/// Returns the attribute `name` if it is a list of `count` numbers, otherwise a list of `count` times `fallback`.
std::vector<std::int64_t> numbers_or(const onnx::Node& node, std::string_view name, std::size_t count,
                                     std::int64_t fallback) {
  const auto numbers = node.ints(name);
  return numbers && numbers->size() == count ? *numbers : std::vector<std::int64_t>(count, fallback);
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if the last window of a pool with ceil_mode
/// starts after the data and the padding before them. ONNX Runtime, and ONNX from opset 22 on, omit this window;
/// TensorRT's parser does not.
void add_pooling_past_end(const onnx::Node& node, Forms& forms) {
  const onnx::Value* data = node.input(0);
  const auto kernel = node.ints("kernel_shape");
  if (node.int_or("ceil_mode", 0) == 0 || node.string_or("auto_pad", "NOTSET") != "NOTSET" || data == nullptr ||
      !data->shape || !kernel || data->shape->size() != kernel->size() + 2) {
    return;
  }
  const std::size_t spatial = kernel->size();
  const auto strides = numbers_or(node, "strides", spatial, 1);
  const auto dilations = numbers_or(node, "dilations", spatial, 1);
  const auto pads = numbers_or(node, "pads", spatial * 2, 0);
  for (std::size_t i = 0; i < spatial; ++i) {
    const Dim& size = (*data->shape)[i + 2];
    if (!size.is_constant() || strides[i] <= 0) continue;
    const std::int64_t room = size.value() + pads[i] + pads[i + spatial] - ((*kernel)[i] - 1) * dilations[i] - 1;
    if (room < 0) continue;
    const std::int64_t last_start = (room + strides[i] - 1) / strides[i] * strides[i];
    if (last_start < size.value() + pads[i]) continue;
    forms.push_back({.name = "pooling_past_end",
                     .what = fmt::format("ceil_mode = 1, and the last window along axis {} would start after the data; "
                                         "TensorRT adds that window to the output",
                                         i + 2),
                     .advice = "set ceil_mode to 0 and choose explicit pads that lead to the same size",
                     .is_computed_wrongly = true});
    return;
  }
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if a ConvTranspose has auto_pad together
/// with an output_shape that differs from the size that TensorRT computes. With auto_pad, TensorRT's parser ignores
/// output_shape.
void add_conv_transpose(const onnx::Node& node, Forms& forms) {
  const std::string auto_pad = node.string_or("auto_pad", "NOTSET");
  const auto wanted = node.ints("output_shape");
  if (auto_pad == "NOTSET" || !wanted) return;
  const onnx::Value* data = node.input(0);
  const onnx::Value* weights = node.input(1);
  const std::size_t spatial = wanted->size();
  const bool are_ranks_known = data != nullptr && data->shape && data->shape->size() == spatial + 2 &&
                               weights != nullptr && weights->shape && weights->shape->size() == spatial + 2;
  const auto strides = numbers_or(node, "strides", spatial, 1);
  const auto dilations = numbers_or(node, "dilations", spatial, 1);
  const auto more = numbers_or(node, "output_padding", spatial, 0);
  bool is_reached = are_ranks_known;
  for (std::size_t i = 0; is_reached && i < spatial; ++i) {
    const Dim& size = (*data->shape)[i + 2];
    const Dim& kernel = (*weights->shape)[i + 2];
    if (!size.is_constant() || !kernel.is_constant()) {
      is_reached = false;
      break;
    }
    const std::int64_t whole = (size.value() - 1) * strides[i] + (kernel.value() - 1) * dilations[i] + 1 + more[i];
    const std::int64_t same = std::min(whole, size.value() * strides[i]);
    is_reached = (*wanted)[i] == (auto_pad == "VALID" ? whole : same);
  }
  if (is_reached) return;
  forms.push_back(
      {.name = "conv_transpose_sizes",
       .what = fmt::format("auto_pad = {} and output_shape are both set; TensorRT ignores output_shape in this case",
                           auto_pad),
       .advice = "replace auto_pad and output_shape with explicit pads and output_padding",
       .is_computed_wrongly = true});
}

void add_lp_pool(const onnx::Node& node, Forms& forms) {
  if (passes::has_other_norm(node)) {
    forms.push_back(
        {"lp_pool_p", fmt::format("p = {}; TensorRT supports LpPool only for p = 1 and p = 2", node.int_or("p", 2))});
  }
  add_pooling_past_end(node, forms);
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` for each attribute of an LRN that is outside
/// the limits in the documentation of TensorRT's ILRNLayer.
void add_lrn(const onnx::Node& node, Forms& forms) {
  constexpr std::int64_t largest_window = 15;
  if (const std::int64_t size = node.int_or("size", 1); size < 1 || size > largest_window || size % 2 == 0) {
    forms.push_back({"lrn_size", fmt::format("size = {}; TensorRT's LRN supports only odd sizes from 1 to {}", size,
                                             largest_window)});
  }
  struct Range {
    std::string_view name;
    float otherwise, least, largest;
  };
  constexpr auto ranges = std::to_array<Range>(
      {{"alpha", 1e-4F, -1e20F, 1e20F}, {"beta", 0.75F, 0.01F, 1e5F}, {"bias", 1.0F, 1e-5F, 1e10F}});
  for (const Range& range : ranges) {
    const float value = node.float_or(range.name, range.otherwise);
    if (value >= range.least && value <= range.largest) continue;
    forms.push_back({"lrn_parameters", fmt::format("{} = {}; TensorRT's LRN accepts {} to {}", range.name, value,
                                                   range.least, range.largest)});
  }
}

void add_scatter_reduction(const onnx::Node& node, Forms& forms) {
  if (!passes::has_reduction(node)) return;
  forms.push_back(
      {node.is("ScatterND") ? "scatter_nd_reduction" : "scatter_elements_reduction",
       fmt::format("reduction = {}; TensorRT scatters only without a reduction", node.string_or("reduction", ""))});
}

/// Appends an entry, a reason why TensorRT may refuse the node, to `forms` if a ScatterElements has a reduction or,
/// without one, more indices than data along an axis.
void add_scatter_elements(const onnx::Node& node, Forms& forms) {
  add_scatter_reduction(node, forms);
  if (passes::has_reduction(node)) return;
  const onnx::Value* data = node.input(0);
  const onnx::Value* indices = node.input(1);
  if (data == nullptr || indices == nullptr || !data->shape || !indices->shape) return;
  for (std::size_t axis = 0; axis < std::min(data->shape->size(), indices->shape->size()); ++axis) {
    const Dim& places = (*data->shape)[axis];
    const Dim& named = (*indices->shape)[axis];
    if (!places.is_constant() || !named.is_constant() || named.value() <= places.value()) continue;
    forms.push_back(
        {"scatter_elements_of_more", fmt::format("it has {} indices along axis {}, where the data has {} elements; "
                                                 "TensorRT accepts at most as many indices as elements",
                                                 named.value(), axis, places.value())});
    return;
  }
}

bool is_type_of(const onnx::Value* value, std::initializer_list<onnx::ElementType> types) {
  return value != nullptr && value->type && std::find(types.begin(), types.end(), *value->type) != types.end();
}

/// Returns the first input or, if no input matches, the first output of a node whose type is one of `types`, or null.
const onnx::Value* tensor_of_type(const onnx::Node& node, std::initializer_list<onnx::ElementType> types) {
  for (const std::vector<onnx::Value*>* values : {&node.inputs, &node.outputs}) {
    for (const onnx::Value* value : *values) {
      if (is_type_of(value, types)) return value;
    }
  }
  return nullptr;
}

/// Appends an entry named `form`, a reason why TensorRT may refuse the node, to `forms` if input `index` of a node is
/// an input of the network, although TensorRT requires a constant. `what` names the input in the message.
void add_fed_input(const onnx::Node& node, std::size_t index, std::string_view what, std::string_view form,
                   Forms& forms) {
  const onnx::Value* value = node.input(index);
  if (value == nullptr || !value->is_input || value->initializer) return;
  forms.push_back({form, fmt::format("its {} '{}' is an input of the network; TensorRT accepts only a constant", what,
                                     value->name)});
}

constexpr std::initializer_list<onnx::ElementType> narrow_types = {
    onnx::ElementType::f8e4m3fn,   onnx::ElementType::f8e4m3fnuz, onnx::ElementType::f8e5m2,
    onnx::ElementType::f8e5m2fnuz, onnx::ElementType::f8e8m0,     onnx::ElementType::u4,
    onnx::ElementType::i4,         onnx::ElementType::f4e2m1,     onnx::ElementType::u2,
    onnx::ElementType::i2,         onnx::ElementType::f6e2m3};

std::int64_t element_count(const onnx::Value& value) {
  std::int64_t count = 1;
  for (const Dim& dim : *value.shape) count *= dim.is_constant() ? dim.value() : 0;
  return count;
}

void add_quantization(const onnx::Node& node, Forms& forms) {
  constexpr std::string_view symmetric =
      "graft convert replaces it by i8 with zero point 0 where that is exact, and otherwise computes it in f32; or "
      "quantize to i8 with zero point 0 (symmetric) instead; or {} leaves the node to the host";
  using enum onnx::ElementType;
  if (const onnx::Value* value = tensor_of_type(node, {u8})) {
    // Where the zero point is 0 or left out, the parser takes i8 instead: values above 127 * scale are clipped.
    forms.push_back({.name = "quantize_u8",
                     .what = fmt::format("'{}' is u8; TensorRT quantizes only to signed integers", value->name),
                     .advice = symmetric,
                     .is_computed_wrongly = true});
  }
  if (const onnx::Value* value = tensor_of_type(node, {f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, u4, u2, i2, f6e2m3})) {
    forms.push_back({"missing_type", fmt::format("'{}' is {}, a type that TensorRT does not support", value->name,
                                                 to_string(*value->type))});
  }
  const onnx::Value* narrow = tensor_of_type(node, {i4, f4e2m1});
  if (narrow != nullptr && narrow->shape && element_count(*narrow) % 2 != 0) {
    forms.push_back(
        {"odd_4_bits",
         fmt::format("'{}' has an odd number of 4-bit elements; TensorRT accepts only an even number", narrow->name)});
  }
  // The zero point of f8 may be an input of the network.
  if (tensor_of_type(node, {f8e4m3fn}) == nullptr) {
    add_fed_input(node, 2, "zero point", "quantize_zero_point_input", forms);
  }
  const onnx::Value* zero = node.input(2);
  const std::optional<onnx::TensorData> constant = zero == nullptr ? std::nullopt : zero->constant();
  if (!constant) return;
  const auto bytes = constant->bytes.view();
  if (std::all_of(bytes.begin(), bytes.end(), [](auto byte) { return byte == decltype(byte){}; })) return;
  forms.push_back({"quantize_zero_point", "its zero point is not zero; TensorRT quantizes symmetrically", symmetric});
}

/// Returns whether a bidirectional recurrent node has different activations in its two directions.
bool has_other_activations(const onnx::Node& node) {
  const onnx::NodeAttribute* attribute = node.attribute("activations");
  const auto* names = attribute == nullptr ? nullptr : attribute->get<std::vector<std::string>>();
  if (names == nullptr || names->size() % 2 != 0 || node.string_or("direction", "forward") != "bidirectional") {
    return false;
  }
  const auto half = names->begin() + static_cast<std::ptrdiff_t>(names->size() / 2);
  return !std::equal(names->begin(), half, half, names->end());
}

void add_recurrent(const onnx::Node& node, Forms& forms) {
  if (passes::is_batch_first(node)) {
    // The parser accepts it, and the engine's outputs have the shapes of layout 0 (measured with TensorRT-RTX 1.7).
    forms.push_back({.name = "recurrent_layout",
                     .what = "layout = 1; TensorRT ignores the layout, and treats the batch axis as time",
                     .is_computed_wrongly = true});
  }
  if (has_other_activations(node)) {
    forms.push_back(
        {"recurrent_activations",
         "its activations differ between the reverse and the forward pass; TensorRT accepts only equal ones"});
  }
  constexpr std::size_t lengths = 4;
  if (node.input(lengths) != nullptr && passes::reads_half(node)) {
    // The parser adds a selection between the steps of a sequence and zeros of f32, and then refuses its own layer.
    forms.push_back(
        {"recurrent_lengths_half",
         fmt::format(
             "it has sequence lengths and is in f16 or bf16; TensorRT accepts {} with sequence lengths only in f32",
             node.op_type)});
  }
  if (node.is("LSTM") && passes::couples_gates(node)) {
    forms.push_back({"lstm_input_forget", "input_forget is set, which TensorRT's LSTM does not support"});
  }
}

/// Returns the rank of a value, or -1 if it is unknown.
std::int64_t rank_of(const onnx::Value* value) { return value == nullptr ? -1 : value->rank().value_or(-1); }

void add_tensor_scatter(const onnx::Node& node, Forms& forms) {
  if (const std::string mode = node.string_or("mode", "linear"); mode != "linear") {
    forms.push_back(
        {"tensor_scatter_mode", fmt::format("mode = {}; TensorRT's TensorScatter supports only linear", mode)});
  }
  const std::int64_t rank = rank_of(node.input(0));
  if (rank < 0 || rank == 4) return;
  forms.push_back(
      {"tensor_scatter_rank", fmt::format("its past_cache has rank {}; TensorRT accepts only rank 4", rank)});
}

/// Returns the number of elements of each head of an Attention's query, or nothing if it is unknown.
std::optional<std::int64_t> size_of_heads(const onnx::Node& node) {
  const onnx::Value* query = node.input(0);
  const std::int64_t rank = rank_of(query);
  if (rank < 3 || !query->shape->back().is_constant()) return std::nullopt;
  const std::int64_t width = query->shape->back().value();
  return rank == 4 ? width : width / std::max<std::int64_t>(node.int_or("q_num_heads", 1), 1);
}

/// Returns whether the sequence length of a query is 1.
bool has_one_query(const onnx::Value& query) {
  return query.shape->size() > 2 && (*query.shape)[query.shape->size() - 2] == Dim(1);
}

/// Returns a clause that says why TensorRT has no fused kernel for an Attention, or an empty string if it has one.
std::string missing_kernel(const onnx::Node& node) {
  constexpr std::int64_t largest_head = 256;
  const onnx::Value& query = *node.input(0);
  const std::optional<std::int64_t> heads = size_of_heads(node);
  if (has_one_query(query)) {
    constexpr std::int64_t multiple = 8;
    if (!heads || (*heads % multiple == 0 && *heads <= largest_head)) return {};
    return fmt::format("it has one query and heads of size {}; TensorRT has kernels only for multiples of {} up to {}",
                       *heads, multiple, largest_head);
  }
  if (is_type_of(&query, {onnx::ElementType::f32, onnx::ElementType::f64})) {
    return "it is in f32, for which TensorRT has a kernel only with a single query";
  }
  constexpr std::int64_t smallest_head = 9;
  if (!heads || (*heads >= smallest_head && *heads <= largest_head)) return {};
  return fmt::format("it has heads of size {}; TensorRT has kernels only for the sizes {} to {}", *heads, smallest_head,
                     largest_head);
}

bool has_known_sizes(const onnx::Value* value) { return value != nullptr && onnx::has_known_sizes(*value); }

/// Appends entries, reasons why TensorRT may refuse the node or compute it wrongly, to `forms`: one if TensorRT's
/// parser ignores which keys an Attention hides, and one if TensorRT has no fused kernel for the Attention. Without a
/// fused kernel, newer releases build an Attention of rank 3 only if it has several queries, no mask, as many key heads
/// as query heads, and fixed sizes.
void add_attention(const onnx::Node& node, Forms& forms) {
  if (passes::has_ignored_masks(node)) {
    // The parser builds the same layers with and without them (measured with TensorRT-RTX 1.7).
    forms.push_back({.name = "attention_ignored_masks",
                     .what = fmt::format("{} is set, which TensorRT's parser ignores: the engine attends to keys that "
                                         "should be hidden",
                                         node.input(6) != nullptr ? "nonpad_kv_seqlen" : "a window"),
                     .is_computed_wrongly = true});
  }
  const onnx::Value* query = node.input(0);
  if (rank_of(query) < 0) {
    forms.push_back({"attention_of_unknown_rank", "the rank of its query is unknown"});
    return;
  }
  std::string missing = missing_kernel(node);
  if (missing.empty()) return;
  const bool is_plain = rank_of(query) == 3 && !has_one_query(*query) && node.input(3) == nullptr &&
                        node.int_or("is_causal", 0) == 0 &&
                        node.int_or("q_num_heads", 0) == node.int_or("kv_num_heads", 0);
  if (!is_plain) {
    forms.push_back({"attention_without_kernel", std::move(missing)});
    return;
  }
  forms.push_back({"attention_plain", missing});
  if (has_known_sizes(query) && has_known_sizes(node.input(1)) && has_known_sizes(node.input(2))) return;
  forms.push_back({.name = "attention_plain_dynamic", .what = std::move(missing), .builds_at_fixed_sizes = true});
}

void add_multi_head_attention(const onnx::Node& node, Forms& forms) {
  constexpr auto refused = std::to_array<std::pair<std::size_t, std::string_view>>({{3, "bias"},
                                                                                    {4, "key_padding_mask"},
                                                                                    {6, "past_key"},
                                                                                    {7, "past_value"},
                                                                                    {8, "past_sequence_length"},
                                                                                    {9, "cache_indirection"}});
  for (const auto& [index, name] : refused) {
    if (node.input(index) == nullptr) continue;
    forms.push_back(
        {"multi_head_attention_inputs",
         fmt::format("its input {} is used; TensorRT accepts only query, key, value and attention_bias", name)});
    break;
  }
  if (passes::returns_more_than_attention(node)) {
    forms.push_back({"multi_head_attention_outputs", "more than its first output is used"});
  }
  if (passes::has_mask_filter_value(node)) {
    forms.push_back({"multi_head_attention_mask_filter_value",
                     "its attribute mask_filter_value is set, which TensorRT does not accept"});
  }
  if (passes::has_scale_without_root(node)) {
    forms.push_back({.name = "multi_head_attention_scale",
                     .what = fmt::format("its scale is {}, and TensorRT multiplies query and key by the square root of "
                                         "the scale",
                                         node.float_or("scale", 0)),
                     .is_computed_wrongly = true});
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (node.input(i) != nullptr && (rank_of(node.input(i)) < 0 || rank_of(node.input(i)) == 3)) continue;
    forms.push_back({"multi_head_attention_packed", "query, key and value are not three tensors of rank 3"});
    return;
  }
  const onnx::Value& query = *node.input(0);
  const onnx::Value& key = *node.input(1);
  const onnx::Value& value = *node.input(2);
  const bool has_equal_lengths = query.shape && key.shape && (*query.shape)[1] == (*key.shape)[1];
  if (node.int_or("unidirectional", 0) != 0 && !has_equal_lengths) {
    forms.push_back({.name = "multi_head_attention_lengths",
                     .what = "its attribute unidirectional is 1, and its query and key may have different lengths; "
                             "TensorRT then hides the last keys from the last query",
                     .advice = "give its query and key the same length; or {} leaves the node to the host",
                     .is_computed_wrongly = true});
  }
  if (key.shape && value.shape && key.shape->back() != value.shape->back()) {
    forms.push_back({"attention_value_size", std::string(different_value_size)});
  }
}

bool has_general_subscripts(const onnx::Node& node) {
  const std::string equation = node.string_or("equation", "");
  if (equation.find('.') != std::string::npos) return true;
  // A letter that occurs twice in one operand means a diagonal.
  std::string operand;
  for (const char letter : equation.substr(0, equation.find('-')) + ",") {
    if (letter == ',') {
      operand.clear();
    } else if (letter != ' ') {
      if (operand.find(letter) != std::string::npos) return true;
      operand += letter;
    }
  }
  return false;
}

void add_types(const onnx::Node& node, Forms& forms) {
  using enum onnx::ElementType;
  if (const onnx::Value* value = tensor_of_type(node, {i16, u16, u32, u64, complex64, complex128})) {
    const bool is_complex = is_type_of(value, {complex64, complex128});
    forms.push_back(
        {"missing_type",
         fmt::format("'{}' is {}, a type that TensorRT does not support", value->name, to_string(*value->type)),
         is_complex                       ? no_complex_numbers
         : passes::has_lowered_form(node) ? std::string_view()
                                          : other_integers});
  }
  const bool casts = node.is("Cast") || node.is("CastLike");
  if (const onnx::Value* value = casts ? find_narrow(node) : nullptr) {
    forms.push_back({"narrow_cast",
                     fmt::format("'{}' is {}, which TensorRT accepts only between QuantizeLinear and DequantizeLinear",
                                 value->name, to_string(*value->type))});
  }
  if (is_any_of(node, {"DequantizeLinear", "QuantizeLinear", "Clip"})) return;
  for (const onnx::Value* value : node.inputs) {
    if (!is_type_of(value, {i8}) || !value->constant()) continue;
    forms.push_back({"constant_i8",
                     fmt::format("'{}' is a constant of type i8, which TensorRT accepts only before DequantizeLinear",
                                 value->name)});
    return;
  }
}

bool has_wider_values(const onnx::Node& attention) {
  const onnx::Value* key = attention.input(1);
  const onnx::Value* value = attention.input(2);
  return rank_of(key) > 2 && rank_of(key) == rank_of(value) && key->shape->back() != value->shape->back();
}

bool has_computed_limit(const onnx::Node& clip) {
  return std::any_of(clip.inputs.begin() + 1, clip.inputs.end(),
                     [](const onnx::Value* limit) { return limit == nullptr || !limit->constant(); });
}

void add_dropout(const onnx::Node& node, Forms& forms) {
  const onnx::Value* mode = node.input(2);
  if (constant_of(mode).value_or(0) != 0) {
    forms.push_back(
        {"dropout_training", "its training_mode is true; TensorRT supports only inference", for_evaluation});
  } else if (mode != nullptr && !mode->constant()) {
    forms.push_back({"dropout_training_computed", fmt::format("its training_mode '{}' is not a constant", mode->name),
                     "export the network in evaluation mode, or make the training_mode a constant that is false"});
  }
}

/// A special form (see forms_of()) whose description is the same for every node. `has` returns whether a node has the
/// form.
struct PlainForm {
  std::string_view operators;  ///< The names, separated by spaces.
  bool (*has)(const onnx::Node&);
  std::string_view name;
  std::string_view what;
  std::string_view advice = {};
};

constexpr auto plain_forms = std::to_array<PlainForm>({
    {"Resize", passes::has_antialias, "resize_antialias", "antialias = 1; TensorRT has no antialiased Resize"},
    {"MaxPool AveragePool LpPool", passes::has_dilations, "pooling_dilations",
     "it has dilations other than 1, which TensorRT's pooling does not support"},
    {"MaxPool", passes::returns_indices, "max_pool_indices",
     "its output Indices is used, which TensorRT's pooling does not compute"},
    {"Attention", passes::returns_more_than_attention, "attention_outputs",
     "more than its first output is used; TensorRT's Attention has only one output"},
    {"Attention", [](const onnx::Node& node) { return node.float_or("softcap", 0) != 0; }, "attention_softcap",
     "softcap is set, which TensorRT's Attention does not support"},
    {"Attention", passes::has_softmax_precision, "attention_softmax_precision",
     "softmax_precision is set, which TensorRT's Attention does not support"},
    {"Attention", [](const onnx::Node& node) { return node.input(4) != nullptr || node.input(5) != nullptr; },
     "attention_past", "past_key or past_value is used, which TensorRT's Attention does not accept"},
    {"Attention", [](const onnx::Node& node) { return rank_of(node.input(0)) == 3; }, "attention_rank_3",
     "its inputs have rank 3; TensorRT's Attention accepts only rank 4"},
    {"Attention", has_wider_values, "attention_value_size", different_value_size},
    {"Attention", passes::is_masked_and_causal, "attention_masked_and_causal",
     "it has both a mask and is_causal = 1; TensorRT's Attention accepts only one of them"},
    {"Attention", passes::has_short_mask, "attention_short_mask",
     "its mask is shorter than its keys; TensorRT's Attention needs masks of the same length"},
    {"ReduceMax ReduceMin", passes::reads_booleans, "reduce_truth_values",
     "it reduces booleans; TensorRT reduces only numbers"},
    {"Squeeze", [](const onnx::Node& node) { return node.input(1) == nullptr && !node.ints("axes"); },
     "squeeze_without_axes", "it has no axes; TensorRT requires them"},
    {"Range", passes::reads_half, "range_half",
     "it is in f16 or bf16; TensorRT's Range supports only f32, i32 and i64"},
    {"Celu", passes::reads_half, "celu_half", "it is in f16 or bf16; TensorRT supports Celu only in f32"},
    {"Clip",
     [](const onnx::Node& node) {
       return is_type_of(node.input(0), {onnx::ElementType::i8}) && has_computed_limit(node);
     },
     "clip_i8_computed", "it clips i8, and a limit is absent or not a constant"},
    {"MatMul", passes::multiplies_vector_by_matrices, "vector_times_matrices",
     "it multiplies a vector by more than one matrix, which TensorRT does not support"},
    {"LayerNormalization", passes::returns_statistics, "layer_norm_outputs",
     "its outputs Mean or InvStdDev are used; TensorRT has only the normalized output"},
    {"BatchNormalization", [](const onnx::Node& node) { return node.int_or("training_mode", 0) != 0; },
     "batch_norm_training", "training_mode = 1; TensorRT supports only inference", for_evaluation},
    {"Mod", passes::is_floored_real_mod, "real_mod",
     "fmod = 0 with floating-point numbers; TensorRT accepts fmod = 0 only with integers"},
    {"GridSample", [](const onnx::Node& node) { return rank_of(node.input(0)) == 5; }, "grid_sample_rank_5",
     "its input has rank 5; TensorRT's GridSample accepts only rank 4"},
    {"Einsum", has_general_subscripts, "einsum_general",
     "its equation has an ellipsis or a diagonal, which TensorRT's Einsum does not support"},
    {"Einsum", passes::has_uppercase_subscripts, "einsum_upper_case",
     "its equation has upper-case letters, which TensorRT's Einsum does not support"},
});

/// An input that TensorRT accepts only as a constant, for the operators `operators`. `form` is the name of the special
/// form (see forms_of()) of a node whose input is not constant.
struct ConstantInput {
  std::string_view operators;  ///< The names, separated by spaces.
  std::size_t index = 0;
  std::string_view what;
  std::string_view form;
};

constexpr auto constant_inputs = std::to_array<ConstantInput>({
    {"CumSum", 1, "axis", "cum_sum_axis"},
    {"Squeeze Unsqueeze", 1, "axes", "squeeze_axes"},
    {"Pad", 3, "axes", "pad_axes"},
    {"Slice", 3, "axes", "slice_axes"},
});

/// A function that checks a node for one kind of special form (see forms_of()) and appends it to Forms, with a
/// description that names inputs or attributes of the node. `operators` are the operators for which to call it.
struct FormsOfOperator {
  std::string_view operators;  ///< The names, separated by spaces.
  void (*add)(const onnx::Node&, Forms&);
};

constexpr auto forms_by_operator = std::to_array<FormsOfOperator>({
    {"TopK", add_top_k},
    {"Resize", add_resize},
    {"MaxPool AveragePool", add_pooling_past_end},
    {"LpPool", add_lp_pool},
    {"ScatterND", add_scatter_reduction},
    {"ScatterElements", add_scatter_elements},
    {"Attention", add_attention},
    {"MultiHeadAttention", add_multi_head_attention},
    {"ConvTranspose", add_conv_transpose},
    {"LRN", add_lrn},
    {"QuantizeLinear DequantizeLinear", add_quantization},
    {"TensorScatter", add_tensor_scatter},
    {"Dropout", add_dropout},
});

}  // namespace

bool is_narrow(onnx::ElementType type) {
  return std::find(narrow_types.begin(), narrow_types.end(), type) != narrow_types.end();
}

const onnx::Value* find_narrow(const onnx::Node& node) { return tensor_of_type(node, narrow_types); }

Forms forms_of(const onnx::Node& node) {
  Forms forms;
  for (const PlainForm& form : plain_forms) {
    if (!has_word(form.operators, node.op_type) || !form.has(node)) continue;
    forms.push_back({.name = form.name, .what = std::string(form.what), .advice = form.advice});
  }
  for (const ConstantInput& input : constant_inputs) {
    if (has_word(input.operators, node.op_type)) add_fed_input(node, input.index, input.what, input.form, forms);
  }
  if (has_trait(node, onnx::trait::reduction)) add_fed_input(node, 1, "axes", "reduce_axes", forms);
  for (const FormsOfOperator& each : forms_by_operator) {
    if (has_word(each.operators, node.op_type)) each.add(node, forms);
  }
  if (has_trait(node, onnx::trait::recurrent)) add_recurrent(node, forms);
  add_surroundings(node, forms);
  add_types(node, forms);
  return forms;
}

}  // namespace graft::inspect
