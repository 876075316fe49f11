// Tests that a probe whose TensorRT starts late is stopped, and what a cut throws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "inspect/verdicts.hpp"
#include "tests/support/text_model.hpp"
#include "toolkit/cut.hpp"
#include "toolkit/inspect.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {
namespace {

Inspection inspection_of(const std::string& text) {
  Inspection inspection;
  inspection.model = test::inferred_text_model({{"x", onnx::ElementType::f32, {Dim::symbol("n")}}}, text, {"y"});
  inspection.report.nodes = inspect::judge_nodes(inspection.model);
  return inspection;
}

TEST(Probe, stops_a_tensorrt_that_starts_late) {
  Inspection inspection = inspection_of("y = Relu(x)");
  const inspect::ProbeOptions options = probe_options({});
  CancelToken stop;
  stop.cancel();
  const Watch watch;
  Work work(watch);
  bool is_cancelled = false;
  try {
    probe(work, inspection, options, {}, nullptr, stop);
  } catch (const Cancelled&) {
    is_cancelled = true;
  }
  if (!inspection.report.not_asked.empty()) GTEST_SKIP() << inspection.report.not_asked;
  EXPECT_TRUE(is_cancelled);
  EXPECT_FALSE(inspection.report.probe);
}

TEST(Cut, a_cancelled_cut_is_not_one_that_finds_nothing) {
  const Inspection inspection = inspection_of("y = Unique(x)");
  EXPECT_THROW(static_cast<void>(cut(inspection.model, inspection.report.nodes, {})), NoCut);
  const Inspection with_both = inspection_of("a = Exp(x)\ny = Unique(a)");
  CutOptions options;
  options.watch.cancel.cancel();
  EXPECT_THROW(static_cast<void>(cut(with_both.model, with_both.report.nodes, options)), Cancelled);
}

}  // namespace
}  // namespace graft::toolkit
