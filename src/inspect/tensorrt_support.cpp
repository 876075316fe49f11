// Applies the facts of each release to nodes, and holds the advice. tests/cli compares the rules with the real parser.
#include "inspect/tensorrt_support.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <vector>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "inspect/tensorrt_forms.hpp"
#include "inspect/tensorrt_release.hpp"
#include "onnx/faults.hpp"
#include "onnx/known_sizes.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "passes/lowering/lowering.hpp"

namespace graft::inspect {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

struct Advice {
  std::string_view type;
  std::string_view advice;  ///< A format string: {} is the name of Setting::cut.
};

constexpr std::string_view for_training = "it is for training: export the network for inference, without its loss";
constexpr std::string_view for_evaluation =
    "export the network in evaluation mode, as with PyTorch's model.eval(): it is in training mode";
constexpr std::string_view use_qdq =
    "for int8, quantize the float model in the form that TensorRT supports: QuantizeLinear and DequantizeLinear around "
    "float operators (QDQ)";
constexpr std::string_view no_sequences = "export the network with tensors instead of sequences and optionals";
constexpr std::string_view no_texts =
    "convert strings to numbers before the network, and make these numbers its inputs";
constexpr std::string_view no_complex_numbers =
    "export the network with the real and the imaginary parts as separate tensors";
constexpr std::string_view other_integers =
    "export the network with i32 or i64 instead of this type, or cast its inputs to one of these types";
constexpr std::string_view sized_by_data =
    "the size of its output depends on the data; {} leaves it and the nodes after it to the host; or write a plugin "
    "with a size tensor, as docs/guide/add_an_operator.md describes";

// Operators for which there is better advice than to write a plugin. For operators that `graft convert` lowers, it
// follows the clause in the table of lowerings.
constexpr auto advice_by_type = std::to_array<Advice>({
    {"NonMaxSuppression",
     "{}: the network ends with its boxes and scores, and the host runs the remaining nodes; or use a plugin: the "
     "library of the full TensorRT has EfficientNMS_TRT, which has other inputs"},
    {"Unique", sized_by_data},
    {"Compress", sized_by_data},
    {"NonZero", sized_by_data},
    {"TopK", "or reduce K to at most 3840 if that is enough"},
    {"ConvInteger", use_qdq},
    {"DynamicQuantizeLinear", use_qdq},
    {"MatMulInteger", use_qdq},
    {"QLinearConv", use_qdq},
    {"QLinearMatMul", use_qdq},
    {"NegativeLogLikelihoodLoss", for_training},
    {"SoftmaxCrossEntropyLoss", for_training},
    {"Optional", no_sequences},
    {"OptionalGetElement", no_sequences},
    {"OptionalHasElement", no_sequences},
    {"SequenceConstruct", no_sequences},
    {"SequenceEmpty", no_sequences},
    {"SequenceErase", no_sequences},
    {"SequenceInsert", no_sequences},
    {"SequenceMap", no_sequences},
    {"SplitToSequence", no_sequences},
    {"RegexFullMatch", no_texts},
    {"StringConcat", no_texts},
    {"StringNormalizer", no_texts},
    {"StringSplit", no_texts},
    {"TfIdfVectorizer", no_texts},
    {"ImageDecoder", "decode images before the network, and feed it the pixels"},
});

bool handles_text(const onnx::Node& node) {
  const auto is_text = [](const onnx::Value* value) {
    return value != nullptr && value->type == onnx::ElementType::string;
  };
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_text) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_text);
}

/// Returns an input or output that is no tensor: a sequence, an optional, a map or a sparse tensor.
const onnx::Value* find_other_than_tensor(const onnx::Node& node) {
  for (const std::vector<onnx::Value*>* values : {&node.inputs, &node.outputs}) {
    for (const onnx::Value* value : *values) {
      if (value != nullptr && !value->type && (value->container || !value->opaque.empty())) return value;
    }
  }
  return nullptr;
}

bool has_output(const onnx::Node& node, std::size_t index) {
  const onnx::Value* value = node.output(index);
  return value != nullptr && !value->is_unused();
}

std::optional<double> constant_of(const onnx::Value* value) {
  const std::optional<onnx::TensorData> constant = value == nullptr ? std::nullopt : value->constant();
  return constant ? constant->scalar() : std::nullopt;
}

void add_top_k(const onnx::Node& node, Forms& forms) {
  constexpr std::int64_t largest = passes::largest_k;
  const std::optional<double> k = constant_of(node.input(1));
  if (!k || *k <= largest) return;
  forms.push_back({"top_k_above_3840", fmt::format("K is {:.0f}; TensorRT's builder accepts at most {}", *k, largest)});
}

void add_resize(const onnx::Node& node, Forms& forms) {
  if (node.int_or("antialias", 0) != 0) {
    forms.push_back({"resize_antialias", "antialias = 1; TensorRT has no antialiased Resize"});
  }
  if (const std::string policy = node.string_or("keep_aspect_ratio_policy", "stretch"); policy != "stretch") {
    forms.push_back({"resize_aspect_ratio",
                     fmt::format("keep_aspect_ratio_policy = {}; TensorRT's Resize has stretch only", policy)});
  }
  const std::string mode = node.string_or("coordinate_transformation_mode", "half_pixel");
  if (mode == "tf_crop_and_resize" || mode == "half_pixel_symmetric") {
    forms.push_back({"resize_coordinates",
                     fmt::format("coordinate_transformation_mode = {}, which TensorRT's Resize does not have", mode)});
  }
}

/// Returns the attribute `name` with one number for each spatial dimension (`count`), or `fallback` in each.
std::vector<std::int64_t> numbers_or(const onnx::Node& node, std::string_view name, std::size_t count,
                                     std::int64_t fallback) {
  const auto numbers = node.ints(name);
  return numbers && numbers->size() == count ? *numbers : std::vector<std::int64_t>(count, fallback);
}

/// Adds a form if the last window of a pooling with ceil_mode would start after the data and the padding before them.
/// ONNX Runtime, and ONNX from operator set 22 on, leave that window out; TensorRT's parser does not.
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

/// Adds a form if a ConvTranspose has auto_pad and an output_shape that TensorRT does not reach: with auto_pad, the
/// parser ignores output_shape.
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
  forms.push_back({.name = "conv_transpose_sizes",
                   .what = fmt::format("auto_pad = {} and output_shape; TensorRT ignores output_shape then", auto_pad),
                   .advice = "replace auto_pad and output_shape by explicit pads and output_padding",
                   .is_computed_wrongly = true});
}

void add_pooling(const onnx::Node& node, Forms& forms) {
  const auto dilations = node.ints("dilations").value_or(std::vector<std::int64_t>());
  if (std::any_of(dilations.begin(), dilations.end(), [](std::int64_t d) { return d != 1; })) {
    forms.push_back({"pooling_dilations", "dilations other than 1, which TensorRT's pooling does not have"});
  }
  if (const std::int64_t p = node.is("LpPool") ? node.int_or("p", 2) : 2; p != 1 && p != 2) {
    forms.push_back({"lp_pool_p", fmt::format("p = {}; TensorRT has LpPool only for p = 1 and 2", p)});
  }
  if (node.is("MaxPool") && has_output(node, 1)) {
    forms.push_back({"max_pool_indices", "its output Indices is used; TensorRT's pooling does not have it"});
  }
  add_pooling_past_end(node, forms);
}

/// Adds the forms of an LRN that TensorRT's layer does not accept. ILRNLayer documents the limits.
void add_lrn(const onnx::Node& node, Forms& forms) {
  constexpr std::int64_t largest_window = 15;
  if (const std::int64_t size = node.int_or("size", 1); size < 1 || size > largest_window || size % 2 == 0) {
    forms.push_back(
        {"lrn_size", fmt::format("size = {}; TensorRT has odd sizes from 1 to {} only", size, largest_window)});
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

/// Adds a form if a ScatterElements without a reduction has more indices than data along an axis.
void add_scatter_of_more(const onnx::Node& node, Forms& forms) {
  const onnx::Value* data = node.input(0);
  const onnx::Value* indices = node.input(1);
  if (data == nullptr || indices == nullptr || !data->shape || !indices->shape) return;
  for (std::size_t axis = 0; axis < std::min(data->shape->size(), indices->shape->size()); ++axis) {
    const Dim& places = (*data->shape)[axis];
    const Dim& named = (*indices->shape)[axis];
    if (!places.is_constant() || !named.is_constant() || named.value() <= places.value()) continue;
    forms.push_back({"scatter_elements_of_more",
                     fmt::format("{} indices along axis {}, where the data has {}; TensorRT accepts at most that many",
                                 named.value(), axis, places.value())});
    return;
  }
}

void add_scatter(const onnx::Node& node, Forms& forms) {
  const std::string reduction = node.string_or("reduction", "none");
  if (reduction == "none") {
    if (node.is("ScatterElements")) add_scatter_of_more(node, forms);
    return;
  }
  forms.push_back({node.is("ScatterND") ? "scatter_nd_reduction" : "scatter_elements_reduction",
                   fmt::format("reduction = {}; TensorRT scatters without reduction only", reduction)});
}

bool is_type_of(const onnx::Value* value, std::initializer_list<onnx::ElementType> types) {
  return value != nullptr && value->type && std::find(types.begin(), types.end(), *value->type) != types.end();
}

/// Returns the first input or output of a node that has one of these types, or null.
const onnx::Value* tensor_of_type(const onnx::Node& node, std::initializer_list<onnx::ElementType> types) {
  for (const std::vector<onnx::Value*>* values : {&node.inputs, &node.outputs}) {
    for (const onnx::Value* value : *values) {
      if (is_type_of(value, types)) return value;
    }
  }
  return nullptr;
}

/// Adds a form if an input that must be a constant is an input of the network.
void add_fed_input(const onnx::Node& node, std::size_t index, std::string_view what, std::string_view form,
                   Forms& forms) {
  const onnx::Value* value = node.input(index);
  if (value == nullptr || !value->is_input || value->initializer) return;
  forms.push_back({form, fmt::format("its {} '{}' is an input of the network; TensorRT accepts only a constant", what,
                                     value->name)});
}

/// Types of fewer than 8 bits per element, and floating-point types of 8 bits, which the tables of types do not cover.
constexpr std::initializer_list<onnx::ElementType> narrow_types = {
    onnx::ElementType::f8e4m3fn,   onnx::ElementType::f8e4m3fnuz, onnx::ElementType::f8e5m2,
    onnx::ElementType::f8e5m2fnuz, onnx::ElementType::f8e8m0,     onnx::ElementType::u4,
    onnx::ElementType::i4,         onnx::ElementType::f4e2m1,     onnx::ElementType::u2,
    onnx::ElementType::i2,         onnx::ElementType::f6e2m3};

bool is_narrow(onnx::ElementType type) {
  return std::find(narrow_types.begin(), narrow_types.end(), type) != narrow_types.end();
}

const onnx::Value* narrow_float_or_integer(const onnx::Node& node) { return tensor_of_type(node, narrow_types); }

std::int64_t element_count(const onnx::Value& value) {
  std::int64_t count = 1;
  for (const Dim& dim : *value.shape) count *= dim.is_constant() ? dim.value() : 0;
  return count;
}

void add_quantization(const onnx::Node& node, Forms& forms) {
  constexpr std::string_view symmetric =
      "quantize to i8 with zero point 0 (symmetric) instead; or {} leaves it to the host";
  using enum onnx::ElementType;
  if (const onnx::Value* value = tensor_of_type(node, {u8})) {
    // Where the zero point is 0 or left out, the parser takes i8 instead: values above 127 * scale are clipped.
    forms.push_back({.name = "quantize_u8",
                     .what = fmt::format("'{}' is u8; TensorRT quantizes to signed integers only", value->name),
                     .advice = symmetric,
                     .is_computed_wrongly = true});
  }
  if (const onnx::Value* value = tensor_of_type(node, {f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0, u4, u2, i2, f6e2m3})) {
    forms.push_back({"missing_type",
                     fmt::format("'{}' is {}, which TensorRT does not have", value->name, to_string(*value->type))});
  }
  const onnx::Value* narrow = tensor_of_type(node, {i4, f4e2m1});
  if (narrow != nullptr && narrow->shape && element_count(*narrow) % 2 != 0) {
    forms.push_back(
        {"odd_4_bits", fmt::format("'{}' has an odd number of elements of 4 bits; TensorRT accepts only an even number",
                                   narrow->name)});
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

/// Returns whether the reverse pass of a bidirectional layer has other activations than the forward pass.
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
  if (node.int_or("layout", 0) != 0) {
    // The parser accepts it, and the engine's outputs have the shapes of layout 0 (measured with TensorRT-RTX 1.7).
    forms.push_back({.name = "recurrent_layout",
                     .what = "layout = 1; TensorRT ignores it, and treats the batch axis as time",
                     .is_computed_wrongly = true});
  }
  if (has_other_activations(node)) {
    forms.push_back(
        {"recurrent_activations",
         "its activations differ between the reverse and the forward pass; TensorRT accepts only equal ones"});
  }
  constexpr std::size_t lengths = 4;
  if (node.input(lengths) != nullptr && is_type_of(node.input(0), {onnx::ElementType::f16, onnx::ElementType::bf16})) {
    // The parser adds a selection between the steps of a sequence and zeros of f32, and then refuses its own layer.
    forms.push_back(
        {"recurrent_lengths_half", fmt::format("TensorRT accepts {} with sequence lengths in f32 only", node.op_type)});
  }
  if (node.is("LSTM") && node.int_or("input_forget", 0) != 0) {
    forms.push_back({"lstm_input_forget", "input_forget, which TensorRT's LSTM does not have"});
  }
}

/// Returns the rank of a value, or -1 if it is unknown.
std::int64_t rank_of(const onnx::Value* value) {
  return value == nullptr || !value->shape ? -1 : static_cast<std::int64_t>(value->shape->size());
}

void add_tensor_scatter(const onnx::Node& node, Forms& forms) {
  if (const std::string mode = node.string_or("mode", "linear"); mode != "linear") {
    forms.push_back({"tensor_scatter_mode", fmt::format("mode = {}; TensorRT has linear only", mode)});
  }
  const std::int64_t rank = rank_of(node.input(0));
  if (rank < 0 || rank == 4) return;
  forms.push_back(
      {"tensor_scatter_rank", fmt::format("its past_cache has rank {}; TensorRT accepts only rank 4", rank)});
}

/// Returns the size of the query's heads, or nothing if it is unknown.
std::optional<std::int64_t> size_of_heads(const onnx::Node& node) {
  const onnx::Value* query = node.input(0);
  const std::int64_t rank = rank_of(query);
  if (rank < 3 || !query->shape->back().is_constant()) return std::nullopt;
  const std::int64_t width = query->shape->back().value();
  return rank == 4 ? width : width / std::max<std::int64_t>(node.int_or("q_num_heads", 1), 1);
}

/// Returns whether a query has exactly one position.
bool has_one_query(const onnx::Value& query) {
  return query.shape->size() > 2 && (*query.shape)[query.shape->size() - 2] == Dim(1);
}

/// Returns why no fused kernel of TensorRT computes an Attention, or an empty string if one does.
std::string missing_kernel(const onnx::Node& node) {
  constexpr std::int64_t largest_head = 256;
  const onnx::Value& query = *node.input(0);
  const std::optional<std::int64_t> heads = size_of_heads(node);
  if (has_one_query(query)) {
    constexpr std::int64_t multiple = 8;
    if (!heads || (*heads % multiple == 0 && *heads <= largest_head)) return {};
    return fmt::format("one query and heads of size {}; TensorRT has kernels for multiples of {} up to {}", *heads,
                       multiple, largest_head);
  }
  if (is_type_of(&query, {onnx::ElementType::f32, onnx::ElementType::f64})) {
    return "it is in f32, for which TensorRT has a kernel only with a single query";
  }
  constexpr std::int64_t smallest_head = 9;
  if (!heads || (*heads >= smallest_head && *heads <= largest_head)) return {};
  return fmt::format("heads of size {}; TensorRT has kernels for {} to {}", *heads, smallest_head, largest_head);
}

bool has_known_sizes(const onnx::Value* value) { return value != nullptr && onnx::has_known_sizes(*value); }

/// Adds a form if no fused kernel computes an Attention. From a release on, TensorRT writes an Attention of rank 3 with
/// plain layers if it has several queries, no mask and one head of keys for each head of queries; without a known size
/// for each dimension it does not.
void add_attention_kernel(const onnx::Node& node, Forms& forms) {
  const onnx::Value* query = node.input(0);
  if (rank_of(query) < 0) {
    forms.push_back({"attention_of_unknown_rank", "the rank of its query is not known"});
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

void add_attention(const onnx::Node& node, Forms& forms) {
  bool gives_more = false;
  for (std::size_t i = 1; i < node.outputs.size(); ++i) gives_more = gives_more || has_output(node, i);
  if (gives_more) {
    forms.push_back(
        {"attention_outputs", "more than its first output is used; TensorRT's Attention has only that one"});
  }
  if (node.float_or("softcap", 0) != 0) {
    forms.push_back({"attention_softcap", "softcap, which TensorRT's Attention does not have"});
  }
  if (node.attribute("softmax_precision") != nullptr) {
    forms.push_back({"attention_softmax_precision", "softmax_precision, which TensorRT's Attention does not have"});
  }
  if (node.input(4) != nullptr || node.input(5) != nullptr) {
    forms.push_back({"attention_past", "past_key and past_value, which TensorRT's Attention does not accept"});
  }
  if (rank_of(node.input(0)) == 3) {
    forms.push_back({"attention_rank_3", "its inputs have rank 3; TensorRT's Attention accepts only rank 4"});
  }
  const onnx::Value* key = node.input(1);
  const onnx::Value* value = node.input(2);
  if (rank_of(key) > 2 && rank_of(key) == rank_of(value) && key->shape->back() != value->shape->back()) {
    forms.push_back({"attention_value_size",
                     "its keys and values have different sizes; TensorRT's Attention accepts only equal ones"});
  }
  add_attention_kernel(node, forms);
}

void add_multi_head_attention(const onnx::Node& node, Forms& forms) {
  constexpr auto refused = std::to_array<std::pair<std::size_t, std::string_view>>(
      {{3, "bias"}, {4, "key_padding_mask"}, {6, "past_key"}, {7, "past_value"}});
  for (const auto& [index, name] : refused) {
    if (node.input(index) == nullptr) continue;
    forms.push_back(
        {"multi_head_attention_inputs",
         fmt::format("its input {} is used; TensorRT accepts only query, key, value and attention_bias", name)});
    break;
  }
  if (has_output(node, 1) || has_output(node, 2)) {
    forms.push_back({"multi_head_attention_outputs", "more than its first output is used"});
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (node.input(i) != nullptr && (rank_of(node.input(i)) < 0 || rank_of(node.input(i)) == 3)) continue;
    forms.push_back({"multi_head_attention_packed", "query, key and value are not three tensors of rank 3"});
    return;
  }
  const onnx::Value& key = *node.input(1);
  const onnx::Value& value = *node.input(2);
  if (key.shape && value.shape && key.shape->back() != value.shape->back()) {
    forms.push_back({"attention_value_size",
                     "its keys and values have different sizes; TensorRT's Attention accepts only equal ones"});
  }
}

bool has_upper_case_subscripts(const onnx::Node& node) {
  const std::string equation = node.string_or("equation", "");
  return std::any_of(equation.begin(), equation.end(), [](char letter) { return letter >= 'A' && letter <= 'Z'; });
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

/// Returns the first of the ways in which `graft convert` writes nodes of this operator with layers that TensorRT has,
/// or null.
const passes::Lowering* find_lowering(const onnx::Node& node) {
  const auto rows = passes::lowerings();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const passes::Lowering& row) { return node.is(row.op_type); });
  return found == rows.end() ? nullptr : &*found;
}

void add_types(const onnx::Node& node, Forms& forms) {
  using enum onnx::ElementType;
  if (const onnx::Value* value = tensor_of_type(node, {i16, u16, u32, u64, complex64, complex128})) {
    const bool is_complex = is_type_of(value, {complex64, complex128});
    forms.push_back({"missing_type",
                     fmt::format("'{}' is {}, which TensorRT does not have", value->name, to_string(*value->type)),
                     is_complex                       ? no_complex_numbers
                     : find_lowering(node) != nullptr ? std::string_view()
                                                      : other_integers});
  }
  const bool casts = node.is("Cast") || node.is("CastLike");
  if (const onnx::Value* value = casts ? narrow_float_or_integer(node) : nullptr) {
    forms.push_back({"narrow_cast",
                     fmt::format("'{}' is {}, which TensorRT accepts only between QuantizeLinear and DequantizeLinear",
                                 value->name, to_string(*value->type))});
  }
  if (is_any_of(node, {"DequantizeLinear", "QuantizeLinear", "Clip"})) return;
  for (const onnx::Value* value : node.inputs) {
    if (!is_type_of(value, {i8}) || !value->constant()) continue;
    forms.push_back(
        {"constant_i8",
         fmt::format("'{}' is a constant of i8, which TensorRT accepts only before DequantizeLinear", value->name)});
    return;
  }
}

/// Returns the special forms that a node has.
Forms forms_of(const onnx::Node& node) {
  using enum onnx::ElementType;
  Forms forms;
  const std::string& type = node.op_type;
  if (type == "TopK") add_top_k(node, forms);
  if (type == "Resize") add_resize(node, forms);
  if (type == "MaxPool" || type == "AveragePool" || type == "LpPool") add_pooling(node, forms);
  if (type == "ScatterND" || type == "ScatterElements") add_scatter(node, forms);
  if (type == "Attention") add_attention(node, forms);
  if (type == "ConvTranspose") add_conv_transpose(node, forms);
  if (type == "LRN") add_lrn(node, forms);
  if (type == "CumSum") add_fed_input(node, 1, "axis", "cum_sum_axis", forms);
  if ((type == "ReduceMax" || type == "ReduceMin") && is_type_of(node.input(0), {boolean})) {
    forms.push_back({"reduce_truth_values", "TensorRT reduces numbers, and not booleans"});
  }
  if (has_trait(node, onnx::trait::reduction)) add_fed_input(node, 1, "axes", "reduce_axes", forms);
  if (type == "Squeeze" || type == "Unsqueeze") add_fed_input(node, 1, "axes", "squeeze_axes", forms);
  if (type == "Squeeze" && node.input(1) == nullptr && !node.ints("axes")) {
    forms.push_back({"squeeze_without_axes", "it has no axes; TensorRT requires them"});
  }
  if (type == "Pad") add_fed_input(node, 3, "axes", "pad_axes", forms);
  if (type == "Slice") add_fed_input(node, 3, "axes", "slice_axes", forms);
  if (type == "QuantizeLinear" || type == "DequantizeLinear") add_quantization(node, forms);
  if (type == "Range" && is_type_of(node.input(0), {f16, bf16})) {
    forms.push_back({"range_half", "TensorRT's Range supports f32, i32 and i64 only"});
  }
  if (type == "Celu" && is_type_of(node.input(0), {f16, bf16})) {
    forms.push_back({"celu_half", "TensorRT supports Celu in f32 only"});
  }
  if (type == "Clip" && is_type_of(node.input(0), {i8}) &&
      std::any_of(node.inputs.begin() + 1, node.inputs.end(),
                  [](const onnx::Value* limit) { return limit == nullptr || !limit->constant(); })) {
    forms.push_back({"clip_i8_computed", "it clips i8, and a limit is empty or not a constant"});
  }
  if (type == "TensorScatter") add_tensor_scatter(node, forms);
  if (type == "Dropout" && constant_of(node.input(2)).value_or(0) != 0) {
    forms.push_back({"dropout_training", "its training_mode is true; TensorRT is for inference", for_evaluation});
  } else if (type == "Dropout" && node.input(2) != nullptr && !node.input(2)->constant()) {
    forms.push_back({"dropout_training_computed",
                     fmt::format("its training_mode '{}' is not a constant", node.input(2)->name),
                     "export the network in evaluation mode, or make the training_mode a constant that is false"});
  }
  if (type == "MatMul" && rank_of(node.input(0)) == 1 && rank_of(node.input(1)) > 2) {
    forms.push_back({"vector_times_matrices", "it multiplies a vector by more than one matrix"});
  }
  if (type == "LayerNormalization" && (has_output(node, 1) || has_output(node, 2))) {
    forms.push_back(
        {"layer_norm_outputs", "its outputs Mean or InvStdDev are used; TensorRT has only the normalized output"});
  }
  if (type == "BatchNormalization" && node.int_or("training_mode", 0) != 0) {
    forms.push_back({"batch_norm_training", "training_mode = 1; TensorRT has it for inference only", for_evaluation});
  }
  if (type == "Mod" && node.int_or("fmod", 0) == 0 && is_type_of(node.input(0), {f32, f16, bf16, f64})) {
    forms.push_back({"real_mod", "fmod = 0 with floating-point numbers; TensorRT accepts it only with integers"});
  }
  if (type == "GridSample" && rank_of(node.input(0)) == 5) {
    forms.push_back({"grid_sample_rank_5", "its input has rank 5; TensorRT's GridSample accepts only rank 4"});
  }
  if (type == "Einsum" && has_general_subscripts(node)) {
    forms.push_back({"einsum_general", "an ellipsis or a diagonal, which TensorRT's Einsum does not have"});
  }
  if (type == "Einsum" && has_upper_case_subscripts(node)) {
    forms.push_back(
        {"einsum_upper_case", "its equation has upper-case letters, which TensorRT's Einsum does not have"});
  }
  if (type == "MultiHeadAttention") add_multi_head_attention(node, forms);
  if (has_trait(node, onnx::trait::recurrent)) add_recurrent(node, forms);
  add_surroundings(node, forms);
  add_types(node, forms);
  return forms;
}

/// Returns the advice on the first form of a node that the newest measured release refuses and that has one of its own.
std::optional<std::string> advice_on_form(const onnx::Node& node) {
  try {
    for (const Form& form : forms_of(node)) {
      const bool is_refused = form_fact(newest_measured_release(), form.name).runs == Answer::no;
      if (is_refused && !form.advice.empty()) return fmt::format(fmt::runtime(form.advice), setting_name(Setting::cut));
    }
    return std::nullopt;
  } catch (const Error&) {  // an attribute of the wrong type
    return std::nullopt;
  }
}

/// The tensor whose type decides whether a node runs, and the name of that type.
struct MainType {
  const onnx::Value* value = nullptr;
  std::string word;
};

MainType main_type(const onnx::Value* value) {
  if (value == nullptr || !value->type) return {};
  const onnx::ElementType type = is_imported_as_i32(*value) ? onnx::ElementType::i32 : *value->type;
  return {value, std::string(to_string(type))};
}

bool is_quantized_before(const onnx::Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [](const onnx::Value* value) {
    return value != nullptr && value->producer != nullptr && value->producer->is("QuantizeLinear");
  });
}

/// Returns the tensor whose type is not among `types`, or nothing if all types are.
std::optional<MainType> other_type(const onnx::Node& node, const OperatorFact& fact, std::string_view types) {
  const bool is_random = is_any_of(node, {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"});
  std::vector<const onnx::Value*> values = {is_random ? node.output() : node.input(fact.port)};
  if (node.is("Cast")) values.push_back(node.output());
  if (node.is("CastLike")) values.push_back(node.input(1));
  // TensorRT holds constants of u8 in i32, which does not go together with an input of the network in u8.
  std::copy_if(node.inputs.begin(), node.inputs.end(), std::back_inserter(values), [](const onnx::Value* value) {
    return value != nullptr && value->type == onnx::ElementType::u8 && !is_imported_as_i32(*value);
  });
  for (const onnx::Value* value : values) {
    MainType type = main_type(value);
    if (type.value != nullptr && !has_word(types, type.word)) return type;
  }
  return std::nullopt;
}

/// Returns the advice on a node that the newest measured release does not build in its type, and builds in another.
std::optional<std::string> advice_on_type(const onnx::Node& node) {
  const OperatorFact fact = operator_fact(newest_measured_release(), node.op_type);
  const std::vector<std::string_view> types = words_of(fact.types);
  if (fact.runs == Answer::no || types.empty()) return std::nullopt;
  const std::optional<MainType> other = other_type(node, fact, fact.types);
  if (!other) return std::nullopt;
  const bool is_integer = other->word.starts_with('i') || other->word.starts_with('u');
  const std::string_view type = is_integer && has_word(fact.types, "i32") ? "i32" : types.front();
  const bool is_result = std::find(node.outputs.begin(), node.outputs.end(), other->value) != node.outputs.end();
  if (is_result) return fmt::format("let {} return another type, such as {}", node.op_type, type);
  return fmt::format("cast '{}' to a type in which TensorRT builds {}, such as {}, and cast the result back",
                     other->value->name, node.op_type, type);
}

}  // namespace

std::optional<std::string> refusal_of_opset(const onnx::Node& node, const Release& release) {
  constexpr std::int64_t broadcasting_since = 7;
  const std::int64_t opset = node.graph->opset();
  const bool broadcasts = has_trait(node, onnx::trait::broadcasting) || node.is("Gemm");
  if (opset >= broadcasting_since || !broadcasts) return std::nullopt;
  const FormFact known = form_fact(release, "broadcast_before_7");
  if (known.runs != Answer::no) return std::nullopt;
  return fmt::format("operator set {}, which has other broadcasting rules; TensorRT accepts it from {} on ({})", opset,
                     broadcasting_since, known.source);
}

bool parses_beyond_onnx(const onnx::Node& node, const Release& release) {
  return release.flavor == Flavor::rtx && !onnx::is_standard_operator("", node.op_type) &&
         !operator_fact(release, node.op_type).source.empty();
}

std::optional<std::string> refusal_of_tensorrt(const onnx::Node& node, const Release& release) {
  const std::string& type = node.op_type;
  const OperatorFact fact = operator_fact(release, type);
  if (fact.runs == Answer::no) {
    // The parser has these operators, but the builder or the plugin registry lacks what the parser creates for them.
    const bool is_measured = release.flavor == Flavor::rtx;
    if (is_measured && type == "NonMaxSuppression") {
      return fmt::format("TensorRT's parser accepts it, but its builder finds no implementation ({})", fact.source);
    }
    if (is_measured && (type == "NonZero" || type == "CausalConvWithState" || type == "LinearAttention")) {
      return fmt::format(
          "TensorRT's parser refuses it: it requires a plugin that TensorRT's registry does not have ({})",
          fact.source);
    }
    return fmt::format("TensorRT's parser does not support it ({})", fact.source);
  }
  if (handles_text(node)) return "it uses string tensors, which TensorRT does not support";
  if (const onnx::Value* other = find_other_than_tensor(node)) {
    return fmt::format("'{}' is a sequence, an optional, a map or a sparse tensor; TensorRT has dense tensors only",
                       other->name);
  }
  for (const Form& form : forms_of(node)) {
    if (const FormFact known = form_fact(release, form.name); known.runs == Answer::no) {
      return fmt::format("{} ({})", form.what, known.source);
    }
  }
  // A type that documents do not list may still run; a type that was measured and refused does not.
  if (release.flavor != Flavor::rtx || fact.types.empty() || is_quantized_before(node)) return std::nullopt;
  const std::optional<MainType> other = other_type(node, fact, fact.types);
  if (!other || has_word(fact.open, other->word) || is_narrow(*other->value->type)) return std::nullopt;
  return fmt::format("'{}' is {}; TensorRT builds {} in {} ({})", other->value->name, other->word, type,
                     fmt::join(words_of(fact.types), ", "), fact.source);
}

std::optional<std::string> doubt_about(const onnx::Node& node, const Release& release) {
  const OperatorFact fact = operator_fact(release, node.op_type);
  if (node.is("RoiAlign") && release.flavor == Flavor::rtx) {
    return fmt::format(
        "TensorRT creates NVIDIA's plugin ROIAlign for it, which calls CUDA when it is created: without a GPU the "
        "parser refuses it or crashes ({}); it was not measured with a GPU",
        fact.source);
  }
  if (fact.runs == Answer::unknown) {
    return release.flavor == Flavor::rtx
               ? fmt::format("it was not measured in {}", title_of(release))
               : fmt::format("no public document states whether {} runs it", title_of(release));
  }
  for (const Form& form : forms_of(node)) {
    const FormFact known = form_fact(release, form.name);
    if (known.runs != Answer::unknown) continue;
    if (form.builds_at_fixed_sizes && !known.source.empty()) {
      return fmt::format("{}; TensorRT builds that only where {} sets each dimension to one size ({})", form.what,
                         setting_name(Setting::shape_ranges), known.source);
    }
    return fmt::format("{}: it is unknown whether {} runs it then", form.what, title_of(release));
  }
  const bool is_quantizing = node.is("QuantizeLinear") || node.is("DequantizeLinear");
  if (const onnx::Value* narrow = is_quantizing ? nullptr : narrow_float_or_integer(node)) {
    return fmt::format(
        "'{}' is {}, which TensorRT is known to accept only between QuantizeLinear and DequantizeLinear ({})",
        narrow->name, to_string(*narrow->type), fact.source);
  }
  if (fact.types.empty()) return std::nullopt;
  const std::optional<MainType> other = other_type(node, fact, fact.types);
  if (!other || (release.flavor == Flavor::rtx && is_narrow(*other->value->type))) return std::nullopt;
  if (release.flavor == Flavor::full) {
    // The operator list has the note "DOUBLE is cast to FLOAT".
    if (other->word == "f64") return std::nullopt;
    return fmt::format("'{}' is {}, which is not among the types of {}: {} ({})", other->value->name, other->word,
                       node.op_type, fmt::join(words_of(fact.types), ", "), fact.source);
  }
  return has_word(fact.open, other->word)
             ? fmt::format("'{}' is {}: whether {} builds {} in this type could not be measured", other->value->name,
                           other->word, title_of(release), node.op_type)
             : fmt::format(
                   "'{}' is {}: in this type, {} alone was never built, and was not tried between quantized nodes ({})",
                   other->value->name, other->word, node.op_type, fact.source);
}

bool has_wrong_form(const onnx::Node& node, const Release& release) {
  const Forms forms = forms_of(node);
  return std::any_of(forms.begin(), forms.end(), [&](const Form& form) {
    return form.is_computed_wrongly && form_fact(release, form.name).runs == Answer::no;
  });
}

std::optional<Danger> danger_of(const onnx::Node& node, const Release& release) {
  if (!node.is("GridSample") || rank_of(node.input(0)) > 4) return std::nullopt;
  const std::string mode = node.string_or("mode", "linear");
  // In opset 16 linear and cubic have other names, which all releases accept.
  if (mode == "linear" || mode == "cubic") {
    const FormFact known = form_fact(release, "grid_sample_mode_of_20");
    if (node.attribute("mode") != nullptr && known.runs == Answer::no) {
      return Danger{.reason = fmt::format("{} computes mode = {} as nearest, without an error ({})", title_of(release),
                                          mode, known.source),
                    .advice = mode == "linear" ? "graft convert removes the attribute, which has the same meaning"
                                               : "export it in operator set 16, which has another name for this mode"};
    }
  }
  if (mode != "linear" && mode != "bilinear") return std::nullopt;
  const FormFact known = form_fact(release, "grid_sample_of_detr");
  if (known.runs != Answer::no) return std::nullopt;
  return Danger{.reason = fmt::format(
                    "{} is reported to compute it wrongly, without an error, in networks of the DETR family ({})",
                    title_of(release), known.source),
                .advice = fmt::format(
                    "graft convert, if the model is for {}, replaces it with Gather where sizes are fixed; graft "
                    "canary tests on the GPU whether that is needed",
                    name_of(release))};
}

std::optional<std::string> refusal_of_plugins(const Release& release) {
  const FormFact known = form_fact(release, "plugin_in_network");
  if (known.runs != Answer::no) return std::nullopt;
  return fmt::format("{} adds no plugin to a network ({})", title_of(release), known.source);
}

Answer builds_plugins_in_bodies(const Release& release) { return form_fact(release, "plugin_in_body").runs; }

std::optional<std::string> refusal_of_plugins_in_bodies(const Release& release) {
  const FormFact known = form_fact(release, "plugin_in_body");
  switch (known.runs) {
    case Answer::yes: return std::nullopt;
    case Answer::no:
      return fmt::format("{} builds no plugin in the body of an If, Loop or Scan ({})", title_of(release),
                         known.source);
    case Answer::unknown: break;
  }
  return fmt::format("no public document states whether {} builds a plugin in the body of an If, Loop or Scan",
                     title_of(release));
}

std::vector<std::string> guards_for(const Release& release) {
  const bool is_wrong = form_fact(release, "grid_sample_of_detr").runs == Answer::no;
  return is_wrong ? std::vector<std::string>{"guard_grid_sample"} : std::vector<std::string>();
}

std::string advice_to_convert() {
  return fmt::format(
      "graft convert replaces some nodes like this one with layers that TensorRT has; {} reports the condition that "
      "this node does not meet",
      setting_name(Setting::explanation));
}

std::string advice_on_refusal(const onnx::Node& node) {
  if (handles_text(node)) return std::string(no_texts);
  const passes::Lowering* lowering = find_lowering(node);
  const std::string first =
      lowering == nullptr || lowering->advice.empty() ? "" : fmt::format("{}; ", lowering->advice);
  if (find_other_than_tensor(node) != nullptr) return fmt::format("{}{}", first, no_sequences);
  if (const auto advice = advice_on_form(node)) return *advice;
  for (const Advice& each : advice_by_type) {
    if (node.is(each.type)) return first + fmt::format(fmt::runtime(each.advice), setting_name(Setting::cut));
  }
  if (const auto advice = advice_on_type(node)) return *advice;
  if (lowering != nullptr) return advice_to_convert();
  return advice_to_write_one();
}

std::string advice_to_write_one() {
  return fmt::format(
      "no operator of Graft replaces it; {} leaves it to the host; or write one, as "
      "docs/guide/add_an_operator.md describes",
      setting_name(Setting::cut));
}

std::string advice_on_plugin_in_body() {
  return fmt::format("compute it outside of the body; or {} leaves it to the host", setting_name(Setting::cut));
}

std::optional<RefusalHint> hint_on_refusal(const onnx::Node& node) {
  const onnx::Value* k = node.is("TopK") ? node.input(1) : nullptr;
  if (k == nullptr || k->constant()) return std::nullopt;
  const std::string maker = k->producer == nullptr ? "an input" : onnx::describe(*k->producer);
  return RefusalHint{.reason = fmt::format("its K is not a constant: '{}' comes from {}", k->name, maker),
                     .advice = fmt::format("make K a constant; or compute it only from sizes (Shape, Gather); or make "
                                           "it an input of the network, whose values {} NAME=1..4..8 sets",
                                           setting_name(Setting::shape_ranges))};
}

bool fails_by_rule(const onnx::Node& node) {
  try {
    return node.metadata.contains(onnx::fault_note) || refusal_of_tensorrt(node, newest_measured_release());
  } catch (const Error&) {  // an attribute of the wrong type
    return true;
  }
}

bool is_known_to_fail(const onnx::Node& node) {
  return fails_by_rule(node) && !node.metadata.contains(onnx::fault_note);
}

std::optional<std::string> rule_against(const onnx::Node& node) {
  if (node.metadata.contains(onnx::fault_note)) return std::nullopt;
  try {
    return refusal_of_tensorrt(node, newest_measured_release());
  } catch (const Error&) {  // an attribute of the wrong type
    return std::nullopt;
  }
}

}  // namespace graft::inspect
