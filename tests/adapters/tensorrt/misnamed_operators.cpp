// A list of one operator, like that of a user's library: its drop-in names an input that the operator does not have.
#include <array>
#include <memory>

#include "graft/operator/registry.hpp"

namespace {

const graft::OperatorType& misnamed() {
  static const graft::OperatorType type = [] {
    graft::OperatorType made{.name = "Misnamed",
                             .version = 1,
                             .doc = "",
                             .source = "",
                             .why_plugin = "",
                             .attributes = {},
                             .ports = {},
                             .type_rows = {},
                             .drop_ins = {},
                             .create = [] { return std::unique_ptr<graft::Operator>(); }};
    made.ports = {graft::input("x", "T", "N", ""), graft::input("weight", "T", "N", ""),
                  graft::output("y", "T", "N", "")};
    made.drop_ins = {{.plugin_name = "Swapped", .version = "1", .fields = {}, .doc = "", .inputs = {"x", "wieght"}}};
    return made;
  }();
  return type;
}

}  // namespace

std::span<const graft::OperatorType* const> graft::linked_operators() {
  static const std::array<const graft::OperatorType*, 1> operators{&misnamed()};
  return operators;
}
std::span<const graft::FusionRules> graft::linked_fusions() { return {}; }
void graft::register_cuda_kernels() {}
