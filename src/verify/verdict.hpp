// What a comparison says of two tensors, or of two models.
#pragma once

#include <cstdint>

namespace graft::verify {

/// `nothing_compared`: no difference was found since there was nothing to find one in. It is no proof that two models
/// are the same. `disputed`: two engines computed one model differently (Dispute), which says nothing of two models.
enum class Verdict : std::uint8_t { same, different, nothing_compared, disputed };

}  // namespace graft::verify
