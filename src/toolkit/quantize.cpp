// Typed models.
#include "graft/toolkit/quantize.hpp"

#include <utility>

#include "graph/check_operators.hpp"
#include "quant/choose_int8.hpp"
#include "quant/choose_types.hpp"
#include "toolkit/access.hpp"
#include "toolkit/tensors.hpp"
#include "toolkit/work.hpp"
#include "verify/ends.hpp"

namespace graft::toolkit {
namespace {

constexpr auto data_name = "QuantizeOptions::data";

ThresholdMethod method_of(Calibration calibration) {
  switch (calibration) {
    case Calibration::entropy: return ThresholdMethod::entropy;
    case Calibration::minmax: return ThresholdMethod::minmax;
    case Calibration::mse: return ThresholdMethod::mse;
    case Calibration::percentile: break;
  }
  return ThresholdMethod::percentile;
}

std::string type_of(NodeType type, graft::Precision precision) {
  switch (type) {
    case NodeType::narrow: return std::string(to_string(precision));
    case NodeType::kept:
    case NodeType::follows: return "f32";
    case NodeType::none: break;
  }
  return {};
}

std::vector<OutputQuality> qualities_of(const std::vector<OutputFigures>& outputs) {
  std::vector<OutputQuality> qualities;
  for (const OutputFigures& output : outputs) {
    qualities.push_back({.name = output.name,
                         .snr_db = output.snr_db,
                         .largest_error = output.largest_error,
                         .rows = output.rows,
                         .same_top = output.same_top});
  }
  return qualities;
}

QuantizeResult to_float(Work& work, const graft::Model& model, const QuantizeOptions& options) {
  if (options.max_drop) throw Error("QuantizeOptions::max_drop: it is for int8");
  ChooseOptions inner;
  inner.precision = options.precision == Precision::bf16 ? graft::Precision::bf16 : graft::Precision::f16;
  inner.keep = options.keep;
  inner.only = options.only;
  inner.limit_db = options.limit_db;
  if (!options.data.empty()) inner.data = split_into_runs(to_internal(options.data, data_name), model, data_name);
  inner.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
    work.report_step(what, done, total);
  };
  ChosenTypes chosen = choose_types(work.engine(), model, inner);
  QuantizeResult result;
  for (ChosenNode& node : chosen.nodes) {
    const bool is_kept = node.node.type == NodeType::kept;
    result.nodes.push_back({.node = std::move(node.node.node),
                            .type = type_of(node.node.type, inner.precision),
                            .reason = is_kept ? std::move(node.node.reason) : std::string()});
  }
  result.outputs = qualities_of(chosen.outputs);
  result.notes = std::move(chosen.notes);
  result.met = chosen.met;
  result.model = ModelAccess::make(std::move(chosen.typed.model));
  return result;
}

QuantizeResult to_int8(Work& work, const graft::Model& model, const QuantizeOptions& options) {
  if (options.data.empty()) {
    throw Error(
        "QuantizeOptions::data: int8 needs ranges, and synthetic inputs have others than real ones\n"
        "Give inputs as the network will see them, a hundred or more");
  }
  Int8Options inner;
  inner.thresholds = {.method = method_of(options.calibration), .percentile = options.percentile};
  inner.keep = options.keep;
  inner.only = options.only;
  inner.limit_db = options.limit_db;
  inner.max_drop = options.max_drop;
  inner.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
    work.report_step(what, done, total);
  };
  const CalibrationData data = calibration_data_of(to_internal(options.data, data_name), model, 0, data_name);
  ChosenInt8 chosen = choose_int8(work.engine(), model, data, inner);
  QuantizeResult result;
  for (Int8Node& node : chosen.plan.nodes) {
    result.nodes.push_back({.node = std::move(node.node),
                            .type = std::string(to_string(node.kind)),
                            .reason = node.kind == Int8Kind::kept ? std::move(node.reason) : std::string()});
  }
  result.outputs = qualities_of(chosen.outputs);
  result.notes = std::move(chosen.notes);
  result.met = chosen.met;
  result.model = ModelAccess::make(std::move(chosen.placed.model));
  return result;
}

}  // namespace

QuantizeResult quantize(const Model& model, const QuantizeOptions& options) {
  Work work(options.watch);
  return work.run([&] {
    check_operators(model_of(model));
    return options.precision == Precision::int8 ? to_int8(work, model_of(model), options)
                                                : to_float(work, model_of(model), options);
  });
}

}  // namespace graft::toolkit
