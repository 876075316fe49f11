// graft run: runs a model on the CPU, reads inputs from NumPy files and writes the outputs to one.
#include "toolkit/run.hpp"

#include <fmt/format.h>

#include <memory>

#include "cli/engine_option.hpp"
#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/program.hpp"
#include "cli/tensors.hpp"
#include "present/text/tensors.hpp"
#include "toolkit/tensor_files.hpp"

namespace graft::cli {
namespace {

struct RunArguments {
  ModelArguments model;
  std::vector<std::string> inputs;
  std::string output;
  std::string kernels = "functions";
  int threads = 0;
  std::string engine = default_engine_name;
};

Exit run(const Console& console, const RunArguments& arguments) {
  toolkit::check_tensor_file(arguments.output);
  check_files_apart({{"-o", arguments.output}}, files_of(arguments.model, tensor_files("--input", arguments.inputs)));
  const runtime::TensorMap inputs = read_tensors(console, "--input", arguments.inputs);
  const toolkit::ModelFiles files{
      .model = arguments.model.model, .weights = arguments.model.weights, .outputs = arguments.model.outputs};
  const auto kernels = arguments.kernels == "own" ? runtime::OperatorKernels::own : runtime::OperatorKernels::functions;
  const toolkit::RunReport report =
      toolkit::run_files(files, inputs, kernels, arguments.threads, engine_of(arguments.engine));
  {
    const DeferInterrupts defer;
    toolkit::write_tensors(arguments.output, report.outputs);
  }
  console.say(fmt::format("wrote {}: {:.0f} ms on the CPU, by {}", console.paint(arguments.output, Color::strong),
                          report.seconds * 1000, report.ran_in));
  for (const std::string& line : report.left_out) console.warn(line);
  console.say(present::outputs_table(report.outputs));
  console.result({{"model", arguments.model.model},
                  {"output", arguments.output},
                  {"kernels", arguments.kernels},
                  {"engine", arguments.engine},
                  {"ran_in", report.ran_in},
                  {"left_out", report.left_out},
                  {"seconds", report.seconds},
                  {"outputs", present::outputs_json(report.outputs)}});
  return Exit::done;
}

}  // namespace

void add_run(Program& program) {
  const auto arguments = std::make_shared<RunArguments>();
  Command* command = program.add_command("run", "runs a model on the CPU",
                                         "graft run digits.onnx --input image=digits_test.npz:images -o outputs.npz",
                                         [arguments](const Console& c) { return run(c, *arguments); });
  add_model_files(*command, arguments->model);
  command
      ->add_option(
          "-i,--input", arguments->inputs,
          "inputs: NAME=FILE.npy, NAME=FILE.npz:ARRAY, or FILE.npz, whose arrays have the names of inputs; repeatable")
      ->type_name("TENSOR");
  command
      ->add_option("-o,--output", arguments->output,
                   "file to write: .npz with an array for each output, or .npy for a single output")
      ->type_name("FILE")
      ->required();
  add_kept_outputs(*command, arguments->model);
  program.add_operators_option(*command);
  command
      ->add_option("--kernels", arguments->kernels,
                   "how Graft's operators are computed: functions (as standard operators) or own (their own CPU "
                   "kernels, in the types of the file) (default: functions)")
      ->type_name("WHICH")
      ->check(one_of({"functions", "own"}));
  add_engine_option(*command, arguments->engine);
  command->add_option("--threads", arguments->threads, "0 uses every core (default: 0)")
      ->type_name("N")
      ->check(at_least(0, "an integer from 0"));
}

}  // namespace graft::cli
