// Parses nodes from text; see parse_nodes in functions.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/suggest.hpp"
#include "onnx/body_types.hpp"
#include "onnx/functions.hpp"
#include "onnx/lexer.hpp"
#include "onnx/onnx-ml.pb.h"
#include "onnx/opset.hpp"
#include "onnx/schema.hpp"

namespace graft::onnx {
namespace {

std::int32_t onnx_type_of(AttributeType type) {
  switch (type) {
    case AttributeType::float_number: return ::onnx::AttributeProto::FLOAT;
    case AttributeType::integer: return ::onnx::AttributeProto::INT;
    case AttributeType::text: return ::onnx::AttributeProto::STRING;
    case AttributeType::float_numbers: return ::onnx::AttributeProto::FLOATS;
    case AttributeType::integers: return ::onnx::AttributeProto::INTS;
  }
  return ::onnx::AttributeProto::UNDEFINED;
}

using AttributeTypes = std::function<std::optional<AttributeType>(std::string_view)>;

std::string_view value_name(AttributeType type) {
  switch (type) {
    case AttributeType::float_number: return "value_float";
    case AttributeType::integer: return "value_int";
    case AttributeType::text: return "value_string";
    case AttributeType::float_numbers: return "value_floats";
    case AttributeType::integers: return "value_ints";
  }
  return "";
}

/// Returns the line with this number, without surrounding spaces.
std::string_view line_of(std::string_view text, int number) {
  for (; number > 1; --number) text.remove_prefix(text.find('\n') + 1);
  text = text.substr(0, text.find('\n'));
  constexpr std::string_view spaces = " \t\r";
  const std::size_t first = text.find_first_not_of(spaces);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(spaces) + 1 - first);
}

class NodeParser {
 public:
  /// Creates a parser of `text`, which `what` names in messages. If `op`, the operator that the text defines, is not
  /// null, nodes are checked against ONNX's schemas. If `row` is not null, types are inferred and checked.
  NodeParser(Graph& graph, std::string_view text, std::string what, const AttributeTypes& types, const OperatorType* op,
             const FollowedRow* row = nullptr)
      : graph_(graph),
        text_(text),
        what_(std::move(what)),
        lexer_(text, what_),
        types_(types),
        operator_(op),
        row_(row) {}

  void parse() {
    while (lexer_.peek().kind != Token::Kind::end) {
      const Token first = lexer_.peek();
      if (first.kind == Token::Kind::end_of_line) {
        lexer_.next();
        continue;
      }
      try {
        parse_node();
      } catch (const Error& error) {
        throw Error(error.kind(), fmt::format("{}\nThe line is `{}`", error.what(), line_of(text_, first.line)));
      }
    }
  }

 private:
  struct Number {
    double value;
    bool is_integer;
    std::int64_t integer;
  };

  void parse_node() {
    std::vector<std::string> outputs;
    do {
      const Token token = lexer_.peek();
      outputs.push_back(lexer_.expect_name("the name of an output"));
      if (outputs.back() == "_") outputs.back().clear();
      if (!outputs.back().empty() && graph_.find(outputs.back()) != nullptr) {
        lexer_.fail_at(token, "the name is defined twice");
      }
    } while (lexer_.accept(","));
    lexer_.expect("=");
    std::string domain;
    const Token named = lexer_.peek();
    std::string op_type = lexer_.expect_name("an operator");
    if (lexer_.accept("::")) {
      domain = std::move(op_type);
      op_type = lexer_.expect_name("an operator");
    }
    std::map<std::string, NodeAttribute, std::less<>> attributes;
    if (lexer_.accept("<")) {
      do {
        const Token token = lexer_.peek();
        std::string name = lexer_.expect_name("the name of an attribute");
        lexer_.expect("=");
        if (!attributes.emplace(name, parse_value()).second) lexer_.fail_at(token, "the attribute is given twice");
      } while (lexer_.accept(","));
      lexer_.expect(">");
    }
    check_no_braces();
    std::vector<Value*> inputs;
    lexer_.expect("(");
    if (!lexer_.accept(")")) {
      do {
        inputs.push_back(parse_input());
      } while (lexer_.accept(","));
      lexer_.expect(")");
    }
    check_no_braces();
    if (lexer_.peek().kind != Token::Kind::end && lexer_.peek().kind != Token::Kind::end_of_line) {
      lexer_.fail("the line should end here");
    }
    // The names in the text are used unchanged, because later lines refer to them.
    std::vector<Value*> values;
    for (const std::string& name : outputs) values.push_back(name.empty() ? nullptr : graph_.add_value(name));
    Node* node =
        graph_.add_node_with_outputs(std::move(op_type), std::move(inputs), std::move(values), nullptr, domain);
    node->attributes = std::move(attributes);
    settle_empty_lists(*node);
    if (operator_ != nullptr) check_schema(*node, named);
    if (row_ != nullptr) check_types(*node, named);
  }

  /// Throws Error with `message`, naming the text and the line and column of `token`. Unlike Lexer::fail_at, does not
  /// append the token that was found, because the message already states what was found.
  [[noreturn]] void fail_at(const Token& token, const std::string& message) const {
    throw Error(fmt::format("{}, line {}, column {}: {}", what_, token.line, token.column, message));
  }

  /// Throws Error for attributes in braces, which belong to the syntax of patterns.
  void check_no_braces() const {
    if (!lexer_.peek().is("{")) return;
    lexer_.fail(
        "attributes are written in <> before the inputs, as in LeakyRelu<alpha=0.1>(x); braces are for patterns");
  }

  Value* parse_input() {
    const Token token = lexer_.peek();
    if (token.kind == Token::Kind::number) {
      const bool is_real = token.text.find_first_of(".eEin") != std::string::npos;
      fail_at(
          token,
          fmt::format(
              "a number, {0}, cannot be an input: define it in a line above, as in c = Constant<value_float={0}{1}>()",
              token.text, is_real ? "" : ".0"));
    }
    if (lexer_.accept("@")) {
      const Token name_token = lexer_.peek();
      const std::string name = lexer_.expect_name("the name of an attribute");
      fail_at(token,
              fmt::format(
                  "an attribute, @{0}, cannot be an input: define it in a line above, as in {0} = Constant<{1}=@{0}>()",
                  name, value_name(type_of_reference(name_token))));
    }
    const std::string name = lexer_.expect_name("the name of an input");
    if (lexer_.peek().is("(") || lexer_.peek().is("<") || lexer_.peek().is("::")) {
      fail_at(token,
              fmt::format("a line has only one node: write {} in a separate line above, and its output's name here",
                          token.text));
    }
    if (name == "_") return nullptr;
    if (Value* value = graph_.find(name)) return value;
    std::vector<std::string> names;
    for (const Value* value : graph_.values()) names.push_back(value->name);
    const auto meant = graft::nearest(name, names);
    fail_at(token, fmt::format("no line above defines the input {}{}", name,
                               meant ? fmt::format("; did you mean {}?", *meant) : ""));
  }

  [[nodiscard]] AttributeType type_of_reference(const Token& name) const {
    if (const auto type = types_ ? types_(name.text) : std::nullopt) return *type;
    std::vector<std::string> known;
    for (std::size_t i = 0; operator_ != nullptr && i < operator_->attributes.size(); ++i) {
      known.emplace_back(operator_->attributes[i].name);
    }
    fail_at(name, no_attribute("the operator", name.text, known));
  }

  void check_schema(const Node& node, const Token& named) const {
    if (!node.domain.empty()) {
      fail_at(named, fmt::format("{}::{}: a function consists of ONNX's own operators, which have no domain",
                                 node.domain, node.op_type));
    }
    if (const auto fault = schema_fault(node, working_opset)) fail_at(named, *fault);
  }

  void check_types(Node& node, const Token& named) const {
    if (const auto fault = type_fault(node, *row_)) fail_at(named, fmt::format("{}: {}", row_->words, *fault));
  }

  /// Sets the type of empty lists according to the schema, because empty brackets do not show a type.
  static void settle_empty_lists(Node& node) {
    const OperatorSchema* schema = find_schema(node.op_type);
    if (schema == nullptr || !node.domain.empty()) return;
    for (auto& [name, attribute] : node.attributes) {
      const auto* integers = attribute.get<std::vector<std::int64_t>>();
      if (integers == nullptr || !integers->empty()) continue;
      const char kind = schema->attribute_kind(name);
      if (kind == 'F') attribute.data = std::vector<float>();
      if (kind == 'S') attribute.data = std::vector<std::string>();
    }
  }

  Number parse_number() {
    const Token token = lexer_.next();
    Number number{0, false, 0};
    if (token.kind == Token::Kind::name && (token.text == "inf" || token.text == "nan")) {
      number.value = token.text == "inf" ? std::numeric_limits<double>::infinity() : std::nan("");
      return number;
    }
    if (token.kind != Token::Kind::number) lexer_.fail_at(token, "a number is missing");
    char* end = nullptr;
    number.value = std::strtod(token.text.c_str(), &end);
    if (*end != '\0') lexer_.fail_at(token, "this is not a number");
    if (token.text.find_first_of(".eEin") == std::string::npos) {
      errno = 0;
      number.integer = std::strtoll(token.text.c_str(), nullptr, 10);
      if (errno != 0) lexer_.fail_at(token, "the integer exceeds 64 bits");
      number.is_integer = true;
    }
    return number;
  }

  std::vector<Number> parse_list() {
    std::vector<Number> numbers;
    lexer_.expect("[");
    if (lexer_.accept("]")) return numbers;
    do {
      numbers.push_back(parse_number());
    } while (lexer_.accept(","));
    lexer_.expect("]");
    return numbers;
  }

  /// Parses a list of strings after its opening bracket.
  std::vector<std::string> parse_texts() {
    std::vector<std::string> texts;
    do {
      if (lexer_.peek().kind != Token::Kind::text) lexer_.fail("a string is missing");
      texts.push_back(lexer_.next().text);
    } while (lexer_.accept(","));
    lexer_.expect("]");
    return texts;
  }

  NodeAttribute parse_value() {
    const Token token = lexer_.peek();
    if (lexer_.accept("@")) {
      const Token name_token = lexer_.peek();
      const std::string name = lexer_.expect_name("the name of an attribute");
      return AttributeData(AttributeReference{name, onnx_type_of(type_of_reference(name_token))});
    }
    if (token.kind == Token::Kind::text) return AttributeData(lexer_.next().text);
    if (token.is("[")) {
      const Lexer start = lexer_;
      lexer_.next();
      if (lexer_.peek().kind == Token::Kind::text) return AttributeData(parse_texts());
      lexer_ = start;
      const std::vector<Number> numbers = parse_list();
      std::vector<std::int64_t> ints;
      std::vector<float> floats;
      for (const Number& number : numbers) {
        if (number.is_integer) ints.push_back(number.integer);
        floats.push_back(static_cast<float>(number.value));
      }
      if (ints.size() == floats.size()) return AttributeData(std::move(ints));
      return AttributeData(std::move(floats));
    }
    if (token.kind == Token::Kind::name && token.text != "inf" && token.text != "nan") {
      lexer_.next();
      const auto type = parse_element_type(token.text);
      if (!type) lexer_.fail_at(token, "an attribute's value or element type is missing");
      if (!lexer_.accept("(")) return AttributeData(static_cast<std::int64_t>(*type));
      std::vector<double> values;
      std::vector<std::int64_t> dims;
      if (lexer_.peek().is("[")) {
        for (const Number& number : parse_list()) values.push_back(number.value);
        dims.push_back(static_cast<std::int64_t>(values.size()));
      } else {
        values.push_back(parse_number().value);
      }
      lexer_.expect(")");
      return AttributeData(TensorData::from_numbers(*type, std::move(dims), values));
    }
    const Number number = parse_number();
    if (number.is_integer) return AttributeData(number.integer);
    return AttributeData(static_cast<float>(number.value));
  }

  Graph& graph_;
  std::string_view text_;
  std::string what_;
  Lexer lexer_;
  const AttributeTypes& types_;
  const OperatorType* operator_;
  const FollowedRow* row_;
};

void add_outputs(Graph& graph, const std::string& what, const std::vector<std::string>& outputs) {
  for (const std::string& name : outputs) {
    Value* value = graph.find_local(name);
    if (value == nullptr) throw Error(fmt::format("{}: no line defines the output '{}'", what, name));
    graph.add_output(*value);
  }
}

}  // namespace

void parse_nodes(Graph& graph, std::string_view text, const std::vector<std::string>& outputs,
                 const AttributeTypes& attribute_type) {
  const std::string what = "text of nodes";
  NodeParser(graph, text, what, attribute_type, nullptr).parse();
  add_outputs(graph, what, outputs);
}

void parse_body(Graph& graph, const OperatorType& type, const std::string& what, std::string_view text,
                const std::optional<FollowedRow>& row) {
  const AttributeTypes types = [&](std::string_view attribute) -> std::optional<AttributeType> {
    const AttributeInfo* info = type.find_attribute(attribute);
    return info == nullptr ? std::nullopt : std::optional(info->type);
  };
  NodeParser(graph, text, what, types, &type, row ? &*row : nullptr).parse();
  std::vector<std::string> outputs;
  for (const Port& port : type.ports) {
    if (port.is_output()) outputs.emplace_back(port.name);
  }
  add_outputs(graph, what, outputs);
}

}  // namespace graft::onnx
