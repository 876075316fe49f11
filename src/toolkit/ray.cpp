// Talks to `python -m graft.ray`, which starts the tasks of Ray and returns their results.
#include "graft/toolkit/ray.hpp"

#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "engine/driver.hpp"
#include "graft/toolkit/operators.hpp"
#include "onnx/temporary_folder.hpp"
#include "runtime/engine.hpp"

namespace graft::toolkit {
namespace {

using nlohmann::json;

/// A Python process (graft.ray) that is connected to a cluster, and the temporary files that it reads.
class RayProcess {
 public:
  RayProcess(const std::string& address, const CancelToken& cancel)
      : session_(driver(), {address},
                 {.on_progress = {}, .on_log = {}, .should_stop = [cancel] { return cancel.is_cancelled(); }}) {}

  [[nodiscard]] json ask(const json& request) {
    try {
      return session_.ask(request);
    } catch (const engine::Interrupted&) {
      throw runtime::Stopped{};
    }
  }

  /// Writes a model to a temporary file for the process and returns the path.
  [[nodiscard]] std::string save(const Model& model) {
    const std::filesystem::path file = folder_.path() / ("model_" + std::to_string(models_++) + ".onnx");
    model.save(file);
    return file.string();
  }

  /// Writes tensors to a temporary .npz file for the process and returns its path, or an empty string if there are no
  /// tensors.
  [[nodiscard]] std::string save(const TensorViews& tensors) {
    if (tensors.empty()) return "";
    const std::filesystem::path file = folder_.path() / "data.npz";
    write_tensors(file, tensors);
    return file.string();
  }

  /// Waits for the result of the next part of the work and returns its bytes, or nothing after the last one.
  [[nodiscard]] std::optional<std::string> next() {
    const json answer = ask(json::object());
    if (!answer.contains("file")) return std::nullopt;
    const std::filesystem::path file = answer.at("file").get<std::string>();
    std::ifstream stream(file, std::ios::binary);
    std::optional<std::string> bytes(std::in_place, std::istreambuf_iterator<char>(stream),
                                     std::istreambuf_iterator<char>());
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    return bytes;
  }

 private:
  static engine::EngineDriver driver() {
    engine::EngineDriver found = engine::find_engine_driver();
    found.module = "graft.ray";
    return found;
  }

  onnx::TemporaryFolder folder_;
  engine::DriverSession session_;
  int models_ = 0;
};

std::string full_path(const std::filesystem::path& path) {
  return path.empty() ? std::string() : std::filesystem::absolute(path).lexically_normal().string();
}

std::string_view word_of(CpuEngine engine) {
  switch (engine) {
    case CpuEngine::automatic: break;
    case CpuEngine::openvino: return "openvino";
    case CpuEngine::onnxruntime: return "onnxruntime";
    case CpuEngine::both: return "both";
  }
  return "auto";
}

json number_or_null(std::optional<double> number) { return number ? json(*number) : json(nullptr); }

/// Starts the work that `request` describes on the samples, with `settings`, on the cluster. Returns a function that
/// waits for the results of the parts into which the cluster divides the samples.
NextPart start(const std::shared_ptr<RayProcess>& process, json request, SampleRange samples, json settings) {
  request["begin"] = samples.begin;
  request["end"] = samples.end;
  request["settings"] = std::move(settings);
  json libraries = json::array();
  for (const LoadedLibrary& library : loaded_libraries()) libraries.push_back(full_path(library.file));
  request["libraries"] = std::move(libraries);
  static_cast<void>(process->ask(request));
  return [process] { return process->next(); };
}

}  // namespace

void calibrate_in_ray(const std::string& address, QuantizeOptions& options) {
  // The options are copied before they get the function, which would otherwise own itself.
  options.int8.parts = [address, options](const CalibrationWork& work) {
    const auto process = std::make_shared<RayProcess>(address, options.watch.cancel);
    json request;
    request["work"] = "calibrate";
    request["models"] = json::array();
    request["models"].push_back(process->save(work.model));
    request["data"] = process->save(options.data_views.empty() ? views_of(options.data) : options.data_views);
    json settings;
    settings["tensors"] = work.tensors;
    settings["precision"] = to_string(options.precision);
    settings["data_files"] = absolute_sources(options.data_files.sources);
    settings["recipe"] = full_path(options.data_files.recipe);
    settings["samples"] = options.int8.samples == 0 ? options.data_files.samples : options.int8.samples;
    settings["engine"] = word_of(options.engine);
    return start(process, std::move(request), work.samples, std::move(settings));
  };
}

void verify_in_ray(const std::string& address, const Model& reference, const Model& candidate, VerifyOptions& options) {
  options.parts = [address, reference, candidate, options](SampleRange runs) {
    const auto process = std::make_shared<RayProcess>(address, options.watch.cancel);
    json request;
    request["work"] = "compare";
    request["models"] = json::array();
    request["models"].push_back(process->save(reference));
    request["models"].push_back(process->save(candidate));
    request["data"] = process->save(options.data_views.empty() ? views_of(options.data) : options.data_views);
    json settings;
    settings["data_files"] = absolute_sources(options.data_files.sources);
    settings["recipe"] = full_path(options.data_files.recipe);
    settings["samples"] = options.data_files.samples;
    settings["relative"] = number_or_null(options.relative);
    settings["absolute"] = number_or_null(options.absolute);
    settings["snr_db"] = number_or_null(options.snr_db);
    settings["engine"] = word_of(options.engine);
    return start(process, std::move(request), runs, std::move(settings));
  };
}

void build_folder_in_ray(const std::string& address, const std::filesystem::path& models,
                         const std::filesystem::path& engines, const std::vector<std::string>& words,
                         const std::function<void(const BuiltEngine&)>& on_built, const CancelToken& cancel) {
  try {
    RayProcess process(address, cancel);
    json request;
    request["work"] = "auto";
    request["models"] = full_path(models);
    request["folder"] = full_path(engines);
    request["words"] = words;
    static_cast<void>(process.ask(request));
    for (json answer = process.ask(json::object()); answer.contains("model"); answer = process.ask(json::object())) {
      on_built({.model = answer.at("model"),
                .engine = answer.at("engine"),
                .succeeded = answer.at("succeeded"),
                .error = answer.at("error")});
    }
  } catch (const runtime::Stopped&) {
    throw Cancelled();
  }
}

}  // namespace graft::toolkit
