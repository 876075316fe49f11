// Applies the facts of each release to the forms of nodes, and holds the advice. tests/cli compares the rules with the
// real parser.
#include "inspect/tensorrt_support.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <vector>

#include "core/guide_pages.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "inspect/tensorrt_forms.hpp"
#include "inspect/tensorrt_release.hpp"
#include "onnx/faults.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/lowering/refused_forms.hpp"
#include "passes/lowering/surroundings.hpp"

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

constexpr std::string_view for_training =
    "the node is for training: export the network for inference, without the loss";
constexpr std::string_view use_qdq =
    "for int8, quantize the float model in the form that TensorRT supports: QuantizeLinear and DequantizeLinear around "
    "float operators (QDQ)";
constexpr std::string_view no_sequences = "export the network with tensors instead of sequences and optionals";
constexpr std::string_view no_texts =
    "convert the strings to numbers before the network, and make these numbers inputs of the network";
constexpr std::string_view advice_sized_by_data =
    "the size of its output depends on the data; {} leaves this node and the nodes after it to the host; or write a "
    "plugin "
    "with a size tensor, as {} describes";

// Operators for which there is better advice than to write a plugin. For operators that `graft convert` lowers, it
// follows the clause in the table of lowerings.
constexpr auto advice_by_type = std::to_array<Advice>({
    {"NonMaxSuppression",
     "{}: the network ends with its boxes and scores, and the host runs the remaining nodes; or use a plugin: the "
     "plugin library of the full TensorRT has EfficientNMS_TRT, which has different inputs"},
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

/// Returns the first input or output of a node that is not a tensor but a sequence, optional, map or sparse tensor, or
/// null.
const onnx::Value* find_other_than_tensor(const onnx::Node& node) {
  for (const std::vector<onnx::Value*>* values : {&node.inputs, &node.outputs}) {
    for (const onnx::Value* value : *values) {
      if (value != nullptr && !value->type && (value->container || !value->opaque.empty())) return value;
    }
  }
  return nullptr;
}

/// Returns the advice on the first special form of the node (see forms_of()) that the release of
/// newest_measured_release() refuses and that has its own advice; otherwise nothing.
std::optional<std::string> advice_on_form(const onnx::Node& node) {
  try {
    for (const Form& form : forms_of(node)) {
      const bool is_refused = form_fact(newest_measured_release(), form.name).runs == Answer::no;
      if (is_refused && !form.advice.empty()) return fmt::format(fmt::runtime(form.advice), setting_name(Setting::cut));
    }
    return std::nullopt;
  } catch (const Error&) {  // an attribute has the wrong type, which the verdict on the node reports
    return std::nullopt;
  }
}

/// A tensor of a node whose type decides whether TensorRT runs the node, and the name of that type.
struct MainType {
  const onnx::Value* value = nullptr;
  std::string word;
};

MainType main_type(const onnx::Value* value) {
  if (value == nullptr || !value->type) return {};
  const onnx::ElementType type = passes::is_imported_as_i32(*value) ? onnx::ElementType::i32 : *value->type;
  return {value, std::string(to_string(type))};
}

bool is_quantized_before(const onnx::Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [](const onnx::Value* value) {
    return value != nullptr && value->producer != nullptr && value->producer->is("QuantizeLinear");
  });
}

/// Returns the first tensor of a node that has a type outside `types`, a list separated by spaces, or nothing. Only the
/// tensors whose types decide whether TensorRT runs the node are examined.
std::optional<MainType> other_type(const onnx::Node& node, const OperatorFact& fact, std::string_view types) {
  const bool is_random = has_trait(node, onnx::trait::random);
  std::vector<const onnx::Value*> values = {is_random ? node.output() : node.input(fact.port)};
  if (node.is("Cast")) values.push_back(node.output());
  if (node.is("CastLike")) values.push_back(node.input(1));
  // TensorRT holds constants of u8 in i32, which does not go together with an input of the network in u8.
  std::copy_if(node.inputs.begin(), node.inputs.end(), std::back_inserter(values), [](const onnx::Value* value) {
    return value != nullptr && value->type == onnx::ElementType::u8 && !passes::is_imported_as_i32(*value);
  });
  for (const onnx::Value* value : values) {
    MainType type = main_type(value);
    if (type.value != nullptr && !has_word(types, type.word)) return type;
  }
  return std::nullopt;
}

/// Returns the advice if the release of newest_measured_release() does not build a node because of a type, but builds
/// the operator with another type; otherwise nothing.
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
  return fmt::format(
      "the model has operator set {}, whose broadcasting rules differ; TensorRT accepts this node only in operator set "
      "{} and later ({})",
      opset, broadcasting_since, known.source);
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
      return fmt::format("TensorRT's parser accepts it, but TensorRT's builder finds no implementation ({})",
                         fact.source);
    }
    if (is_measured && (type == "NonZero" || type == "CausalConvWithState" || type == "LinearAttention")) {
      return fmt::format(
          "TensorRT's parser refuses it: the parser needs a plugin that TensorRT's registry does not have ({})",
          fact.source);
    }
    return fmt::format("TensorRT's parser does not support it ({})", fact.source);
  }
  if (handles_text(node)) return "it uses string tensors, which TensorRT does not support";
  if (const onnx::Value* other = find_other_than_tensor(node)) {
    return fmt::format(
        "'{}' is a sequence, an optional, a map or a sparse tensor; TensorRT supports only dense tensors", other->name);
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
  return fmt::format("'{}' is {}; TensorRT builds {} in {}, but not in this type ({})", other->value->name, other->word,
                     type, fmt::join(words_of(fact.types), ", "), fact.source);
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
    return fmt::format("{}; it is unknown whether {} runs the node in this form", form.what, title_of(release));
  }
  const bool is_quantizing = node.is("QuantizeLinear") || node.is("DequantizeLinear");
  if (const onnx::Value* narrow = is_quantizing ? nullptr : find_narrow(node)) {
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
                   "'{}' is {}: in this type, no build of {} alone succeeded, and none between quantized nodes was "
                   "tried ({})",
                   other->value->name, other->word, node.op_type, fact.source);
}

bool has_wrong_form(const onnx::Node& node, const Release& release) {
  const Forms forms = forms_of(node);
  return std::any_of(forms.begin(), forms.end(), [&](const Form& form) {
    return form.is_computed_wrongly && form_fact(release, form.name).runs == Answer::no;
  });
}

std::optional<Danger> danger_of(const onnx::Node& node, const Release& release) {
  const onnx::Value* image = node.input(0);
  if (!node.is("GridSample") || (image != nullptr && image->rank().value_or(0) > 4)) return std::nullopt;
  const std::string mode = node.string_or("mode", "linear");
  // In opset 16 linear and cubic have other names, which all releases accept.
  if (mode == "linear" || mode == "cubic") {
    const FormFact known = form_fact(release, "grid_sample_mode_of_20");
    if (node.attribute("mode") != nullptr && known.runs == Answer::no) {
      return Danger{.reason = fmt::format("{} computes mode = {} as nearest, without an error ({})", title_of(release),
                                          mode, known.source),
                    .advice = mode == "linear"
                                  ? "graft convert removes the attribute, which has the same meaning"
                                  : "export the node in operator set 16, which has another name for this mode"};
    }
  }
  if (!passes::is_bilinear(node)) return std::nullopt;
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

std::string advice_to_convert() {
  return fmt::format(
      "graft convert replaces some nodes like this one with layers that TensorRT has; {} reports the condition that "
      "this node does not meet",
      setting_name(Setting::explanation));
}

std::string advice_on_refusal(const onnx::Node& node) {
  if (handles_text(node)) return std::string(no_texts);
  const passes::Lowering* lowering = passes::find_lowering(node);
  const std::string first =
      lowering == nullptr || lowering->advice.empty() ? "" : fmt::format("{}; ", lowering->advice);
  if (find_other_than_tensor(node) != nullptr) return fmt::format("{}{}", first, no_sequences);
  if (const auto advice = advice_on_form(node)) return (node.subgraphs().empty() ? "" : first) + *advice;
  for (const Advice& each : advice_by_type) {
    if (node.is(each.type)) return first + fmt::format(fmt::runtime(each.advice), setting_name(Setting::cut));
  }
  if (has_trait(node, onnx::trait::sized_by_data)) {
    return first +
           fmt::format(fmt::runtime(advice_sized_by_data), setting_name(Setting::cut), guide_page("add_an_operator"));
  }
  if (const auto advice = advice_on_type(node)) return *advice;
  if (passes::has_lowered_form(node)) return advice_to_convert();
  return advice_to_write_one();
}

std::string advice_to_write_one() {
  return fmt::format(
      "no operator of Graft replaces the node; {} leaves the node to the host; or write an operator, as {} describes",
      setting_name(Setting::cut), guide_page("add_an_operator"));
}

std::string advice_on_onnxruntime(const onnx::Node& node) {
  return fmt::format(
      "{}{} leaves it to the host; or export the network without ONNX Runtime's optimizer, or with its optimization "
      "level ORT_ENABLE_BASIC, so that the file has operators of ONNX instead",
      passes::find_lowering(node) != nullptr ? "graft convert replaces it in other forms; " : "",
      setting_name(Setting::cut));
}

std::string advice_on_plugin_in_body() {
  return fmt::format("compute the node outside of the body; or {} leaves the node to the host",
                     setting_name(Setting::cut));
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
  } catch (const Error&) {  // an attribute has the wrong type, which the verdict on the node reports
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
  } catch (const Error&) {  // an attribute has the wrong type, which the verdict on the node reports
    return std::nullopt;
  }
}

}  // namespace graft::inspect
