// graft verify: two models on the same inputs, compared output by output.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>

#include "cli/dimensions.hpp"
#include "cli/program.hpp"
#include "cli/tensors.hpp"
#include "graph/onnx_io.hpp"
#include "verify/verify_models.hpp"

namespace graft::cli {
namespace {

struct Arguments {
  std::string reference;
  std::string candidate;
  std::vector<std::string> data;
  std::vector<std::string> inputs;
  std::size_t seeds = 3;
  double relative = 0;
  double absolute = 0;
  std::string kernels = "functions";
  const CLI::Option* relative_option = nullptr;
  const CLI::Option* absolute_option = nullptr;
};

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

Json to_json(const OutputReport& output) {
  const Difference& worst = output.worst;
  return {{"reference_name", output.reference_name},
          {"candidate_name", output.candidate_name},
          {"reference_type", output.reference_type},
          {"candidate_type", output.candidate_type},
          {"equal", output.equal()},
          {"failed_runs", output.failed_runs},
          {"worst_run", output.worst_run},
          {"tolerance",
           {{"relative", output.tolerance.relative},
            {"absolute", output.tolerance.absolute},
            {"of_largest", output.tolerance.of_largest}}},
          {"elements", worst.count},
          {"mismatched", worst.mismatched},
          {"max_absolute", number(worst.max_absolute)},
          {"max_relative", number(worst.max_relative)},
          {"excess", number(worst.excess)},
          {"cosine", worst.cosine ? number(*worst.cosine) : Json()},
          {"first_index", worst.first_index},
          {"incomparable", worst.incomparable}};
}

std::string tolerance_text(const Tolerance& tolerance) {
  std::string text = fmt::format("relative {:.2g}", tolerance.relative);
  if (tolerance.of_largest != 0) text += fmt::format(" + {:.2g} of the largest", tolerance.of_largest);
  if (tolerance.absolute != 0) text += fmt::format(" + absolute {:.2g}", tolerance.absolute);
  return text;
}

Exit verify(const Console& console, const Arguments& arguments) {
  VerifyOptions options;
  options.seeds = arguments.seeds;
  options.shapes = parse_shapes("--input", arguments.inputs, false);
  if (!arguments.data.empty()) options.data.push_back(read_tensors("--data", arguments.data));
  if (arguments.relative_option->count() != 0) options.relative = arguments.relative;
  if (arguments.absolute_option->count() != 0) options.absolute = arguments.absolute;
  if (arguments.kernels == "own") options.candidate_kernels = OperatorKernels::own;
  const Model reference = read_onnx(arguments.reference);
  const Model candidate = read_onnx(arguments.candidate);
  Progress progress(console);
  options.progress = [&](std::size_t done, std::size_t total) {
    progress.update(fmt::format("run {} of {}", done, total),
                    total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total));
  };
  const VerifyReport report = verify_models(reference, candidate, options);
  progress.clear();

  Table table;
  Json outputs = Json::array();
  for (const OutputReport& output : report.outputs) {
    const std::string name = output.reference_name == output.candidate_name
                                 ? output.reference_name
                                 : fmt::format("{} / {}", output.reference_name, output.candidate_name);
    table.add({output.equal() ? Cell("same", Colour::good) : Cell("differs", Colour::bad),
               {name, Colour::strong},
               output.reference_type,
               output.worst.to_string()});
    if (!output.equal() || console.verbose)
      table.add({"", "", "", {"allowed: " + tolerance_text(output.tolerance), Colour::faint}});
    outputs.push_back(to_json(output));
  }
  for (const std::string& problem : report.problems) table.add({Cell("differs", Colour::bad), problem});

  const bool equal = report.equal();
  const std::string made_up = arguments.data.empty() ? "made-up inputs" : "the given data";
  std::string inputs;
  for (const std::string& input : report.inputs) inputs += (inputs.empty() ? "" : ", ") + input;
  console.say(fmt::format("{}: {} on {} ({})",
                          equal ? console.paint("the same", Colour::good) : console.paint("not the same", Colour::bad),
                          count_text(report.runs, "run"), made_up, inputs));
  console.say(table);
  console.result({{"equal", equal},
                  {"reference", arguments.reference},
                  {"candidate", arguments.candidate},
                  {"runs", report.runs},
                  {"inputs", report.inputs},
                  {"problems", report.problems},
                  {"outputs", outputs}});
  return equal ? Exit::done : Exit::answer_is_no;
}

}  // namespace

void add_verify(Program& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = program.add_command(
      "verify", "runs two models on the CPU on the same inputs and compares their outputs; exit code 1 if they differ",
      "graft verify digits.onnx digits.graft.onnx --data image=digits_test.npz:images",
      [arguments](const Console& c) { return verify(c, *arguments); });
  command->add_option("REFERENCE", arguments->reference, "the model that is right")->required();
  command->add_option("CANDIDATE", arguments->candidate, "the model to judge")->required();
  command
      ->add_option("--data", arguments->data,
                   "inputs to run with: NAME=FILE.npy, NAME=FILE.npz:ARRAY or FILE.npz; without it inputs are made up")
      ->type_name("TENSOR");
  command->add_option("--input", arguments->inputs, "shape of a made-up input, NAME:1x3x224x224; once for each")
      ->type_name("SHAPE");
  command->add_option("--seeds", arguments->seeds, "runs with made-up inputs (3)")
      ->type_name("N")
      ->check(CLI::Range(1, 10000));
  arguments->relative_option =
      command->add_option("--rtol", arguments->relative, "relative tolerance (what the type's rounding explains)")
          ->type_name("X")
          ->check(CLI::NonNegativeNumber);
  arguments->absolute_option = command
                                   ->add_option("--atol", arguments->absolute,
                                                "absolute tolerance (0; 1 for int8 and uint8 that were quantised)")
                                   ->type_name("X")
                                   ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--kernels", arguments->kernels,
                   "how the candidate's Graft operators are calculated: functions or own (functions)")
      ->type_name("WHICH")
      ->check(CLI::IsMember({"functions", "own"}));
}

}  // namespace graft::cli
