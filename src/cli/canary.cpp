// graft canary: writes a folder with a script that finds the first node that the TensorRT of a GPU machine computes
// wrongly.
#include "graft/toolkit/canary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/program.hpp"
#include "cli/watch.hpp"
#include "graft/error.hpp"
#include "graft/toolkit/cut.hpp"
#include "present/json/fields.hpp"

namespace graft::cli {
namespace {

struct CanaryArguments {
  ModelArguments model;
  std::string folder;
  toolkit::DataFiles data;
  std::vector<std::string> libraries;
  std::size_t seeds = 0;
};

Exit write_canary(const Console& console, const CanaryArguments& arguments) {
  toolkit::check_is_one_network(arguments.model.model);
  toolkit::CanaryOptions options;
  options.data_files = arguments.data;
  if (!options.data_files.empty() && arguments.seeds != 0) {
    throw Error("--seeds: this option creates synthetic inputs, which --data replaces\nRemove --seeds or --data");
  }
  const TypedShapes shapes = parse_shapes(shapes_option, arguments.model.shapes, false);
  options.shapes = {shapes.begin(), shapes.end()};
  Progress progress(console);
  options.plugin_libraries = {arguments.libraries.begin(), arguments.libraries.end()};
  if (arguments.seeds != 0) options.seeds = arguments.seeds;
  options.watch = watch_of(progress);
  const DeferInterrupts defer;
  const report::CanaryReport report =
      toolkit::write_canary(load_model(arguments.model, options.shapes, arguments.data), arguments.folder, options);
  progress.clear();
  for (const std::string& note : report.data_notes) console.note(note);
  const std::string folder = report.folder.string();
  console.say(fmt::format("wrote {}: {} to compare in each of {}, {} of them outputs",
                          console.paint(folder, Color::strong), count_text(report.tensors.size(), "tensor"),
                          count_text(report.runs, "run"), report.output_count()));
  for (const report::CanaryOmission& omission : report.left_out) {
    const std::string text = fmt::format("not compared: '{}': {}", omission.tensor, omission.why);
    if (omission.is_output) {
      console.warn(fmt::format("{}; the model in {} does not return it", text, folder));
    } else {
      console.detail(text);
    }
  }
  console.say(
      fmt::format("\nNext, on the machine with the GPU, in a Python environment with NumPy, TensorRT and PyTorch or "
                  "cuda-python\n  {}",
                  fmt::join(report.next(), "\n  ")));
  console.result(present::json_of_report(report));
  return Exit::done;
}

}  // namespace

void add_canary(Program& program) {
  const auto arguments = std::make_shared<CanaryArguments>();
  Command* command = program.add_command(
      "canary",
      "writes a folder to copy to a machine with a GPU: the model, inputs, the CPU's values of every tensor, and a "
      "script that builds the model with TensorRT there and names the first node whose result is wrong",
      "graft canary digits.onnx -o canary --data image=digits_test.npz:images",
      [arguments](const Console& c) { return write_canary(c, *arguments); });
  add_model_files(*command, arguments->model);
  command->add_option("-o,--output", arguments->folder, "folder to create")->type_name("FOLDER")->required();
  add_data(*command, data_option, arguments->data, "inputs (default: synthetic inputs)");
  command
      ->add_option(shapes_option, arguments->model.shapes, "shape of a synthetic input, NAME:1x3x224x224; repeatable")
      ->type_name("SHAPE");
  command->add_option("--seeds", arguments->seeds, "number of runs with synthetic inputs (default: 1)")
      ->type_name("N")
      ->check(range(1, 1000));
  add_kept_outputs(*command, arguments->model);
  program.add_operators_option(*command);
  command
      ->add_option("--plugin-lib", arguments->libraries,
                   "shared library with TensorRT plugins, which is copied into the folder; repeatable. With one, "
                   "Graft's operators run as plugins, otherwise as TensorRT's own layers")
      ->type_name("LIB");
}

}  // namespace graft::cli
