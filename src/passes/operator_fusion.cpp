// Orders the fusions of operators.
#include "passes/operator_fusion.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graft/error.hpp"

namespace graft::passes {

std::vector<Pass> ordered_passes(std::span<const OperatorFusion* const> fusions) {
  std::vector<const OperatorFusion*> waiting(fusions.begin(), fusions.end());
  std::vector<Pass> ordered;
  const auto can_run = [&](const OperatorFusion* fusion) {
    return fusion->after.empty() ||
           std::any_of(ordered.begin(), ordered.end(), [&](const Pass& pass) { return pass.name == fusion->after; });
  };
  while (!waiting.empty()) {
    const auto next = std::find_if(waiting.begin(), waiting.end(), can_run);
    if (next == waiting.end()) {
      throw Error(Error::Kind::internal,
                  fmt::format("pass {} runs after '{}', which is not a fusion of an operator, or itself runs after {}",
                              waiting.front()->pass.name, waiting.front()->after, waiting.front()->pass.name));
    }
    ordered.push_back((*next)->pass);
    waiting.erase(next);
  }
  return ordered;
}

}  // namespace graft::passes
