// An input or an output of a model, in reports and in the interface of models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "graft/report/field.hpp"

namespace graft::report {

/// An input or an output of a model, or a tensor between two models.
struct Port {
  std::string name;
  std::string type;
  std::optional<std::vector<std::int64_t>> shape;

  static constexpr auto fields() {
    return std::tuple{
        field("name", &Port::name, "The name of the tensor."),
        field("type", &Port::type, "'f32', 'i64' ...; '?' where the file has no type."),
        field("shape", &Port::shape, "The sizes, -1 for a dynamic dimension; None where not even the rank is known."),
    };
  }
};

}  // namespace graft::report
