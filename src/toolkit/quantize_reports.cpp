// Chooses the types of nodes, compares the result with the model, and counts the bytes of weights.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "graft/error.hpp"
#include "inspect/tensorrt_support.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/count_nodes.hpp"
#include "onnx/node_ref.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/schema.hpp"
#include "quant/calibrate/calibration_cache.hpp"
#include "quant/calibrate/calibration_data.hpp"
#include "quant/plan/typed.hpp"
#include "runtime/budget.hpp"
#include "toolkit/access.hpp"
#include "toolkit/quantize.hpp"
#include "toolkit/work.hpp"
#include "verify/compare/ends.hpp"

namespace graft::toolkit {
namespace {

/// Whether the result of a node is a discontinuous function of its inputs, so that rounding before it may change it.
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
      const std::string reason =
          fmt::format("{} is computed from it, and a small change of a number can change its result completely",
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

quant::CalibrationData open(const Samples& samples, const graft::onnx::Model& model) {
  if (!samples.path.empty()) return open_calibration_data(samples.path, model, samples.recipe, samples.limit);
  if (samples.tensors.empty()) return {};
  return quant::calibration_data_of(samples.tensors, model, samples.limit, samples.name);
}

/// Returns the data with which the result is compared: the given tensors, as `graft verify --data` uses them, or
/// `judged` samples where the data are a folder or too large for a single run.
std::vector<runtime::TensorMap> data_to_judge_by(const Samples& samples, const quant::CalibrationData& calibration,
                                                 std::int64_t judged) {
  constexpr std::size_t most_bytes = std::size_t{1} << 26;
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : samples.tensors) bytes += tensor.bytes.size();
  if (!samples.tensors.empty() && bytes <= most_bytes) return {samples.tensors};
  std::vector<runtime::TensorMap> data;
  const std::int64_t count = std::clamp<std::int64_t>(judged, 1, calibration.count);
  for (std::int64_t i = 0; i < count; ++i) data.push_back(calibration.sample(i * calibration.count / count));
  return data;
}

}  // namespace

std::optional<quant::ImageRecipe> read_recipe(const std::filesystem::path& file, const std::filesystem::path& data,
                                              const std::string& name) {
  if (file.empty()) return std::nullopt;
  std::error_code problem;
  if (!std::filesystem::is_directory(data, problem)) {
    throw Error(fmt::format("{}: it applies only to a folder of images; {} is not a folder", name, data.string()));
  }
  return quant::read_image_recipe(file);
}

TypesReport quantize_types(const Model& given, quant::ChooseOptions options, const runtime::TensorMap& data,
                           const std::string& data_name, const Watch& watch, CpuEngine engine) {
  Work work(watch, engine);
  return work.run([&] {
    const onnx::Model& model = model_of(given);
    check_nodes(model);
    for (const auto& [name, tensor] : data) graft::quant::check_has_numbers(name, tensor, data_name);
    if (!data.empty()) options.data = verify::split_into_runs(data, model, data_name);
    options.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
      work.report_step(what, done, total);
    };
    options.refusal = inspect::rule_against;
    TypesReport report;
    graft::verify::VerifyOptions common;
    if (!data.empty()) common.data.push_back(data);
    common.shapes = options.shapes;
    common.snr_db = options.limit_db;
    const std::unique_ptr<runtime::Engine> limited =
        data.empty() ? runtime::make_comparison_engine(work.engine(), model, options.shapes)
                     : runtime::make_limited_engine(work.engine());
    // The search measures signal to noise ratios, which hardly change where an index is wrong.
    constexpr std::array<std::size_t, 3> steps_to_keep{4, 12, std::numeric_limits<std::size_t>::max()};
    for (std::size_t attempt = 0;; ++attempt) {
      report.chosen = choose_types(*limited, model, options);
      report.check = check_values(model, report.chosen.typed.model, common, engine, watch);
      if (report.met() || !report.chosen.met || !report.check.report || attempt == steps_to_keep.size()) break;
      work.check_cancelled();
      const bool is_raised = raise_margin(*report.check.report, options);
      const bool is_kept = keep_what_decides(model, *report.check.report, steps_to_keep[attempt], options);
      if (!is_raised && !is_kept) break;
    }
    report.weights = {.before = onnx::bytes_of_weights(model),
                      .after = onnx::bytes_of_weights(report.chosen.typed.model)};
    return report;
  });
}

Int8Report quantize_int8(const Model& given, graft::quant::Int8Options options, const Samples& samples,
                         const Watch& watch, CpuEngine engine) {
  Work work(watch, engine);
  return work.run([&] {
    const onnx::Model& model = model_of(given);
    check_nodes(model);
    options.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
      work.report_step(what, done, total);
    };
    options.refusal = inspect::rule_against;
    Int8Report report;
    const quant::CalibrationData calibration = open(samples, model);
    const std::unique_ptr<runtime::Engine> limited = calibration.count == 0
                                                         ? runtime::make_comparison_engine(work.engine(), model, {})
                                                         : runtime::make_limited_engine(work.engine());
    report.chosen = choose_int8(*limited, model, calibration, options);
    const bool has_own_judge = options.metric || options.max_drop;
    if (calibration.count != 0 && !has_own_judge) {
      graft::verify::VerifyOptions common;
      common.data = data_to_judge_by(samples, calibration, options.judged);
      common.snr_db = options.limit_db;
      report.check = check_values(model, report.chosen.placed.model, common, engine, watch);
    }
    report.weights = {.before = onnx::bytes_of_weights(model),
                      .after = onnx::bytes_of_weights(report.chosen.placed.model)};
    return report;
  });
}

std::optional<std::filesystem::path> write(const TypesReport& report, const std::filesystem::path& output) {
  return onnx::write_onnx(report.chosen.typed.model, output);
}

std::optional<std::filesystem::path> write(const Int8Report& report, const std::filesystem::path& output,
                                           const std::filesystem::path& cache, const std::string& cache_name) {
  if (!cache.empty()) {
    if (report.chosen.cache.entries.empty()) {
      const bool is_f8 = report.chosen.plan.type == quant::EightBits::f8;
      throw Error(fmt::format(
          "{}: {}", cache_name,
          is_f8 ? "a calibration cache of TensorRT contains steps of int8, and the steps of f8 differ in size"
                : "no tensor became int8, so there are no scales"));
    }
    graft::quant::write_calibration_cache(cache, report.chosen.cache);
  }
  return onnx::write_onnx(report.chosen.placed.model, output);
}

}  // namespace graft::toolkit
