// The extension graft._toolkit: the functions of the toolkit that python/graft/toolkit.py calls.
#include "python/bindings.hpp"

NB_MODULE(_toolkit, module) {
  module.doc() = "The functions of Graft's toolkit (libgraft.so). Applications use graft.toolkit, which calls them.";
  graft::python::name_settings();
  graft::python::add_errors(module);
  graft::python::add_references(module);
  graft::python::add_models(module);
  graft::python::add_inspection(module);
  graft::python::add_conversion(module);
  graft::python::add_verification(module);
  graft::python::add_layers(module);
  graft::python::add_quantization(module);
  graft::python::add_engines(module);
  graft::python::add_cuts(module);
  graft::python::add_canaries(module);
  graft::python::add_sessions(module);
}
