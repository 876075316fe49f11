// graft quantize --precision f16 or bf16: writes a typed model from an f32 model, and reports why each node has its
// type.
#include <fmt/format.h>

#include "cli/dimensions.hpp"
#include "cli/interrupts.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/quantize.hpp"
#include "cli/tensors.hpp"
#include "cli/watch.hpp"
#include "graft/error.hpp"
#include "graft/toolkit/import.hpp"
#include "present/html/quantize_page.hpp"
#include "present/json/quantize_json.hpp"
#include "present/text/quantize_text.hpp"
#include "present/text/value_check_text.hpp"
#include "toolkit/files.hpp"
#include "toolkit/quantize.hpp"

namespace graft::cli {
namespace {

/// Returns the precision of a name; "f16" and "fp16" are the same.
verify::Precision precision_of(const std::string& name) {
  return name == "bf16" ? verify::Precision::bf16 : verify::Precision::f16;
}

quant::ChooseOptions options_of(const QuantizeArguments& arguments) {
  quant::ChooseOptions options;
  options.precision = precision_of(arguments.precision);
  options.typed_io = arguments.typed_io;
  options.keep = arguments.keep;
  options.only = arguments.only;
  options.shapes = parse_shapes("--input", arguments.inputs, false);
  if (arguments.limit_option->count() != 0) options.limit_db = arguments.limit;
  return options;
}

}  // namespace

Exit quantize_types(const Console& console, const QuantizeArguments& arguments) {
  check_is_onnx(arguments.model);
  const quant::ChooseOptions options = options_of(arguments);
  const runtime::TensorMap data = read_tensors(console, "--data", arguments.data);
  const bool has_data = !arguments.data.empty();
  if (has_data && !arguments.inputs.empty()) {
    throw Error(
        "--input: this option sets the shape of synthetic inputs, which --data replaces\nRemove one of the two "
        "options");
  }
  check_output(arguments);
  check_report(arguments.report);
  const toolkit::Model model = toolkit::load(arguments.model);
  Progress progress(console);
  const toolkit::TypesReport report =
      toolkit::quantize_types(model, options, data, "--data", watch_of(progress), engine_of(arguments.engine));
  const quant::ChosenTypes& chosen = report.chosen;
  present::QuantizedFiles files{.model = arguments.model, .output = arguments.output};
  {
    const DeferInterrupts defer;
    files.data_file = toolkit::write(report, arguments.output);
  }
  progress.clear();

  const std::string summary = present::types_summary(report, options.precision);
  console.say(fmt::format("wrote {}: {}", written_text(console, arguments.output, files.data_file), summary));
  console.say(present::types_text(report, options.precision, has_data, arguments.explain));
  const std::string verify =
      present::verify_command(report.check, arguments.model, arguments.output, arguments.data, arguments.inputs);
  console.say(present::check_text(report.check, verify));
  if (!report.met()) console.warn(present::missed_types_text(report, verify));
  if (!arguments.report.empty()) {
    write_report(console, present::types_page(chosen, files, options.precision, has_data, summary), arguments.report);
  }
  console.result(present::types_json(report, files, options.precision, has_data, verify));
  return report.met() ? Exit::done : Exit::answer_is_no;
}

}  // namespace graft::cli
