// The table of the operators' types, and looking things up in it.
#include "quant/type_constraints.hpp"

#include <algorithm>
#include <iterator>

namespace graft {
namespace {

// Sorted by name.
constexpr LowPrecisionSupport forms[] = {
#include "quant/type_constraints.inc"
};

}  // namespace

bool LowPrecisionSupport::takes_input(std::size_t index) const {
  return inputs[std::min(index, inputs.size() - 1)] != '.';
}

bool LowPrecisionSupport::gives_output(std::size_t index) const {
  return !outputs.empty() && outputs[std::min(index, outputs.size() - 1)] != '.';
}

const LowPrecisionSupport* find_narrow_form(std::string_view op_type) {
  const auto* found =
      std::lower_bound(std::begin(forms), std::end(forms), op_type,
                       [](const LowPrecisionSupport& form, std::string_view name) { return form.name < name; });
  return found == std::end(forms) || found->name != op_type ? nullptr : found;
}

}  // namespace graft
