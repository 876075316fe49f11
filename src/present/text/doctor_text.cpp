// A needed thing that is missing has a remedy.
#include "present/text/doctor_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "toolkit/cuda_architectures.hpp"

namespace graft::present {
namespace {

constexpr std::string_view nvcc_name = "nvcc";
constexpr std::string_view nvcc_remedy = "install Graft's wheel with [cuda], or put nvcc on PATH";

std::string joined(const Json& texts) {
  std::string result;
  for (const auto& text : texts) result += (result.empty() ? "" : " ") + text.get<std::string>();
  return result;
}

Finding cpu_engine(const toolkit::Diagnosis& diagnosis) {
  Finding finding{.name = "CPU engine", .found = !diagnosis.cpu_engine.empty(), .needed = true};
  if (finding.found) {
    finding.text = diagnosis.cpu_engine;
    finding.facts["version"] = finding.text.substr(finding.text.find(' ') + 1);
  } else if (!diagnosis.cpu_engine_error.empty()) {
    finding.text = diagnosis.cpu_engine_error + "; nothing can be proven or quantized";
    finding.remedy = "pip install openvino";
  } else {
    finding.text = "this build has no CPU engine: nothing can be proven, verified, quantized or run";
    finding.remedy = "make deps build";
  }
  return finding;
}

/// Returns the finding for ONNX Runtime. It is not needed, because models also run in OpenVINO, which is known to
/// compute more operators wrongly.
Finding reference_engine(const toolkit::Diagnosis& diagnosis) {
  Finding finding{.name = "reference for values", .found = !diagnosis.onnxruntime.empty()};
  if (finding.found) {
    finding.text = diagnosis.onnxruntime + ", which `graft run` and `graft verify` use";
    finding.facts["version"] = diagnosis.onnxruntime.substr(diagnosis.onnxruntime.rfind(' ') + 1);
  } else {
    const std::string& why = diagnosis.onnxruntime_error;
    finding.text = why.substr(0, why.find('\n')) + "; `graft run` and `graft verify` use the CPU engine, and report it";
    finding.remedy = "pip install onnxruntime";
  }
  return finding;
}

Finding plugin_library(const toolkit::Diagnosis& diagnosis) {
  const engine::PluginLibrary& library = diagnosis.plugin_library;
  Finding finding{.name = "plugin library", .found = library.exists, .needed = true};
  finding.facts = {{"path", library.path.string()}};
  if (!library.exists) {
    finding.text = fmt::format("not found: {}", library.path.string());
    if (!diagnosis.with_cuda) {
      finding.text += "; this build does not include CUDA: GRAFT_CUDA=OFF was set, or no nvcc was found";
    }
    finding.remedy =
        "make build, with nvcc on PATH or from `make deps`; until then graft build --plugins never builds what has "
        "functions, and TensorRT-RTX runs no NonZero and no NonMaxSuppression";
    return finding;
  }
  finding.text = fmt::format("{}, {}, {}", library.path.string(), bytes_text(diagnosis.plugin_library_bytes),
                             count_text(diagnosis.operators, "operator"));
  if (diagnosis.with_cuda) {
    finding.text +=
        fmt::format(", compiled with CUDA {} for {}, against the headers of TensorRT {}", diagnosis.cuda_compiler,
                    toolkit::architectures_text(diagnosis.cuda_architectures), diagnosis.tensorrt_headers);
    finding.facts["cuda_compiler"] = diagnosis.cuda_compiler;
    finding.facts["cuda_architectures"] = diagnosis.cuda_architectures;
    finding.facts["tensorrt_headers"] = diagnosis.tensorrt_headers;
  }
  finding.facts["bytes"] = diagnosis.plugin_library_bytes;
  return finding;
}

Finding tensorrt(const Json& flavor) {
  const std::string name = flavor.value("flavor", "");
  Finding finding{.name = name == "rtx"    ? "TensorRT-RTX"
                          : name == "full" ? "TensorRT"
                                           : "TensorRT lean",
                  .found = flavor.value("usable", false)};
  finding.facts = flavor;
  if (!finding.found) {
    finding.text = flavor.value("reason", "");
    finding.remedy = flavor.value("install", "");
    return finding;
  }
  finding.text = flavor.value("version", "");
  finding.text += flavor.value("builder", false) ? ", builds engines" : ", plugin registry only";
  if (flavor.contains("targets") && !flavor["targets"].empty()) finding.text += " for " + joined(flavor["targets"]);
  return finding;
}

Finding gpu(const Json& cuda) {
  Finding finding{.name = "GPU"};
  finding.facts = cuda;
  for (const auto& device : cuda.value("devices", Json::array())) {
    finding.found = true;
    finding.text += fmt::format("{}{}, compute capability {}", finding.text.empty() ? "" : "; ",
                                device.value("name", ""), device.value("compute_capability", ""));
  }
  if (!finding.found) {
    finding.text = fmt::format("none, {}; not needed to convert, verify and build", cuda.value("reason", ""));
  }
  return finding;
}

/// Returns the finding for the package `graft` that the driver's Python imports.
Finding package(const Json& facts) {
  Finding finding{.name = "Python package", .found = facts.value("has_toolkit", false)};
  finding.facts = facts;
  finding.text = fmt::format("graft {} in {}", facts.value("version", ""), facts.value("folder", ""));
  if (!finding.found) finding.text += " builds engines but has no functions, which come with the wheel";
  return finding;
}

/// Adds the tools with which a user's own operators are compiled.
void add_compilers(const Json& compilers, std::vector<Finding>& findings) {
  if (compilers.empty()) return;  // a driver of another version does not list compilers
  const auto add = [&](const char* key, std::string_view name, std::string_view install, std::string_view lacking) {
    const Json facts = compilers.value(key, Json::object());
    const std::string remedy = facts.value("install", std::string(install));
    Finding finding{.name = std::string(name), .remedy = remedy, .facts = facts, .for_projects = true};
    const std::string path = facts.value("path", "");
    const std::string version = facts.value("version", "");
    finding.found = !path.empty();
    if (finding.found) {
      finding.text = version.empty() ? path : fmt::format("{}, {}", version, path);
    } else if (facts.contains("too_old")) {
      finding.text = fmt::format("{} is {}, at least {} is needed", facts.value("too_old", ""), version,
                                 facts.value("minimum", ""));
    } else if (facts.contains("unknown")) {
      finding.text =
          fmt::format("{} is neither g++ nor clang, which are known to compile operators", facts.value("unknown", ""));
    } else {
      finding.text = "not found";
    }
    if (!finding.found) finding.text += fmt::format("; {}: {}", lacking, remedy);
    findings.push_back(std::move(finding));
  };
  constexpr std::string_view whole = "needed only for operators of your own";
  add("compiler", "C++ compiler", "apt-get install g++, or name a newer one in CXX", whole);
  add("cmake", "CMake", "apt-get install cmake", whole);
  add("make", "build tool", "apt-get install make", whole);
  add("eigen", "Eigen", "apt-get install libeigen3-dev", whole);
  add("nvcc", nvcc_name, nvcc_remedy, "needed only for plugins of your own");
}

void add_driver(const toolkit::Diagnosis& diagnosis, std::vector<Finding>& findings) {
  Finding python{.name = "Python", .found = !diagnosis.driver.is_null(), .needed = true};
  if (!python.found) {
    python.text = diagnosis.driver_error.substr(0, diagnosis.driver_error.find('\n'));
    python.remedy = "apt-get install python3 python3-venv, then make deps build";
    findings.push_back(std::move(python));
    return;
  }
  python.facts = diagnosis.driver["python"];
  python.text = fmt::format("{}, {}", python.facts.value("executable", ""), python.facts.value("version", ""));
  findings.push_back(std::move(python));
  findings.push_back(package(diagnosis.driver["package"]));
  const std::size_t first_flavor = findings.size();
  bool can_build = false;
  for (const Json& flavor : diagnosis.driver["flavors"]) {
    findings.push_back(tensorrt(flavor));
    can_build = can_build || (findings.back().found && flavor.value("builder", false));
  }
  // One flavor that builds engines is enough. If no flavor does, the first one is reported as missing.
  if (!can_build) findings[first_flavor].needed = true;
  findings.push_back(gpu(diagnosis.driver["cuda"]));
  add_compilers(diagnosis.driver.value("compilers", Json::object()), findings);
}

/// Returns whether the tools that build a project of `graft new` were found; empty if the driver lists no tools.
std::string project_text(const std::vector<Finding>& findings) {
  std::vector<std::string> missing;
  bool has_nvcc = false;
  bool is_known = false;
  for (const Finding& finding : findings) {
    if (!finding.for_projects) continue;
    is_known = true;
    if (finding.name == nvcc_name) {
      has_nvcc = finding.found;
    } else if (!finding.found) {
      missing.push_back(finding.remedy);
    }
  }
  if (!is_known) return "";
  if (!missing.empty()) {
    return fmt::format("Operators of your own (`graft new`) cannot be built; to build them: {}",
                       fmt::join(missing, "; "));
  }
  return has_nvcc
             ? "Everything is installed to build operators of your own (`graft new`), with plugins."
             : fmt::format("Operators of your own (`graft new`) can be built, but without plugins; for plugins: {}",
                           nvcc_remedy);
}

}  // namespace

std::vector<Finding> findings_of(const toolkit::Diagnosis& diagnosis) {
  std::vector<Finding> findings{cpu_engine(diagnosis), reference_engine(diagnosis), plugin_library(diagnosis)};
  add_driver(diagnosis, findings);
  return findings;
}

bool is_complete(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.needed && !finding.found; });
}

Listing doctor_text(const std::vector<Finding>& findings) {
  Table table;
  Table remedies;
  for (const Finding& finding : findings) {
    const bool missing = !finding.found && finding.needed;
    const Cell mark = finding.found ? Cell("ok", Color::good)
                      : missing     ? Cell("missing", Color::bad)
                                    : Cell("-", Color::faint);
    table.add({mark, {finding.name, Color::strong}, {finding.text, finding.found ? Color::none : Color::faint}});
    if (missing) remedies.add({finding.name, finding.remedy});
  }
  Listing listing;
  listing.add("graft " GRAFT_VERSION);
  listing.add("");
  listing.add(std::move(table));
  listing.add("");
  if (is_complete(findings)) {
    listing.add("Everything is installed to convert, verify and build.");
  } else {
    listing.add("Missing, and how to install it:");
    listing.add(std::move(remedies));
  }
  if (const std::string text = project_text(findings); !text.empty()) listing.add(text);
  return listing;
}

}  // namespace graft::present
