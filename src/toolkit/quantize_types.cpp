// Quantizes to f16 or bf16: chooses the types of nodes, and compares the result with the model.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <utility>

#include "inspect/tensorrt_support.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/schema.hpp"
#include "quant/search/choose_types.hpp"
#include "runtime/budget.hpp"
#include "toolkit/access.hpp"
#include "toolkit/quantize.hpp"
#include "toolkit/value_check.hpp"
#include "verify/compare/ends.hpp"

namespace graft::toolkit {
namespace {

/// Returns whether the result of a node is a discontinuous function of its inputs, so that rounding before it may
/// change it.
bool jumps(const onnx::Node& node) {
  if (node.is("Cast")) {
    const onnx::Value* input = node.input(0);
    const onnx::Value* output = node.output();
    return input != nullptr && input->type && is_floating_point(*input->type) && output->type &&
           !is_floating_point(*output->type);
  }
  return has_trait(node, onnx::trait::compares) ||
         is_any_of(node, {"ArgMax", "ArgMin", "Ceil", "Floor", "Mod", "NonZero", "NonMaxSuppression", "Round", "Sign",
                          "TopK"});
}

/// Returns the nodes of the main graph from which a value is computed, at most `steps` nodes before it, nearest first.
/// Nodes that only move elements do not count as steps.
std::vector<const onnx::Node*> nodes_before(const onnx::Value& value, std::size_t steps) {
  std::vector<const onnx::Node*> nodes;
  std::set<const onnx::Node*> seen;
  std::vector<const onnx::Value*> reached{&value};
  for (std::size_t step = 0; step < steps && !reached.empty(); ++step) {
    std::vector<const onnx::Value*> next;
    for (std::size_t i = 0; i < reached.size(); ++i) {  // a node that moves elements adds to `reached`
      const onnx::Node* node = reached[i]->producer;
      if (node == nullptr || !seen.insert(node).second) continue;
      nodes.push_back(node);
      std::vector<const onnx::Value*>& before = has_trait(*node, onnx::trait::moves_data) ? reached : next;
      for (const onnx::Value* input : node->inputs) {
        if (input != nullptr) before.push_back(input);
      }
    }
    reached = std::move(next);
  }
  return nodes;
}

/// Keeps nodes in f32 for the outputs that differ: the discontinuous nodes from which such an output is computed, and
/// the nodes up to `steps` before each of them. Returns whether a further node is kept.
bool keep_what_decides(const onnx::Model& model, const report::VerifyReport& report, std::size_t steps,
                       quant::ChooseOptions& options) {
  constexpr auto all = std::numeric_limits<std::size_t>::max();
  const std::size_t before = options.kept.size();
  for (const report::ComparedOutput& output : report.outputs) {
    const onnx::Value* value = model.graph().find_local(output.reference.name);
    if (output.equal() || value == nullptr) continue;
    for (const onnx::Node* node : nodes_before(*value, all)) {
      if (!jumps(*node)) continue;
      const std::string reason = fmt::format(
          "{} is computed from this node's result, and a small change of an input can change its output completely",
          onnx::describe(*node));
      for (const onnx::Node* decides : nodes_before(*node->output(), steps)) {
        if (!decides->is("Constant")) options.kept.emplace(quant::key_of(*decides), reason);
      }
    }
  }
  return options.kept.size() != before;
}

/// Raises the margin of the search by the largest amount that an output is below the signal to noise ratio that verify
/// requires. Returns whether an output is below it.
bool raise_margin(const report::VerifyReport& report, quant::ChooseOptions& options) {
  constexpr double more_db = 1;
  double lacking_db = 0;
  for (const report::ComparedOutput& output : report.outputs) {
    const verify::Difference& worst = output.worst;
    if (!worst.missed_snr_db || !worst.snr_db) continue;
    lacking_db = std::max(lacking_db, *worst.missed_snr_db - *worst.snr_db + more_db);
  }
  options.margin_db += lacking_db;
  return lacking_db > 0;
}

}  // namespace

QuantizeReport quantize_types(const Model& given, const QuantizeOptions& options, const GivenData& given_data,
                              Work& work) {
  const onnx::Model& model = model_of(given);
  const std::string data_name(setting_name(given_data.files.empty() ? Setting::data : Setting::data_files));
  const data::Runs data = read_runs(given_data, data::inputs_of(model));
  note_data(options, data.notes);
  quant::ChooseOptions choice;
  choice.precision = options.precision;
  choice.typed_io = options.typed_io;
  choice.keep = options.keep;
  choice.only = options.only;
  choice.limit_db = options.limit_db;
  choice.shapes = {options.shapes.begin(), options.shapes.end()};
  for (const runtime::TensorMap& run : data.runs) {
    for (const auto& [name, tensor] : run) data::check_has_numbers(name, tensor, data_name);
    std::ranges::move(graft::verify::split_into_runs(run, model, data_name), std::back_inserter(choice.data));
  }
  choice.refusal = inspect::rule_against;
  choice.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
    work.report_step(what, done, total);
  };
  graft::verify::VerifyOptions common;
  common.data = data.runs;
  common.shapes = choice.shapes;
  common.snr_db = options.limit_db;
  const std::unique_ptr<runtime::Engine> limited =
      data.runs.empty() ? runtime::make_comparison_engine(work.engine(), model, choice.shapes)
                        : runtime::make_limited_engine(work.engine());
  quant::ChosenTypes chosen;
  QuantizeReport report;
  // The search measures signal to noise ratios, which hardly change where an index is wrong.
  constexpr std::array<std::size_t, 3> steps_to_keep{4, 12, std::numeric_limits<std::size_t>::max()};
  for (std::size_t attempt = 0;; ++attempt) {
    chosen = choose_types(*limited, model, choice);
    const ValueCheck& check =
        report.check.emplace(check_values(model, chosen.typed.model, common, options.engine, options.watch));
    if (!chosen.met || check.is_good() || !check.report || attempt == steps_to_keep.size()) break;
    work.check_cancelled();
    const bool is_raised = raise_margin(*check.report, choice);
    const bool is_kept = keep_what_decides(model, *check.report, steps_to_keep[attempt], choice);
    if (!is_raised && !is_kept) break;
  }
  report.data_notes = data.notes;
  report.nodes = chosen.reported_nodes(choice.precision);
  report.meets_limits = chosen.met;
  report.limit_db = chosen.limit_db;
  report.notes = std::move(chosen.notes);
  report.outputs = std::move(chosen.outputs);
  report.plain_outputs = std::move(chosen.plain);
  report.inputs = std::move(chosen.inputs);
  report.runs = chosen.runs;
  report.tried_models = chosen.trials;
  report.casts = chosen.typed.casts;
  report.adjusted_constants = std::move(chosen.typed.adjusted);
  report.model = ModelAccess::make(std::move(chosen.typed.model));
  return report;
}

}  // namespace graft::toolkit
