// Names of settings in messages: a field in C++, an option of a program, or a keyword in Python.
#pragma once

#include <cstdint>
#include <string_view>

namespace graft {

/// The settings and functions that messages name.
enum class Setting : std::uint8_t {
  input_shapes,
  kept_outputs,
  rules,
  without_proofs,
  cut,
  explanation,
  data,
  keep,
  only,
  improve,
  calibration,
  cache,
  metric,
  quantize_int8,
  synthetic_shapes,
  synthetic_ranges,
  relative_tolerance,
  absolute_tolerance,
  least_snr,
  judge_builder,
  inspect_builder,
  reduce,
  trial_seconds,
  max_builds,
  max_seconds,
  targets,
  shape_ranges,
  profiles,
  memory,
  optimization_level,
  input_formats,
  output_formats,
  timing_cache,
  tf32,
  version_compatible,
  exclude_lean_runtime,
  embed_plugins,
  refit,
  strip_weights,
  weight_streaming,
  dla,
  gpu_fallback,
  device,
  plugin_override,
  verbosity,
  time_limit,
  without_plugins,
  plugin_libraries,
  operator_libraries,
  build_with_library,
  verbose,
  quantize_typed_io,
  tensorrt,
  bench_operators,
  project_kind,
  project_operator,
  cpu_engine,
  own_kernels,
};

/// Returns the name of a setting in messages: the result of field_name(), unless set_setting_names() was called.
[[nodiscard]] std::string_view setting_name(Setting setting);

/// Returns the field or function in C++: "ImportOptions::shapes".
[[nodiscard]] std::string_view field_name(Setting setting);

using SettingNames = std::string_view (*)(Setting setting);

/// Replaces the names in messages, for a program whose users know the settings by other names. Call it before any other
/// function.
void set_setting_names(SettingNames names);

}  // namespace graft
