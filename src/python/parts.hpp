// Parts of a data set that Python functions start in other processes and wait for.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "graft/parts.hpp"
#include "python/caller.hpp"

namespace graft::python {

/// Calls the Python function `start`, which starts other processes on parts of the work and returns an iterator over
/// their results, as bytes. Returns a function that returns the next result of the iterator, or nothing after the last
/// one; Python runs in the caller's thread. `caller` must outlive the returned function.
template <class Start>
[[nodiscard]] NextPart start_parts(Caller& caller, const Start& start) {
  const std::shared_ptr<nanobind::object> parts(new nanobind::object(), [](nanobind::object* iterator) {
    const nanobind::gil_scoped_acquire acquired;
    delete iterator;
  });
  caller.run([&] {
    const nanobind::iterator iterator = nanobind::iter(start());
    *parts = nanobind::borrow<nanobind::object>(iterator.ptr());
  });
  return [&caller, parts]() -> std::optional<std::string> {
    std::optional<std::string> bytes;
    caller.run([&] {
      const auto part = nanobind::steal<nanobind::object>(PyIter_Next(parts->ptr()));
      if (PyErr_Occurred() != nullptr) nanobind::raise_python_error();
      if (!part.is_valid()) return;
      const auto found = nanobind::cast<nanobind::bytes>(part);
      bytes.emplace(found.c_str(), found.size());
    });
    return bytes;
  };
}

/// Returns the result of a part, a string of bytes, as Python bytes.
[[nodiscard]] inline nanobind::bytes part_of(const std::string& bytes) {
  return nanobind::bytes(bytes.data(), bytes.size());
}

}  // namespace graft::python
