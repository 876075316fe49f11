// Runs two models in sequence. The second model reads the outputs of the first without a copy.
#include "runtime/chain.hpp"

#include <algorithm>
#include <utility>

#include "graft/error.hpp"

namespace graft::runtime {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Chain final : public CompiledModel {
 public:
  Chain(Link first, Link second, std::vector<std::string> outputs)
      : first_(std::move(first)), second_(std::move(second)), outputs_(std::move(outputs)) {}

  using CompiledModel::run;
  [[nodiscard]] std::unique_ptr<CompiledModel> new_request() const override {
    return std::make_unique<Chain>(request_of(first_), request_of(second_), outputs_);
  }

  void run(const TensorMap& inputs, const std::function<void(const TensorMap& outputs)>& look) override {
    TensorMap for_first;
    TensorMap for_second;
    for (const auto& [name, tensor] : inputs) {
      const bool is_of_second = contains(second_.inputs, name);
      if (is_of_second) for_second.emplace(name, tensor);
      // The first engine reports an input that neither model has.
      if (contains(first_.inputs, name) || !is_of_second) for_first.emplace(name, tensor);
    }
    first_.model->run(for_first, [&](const TensorMap& made) {
      for (const auto& [name, tensor] : made) {
        if (contains(second_.inputs, name)) for_second.insert_or_assign(name, tensor);
      }
      second_.model->run(for_second, [&](const TensorMap& last) {
        TensorMap all;
        for (const std::string& name : outputs_) {
          const auto found = last.find(name);
          all.emplace(name, found == last.end() ? made.at(name) : found->second);
        }
        look(all);
      });
    });
  }

 private:
  static Link request_of(const Link& link) { return {.model = link.model->new_request(), .inputs = link.inputs}; }

  Link first_;
  Link second_;
  std::vector<std::string> outputs_;
};

}  // namespace

std::unique_ptr<CompiledModel> chain(Link first, Link second, std::vector<std::string> outputs) {
  return std::make_unique<Chain>(std::move(first), std::move(second), std::move(outputs));
}

Link link_of(std::unique_ptr<CompiledModel> compiled, const onnx::Model& model) {
  Link link{.model = std::move(compiled), .inputs = {}};
  for (const onnx::Value* input : model.graph().inputs()) link.inputs.push_back(input->name);
  return link;
}

}  // namespace graft::runtime
