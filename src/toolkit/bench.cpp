// Times operators by running python/graft/bench, and a model by running it in this process.
#include "graft/toolkit/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>

#include "core/executable_folder.hpp"
#include "core/suggest.hpp"
#include "engine/driver.hpp"
#include "engine/read_fields.hpp"
#include "graft/error.hpp"
#include "graft/operator/registry.hpp"
#include "graft/setting.hpp"
#include "onnx/temporary_folder.hpp"
#include "toolkit/access.hpp"
#include "toolkit/timed_models.hpp"
#include "toolkit/work.hpp"
#include "verify/compare/ends.hpp"
#include "verify/inputs/inputs.hpp"

namespace graft::toolkit {
namespace {

namespace fs = std::filesystem;

/// Returns the library with the functions of graft_c.h, relative to the program in a build or an installation: the
/// plugin library, or the library for the CPU in a build without CUDA. Throws Error (missing_tool) for a missing
/// library.
fs::path c_library() {
  const fs::path folder = executable_folder().parent_path();
  std::error_code ignored;
  for (const char* const lib : library_folders) {
    for (const char* name : {"libgraft_plugins.so", "libgraft_c.so"}) {
      fs::path candidate = folder / lib / name;
      if (fs::is_regular_file(candidate, ignored)) return candidate;
    }
  }
  throw Error(Error::Kind::missing_tool, fmt::format("{}: file not found\nBuild it with: make build",
                                                     (folder / "lib" / "libgraft_plugins.so").string()));
}

void check_operators(const std::string& list) {
  std::vector<std::string> known{"all"};
  for (const OperatorType* type : operators()) known.emplace_back(type->name);
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    begin = end + 1;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto meant = nearest(name, known);
    throw Error(fmt::format("{} {}: there is no operator of this name\n{}", setting_name(Setting::bench_operators),
                            name,
                            meant ? fmt::format("Did you mean {}?", *meant)
                                  : "`graft ops` lists the operators; all selects every operator"));
  }
}

std::vector<std::string> command_of(const OperatorBench& bench) {
  std::vector<std::string> command{"--library",     c_library().string(), "--op",
                                   bench.operators, "--device",           bench.device};
  for (const OperatorLibrary& library : operator_libraries())
    command.insert(command.end(), {"--operators", library.file});
  if (!bench.match.empty()) command.insert(command.end(), {"--match", bench.match});
  if (bench.time_limit > 0) command.insert(command.end(), {"--time-limit", fmt::format("{}", bench.time_limit)});
  if (!bench.peers) command.insert(command.end(), {"--peers", "none"});
  if (bench.seed) {
    command.insert(command.end(), {"--random", std::to_string(*bench.seed), "--cases", std::to_string(bench.cases)});
  }
  return command;
}

}  // namespace

OperatorTimes bench_operators(const OperatorBench& bench) {
  check_operators(bench.operators);
  std::vector<std::string> command = command_of(bench);
  Work work(bench.watch);
  try {
    return work.run([&] {
      std::optional<onnx::TemporaryFolder> folder;
      if (bench.device == "cpu" && bench.peers && !bench.seed) {
        folder.emplace();
        write_timed_models(folder->path());
        command.insert(command.end(), {"--models", folder->path().string()});
      }
      engine::EngineDriver driver = engine::find_engine_driver();
      driver.module = "graft.bench";
      if (bench.on_log) bench.on_log("command", driver.command_text());
      return engine::read_fields<OperatorTimes>(
          run_driver(driver, command,
                     {.on_progress = [&](std::string_view phase, double part) { work.report(part, phase); },
                      .on_log = bench.on_log,
                      .should_stop = [&] { return work.is_cancelled(); }}));
    });
  } catch (const engine::Interrupted&) {
    throw Cancelled();
  }
}

ModelTimes bench_model(const Model& given, const ModelBench& bench) {
  Work work(bench.watch);
  return work.run([&] {
    const onnx::Model& model = model_of(given);
    constexpr std::size_t least = 3;
    constexpr std::size_t most = 100;
    verify::InputOptions options;
    options.shapes = {bench.shapes.begin(), bench.shapes.end()};
    const std::unique_ptr<runtime::CompiledModel> compiled = work.engine().compile(model);
    runtime::TensorMap ignored;
    verify::MadeUpInputs made_up;
    const runtime::TensorMap inputs = made_up.inputs(*compiled, model, options, ignored);
    ModelTimes times{.model = given.source(), .shapes = {}, .why_sizes = made_up.why_sizes(), .seconds = {}};
    for (const auto& [name, tensor] : inputs) times.shapes.emplace(name, tensor.dims);
    double total = 0;
    while (times.seconds.size() < most && (times.seconds.size() < least || total < bench.time_limit)) {
      const auto started = std::chrono::steady_clock::now();
      (void)compiled->run(inputs);
      times.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
      work.report(std::max(static_cast<double>(times.seconds.size()) / most, total / bench.time_limit),
                  fmt::format("run {}", times.seconds.size()));
      total += times.seconds.back();
    }
    return times;
  });
}

}  // namespace graft::toolkit
