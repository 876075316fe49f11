// graft run: runs a model on the CPU, reads inputs from NumPy files and writes the outputs to one.
#include "graft/toolkit/run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/engine_option.hpp"
#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/program.hpp"
#include "graft/error.hpp"
#include "graft/report/run.hpp"
#include "graft/toolkit/cut.hpp"
#include "present/json/fields.hpp"
#include "present/text/tensors.hpp"

namespace graft::cli {
namespace {

constexpr auto input_option = "--input";

struct RunArguments {
  ModelArguments model;
  toolkit::DataFiles data;
  std::string output;
  std::string kernels = "functions";
  int threads = 0;
  std::string engine = default_engine_name;
};

/// Compiles the model. The two halves of a cut network are compiled one by one.
toolkit::Session compile(const RunArguments& arguments, const toolkit::Model& model) {
  const toolkit::SessionOptions options{.threads = arguments.threads,
                                        .own_kernels = arguments.kernels == "own",
                                        .engine = engine_of(arguments.engine),
                                        .watch = {}};
  if (toolkit::is_cut_network(arguments.model.model))
    return toolkit::Session(toolkit::load_cut(arguments.model.model), options);
  return toolkit::Session(model, options);
}

/// Throws Error, before minutes of work, for a name that ends neither in .npz nor in .npy.
void check_output(const std::filesystem::path& output) {
  if (output.extension() == ".npz" || output.extension() == ".npy") return;
  throw Error(fmt::format(
      "-o {}: results are written as NumPy files\nChoose a name that ends in .npz, or in .npy for one output",
      output.string()));
}

Exit run(const Console& console, const RunArguments& arguments) {
  check_output(arguments.output);
  check_files_apart({{"-o", arguments.output}}, files_of(arguments.model, files_of(input_option, arguments.data)));
  const toolkit::Model model = load_model(arguments.model, {}, arguments.data);
  const toolkit::DataRuns data = toolkit::read_data(arguments.data, model);
  for (const std::string& note : data.notes) console.note(note);
  toolkit::Session session = compile(arguments, model);
  const auto started = std::chrono::steady_clock::now();
  const toolkit::Tensors outputs = session.run_data(data);
  report::RunReport report{.model = arguments.model.model,
                           .output = arguments.output,
                           .kernels = arguments.kernels,
                           .engine = arguments.engine,
                           .ran_in = session.ran_in(),
                           .left_out = session.left_out(),
                           .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(),
                           .data_notes = data.notes,
                           .runs = data.runs.size(),
                           .outputs = {}};
  for (const auto& [name, tensor] : outputs) {
    report.outputs.push_back({.name = name, .type = to_string(tensor.dtype), .shape = tensor.shape});
  }
  {
    const DeferInterrupts defer;
    toolkit::write_tensors(arguments.output, toolkit::views_of(outputs));
  }
  console.say(fmt::format("wrote {}: {:.0f} ms on the CPU, by {}", console.paint(arguments.output, Color::strong),
                          report.seconds * 1000, report.ran_in));
  for (const std::string& line : report.left_out) console.warn(line);
  console.say(present::outputs_table(report.outputs));
  console.result(present::json_of_report(report));
  return Exit::done;
}

}  // namespace

void add_run(Program& program) {
  const auto arguments = std::make_shared<RunArguments>();
  Command* command = program.add_command("run", "runs a model on the CPU",
                                         "graft run digits.onnx --input image=digits_test.npz:images -o outputs.npz",
                                         [arguments](const Console& c) { return run(c, *arguments); });
  add_model_files(*command, arguments->model);
  add_data(*command, "-i,--input", arguments->data, "inputs");
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
  command->add_option("--threads", arguments->threads, "number of CPU threads; 0 uses every core (default: 0)")
      ->type_name("N")
      ->check(at_least(0, "an integer of at least 0"));
}

}  // namespace graft::cli
