// Parses patterns, and searches for matches with backtracking.
#include "onnx/matcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <variant>

#include "core/suggest.hpp"
#include "onnx/lexer.hpp"
#include "onnx/low_precision.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/schema.hpp"
#include "onnx/standard_operators.hpp"

namespace graft::onnx {
namespace {

constexpr int most_steps = 100'000;  // The limit for one attempt. A pattern with many alternatives must not hang.

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

struct Condition {
  std::string attribute;
  std::string bind;  // The name in `@name`. If it is empty, one of the following members is set.
  std::optional<std::string> text;
  std::vector<double> numbers;
  bool is_list = false;
};

struct Argument {
  ExpressionPointer expression;
  bool optional = false;
};

struct Call {
  std::string domain;
  std::string op_type;
  std::vector<Argument> arguments;
  std::vector<Condition> conditions;
  bool takes_more = false;
  bool is_standard = false;  // Whether the operator is written without a domain, as a standard ONNX operator.
};

struct Any {};
struct FreeName {
  std::string name;
};
struct Reference {
  std::size_t line;
  std::size_t output;
};
struct ConstantName {
  std::string name;
};
struct Number {
  double value;
};
struct Alternatives {
  std::vector<ExpressionPointer> options;
};

struct Expression {
  std::variant<Any, FreeName, Reference, ConstantName, Number, Call, Alternatives> form;
};

struct Line {
  std::vector<std::string> names;
  ExpressionPointer expression;
};

}  // namespace

struct Pattern::Data {
  std::vector<Line> lines;
  std::vector<std::string> root_types;
  std::set<std::string, std::less<>> value_names;
  std::map<std::string, Pattern::Capture, std::less<>> constant_names;
  std::size_t node_count = 0;
};

namespace {

// ---- Text

class PatternParser {
 public:
  PatternParser(std::string_view text, const std::string& name) : text_(text), lexer_(text, name) {}

  Pattern::Data parse() {
    while (lexer_.peek().kind != Token::Kind::end) {
      if (lexer_.peek().kind == Token::Kind::end_of_line) {
        lexer_.next();
      } else {
        parse_line();
      }
    }
    if (data_.lines.empty()) lexer_.fail("a pattern needs a line such as `y = Relu(x)`");
    check_root();
    for (std::size_t i = 0; i + 1 < data_.lines.size(); ++i) {
      if (!used_.contains(i)) {
        lexer_.fail_at(starts_[i], "no later line uses this one; the root has to be the last line");
      }
    }
    for (const Line& line : data_.lines) data_.node_count += count_nodes(*line.expression);
    data_.value_names = free_;
    for (const auto& [name, line] : names_) data_.value_names.insert(name);
    return std::move(data_);
  }

 private:
  void parse_line() {
    Line line;
    starts_.push_back(lexer_.peek());
    do {
      const Token token = lexer_.peek();
      std::string name = lexer_.expect_name("a name");
      const bool is_new = name != "_" && !names_.contains(name) && !free_.contains(name) &&
                          std::find(line.names.begin(), line.names.end(), name) == line.names.end();
      if (!is_new)
        lexer_.fail_at(token, free_.contains(name) ? "the name is already used above for an input of the pattern"
                                                   : "the name is defined twice");
      line.names.push_back(std::move(name));
    } while (lexer_.accept(","));
    lexer_.expect("=");
    line.expression = parse_expression();
    const Token::Kind kind = lexer_.peek().kind;
    if (kind != Token::Kind::end && kind != Token::Kind::end_of_line) lexer_.fail("the line should end here");
    for (std::size_t i = 0; i < line.names.size(); ++i) names_[line.names[i]] = {data_.lines.size(), i};
    data_.lines.push_back(std::move(line));
  }

  ExpressionPointer parse_expression() {
    ExpressionPointer first = parse_primary();
    if (!lexer_.peek().is("|")) return first;
    Alternatives alternatives;
    alternatives.options.push_back(std::move(first));
    while (lexer_.accept("|")) alternatives.options.push_back(parse_primary());
    return std::make_unique<Expression>(Expression{std::move(alternatives)});
  }

  ExpressionPointer parse_primary() {
    const Token token = lexer_.peek();
    if (lexer_.accept("(")) {
      if (++depth_ > 50) lexer_.fail_at(token, "parentheses are nested deeper than 50");
      ExpressionPointer inner = parse_expression();
      lexer_.expect(")");
      --depth_;
      return inner;
    }
    if (lexer_.accept("@")) {
      ConstantName constant{lexer_.expect_name("the name of a constant")};
      ++data_.constant_names[constant.name].places;
      return make(std::move(constant));
    }
    const bool is_special = token.kind == Token::Kind::name && (token.text == "inf" || token.text == "nan");
    if (token.kind == Token::Kind::number || is_special) return make(Number{parse_number()});
    std::string name = lexer_.expect_name("a name, an operator, a number or @constant");
    std::string domain;
    if (lexer_.accept("::")) {
      domain = std::move(name);
      name = lexer_.expect_name("an operator");
      if (!lexer_.peek().is("(") && !lexer_.peek().is("<") && !lexer_.peek().is("{")) lexer_.fail("`(` is missing");
    } else if (lexer_.peek().is("(") || lexer_.peek().is("<") || lexer_.peek().is("{")) {
      check_operator(token);
    }
    if (lexer_.peek().is("<") || lexer_.peek().is("{")) refuse_attributes_before_inputs(token);
    if (lexer_.peek().is("(")) {
      if (++depth_ > 50) lexer_.fail_at(token, "calls are nested deeper than 50");
      ExpressionPointer call = make(parse_call(token, std::move(domain), std::move(name)));
      --depth_;
      return call;
    }
    if (name == "_") return make(Any{});
    const auto known = names_.find(name);
    if (known != names_.end()) {
      used_.insert(known->second.line);
      return make(known->second);
    }
    free_.insert(name);
    return make(FreeName{std::move(name)});
  }

  /// Throws Error for an unknown operator. A misspelled name would otherwise silently match nothing.
  void check_operator(const Token& op) const {
    if (find_schema(op.text) != nullptr) return;
    const std::string meant = nearest_standard_operator(op.text).value_or("");
    lexer_.fail_at(
        op, fmt::format("ONNX has no operator {}{}; write an operator of another domain as my.domain::{}, or as "
                        "ai.onnx::{} if the node has no domain",
                        op.text, meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant), op.text, op.text));
  }

  void check_attribute(const Call& call, const Token& attribute) const {
    const OperatorSchema* schema = call.is_standard ? find_schema(call.op_type) : nullptr;
    if (schema == nullptr) return;
    std::vector<std::string> known = schema->attribute_names();
    for (const AttributeInput& entry : attribute_inputs(call.op_type)) known.emplace_back(entry.attribute);
    if (std::find(known.begin(), known.end(), attribute.text) != known.end()) return;
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    lexer_.fail_at(attribute, no_attribute(call.op_type, attribute.text, known));
  }

  Call parse_call(const Token& start, std::string domain, std::string op_type) {
    Call call;
    call.is_standard = domain.empty();
    call.domain = domain == "ai.onnx" ? "" : std::move(domain);
    call.op_type = std::move(op_type);
    lexer_.expect("(");
    while (!lexer_.peek().is(")")) {
      if (lexer_.accept("*")) {
        call.takes_more = true;
        break;
      }
      Argument argument;
      argument.expression = parse_expression();
      argument.optional = lexer_.accept("?");
      call.arguments.push_back(std::move(argument));
      if (!lexer_.accept(",")) break;
    }
    const Token close = lexer_.peek();
    lexer_.expect(")");
    const OperatorSchema* schema = call.is_standard ? find_schema(call.op_type) : nullptr;
    // An attribute that became an input in a newer opset may be written as an attribute, so fewer inputs than the
    // schema requires may be correct.
    if (schema != nullptr && call.arguments.empty() && !call.takes_more && schema->fewest_inputs > 0) {
      lexer_.fail_at(
          start,
          fmt::format(
              "{} has no inputs here; write the inputs of the node, `_` for any input, `*` for all remaining inputs",
              call.op_type));
    }
    if (schema != nullptr && call.arguments.size() > schema->most_inputs) {
      lexer_.fail_at(start,
                     fmt::format("{} has {}, but the pattern lists {}", call.op_type,
                                 schema->most_inputs == 1   ? "one input"
                                 : schema->most_inputs == 0 ? "no inputs"
                                                            : fmt::format("{} inputs at most", schema->most_inputs),
                                 call.arguments.size()));
    }
    if (lexer_.peek().is("<")) {
      const std::size_t open = lexer_.peek().position;
      const std::size_t end = std::min(text_.find('>', open), text_.size());
      refuse_attributes(fmt::format("{}{{{}}}", text_.substr(start.position, close.position + 1 - start.position),
                                    text_.substr(open + 1, end - open - 1)));
    }
    if (!lexer_.accept("{")) return call;
    do {
      check_attribute(call, lexer_.peek());
      call.conditions.push_back(parse_condition());
      const Condition& condition = call.conditions.back();
      const auto inputs = attribute_inputs(call.is_standard ? call.op_type : "");
      const bool is_input = std::any_of(inputs.begin(), inputs.end(),
                                        [&](const auto& entry) { return entry.attribute == condition.attribute; });
      if (!condition.bind.empty() && !is_input) data_.constant_names[condition.bind].of_attribute = true;
    } while (lexer_.accept(","));
    lexer_.expect("}");
    return call;
  }

  /// Throws Error for `Op<attribute=1>(x)`, the syntax of functions. The message shows the syntax of patterns.
  [[noreturn]] void refuse_attributes_before_inputs(const Token& call) const {
    const std::size_t open = lexer_.peek().position;
    const std::size_t close = text_.find(lexer_.peek().is("<") ? '>' : '}', open);
    const std::size_t begin = close == std::string_view::npos ? close : text_.find_first_not_of(" \t\r\n", close + 1);
    std::string_view op = text_.substr(call.position, open - call.position);
    op = op.substr(0, op.find_last_not_of(" \t\r\n") + 1);
    std::string corrected = fmt::format("{}(x){{attribute=1}}", op);
    if (begin != std::string_view::npos && text_[begin] == '(') {
      std::size_t end = begin;
      int depth = 0;
      do {
        depth += text_[end] == '(' ? 1 : text_[end] == ')' ? -1 : 0;
      } while (++end < text_.size() && depth > 0);
      if (depth == 0) {
        corrected =
            fmt::format("{}{}{{{}}}", op, text_.substr(begin, end - begin), text_.substr(open + 1, close - open - 1));
      }
    }
    refuse_attributes(corrected);
  }

  [[noreturn]] void refuse_attributes(const std::string& corrected) const {
    lexer_.fail(fmt::format("in a pattern attributes follow the inputs, in braces: write `{}`", corrected));
  }

  Condition parse_condition() {
    Condition condition;
    condition.attribute = lexer_.expect_name("the name of an attribute");
    lexer_.expect("=");
    if (lexer_.accept("@")) {
      condition.bind = lexer_.expect_name("a name");
      ++data_.constant_names[condition.bind].places;
    } else if (lexer_.peek().kind == Token::Kind::text) {
      condition.text = lexer_.next().text;
    } else if (lexer_.accept("[")) {
      condition.is_list = true;
      while (!lexer_.peek().is("]")) {
        condition.numbers.push_back(parse_number());
        if (!lexer_.accept(",")) break;
      }
      lexer_.expect("]");
    } else {
      condition.numbers.push_back(parse_number());
    }
    return condition;
  }

  double parse_number() {
    const Token token = lexer_.next();
    char* end = nullptr;
    const double value = std::strtod(token.text.c_str(), &end);
    if (token.text.empty() || *end != '\0') lexer_.fail_at(token, "a number is missing");
    return value;
  }

  template <class Form>
  static ExpressionPointer make(Form form) {
    return std::make_unique<Expression>(Expression{std::move(form)});
  }

  static std::size_t count_nodes(const Expression& expression) {
    std::size_t count = 0;
    if (const auto* call = std::get_if<Call>(&expression.form)) {
      count = 1;
      for (const Argument& argument : call->arguments) count += count_nodes(*argument.expression);
    } else if (const auto* alternatives = std::get_if<Alternatives>(&expression.form)) {
      for (const auto& option : alternatives->options) count = std::max(count, count_nodes(*option));
    }
    return count;
  }

  void check_root() {
    std::set<std::size_t> seen;
    const std::function<void(const Expression&)> visit = [&](const Expression& expression) {
      if (const auto* call = std::get_if<Call>(&expression.form)) {
        if (std::find(data_.root_types.begin(), data_.root_types.end(), call->op_type) == data_.root_types.end()) {
          data_.root_types.push_back(call->op_type);
        }
      } else if (const auto* alternatives = std::get_if<Alternatives>(&expression.form)) {
        for (const auto& option : alternatives->options) visit(*option);
      } else if (const auto* reference = std::get_if<Reference>(&expression.form)) {
        visit(*data_.lines[reference->line].expression);
      } else {
        lexer_.fail_at(starts_.back(), "the root has to be an operator, or alternatives of operators");
      }
    };
    visit(*data_.lines.back().expression);
  }

  std::string_view text_;
  Lexer lexer_;
  Pattern::Data data_;
  std::vector<Token> starts_;
  std::map<std::string, Reference, std::less<>> names_;
  std::set<std::string, std::less<>> free_;
  std::set<std::size_t> used_;
  int depth_ = 0;
};

// ---- Search

/// Returns whether a node passes its first input on unchanged.
bool is_transparent(const Node& node) {
  if (!node.domain.empty() || node.input(0) == nullptr) return false;
  if (node.op_type == "Identity") return true;
  if (node.op_type == "Cast") {
    return node.input(0)->type && node.int_or("to", 0) == static_cast<std::int64_t>(*node.input(0)->type);
  }
  if (node.op_type != "Dropout") return false;
  if (node.input(2) == nullptr) return true;
  const auto training = node.input(2)->constant();
  return training && training->scalar() == 0.0;
}

Value* skip_transparent(Value* value) {
  while (value != nullptr && value->producer != nullptr && value->output_index == 0 &&
         is_transparent(*value->producer)) {
    value = value->producer->input(0);
  }
  return value;
}

/// An input of a node, or the attribute that older opsets have in place of this input.
struct Slot {
  Value* value = nullptr;
  std::optional<TensorData> attribute;

  [[nodiscard]] bool absent() const { return value == nullptr && !attribute; }
  [[nodiscard]] std::optional<TensorData> constant() const {
    if (attribute) return attribute;
    const Value* source = skip_transparent(value);
    return source == nullptr ? std::nullopt : source->constant();
  }
};

std::optional<TensorData> to_tensor(const NodeAttribute& attribute) {
  if (const auto* tensor = attribute.get<TensorData>()) return *tensor;
  if (const auto* strings = attribute.get<std::vector<std::string>>()) return TensorData::from_strings(*strings);
  const auto value = attribute.value();
  if (!value) return std::nullopt;
  TensorData tensor;
  switch (type_of(*value)) {
    case AttributeType::float_number: return TensorData::scalar_of(ElementType::f32, std::get<float>(*value));
    case AttributeType::float_numbers: return TensorData::from_floats(std::get<std::vector<float>>(*value));
    case AttributeType::integers: return TensorData::from_ints(std::get<std::vector<std::int64_t>>(*value));
    case AttributeType::integer: tensor = TensorData::from_ints({std::get<std::int64_t>(*value)}); break;
    case AttributeType::text: tensor = TensorData::from_strings({std::get<std::string>(*value)}); break;
  }
  tensor.dims.clear();
  return tensor;
}

std::vector<Slot> slots_of(const Node& node) {
  std::vector<Slot> slots;
  for (Value* value : node.inputs) slots.push_back({value, std::nullopt});
  if (node.domain.empty()) {
    for (const AttributeInput& entry : attribute_inputs(node.op_type)) {
      const NodeAttribute* attribute = node.attribute(entry.attribute);
      if (attribute == nullptr) continue;
      if (slots.size() <= entry.input) slots.resize(entry.input + 1);
      slots[entry.input].attribute = to_tensor(*attribute);
    }
  }
  while (!slots.empty() && slots.back().absent()) slots.pop_back();
  return slots;
}

bool same_number(double a, double b) { return a == b || static_cast<float>(a) == static_cast<float>(b); }

/// Returns whether a constant equals a number in a pattern. For a constant in f16 or bf16 the number is first rounded
/// to that type.
bool is_number(const TensorData& constant, double wanted) {
  const auto scalar = constant.scalar();
  if (!scalar) return false;
  if (same_number(*scalar, wanted)) return true;
  if (!is_low_precision(constant.type)) return false;
  return *scalar == TensorData::from_numbers(constant.type, {1}, {wanted}).scalar();
}

bool same_constant(const TensorData& a, const TensorData& b) {
  if (a.same_as(b)) return true;
  const auto x = a.numbers();
  const auto y = b.numbers();
  return x && y && *x == *y;
}

std::string short_text(const TensorData& tensor) {
  if (const auto scalar = tensor.scalar()) return fmt::format("{}", static_cast<float>(*scalar));
  return to_string(tensor, 4);
}

std::string operators_of(const Expression& expression, const std::vector<Line>& lines) {
  if (const auto* call = std::get_if<Call>(&expression.form)) return call->op_type;
  if (const auto* reference = std::get_if<Reference>(&expression.form)) {
    return operators_of(*lines[reference->line].expression, lines);
  }
  std::string text;
  if (const auto* alternatives = std::get_if<Alternatives>(&expression.form)) {
    for (const auto& option : alternatives->options) {
      text += (text.empty() ? "" : " or ") + operators_of(*option, lines);
    }
  }
  return text.empty() ? "something else" : text;
}

/// How closely a node or number of the graph matches the one that the pattern requires.
enum class There : std::uint8_t {
  nothing,  ///< There is nothing, or something of another kind.
  another,  ///< There is a different operator or a different number.
  nearly,   ///< There is the right operator, but an attribute or an input differs from the pattern.
};

class Search {
 public:
  explicit Search(const Pattern::Data& pattern, int most = most_steps)
      : pattern_(pattern), line_nodes_(pattern.lines.size(), nullptr), most_steps_(most) {}

  std::optional<Match> run(Node& root) {
    root_ = &root;
    const auto& expression = *pattern_.lines.back().expression;
    const bool found = at_node(expression, root, 0, [&](Node& node) {
      line_nodes_.back() = &node;
      if (nothing_escapes()) return true;
      line_nodes_.back() = nullptr;
      return false;
    });
    return found ? std::optional(result()) : std::nullopt;
  }

  /// Returns the number of nodes that match `part`, an expression inside the pattern, if `node` is its last node; 0 if
  /// the part does not match. The nodes that read its result are ignored.
  std::size_t count_matched(const Expression& part, Node& node) {
    root_ = &node;
    std::size_t count = 0;
    at_node(part, node, 0, [&](Node&) {
      count = matched_.size();
      return true;
    });
    return count;
  }

  [[nodiscard]] std::size_t furthest() const { return furthest_; }
  [[nodiscard]] int steps() const { return steps_; }
  [[nodiscard]] There there() const { return there_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  using Continuation = std::function<bool()>;
  using NodeContinuation = std::function<bool(Node&)>;

  bool fail(const std::string& reason, There there = There::nothing) {
    if (reason_.empty() || std::pair(matched_.size(), there) > std::pair(furthest_, there_)) {
      furthest_ = matched_.size();
      there_ = there;
      reason_ = reason;
    }
    return false;
  }

  /// Matches an operator expression at output `output` of `node`, and calls `next` with the matched node. Returns
  /// whether `next` returned true for one of the possible matches.
  bool at_node(const Expression& expression, Node& node, std::size_t output, const NodeContinuation& next) {
    if (const auto* alternatives = std::get_if<Alternatives>(&expression.form)) {
      return std::any_of(alternatives->options.begin(), alternatives->options.end(),
                         [&](const auto& option) { return at_node(*option, node, output, next); });
    }
    if (const auto* reference = std::get_if<Reference>(&expression.form)) {
      Node*& known = line_nodes_[reference->line];
      if (known != nullptr) return known == &node && reference->output == output && next(node);
      return at_node(*pattern_.lines[reference->line].expression, node, reference->output, [&](Node& found) {
        line_nodes_[reference->line] = &found;
        if (next(found)) return true;
        line_nodes_[reference->line] = nullptr;
        return false;
      });
    }
    const auto* call = std::get_if<Call>(&expression.form);
    return call != nullptr && at_call(*call, node, output, next);
  }

  bool at_call(const Call& call, Node& node, std::size_t output, const NodeContinuation& next) {
    if (++steps_ > most_steps_) return fail("the search took too many steps");
    if (node.op_type != call.op_type || node.domain != call.domain) {
      return fail(fmt::format("{}: the pattern needs {} here", describe(node), call.op_type),
                  node.is("Constant") ? There::nothing : There::another);
    }
    if (std::find(matched_.begin(), matched_.end(), &node) != matched_.end()) {
      return fail(fmt::format("{} would have to match two nodes of the pattern", describe(node)));
    }
    if (node.output(output) == nullptr) return fail(fmt::format("{} has no output {}", describe(node), output));
    const std::vector<Slot> slots = slots_of(node);
    std::vector<bool> listed(slots.size(), false);
    for (std::size_t i = 0; i < std::min(slots.size(), call.arguments.size()); ++i) listed[i] = true;
    const auto before = constants_;
    for (const Condition& condition : call.conditions) {
      if (!holds(condition, node, slots, listed)) {
        constants_ = before;
        return false;
      }
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (!listed[i] && !call.takes_more && !slots[i].absent()) {
        constants_ = before;
        return fail(fmt::format("{}: it has an input {}; the pattern has none", describe(node), i), There::nearly);
      }
    }
    matched_.push_back(&node);
    const Continuation done = [&] { return next(node); };
    const bool both_orders = call.domain.empty() && (traits_of(call.op_type) & trait::commutative) != 0 &&
                             call.arguments.size() == 2 && slots.size() == 2;
    const bool found =
        arguments(call, node, slots, 0, false, done) || (both_orders && arguments(call, node, slots, 0, true, done));
    if (!found) {
      matched_.erase(std::find(matched_.begin(), matched_.end(), &node));
      constants_ = before;
    }
    return found;
  }

  bool arguments(const Call& call, const Node& node, const std::vector<Slot>& slots, std::size_t index, bool swapped,
                 const Continuation& next) {
    if (index == call.arguments.size()) return next();
    const Argument& argument = call.arguments[index];
    const std::size_t place = swapped ? 1 - index : index;
    const Slot slot = place < slots.size() ? slots[place] : Slot{};
    const Continuation rest = [&] { return arguments(call, node, slots, index + 1, swapped, next); };
    if (slot.absent()) {
      return argument.optional ? rest() : fail(fmt::format("{}: its input {} is absent", describe(node), place));
    }
    return at_slot(*argument.expression, slot, fmt::format("{}: input {}", describe(node), place), rest);
  }

  bool at_slot(const Expression& expression, const Slot& slot, const std::string& where, const Continuation& next) {
    if (++steps_ > most_steps_) return fail("the search took too many steps");
    if (std::holds_alternative<Any>(expression.form)) return next();
    if (const auto* alternatives = std::get_if<Alternatives>(&expression.form)) {
      return std::any_of(alternatives->options.begin(), alternatives->options.end(),
                         [&](const auto& option) { return at_slot(*option, slot, where, next); });
    }
    if (const auto* number = std::get_if<Number>(&expression.form)) {
      const auto constant = slot.constant();
      if (!constant) return fail(fmt::format("{} is not a constant; the pattern needs {}", where, number->value));
      if (is_number(*constant, number->value)) return next();
      return fail(fmt::format("{} is {}; the pattern needs {}", where, short_text(*constant), number->value),
                  There::another);
    }
    if (const auto* name = std::get_if<ConstantName>(&expression.form)) {
      const auto constant = slot.constant();
      if (!constant) return fail(fmt::format("{} is not a constant; the pattern needs one for @{}", where, name->name));
      return bind(name->name, *constant, where, next);
    }
    if (slot.value == nullptr) return fail(fmt::format("{} is an attribute; the pattern needs a tensor", where));
    if (const auto* name = std::get_if<FreeName>(&expression.form)) {
      Value* value = skip_transparent(slot.value);
      const auto [entry, is_new] = values_.emplace(name->name, value);
      if (!is_new && entry->second != value) {
        const auto a = entry->second->constant();
        const auto b = value->constant();
        if (!a || !b || !same_constant(*a, *b)) {
          return fail(fmt::format("{} is '{}'; the pattern needs {}, which is '{}' in this match", where, value->name,
                                  name->name, entry->second->name));
        }
      }
      if (next()) return true;
      if (is_new) values_.erase(name->name);
      return false;
    }
    // An operator is compared with the producer first. A node that passes its input on unchanged is skipped: the
    // operator is then compared with the node before it.
    const std::size_t looked_through = passed_.size();
    for (Value* value = slot.value; value != nullptr; value = value->producer->input(0)) {
      if (value->producer == nullptr || value->graph != root_->graph) {
        fail(fmt::format("{} is '{}', which no node computes; the pattern needs {}", where, value->name,
                         operators_of(expression, pattern_.lines)));
        break;
      }
      if (at_node(expression, *value->producer, value->output_index, [&](Node& /*node*/) { return next(); }))
        return true;
      if (value->output_index != 0 || !is_transparent(*value->producer)) break;
      passed_.push_back(value->producer);
    }
    passed_.resize(looked_through);
    return false;
  }

  bool bind(const std::string& name, const TensorData& constant, const std::string& where, const Continuation& next) {
    const auto [entry, is_new] = constants_.emplace(name, constant);
    if (!is_new && !same_constant(entry->second, constant)) {
      return fail(fmt::format("{} is {}; the pattern needs @{}, which is {} in this match", where, short_text(constant),
                              name, short_text(entry->second)));
    }
    if (next()) return true;
    if (is_new) constants_.erase(name);
    return false;
  }

  bool holds(const Condition& condition, const Node& node, const std::vector<Slot>& slots, std::vector<bool>& listed) {
    const std::string where = fmt::format("{}: attribute `{}`", describe(node), condition.attribute);
    std::optional<TensorData> found;
    if (const NodeAttribute* attribute = node.attribute(condition.attribute)) {
      found = to_tensor(*attribute);
      if (!found) return fail(where + " has a type that patterns cannot compare", There::nearly);
    }
    if (node.domain.empty()) {
      for (const AttributeInput& entry : attribute_inputs(node.op_type)) {
        if (entry.attribute != condition.attribute || entry.input >= slots.size() || slots[entry.input].absent())
          continue;
        found = slots[entry.input].constant();
        listed[entry.input] = true;
        if (!found) return fail(where + " is an input that is not a constant", There::nearly);
      }
    }
    if (!found && node.domain.empty()) {
      if (const auto value = default_attribute(node.op_type, condition.attribute, node.graph->opset())) {
        found = to_tensor(NodeAttribute(*value));
      }
    }
    if (!found) return fail(where + " is absent", There::nearly);
    if (!condition.bind.empty()) return bind(condition.bind, *found, where, [] { return true; });
    if (condition.text) {
      const bool equal = found->strings && found->strings->size() == 1 && found->strings->front() == *condition.text;
      return equal ||
             fail(fmt::format("{} is {}; the pattern needs \"{}\"", where, short_text(*found), *condition.text),
                  There::nearly);
    }
    const auto numbers = found->numbers();
    const bool equal =
        numbers && (condition.is_list || found->element_count() == 1) &&
        std::equal(numbers->begin(), numbers->end(), condition.numbers.begin(), condition.numbers.end(), same_number);
    return equal || fail(fmt::format("{} is {}; the pattern needs {}", where, short_text(*found),
                                     fmt::join(condition.numbers, ", ")),
                         There::nearly);
  }

  bool nothing_escapes() {
    std::set<const Node*> inside(matched_.begin(), matched_.end());
    inside.insert(passed_.begin(), passed_.end());
    for (const Node* node : inside) {
      if (node == root_ || node->is("Shape")) continue;
      for (const Value* output : node->outputs) {
        if (output == nullptr) continue;
        if (output->is_output()) {
          return fail(fmt::format("'{}' inside the match is an output of the graph", output->name));
        }
        for (const Use& use : output->uses) {
          if (!inside.contains(use.node)) {
            return fail(fmt::format("'{}' inside the match is used by {} too", output->name, describe(*use.node)));
          }
        }
      }
    }
    return true;
  }

  Match result() const {
    Match match;
    match.root = root_;
    match.values = values_;
    match.constants = constants_;
    for (std::size_t i = 0; i < line_nodes_.size(); ++i) {
      if (line_nodes_[i] == nullptr) continue;
      const std::vector<std::string>& names = pattern_.lines[i].names;
      match.named_nodes.emplace(names.front(), line_nodes_[i]);
      for (std::size_t k = 0; k < names.size(); ++k) {
        if (Value* output = line_nodes_[i]->output(k)) match.values.emplace(names[k], output);
      }
    }
    match.nodes = matched_;
    return match;
  }

  const Pattern::Data& pattern_;
  Node* root_ = nullptr;
  std::map<std::string, Value*, std::less<>> values_;
  std::map<std::string, TensorData, std::less<>> constants_;
  std::vector<Node*> line_nodes_;    // The node of each line of the pattern.
  std::vector<Node*> matched_;       // The matched nodes without duplicates, all in the root's graph.
  std::vector<const Node*> passed_;  // The transparent nodes between matched nodes.
  int most_steps_;
  int steps_ = 0;
  std::size_t furthest_ = 0;
  There there_ = There::nothing;
  std::string reason_;
};

/// Returns a match with `root` as the last node, whose nodes are in the order of the search. Returns nothing and sets
/// `near` if the pattern does not match. The nodes of all matches of a graph are sorted together later, because sorting
/// each match took seconds with thousands of matches in a long chain.
std::optional<Match> match_unordered(const Pattern& pattern, Node& root, NearMiss* near) {
  Search search(pattern.data());
  auto found = search.run(root);
  if (!found && near != nullptr) *near = {&root, search.furthest(), pattern.data().node_count, search.reason()};
  return found;
}

/// A call inside a pattern, and the call that reads its result.
struct Part {
  const Expression* call;
  const Expression* reader;
};

std::vector<Part> inner_parts(const Pattern::Data& pattern) {
  std::vector<Part> parts;
  std::set<std::size_t> seen;
  const std::function<void(const Expression&, const Expression*)> visit = [&](const Expression& expression,
                                                                              const Expression* reader) {
    if (const auto* alternatives = std::get_if<Alternatives>(&expression.form)) {
      for (const auto& option : alternatives->options) visit(*option, reader);
    } else if (const auto* reference = std::get_if<Reference>(&expression.form)) {
      if (seen.insert(reference->line).second) visit(*pattern.lines[reference->line].expression, reader);
    } else if (const auto* call = std::get_if<Call>(&expression.form)) {
      if (reader != nullptr) parts.push_back({&expression, reader});
      for (const Argument& argument : call->arguments) visit(*argument.expression, &expression);
    }
  };
  visit(*pattern.lines.back().expression, nullptr);
  return parts;
}

/// Returns why the pattern does not match, for a node that matches `part`. The pattern is compared at each reader of
/// the node, and the reason at the reader where the most nodes match is returned. The search ends after about `steps`
/// comparisons.
std::string reason_beyond(const Pattern& pattern, const Part& part, const Node& node, int steps) {
  const std::string begin = fmt::format("{} and the nodes before it match", describe(node));
  std::string reason;
  std::size_t furthest = 0;
  for (const Value* output : node.outputs) {
    if (output == nullptr) continue;
    for (const Use& use : output->uses) {
      if (!reason.empty() && steps <= 0) break;
      Search search(pattern.data(), std::max(steps, 1));
      search.count_matched(*part.reader, *use.node);
      steps -= search.steps();
      if (!reason.empty() && search.furthest() <= furthest) continue;
      furthest = search.furthest();
      reason = search.reason();
    }
  }
  return reason.empty() ? begin + "; no node reads its result" : fmt::format("{}; then {}", begin, reason);
}

void put_in_order(std::span<Match> matches, const Graph& graph) {
  if (matches.empty()) return;
  std::unordered_map<const Node*, std::size_t> positions;
  for (const Node* node : graph.nodes()) positions.emplace(node, positions.size());
  for (Match& match : matches) {
    std::sort(match.nodes.begin(), match.nodes.end(),
              [&](const Node* a, const Node* b) { return positions.at(a) < positions.at(b); });
  }
}

}  // namespace

Pattern::Pattern(std::string_view text, std::string name, const std::string& what)
    : name_(std::move(name)),
      data_(std::make_unique<Data>(PatternParser(text, what.empty() ? "pattern `" + name_ + "`" : what).parse())) {}
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

const std::vector<std::string>& Pattern::root_types() const { return data_->root_types; }
const std::set<std::string, std::less<>>& Pattern::value_names() const { return data_->value_names; }
const std::map<std::string, Pattern::Capture, std::less<>>& Pattern::constant_names() const {
  return data_->constant_names;
}

bool Match::has(std::string_view name) const { return values.contains(name) || constants.contains(name); }

Value& Match::value(std::string_view name) const {
  const auto found = values.find(name);
  if (found == values.end())
    throw Error(Error::Kind::internal, fmt::format("the pattern does not bind a value '{}'", name));
  return *found->second;
}

std::optional<double> Match::scalar(std::string_view name) const {
  const auto found = constants.find(name);
  return found == constants.end() ? std::nullopt : found->second.scalar();
}

std::optional<std::vector<std::int64_t>> Match::ints(std::string_view name) const {
  const auto found = constants.find(name);
  return found == constants.end() ? std::nullopt : found->second.ints();
}

std::optional<std::vector<double>> Match::numbers(std::string_view name) const {
  const auto found = constants.find(name);
  return found == constants.end() ? std::nullopt : found->second.numbers();
}

std::optional<std::string> Match::text(std::string_view name) const {
  const auto found = constants.find(name);
  if (found == constants.end() || !found->second.strings || found->second.strings->size() != 1) return std::nullopt;
  return found->second.strings->front();
}

std::optional<Match> match(const Pattern& pattern, Node& root, NearMiss* near) {
  auto found = match_unordered(pattern, root, near);
  if (found) put_in_order({&*found, 1}, *root.graph);
  return found;
}

MatchResult find_matches(const Pattern& pattern, Graph& graph) {
  MatchResult result;
  std::set<const Node*> taken;
  for (Node* node : graph.nodes()) {
    const auto& types = pattern.root_types();
    if (std::find(types.begin(), types.end(), node->op_type) == types.end()) continue;
    NearMiss near;
    auto found = match_unordered(pattern, *node, &near);
    if (!found) {
      if (near.matched_nodes >= 2) result.near_misses.push_back(std::move(near));
      continue;
    }
    if (std::any_of(found->nodes.begin(), found->nodes.end(), [&](const Node* n) { return taken.contains(n); }))
      continue;
    taken.insert(found->nodes.begin(), found->nodes.end());
    result.matches.push_back(std::move(*found));
  }
  put_in_order(result.matches, graph);
  return result;
}

std::optional<NearMiss> nearest_match(const Pattern& pattern, std::span<Graph* const> graphs) {
  std::unordered_map<std::string, std::vector<Node*>> by_type;
  for (Graph* graph : graphs) {
    for (Node* node : graph->nodes()) by_type[node->op_type].push_back(node);
  }
  int steps = most_steps;  // One limit for all attempts together, because the result only serves a message.
  std::optional<NearMiss> best;
  There there = There::nothing;
  for (const std::string& type : pattern.root_types()) {
    for (Node* node : by_type[type]) {
      if (steps <= 0) break;
      Search search(pattern.data(), steps);
      if (search.run(*node)) continue;
      steps -= search.steps();
      if (best && std::pair(search.furthest(), search.there()) <= std::pair(best->matched_nodes, there)) continue;
      best = NearMiss{node, search.furthest(), pattern.data().node_count, search.reason()};
      there = search.there();
    }
  }
  if (best && best->matched_nodes + (there == There::nearly ? 1 : 0) >= 2) return best;
  const Part* nearest = nullptr;
  Node* nearest_node = nullptr;
  std::size_t most = 1;
  const std::vector<Part> parts = inner_parts(pattern.data());
  for (const Part& part : parts) {
    for (Node* node : by_type[std::get<Call>(part.call->form).op_type]) {
      if (steps <= 0) break;
      Search search(pattern.data(), steps);
      const std::size_t count = search.count_matched(*part.call, *node);
      steps -= search.steps();
      if (count <= most) continue;
      most = count;
      nearest = &part;
      nearest_node = node;
    }
  }
  if (nearest == nullptr) return best;
  return NearMiss{nearest_node, most, pattern.data().node_count,
                  reason_beyond(pattern, *nearest, *nearest_node, steps)};
}

}  // namespace graft::onnx
