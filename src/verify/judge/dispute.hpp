// Reports that two engines compute one model differently, so that the results of neither engine can be trusted.
#pragma once

#include <stdexcept>
#include <utility>

#include "graft/report/comparison.hpp"

namespace graft::verify {

using report::Dispute;

/// Thrown to end a run in which two engines returned different results. It is not an Error, because passes and proofs
/// catch Errors and continue; comparisons and proofs convert a Disputed to a verdict.
class Disputed : public std::runtime_error {
 public:
  explicit Disputed(Dispute dispute) : std::runtime_error(dispute.text()), dispute_(std::move(dispute)) {}
  [[nodiscard]] const Dispute& dispute() const { return dispute_; }

 private:
  Dispute dispute_;
};

}  // namespace graft::verify
