// The contents of a toolkit::Model.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "graft/report/model.hpp"
#include "graft/toolkit/model.hpp"
#include "onnx/model.hpp"
#include "passes/cleanup/frozen_sizes.hpp"

namespace graft::toolkit {

struct Model::State {
  graft::onnx::Model model;
  /// The nodes that fit only the input sizes declared in the file. Set if the network was read with dynamic sizes
  /// instead of these.
  std::vector<passes::FrozenSize> frozen = {};
  report::Origin origin = {};
};

struct ModelAccess {
  [[nodiscard]] static const graft::onnx::Model& model_of(const Model& model) { return model.state_->model; }
  [[nodiscard]] static const std::vector<passes::FrozenSize>& frozen_sizes_of(const Model& model) {
    return model.state_->frozen;
  }
  [[nodiscard]] static const report::Origin& origin_of(const Model& model) { return model.state_->origin; }
  [[nodiscard]] static Model make(graft::onnx::Model model, std::vector<passes::FrozenSize> frozen = {},
                                  report::Origin origin = {}) {
    Model made;
    made.state_ =
        std::make_shared<const Model::State>(Model::State{std::move(model), std::move(frozen), std::move(origin)});
    return made;
  }
};

[[nodiscard]] inline const graft::onnx::Model& model_of(const Model& model) { return ModelAccess::model_of(model); }

}  // namespace graft::toolkit
