// A definition whose ports are valid, except for the fault that WRONG_... names. Tests compile it like
// optional_members.cpp.
#include <array>
#include <tuple>

#include "graft/operator/define_operator.hpp"

namespace {

struct Definition {
  static constexpr auto name = "Definition";
  static constexpr int version = 1;
  static constexpr auto doc = "y = 0 of the sizes that `size` says";
  static constexpr auto source = "a test";
  static constexpr auto why_plugin = "a test";

  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
#ifdef WRONG_ONLY_SHAPE_INPUT
    return std::array{graft::shape_input("size", "2", ""), graft::output("y", graft::DType::f32, "A,B", "")};
#else
    return std::array{graft::input("x", graft::DType::f32, "N", ""), graft::shape_input("size", "2", ""),
                      graft::output("y", graft::DType::f32, "A,B", "")};
#endif
  }
  static constexpr auto types() { return std::array<graft::TypeConstraint, 0>{}; }
  static std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) { return {inputs.back()}; }
  static graft::Status check(const graft::Problem& /*problem*/) { return {}; }
};
graft::Status run(const Definition& /*op*/, const graft::Problem& /*problem*/, const graft::Buffers& /*buffers*/,
                  const graft::CpuContext& /*context*/) {
  return {};
}

}  // namespace

int main() { return static_cast<int>(graft::operator_type<Definition>().input_count()); }
