// Running a model on the CPU, without copies of the inputs and with one of the outputs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "graft/toolkit/run.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/tensors.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

class Session {
 public:
  Session(const toolkit::Model& model, int threads, bool own_kernels, const nb::object& progress,
          const std::optional<toolkit::CancelToken>& cancel)
      : session_(run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
          return toolkit::Session(model, {.threads = threads, .own_kernels = own_kernels, .watch = watch});
        })) {}

  ArraysOut run(const ArraysIn& inputs) {
    const toolkit::TensorViews views = views_of(inputs);
    toolkit::Tensors outputs;
    {
      const nb::gil_scoped_release released;
      const std::lock_guard one_at_a_time(mutex_);
      session_.run(views, [&](const toolkit::TensorViews& shown) {
        for (const auto& [name, view] : shown) {
          outputs.emplace(name, toolkit::Tensor{.dtype = view.dtype,
                                                .shape = view.shape,
                                                .data = std::vector<std::byte>(view.data.begin(), view.data.end())});
        }
      });
    }
    return arrays_of(std::move(outputs));
  }

 private:
  std::mutex mutex_;
  toolkit::Session session_;
};

}  // namespace

void add_sessions(nb::module_& module) {
  nb::class_<Session>(module, "Session")
      .def(nb::init<const toolkit::Model&, int, bool, const nb::object&, const std::optional<toolkit::CancelToken>&>(),
           "model"_a, nb::kw_only(), "threads"_a, "own_kernels"_a, "progress"_a.none(), "cancel"_a.none())
      .def("run", &Session::run, "inputs"_a);
}

}  // namespace graft::python
