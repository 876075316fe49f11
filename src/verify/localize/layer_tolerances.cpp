// Computes the tolerances for tensors of networks, by the types in which they are computed.
#include <fmt/format.h>

#include <algorithm>

#include "verify/localize/layers.hpp"

namespace graft::verify {

Tolerance layer_tolerance(onnx::ElementType reference, onnx::ElementType candidate, bool quantized, bool rounded) {
  if (!is_floating_point(reference) || !is_floating_point(candidate)) return network_tolerance(reference, rounded);
  constexpr double of_quantized = 0.05;
  if (quantized) return {.relative = 0, .absolute = 0, .of_largest = of_quantized};
  const Tolerance left = network_tolerance(reference);
  const Tolerance right = network_tolerance(candidate);
  const Tolerance& coarser = left.relative > right.relative ? left : right;
  const auto narrow = [](onnx::ElementType type) { return bits_of(type) < bits_of(onnx::ElementType::f32); };
  if (!narrow(reference) && !narrow(candidate)) return coarser;
  constexpr double epsilons = 16;
  return {.relative = epsilons * coarser.of_largest, .absolute = 0, .of_largest = epsilons * coarser.of_largest};
}

Tolerance output_tolerance(onnx::ElementType reference, onnx::ElementType candidate, bool quantized, bool rounded) {
  const bool real = is_floating_point(reference) && is_floating_point(candidate);
  if (quantized && real) return {.snr_db = quantized_limit_db};
  Tolerance tolerance = layer_tolerance(reference, candidate, quantized, rounded);
  if (real && reference != candidate) {
    const std::optional<double> of_reference = narrow_limit_db(reference);
    const std::optional<double> of_candidate = narrow_limit_db(candidate);
    tolerance.least_snr_db = of_reference && of_candidate ? std::min(of_reference, of_candidate)
                             : of_reference               ? of_reference
                                                          : of_candidate;
  }
  return tolerance;
}

std::optional<double> narrow_limit_db(onnx::ElementType type) {
  constexpr double of_f16 = 40;
  constexpr double of_bf16 = 25;
  switch (type) {
    case onnx::ElementType::f16: return of_f16;
    case onnx::ElementType::bf16: return of_bf16;
    default: return std::nullopt;
  }
}

std::optional<Tolerance> given_tolerance(std::optional<double> relative, std::optional<double> absolute,
                                         std::optional<double> snr_db, onnx::ElementType type) {
  if (relative || absolute) {
    return Tolerance{.relative = relative.value_or(0), .absolute = absolute.value_or(0), .of_largest = 0};
  }
  if (snr_db && is_floating_point(type)) return Tolerance{.snr_db = snr_db};
  return std::nullopt;
}

std::string why_tolerance(onnx::ElementType own, onnx::ElementType reference, onnx::ElementType candidate,
                          bool quantized) {
  if (!is_floating_point(own)) return "";
  if (quantized) return "the candidate rounds to 8 bits, for which there is no fixed limit";
  if (candidate != own) return fmt::format("it is computed from {} in the candidate", to_string(candidate));
  if (reference != own) return fmt::format("it is computed from {} in the reference", to_string(reference));
  return "";
}

}  // namespace graft::verify
