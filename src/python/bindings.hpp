// The functions that add the toolkit's functions and classes to the extension graft._toolkit, one for each header of
// the toolkit.
#pragma once

#include <nanobind/nanobind.h>

namespace graft::python {

/// Sets the names of settings in messages to Python's keywords. Call it before any other function of the toolkit.
void name_settings();

void add_errors(nanobind::module_& module);
void add_models(nanobind::module_& module);
void add_references(nanobind::module_& module);
void add_sessions(nanobind::module_& module);
void add_inspection(nanobind::module_& module);
void add_conversion(nanobind::module_& module);
void add_verification(nanobind::module_& module);
void add_layers(nanobind::module_& module);
void add_quantization(nanobind::module_& module);
void add_cuts(nanobind::module_& module);
void add_canaries(nanobind::module_& module);
void add_engines(nanobind::module_& module);

}  // namespace graft::python
