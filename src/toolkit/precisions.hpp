// Conversion of the public Precision to the type of the libraries.
#pragma once

#include "graft/error.hpp"
#include "graft/toolkit/precision.hpp"
#include "verify/localize/emulate.hpp"

namespace graft::toolkit {

/// Returns the precision. Throws Error for f8, which `verify` cannot emulate.
[[nodiscard]] inline graft::verify::Precision precision_of(Precision precision) {
  switch (precision) {
    case Precision::bf16: return graft::verify::Precision::bf16;
    case Precision::int8: return graft::verify::Precision::int8;
    case Precision::f8: throw Error("found Precision::f8; allowed are f16, bf16 and int8");
    case Precision::f16: break;
  }
  return graft::verify::Precision::f16;
}

}  // namespace graft::toolkit
