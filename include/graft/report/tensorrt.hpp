// The identity of the TensorRT that a command ran.
#pragma once

#include <string>
#include <tuple>

#include "graft/report/field.hpp"

namespace graft::report {

/// The TensorRT that was run, and its version.
struct TensorRTIdentity {
  std::string flavor;
  std::string module;
  std::string version;

  /// Returns the name and version, such as "TensorRT-RTX 1.7.1.116", "TensorRT 10.13.3.9" or "TensorRT lean runtime
  /// 10.13.3.9".
  [[nodiscard]] std::string title() const {
    return (flavor == "rtx" ? "TensorRT-RTX " : flavor == "lean" ? "TensorRT lean runtime " : "TensorRT ") + version;
  }

  static constexpr auto fields() {
    return std::tuple{field("flavor", &TensorRTIdentity::flavor, "'rtx', 'full' or 'lean'."),
                      field("module", &TensorRTIdentity::module, "The name of the Python module."),
                      field("version", &TensorRTIdentity::version, "The version, such as '1.7.1.116'.")};
  }
};

}  // namespace graft::report
