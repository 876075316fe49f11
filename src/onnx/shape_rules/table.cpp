// The table of shape rules, collected from all files of this folder.
#include "onnx/shape_rules/table.hpp"

#include <algorithm>
#include <vector>

namespace graft::onnx {
namespace shape_rules {

void add(Table& table, Rule rule, std::initializer_list<std::string_view> op_types) {
  for (const std::string_view op_type : op_types) table.emplace(op_type, rule);
}

void add(Table& table, Rule rule, Traits any_of) {
  for (const OperatorSchema* schema : all_schemas()) {
    if ((traits_of(schema->name) & any_of) != 0) table.emplace(schema->name, rule);
  }
}

Dim product(const Shape& shape, std::size_t first, std::size_t last) {
  Dim result(1);
  for (std::size_t i = first; i < last; ++i) result = bounded(result * shape[i]);
  return result;
}

Dim divide(const Factors& dividend, Factors divisor) {
  std::vector<Dim> rest;
  for (const Dim& dim : dividend.others) {
    const auto found = std::find(divisor.others.begin(), divisor.others.end(), dim);
    if (found == divisor.others.end()) {
      rest.push_back(dim);
    } else {
      divisor.others.erase(found);
    }
  }
  if (!divisor.others.empty() || divisor.constant == 0) return unknown_dim();
  if (dividend.constant == 0) return 0;
  Dim result(1);
  for (const Dim& dim : rest) result = bounded(result * dim);
  if (dividend.constant % divisor.constant != 0) return floor_div(result * dividend.constant, divisor.constant);
  return result * (dividend.constant / divisor.constant);
}

}  // namespace shape_rules

bool apply_shape_rule(NodeTypes& types) {
  static const shape_rules::Table table = [] {
    shape_rules::Table all;
    shape_rules::add_elementwise(all);
    shape_rules::add_products(all);
    shape_rules::add_reductions(all);
    shape_rules::add_reshaping(all);
    shape_rules::add_selection(all);
    shape_rules::add_sequences(all);
    shape_rules::add_sources(all);
    shape_rules::add_regions(all);
    return all;
  }();
  const auto found = table.find(types.node().op_type);
  if (found == table.end()) return false;
  found->second(types);
  return true;
}

}  // namespace graft::onnx
