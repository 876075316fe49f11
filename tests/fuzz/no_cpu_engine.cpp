// What the passes ask of the CPU engine and of proofs, without either: OpenVINO is not what is fuzzed here. Constants
// come out as zeros of the declared size, and every rewrite counts as proven, so that its region is cut out and edited.
#include <fmt/format.h>

#include "adapters/openvino/cpu_engine.hpp"
#include "graft/error.hpp"
#include "verify/prove.hpp"
#include "verify/verify_models.hpp"

namespace graft {

struct CpuModel::Implementation {};

CpuModel::CpuModel(const Model& /*model*/, const CpuOptions& /*options*/) { throw Error("nothing is run here"); }
CpuModel::~CpuModel() = default;
CpuModel::CpuModel(CpuModel&&) noexcept = default;
CpuModel& CpuModel::operator=(CpuModel&&) noexcept = default;
TensorMap CpuModel::run(const TensorMap& /*inputs*/) { return {}; }

TensorMap evaluate_constant_graph(const Model& model) {
  TensorMap results;
  for (const Value* output : model.graph().outputs()) {
    if (!output->type || !output->shape) throw Error(fmt::format("'{}' has no known type and shape", output->name));
    TensorData tensor;
    tensor.type = *output->type;
    for (const Dim& dim : *output->shape) {
      if (!dim.is_constant()) throw Error(fmt::format("'{}' has an open dimension", output->name));
      tensor.dims.push_back(dim.value());
    }
    const auto bytes =
        static_cast<std::size_t>(tensor.element_count()) * static_cast<std::size_t>(bits_of(tensor.type)) / 8;
    tensor.bytes = Bytes(std::string(bytes, '\0'));
    results.emplace(output->name, std::move(tensor));
  }
  return results;
}

ProofResult prove_region(const Model& /*before*/, const Model& /*after*/, const ProofOptions& /*options*/) {
  ProofResult result;
  result.proven = true;
  result.trials = 1;
  return result;
}

ProofResult measure_region(const Model& before, const Model& after, const ProofOptions& options) {
  return prove_region(before, after, options);
}

VerifyReport verify_models(const Model& /*reference*/, const Model& /*candidate*/, const VerifyOptions& /*options*/) {
  VerifyReport report;
  report.runs = 1;
  return report;
}

bool VerifyReport::equal() const { return runs > 0; }

}  // namespace graft
