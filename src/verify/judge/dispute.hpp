// Reports that two engines compute one model differently, so that the result of neither engine is trusted.
#pragma once

#include <stdexcept>
#include <utility>

#include "graft/report/comparison.hpp"

namespace graft::verify {

using report::Dispute;

/// Ends a run whose results are disputed. It is not an Error, because passes and proofs catch an Error and continue:
/// comparisons and proofs turn a Disputed into a verdict.
class Disputed : public std::runtime_error {
 public:
  explicit Disputed(Dispute dispute) : std::runtime_error(dispute.text()), dispute_(std::move(dispute)) {}
  [[nodiscard]] const Dispute& dispute() const { return dispute_; }

 private:
  Dispute dispute_;
};

}  // namespace graft::verify
