// The draws.
#include "verify/noisy_model.hpp"

#include <cstdint>
#include <memory>

#include "graft/error.hpp"

namespace graft::verify {

void NoisyModel::run(const runtime::TensorMap& inputs,
                     const std::function<void(const runtime::TensorMap& moved)>& look) {
  if (is_refused_) return;
  const auto tolerated = [](const Error& error) {
    if (error.kind() == Error::Kind::internal) throw error;
  };
  if (!compiled_) {
    try {
      options_.noise = std::make_shared<runtime::RoundingNoise>();
      compiled_ = engine_->compile(*model_, options_);
    } catch (const Error& refused) {
      is_refused_ = true;
      return tolerated(refused);
    }
  }
  for (std::uint64_t draw = 1; draw <= draws; ++draw) {
    options_.noise->draw = draw;
    try {
      compiled_->run(inputs, look);
    } catch (const Error& refused) {
      tolerated(refused);
    }
  }
}

}  // namespace graft::verify
