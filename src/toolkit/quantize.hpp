// The parts of the public `quantize`: one function for each kind of type.
#pragma once

#include "graft/toolkit/quantize.hpp"
#include "toolkit/data.hpp"
#include "toolkit/work.hpp"

namespace graft::toolkit {

/// Throws Error, naming the setting, for values out of range, for options that exclude each other or that the precision
/// does not have, for int8 and f8 without data and cache, and for an output that cannot be written.
void check_options(const QuantizeOptions& options);

/// Calls QuantizeOptions::on_note, if it is set, with each note.
void note_data(const QuantizeOptions& options, const std::vector<std::string>& notes);

/// Quantizes a model to f16 or bf16. `options` have been checked; `given_data` are their data.
[[nodiscard]] QuantizeReport quantize_types(const Model& given, const QuantizeOptions& options,
                                            const GivenData& given_data, Work& work);

/// Quantizes a model to int8 or f8. `options` have been checked; `given_data` are their data.
[[nodiscard]] QuantizeReport quantize_int8(const Model& given, const QuantizeOptions& options,
                                           const GivenData& given_data, Work& work);

/// Runs a part of the calibration samples, and returns the histograms of the tensors as bytes for Int8Options::parts.
/// `options` have been checked; `given_data` are their data.
[[nodiscard]] std::string calibrate_int8_part(const CalibrationWork& part, const QuantizeOptions& options,
                                              const GivenData& given_data, Work& work);

}  // namespace graft::toolkit
