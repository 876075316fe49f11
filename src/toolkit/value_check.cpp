// Compares two models with compare_outputs, as `graft verify` does.
#include "toolkit/value_check.hpp"

#include <utility>

#include "graft/error.hpp"
#include "runtime/budget.hpp"
#include "toolkit/compare_models.hpp"

namespace graft::toolkit {

ValueCheck check_values(const graft::onnx::Model& reference, const graft::onnx::Model& candidate,
                        const graft::verify::VerifyOptions& common, CpuEngine engine, const Watch& watch,
                        bool is_limited) {
  ValueCheck found;
  found.limit_db = common.snr_db;
  CompareOptions options;
  options.common.data = common.data;
  options.common.shapes = common.shapes;
  options.common.snr_db = common.snr_db;
  options.common.seeds = common.seeds;
  options.common.threads = common.threads;
  // Only `graft verify` shows these warnings, and to find them takes another compilation of the reference and a run for
  // each input.
  options.common.finds_unreached = false;
  options.common.finds_beyond_rounding = false;
  options.common.offers_ranges = false;
  options.engine = engine;
  try {
    const auto limited = [&](const runtime::Engine& inner) { return runtime::make_budget_engine(inner, reference); };
    found.report = compare_outputs(reference, candidate, std::move(options), {.progress = {}, .cancel = watch.cancel},
                                   is_limited ? EngineAround(limited) : EngineAround());
  } catch (const Cancelled&) {
    throw;
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::internal) throw;
    found.failure = error.what();
    found.is_over_budget = dynamic_cast<const runtime::OverBudget*>(&error) != nullptr;
  }
  return found;
}

}  // namespace graft::toolkit
