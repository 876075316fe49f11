// A definition whose optional members have the documented signatures, except the one that WRONG_... names. Tests
// compile it: without WRONG_... it compiles; with WRONG_... the compiler prints the required signature.
#include "graft/operator/elementwise.hpp"

namespace {

struct Definition : graft::Elementwise {
  static constexpr auto name = "Definition";
  static constexpr int version = 1;
  static constexpr auto doc = "y = x";
  static constexpr auto source = "a test";
  static constexpr auto why_plugin = "a test";
  static constexpr auto attributes() { return with_scales(); }

#ifdef WRONG_ACCEPTS
  [[nodiscard]] bool accepts(int) const { return true; }
#else
  [[nodiscard]] bool accepts(const graft::TypeRow&, std::span<const int>) const { return true; }
#endif
#ifdef WRONG_ALIASED_INPUT
  [[nodiscard]] int aliased_input(std::size_t) const { return -1; }
#else
  [[nodiscard]] std::optional<std::size_t> aliased_input(std::size_t) const { return std::nullopt; }
#endif
#ifdef WRONG_CHECK
  [[nodiscard]] graft::Status check(const graft::Problem&) { return {}; }  // not const
#else
  [[nodiscard]] graft::Status check(const graft::Problem&) const { return {}; }
#endif
#ifdef WRONG_WORKSPACE
  [[nodiscard]] std::size_t workspace() const { return 0; }
#else
  [[nodiscard]] std::size_t workspace(const graft::Problem&) const { return 0; }
#endif
#ifdef WRONG_FUNCTION
  static graft::Function function(graft::DType) { return {}; }
#else
  static graft::Function function(const graft::FunctionInputs&) { return {}; }
#endif
#ifdef WRONG_NATIVE_FORM
  [[nodiscard]] std::string native_form() const { return {}; }
#else
  [[nodiscard]] std::string native_form(const graft::FunctionInputs&) const { return {}; }
#endif
#ifdef WRONG_IS_DATA_MOVEMENT
  [[nodiscard]] int is_data_movement() const { return 0; }
#else
  [[nodiscard]] bool is_data_movement() const { return false; }
#endif
#ifdef WRONG_WHY_PLUGIN_FOR_FLOATS
  static constexpr int why_plugin_for_floats = 1;
#else
  static constexpr auto why_plugin_for_floats = "a test";
#endif
#ifdef WRONG_INT8_WEIGHT
  static constexpr std::size_t int8_weight = 1;
#else
  static constexpr graft::Int8Weight int8_weight{.input = 1, .numbers = "w", .slices = "n", .scales = "s"};
#endif
#ifdef WRONG_NATIVE_EQUIVALENTS
  [[nodiscard]] std::vector<graft::NativeEquivalent> native_equivalents() const { return {}; }  // not static
#else
  static std::vector<graft::NativeEquivalent> native_equivalents() { return {}; }
#endif
#ifdef WRONG_DROP_INS
  [[nodiscard]] std::vector<graft::DropIn> drop_ins() const { return {}; }  // not static
#else
  static std::vector<graft::DropIn> drop_ins() { return {}; }
#endif
#ifdef WRONG_ONNX_FORM
  static constexpr auto onnx_form = "Identity";
#else
  static graft::OnnxForm onnx_form() { return {.name = "Identity"}; }
#endif
#ifdef WRONG_TIMED_VARIANTS
  static constexpr const void* timed_variants() { return nullptr; }
#else
  static constexpr bool timed_variants = true;
#endif
#ifdef WRONG_CHECK_ATTRIBUTES
  [[nodiscard]] bool check_attributes() const { return true; }
#else
  [[nodiscard]] graft::Status check_attributes() const { return {}; }
#endif
};

[[maybe_unused]] graft::Status run(const Definition&, const graft::Problem&, const graft::Buffers&,
                                   const graft::CpuContext&) {
  return {};
}

[[maybe_unused]] const graft::OperatorOf<Definition> made;

}  // namespace
