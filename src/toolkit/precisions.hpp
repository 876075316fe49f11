// Between the types of applications and those of the libraries below.
#pragma once

#include "graft/toolkit/precision.hpp"
#include "verify/emulate.hpp"

namespace graft::toolkit {

[[nodiscard]] inline graft::verify::Precision precision_of(Precision precision) {
  switch (precision) {
    case Precision::bf16: return graft::verify::Precision::bf16;
    case Precision::int8: return graft::verify::Precision::int8;
    case Precision::f16: break;
  }
  return graft::verify::Precision::f16;
}

}  // namespace graft::toolkit
