// Runs a model on the CPU. Inputs and outputs are views of arrays, which OpenVINO reads and writes in place.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graft/toolkit/run.hpp"
#include "python/bindings.hpp"
#include "python/caller.hpp"
#include "python/cpu_engines.hpp"
#include "python/tensors.hpp"

namespace graft::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;

/// Returns a session for `network`, a toolkit::Model or the two halves in a toolkit::CutNetwork. `progress` and
/// `cancel` are the arguments of run_watched().
template <typename Network>
toolkit::Session compile(const Network& network, int threads, bool own_kernels, const std::string& engine,
                         const nb::object& progress, const std::optional<toolkit::CancelToken>& cancel) {
  return run_watched(progress, cancel, [&](const toolkit::Watch& watch, Caller& /*caller*/) {
    return toolkit::Session(
        network, {.threads = threads, .own_kernels = own_kernels, .engine = cpu_engine_of(engine), .watch = watch});
  });
}

class Session {
 public:
  Session(const toolkit::Model& model, int threads, bool own_kernels, const std::string& engine,
          const nb::object& progress, const std::optional<toolkit::CancelToken>& cancel)
      : session_(compile(model, threads, own_kernels, engine, progress, cancel)) {}

  Session(const toolkit::CutNetwork& network, int threads, bool own_kernels, const std::string& engine,
          const nb::object& progress, const std::optional<toolkit::CancelToken>& cancel)
      : session_(compile(network, threads, own_kernels, engine, progress, cancel)) {}

  [[nodiscard]] const std::string& ran_in() const { return session_.ran_in(); }
  [[nodiscard]] const std::vector<std::string>& left_out() const { return session_.left_out(); }

  [[nodiscard]] const std::vector<std::string>& data_notes() const { return session_.data_notes(); }

  ArraysOut run_files(const std::vector<std::string>& sources, const std::filesystem::path& recipe) {
    toolkit::Tensors outputs;
    {
      const nb::gil_scoped_release released;
      const std::lock_guard one_at_a_time(mutex_);
      outputs = session_.run_data(toolkit::DataFiles{.sources = sources, .recipe = recipe});
    }
    return arrays_of(std::move(outputs));
  }

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
      .def(nb::init<const toolkit::Model&, int, bool, const std::string&, const nb::object&,
                    const std::optional<toolkit::CancelToken>&>(),
           "model"_a, nb::kw_only(), "threads"_a, "own_kernels"_a, "engine"_a, "progress"_a.none(), "cancel"_a.none())
      .def(nb::init<const toolkit::CutNetwork&, int, bool, const std::string&, const nb::object&,
                    const std::optional<toolkit::CancelToken>&>(),
           "model"_a, nb::kw_only(), "threads"_a, "own_kernels"_a, "engine"_a, "progress"_a.none(), "cancel"_a.none())
      .def_prop_ro("ran_in", &Session::ran_in)
      .def_prop_ro("left_out", &Session::left_out)
      .def_prop_ro("data_notes", &Session::data_notes)
      .def("run", &Session::run, "inputs"_a)
      .def("run_files", &Session::run_files, "sources"_a, "recipe"_a);
}

}  // namespace graft::python
