// Running a model on the CPU, without copies.
#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>

#include "graft/toolkit/run.hpp"
#include "python/bindings.hpp"
#include "python/tensors.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

class Session {
 public:
  Session(const toolkit::Model& model, int threads, bool own_kernels)
      : session_(model, {.threads = threads, .own_kernels = own_kernels}) {}

  Session(const toolkit::CutNetwork& network, int threads, bool own_kernels)
      : session_(network, {.threads = threads, .own_kernels = own_kernels}) {}

  ArraysOut run(const ArraysIn& inputs) {
    const toolkit::TensorViews views = views_of(inputs);
    toolkit::TensorViews outputs;
    {
      const nb::gil_scoped_release released;
      const std::lock_guard one_at_a_time(mutex_);
      outputs = session_.run_views(views);
    }
    return arrays_of(outputs);
  }

 private:
  std::mutex mutex_;
  toolkit::Session session_;
};

}  // namespace

void add_sessions(nb::module_& module) {
  nb::class_<Session>(module, "Session")
      .def(nb::init<const toolkit::Model&, int, bool>(), "model"_a, nb::kw_only(), "threads"_a, "own_kernels"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def(nb::init<const toolkit::CutNetwork&, int, bool>(), "model"_a, nb::kw_only(), "threads"_a, "own_kernels"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def("run", &Session::run, "inputs"_a);
}

}  // namespace graft::python
