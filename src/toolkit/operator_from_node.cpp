// The sources follow the templates of `graft new`: the files have the same names, and the members the same order.
#include "toolkit/operator_from_node.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/guide_pages.hpp"
#include "core/shell_quoted.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/operator_name.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/tensor_data.hpp"

namespace graft::toolkit {
namespace {

/// The largest size of a dimension in a generated test case, and the size that a dynamic dimension gets there.
constexpr std::int64_t largest_size = 16;
constexpr std::int64_t usual_size = 2;

/// An input or output of the node for which an operator is written.
struct NodePort {
  std::string name;
  DType dtype = DType::f32;
  bool has_shared_type = true;  ///< Whether the port has the types of the constraint T.
  const onnx::Value* value = nullptr;

  [[nodiscard]] std::string type() const {
    return has_shared_type ? R"("T")"
                           : fmt::format("graft::DType::{}", dtype == DType::boolean ? "boolean" : to_string(dtype));
  }
  /// Returns the C++ type of the tensor's elements in the generated kernels, such as "float". Tensors whose type the
  /// constraint T selects have the type `Element`, a template parameter of the kernels.
  [[nodiscard]] std::string_view element() const {
    if (has_shared_type) return "Element";
    switch (dtype) {
      case DType::f32: return "float";
      case DType::u8: return "std::uint8_t";
      case DType::i32: return "std::int32_t";
      case DType::i64: return "std::int64_t";
      case DType::boolean: return "bool";
      default: return "void";
    }
  }
};

struct NodePorts {
  std::vector<NodePort> inputs;
  std::vector<NodePort> outputs;
};

std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

/// Returns the text with spaces in place of control characters and backslashes, so that it can follow // on one line.
std::string comment_text(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == '\\'; }, ' ');
  return text;
}

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Returns `text` as a C++ identifier for a member or a value of an enumeration: other characters become `_`. C++
/// keywords, and names of members that every operator definition has, get the suffix `_`.
std::string identifier(std::string_view text) {
  static constexpr std::string_view taken =
      " accepts alignas alignof and and_eq asm attributes auto bitand bitor bool break case catch char "
      "char16_t char32_t char8_t check class co_await co_return co_yield compl concept const "
      "const_cast constant consteval constexpr constinit continue decltype default delete do doc "
      "double dynamic_cast else enum explicit export extern false final float for friend function goto "
      "if infer_shapes inline int long mutable name namespace new noexcept not not_eq nullptr operator "
      "or or_eq override ports private protected public register reinterpret_cast requires return "
      "short signed sizeof source static static_assert static_cast struct switch template this "
      "thread_local throw true try typedef typeid typename types union unsigned using version virtual "
      "void volatile wchar_t while why_plugin workspace xor xor_eq ";
  std::string name;
  for (const char c : text) {
    const char next = is_letter_or_digit(c) ? c : '_';
    if (next != '_' || name.empty() || name.back() != '_') name += next;
  }
  while (!name.empty() && name.front() == '_') name.erase(name.begin());
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) name.insert(0, "value_");
  if (name.back() == '_') name.pop_back();
  return taken.find(fmt::format(" {} ", name)) == std::string_view::npos ? name : name + '_';
}

std::optional<int> rank_of(const onnx::Value& value) {
  const auto rank = value.rank();
  return rank ? std::optional(static_cast<int>(*rank)) : std::nullopt;
}

/// Returns a letter or name for each axis of a tensor: N, C, H, W.
std::vector<std::string> axis_words(int rank) {
  static constexpr std::array<std::string_view, 5> words = {"", "N", "NC", "NCL", "NCHW"};
  std::vector<std::string> names;
  for (int i = 0; i < rank; ++i) {
    names.push_back(static_cast<std::size_t>(rank) < words.size()
                        ? std::string(1, words[static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)])
                        : fmt::format("D{}", i));
  }
  return names;
}

/// Returns the shape of `value` for the documentation: "N,C,H,W", or "any" for an unknown rank. If the tensor has fewer
/// axes than the first input, `first`, and its sizes equal those of the last axes of `first`, it gets the names of
/// these axes: "C" for one number per channel of "N,C".
std::string shape_words(const onnx::Value& value, const onnx::Value& first) {
  const std::optional<int> rank = rank_of(value);
  if (!rank) return "any";
  if (*rank == 0) return "scalar";
  std::vector<std::string> names = axis_words(*rank);
  const std::optional<int> of_first = rank_of(first);
  if (value.shape && first.shape && of_first && *rank < *of_first &&
      std::equal(value.shape->rbegin(), value.shape->rend(), first.shape->rbegin())) {
    const std::vector<std::string> all = axis_words(*of_first);
    names.assign(all.end() - *rank, all.end());
  }
  return fmt::format("{}", fmt::join(names, ","));
}

/// Returns the documentation of an input or output of the operator: name, type and shape of the tensor in the model,
/// such as "image: f32[1, 3, 224, 224]".
std::string described(const onnx::Value& value) {
  if (!value.type) return fmt::format("{}: the model does not declare its type", value.name);
  return fmt::format("{}: {}{}", value.name, to_string(*value.type),
                     value.shape ? to_string(*value.shape) : " of unknown shape");
}

/// Returns whether a tensor's name can be used in the generated sources as the name of an input or output and of
/// variables. `taken` contains the names that are used already.
bool is_port_name(std::string_view name, const std::set<std::string, std::less<>>& taken) {
  static const std::set<std::string, std::less<>> used = {
      "op",    "problem", "buffers",  "context", "element",  "Element",     "T",           "begin", "end",
      "i",     "count",   "threads",  "graft",   "std",      "fits",        "dtype",       "cases", "add",
      "exp",   "log",     "sin",      "cos",     "pow",      "abs",         "sqrt",        "tanh",  "run_scalar",
      "check", "apply",   "function", "run",     "elements", "has_formula", "cuda_kernels"};
  return !name.empty() && identifier(name) == name && !taken.contains(name) && !used.contains(name) &&
         !name.starts_with("index_of_");
}

/// Returns the names of the ports: the names of the tensors if all of them can be names, otherwise x1, x2 ... and y1,
/// y2 ....
std::vector<std::string> port_names(const onnx::Node& node, const std::vector<onnx::Value*>& values, char letter,
                                    std::size_t count) {
  std::set<std::string, std::less<>> taken;
  for (const auto& attribute : node.attributes) taken.insert(identifier(attribute.first));
  if (letter == 'y') {
    for (const onnx::Value* input : node.inputs) {
      if (input != nullptr) taken.insert(input->name);
    }
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = values[i]->name;
    if (!is_port_name(name, taken)) break;
    taken.insert(name);
    names.push_back(name);
  }
  if (names.size() == count) return names;
  names.clear();
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(count == 1 ? std::string(1, letter) : fmt::format("{}{}", letter, i + 1));
  }
  return names;
}

std::vector<NodePort> make_ports(const onnx::Node& node, const std::vector<onnx::Value*>& values, char letter) {
  std::vector<NodePort> ports;
  std::size_t count = values.size();
  while (count > 0 && values[count - 1] == nullptr) --count;
  const bool has_all = std::none_of(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count),
                                    [](const onnx::Value* value) { return value == nullptr; });
  const std::vector<std::string> names =
      has_all ? port_names(node, values, letter, count) : std::vector<std::string>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const onnx::Value* value = values[i];
    if (value == nullptr) {
      throw Error(fmt::format(
          "{}: its {} {} is left out, and a definition from a node has no optional ports\nWrite the operator from a "
          "template: {} describes optional inputs",
          onnx::describe(node), letter == 'x' ? "input" : "output", i, guide_page("operator_definition")));
    }
    NodePort port{.name = names[i], .value = value};
    if (value->type) {
      const std::optional<DType> dtype = onnx::to_dtype(*value->type);
      const bool is_double = *value->type == onnx::ElementType::f64;
      if (!dtype && !is_double) {
        throw Error(fmt::format("{}: '{}' is of type {}, which a plugin of TensorRT cannot have", onnx::describe(node),
                                value->name, to_string(*value->type)));
      }
      port.dtype = dtype.value_or(DType::f32);  // TensorRT computes f64 in f32
      if (is_quantized(port.dtype)) {
        throw Error(
            fmt::format("{}: '{}' is of type {}, which needs a scale\nWrite the operator from a template: "
                        "{} describes scales",
                        onnx::describe(node), value->name, to_string(*value->type), guide_page("operator_definition")));
      }
      port.has_shared_type = is_floating_point(port.dtype);
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

NodePorts ports_of(const onnx::Node& node) {
  NodePorts ports{make_ports(node, node.inputs, 'x'), make_ports(node, node.outputs, 'y')};
  if (ports.inputs.empty() || ports.outputs.empty()) {
    throw Error(fmt::format("{}: it has {} inputs and {} outputs, and an operator has at least one of each",
                            onnx::describe(node), ports.inputs.size(), ports.outputs.size()));
  }
  // The types of a node follow from its inputs: ports of the type of the first floating-point input share its types.
  const auto shared = std::ranges::find_if(ports.inputs, &NodePort::has_shared_type);
  const bool is_shared = shared != ports.inputs.end();
  const DType dtype = is_shared ? shared->dtype : DType::f32;
  for (std::vector<NodePort>* each : {&ports.inputs, &ports.outputs}) {
    for (NodePort& port : *each) {
      if (!port.value->type) port.dtype = dtype;
      port.has_shared_type = is_shared && port.has_shared_type && port.dtype == dtype;
    }
  }
  return ports;
}

/// Returns whether the node may be elementwise, so that its author only has to write the formula of one element. There
/// must be one output with the shape of the first input (or an unknown shape), all tensors must have the types T,
/// further inputs must broadcast to the first one along consecutive axes, and no attribute may be a list.
bool is_elementwise(const onnx::Node& node, const NodePorts& ports) {
  const auto& shape = ports.inputs.front().value->shape;
  if (ports.outputs.size() != 1 || !shape || shape->empty()) return false;
  const auto is_shared = [](const NodePort& port) { return port.has_shared_type; };
  if (!std::ranges::all_of(ports.inputs, is_shared) || !std::ranges::all_of(ports.outputs, is_shared)) return false;
  const auto& result = ports.outputs.front().value->shape;
  if (result && *result != *shape) return false;
  const auto is_list = [](const auto& attribute) {
    const auto value = attribute.second.value();
    return value && (std::holds_alternative<std::vector<float>>(*value) ||
                     std::holds_alternative<std::vector<std::int64_t>>(*value));
  };
  // The definition is an argument of the CUDA kernel, so it must have no members in host memory.
  if (std::any_of(node.attributes.begin(), node.attributes.end(), is_list)) return false;
  return std::ranges::all_of(ports.inputs, [&](const NodePort& port) {
    const auto& own = port.value->shape;
    if (!own || own->size() > shape->size()) return false;
    const auto before = static_cast<std::ptrdiff_t>(shape->size() - own->size());
    const auto is_one = [](const Dim& dim) { return dim == Dim(1); };
    const auto first = std::find_if_not(own->begin(), own->end(), is_one);
    const auto last = std::find_if_not(own->rbegin(), own->rend(), is_one).base();
    return first >= last || std::equal(first, last, shape->begin() + before + (first - own->begin()));
  });
}

/// A data member of the operator's C++ struct, for an attribute of the node.
struct NodeMember {
  std::string attribute;
  std::string member;
  std::string type;
  std::string value;
  std::string enumeration = {};  ///< The definition of the enumeration of a string; empty for other attributes.
};

std::string float_text(float value) {
  if (!std::isfinite(value)) {
    const char* const sign = std::signbit(value) ? "-" : "";
    return fmt::format("{}std::numeric_limits<float>::{}()", sign, std::isnan(value) ? "quiet_NaN" : "infinity");
  }
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) return text;
  return text + "F";
}

/// Returns the text with an upper-case letter at the beginning.
std::string in_upper_case(std::string text) {
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

/// Returns the data member named `member` for an attribute with this value. If the value is a string, the type of the
/// member is an enumeration named `enumeration`.
NodeMember member_of(const std::string& attribute, const std::string& member, const AttributeValue& value,
                     const std::string& enumeration) {
  NodeMember made{.attribute = attribute, .member = member, .type = "", .value = ""};
  if (const auto* number = std::get_if<float>(&value)) {
    made.type = "float";
    made.value = float_text(*number);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    made.type = "std::int64_t";
    made.value = fmt::format("{}", *integer);
  } else if (const auto* numbers = std::get_if<std::vector<float>>(&value)) {
    made.type = "std::vector<float>";
    std::vector<std::string> texts;
    for (const float each : *numbers) texts.push_back(float_text(each));
    made.value = fmt::format("{{{}}}", fmt::join(texts, ", "));
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    made.type = "std::vector<std::int64_t>";
    made.value = fmt::format("{{{}}}", fmt::join(*integers, ", "));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    made.type = enumeration;
    const std::string choice = identifier(*text);
    made.value = fmt::format("{}::{}", made.type, choice);
    made.enumeration = fmt::format(
        "/// The strings that the attribute {0} may have. The node has {3}: add the other strings.\n"
        "enum class {1} : std::uint8_t {{ {2} }};\n"
        "constexpr std::array<graft::Choice<{1}>, 1> choices({1} /*tag*/) {{\n"
        "  return {{{{{{{3}, {1}::{2}}}}}}};\n"
        "}}\n\n",
        attribute, made.type, choice, in_quotes(*text));
  }
  return made;
}

/// The members for the node's attributes, and the names of the attributes whose types operators of Graft do not
/// support.
struct NodeMembers {
  std::vector<NodeMember> members;
  std::vector<std::string> left_out;
};

/// Returns the name, with the suffix _2, _3 ... if `taken` already contains it, and inserts the result into `taken`.
std::string free_name(const std::string& name, std::set<std::string, std::less<>>& taken) {
  std::string free = name;
  for (int number = 2; !taken.insert(free).second; ++number) free = fmt::format("{}_{}", name, number);
  return free;
}

NodeMembers members_of(const onnx::Node& node, const std::string& definition) {
  NodeMembers found;
  // A member has neither the name of another member nor that of its type; types of enumerations differ too.
  std::set<std::string, std::less<>> taken{definition};
  for (const auto& [name, attribute] : node.attributes) {
    // TensorRT's parser selects the plugin by these attributes.
    if (name == "plugin_version" || name == "plugin_namespace") continue;
    if (const std::optional<AttributeValue> value = attribute.value()) {
      const std::string member = free_name(identifier(name), taken);
      found.members.push_back(member_of(name, member, *value, free_name(definition + in_upper_case(member), taken)));
    } else {
      found.left_out.push_back(fmt::format("{} ({})", name, attribute.kind()));
    }
  }
  return found;
}

/// Returns a C++ expression for the shape of an output. It is composed of sizes of the inputs with the same value and
/// of constants; if that is not possible, it is "inputs[0]".
std::string shape_expression(const NodePort& output, const std::vector<NodePort>& inputs) {
  const auto& shape = output.value->shape;
  if (!shape) return "inputs[0]";
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].value->shape == shape) return fmt::format("inputs[{}]", i);
  }
  std::vector<std::string> sizes;
  for (const Dim& size : *shape) {
    std::string text = size.is_constant() ? fmt::format("{}", size.value()) : "";
    for (std::size_t i = 0; i < inputs.size() && text.empty(); ++i) {
      const auto& given = inputs[i].value->shape;
      const auto at = given ? std::find(given->begin(), given->end(), size) : decltype(given->begin())();
      if (given && at != given->end()) text = fmt::format("inputs[{}][{}]", i, at - given->begin());
    }
    if (text.empty()) return "inputs[0]";
    sizes.push_back(std::move(text));
  }
  return fmt::format("graft::Shape{{{}}}", fmt::join(sizes, ", "));
}

/// Returns the version by which TensorRT's parser selects the plugin of the node.
std::string version_of(const onnx::Node& node) {
  const std::string version = node.string_or("plugin_version", "1");
  const bool is_number = !version.empty() && version.size() < 6 && version.front() != '0' &&
                         std::ranges::all_of(version, [](unsigned char c) { return std::isdigit(c) != 0; });
  return is_number ? version : "1";
}

constexpr std::string_view general_includes = R"(#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "graft/operator/define_operator.hpp"
)";
constexpr std::string_view formula_includes = R"(#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "graft/operator/define_operator.hpp"
#include "graft/operator/elementwise.hpp"
#include "ops/broadcast.hpp"
)";

/// Returns the comment in the generated operator that shows its author how to add an ONNX function.
std::string function_hint(const NodePorts& ports) {
  std::string lines;
  for (const NodePort& port : ports.inputs) {
    if (port.has_shared_type)
      lines += fmt::format("  //                            \"{0}32 = Cast<to=f32>({0})\\n\"\n", port.name);
  }
  return fmt::format(
      "  // Add the same computation in standard ONNX operators, one node per line, so that the network also runs in\n"
      "  // ONNX Runtime and in TensorRT without this library. @name is an attribute. The tests compare it with the\n"
      "  // reference kernel:\n"
      "  //   static std::optional<graft::Function> function(const graft::FunctionInputs& /*inputs*/) {{\n"
      "  //     return graft::Function{{name,\n"
      "{}"
      "  //                            ...\n"
      "  //                            \"{} = CastLike({}32, {})\"}};\n"
      "  //   }}\n",
      lines, ports.outputs.front().name, ports.outputs.front().name, ports.inputs.front().name);
}

/// Returns the last lines of the C++ struct of an operator whose kernels are not elementwise.
std::string general_rest(const NodePorts& ports) {
  return "  // Write `check` for sizes that are known only at run time: " + guide_page("operator_definition") +
         "\n  // describes it.\n" + function_hint(ports);
}

/// Returns the names of the inputs as parameters: "T x, T alpha".
std::string parameters(const NodePorts& ports) {
  std::vector<std::string> all;
  for (const NodePort& port : ports.inputs) all.push_back("T " + port.name);
  return fmt::format("{}", fmt::join(all, ", "));
}

/// Returns the last lines of the C++ struct of an elementwise operator: the checks of its shapes, and the function in
/// which the author writes the formula.
std::string formula_text(const NodePorts& ports, const OperatorNames& names) {
  const std::string& first = ports.inputs.front().name;
  std::string checks;
  std::string unused;
  for (std::size_t i = 1; i < ports.inputs.size(); ++i) {
    checks += fmt::format(
        "    if (graft::Status status = graft::ops::check_broadcast(name, \"{}\", problem.inputs[{}].extents,\n"
        "                                                           problem.inputs[0].extents);\n"
        "        !status.ok()) {{\n"
        "      return status;\n"
        "    }}\n",
        ports.inputs[i].name, i);
    unused += fmt::format("static_cast<void>({});\n    ", ports.inputs[i].name);
  }
  return fmt::format(
      R"(  /// Set this to true when `apply` has the formula.
  static constexpr bool has_formula = false;

  /// Checks sizes that are known only at run time.
  static graft::Status check([[maybe_unused]] const graft::Problem& problem) {{
{3}    if (!has_formula) return graft::unsupported("{0}: `apply` is not written yet: {1}/{1}.hpp");
    return {{}};
  }}
  /// Computes one element of the output: write the formula here, once. The reference kernel calls this function with
  /// double, the CUDA kernel with float; GRAFT_HOST_DEVICE allows both. Numbers and attributes are written as T(0.5)
  /// and T(attribute), functions after `using std::sin;` as sin(x).
  template <class T>
  GRAFT_HOST_DEVICE T apply({2}) const {{
    {6}return {4};
  }}
{5})",
      names.definition, names.folder, parameters(ports), checks, first, function_hint(ports), unused);
}

std::string definition_text(const onnx::Node& node, const NodePorts& ports, const OperatorNames& names) {
  const NodeMembers attributes = members_of(node, names.definition);
  const std::string op = comment_text(onnx::qualified_operator_name(node));
  std::string enumerations;
  std::string members;
  std::vector<std::string> declared;
  for (const NodeMember& each : attributes.members) {
    enumerations += each.enumeration;
    members += fmt::format("  {} {} = {};\n", each.type, each.member, each.value);
    declared.push_back(fmt::format("graft::attribute({}, &{}::{}, \"write what it does\")", in_quotes(each.attribute),
                                   names.definition, each.member));
  }
  const std::string left_out =
      attributes.left_out.empty()
          ? ""
          : fmt::format("  // Not among the attributes, because no field of a plugin has their types: {}.\n",
                        comment_text(fmt::format("{}", fmt::join(attributes.left_out, ", "))));
  std::vector<std::string> ports_text;
  std::string ranks;
  std::string unknown;
  const NodePort& first = ports.inputs.front();
  const bool is_formula = is_elementwise(node, ports);
  for (std::size_t i = 0; i < ports.inputs.size(); ++i) {
    const NodePort& port = ports.inputs[i];
    ports_text.push_back(fmt::format("graft::input(\"{}\", {}, \"{}\", {})", port.name, port.type(),
                                     shape_words(*port.value, *first.value), in_quotes(described(*port.value))));
    if (const std::optional<int> rank = is_formula ? std::nullopt : rank_of(*port.value)) {
      ranks += fmt::format(
          "    if (inputs[{0}].size() != {1}) {{\n"
          "      throw std::invalid_argument(\"`{2}` has rank \" + std::to_string(inputs[{0}].size()) + \", allowed is "
          "{1}\");\n"
          "    }}\n",
          i, *rank, port.name);
    }
  }
  std::vector<std::string> shapes;
  for (const NodePort& port : ports.outputs) {
    ports_text.push_back(fmt::format("graft::output(\"{}\", {}, \"{}\", {})", port.name, port.type(),
                                     port.value->type ? shape_words(*port.value, *first.value) : "as " + first.name,
                                     in_quotes(described(*port.value))));
    if (!port.value->type) {
      unknown += fmt::format(
          "  // The model does not declare the type of `{}`: it has the type and the shape of `{}` here. Correct its\n"
          "  // port and `infer_shapes` if the operator computes something else.\n",
          port.name, first.name);
    }
    shapes.push_back(shape_expression(port, ports.inputs));
  }
  const bool has_shared_type = std::ranges::any_of(ports.inputs, &NodePort::has_shared_type);
  const std::string types = has_shared_type ? "    using enum graft::DType;\n"
                                              "    return std::array{graft::TypeConstraint(\"T\", f32, f16, bf16)};\n"
                                            : "    return std::array<graft::TypeConstraint, 0>{};\n";
  return fmt::format(
      R"(// {definition}: the operator of {node}.
// `graft convert` and `graft build` with this library replace each node of the operator, whatever its domain.
#pragma once

#include <array>
{includes}
namespace {space} {{

{enumerations}struct {definition} {{
  static constexpr auto name = {name};
  static constexpr int version = {version};
  static constexpr auto doc = "Write what the operator computes.";
  static constexpr auto source = {source};
  static constexpr auto why_plugin = "neither ONNX nor TensorRT has the operator";

{members}{left_out}{gap}  /// The defaults are the values of the node.
  static constexpr auto attributes() {{
    return std::tuple{{{attributes}}};
  }}
  /// The inputs and outputs have the names of the node's tensors. Write what each of them is: its shape is documentation.
{unknown}  static constexpr auto ports() {{
    return std::array{{{ports}}};
  }}
  /// The types that each name in the ports may have.
  static constexpr auto types() {{
{types}  }}
  /// Infers the shape of each output. {fit}
  static std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) {{
{ranks}    return {{{shapes}}};
  }}
{rest}}};

graft::Status run(const {definition}& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<{definition}>> cuda_kernels(const {definition}& op);

}}  // namespace {space}
)",
      fmt::arg("definition", names.definition), fmt::arg("node", comment_text(onnx::describe(node))),
      fmt::arg("version", version_of(node)), fmt::arg("space", names.space), fmt::arg("enumerations", enumerations),
      fmt::arg("name", in_quotes(node.op_type)), fmt::arg("source", in_quotes(op)), fmt::arg("members", members),
      fmt::arg("left_out", left_out), fmt::arg("gap", members.empty() && left_out.empty() ? "" : "\n"),
      fmt::arg("attributes", fmt::format("{}", fmt::join(declared, ",\n                      "))),
      fmt::arg("ports", fmt::format("{}", fmt::join(ports_text, ",\n                      "))),
      fmt::arg("types", types), fmt::arg("ranks", ranks), fmt::arg("unknown", unknown),
      fmt::arg("includes", is_formula ? formula_includes : general_includes),
      fmt::arg("fit", is_formula ? "It is the shape of the first input."
                                 : "These expressions fit the node: correct them for inputs of other shapes."),
      fmt::arg("rest", is_formula ? formula_text(ports, names) : general_rest(ports)),
      fmt::arg("shapes", fmt::format("{}", fmt::join(shapes, ", "))));
}

std::string not_written(const OperatorNames& names, std::string_view kernel, std::string_view suffix) {
  return fmt::format("return graft::unsupported(\"{}: its {} is not written yet: {}/{}{}\");", names.definition, kernel,
                     names.folder, names.folder, suffix);
}

/// Returns, as C++ text, the arguments of the call of `apply` that computes element i: the elements of all inputs.
/// `load` returns the C++ text that loads an element; a broadcast input gets an index of its own.
std::string arguments_of_apply(const NodePorts& ports, const std::function<std::string(const std::string&)>& load) {
  std::vector<std::string> all;
  for (const NodePort& port : ports.inputs) {
    const bool is_first = all.empty();
    all.push_back(load(is_first ? port.name + "[i]" : fmt::format("{0}[index_of_{0}(i)]", port.name)));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string formula_reference_text(const NodePorts& ports, const OperatorNames& names) {
  std::string pointers;
  std::string indices;
  for (std::size_t i = 0; i < ports.inputs.size(); ++i) {
    pointers += fmt::format("    const auto* {0} = static_cast<const Element*>(buffers.inputs[{1}]);\n",
                            ports.inputs[i].name, i);
    if (i == 0) continue;
    indices += fmt::format(
        "    const auto index_of_{0} =\n"
        "        graft::ops::broadcast_index(problem.inputs[{1}].extents, problem.inputs[0].extents).value();\n",
        ports.inputs[i].name, i);
  }
  const std::string arguments = arguments_of_apply(
      ports, [](const std::string& element) { return fmt::format("double{{graft::ops::load({}, 1)}}", element); });
  return fmt::format(
      R"(// Reference kernel of {0}: computes `apply` of {1}.hpp in double. It needs no change.
#include "{1}/{1}.hpp"
#include "ops/reference.hpp"

graft::Status {2}::run(const {0}& op, const graft::Problem& problem, const graft::Buffers& buffers,
                       const graft::CpuContext& context) {{
  return graft::ops::dispatch(problem.inputs[0].dtype, [&](auto element) -> graft::Status {{
    using Element = decltype(element);
{3}    auto* {4} = static_cast<Element*>(buffers.outputs[0]);
{5}    context.parallel_for(problem.inputs[0].extents.element_count(), [&](std::int64_t begin, std::int64_t end) {{
      for (std::int64_t i = begin; i < end; ++i) {{
        {4}[i] = graft::ops::store<Element>(op.apply({6}), 1);
      }}
    }});
    return {{}};
  }});
}}
)",
      names.definition, names.folder, names.space, pointers, ports.outputs.front().name, indices, arguments);
}

std::string formula_cuda_text(const NodePorts& ports, const OperatorNames& names) {
  std::string parameters;
  std::string arguments;
  for (std::size_t i = 0; i < ports.inputs.size(); ++i) {
    const std::string& name = ports.inputs[i].name;
    parameters += fmt::format("const T* {}, ", name);
    arguments += fmt::format("                         static_cast<const T*>(buffers.inputs[{}]),\n", i);
    if (i == 0) continue;
    parameters += fmt::format("graft::ops::BroadcastIndex index_of_{}, ", name);
    arguments += fmt::format(
        "                         graft::ops::broadcast_index(problem.inputs[{}].extents, "
        "problem.inputs[0].extents).value(),\n",
        i);
  }
  const std::string elements = arguments_of_apply(
      ports, [](const std::string& element) { return fmt::format("static_cast<float>({})", element); });
  return fmt::format(
      R"(// CUDA kernel of {0}: computes `apply` of {1}.hpp in f32, one thread for each element. It needs no change.
#include "{1}/{1}.hpp"
#include "kernels/launch.cuh"
#include "kernels/vector.cuh"

namespace {2} {{
namespace {{

constexpr int threads = 256;

template <class T>
__global__ void elements({0} op, {3}T* {4}, std::int64_t count) {{
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= count) return;
  {4}[i] = static_cast<T>(op.apply({5}));
}}

graft::Status fits(const {0}& /*op*/, const graft::Problem& /*problem*/) {{ return {{}}; }}

graft::Status run_scalar(const {0}& op, const graft::Problem& problem, const graft::Buffers& buffers,
                         const graft::CudaContext& context) {{
  return graft::dispatch_device(problem.inputs[0].dtype, [&](auto element) {{
    using T = decltype(element);
    const std::int64_t count = problem.inputs[0].extents.element_count();
    return graft::launch({0}::name, elements<T>, {{graft::ceil_divide(count, threads), threads}}, context, op,
{6}                         static_cast<T*>(buffers.outputs[0]), count);
  }});
}}

}}  // namespace

/// Returns the kernels, best first. The first one that fits a problem runs.
std::span<const graft::Variant<{0}>> cuda_kernels(const {0}& /*op*/) {{
  static constexpr std::array variants{{graft::Variant<{0}>{{"scalar", fits, run_scalar}}}};
  return variants;
}}

}}  // namespace {2}
)",
      names.definition, names.folder, names.space, parameters, ports.outputs.front().name, elements, arguments);
}

std::string reference_text(const NodePorts& ports, const OperatorNames& names) {
  const auto shared = std::ranges::find_if(ports.inputs, &NodePort::has_shared_type);
  const bool has_shared_type = shared != ports.inputs.end();
  const std::string indent = has_shared_type ? "    " : "  ";
  std::string pointers;
  for (std::size_t i = 0; i < ports.inputs.size(); ++i) {
    pointers += fmt::format("{}[[maybe_unused]] const auto* {} = static_cast<const {}*>(buffers.inputs[{}]);\n", indent,
                            ports.inputs[i].name, ports.inputs[i].element(), i);
  }
  for (std::size_t i = 0; i < ports.outputs.size(); ++i) {
    pointers += fmt::format("{}[[maybe_unused]] auto* {} = static_cast<{}*>(buffers.outputs[{}]);\n", indent,
                            ports.outputs[i].name, ports.outputs[i].element(), i);
  }
  const std::string unwritten = indent + not_written(names, "reference kernel", "_cpu.cpp") + "\n";
  const std::string body =
      has_shared_type
          ? fmt::format(
                "  return graft::ops::dispatch(problem.inputs[{}].dtype, [&](auto element) -> graft::Status {{\n"
                "    using Element = decltype(element);\n"
                "    // graft::ops::load(x[i], 1) reads an element as double, graft::ops::store<Element>(value, 1) "
                "rounds one.\n"
                "{}{}  }});\n",
                shared - ports.inputs.begin(), pointers, unwritten)
          : pointers + unwritten;
  return fmt::format(
      R"(// Reference kernel of {0}: write the computation here, in double. problem.inputs[0].extents has the sizes.
#include "{1}/{1}.hpp"
#include "ops/reference.hpp"

graft::Status {2}::run([[maybe_unused]] const {0}& op, [[maybe_unused]] const graft::Problem& problem,
                       [[maybe_unused]] const graft::Buffers& buffers,
                       [[maybe_unused]] const graft::CpuContext& context) {{
{3}}}
)",
      names.definition, names.folder, names.space, body);
}

std::string cuda_text(const OperatorNames& names) {
  return fmt::format(
      R"(// CUDA kernels of {0}: write them here, in f32. The templates of `graft new` show how a kernel is launched.
#include "{1}/{1}.hpp"
#include "kernels/launch.cuh"

namespace {2} {{
namespace {{

graft::Status fits(const {0}& /*op*/, const graft::Problem& /*problem*/) {{ return {{}}; }}

graft::Status run_scalar(const {0}& /*op*/, const graft::Problem& /*problem*/, const graft::Buffers& /*buffers*/,
                         const graft::CudaContext& /*context*/) {{
  {3}
}}

}}  // namespace

/// Returns the kernels, best first. The first one that fits a problem runs.
std::span<const graft::Variant<{0}>> cuda_kernels(const {0}& /*op*/) {{
  static constexpr std::array variants{{graft::Variant<{0}>{{"scalar", fits, run_scalar}}}};
  return variants;
}}

}}  // namespace {2}
)",
      names.definition, names.folder, names.space, not_written(names, "CUDA kernel", "_cuda.cu"));
}

/// Returns the shape of a tensor in a test case as C++ text: the node's sizes, limited to largest_size, with usual_size
/// for each dynamic dimension.
std::string case_extents(const onnx::Value& value) {
  std::vector<std::int64_t> sizes;
  if (value.shape) {
    for (const Dim& size : *value.shape) {
      sizes.push_back(size.is_constant() ? std::min(size.value(), largest_size) : usual_size);
    }
  } else {
    sizes.assign(static_cast<std::size_t>(rank_of(value).value_or(2)), usual_size);
  }
  return fmt::format("{{{}}}", fmt::join(sizes, ", "));
}

std::string cases_text(const NodePorts& ports, const OperatorNames& names) {
  const bool has_shared_type = std::ranges::any_of(ports.inputs, &NodePort::has_shared_type);
  const auto listed = [&](std::string_view first_type) {
    std::vector<std::string> inputs;
    for (const NodePort& port : ports.inputs) {
      const bool is_first = inputs.empty() && !first_type.empty();
      const std::string fixed =
          fmt::format("graft::DType::{}", port.dtype == DType::boolean ? "boolean" : to_string(port.dtype));
      const std::string type = is_first ? std::string(first_type) : port.has_shared_type ? "dtype" : fixed;
      inputs.push_back(fmt::format("{{.dtype = {}, .extents = {}}}", type, case_extents(*port.value)));
    }
    return fmt::format("{}", fmt::join(inputs, ",\n         "));
  };
  const std::string accepted = listed("");
  // No row has this type in the place of the first input.
  const std::string refused = listed(ports.inputs.front().has_shared_type ? "graft::DType::i32" : "graft::DType::bf16");
  const std::string types =
      has_shared_type ? "graft::DType::f32, graft::DType::f16, graft::DType::bf16" : "graft::DType::f32";
  return fmt::format(
      R"(// Cases of {0}: the problems with which its kernels and its function are tested. Add sizes, attributes and limits
// of the types.
#pragma once

#include "{1}/{1}.hpp"
#include "ops/operator_case.hpp"

namespace {2} {{

inline std::vector<graft::ops::OperatorCase> cases(const {0}& /*tag*/) {{
  const auto op = graft::ops::make_operator(graft::operator_type<{0}>(), {{}});
  std::vector<graft::ops::OperatorCase> cases;
  const auto add = [&](const std::string& name, std::vector<graft::TensorDesc> inputs) -> graft::ops::OperatorCase& {{
    return cases.emplace_back(graft::ops::OperatorCase{{
        .name = name,
        .op = op,
        .inputs = std::move(inputs),
        // The allowed relative error: f32_error(16) is the error of 16 roundings in f32, one after another.
        .tolerance = graft::ops::f32_error(16),
        // The error that is allowed in addition, as an absolute number: a kernel computes in f32, and terms of about 1
        // whose difference is near 0 leave an error of this size. Larger terms need more.
        .absolute = 1e-6}});
  }};
  for ([[maybe_unused]] const graft::DType dtype : {{{3}}}) {{
    add("node_" + std::string(graft::to_string(dtype)),
        {{{4}}});
  }}
  [[maybe_unused]] constexpr graft::DType dtype = graft::DType::f32;
  // `refused` is a part of the message with which the operator must refuse the case, for example one of `check`.
  add("types", {{{5}}}).refused = "does not take";
  return cases;
}}

}}  // namespace {2}
)",
      names.definition, names.folder, names.space, types, accepted, refused);
}

}  // namespace

const onnx::Node& find_named_node(const onnx::Model& model, const std::string& name) {
  std::vector<const onnx::Node*> found;
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (node.name == name || (node.name.empty() && onnx::ref_of(node).name == name)) found.push_back(&node);
  });
  if (found.size() == 1) return *found.front();
  throw Error(fmt::format("{}: {} {}: {} of the model {} this name\n`graft inspect {}` lists the nodes", model.source,
                          setting_name(Setting::project_node), name,
                          found.empty() ? "no node" : fmt::format("{} nodes", found.size()),
                          found.size() > 1 ? "have" : "has", shell_path(model.source)));
}

std::string owner_of_name(const std::string& name) {
  if (onnx::is_standard_operator("", name)) {
    return "ONNX has an operator of this name, and TensorRT's parser looks only at the name";
  }
  for (const OperatorType* type : operators()) {
    const bool is_taken =
        type->name == name || std::any_of(type->drop_ins.begin(), type->drop_ins.end(),
                                          [&](const DropIn& each) { return each.plugin_name == name; });
    if (is_taken) return "Graft has an operator of this name; `graft ops` lists Graft's operators";
  }
  return "";
}

std::string definition_name(const onnx::Node& node) {
  if (node.op_type.empty()) throw Error(fmt::format("{}: its operator has no name", onnx::describe(node)));
  return in_upper_case(identifier(node.op_type));
}

std::string operator_folder(std::string_view type) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  std::string folder;
  for (std::size_t i = 0; i < type.size(); ++i) {
    const bool after_lower = i > 0 && !is_upper(type[i - 1]) && type[i - 1] != '_';
    const bool before_lower = i > 0 && type[i - 1] != '_' && i + 1 < type.size() && is_lower(type[i + 1]);
    if (is_upper(type[i]) && (after_lower || before_lower)) folder += '_';
    folder += static_cast<char>(std::tolower(static_cast<unsigned char>(type[i])));
  }
  return folder;
}

bool is_folder_of_project(std::string_view folder) { return folder == "tests" || folder == "build"; }

std::set<std::string, std::less<>> find_nodes_to_define(const onnx::Model& model) {
  std::map<std::string, int> counts;
  model.graph().for_each_node([&](const onnx::Node& node) { ++counts[onnx::ref_of(node).name]; });
  std::set<std::string, std::less<>> names;
  model.graph().for_each_node([&](const onnx::Node& node) {
    std::string name = onnx::ref_of(node).name;
    if (counts[name] != 1 || !owner_of_name(node.op_type).empty()) return;
    try {
      static_cast<void>(ports_of(node));
      if (!is_folder_of_project(operator_folder(definition_name(node)))) names.insert(std::move(name));
    } catch (const Error&) {
      return;  // the node has a port that a definition from a node does not have
    }
  });
  return names;
}

bool has_formula(const onnx::Node& node) { return is_elementwise(node, ports_of(node)); }

std::vector<OperatorSource> operator_sources(const onnx::Node& node, const OperatorNames& names) {
  const NodePorts ports = ports_of(node);
  const bool is_formula = is_elementwise(node, ports);
  return {{".hpp", definition_text(node, ports, names)},
          {"_cpu.cpp", is_formula ? formula_reference_text(ports, names) : reference_text(ports, names)},
          {"_cuda.cu", is_formula ? formula_cuda_text(ports, names) : cuda_text(names)},
          {"_cases.hpp", cases_text(ports, names)}};
}

}  // namespace graft::toolkit
