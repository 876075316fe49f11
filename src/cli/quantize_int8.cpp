// graft quantize --precision int8 or f8: quantizes a model by QuantizeLinear and DequantizeLinear, with scales from
// data or from a cache.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "cli/interrupts.hpp"
#include "cli/metric_command.hpp"
#include "cli/model_arguments.hpp"
#include "cli/page.hpp"
#include "cli/quantize.hpp"
#include "cli/tensors.hpp"
#include "cli/watch.hpp"
#include "graft/error.hpp"
#include "graft/toolkit/import.hpp"
#include "present/html/quantize_int8_page.hpp"
#include "present/json/quantize_json.hpp"
#include "present/text/quantize_text.hpp"
#include "present/text/value_check_text.hpp"
#include "toolkit/files.hpp"
#include "toolkit/quantize.hpp"

namespace graft::cli {
namespace {

/// Whether a value of --data is a path, and not NAME=FILE.
bool is_path(const std::string& text) {
  std::error_code problem;
  return text.find('=') == std::string::npos || std::filesystem::exists(text, problem);
}

toolkit::Samples samples_of(const Console& console, const QuantizeArguments& arguments) {
  toolkit::Samples samples;
  samples.limit = arguments.samples;
  if (arguments.data.size() == 1 && is_path(arguments.data.front())) {
    samples.path = arguments.data.front();
    samples.recipe = toolkit::read_recipe(arguments.recipe, samples.path, "--recipe");
  } else {
    samples.tensors = read_tensors(console, "--data", arguments.data);
  }
  return samples;
}

void check_data(const QuantizeArguments& arguments) {
  if (arguments.data.empty() && arguments.cache.empty()) {
    throw Error(
        fmt::format("--data: {} needs the ranges of real inputs, and synthetic inputs have other ranges\nGive a "
                    "hundred or more inputs from real use, or a calibration cache with --cache",
                    arguments.precision));
  }
  const auto given = [](const Option* option) { return option->count() != 0; };
  if (given(arguments.percentile_option) && !arguments.method.empty() && arguments.method != "percentile") {
    throw Error(fmt::format("--percentile: this option does not apply to --method {}", arguments.method));
  }
  for (const Option* option : {arguments.method_option, arguments.percentile_option}) {
    if (given(option) && !arguments.cache.empty()) {
      throw Error(
          fmt::format("{}: this option does not apply with --cache, which contains the scales", option->get_name()));
    }
  }
  if (!arguments.data.empty()) return;
  for (const Option* option : {arguments.metric_option, arguments.max_drop_option, arguments.limit_option}) {
    if (option->count() == 0) continue;
    throw Error(
        fmt::format("{}: this option needs --data in addition to --cache, to judge single layers", option->get_name()));
  }
}

quant::Int8Options options_of(const Console& console, const QuantizeArguments& arguments) {
  quant::Int8Options options;
  options.type = arguments.precision == "int8" ? quant::EightBits::int8 : quant::EightBits::f8;
  options.thresholds = {
      .method = report::find_threshold_method(arguments.method)
                    .value_or(arguments.percentile_option->count() != 0 ? report::ThresholdMethod::percentile
                                                                        : quant::usual_method(options.type)),
      .percentile = arguments.percentile};
  options.keep = arguments.keep;
  options.only = arguments.only;
  options.state = arguments.state;
  options.judged = arguments.judged;
  const auto improves = [&](std::string_view what) {
    return std::find(arguments.improve.begin(), arguments.improve.end(), what) != arguments.improve.end();
  };
  options.improve = {.equalize = improves("equalize"),
                     .smooth = improves("smooth"),
                     .round = improves("round"),
                     .bias = improves("bias")};
  if (arguments.rest != "f32")
    options.rest = arguments.rest == "bf16" ? verify::Precision::bf16 : verify::Precision::f16;
  if (!arguments.cache.empty()) options.cache = quant::read_calibration_cache(arguments.cache);
  if (arguments.metric_option->count() != 0) options.metric = metric_of(console, arguments.metric);
  if (arguments.limit_option->count() != 0) options.limit_db = arguments.limit;
  if (arguments.max_drop_option->count() != 0) options.max_drop = arguments.max_drop;
  return options;
}

}  // namespace

Exit quantize_int8(const Console& console, const QuantizeArguments& arguments) {
  check_is_onnx(arguments.model);
  check_data(arguments);
  const quant::Int8Options options = options_of(console, arguments);
  check_output(arguments);
  check_report(arguments.report);
  const toolkit::Model model = toolkit::load(arguments.model);
  const toolkit::Samples samples = samples_of(console, arguments);
  Progress progress(console);
  const toolkit::Int8Report report =
      toolkit::quantize_int8(model, options, samples, watch_of(progress), engine_of(arguments.engine));
  const quant::ChosenInt8& chosen = report.chosen;
  present::QuantizedFiles files{.model = arguments.model, .output = arguments.output};
  {
    const DeferInterrupts defer;
    files.data_file = toolkit::write(report, arguments.output, arguments.write_cache, "--write-cache");
  }
  progress.clear();

  const std::string summary = present::int8_summary(report, options);
  console.say(fmt::format("wrote {}: {}", written_text(console, arguments.output, files.data_file), summary));
  console.say(present::int8_text(report, options.metric != nullptr, arguments.explain));
  const std::string verify =
      present::verify_command(report.check, arguments.model, arguments.output, arguments.data, {});
  console.say(present::check_text(report.check, verify));
  if (!report.met()) console.warn(present::missed_int8_text(report, verify));
  if (!arguments.report.empty()) {
    write_report(console, present::int8_page(chosen, files, options, summary), arguments.report);
  }
  console.result(present::int8_json(report, files, options, verify));
  return report.met() ? Exit::done : Exit::answer_is_no;
}

}  // namespace graft::cli
