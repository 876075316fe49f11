// Tests that workspaces grow with shapes: the workspace of a range of shapes is computed for its largest shape only.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ops/operator_case.hpp"
#include "ops/random_cases.hpp"

namespace graft::ops {
namespace {

/// Returns the workspace of a problem, or nothing where the shapes do not fit together.
std::optional<std::size_t> workspace_of(const Operator& op, const std::vector<TensorDesc>& inputs) {
  std::vector<TensorDesc> outputs;
  try {
    outputs = output_descs(op, inputs);
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
  const Problem problem{inputs, outputs};
  if (!op.check(problem).ok()) return std::nullopt;
  return op.workspace(problem);
}

/// Replaces a size by another one everywhere, so that sizes that have to be equal stay equal.
std::vector<TensorDesc> with_size(std::vector<TensorDesc> inputs, std::int64_t from, std::int64_t to) {
  for (TensorDesc& desc : inputs) {
    for (int axis = 0; axis < desc.extents.rank(); ++axis) {
      if (desc.extents[axis] == from) desc.extents[axis] = to;
    }
  }
  return inputs;
}

/// Compares the workspaces of smaller problems and returns their number.
int expect_monotone(const OperatorType& type, const TimedCase& timed) {
  const auto op = make_operator(type, timed.attributes);
  const std::optional<std::size_t> bytes = workspace_of(*op, timed.inputs);
  if (!bytes.has_value()) return 0;
  std::set<std::int64_t> sizes;
  for (const TensorDesc& desc : timed.inputs) sizes.insert(desc.extents.begin(), desc.extents.end());
  int compared = 0;
  for (const std::int64_t size : sizes) {
    for (const std::int64_t smaller : {size - 1, size - 8, size / 2, std::int64_t{1}}) {
      if (smaller < 1 || smaller >= size) continue;
      const std::vector<TensorDesc> inputs = with_size(timed.inputs, size, smaller);
      const std::optional<std::size_t> fewer = workspace_of(*op, inputs);
      if (!fewer.has_value()) continue;
      ++compared;
      std::string text;
      for (const TensorDesc& desc : inputs) text += to_string(desc) + ' ';
      EXPECT_LE(*fewer, *bytes) << type.name << ' ' << text << "with " << smaller << " for " << size;
    }
  }
  return compared;
}

TEST(Workspace, IsNoLargerForSmallerShapes) {
  constexpr std::uint64_t seed = 7;
  constexpr int drawn = 60;
  for (const OperatorTimings& each : operator_timings()) {
    std::vector<TimedCase> cases = each.timings;
    if (each.draw != nullptr) {
      const std::vector<TimedCase> random = random_cases(*each.type, each.draw, seed, drawn);
      cases.insert(cases.end(), random.begin(), random.end());
    }
    int compared = 0;
    for (const TimedCase& timed : cases) compared += expect_monotone(*each.type, timed);
    if (!cases.empty()) {
      EXPECT_GT(compared, 0) << each.type->name;
    }
  }
}

}  // namespace
}  // namespace graft::ops
