// Operators of these tests with properties that Graft's own lack: one without a function, and one of integers.
#pragma once

#include "graft/operator/define_operator.hpp"

namespace graft_test {

/// y = 2 x + bias, z = x > bias; in i64, with a boolean output.
struct DoubledPlus {
  static constexpr auto name = "DoubledPlus";
  static constexpr int version = 1;
  static constexpr auto doc = "y = 2 x + bias, z = x > bias";
  static constexpr auto source = "these tests";
  static constexpr auto why_plugin = "these tests";

  std::int64_t bias = 0;

  static constexpr auto attributes() { return std::tuple{graft::attribute("bias", &DoubledPlus::bias, "added")}; }
  static constexpr auto ports() {
    return std::array{graft::input("x", graft::DType::i64, "any", ""),
                      graft::output("y", graft::DType::i64, "as x", ""),
                      graft::output("z", graft::DType::boolean, "as x", "")};
  }
  static constexpr auto types() { return std::array<graft::TypeConstraint, 0>{}; }
  static std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) { return {inputs[0], inputs[0]}; }
};

[[nodiscard]] graft::Status run(const DoubledPlus& op, const graft::Problem& problem, const graft::Buffers& buffers,
                                const graft::CpuContext& context);
[[nodiscard]] std::span<const graft::Variant<DoubledPlus>> cuda_kernels(const DoubledPlus& op);

}  // namespace graft_test
