// The verdict of a comparison of two tensors or two models.
#pragma once

#include <cstdint>

namespace graft::verify {

/// The result of a comparison. `nothing_compared`: no difference was found because nothing could be compared, which
/// does not prove that the models are the same. `disputed`: two engines computed one model differently (Dispute), which
/// is no result about the two models.
enum class Verdict : std::uint8_t { same, different, nothing_compared, disputed };

}  // namespace graft::verify
