#include "inspect/type_trials.hpp"

#include <utility>

#include "graft/error.hpp"
#include "inspect/model_parts.hpp"
#include "inspect/size_ranges.hpp"
#include "onnx/extract.hpp"
#include "onnx/node_ref.hpp"

namespace graft::inspect {
namespace {

/// Returns the key under which the result for a node is kept: its operator and input types. For a node with sub-graphs,
/// whose content matters too, it is the name of its first output, which is unique.
std::string trial_key(const onnx::Node& node) {
  if (!node.subgraphs().empty()) return "node " + onnx::ref_of(node).id;
  std::string key = node.op_type;
  for (const onnx::Value* input : node.inputs) {
    key += input == nullptr || !input->type ? " ?" : " " + to_string(*input->type);
  }
  return key;
}

}  // namespace

TypeTrials::TypeTrials(ProbeOptions options, std::function<bool()> should_stop)
    : options_(std::move(options)), should_stop_(std::move(should_stop)) {
  options_.is_automatic = true;
}

bool TypeTrials::builds(const onnx::Model& model, const onnx::Node& node) {
  const std::string key = trial_key(node);
  const auto known = known_.find(key);
  return known != known_.end() ? known->second : known_.emplace(key, build(model, node)).first->second;
}

bool TypeTrials::build(const onnx::Model& model, const onnx::Node& node) {
  try {
    onnx::Model part = extract_nodes(model, with_sizes({&node}, model.graph(), {}));
    declare_outputs(part);
    if (trials_ == nullptr) {
      trials_ = start_tensorrt(options_, should_stop_);
      trials_->load(options_.trials.libraries, {});
    }
    const SizeRanges ranges(part, {}, true);
    return trials_->build(part, ranges.for_build(part), 1.0).outcome == Outcome::accepted;
  } catch (const NoTensorRT&) {
    return false;
  } catch (const BudgetSpent&) {
    return false;
  } catch (const Error&) {  // TensorRT does not load, or the type of an input is not known
    return false;
  }
}

}  // namespace graft::inspect
