// The options that graft.verify and graft.verify_layers have in common.
#pragma once

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "graft/toolkit/verify.hpp"
#include "python/cpu_engines.hpp"
#include "python/tensors.hpp"

namespace graft::python {

using PyRanges = std::map<std::string, std::pair<double, double>>;

[[nodiscard]] inline toolkit::VerifyOptions verify_options(const ArraysIn& data, const toolkit::DataFiles& data_files,
                                                           std::size_t seeds, const toolkit::Shapes& shapes,
                                                           const PyRanges& ranges, std::optional<double> relative,
                                                           std::optional<double> absolute, std::optional<double> snr_db,
                                                           bool own_kernels, const std::string& engine) {
  toolkit::VerifyOptions options{.data = {},
                                 .data_views = views_of(data),
                                 .data_files = data_files,
                                 .seeds = seeds,
                                 .shapes = shapes,
                                 .ranges = {},
                                 .relative = relative,
                                 .absolute = absolute,
                                 .snr_db = snr_db,
                                 .own_kernels = own_kernels,
                                 .engine = cpu_engine_of(engine),
                                 .watch = {}};
  for (const auto& [input, range] : ranges) options.ranges.emplace(input, toolkit::Range{range.first, range.second});
  return options;
}

}  // namespace graft::python
