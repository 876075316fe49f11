// The functions that add the toolkit's functions and classes to the extension graft._toolkit, one for each header of
// the toolkit.
#pragma once

#include <nanobind/nanobind.h>

namespace graft::python {

/// Sets the names of settings in messages to Python's keywords. Call it before any other function of the toolkit.
void name_settings();

#define GRAFT_BINDING(name) void add_##name(nanobind::module_& module);
#include "python/bindings.inc"
#undef GRAFT_BINDING

}  // namespace graft::python
