// Translates the toolkit's exceptions into the exceptions of graft.errors, with the names of options in Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <exception>
#include <regex>
#include <string>

#include "graft/toolkit/error.hpp"
#include "graft/toolkit/progress.hpp"
#include "python/bindings.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;

const char* name_of(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::answer_is_no: return "answer_is_no";
    case Error::Kind::bad_input: return "bad_input";
    case Error::Kind::missing_tool: return "missing_tool";
    case Error::Kind::internal: break;
  }
  return "internal";
}

/// Returns a message as a Python string. Names in files may contain bytes that are not UTF-8, which become "\xb2".
nb::object python_text(const std::string& message) {
  return nb::bytes(message.data(), message.size()).attr("decode")("utf-8", "backslashreplace");
}

/// Replaces C++ names of options by Python's: "ImportOptions::shapes" becomes `shapes`, and
/// "QuantizeOptions::int8.data" becomes `data`.
std::string in_python(const char* message) {
  static const std::regex option(R"(\b[A-Z]\w+Options::(?:int8\.)?(\w+))");
  return std::regex_replace(message, option, "$1");
}

nb::object type_called(const char* name) { return nb::module_::import_("graft.errors").attr(name); }

void raise(const char* name, const Error& error) {
  const nb::object type = type_called(name);
  const nb::object raised = type(python_text(in_python(error.what())), name_of(error.kind()));
  PyErr_SetObject(type.ptr(), raised.ptr());
}

void raise(const toolkit::EngineError& error) {
  const nb::object type = type_called("EngineError");
  const toolkit::EngineFailure& failure = error.failure();
  const nb::object facts = nb::module_::import_("json").attr("loads")(failure.facts);
  const nb::object raised =
      type(python_text(in_python(error.what())), name_of(error.kind()), failure.kind, python_text(failure.message),
           failure.next_step, failure.library, failure.cause, facts);
  PyErr_SetObject(type.ptr(), raised.ptr());
}

void translate(const std::exception_ptr& thrown, void* /*unused*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const toolkit::Cancelled& error) {
    raise("Cancelled", error);
  } catch (const toolkit::EngineError& error) {
    raise(error);
  } catch (const Error& error) {
    raise("Error", error);
  }
}

}  // namespace

void add_errors(nb::module_& module) {
  nb::register_exception_translator(translate);
  nb::class_<toolkit::CancelToken>(module, "CancelToken",
                                   "Ends work from another thread: pass the token as `cancel` to a function and call "
                                   "`cancel()`; the function raises graft.Cancelled. A token stays cancelled.")
      .def(nb::init<>())
      .def("cancel", &toolkit::CancelToken::cancel,
           "Ends the work of every function that has this token, also of functions that are called later.")
      .def_prop_ro("is_cancelled", &toolkit::CancelToken::is_cancelled);
}

}  // namespace graft::python
