// Chooses the types of nodes, and counts the bytes of weights.
#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "graft/error.hpp"
#include "onnx/check_operators.hpp"
#include "onnx/onnx_io.hpp"
#include "quant/calibration_cache.hpp"
#include "quant/calibration_data.hpp"
#include "toolkit/access.hpp"
#include "toolkit/quantize.hpp"
#include "toolkit/work.hpp"
#include "verify/ends.hpp"

namespace graft::toolkit {
namespace {

std::uint64_t bytes_of_weights(const graft::onnx::Model& model) {
  std::uint64_t bytes = 0;
  for (const onnx::Value* value : model.graph().initializers()) bytes += value->initializer->bytes.size();
  for (const onnx::Node* node : model.graph().nodes()) {
    const auto constant = node->is("Constant") ? node->output()->constant() : std::nullopt;
    if (constant) bytes += constant->bytes.size();
  }
  return bytes;
}

quant::CalibrationData open(const Samples& samples, const graft::onnx::Model& model) {
  if (!samples.path.empty()) return open_calibration_data(samples.path, model, samples.recipe, samples.limit);
  if (samples.tensors.empty()) return {};
  return quant::calibration_data_of(samples.tensors, model, samples.limit, samples.name);
}

}  // namespace

std::optional<quant::ImageRecipe> read_recipe(const std::filesystem::path& file, const std::filesystem::path& data,
                                              const std::string& name) {
  if (file.empty()) return std::nullopt;
  std::error_code problem;
  if (!std::filesystem::is_directory(data, problem)) {
    throw Error(fmt::format("{}: it is for a folder of images; {} is none", name, data.string()));
  }
  return quant::read_image_recipe(file);
}

TypesReport quantize_types(const Model& given, quant::ChooseOptions options, const runtime::TensorMap& data,
                           const std::string& data_name, const Watch& watch, CpuEngine engine) {
  Work work(watch, engine);
  return work.run([&] {
    const onnx::Model& model = model_of(given);
    check_operators(model);
    for (const auto& [name, tensor] : data) graft::quant::check_has_numbers(name, tensor, data_name);
    if (!data.empty()) options.data = verify::split_into_runs(data, model, data_name);
    options.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
      work.report_step(what, done, total);
    };
    TypesReport report;
    report.chosen = choose_types(work.engine(), model, options);
    report.weights = {.before = bytes_of_weights(model), .after = bytes_of_weights(report.chosen.typed.model)};
    return report;
  });
}

Int8Report quantize_int8(const Model& given, graft::quant::Int8Options options, const Samples& samples,
                         const Watch& watch, CpuEngine engine) {
  Work work(watch, engine);
  return work.run([&] {
    const onnx::Model& model = model_of(given);
    check_operators(model);
    options.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
      work.report_step(what, done, total);
    };
    Int8Report report;
    report.chosen = choose_int8(work.engine(), model, open(samples, model), options);
    report.weights = {.before = bytes_of_weights(model), .after = bytes_of_weights(report.chosen.placed.model)};
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
      throw Error(fmt::format("{}: {}", cache_name,
                              is_f8 ? "a calibration cache of TensorRT holds steps of int8, and f8 has none of one size"
                                    : "nothing became int8, so there are no scales"));
    }
    graft::quant::write_calibration_cache(cache, report.chosen.cache);
  }
  return onnx::write_onnx(report.chosen.placed.model, output);
}

}  // namespace graft::toolkit
