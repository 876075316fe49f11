// A TensorRT engine from a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/progress.hpp"

namespace graft::toolkit {

/// The shapes of a dynamic input that an engine is built for.
struct ShapeRange {
  std::vector<std::int64_t> smallest;
  std::vector<std::int64_t> usual;  ///< What the engine is tuned for.
  std::vector<std::int64_t> largest;
};

struct BuildOptions {
  std::vector<std::string> targets = {};          ///< GPU generations, "sm89"; empty: the GPU of this machine.
  std::map<std::string, ShapeRange> shapes = {};  ///< By dynamic input.
  bool plugins = true;  ///< False: nodes of Graft become native layers, from their ONNX functions.
  std::vector<std::filesystem::path> plugin_libraries =
      {};                         ///< Beside Graft's own, which is loaded where it is needed.
  std::string tensorrt = "auto";  ///< Which TensorRT: "auto", "rtx" or "full".
  Watch watch = {};
};

/// A layer of the engine that is a plugin.
struct PluginLayer {
  std::string node;  ///< The name of the model's node.
  std::string plugin;
  std::string version;
};

struct BuildResult {
  std::uint64_t bytes = 0;  ///< Of the engine's file.
  double seconds = 0;
  std::string tensorrt;  ///< "TensorRT-RTX 1.7.1.116"
  std::vector<std::string> targets;
  std::size_t layers = 0;
  std::vector<PluginLayer> plugins;
  std::vector<std::string> warnings;  ///< TensorRT's own.
};

/// Builds an engine with the TensorRT that is installed, through its Python bindings, in a process of its own: a crash
/// of TensorRT is an Error. TensorRT-RTX needs no GPU. The file is written whole or not at all. The interpreter is that
/// of the environment's GRAFT_PYTHON, else that of Graft's build, else python3. Throws Error (missing_tool) where
/// Python, TensorRT or the plugin library is not there, Error (answer_is_no) with TensorRT's reasons where it refuses
/// the model, Error (bad_input) for options that it does not take; Cancelled.
[[nodiscard]] GRAFT_API BuildResult build(const Model& model, const std::filesystem::path& engine,
                                          const BuildOptions& options = {});

}  // namespace graft::toolkit
