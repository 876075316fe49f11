// graft quantize: the arguments and functions that f16 or bf16 (quantize_types) and int8 or f8 (quantize_int8) share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/console.hpp"
#include "cli/engine_option.hpp"
#include "cli/program.hpp"

namespace graft::cli {

struct QuantizeArguments {
  std::string model;
  std::string output;
  std::string precision;
  std::vector<std::string> data;
  std::vector<std::string> inputs;
  std::vector<std::string> keep;
  std::vector<std::string> only;
  std::string report;
  double limit = 0;
  bool typed_io = false;
  bool explain = false;
  std::string engine = default_engine_name;

  // Options of int8 and f8 only.
  std::string recipe;
  std::int64_t samples = 0;
  std::string method;  ///< Empty for the default method of the precision.
  double percentile = 99.99;
  std::string cache;
  std::string write_cache;
  std::string state;
  std::vector<std::string> improve;
  std::string rest = "f32";
  std::string metric;
  double max_drop = 0;
  std::int64_t judged = 64;

  const Option* method_option = nullptr;
  const Option* percentile_option = nullptr;
  const Option* limit_option = nullptr;
  const Option* metric_option = nullptr;
  const Option* max_drop_option = nullptr;
  std::vector<const Option*> of_int8;   ///< Options that are refused with other precisions.
  std::vector<const Option*> of_types;  ///< Options that are refused with int8 and f8.
};

[[nodiscard]] Exit quantize_types(const Console& console, const QuantizeArguments& arguments);
[[nodiscard]] Exit quantize_int8(const Console& console, const QuantizeArguments& arguments);

/// Throws Error, before minutes of work, if an output file would overwrite an input or another output, or if the model
/// cannot be written.
void check_output(const QuantizeArguments& arguments);

}  // namespace graft::cli
