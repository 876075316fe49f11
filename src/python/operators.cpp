// The extension graft._operators: operators with values for their attributes, and calls on the addresses of Python's
// arrays.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "graft/graft_c.h"

namespace nb = nanobind;

namespace {

[[noreturn]] void fail() { throw nb::value_error(graft_last_error()); }

/// Throws ValueError with the last error, after the operator's name where the message does not begin with it.
[[noreturn]] void fail(const std::string& name) {
  const std::string message = graft_last_error();
  throw nb::value_error((message.starts_with(name) ? message : name + ": " + message).c_str());
}

struct Destroy {
  void operator()(graft_operator* op) const { graft_operator_destroy(op); }
};
using OperatorPointer = std::unique_ptr<graft_operator, Destroy>;

graft_tensor linear(const std::string& dtype, const nb::handle& shape) {
  graft_tensor tensor{.dtype = dtype.c_str(), .layout = "linear", .extents = {}, .rank = 0, .data = nullptr};
  const auto sizes = nb::cast<std::vector<std::int64_t>>(shape);
  if (sizes.size() > GRAFT_MAX_RANK) {
    throw nb::value_error(("a tensor has rank " + std::to_string(sizes.size()) + ", allowed is 0 to 8").c_str());
  }
  tensor.rank = static_cast<std::int32_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), std::begin(tensor.extents));
  return tensor;
}

constexpr std::size_t max_ports = 32;  // the largest number of tensors of a call

/// Addresses of tensors in the order of the ports, inputs first.
using Addresses = std::vector<std::uintptr_t>;

/// An operator on inputs of known types and shapes. Several threads may run it at once.
class Plan {
 public:
  /// Creates the operator and infers its outputs. `dtypes` and `shapes` are of the inputs; `layouts` are of the inputs
  /// and outputs, or empty where all are linear; `shape_values` has the integers of each shape input, which is not
  /// among the inputs of a run. Throws ValueError for values that the operator refuses.
  Plan(const std::string& name, const std::string& attributes, std::vector<std::string> dtypes, const nb::list& shapes,
       std::int32_t output_count, std::vector<std::string> layouts, const nb::list& shape_values)
      : op_(graft_operator_create(name.c_str(), attributes.c_str())),
        dtypes_(std::move(dtypes)),
        layouts_(std::move(layouts)) {
    if (!op_) fail(name);
    input_count_ = dtypes_.size();
    if (nb::len(shapes) != input_count_) throw nb::value_error("a type and a shape for each input");
    for (std::size_t i = 0; i < input_count_; ++i) tensors_.push_back(linear(dtypes_[i], shapes[i]));
    static const std::string type_of_sizes = "i64";
    std::vector<graft_tensor> inputs = tensors_;
    for (const nb::handle& values : shape_values) inputs.push_back(linear(type_of_sizes, values));
    std::vector<graft_tensor> inferred(static_cast<std::size_t>(output_count));
    if (graft_infer_outputs(op_.get(), inputs.data(), static_cast<std::int32_t>(inputs.size()), inferred.data(),
                            output_count) != 0) {
      fail(name);
    }
    tensors_.insert(tensors_.end(), inferred.begin(), inferred.end());
    if (!layouts_.empty() && layouts_.size() != tensors_.size()) throw nb::value_error("a layout for each tensor");
    for (std::size_t i = 0; i < layouts_.size(); ++i) tensors_[i].layout = layouts_[i].c_str();
    const graft_call call = call_of(tensors_.data());
    workspace_bytes_ = graft_workspace_bytes(op_.get(), &call);  // also checks types, layouts and shapes
    if (workspace_bytes_ < 0) fail(name);
  }

  Plan(const Plan&) = delete;  // its tensors point to dtypes_ and layouts_
  Plan(Plan&&) = delete;
  Plan& operator=(const Plan&) = delete;
  Plan& operator=(Plan&&) = delete;
  ~Plan() = default;

  [[nodiscard]] nb::list output_shapes() const {
    nb::list shapes;
    for (std::size_t i = input_count_; i < tensors_.size(); ++i) {
      nb::list sizes;
      for (std::int32_t axis = 0; axis < tensors_[i].rank; ++axis) sizes.append(tensors_[i].extents[axis]);
      shapes.append(nb::tuple(sizes));
    }
    return shapes;
  }
  [[nodiscard]] std::vector<std::string> output_dtypes() const {
    std::vector<std::string> dtypes;
    for (std::size_t i = input_count_; i < tensors_.size(); ++i) dtypes.emplace_back(tensors_[i].dtype);
    return dtypes;
  }
  [[nodiscard]] std::int64_t workspace_bytes() const { return workspace_bytes_; }
  [[nodiscard]] std::string cuda_variants() const {
    const graft_call call = call_of(tensors_.data());
    const char* names = graft_cuda_variants(op_.get(), &call);
    if (names == nullptr) fail();
    return names;
  }

  void run_cpu(const Addresses& addresses, std::int32_t threads) const {
    const auto tensors = tensors_at(addresses);
    const graft_call call = call_of(tensors.data());
    const nb::gil_scoped_release released;
    if (graft_run_cpu(op_.get(), &call, threads) != 0) failed_without_gil();
  }
  void run_cuda(const Addresses& addresses, std::uintptr_t workspace, std::uintptr_t stream) {
    const auto tensors = tensors_at(addresses);
    const graft_call call = call_of(tensors.data());
    const auto run = [&](const std::string& variant) {
      return graft_run_cuda(op_.get(), &call, pointer(workspace), pointer(stream), variant.c_str()) == 0;
    };
    bool is_first = false;
    std::call_once(chosen_, [&] {
      is_first = true;
      variant_ = first_of(run);
    });
    if (!is_first && !run(variant_)) fail();
  }

 private:
  /// Returns the address as a pointer; Python passes addresses as integers.
  static void* pointer(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  }
  [[noreturn]] static void failed_without_gil() { throw std::invalid_argument(graft_last_error()); }

  /// Calls `run(name)` with the name of each CUDA variant, in order of preference, until a call returns true, and
  /// returns the name of this variant. Throws if no call returns true. The caller keeps the name, because trying all
  /// variants in each call takes longer than a launch.
  template <class Run>
  [[nodiscard]] std::string first_of(const Run& run) const {
    std::istringstream names(cuda_variants());
    for (std::string name; std::getline(names, name, ',');) {
      if (run(name)) return name;
    }
    if (!run("")) fail();  // the message has the reasons of all variants
    return "";
  }

  [[nodiscard]] graft_call call_of(const graft_tensor* tensors) const {
    return {tensors, static_cast<std::int32_t>(input_count_), tensors + input_count_,
            static_cast<std::int32_t>(tensors_.size() - input_count_)};
  }
  [[nodiscard]] std::array<graft_tensor, max_ports> tensors_at(const Addresses& addresses) const {
    if (addresses.size() != tensors_.size()) throw nb::value_error("an address for each tensor, inputs first");
    std::array<graft_tensor, max_ports> tensors{};
    std::copy(tensors_.begin(), tensors_.end(), tensors.begin());
    for (std::size_t i = 0; i < addresses.size(); ++i) tensors[i].data = pointer(addresses[i]);
    return tensors;
  }

  OperatorPointer op_;
  std::vector<std::string> dtypes_;  // the tensors point to these strings
  std::vector<std::string> layouts_;
  std::vector<graft_tensor> tensors_;
  std::size_t input_count_ = 0;
  std::int64_t workspace_bytes_ = 0;
  std::once_flag chosen_;
  std::string variant_;
};

std::string text_or_fail(const char* text) {
  if (text == nullptr) fail();
  return text;
}

OperatorPointer make(const std::string& name, const std::string& attributes) {
  OperatorPointer op(graft_operator_create(name.c_str(), attributes.c_str()));
  if (!op) fail(name);
  return op;
}

std::string infer_symbolic(const std::string& name, const std::string& attributes, const std::string& shapes) {
  return text_or_fail(graft_infer_symbolic(make(name, attributes).get(), shapes.c_str()));
}

std::string layouts(const std::string& name, const std::string& attributes, const std::string& dtype,
                    const std::string& layout, std::int32_t rank) {
  return text_or_fail(graft_layouts(make(name, attributes).get(), dtype.c_str(), layout.c_str(), rank));
}

std::string function(const std::string& name, const std::string& attributes, const std::string& dtype,
                     std::int32_t rank, std::int32_t input_count) {
  return text_or_fail(graft_function(make(name, attributes).get(), dtype.c_str(), rank, input_count));
}

}  // namespace

NB_MODULE(_operators, module) {
  nb::set_leak_warnings(false);  // caches of plans live as long as the process
  module.doc() =
      "Runs Graft's operators on memory addresses. Applications use graft.ops and graft.torch, which call it.";
  module.def("version", [] { return std::string(graft_version()); });
  module.def(
      "has_cuda", [] { return graft_has_cuda() != 0; }, "Returns whether the library contains CUDA kernels.");
  module.def(
      "definitions", [] { return text_or_fail(graft_definitions(nullptr)); },
      "Returns the definitions as JSON, see graft_definitions in graft_c.h.");
  module.def(
      "load",
      [](const std::string& file) {
        if (graft_load_operators(file.c_str()) != 0) fail();
        return text_or_fail(graft_definitions(file.c_str()));
      },
      nb::arg("file"), "Loads a library of operators, and returns its definitions as JSON.");
  module.def("infer_symbolic", &infer_symbolic, nb::arg("name"), nb::arg("attributes"), nb::arg("shapes"));
  module.def("layouts", &layouts, nb::arg("name"), nb::arg("attributes"), nb::arg("dtype"), nb::arg("layout"),
             nb::arg("rank"), "Returns the layouts as JSON, see graft_layouts in graft_c.h.");
  module.def("function", &function, nb::arg("name"), nb::arg("attributes"), nb::arg("dtype"), nb::arg("rank"),
             nb::arg("input_count"));
  nb::class_<Plan>(module, "Plan", "An operator on inputs of known types and shapes.")
      .def(nb::init<const std::string&, const std::string&, std::vector<std::string>, const nb::list&, std::int32_t,
                    std::vector<std::string>, const nb::list&>(),
           nb::arg("name"), nb::arg("attributes"), nb::arg("dtypes"), nb::arg("shapes"), nb::arg("output_count"),
           nb::arg("layouts") = std::vector<std::string>(), nb::arg("shape_values") = nb::list())
      .def_prop_ro("output_shapes", &Plan::output_shapes)
      .def_prop_ro("output_dtypes", &Plan::output_dtypes)
      .def_prop_ro("workspace_bytes", &Plan::workspace_bytes)
      .def_prop_ro("cuda_variants", &Plan::cuda_variants)
      .def("run_cpu", &Plan::run_cpu, nb::arg("addresses"), nb::arg("threads"))
      .def("run_cuda", &Plan::run_cuda, nb::arg("addresses"), nb::arg("workspace"), nb::arg("stream"));
}
