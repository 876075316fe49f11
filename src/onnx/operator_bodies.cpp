// Enumerates the attributes and inputs on which a definition can depend.
#include "onnx/operator_bodies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "onnx/functions.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/opset.hpp"
#include "onnx/text.hpp"

namespace graft::onnx {
namespace {

using Choice = std::vector<NamedAttribute>;

/// Returns the possible values of each attribute that has few values: a string with a list of choices, or an integer
/// with at most 8 values.
std::vector<Choice> choices_of(const OperatorType& type) {
  constexpr double few = 8;
  std::vector<Choice> all;
  for (const AttributeInfo& info : type.attributes) {
    Choice values;
    for (const std::string_view choice : info.choices) values.push_back({info.name, std::string(choice)});
    if (info.type == AttributeType::integer && info.range.highest - info.range.lowest < few) {
      for (auto v = static_cast<std::int64_t>(info.range.lowest); v <= static_cast<std::int64_t>(info.range.highest);
           ++v) {
        values.push_back({info.name, v});
      }
    }
    if (!values.empty()) all.push_back(std::move(values));
  }
  return all;
}

/// Returns all combinations of one value from each element of `choices`. If there are more than 256, which would make
/// loading a library slow, returns each value alone, with the defaults of the other attributes: a body seldom depends
/// on more than one or two attributes together.
std::vector<Choice> combinations_of(const std::vector<Choice>& choices) {
  constexpr std::size_t most = 256;
  std::size_t count = 1;
  for (const Choice& values : choices) count = std::min(count * values.size(), most + 1);
  std::vector<Choice> all{{}};
  for (const Choice& values : choices) {
    if (count > most) {
      for (const NamedAttribute& value : values) all.push_back({value});
      continue;
    }
    std::vector<Choice> next;
    for (const Choice& before : all) {
      for (const NamedAttribute& value : values) {
        next.push_back(before);
        next.back().push_back(value);
      }
    }
    all = std::move(next);
  }
  return all;
}

/// Returns an operator for each combination of attribute values (combinations_of) that the operator accepts. The
/// functions of refused combinations are never used and may be undefined.
std::vector<std::unique_ptr<Operator>> with_every_choice(const OperatorType& type) {
  std::vector<std::unique_ptr<Operator>> all;
  for (const Choice& choice : combinations_of(choices_of(type))) {
    auto op = type.create();
    if (op->set(choice).ok()) all.push_back(std::move(op));
  }
  return all;
}

/// Returns whether the operator accepts `row`, a combination of types in its type table, for at least one rank of the
/// first input, with unknown ranks of the other inputs. `count` is the number of inputs.
bool accepts_for_a_rank(const Operator& op, const TypeRow& row, std::size_t count) {
  std::vector<int> ranks(count, -1);
  for (int rank = 0; rank <= 8; ++rank) {
    ranks[0] = rank;
    if (op.accepts(row, ranks)) return true;
  }
  return false;
}

/// Returns the parsed lines of a function, so that spaces and comments make no difference in comparisons.
std::string lines_of(const FunctionDefinition& function) {
  std::string lines;
  for (const Node* node : function.body->nodes()) lines += to_text(*node) + "\n";
  return lines;
}

/// Calls `visit(op, inputs, row)` for every combination of attribute values that the operator accepts, types in its
/// type table (`row`), and number of inputs (at most two variadic ones). `rank` is the rank of the first input.
template <class Visit>
void for_each_form(const OperatorType& type, int rank, const Visit& visit) {
  // At most two variadic inputs are used.
  const std::size_t most = std::min(type.input_count() + 1, type.most_inputs());
  for (const auto& op : with_every_choice(type)) {
    for (const TypeRow& row : type.type_rows) {
      for (std::size_t count = type.required_input_count(); count <= most; ++count) {
        visit(*op, FunctionInputs{.dtype = row.formats[0].dtype, .count = count, .rank = rank}, row);
      }
    }
  }
}

}  // namespace

std::map<std::string, std::string> function_bodies(const OperatorType& type) {
  std::map<std::string, std::string> bodies;
  for_each_form(type, usual_rank, [&](const Operator& op, const FunctionInputs& inputs, const TypeRow& /*row*/) {
    if (auto function = function_of(op, inputs)) bodies.emplace(std::move(function->name), std::move(function->body));
  });
  return bodies;
}

void check_bodies(const OperatorType& type) {
  // The text and the parsed lines of the bodies of one rank, by the name of the function.
  std::map<std::string, std::pair<std::string, std::string>> bodies;
  std::set<std::string> known;  // The bodies that were checked, with the number of inputs.
  const auto add_function = [&](const Function& function, std::size_t input_count) {
    const auto found = bodies.find(function.name);
    if (found != bodies.end() && found->second.first == function.body) return;
    const std::string lines = lines_of(parse_function(type, input_count, function, working_opset));
    const auto& [text, other] = bodies.emplace(function.name, std::pair(function.body, lines)).first->second;
    if (other == lines) return;
    throw body_error(type, fmt::format("function {} has two different bodies; rename one of the two functions\nOne "
                                       "body is\n{}\nThe other body is\n{}",
                                       function.name, text, function.body));
  };
  const auto check = [&](const Operator& op, const FunctionInputs& inputs, const TypeRow& row) {
    const auto function = function_of(op, inputs);
    const auto form = native_form_of(op, inputs);
    if (function) add_function(*function, inputs.count);
    const std::string text = fmt::format("{}\n{}\n{}\n{}", function ? function->name : "",
                                         function ? function->body : "", form.value_or(""), inputs.count);
    if (known.insert(text).second) {
      for (std::int64_t opset = working_opset; opset <= newest_opset; ++opset) {
        if (function) static_cast<void>(parse_function(type, inputs.count, *function, opset));
        if (form) static_cast<void>(parse_native_form(type, inputs.count, *form, opset));
      }
    }
    std::string dtypes;
    for (std::size_t i = 0; i < row.count; ++i) dtypes += fmt::format(" {}", to_string(row.formats[i].dtype));
    if (!accepts_for_a_rank(op, row, inputs.count) || !known.insert(text + dtypes).second) return;
    if (function) check_types(type, inputs.count, row, *function);
    if (form) check_types(type, inputs.count, row, *form);
  };
  // A model may leave the rank unknown.
  for (const int rank : {usual_rank, -1}) {
    bodies.clear();
    for_each_form(type, rank, check);
  }
}

}  // namespace graft::onnx
