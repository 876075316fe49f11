// The GPUs that a target may name: architectures such as "sm89", and names of products.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace graft::toolkit {

/// A GPU architecture and the products that have it.
struct GpuArchitecture {
  std::string_view target;  ///< The name of the architecture, "sm89".
  /// Names in lower case, separated by single spaces, without the suffixes "ti" and "super".
  std::string_view products;
};

/// Returns the table of all GPU architectures that Graft knows, with their products, in ascending order.
/// docs/guide/build_options.md lists the same table.
[[nodiscard]] std::span<const GpuArchitecture> gpu_architectures();

/// Returns each target once, in the given order, as "sm89" or "current". Accepts "sm89", "SM_89", "89", "current", and
/// names of products in any spelling that nvidia-smi or a shop uses: "rtx4090", "NVIDIA GeForce RTX 4090". Throws Error
/// that lists the products for other text, and for "current" together with another target.
[[nodiscard]] std::vector<std::string> parse_targets(const std::vector<std::string>& texts);

}  // namespace graft::toolkit
