// The report of `doctor`: which programs, libraries and devices were found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "graft/report/field.hpp"

namespace graft::report {

/// A GPU that the CUDA driver lists.
struct Gpu {
  std::string name;
  std::string compute_capability;

  static constexpr auto fields() {
    return std::tuple{
        field("name", &Gpu::name, "The name of the GPU."),
        field("compute_capability", &Gpu::compute_capability, "The compute capability of the GPU, such as '8.9'.")};
  }
};

/// Details of a finding. Each kind of finding sets the members that apply to it.
struct Facts {
  std::optional<std::string> version = {};
  std::optional<std::string> path = {};
  std::optional<std::string> minimum = {};
  std::optional<std::string> too_old = {};
  std::optional<std::string> unknown = {};
  std::optional<std::string> install = {};
  std::optional<std::string> executable = {};
  std::optional<std::string> folder = {};
  std::optional<bool> has_toolkit = {};
  std::optional<std::uint64_t> bytes = {};
  std::optional<std::string> cuda_compiler = {};
  std::optional<std::vector<std::string>> cuda_architectures = {};
  std::optional<std::string> tensorrt_headers = {};
  std::optional<std::string> flavor = {};
  std::optional<std::string> module = {};
  std::optional<bool> usable = {};
  std::optional<std::string> reason = {};
  std::optional<bool> builder = {};
  std::optional<bool> parser = {};
  std::optional<bool> plugin_registry = {};
  std::optional<std::vector<std::string>> targets = {};
  std::optional<std::vector<Gpu>> devices = {};
  std::optional<std::string> driver_cuda = {};

  static constexpr auto fields() {
    return std::tuple{
        field_if_any("version", &Facts::version, "The version."),
        field_if_any("path", &Facts::path, "The file or the folder; empty if it was not found."),
        field_if_any("minimum", &Facts::minimum, "The lowest version that can be used."),
        field_if_any("too_old", &Facts::too_old, "The path of a program that is older than the minimum."),
        field_if_any("unknown", &Facts::unknown, "The compiler that is neither g++ nor clang."),
        field_if_any("install", &Facts::install, "The command that installs what is missing."),
        field_if_any("executable", &Facts::executable, "The interpreter of Python."),
        field_if_any("folder", &Facts::folder, "The folder of the package."),
        field_if_any("has_toolkit", &Facts::has_toolkit, "Whether the package has the functions of Graft's wheel."),
        field_if_any("bytes", &Facts::bytes, "The size of the plugin library."),
        field_if_any("cuda_compiler", &Facts::cuda_compiler, "The version of CUDA that compiled the plugin library."),
        field_if_any("cuda_architectures", &Facts::cuda_architectures,
                     "The architectures for which the plugin library has code, in CMake's notation."),
        field_if_any("tensorrt_headers", &Facts::tensorrt_headers,
                     "The version of the TensorRT headers with which the plugin library was compiled."),
        field_if_any("flavor", &Facts::flavor, "'rtx', 'full' or 'lean'."),
        field_if_any("module", &Facts::module, "The name of TensorRT's Python module."),
        field_if_any("usable", &Facts::usable, "Whether the module can be imported."),
        field_if_any("reason", &Facts::reason,
                     "Why the module cannot be imported, or why there is no GPU; otherwise empty."),
        field_if_any("builder", &Facts::builder, "Whether this release of TensorRT builds engines."),
        field_if_any("parser", &Facts::parser, "Whether this release of TensorRT has a parser for ONNX."),
        field_if_any("plugin_registry", &Facts::plugin_registry,
                     "Whether this release of TensorRT has a plugin registry."),
        field_if_any("targets", &Facts::targets, "The GPUs for which this release of TensorRT builds, such as 'sm89'."),
        field_if_any("devices", &Facts::devices, "The GPUs of this machine."),
        field_if_any("driver_cuda", &Facts::driver_cuda, "The newest version of CUDA that the GPU driver supports.")};
  }
};

/// A program, library or device that was searched for.
struct Finding {
  std::string name;
  bool found = false;
  bool needed = false;
  std::string text = {};
  std::string remedy = {};
  Facts facts = {};
  bool for_projects = false;  ///< Whether projects created by `graft new` are compiled with this program or library.

  /// Returns whether the program, library or device is required and was not found.
  [[nodiscard]] bool is_missing() const { return needed && !found; }

  static constexpr auto fields() {
    return std::tuple{
        field("name", &Finding::name,
              "The name of the program, library or device, such as 'plugin library' or 'TensorRT-RTX'."),
        field("found", &Finding::found, "Whether the program, library or device was found and is usable."),
        field("needed", &Finding::needed, "Whether convert, verify and build need the program, library or device."),
        field("text", &Finding::text, "What was found, or why the program, library or device is not usable."),
        field("remedy", &Finding::remedy,
              "The command that installs the program or library; may be empty if it was found."),
        field("facts", &Finding::facts, "Facts about the program, library or device; only those that apply.")};
  }
};

struct DoctorReport {
  std::string version;
  std::vector<Finding> findings;
  std::vector<std::string> tensorrt_warnings = {};  ///< TensorRT's messages while it was started.

  [[nodiscard]] bool is_complete() const { return std::ranges::none_of(findings, &Finding::is_missing); }

  static constexpr Schema schema{"graft doctor", 1, "What was found on this machine, and what is missing."};
  static constexpr auto fields() {
    return std::tuple{
        field("version", &DoctorReport::version, "The version of Graft."),
        field("is_complete", "complete", &DoctorReport::is_complete, "Whether everything that is needed was found."),
        field("findings", &DoctorReport::findings, "The programs, libraries and devices that were searched for.")};
  }
};

}  // namespace graft::report
