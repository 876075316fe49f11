// The commands of the program that do the same as calls of the toolkit, for reports and messages: ValueCheck::command
// and AutoStep::command contain some.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "graft/report/convert.hpp"
#include "graft/report/inspect.hpp"
#include "graft/toolkit/build.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/quantize.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

/// Returns " --operators LIB" for each loaded library of operators, which a printed command needs as well.
[[nodiscard]] GRAFT_API std::string library_options();

/// Returns the options that select the TensorRT installation and the plugins that it loads.
[[nodiscard]] GRAFT_API std::string tensorrt_options(const report::TrialSettings& settings);

/// Returns the options with which TensorRT is run on a model: shapes, targets and tensorrt_options().
[[nodiscard]] GRAFT_API std::string trial_options(const report::TrialSettings& settings);

/// Returns " --input NAME:SIZES" for each shape, with ? for a dynamic dimension.
[[nodiscard]] GRAFT_API std::string shape_options(const Shapes& shapes);

/// Returns the command that compares two models with these options, quoted for a shell. `data` and `data_views` are
/// ignored, because the command line cannot pass tensors in memory.
[[nodiscard]] GRAFT_API std::string verify_command(const ModelFiles& reference, const std::filesystem::path& candidate,
                                                   const VerifyOptions& options = {});

/// Returns the command that compares the original of a conversion with `candidate`: the file of the result, or the file
/// that names both halves of the result.
[[nodiscard]] GRAFT_API std::string verify_command(const report::ConvertReport& report,
                                                   const std::filesystem::path& candidate);

/// Returns the files of a network and the options with which it is read, as arguments of a command.
[[nodiscard]] GRAFT_API std::string network_arguments(const std::filesystem::path& file, const ImportOptions& import);

/// Returns the command that converts a network with these options, without the loaded libraries of operators
/// (library_options()).
[[nodiscard]] GRAFT_API std::string convert_command(const std::filesystem::path& file, const ImportOptions& import,
                                                    const report::ConvertOptions& options);

/// Returns the command that converts a network with these options and cuts it if nodes remain that TensorRT does not
/// run, with the loaded libraries of operators.
[[nodiscard]] GRAFT_API std::string cut_command(const std::filesystem::path& file, const ImportOptions& import,
                                                const report::ConvertOptions& options);

/// Returns the command that quantizes an ONNX file with these options. Tensors in memory and a metric are ignored,
/// because the command line cannot pass them.
[[nodiscard]] GRAFT_API std::string quantize_command(const std::filesystem::path& file, const QuantizeOptions& options);

/// Returns the command that builds an engine from `model`, which was read from BuildOptions::model_file.
[[nodiscard]] GRAFT_API std::string build_command(const Model& model, const std::filesystem::path& engine,
                                                  const BuildOptions& options);

}  // namespace graft::toolkit
