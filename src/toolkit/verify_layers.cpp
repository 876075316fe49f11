// `verify_layers`: compares two models by all their tensors, and writes the smallest part that shows the difference.
#include "graft/toolkit/verify_layers.hpp"

#include <fmt/format.h>

#include <utility>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "toolkit/access.hpp"
#include "toolkit/compare_models.hpp"
#include "toolkit/tensors.hpp"
#include "verify/localize/layers.hpp"

namespace graft::toolkit {
namespace {

ReducedModels public_models(verify::ReducedCase reduced) {
  std::vector<std::string> left_out;
  std::erase_if(reduced.inputs, [&](const auto& input) {
    const auto& [name, tensor] = input;
    if (is_tensor_type(tensor.type)) return false;
    left_out.push_back(fmt::format("{} ({})", name, onnx::to_string(tensor.type)));
    return true;
  });
  return {.reference = ModelAccess::make(std::move(reduced.reference)),
          .candidate = ModelAccess::make(std::move(reduced.candidate)),
          .inputs = to_public(reduced.inputs, "input"),
          .left_out = std::move(left_out)};
}

}  // namespace

LayersResult verify_layers(const Model& reference, const Model& candidate, const VerifyOptions& options,
                           std::optional<Precision> emulated) {
  const graft::onnx::Model& before = model_of(reference);
  const graft::onnx::Model& after = model_of(candidate);
  if (emulated == Precision::f8)
    throw Error(
        "verify_layers: found Precision::f8; the emulated type must be Precision::f16, Precision::bf16 or "
        "Precision::int8");
  if (options.parts) {
    throw Error(fmt::format("{0}: verify_layers runs in one process; only `verify` is spread\nRemove {0}",
                            setting_name(Setting::verify_parts)));
  }
  graft::verify::VerifyOptions inner = engine_options(options);
  std::vector<std::string> notes = read_given_data(options, before, after, inner);
  verify::LayerReport found;
  run_comparison(before, after, inner, options.engine, options.watch, {},
                 [&](Work& work, const runtime::Engine& engine) -> report::ComparedModels& {
                   graft::verify::VerifyOptions layers = inner;
                   layers.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
                     work.report_step(what, done, total);
                   };
                   found = compare_layers(engine, before, after, layers, emulated);
                   // One run shows where the models differ. The verdict `same` needs as many runs as in `verify`;
                   // otherwise the two functions could contradict each other.
                   if (emulated || found.verdict() != report::Verdict::same) return found;
                   inner.progress = [&](const std::string& /*what*/, std::size_t done, std::size_t total) {
                     work.report_step("comparing outputs for other inputs", done, total);
                   };
                   inner.checks_definitions = true;
                   const report::VerifyReport outputs = verify_models(engine, before, after, inner);
                   if (layers.seeds == 0) layers.seeds = graft::verify::usual_seeds;
                   if (!outputs.equal()) found = compare_layers(engine, before, after, layers);
                   if (found.problems.empty()) found.problems = outputs.problems;
                   found.own_definitions = outputs.own_definitions;
                   found.unreached = outputs.unreached;
                   found.large_integers = outputs.large_integers;
                   return found;
                 });
  found.data_notes = std::move(notes);
  std::optional<ReducedModels> reduced;
  if (found.reduced) reduced = public_models(std::move(*found.reduced));
  return {static_cast<report::LayersReport&&>(found), candidate, std::move(reduced)};
}

report::ReducedFiles reduced_files(const std::filesystem::path& candidate) {
  if (candidate.extension() != ".onnx") {
    throw Error(fmt::format("{} {}: a reduced model is written as ONNX\nChoose a name that ends in .onnx",
                            setting_name(Setting::reduce), candidate.string()));
  }
  const auto sibling = [&](const char* end) {
    return std::filesystem::path(candidate).replace_extension(end).string();
  };
  return {.candidate = candidate.string(),
          .reference = sibling(".reference.onnx"),
          .inputs = sibling(".npz"),
          .command = {}};
}

void save_reduced(LayersResult& result, const std::filesystem::path& candidate) {
  report::ReducedFiles files = reduced_files(candidate);
  if (!result.reduced) return;
  result.reduced->candidate.save(files.candidate);
  if (result.failure) {
    files.reference.clear();
  } else {
    result.reduced->reference.save(files.reference);
  }
  if (result.reduced->inputs.empty()) {
    files.inputs.clear();
  } else {
    write_npz(files.inputs, result.reduced->inputs);
  }
  result.reduced_files = std::move(files);
}

}  // namespace graft::toolkit
