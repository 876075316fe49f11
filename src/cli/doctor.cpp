// graft doctor: what is installed and usable, and what is missing.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "cli/engine_command.hpp"
#include "cli/program.hpp"
#include "engine/driver.hpp"
#include "engine/plugin_library.hpp"
#include "graft/error.hpp"
#include "graft/registry.hpp"
#include "runtime/default_engine.hpp"

namespace graft::cli {
namespace {

/// One thing that was looked for.
struct Finding {
  std::string name;
  bool found = false;
  bool needed = false;  ///< For the main job: convert, verify, build.
  std::string text = {};
  std::string remedy = {};  ///< What to type where it is missing.
  Json facts = Json::object();
};

std::string joined(const nlohmann::json& texts) {
  std::string result;
  for (const auto& text : texts) result += (result.empty() ? "" : " ") + text.get<std::string>();
  return result;
}

Finding openvino() {
  Finding finding{.name = "CPU engine", .needed = true};
  const runtime::Engine& engine = runtime::default_engine();
  finding.found = engine.can_run();
  if (finding.found) {
    finding.text = engine.name();
    finding.facts["version"] = finding.text.substr(finding.text.find(' ') + 1);
  } else {
    finding.text = "this build has none: nothing can be proven, verified, quantized or run";
    finding.remedy = "make deps build";
  }
  return finding;
}

Finding plugin_library() {
  const PluginLibrary library = own_plugin_library();
  Finding finding{.name = "plugin library", .found = library.exists, .needed = true};
  finding.facts = {{"path", library.path.string()}};
  if (!library.exists) {
    finding.text = fmt::format("not there: {}", library.path.string());
#if !GRAFT_WITH_CUDA
    finding.text += "; this build is one without CUDA: GRAFT_CUDA=OFF was set, or no nvcc was found";
#endif
    finding.remedy = "make build, with nvcc on PATH or from `make deps`; until then: graft build --plugins never";
    return finding;
  }
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(library.path, ignored);
  finding.text =
      fmt::format("{}, {}, {}", library.path.string(), bytes_text(bytes), count_text(operators().size(), "operator"));
#if GRAFT_WITH_CUDA
  finding.text += ", compiled with CUDA " GRAFT_CUDA_VERSION " against the headers of TensorRT " GRAFT_TENSORRT_VERSION;
  finding.facts["cuda_compiler"] = GRAFT_CUDA_VERSION;
  finding.facts["tensorrt_headers"] = GRAFT_TENSORRT_VERSION;
#endif
  finding.facts["bytes"] = bytes;
  return finding;
}

Finding tensorrt(const nlohmann::json& flavor) {
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

Finding gpu(const nlohmann::json& cuda) {
  Finding finding{.name = "GPU"};
  finding.facts = cuda;
  for (const auto& device : cuda.value("devices", nlohmann::json::array())) {
    finding.found = true;
    finding.text += fmt::format("{}{}, compute capability {}", finding.text.empty() ? "" : "; ",
                                device.value("name", ""), device.value("compute_capability", ""));
  }
  if (!finding.found) {
    finding.text = fmt::format("none, {}; not needed to convert, verify and build", cuda.value("reason", ""));
  }
  return finding;
}

std::vector<Finding> from_driver(const Console& console) {
  std::vector<Finding> findings;
  Finding python{.name = "Python", .needed = true};
  nlohmann::json probe;
  try {
    probe = ask_engine_driver(console, {"probe"});
  } catch (const Error& error) {
    const std::string message = error.what();
    python.text = message.substr(0, message.find('\n'));
    python.remedy = "apt-get install python3 python3-venv, then make deps build";
    findings.push_back(std::move(python));
    return findings;
  }
  python.found = true;
  python.facts = probe["python"];
  python.text = fmt::format("{}, {}", probe["python"].value("executable", ""), probe["python"].value("version", ""));
  findings.push_back(std::move(python));
  bool can_build = false;
  for (const auto& flavor : probe["flavors"]) {
    findings.push_back(tensorrt(flavor));
    can_build = can_build || (findings.back().found && flavor.value("builder", false));
  }
  // Any one flavor that builds is enough; the first that could be installed is then what is missing.
  if (!can_build) findings[1].needed = true;
  findings.push_back(gpu(probe["cuda"]));
  return findings;
}

Exit doctor(const Console& console) {
  std::vector<Finding> findings{openvino(), plugin_library()};
  for (Finding& finding : from_driver(console)) findings.push_back(std::move(finding));

  Table table;
  Table remedies;
  bool complete = true;
  Json listed = Json::array();
  for (const Finding& finding : findings) {
    const bool missing = !finding.found && finding.needed;
    complete = complete && !missing;
    const Cell mark = finding.found ? Cell("ok", Color::good)
                      : missing     ? Cell("missing", Color::bad)
                                    : Cell("-", Color::faint);
    table.add({mark, {finding.name, Color::strong}, {finding.text, finding.found ? Color::none : Color::faint}});
    if (missing) remedies.add({finding.name, finding.remedy});
    listed.push_back({{"name", finding.name},
                      {"found", finding.found},
                      {"needed", finding.needed},
                      {"text", finding.text},
                      {"remedy", finding.remedy},
                      {"facts", finding.facts}});
  }
  console.print("graft " GRAFT_VERSION);
  console.print();
  console.print(table);
  console.print();
  if (complete) {
    console.print("Everything is there to convert, verify and build.");
  } else {
    console.print("Missing, and what to type:");
    console.print(remedies);
  }
  console.result({{"version", GRAFT_VERSION}, {"complete", complete}, {"findings", listed}});
  return complete ? Exit::done : Exit::missing_tool;
}

}  // namespace

void add_doctor(Program& program) {
  program.add_command("doctor", "what is installed and usable, and what is missing", "graft doctor", doctor);
}

}  // namespace graft::cli
