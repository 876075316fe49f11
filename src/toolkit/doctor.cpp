// `diagnose`: starts each engine and records its version, or why it does not start.
#include "graft/toolkit/doctor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/bytes_text.hpp"
#include "engine/plugin_library.hpp"
#include "engine/read_fields.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "runtime/default_engine.hpp"
#include "toolkit/cpu_engines.hpp"
#include "toolkit/cuda_architectures.hpp"
#include "toolkit/engine_driver.hpp"

namespace graft::toolkit {
namespace {

using report::Facts;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Finding cpu_engine() {
  Finding finding{.name = "CPU engine", .needed = true};
  const runtime::Engine& engine = runtime::default_engine();
  try {
    finding.found = engine.can_run();
    if (finding.found) {
      finding.text = engine.name();
      finding.facts.version = finding.text.substr(finding.text.find(' ') + 1);
    } else {
      finding.text = "this build has no CPU engine: nothing can be proven, verified, quantized or run";
      finding.remedy = "make deps build";
    }
  } catch (const Error& error) {
    finding.found = false;
    finding.text = fmt::format("{}; nothing can be proven or quantized", error.what());
    finding.remedy = "pip install openvino";
  }
  return finding;
}

/// Returns what `graft doctor` reports about ONNX Runtime. ONNX Runtime is optional: without it, models run in
/// OpenVINO, but OpenVINO is known to compute more operators wrongly.
Finding reference_engine() {
  Finding finding{.name = "reference for values"};
  try {
    const std::string name(engine_of(CpuEngine::onnxruntime, Purpose::values).name());
    finding.found = true;
    finding.text = name + ", which `graft run` and `graft verify` use";
    finding.facts.version = name.substr(name.rfind(' ') + 1);
  } catch (const Error& error) {
    finding.text = first_line(error.what()) + "; `graft run` and `graft verify` use the CPU engine, and report it";
    finding.remedy = "pip install onnxruntime";
  }
  return finding;
}

Finding plugin_library() {
  const engine::PluginLibrary library = engine::own_plugin_library();
  const std::string path = library.path.string();
  Finding finding{.name = "plugin library", .found = library.exists, .needed = true};
  finding.facts.path = path;
  if (!library.exists) {
    finding.text = "not found: " + path;
#if !GRAFT_WITH_CUDA
    finding.text += "; this build does not include CUDA: GRAFT_CUDA=OFF was set, or no nvcc was found";
#endif
    finding.remedy = fmt::format(
        "make build, with nvcc on PATH or from `make deps`; until then graft build {} builds Graft's operators from "
        "their ONNX functions, and TensorRT-RTX runs no NonZero and no NonMaxSuppression",
        setting_name(Setting::without_plugins));
    return finding;
  }
  std::error_code ignored;
  const std::uint64_t bytes = std::filesystem::file_size(library.path, ignored);
  finding.facts.bytes = bytes;
  finding.text = fmt::format("{}, {}, {} operators", path, bytes_text(bytes), operators().size());
#if GRAFT_WITH_CUDA
  finding.facts.cuda_compiler = GRAFT_CUDA_VERSION;
  finding.facts.cuda_architectures = cuda_architectures();
  finding.facts.tensorrt_headers = GRAFT_TENSORRT_VERSION;
  finding.text += fmt::format(", compiled with CUDA {} for {}, against the headers of TensorRT {}", GRAFT_CUDA_VERSION,
                              architectures_text(cuda_architectures()), GRAFT_TENSORRT_VERSION);
  if (const std::vector<std::string> without = targets_without_code(); !without.empty()) {
    finding.text += fmt::format("; plugins do not run on {}", fmt::join(without, ", "));
  }
#endif
  return finding;
}

Finding tensorrt(const nlohmann::json& flavor) {
  Finding finding{.name = {}, .facts = engine::read_fields<Facts>(flavor)};
  const Facts& facts = finding.facts;
  finding.name = facts.flavor == "rtx" ? "TensorRT-RTX" : facts.flavor == "full" ? "TensorRT" : "TensorRT lean";
  finding.found = facts.usable.value_or(false);
  if (!finding.found) {
    finding.text = facts.reason.value_or("");
    finding.remedy = facts.install.value_or("");
    return finding;
  }
  finding.text = facts.version.value_or("");
  finding.text += facts.builder.value_or(false) ? ", builds engines" : ", plugin registry only";
  if (facts.targets && !facts.targets->empty()) finding.text += fmt::format(" for {}", fmt::join(*facts.targets, " "));
  return finding;
}

Finding gpu(const nlohmann::json& cuda) {
  Finding finding{.name = "GPU", .facts = engine::read_fields<Facts>(cuda)};
  for (const report::Gpu& device : finding.facts.devices.value_or(std::vector<report::Gpu>())) {
    finding.found = true;
    finding.text += fmt::format("{}{}, compute capability {}", finding.text.empty() ? "" : "; ", device.name,
                                device.compute_capability);
  }
  if (!finding.found) {
    finding.text = fmt::format("none, {}; not needed to convert, verify and build", finding.facts.reason.value_or(""));
  }
  return finding;
}

/// Returns what `graft doctor` reports about the Python package `graft`, as the Python of the engine driver imports it.
Finding python_package(const nlohmann::json& package) {
  Finding finding{.name = "Python package", .facts = engine::read_fields<Facts>(package)};
  finding.found = finding.facts.has_toolkit.value_or(false);
  finding.text = fmt::format("graft {} in {}", finding.facts.version.value_or(""), finding.facts.folder.value_or(""));
  if (!finding.found) finding.text += " builds engines but has no Python functions, which Graft's wheel contains";
  return finding;
}

/// Adds a finding for each tool that compiles a user's own operators, from the list of compilers that the engine driver
/// returned.
void add_compilers(const nlohmann::json& compilers, std::vector<Finding>& findings) {
  if (compilers.empty()) return;  // a driver of another version does not list compilers
  const auto add = [&](const char* key, const char* name, const char* install, std::string_view lacking) {
    Finding finding{.name = name,
                    .facts = engine::read_fields<Facts>(compilers.value(key, nlohmann::json::object())),
                    .for_projects = true};
    const Facts& facts = finding.facts;
    const std::string path = facts.path.value_or("");
    const std::string version = facts.version.value_or("");
    finding.remedy = facts.install.value_or(install);
    finding.found = !path.empty();
    if (finding.found) {
      finding.text = version.empty() ? path : fmt::format("{}, {}", version, path);
    } else if (facts.too_old) {
      finding.text =
          fmt::format("{} is {}, at least {} is needed", *facts.too_old, version, facts.minimum.value_or(""));
    } else if (facts.unknown) {
      finding.text = fmt::format("{} is neither g++ nor clang, which are known to compile operators", *facts.unknown);
    } else {
      finding.text = "not found";
    }
    if (!finding.found) finding.text += fmt::format("; {}: {}", lacking, finding.remedy);
    findings.push_back(std::move(finding));
  };
  constexpr std::string_view whole = "needed only for operators of your own";
  add("compiler", "C++ compiler", "apt-get install g++, or set CXX to a newer compiler", whole);
  add("cmake", "CMake", "apt-get install cmake", whole);
  add("make", "build tool", "apt-get install make", whole);
  add("eigen", "Eigen", "apt-get install libeigen3-dev", whole);
  add("nvcc", "nvcc", "install Graft's wheel with [cuda], or put nvcc on PATH", "needed only for plugins of your own");
}

/// Returns the reply to the driver's command `probe`. If the driver does not run, the result in the reply is null, and
/// `why` is set.
engine::EngineAnswer run_probe(const DoctorOptions& options, std::string& why) {
  try {
    return ask_engine_driver({"probe"}, {}, options.on_log, options.watch);
  } catch (const Cancelled&) {
    throw;
  } catch (const EngineError& error) {
    if (error.failure().kind == "resource") throw;  // the error does not show whether TensorRT is installed
    why = error.failure().message;
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::bad_input) throw;
    why = error.what();
  }
  return {};
}

void add_driver(const DoctorOptions& options, DoctorReport& report) {
  std::vector<Finding>& findings = report.findings;
  std::string why;
  engine::EngineAnswer answer = run_probe(options, why);
  report.tensorrt_warnings = std::move(answer.warnings);
  const nlohmann::json& driver = answer.result;
  Finding python{.name = "Python", .found = !driver.is_null(), .needed = true};
  if (!python.found) {
    python.text = first_line(why);
    python.remedy = "apt-get install python3 python3-venv, then make deps build";
    findings.push_back(std::move(python));
    return;
  }
  python.facts = engine::read_fields<Facts>(driver.at("python"));
  python.text = fmt::format("{}, {}", python.facts.executable.value_or(""), python.facts.version.value_or(""));
  findings.push_back(std::move(python));
  findings.push_back(python_package(driver.at("package")));
  const std::size_t first_flavor = findings.size();
  bool can_build = false;
  for (const nlohmann::json& flavor : driver.at("flavors")) {
    const Finding& finding = findings.emplace_back(tensorrt(flavor));
    can_build = can_build || (finding.found && finding.facts.builder.value_or(false));
  }
  // One flavor that builds engines is enough. If no flavor does, the first one is reported as missing.
  if (!can_build) findings[first_flavor].needed = true;
  findings.push_back(gpu(driver.at("cuda")));
  add_compilers(driver.value("compilers", nlohmann::json::object()), findings);
}

}  // namespace

DoctorReport diagnose(const DoctorOptions& options) {
  DoctorReport report{.version = GRAFT_VERSION, .findings = {cpu_engine(), reference_engine(), plugin_library()}};
  add_driver(options, report);
  return report;
}

}  // namespace graft::toolkit
