// The extension graft._toolkit: the functions of the toolkit that python/graft/toolkit.py calls.
#include "python/bindings.hpp"

NB_MODULE(_toolkit, module) {
  module.doc() = "The functions of Graft's toolkit (libgraft.so). Applications use graft.toolkit, which calls them.";
  graft::python::name_settings();
#define GRAFT_BINDING(name) graft::python::add_##name(module);
#include "python/bindings.inc"
#undef GRAFT_BINDING
}
