// The table of shape rules, which each file of this folder fills for its operators, and functions that several files
// use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string_view>
#include <vector>

#include "onnx/schema.hpp"
#include "onnx/shape_rules.hpp"

namespace graft::onnx::shape_rules {

using Rule = void (*)(NodeTypes&);
using Table = std::map<std::string_view, Rule>;

/// Adds a rule for several operators.
void add(Table& table, Rule rule, std::initializer_list<std::string_view> op_types);
/// Adds a rule for the operators that have one of these traits and no rule yet.
void add(Table& table, Rule rule, Traits any_of);

void add_elementwise(Table& table);
void add_products(Table& table);
void add_reductions(Table& table);
void add_reshaping(Table& table);
void add_selection(Table& table);
void add_sequences(Table& table);
void add_sources(Table& table);
void add_regions(Table& table);

/// Returns the shape of the matrix product of tensors of two shapes. Throws Error if they do not fit.
[[nodiscard]] Shape matmul_shape(const NodeTypes& t, Shape a, Shape b);
void gemm(NodeTypes& t);
void convolution(NodeTypes& t);

/// Returns the product of the sizes of the axes from `first` up to, but not including, `last`.
[[nodiscard]] Dim product(const Shape& shape, std::size_t first, std::size_t last);

/// A product, split into a constant and other factors, so that equal symbols cancel in a division.
struct Factors {
  std::int64_t constant = 1;
  std::vector<Dim> others;

  void multiply(const Dim& dim) {
    if (dim.is_constant()) {
      constant = (Dim(constant) * dim).value();
    } else if (dim.kind() == Dim::Kind::multiply) {
      multiply(dim.left());
      multiply(dim.right());
    } else {
      others.push_back(dim);
    }
  }
};

/// Returns `dividend` / `divisor`, which must divide exactly, or an unknown dimension if the quotient cannot be
/// expressed.
[[nodiscard]] Dim divide(const Factors& dividend, Factors divisor);

}  // namespace graft::onnx::shape_rules
