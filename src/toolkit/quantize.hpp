// The parts of the public `quantize`: the check of its options, and one function for each kind of type. And a function
// that only the program needs: written files.
#pragma once

#include <filesystem>

#include "graft/toolkit/quantize.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {

/// Throws Error, naming the setting, for values out of range, for options that exclude each other or that the precision
/// does not have, and for int8 and f8 without data and cache. `has_tensors`: whether the options have tensors as data,
/// or will have them once they are read.
void check_options(const QuantizeOptions& options, bool has_tensors);

/// Quantizes a model to f16 or bf16. `options` have been checked.
[[nodiscard]] QuantizeReport quantize_types(const Model& given, const QuantizeOptions& options, Work& work);

/// Quantizes a model to int8 or f8. `options` have been checked.
[[nodiscard]] QuantizeReport quantize_int8(const Model& given, const QuantizeOptions& options, Work& work);

/// Writes the scales to the calibration cache `cache` for TensorRT 7 to 10, unless it is empty, and then the model, and
/// sets the files of the report. Throws Error where there are no scales.
void write(QuantizeReport& report, const std::filesystem::path& output, const std::filesystem::path& cache);

}  // namespace graft::toolkit
