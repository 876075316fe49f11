// Conversions and queries of a model that several tests of passes share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/comparison_text.hpp"
#include "graft/operator/operator.hpp"
#include "onnx/model.hpp"
#include "onnx/operator_node.hpp"
#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"
#include "tests/support/text_model.hpp"
#include "verify/compare/verify_models.hpp"

namespace graft::passes {

inline Shape image_shape() { return {Dim::symbol("N"), 4, 3, 5}; }

/// Returns Graft's operators in the model, including subgraphs.
inline std::vector<std::unique_ptr<Operator>> operators_in(const onnx::Model& model) {
  std::vector<std::unique_ptr<Operator>> result;
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (node.domain == onnx_domain) result.push_back(make_operator(node));
  });
  return result;
}

inline std::string first_difference(const verify::VerifyReport& report) {
  for (const verify::ComparedOutput& output : report.outputs) {
    if (!output.equal()) return output.reference.name + ": " + report::difference_text(output.worst);
  }
  return report.problems.empty() ? "" : report.problems.front();
}

/// Converts the model, and checks that no rewrite was rejected and that the outputs agree.
inline RewriteReport convert_and_verify(onnx::Model& model, const ConvertOptions& options = {}) {
  const onnx::Model original = model.clone();
  RewriteReport report = convert(runtime::default_engine(), model, options);
  model.graph().check();
  for (const Rewrite& rewrite : report.rejected) ADD_FAILURE() << rewrite.pass << ": " << rewrite.proof;
  const verify::VerifyReport verified = verify::verify_models(runtime::default_engine(), original, model);
  EXPECT_TRUE(verified.equal()) << first_difference(verified);
  return report;
}

}  // namespace graft::passes
