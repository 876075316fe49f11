// Times operators by running python/graft/bench, and a model by running it in this process.
#include "toolkit/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/executable_folder.hpp"
#include "core/suggest.hpp"
#include "engine/driver.hpp"
#include "graft/error.hpp"
#include "graft/registry.hpp"
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
  for (const char* lib : {"lib", "lib/x86_64-linux-gnu", "lib64"}) {
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
    throw Error(
        fmt::format("{} {}: there is no such operator\n{}", setting_name(Setting::bench_operators), name,
                    meant ? fmt::format("Did you mean {}?", *meant) : "`graft ops` lists them; all selects every one"));
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

using nlohmann::json;

/// Reads a member of an object; a member that is missing or null leaves the value as it is.
template <class T>
void read(const json& object, const char* key, T& value) {
  if (const auto found = object.find(key); found != object.end() && !found->is_null()) found->get_to(value);
}
template <class T>
void read(const json& object, const char* key, std::optional<T>& value) {
  if (const auto found = object.find(key); found != object.end() && !found->is_null()) value = found->get<T>();
}

std::vector<report::CaseTensor> tensors_of(const json& listed) {
  std::vector<report::CaseTensor> tensors;
  for (const json& each : listed) {
    report::CaseTensor& tensor = tensors.emplace_back();
    read(each, "dtype", tensor.dtype);
    read(each, "layout", tensor.layout);
    read(each, "port", tensor.port);
    read(each, "shape", tensor.shape);
  }
  return tensors;
}

void read_times(const json& object, report::PeerTimes& times) {
  read(object, "failed", times.failed);
  read(object, "us", times.us);
  read(object, "warm_us", times.warm_us);
  read(object, "of_copy", times.of_copy);
  read(object, "tflop_s", times.tflop_s);
}

report::CaseTimes case_of(const json& row) {
  report::CaseTimes times;
  read_times(row, times);
  times.attributes.text = row.at("attributes").dump();
  read(row, "bytes", times.bytes);
  read(row, "choose_variant", times.choose_variant);
  read(row, "difference", times.difference);
  read(row, "dtype", times.dtype);
  read(row, "index", times.index);
  times.inputs = tensors_of(row.at("inputs"));
  read(row, "missed", times.missed);
  read(row, "misses", times.misses);
  read(row, "name", times.name);
  read(row, "operations", times.operations);
  read(row, "operator", times.op);
  times.outputs = tensors_of(row.at("outputs"));
  for (const auto& [name, peer] : row.at("peers").items()) read_times(peer, times.peers[name]);
  read(row, "seconds", times.seconds);
  read(row.at("to_reach"), "of_copy", times.to_reach.of_copy);
  read(row.at("to_reach"), "of_eager", times.to_reach.of_eager);
  read(row, "variant", times.variant);
  return times;
}

report::RandomTimes random_of(const json& drawn) {
  report::RandomTimes times;
  read(drawn, "cases", times.cases);
  read(drawn, "seed", times.seed);
  for (const json& row : drawn.at("operators")) {
    report::RandomSpeed& speed = times.operators.emplace_back();
    read(row, "below", speed.below);
    read(row, "cases", speed.cases);
    read(row, "geometric_mean", speed.geometric_mean);
    read(row, "mean_to_reach", speed.mean_to_reach);
    read(row, "operator", speed.op);
    read(row, "reaches", speed.reaches);
    read(row, "worst", speed.worst);
    read(row, "worst_case", speed.worst_case);
    read(row, "worst_peer", speed.worst_peer);
    read(row, "worst_to_reach", speed.worst_to_reach);
  }
  return times;
}

/// Reads the result event of python/graft/bench, whose README lists the members.
report::OperatorTimes times_of(const json& result) {
  report::OperatorTimes times;
  read(result, "copy_gb_s", times.copy_gb_s);
  read(result, "device", times.device);
  read(result, "empty_kernel_us", times.empty_kernel_us);
  read(result, "graft", times.graft);
  read(result, "left_out", times.left_out);
  if (const auto products = result.find("matmul_tflop_s"); products != result.end()) {
    times.matmul_tflop_s.emplace();
    for (const auto& [type, speed] : products->items()) read(*products, type.c_str(), (*times.matmul_tflop_s)[type]);
  }
  read(result, "missing", times.missing);
  read(result, "name", times.name);
  read(result, "onnxruntime", times.onnxruntime);
  if (const auto drawn = result.find("random"); drawn != result.end()) times.random = random_of(*drawn);
  for (const json& row : result.at("results")) times.results.push_back(case_of(row));
  read(result, "seconds", times.seconds);
  read(result, "threads", times.threads);
  read(result, "torch", times.torch);
  read(result, "wrong", times.wrong);
  return times;
}

}  // namespace

report::OperatorTimes bench_operators(const OperatorBench& bench, const Watch& watch) {
  check_operators(bench.operators);
  std::vector<std::string> command = command_of(bench);
  Work work(watch);
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
      return times_of(run_driver(driver, command,
                                 {.on_progress = [&](std::string_view phase, double part) { work.report(part, phase); },
                                  .on_log = bench.on_log,
                                  .should_stop = [&] { return work.is_cancelled(); }}));
    });
  } catch (const engine::Interrupted&) {
    throw Cancelled();
  }
}

report::ModelTimes time_model(const Model& given,
                              const std::map<std::string, std::vector<std::int64_t>, std::less<>>& shapes, double limit,
                              const Watch& watch) {
  Work work(watch);
  return work.run([&] {
    const onnx::Model& model = model_of(given);
    constexpr std::size_t least = 3;
    constexpr std::size_t most = 100;
    verify::InputOptions options;
    for (const auto& [name, shape] : shapes) options.shapes[name] = shape;
    const std::unique_ptr<runtime::CompiledModel> compiled = work.engine().compile(model);
    runtime::TensorMap ignored;
    verify::MadeUpInputs made_up;
    const runtime::TensorMap inputs = made_up.inputs(*compiled, model, options, ignored);
    report::ModelTimes times{.model = given.source(), .shapes = {}, .why_sizes = made_up.why_sizes(), .seconds = {}};
    for (const auto& [name, tensor] : inputs) times.shapes.emplace(name, tensor.dims);
    double total = 0;
    while (times.seconds.size() < most && (times.seconds.size() < least || total < limit)) {
      const auto started = std::chrono::steady_clock::now();
      (void)compiled->run(inputs);
      times.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
      work.report(std::max(static_cast<double>(times.seconds.size()) / most, total / limit),
                  fmt::format("run {}", times.seconds.size()));
      total += times.seconds.back();
    }
    return times;
  });
}

}  // namespace graft::toolkit
