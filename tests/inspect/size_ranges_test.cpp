// Sizes for the inputs of a part of a model, where nobody gave them.
#include "inspect/size_ranges.hpp"

#include <gtest/gtest.h>

namespace graft::inspect {
namespace {

Value& add(Model& model, const std::string& name, Shape shape) {
  Value* input = model.graph().add_input(name);
  input->type = ElementType::f32;
  input->shape = std::move(shape);
  return *input;
}

TEST(SizeRanges, one_symbol_has_one_size_and_what_is_computed_from_it_goes_with_it) {
  Model part;
  add(part, "a", {Dim::symbol("n"), Dim(4)});
  add(part, "b", {Dim::symbol("n") * Dim(4)});
  add(part, "c", {Dim::symbol("n") + Dim::symbol("m")});
  const SizeRanges ranges(Model(), {});
  EXPECT_EQ(ranges.of(part), (std::vector<std::string>{"a=1x4..16x4..64x4", "b=4..64..256", "c=2..32..128"}));
}

TEST(SizeRanges, a_given_size_goes_with_one_that_nobody_gave) {
  Model whole;
  add(whole, "x", {Dim::symbol("n")});
  Model part;
  add(part, "a", {Dim::symbol("n") * Dim::symbol("m")});
  const SizeRanges ranges(whole, {"x=2..3..5"});
  EXPECT_EQ(ranges.of(part), (std::vector<std::string>{"a=2..48..320"}));
}

TEST(SizeRanges, sizes_below_nothing_are_no_range) {
  Model part;
  add(part, "a", {Dim::symbol("n")});
  add(part, "b", {Dim::symbol("n") - Dim(3)});
  const SizeRanges ranges(Model(), {});
  EXPECT_EQ(ranges.of(part), (std::vector<std::string>{"a=16..16..64", "b=13..13..61"}));
}

}  // namespace
}  // namespace graft::inspect
