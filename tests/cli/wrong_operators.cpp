// Libraries that `graft --operators` has to refuse, one for each WRONG_*.
#include <array>
#include <memory>

#include "graft/operator/operator.hpp"
#include "graft/operator/registry.hpp"
#include "operator_library/exported.hpp"

#ifndef WRONG_SYMBOL

namespace {

#ifdef WRONG_NAME
constexpr auto name = "LeakyReLU";  // Graft has one
#else
constexpr auto name = "Fine";
#endif

const graft::OperatorType type{.name = name,
                               .version = 1,
                               .doc = "",
                               .source = "",
                               .why_plugin = "",
                               .attributes = {},
                               .ports = {},
#ifdef WRONG_ROWS
                               .type_rows = {graft::TypeRow(graft::DType::f32)},
#else
                               .type_rows = {},
#endif
                               .drop_ins = {},
                               .timed_variants = false,
                               .create = [] { return std::unique_ptr<graft::Operator>(); }};
const std::array types{&type};
#ifdef WRONG_EMPTY_FUSION
constexpr std::array fusions{graft::FusionRules{"fine_fusion.yaml", "# To be written.\n"}};
#elif defined(WRONG_WITH)
constexpr std::array fusions{graft::FusionRules{"fine_fusion.yaml", "- match: y = Relu(x)\n  with: Fiine\n"}};
#else
// LeakyReLU is Graft's operator, but a library's fusion may create only the library's own operators.
constexpr std::array fusions{graft::FusionRules{"fine_fusion.yaml", "- match: y = Relu(x)\n  with: LeakyReLU\n"}};
#endif

const graft::ExportedOperators exported {
#ifdef WRONG_VERSION
  .version = 99,
#else
  .version = graft::operator_library_version,
#endif
#ifdef WRONG_HEADERS
  .headers = "0123456789abcdef",
#else
  .headers = GRAFT_HEADERS_DIGEST,
#endif
#ifdef WRONG_STANDARD_LIBRARY
  .standard_library = "another standard library",
#else
  .standard_library = graft::standard_library,
#endif
  .graft_version = "0.0.1", .plugin_namespace = "", .operators = types.data(),
#ifdef WRONG_COUNT
  .count = 0,
#else
  .count = types.size(),
#endif
  .fusions = fusions.data(),
#if defined(WRONG_FUSION) || defined(WRONG_WITH) || defined(WRONG_EMPTY_FUSION)
  .fusion_count = fusions.size(),
#else
  .fusion_count = 0,
#endif
  .folders = "fine"
};

}  // namespace

const graft::ExportedOperators* graft_operators() noexcept {
#ifdef WRONG_POINTER
  return nullptr;
#else
  return &exported;
#endif
}

#endif
