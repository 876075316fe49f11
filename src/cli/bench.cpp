// graft bench: the speed of operators beside PyTorch's, and of a model on the CPU.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/bench_models.hpp"
#include "cli/dimensions.hpp"
#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "core/suggest.hpp"
#include "engine/driver.hpp"
#include "engine/temporary_folder.hpp"
#include "graft/error.hpp"
#include "graft/registry.hpp"
#include "import/read_model.hpp"
#include "present/html/bench_page.hpp"
#include "runtime/default_engine.hpp"
#include "verify/ends.hpp"
#include "verify/inputs.hpp"

namespace graft::cli {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string model;
  std::string op;
  std::string device;
  std::string match;
  std::string report;
  std::vector<std::string> inputs;
  double time_limit = 0;
  std::optional<std::uint32_t> seed;
  std::uint32_t cases = 0;
  bool without_peers = false;
};

/// Beside the program, as it is built or installed.
fs::path c_library() {
  const fs::path folder = executable_folder().parent_path();
  std::error_code ignored;
  for (const char* lib : {"lib", "lib/x86_64-linux-gnu", "lib64"}) {
    fs::path candidate = folder / lib / "libgraft_c.so";
    if (fs::is_regular_file(candidate, ignored)) return candidate;
  }
  throw Error(Error::Kind::missing_tool,
              fmt::format("{}: not there\nBuild it with: make build", (folder / "lib" / "libgraft_c.so").string()));
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
    throw Error(fmt::format("--op {}: there is no such operator\n{}", name,
                            meant ? fmt::format("Did you mean {}?", *meant) : "`graft ops` lists them; or: all"));
  }
}

nlohmann::json ask_bench(const Console& console, const std::vector<std::string>& arguments) {
  EngineDriver driver = find_engine_driver();
  driver.module = "graft.bench";
  console.detail(fmt::format("{} -m {}", driver.python.string(), driver.module));
  Progress progress(console);
  return run_driver(driver, arguments,
                    {.on_progress = [&](std::string_view phase, double part) { progress.update(phase, part); },
                     .on_log =
                         [&](std::string_view /*severity*/, std::string_view message) {
                           if (console.verbose) progress.clear();
                           console.detail(message);
                         },
                     .should_stop = interrupted});
}

std::string number(const nlohmann::json& object, const char* key, const char* form) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number() ? "" : fmt::format(fmt::runtime(form), found->get<double>());
}

/// How random problems compare with the fastest peer, operator by operator.
void say_random(const Console& console, const nlohmann::json& drawn) {
  if (drawn["operators"].empty()) return;  // no peer was timed
  console.print();
  console.print(fmt::format("Speed beside the fastest peer, of random problems of seed {}:", drawn["seed"].dump()));
  Table table;
  table.add({{"operator", Color::faint},
             {"cases", Color::faint},
             {"geometric mean", Color::faint},
             {"worst", Color::faint},
             {"below", Color::faint},
             {"worst case", Color::faint}});
  for (const auto& row : drawn["operators"]) {
    const bool reaches = row["reaches"].get<bool>();
    table.add({{row.value("operator", ""), reaches ? Color::none : Color::caution},
               row["cases"].dump(),
               fmt::format("{} of {}", number(row, "geometric_mean", "{:.2f}"), number(row, "mean_to_reach", "{:.2f}")),
               fmt::format("{} of {}", number(row, "worst", "{:.2f}"), number(row, "worst_to_reach", "{:.2f}")),
               row["below"].dump(),
               row.value("worst_case", "")});
  }
  console.print(table);
}

void say_results(const Console& console, const nlohmann::json& result) {
  const bool on_gpu = result.value("device", "") == "cuda";
  std::string line = result.value("name", "");
  if (result.contains("torch")) line += ", PyTorch " + result.value("torch", "");
  if (result.contains("onnxruntime")) line += ", ONNX Runtime " + result.value("onnxruntime", "");
  line += fmt::format(", a copy moves {} GB/s", number(result, "copy_gb_s", "{:.1f}"));
  if (on_gpu) line += fmt::format(", an empty kernel takes {} us", number(result, "empty_kernel_us", "{:.2f}"));
  console.print(line);
  for (const auto& missing : result.value("missing", nlohmann::json::array())) {
    console.print(fmt::format("{} is not installed: left out", missing.get<std::string>()));
  }
  console.print();
  Table table;
  table.add({{"case", Color::faint},
             {"kernel", Color::faint},
             {"us", Color::faint},
             {"warm us", Color::faint},
             {"of copy", Color::faint},
             {"TFLOP/s", Color::faint},
             {"beside it, us", Color::faint}});
  for (const auto& row : result["results"]) {
    if (row.contains("failed")) {
      table.add({row.value("name", ""), {"failed", Color::bad}, "", "", "", "", row.value("failed", "")});
      continue;
    }
    std::string peers;
    for (const auto& [name, peer] : row["peers"].items()) {
      const std::string figure = peer.contains("failed") ? "failed" : number(peer, "us", "{:.1f}");
      peers += fmt::format("{}{} {}", peers.empty() ? "" : ", ", name, figure);
    }
    table.add({{row.value("name", ""), row["misses"].empty() ? Color::none : Color::caution},
               row.value("variant", ""),
               number(row, "us", "{:.1f}"),
               on_gpu ? number(row, "warm_us", "{:.1f}") : "",
               number(row, "of_copy", "{:.2f}"),
               number(row, "tflop_s", on_gpu ? "{:.0f}" : "{:.3f}"),
               peers});
  }
  console.print(table);
  Table misses;
  for (const auto& row : result["results"]) {
    std::string text;
    for (const auto& miss : row["misses"]) text += (text.empty() ? "" : "; ") + miss.get<std::string>();
    if (on_gpu && !text.empty()) misses.add({row.value("name", ""), text});
  }
  // Of random problems the summary says it, of the rest it would be long.
  if (!misses.empty() && !result.contains("random")) {
    console.print();
    console.print("Falls short:");
    console.print(misses);
  }
  if (result.contains("random")) say_random(console, result["random"]);
  if (const std::size_t count = result["left_out"].size(); count != 0) {
    console.print();
    console.print(fmt::format("{} not timed: the time limit was reached", count_text(count, "case")));
  }
}

Exit bench_operators(const Console& console, const Arguments& arguments) {
  check_operators(arguments.op);
  const std::string device = arguments.device.empty() ? "cuda" : arguments.device;
  std::vector<std::string> command{"--library", c_library().string(), "--op", arguments.op, "--device", device};
  if (!arguments.match.empty()) command.insert(command.end(), {"--match", arguments.match});
  if (arguments.time_limit > 0) {
    command.insert(command.end(), {"--time-limit", fmt::format("{}", arguments.time_limit)});
  }
  if (arguments.without_peers) command.insert(command.end(), {"--peers", "none"});
  if (arguments.seed) {
    command.insert(command.end(),
                   {"--random", std::to_string(*arguments.seed), "--cases", std::to_string(arguments.cases)});
  }

  const DeferInterrupts defer;
  std::optional<TemporaryFolder> folder;
  if (device == "cpu" && !arguments.without_peers && !arguments.seed) {
    folder.emplace();
    write_timed_models(folder->path());
    command.insert(command.end(), {"--models", folder->path().string()});
  }
  nlohmann::json result = ask_bench(console, command);
  say_results(console, result);
  if (!arguments.report.empty()) write_report(console, present::page_of_operators(result), arguments.report);
  const bool wrong = !result["wrong"].empty();
  for (const auto& name : result["wrong"]) {
    console.warn(fmt::format("{}: failed, or differs from what is beside it", name.get<std::string>()));
  }
  result.erase("event");
  result.erase("command");
  console.result(result);
  return wrong ? Exit::answer_is_no : Exit::done;
}

Exit bench_model(const Console& console, const Arguments& arguments) {
  if (arguments.device == "cuda") {
    throw Error("--device cuda: a model is timed on the CPU only\nLeave it out, or time an operator: --op NAME");
  }
  check_is_onnx(arguments.model);
  const Model model = read_model(arguments.model);
  InputOptions options;
  for (const auto& [name, shape] : parse_shapes("--input", arguments.inputs, false)) options.shapes[name] = shape;
  const std::unique_ptr<runtime::CompiledModel> compiled = runtime::default_engine().compile(model);
  TensorMap ignored;
  MadeUpInputs made_up;
  const TensorMap inputs = made_up.inputs(*compiled, model, options, ignored);
  constexpr std::size_t most = 100;
  const double limit = arguments.time_limit > 0 ? arguments.time_limit : 5;
  std::vector<double> times;
  Progress progress(console);
  double total = 0;
  while (times.size() < most && (times.size() < 3 || total < limit)) {
    const auto started = std::chrono::steady_clock::now();
    (void)compiled->run(inputs);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
    progress.update(fmt::format("run {}", times.size()),
                    std::max(static_cast<double>(times.size()) / most, total / limit));
    total += times.back();
  }
  progress.clear();
  if (!arguments.report.empty()) {
    std::vector<report::Fact> ends;
    for (const auto& [name, tensor] : inputs)
      ends.push_back({"input", fmt::format("{}: {}", name, fmt::join(tensor.dims, "x"))});
    write_report(console, present::page_of_model(arguments.model, times, ends), arguments.report);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  console.print(fmt::format("{}: {:.3f} ms on the CPU, {:.1f} runs a second ({}, fastest {:.3f} ms, slowest {:.3f} ms)",
                            arguments.model, median * 1e3, 1 / median, count_text(times.size(), "run"),
                            times.front() * 1e3, times.back() * 1e3));
  if (!made_up.why_sizes().empty()) console.say(made_up.why_sizes());
  Json shapes = Json::object();
  for (const auto& [name, tensor] : inputs) shapes[name] = tensor.dims;
  console.result({{"model", arguments.model},
                  {"device", "cpu"},
                  {"inputs", shapes},
                  {"why_sizes", made_up.why_sizes()},
                  {"runs", times.size()},
                  {"median_ms", median * 1e3},
                  {"fastest_ms", times.front() * 1e3},
                  {"slowest_ms", times.back() * 1e3},
                  {"runs_a_second", 1 / median}});
  return Exit::done;
}

Exit bench(const Console& console, const Arguments& arguments) {
  if (arguments.op.empty() == arguments.model.empty()) {
    throw Error("graft bench takes a MODEL or --op NAME\n`graft bench --help` shows what there is");
  }
  if (arguments.seed && arguments.op.empty()) {
    throw Error("--random: a model has no random problems\nAdd --op all, or --op NAME");
  }
  check_files_apart(report_files(arguments.report), {{"the model itself", arguments.model}});
  check_report(arguments.report);
  return arguments.op.empty() ? bench_model(console, arguments) : bench_operators(console, arguments);
}

}  // namespace

void add_bench(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_command(
      "bench", "times operators beside PyTorch, against the bandwidth of a copy, or a model on the CPU",
      "graft bench --op L2Normalize --device cuda --report speed.html",
      [arguments](const Console& c) { return bench(c, *arguments); });
  command->add_option("MODEL", arguments->model, "an ONNX model, timed on the CPU with synthetic inputs");
  command->add_option("--op", arguments->op, "an operator, several joined by commas, or all")->type_name("NAME");
  command
      ->add_option("--device", arguments->device,
                   "cuda: every type, beside PyTorch eager and torch.compile; cpu: small cases in f32, reference "
                   "kernels beside PyTorch and ONNX Runtime where those are installed (cuda; of a model cpu)")
      ->type_name("DEVICE")
      ->check(CLI::IsMember({"cuda", "cpu"}));
  CLI::Option* random =
      command
          ->add_option("--random", arguments->seed,
                       "random problems of this seed instead of the listed ones, from the ranges beside each "
                       "operator's cases; prints the geometric mean and the worst case beside the fastest peer")
          ->type_name("SEED");
  command->add_option("--cases", arguments->cases, "random problems of each operator (60)")
      ->type_name("N")
      ->default_val(60)
      ->needs(random)
      ->check(CLI::PositiveNumber);
  command->add_option("--match", arguments->match, "only the cases whose name contains this")->type_name("TEXT");
  command->add_flag("--no-peers", arguments->without_peers, "Graft's kernels alone");
  command->add_option("--input", arguments->inputs, "shape of a model's input, NAME:1x3x224x224; once for each")
      ->type_name("SHAPE");
  command
      ->add_option("--time-limit", arguments->time_limit, "begin nothing new after this many seconds (none; model: 5)")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  add_report_option(*command, arguments->report, "bar charts and every figure");
  program.add_operators_option(*command);
}

}  // namespace graft::cli
