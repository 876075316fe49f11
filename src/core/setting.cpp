// Names of settings for messages: those of the C++ fields, or those that a program has set.
#include "graft/setting.hpp"

#include <atomic>

namespace graft {
namespace {

std::atomic<SettingNames>& current_names() {
  static std::atomic<SettingNames> names = field_name;
  return names;
}

}  // namespace

std::string_view field_name(Setting setting) {
  switch (setting) {
    case Setting::input_shapes: return "ImportOptions::shapes";
    case Setting::kept_outputs: return "ImportOptions::outputs";
    case Setting::rules: return "ConvertOptions::rules";
    case Setting::without_proofs: return "ConvertOptions::prove = false";
    case Setting::cut: return "toolkit::cut";
    case Setting::explanation: return "to_json(ConvertResult)";
    case Setting::data: return "QuantizeOptions::data";
    case Setting::keep: return "QuantizeOptions::keep";
    case Setting::only: return "QuantizeOptions::only";
    case Setting::improve: return "QuantizeOptions::int8.improve";
    case Setting::calibration: return "QuantizeOptions::int8.calibration";
    case Setting::cache: return "QuantizeOptions::int8.cache";
    case Setting::metric: return "QuantizeOptions::int8.metric";
    case Setting::quantize_int8: return "quantize with Precision::int8";
    case Setting::synthetic_shapes: return "VerifyOptions::shapes";
    case Setting::synthetic_ranges: return "VerifyOptions::ranges";
    case Setting::relative_tolerance: return "VerifyOptions::relative";
    case Setting::absolute_tolerance: return "VerifyOptions::absolute";
    case Setting::least_snr: return "VerifyOptions::snr_db";
    case Setting::judge_builder: return "Judge::builder";
    case Setting::inspect_builder: return "inspect with Judge::builder";
    case Setting::reduce: return "InspectOptions::reduce";
    case Setting::trial_seconds: return "InspectOptions::budget.trial_seconds";
    case Setting::max_builds: return "InspectOptions::budget.max_builds";
    case Setting::max_seconds: return "InspectOptions::budget.max_seconds";
    case Setting::targets: return "BuildOptions::targets";
    case Setting::shape_ranges: return "BuildOptions::shapes";
    case Setting::profiles: return "BuildOptions::profiles";
    case Setting::memory: return "BuildOptions::memory";
    case Setting::optimization_level: return "BuildOptions::optimization_level";
    case Setting::input_formats:
    case Setting::output_formats: return "BuildOptions::formats";
    case Setting::timing_cache: return "BuildOptions::timing_cache";
    case Setting::tf32: return "BuildOptions::tf32";
    case Setting::version_compatible: return "BuildOptions::version_compatible";
    case Setting::exclude_lean_runtime: return "BuildOptions::exclude_lean_runtime";
    case Setting::embed_plugins: return "BuildOptions::embed_plugins";
    case Setting::refit: return "BuildOptions::refit";
    case Setting::strip_weights: return "BuildOptions::strip_weights";
    case Setting::weight_streaming: return "BuildOptions::weight_streaming";
    case Setting::dla: return "BuildOptions::dla.core";
    case Setting::gpu_fallback: return "BuildOptions::dla.gpu_fallback";
    case Setting::device: return "BuildOptions::device";
    case Setting::plugin_override: return "BuildOptions::plugin_override";
    case Setting::verbosity: return "BuildOptions::verbosity";
    case Setting::time_limit: return "BuildOptions::time_limit";
    case Setting::without_plugins: return "BuildOptions::plugins = false";
    case Setting::plugin_libraries: return "BuildOptions::plugin_libraries";
    case Setting::operator_libraries: return "toolkit::load_operators";
    case Setting::build_with_library: return "build with BuildOptions::plugin_libraries";
    case Setting::verbose: return "`graft build -v`";
    case Setting::quantize_typed_io: return "quantize with QuantizeOptions::typed_io";
    case Setting::tensorrt: return "BuildOptions::tensorrt";
    case Setting::cpu_engine: return "VerifyOptions::engine";
    case Setting::own_kernels: return "VerifyOptions::own_kernels";
    case Setting::bench_operators: return "OperatorBench::operators";
    case Setting::project_kind: return "NewProject::kind";
    case Setting::project_operator: return "NewProject::operator_name";
  }
  return "";
}

std::string_view setting_name(Setting setting) { return current_names().load()(setting); }

void set_setting_names(SettingNames names) { current_names().store(names); }

}  // namespace graft
