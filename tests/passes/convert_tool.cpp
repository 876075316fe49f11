// convert_tool - converts models for tests that run them in other runtimes.
//
// Usage: convert_tool [--unproven] auto|always|never|guarded[,...] OUT_FOLDER MODEL.onnx...
//        convert_tool lowerings
// With --unproven every rewrite is accepted, so that the other runtime alone judges it; proofs take most of the time.
// Each of several modes has a folder of its name in OUT_FOLDER; models that several modes run are compiled once.
// A refused model is a line `MODEL.onnx: message` on standard error, and the tool continues. Each lowering is a line on
// standard output, with tabs: the model's name, "lowered", "rejected" or "not lowered", the operator and the message.
// `lowerings` lists all of them: operator, refused form, replacement, conditions.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/onnx_io.hpp"
#include "passes/lowering/lowering.hpp"
#include "passes/pipeline.hpp"
#include "runtime/default_engine.hpp"
#include "tests/support/recent_engine.hpp"

namespace {

using graft::report::RewriteReport;

constexpr std::string_view lowering_pass = "lower_to_native";

void print_rewrites(const std::string& model, const char* what, const std::vector<graft::report::Rewrite>& rewrites) {
  for (const graft::report::Rewrite& rewrite : rewrites) {
    if (rewrite.pass != lowering_pass || rewrite.nodes.empty()) continue;
    std::printf("%s\t%s\t%s\t%s; %s; %s\n", model.c_str(), what, rewrite.nodes.front().op.c_str(),
                rewrite.replacement.c_str(), rewrite.reason.c_str(), rewrite.proof.c_str());
  }
}

void print_lowerings_of(const std::string& model, const RewriteReport& report) {
  print_rewrites(model, "lowered", report.rewrites);
  print_rewrites(model, "rejected", report.rejected);
  for (const graft::report::NearMiss& note : report.near_misses) {
    if (note.pass != lowering_pass) continue;
    std::printf("%s\tnot lowered\t%s\t%s\n", model.c_str(), note.node.op.c_str(), note.reason.c_str());
  }
}

void list_lowerings() {
  for (const graft::passes::Lowering& lowering : graft::passes::lowerings()) {
    const auto print = [](std::string_view text, char end) {
      std::printf("%.*s%c", static_cast<int>(text.size()), text.data(), end);
    };
    if (!lowering.domain.empty())
      std::printf("%.*s::", static_cast<int>(lowering.domain.size()), lowering.domain.data());
    print(lowering.op_type, '\t');
    print(lowering.refused, '\t');
    print(lowering.form, '\t');
    print(lowering.needs, '\n');
  }
}

std::vector<std::string> split(std::string_view modes) {
  std::vector<std::string> result;
  for (;;) {
    const std::size_t comma = modes.find(',');
    result.emplace_back(modes.substr(0, comma));
    if (comma == std::string_view::npos) return result;
    modes.remove_prefix(comma + 1);
  }
}

}  // namespace

int main(int count, char** arguments) {
  using graft::report::Plugins;
  if (count == 2 && std::string_view(arguments[1]) == "lowerings") {
    list_lowerings();
    return 0;
  }
  const bool is_proven = count < 2 || std::string_view(arguments[1]) != "--unproven";
  if (!is_proven) {
    --count;
    ++arguments;
  }
  if (count < 4) {
    std::fprintf(stderr,
                 "usage: convert_tool [--unproven] auto|always|never|guarded[,...] OUT_FOLDER MODEL.onnx...\n"
                 "       convert_tool lowerings\n");
    return 2;
  }
  const std::vector<std::string> modes = split(arguments[1]);
  const std::filesystem::path folder = arguments[2];
  const graft::test::RecentEngine engine(graft::runtime::default_engine());
  int refused = 0;
  for (int i = 3; i < count; ++i) {
    const std::filesystem::path path = arguments[i];
    for (const std::string& mode : modes) {
      try {
        graft::onnx::Model model = graft::onnx::read_onnx(path);
        graft::passes::ConvertOptions options;
        options.prove = is_proven;
        options.plugins = mode == "always" ? Plugins::always : mode == "never" ? Plugins::never : Plugins::automatic;
        if (mode == "guarded") options.guards = {"guard_grid_sample"};
        print_lowerings_of(path.filename().string(), graft::passes::convert(engine, model, options));
        graft::onnx::write_onnx(model, (modes.size() == 1 ? folder : folder / mode) / path.filename());
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", path.c_str(), error.what());
        ++refused;
      }
    }
  }
  return refused == 0 ? 0 : 1;
}
