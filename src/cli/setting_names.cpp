// What this program's users know the settings of the toolkit by.
#include "cli/setting_names.hpp"

namespace graft::cli {

std::string_view option_of(Setting setting) {
  switch (setting) {
    case Setting::input_shapes: return "--input";
    case Setting::kept_outputs: return "--keep-output";
    case Setting::rules: return "--rules";
    case Setting::without_proofs: return "--no-prove";
    case Setting::cut: return "graft convert --cut";
    case Setting::explanation: return "--explain";
    case Setting::data: return "--data";
    case Setting::keep: return "--keep";
    case Setting::only: return "--only";
    case Setting::improve: return "--improve";
    case Setting::calibration: return "--method";
    case Setting::cache: return "--cache";
    case Setting::metric: return "--metric";
    case Setting::quantize_int8: return "`graft quantize --precision int8`";
    case Setting::synthetic_shapes: return "--input";
    case Setting::synthetic_ranges: return "--range";
    case Setting::relative_tolerance: return "--rtol";
    case Setting::absolute_tolerance: return "--atol";
    case Setting::least_snr: return "--snr";
    case Setting::judge_builder: return "--probe builder";
    case Setting::inspect_builder: return "graft inspect --probe builder";
    case Setting::reduce: return "--reduce";
    case Setting::trial_seconds: return "--time-limit";
    case Setting::max_builds: return "--max-builds";
    case Setting::max_seconds: return "--max-seconds";
    case Setting::targets: return "--target";
    case Setting::shape_ranges: return "--shapes";
    case Setting::profiles: return "--profile";
    case Setting::memory: return "--memory";
    case Setting::optimization_level: return "--optimization-level";
    case Setting::input_formats: return "--input-format";
    case Setting::output_formats: return "--output-format";
    case Setting::timing_cache: return "--timing-cache";
    case Setting::tf32: return "--tf32";
    case Setting::version_compatible: return "--version-compatible";
    case Setting::exclude_lean_runtime: return "--exclude-lean-runtime";
    case Setting::embed_plugins: return "--embed-plugins";
    case Setting::refit: return "--refit";
    case Setting::strip_weights: return "--strip-weights";
    case Setting::weight_streaming: return "--weight-streaming";
    case Setting::dla: return "--dla";
    case Setting::gpu_fallback: return "--gpu-fallback";
    case Setting::device: return "--device";
    case Setting::plugin_override: return "--plugin-override";
    case Setting::verbosity: return "--profiling-verbosity";
    case Setting::time_limit: return "--time-limit";
    case Setting::without_plugins: return "--plugins never";
    case Setting::plugin_libraries: return "--plugin-lib";
    case Setting::operator_libraries: return "--operators LIB";
    case Setting::build_with_library: return "graft build --plugin-lib LIB.so";
    case Setting::verbose: return "--verbose";
    case Setting::quantize_typed_io: return "`graft quantize MODEL -o OUT --precision f16 --typed-io`";
    case Setting::tensorrt: return "--tensorrt";
    case Setting::cpu_engine: return "--engine";
    case Setting::own_kernels: return "--kernels own";
    case Setting::bench_operators: return "--op";
    case Setting::project_kind: return "--like";
    case Setting::project_operator: return "--operator";
  }
  return toolkit::field_name(setting);
}

}  // namespace graft::cli
