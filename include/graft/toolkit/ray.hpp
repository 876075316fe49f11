// Spreads work on data sets and folders over the machines of a Ray cluster, with the Python package of Graft. Every
// machine needs the same version of Graft with Ray (pip install graft-tensorrt[ray]) and sees the files under the same
// paths. `address` is the address of the cluster: "auto" for the one of this machine, "ray://HOST:10001" or
// "HOST:6379".
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "graft/toolkit/export.hpp"
#include "graft/toolkit/quantize.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

/// Sets Int8Options::parts, so that the Ray cluster at `address`, such as "auto" or "ray://HOST:10001", counts the
/// samples of the calibration. Other options must be complete. `quantize` then throws Error (missing_tool) if Python or
/// Ray is not installed or the cluster does not reply.
GRAFT_API void calibrate_in_ray(const std::string& address, QuantizeOptions& options);

/// Sets VerifyOptions::parts, so that the Ray cluster at `address` runs the models. Other options must be complete.
/// `verify` then throws Error (missing_tool) if Python or Ray is not installed or the cluster does not reply.
GRAFT_API void verify_in_ray(const std::string& address, const Model& reference, const Model& candidate,
                             VerifyOptions& options);

/// The engine that build_folder_in_ray built for one network, or the reason why the build failed.
struct BuiltEngine {
  std::string model;
  std::string engine;
  bool succeeded = false;  ///< Whether the engine exists and every check passed.
  std::string error;       ///< The step or the check that failed, or the error; empty if it succeeded.
};

/// Runs the program `graft auto` on a machine of the Ray cluster at `address` for each network in the folder `models`.
/// The engines and their folders of results are written to `engines`, under the names of the networks. `words` is the
/// command line after the name of the command, with {model} and {engine} in place of the files. `on_built` is called
/// after each network. Throws Error if there is no network or two have the same name; Error (missing_tool) if Python or
/// Ray is not installed or the cluster does not reply; Cancelled.
GRAFT_API void build_folder_in_ray(const std::string& address, const std::filesystem::path& models,
                                   const std::filesystem::path& engines, const std::vector<std::string>& words,
                                   const std::function<void(const BuiltEngine&)>& on_built,
                                   const CancelToken& cancel = {});

}  // namespace graft::toolkit
