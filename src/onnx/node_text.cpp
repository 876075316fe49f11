// Reads nodes from text; see parse_nodes in functions.hpp.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "onnx/functions.hpp"
#include "onnx/lexer.hpp"
#include "onnx/onnx-ml.pb.h"

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

class NodeParser {
 public:
  NodeParser(Graph& graph, std::string_view text, const AttributeTypes& types)
      : graph_(graph), lexer_(text, "text of nodes"), types_(types) {}

  void parse() {
    while (lexer_.peek().kind != Token::Kind::end) {
      if (lexer_.peek().kind == Token::Kind::end_of_line) {
        lexer_.next();
        continue;
      }
      parse_node();
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
    std::vector<Value*> inputs;
    lexer_.expect("(");
    if (!lexer_.accept(")")) {
      do {
        const Token token = lexer_.peek();
        const std::string name = lexer_.expect_name("the name of an input");
        inputs.push_back(name == "_" ? nullptr : graph_.find(name));
        if (name != "_" && inputs.back() == nullptr) lexer_.fail_at(token, "no line above defines this input");
      } while (lexer_.accept(","));
      lexer_.expect(")");
    }
    if (lexer_.peek().kind != Token::Kind::end && lexer_.peek().kind != Token::Kind::end_of_line) {
      lexer_.fail("the line should end here");
    }
    // Names of the text are exact: they are looked up by later lines.
    std::vector<Value*> values;
    for (const std::string& name : outputs) values.push_back(name.empty() ? nullptr : graph_.add_value(name));
    Node* node =
        graph_.add_node_with_outputs(std::move(op_type), std::move(inputs), std::move(values), nullptr, domain);
    node->attributes = std::move(attributes);
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
    if (*end != '\0') lexer_.fail_at(token, "not a number");
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

  NodeAttribute parse_value() {
    const Token token = lexer_.peek();
    if (lexer_.accept("@")) {
      const Token name_token = lexer_.peek();
      const std::string name = lexer_.expect_name("the name of an attribute");
      const auto type = types_ ? types_(name) : std::nullopt;
      if (!type) lexer_.fail_at(name_token, "the operator has no attribute of this name");
      return AttributeData(AttributeReference{name, onnx_type_of(*type)});
    }
    if (token.kind == Token::Kind::text) return AttributeData(lexer_.next().text);
    if (token.is("[")) {
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
  Lexer lexer_;
  const AttributeTypes& types_;
};

}  // namespace

void parse_nodes(Graph& graph, std::string_view text, const std::vector<std::string>& outputs,
                 const AttributeTypes& attribute_type) {
  NodeParser(graph, text, attribute_type).parse();
  for (const std::string& name : outputs) {
    Value* value = graph.find_local(name);
    if (value == nullptr) throw Error(fmt::format("text of nodes: no line defines the output '{}'", name));
    graph.add_output(*value);
  }
}

}  // namespace graft::onnx
