// How messages call what a caller can set: by its field, by the option of a program, by a keyword of Python.
#pragma once

#include <cstdint>
#include <string_view>

/// Every setting that a message names, with the name that applications in C++ know it by.
#define GRAFT_SETTINGS(setting)                                                                                        \
  setting(input_shapes, "ImportOptions::shapes") setting(kept_outputs, "ImportOptions::outputs") setting(              \
      rules, "ConvertOptions::rules") setting(without_proofs, "ConvertOptions::prove = false")                         \
      setting(data, "QuantizeOptions::data") setting(keep, "QuantizeOptions::keep") setting(                           \
          only, "QuantizeOptions::only") setting(improve, "QuantizeOptions::int8.improve")                             \
          setting(cache, "QuantizeOptions::int8.cache") setting(metric, "QuantizeOptions::int8.metric") setting(       \
              quantize_int8,                                                                                           \
              "quantize with Precision::int8") setting(synthetic_shapes,                                               \
                                                       "VerifyOptions::shapes") setting(synthetic_ranges,              \
                                                                                        "VerifyOptions::ranges")       \
              setting(relative_tolerance, "VerifyOptions::relative") setting(                                          \
                  absolute_tolerance,                                                                                  \
                  "VerifyOptions::absolute") setting(least_snr, "VerifyOptions::snr_db") setting(judge_builder,        \
                                                                                                 "Judge::builder")     \
                  setting(inspect_builder, "inspect with Judge::builder") setting(                                     \
                      reduce, "InspectOptions::reduce") setting(trial_seconds, "InspectOptions::budget.trial_seconds") \
                      setting(max_builds, "InspectOptions::budget.max_builds") setting(                                \
                          max_seconds, "InspectOptions::budget.max_seconds") setting(targets, "BuildOptions::targets") \
                          setting(shape_ranges, "BuildOptions::shapes") setting(                                       \
                              profiles, "BuildOptions::profiles") setting(memory, "BuildOptions::memory")              \
                              setting(optimization_level, "BuildOptions::optimization_level") setting(                 \
                                  input_formats, "BuildOptions::formats") setting(output_formats,                      \
                                                                                  "BuildOptions::formats")             \
                                  setting(timing_cache, "BuildOptions::timing_cache") setting(                         \
                                      tf32, "BuildOptions::tf32") setting(version_compatible,                          \
                                                                          "BuildOptions::version_compatible")          \
                                      setting(exclude_lean_runtime, "BuildOptions::exclude_lean_runtime") setting(     \
                                          embed_plugins, "BuildOptions::embed_plugins") setting(refit,                 \
                                                                                                "BuildOptions::refit") \
                                          setting(strip_weights, "BuildOptions::strip_weights") setting(               \
                                              weight_streaming,                                                        \
                                              "BuildOptions::weight_streaming") setting(dla, "BuildOptions::dla.core") \
                                              setting(gpu_fallback, "BuildOptions::dla.gpu_fallback") setting(         \
                                                  device, "BuildOptions::device")                                      \
                                                  setting(plugin_override, "BuildOptions::plugin_override") setting(   \
                                                      verbosity, "BuildOptions::verbosity")                            \
                                                      setting(time_limit, "BuildOptions::time_limit") setting(         \
                                                          without_plugins, "BuildOptions::plugins = false")            \
                                                          setting(plugin_libraries, "BuildOptions::plugin_libraries")  \
                                                              setting(build_with_library,                              \
                                                                      "build with BuildOptions::plugin_libraries")     \
                                                                  setting(verbose, "`graft build -v`") setting(        \
                                                                      quantize_typed_io,                               \
                                                                      "quantize with QuantizeOptions::typed_io")       \
                                                                      setting(tensorrt, "BuildOptions::tensorrt")      \
                                                                          setting(bench_operators,                     \
                                                                                  "OperatorBench::operators")          \
                                                                              setting(project_kind,                    \
                                                                                      "NewProject::kind")              \
                                                                                  setting(project_operator,            \
                                                                                          "NewProject::operator_name")

namespace graft {

#define GRAFT_SETTING(name, text) name,
enum class Setting : std::uint8_t { GRAFT_SETTINGS(GRAFT_SETTING) };
#undef GRAFT_SETTING

/// What messages call a setting: by default the name in the list above.
[[nodiscard]] std::string_view setting_name(Setting setting);

/// The name in the list above.
[[nodiscard]] std::string_view field_name(Setting setting);

using SettingNames = std::string_view (*)(Setting setting);

/// For a program whose users know the settings by other names. Before any other call.
void set_setting_names(SettingNames names);

}  // namespace graft
