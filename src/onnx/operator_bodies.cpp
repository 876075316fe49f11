// Every choice that a definition can make by the attributes and inputs of a node.
#include "onnx/operator_bodies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "onnx/functions.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/opset.hpp"

namespace graft::onnx {
namespace {

/// One operator for each combination of what its attributes choose between.
std::vector<std::unique_ptr<Operator>> with_every_choice(const OperatorType& type) {
  constexpr double few = 8;
  std::vector<std::unique_ptr<Operator>> all;
  all.push_back(type.create());
  for (const AttributeInfo& info : type.attributes) {
    std::vector<AttributeValue> values;
    for (const std::string_view choice : info.choices) values.emplace_back(std::string(choice));
    if (info.type == AttributeType::integer && info.range.highest - info.range.lowest < few) {
      for (auto v = static_cast<std::int64_t>(info.range.lowest); v <= static_cast<std::int64_t>(info.range.highest);
           ++v) {
        values.emplace_back(v);
      }
    }
    if (values.empty()) continue;
    std::vector<std::unique_ptr<Operator>> next;
    for (const auto& op : all) {
      for (const AttributeValue& value : values) {
        auto changed = op->clone();
        if (changed->set(info.name, value).ok()) next.push_back(std::move(changed));
      }
    }
    all = std::move(next);
  }
  return all;
}

/// For inputs of every type and number.
template <class Visit>
void for_each_form(const OperatorType& type, int rank, const Visit& visit) {
  const std::size_t most = std::min(type.input_count() + 1, type.most_inputs());  // of variadic inputs two
  for (const auto& op : with_every_choice(type)) {
    for (const TypeRow& row : type.type_rows) {
      for (std::size_t count = type.required_input_count(); count <= most; ++count) {
        visit(*op, FunctionInputs{.dtype = row.formats[0].dtype, .count = count, .rank = rank});
      }
    }
  }
}

}  // namespace

std::map<std::string, std::string> function_bodies(const OperatorType& type) {
  std::map<std::string, std::string> bodies;
  for_each_form(type, usual_rank, [&](const Operator& op, const FunctionInputs& inputs) {
    if (auto function = function_of(op, inputs)) bodies.emplace(std::move(function->name), std::move(function->body));
  });
  return bodies;
}

void check_bodies(const OperatorType& type) {
  std::map<std::string, std::string> bodies;              // of one rank: a model has no two
  std::set<std::pair<std::string, std::size_t>> checked;  // with the number of inputs
  const auto is_new = [&](const std::string& name, const std::string& body, const FunctionInputs& inputs) {
    const auto known = bodies.emplace(name, body).first;
    if (known->second != body) {
      throw body_error(
          type, fmt::format("function {} has two bodies; give one of them another name\nOne is\n{}\nThe other\n{}",
                            name, known->second, body));
    }
    return checked.emplace(name, inputs.count).second;
  };
  std::set<std::pair<std::string, std::size_t>> forms;
  const auto check = [&](const Operator& op, const FunctionInputs& inputs) {
    const auto function = function_of(op, inputs);
    const auto form = native_form_of(op, inputs);
    const bool has_new_function = function && is_new(function->name, function->body, inputs);
    const bool has_new_form = form && forms.emplace(*form, inputs.count).second;
    for (std::int64_t opset = working_opset; opset <= newest_opset; ++opset) {
      if (has_new_function) static_cast<void>(make_function(op, inputs, opset));
      if (has_new_form) static_cast<void>(make_native_form(op, inputs, opset));
    }
  };
  // A model does not always say what the rank is.
  for (const int rank : {usual_rank, -1}) {
    bodies.clear();
    checked.clear();
    for_each_form(type, rank, check);
  }
}

}  // namespace graft::onnx
