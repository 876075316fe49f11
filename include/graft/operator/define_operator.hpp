// Turns a definition (a plain struct) into an Operator and its OperatorType. Definitions include this header.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>

#include "graft/operator/operator.hpp"

namespace graft {

/// A CUDA implementation of a definition. `fits` returns ok() if the implementation supports a problem, without a CUDA
/// call. `<op>_cuda.cu` lists the implementations, in order of preference, in `std::span<const Variant<Definition>>
/// cuda_kernels(const Definition&)`.
template <class Definition>
struct Variant {
  std::string_view name;
  Status (*fits)(const Definition&, const Problem&);
  Status (*run)(const Definition&, const Problem&, const Buffers&, const CudaContext&);
  /// The compute capability that the variant requires: 90 for devices of capability 9.x only, 0 for all devices.
  int compute = 0;
};

/// The members that every definition must have. `types()` returns an array of the TypeConstraint that its ports name.
/// The guide "The definition of an operator" explains a definition line by line.
///
/// A definition may also have the members below. One of them with another signature than written does not compile:
///   bool accepts(const TypeRow&, std::span<const int> input_ranks) const  whether a row fits the attributes and ranks;
///                                                                         -1: a rank that is not known yet
///   Status check(const Problem&) const                                    checks ranks and sizes at run time; with
///                                                                         shape inputs also the outputs' sizes
///   std::size_t workspace(const Problem&) const                           bytes of scratch memory on the device
///   std::optional<Function> function(const FunctionInputs&) const         the ONNX function of a node
///   std::optional<std::string> native_form(const FunctionInputs&) const   a single native layer that is exact
///   static std::vector<NativeEquivalent> native_equivalents()             ONNX operators that compute the same
///   std::optional<std::size_t> aliased_input(std::size_t output) const    the input that the output updates in place
///   bool is_data_movement() const                                         whether each output element is an input
///                                                                         element or 0
///   static constexpr Int8Weight int8_weight = {...}                       the weight that is stored in int8
///   static constexpr auto why_plugin_for_floats = "..."                   the reason for floating-point nodes, where
///                                                                         `why_plugin` is about int8
///   static std::vector<DropIn> drop_ins()                                 plugins of other libraries that it replaces
///   static OnnxForm onnx_form()                                           the ONNX operator that it computes, for a
///                                                                         TensorRT without a layer for it
///   static constexpr bool timed_variants = true                           TensorRT times the variants and chooses
///   Status check_attributes() const                                       checks rules between attributes, and the
///                                                                         elements of lists
///
/// A size that depends on data is a data_size() in the shapes that infer_shapes returns, and has a size_output() among
/// the ports.
///
/// A definition with optional inputs must have both members below. Every other member with a Problem sees all inputs:
///   TensorDesc constant(std::size_t port, std::span<const TensorDesc> given) const      describes a left-out input
///   void fill_constant(std::size_t port, const TensorDesc&, std::byte* bytes) const     writes its data
template <class D>
concept OperatorDefinition =
    std::is_default_constructible_v<D> && std::is_copy_constructible_v<D> && !std::is_final_v<D> &&
    requires(const D& definition, std::span<const Shape> shapes, const Problem& problem, const Buffers& buffers,
             const CpuContext& cpu) {
  { D::name } -> std::convertible_to<std::string_view>;
  { D::version } -> std::convertible_to<int>;
  { D::doc } -> std::convertible_to<std::string_view>;
  { D::source } -> std::convertible_to<std::string_view>;
  { D::why_plugin } -> std::convertible_to<std::string_view>;
  D::attributes();
  D::ports();
  D::types();
  { definition.infer_shapes(shapes) } -> std::same_as<std::vector<Shape>>;
  { run(definition, problem, buffers, cpu) } -> std::same_as<Status>;
};

/// Checks that a node has as many inputs and outputs as the ports of its operator allow. Returns invalid_argument
/// otherwise.
[[nodiscard]] Status check_port_counts(const OperatorType& type, const Problem& problem);
/// Checks that a type row matches the formats of the tensors, and that `op` accepts this row. `problem` contains all
/// inputs, of which the node supplies the first `given`. Returns unsupported if no row fits; the message lists the
/// allowed rows.
[[nodiscard]] Status check_formats(const OperatorType& type, const Operator& op, const Problem& problem,
                                   std::size_t given);
/// Checks that the outputs have the shapes that infer_extents computes (not for an operator with shape inputs), and
/// that an output with an aliased input has the description of that input. Where TensorRT uses 32-bit sizes, also
/// checks that no size output can exceed 2^31 - 1.
[[nodiscard]] Status check_shapes(const Operator& op, const Problem& problem);
/// Checks the result of infer_shapes: one shape for each output; and for each size output, which has rank 0, at least
/// one data_size(), with the same bounds everywhere and, where these are constant, 0 <= optimum <= largest.
[[nodiscard]] Status check_output_shapes(const OperatorType& type, std::span<const Shape> outputs);
/// Returns whether each input for which `row` has a vectorized layout has rank 4 (N,C,H,W) or an unknown rank (-1).
[[nodiscard]] bool has_rank_of_layout(const OperatorType& type, const TypeRow& row, std::span<const int> input_ranks);
/// Checks each value with check_attribute, and checks that no attribute has two different values. Returns
/// invalid_argument for an unknown name.
[[nodiscard]] Status check_attributes(const OperatorType& type, std::span<const NamedAttribute> values);

template <OperatorDefinition D>
[[nodiscard]] const OperatorType& operator_type();  // below

namespace detail {

/// `has_NAME<D>` is true if D has a member of that name, whatever its signature. `Both_NAME<D>` inherits a second
/// member of that name, so taking the address of the name is ambiguous exactly if D has such a member too.
#define GRAFT_OPTIONAL_MEMBER(member)           \
  struct Second_##member {                      \
    int member;                                 \
  };                                            \
  template <class D>                            \
  struct Both_##member : D, Second_##member {}; \
  template <class D>                            \
  concept has_##member = !requires {            \
    &Both_##member<D>::member;                  \
  }
GRAFT_OPTIONAL_MEMBER(accepts);
GRAFT_OPTIONAL_MEMBER(aliased_input);
GRAFT_OPTIONAL_MEMBER(check);
GRAFT_OPTIONAL_MEMBER(workspace);
GRAFT_OPTIONAL_MEMBER(function);
GRAFT_OPTIONAL_MEMBER(native_form);
GRAFT_OPTIONAL_MEMBER(native_equivalents);
GRAFT_OPTIONAL_MEMBER(is_data_movement);
GRAFT_OPTIONAL_MEMBER(int8_weight);
GRAFT_OPTIONAL_MEMBER(why_plugin_for_floats);
GRAFT_OPTIONAL_MEMBER(drop_ins);
GRAFT_OPTIONAL_MEMBER(onnx_form);
GRAFT_OPTIONAL_MEMBER(timed_variants);
GRAFT_OPTIONAL_MEMBER(check_attributes);
#undef GRAFT_OPTIONAL_MEMBER

/// Fails to compile if an optional member has a signature that the framework cannot call. Without this check such a
/// member would be ignored.
template <class D>
constexpr bool check_optional_members() {
  static_assert(
      !has_accepts<D> ||
          requires(const D& d, const TypeRow& row, std::span<const int> ranks) {
            { d.accepts(row, ranks) } -> std::same_as<bool>;
          },
      "the member `accepts` has to be: bool accepts(const TypeRow&, std::span<const int> input_ranks) const");
  static_assert(
      !has_aliased_input<D> ||
          requires(const D& d, std::size_t output) {
            { d.aliased_input(output) } -> std::same_as<std::optional<std::size_t>>;
          },
      "the member `aliased_input` has to be: std::optional<std::size_t> aliased_input(std::size_t output) const");
  static_assert(
      !has_check<D> ||
          requires(const D& d, const Problem& problem) {
            { d.check(problem) } -> std::same_as<Status>;
          },
      "the member `check` has to be: Status check(const Problem&) const");
  static_assert(
      !has_workspace<D> ||
          requires(const D& d, const Problem& problem) {
            { d.workspace(problem) } -> std::same_as<std::size_t>;
          },
      "the member `workspace` has to be: std::size_t workspace(const Problem&) const");
  static_assert(
      !has_function<D> ||
          requires(const D& d, const FunctionInputs& inputs) {
            { d.function(inputs) } -> std::convertible_to<std::optional<Function>>;
          },
      "the member `function` has to be: std::optional<Function> function(const FunctionInputs&) const");
  static_assert(
      !has_native_form<D> ||
          requires(const D& d, const FunctionInputs& inputs) {
            { d.native_form(inputs) } -> std::convertible_to<std::optional<std::string>>;
          },
      "the member `native_form` has to be: std::optional<std::string> native_form(const FunctionInputs&) const");
  static_assert(
      !has_native_equivalents<D> ||
          requires {
            { D::native_equivalents() } -> std::same_as<std::vector<NativeEquivalent>>;
          },
      "the member `native_equivalents` has to be: static std::vector<NativeEquivalent> native_equivalents()");
  static_assert(
      !has_is_data_movement<D> ||
          requires(const D& d) {
            { d.is_data_movement() } -> std::same_as<bool>;
          },
      "the member `is_data_movement` has to be: bool is_data_movement() const");
  static_assert(
      !has_why_plugin_for_floats<D> ||
          requires {
            { D::why_plugin_for_floats } -> std::convertible_to<std::string_view>;
          },
      "the member `why_plugin_for_floats` has to be: static constexpr auto why_plugin_for_floats = \"...\"");
  static_assert(
      !has_int8_weight<D> ||
          requires {
            { D::int8_weight } -> std::same_as<const Int8Weight&>;
          },
      "the member `int8_weight` has to be: static constexpr Int8Weight int8_weight");
  static_assert(
      !has_drop_ins<D> ||
          requires {
            { D::drop_ins() } -> std::same_as<std::vector<DropIn>>;
          },
      "the member `drop_ins` has to be: static std::vector<DropIn> drop_ins()");
  static_assert(
      !has_onnx_form<D> ||
          requires {
            { D::onnx_form() } -> std::same_as<OnnxForm>;
          },
      "the member `onnx_form` has to be: static OnnxForm onnx_form()");
  static_assert(
      !has_timed_variants<D> || requires { requires std::same_as<decltype(D::timed_variants), const bool>; },
      "the member `timed_variants` has to be: static constexpr bool timed_variants");
  static_assert(
      !has_check_attributes<D> ||
          requires(const D& d) {
            { d.check_attributes() } -> std::same_as<Status>;
          },
      "the member `check_attributes` has to be: Status check_attributes() const");
  return true;
}

template <class D>
constexpr bool has_types_of_ports() {
  for (const Port& port : D::ports()) {
    bool is_known = port.type.constraint.empty();
    for (const TypeConstraint& constraint : D::types()) is_known = is_known || constraint.name == port.type.constraint;
    if (!is_known) return false;
  }
  return true;
}

/// Returns whether every type constraint is used by an input. The types of a node follow from its inputs, so a
/// constraint that only outputs use would stay undetermined.
template <class D>
constexpr bool has_constraints_of_inputs() {
  for (const TypeConstraint& constraint : D::types()) {
    bool is_named = false;
    for (const Port& port : D::ports()) {
      is_named = is_named || (!port.is_output() && port.type.constraint == constraint.name);
    }
    if (!is_named) return false;
  }
  return true;
}

template <class D>
constexpr bool has_ports_in_order() {
  PortKind last = PortKind::input;
  for (const Port& port : D::ports()) {
    const bool is_after_others = last == PortKind::optional_input || last == PortKind::variadic_input;
    if (port.kind < last || (is_after_others && (port.is_variadic() || port.is_shape()))) return false;
    last = port.kind;
  }
  return true;
}

template <class D>
constexpr bool may_be_quantized(const Port& port) {
  if (port.type.constraint.empty()) return is_quantized(port.type.fixed);
  for (const TypeConstraint& constraint : D::types()) {
    if (constraint.name != port.type.constraint) continue;
    for (std::size_t i = 0; i < constraint.count; ++i) {
      if (is_quantized(constraint.formats[i].dtype)) return true;
    }
  }
  return false;
}

template <class D>
constexpr bool has_attribute(std::string_view name) {
  return std::apply([&](const auto&... attribute) { return ((attribute.name == name) || ...); }, D::attributes());
}

/// Returns whether exactly the ports that may be i8 or f8e4m3fn have a scale, and each scale is an attribute of the
/// operator. A variadic input has no scale.
template <class D>
constexpr bool has_scales_of_ports() {
  for (const Port& port : D::ports()) {
    if (may_be_quantized<D>(port) == port.scale.empty()) return false;
    if (!port.scale.empty() && (port.is_variadic() || !has_attribute<D>(port.scale))) return false;
  }
  return true;
}

template <class D>
constexpr bool has_port_of(PortKind kind) {
  for (const Port& port : D::ports()) {
    if (port.kind == kind) return true;
  }
  return false;
}

template <class D>
constexpr bool check_ports() {
  static_assert(D::ports().size() <= TypeRow::max_ports, "an operator has at most 32 inputs and outputs");
  static_assert(has_types_of_ports<D>(), "the type of each port has to be a DType or the name of one of types()");
  static_assert(has_constraints_of_inputs<D>(), "each of types() has to be that of an input");
  static_assert(
      has_ports_in_order<D>(),
      "ports come as inputs, then optional inputs, one variadic input or shape inputs, outputs, size outputs");
  static_assert(has_port_of<D>(PortKind::input) || has_port_of<D>(PortKind::variadic_input),
                "an operator has an input() or variadic_input(): types and formats go by it");
  static_assert(
      has_check<D> || !has_port_of<D>(PortKind::shape_input),
      "an operator with a shape input has a member `check`: kernels know it by the sizes of the outputs alone");
  static_assert(!has_port_of<D>(PortKind::shape_input) || !has_port_of<D>(PortKind::size_output),
                "an operator with a shape input has no size outputs");
  static_assert(has_scales_of_ports<D>(),
                "exactly the ports that may be i8 or f8e4m3fn have a scale, input(...).scaled_by(\"x_scale\"), where "
                "x_scale is an attribute; variadic inputs are neither of the two");
  return true;
}

/// Device copies of the optional inputs that a node leaves out, filled from the node's attributes. All clones of an
/// operator share one copy for each device and each combination of types.
class DeviceConstants {
 public:
  using Fill = std::function<void(std::size_t index, std::byte* bytes)>;

  DeviceConstants() = default;
  virtual ~DeviceConstants() = default;
  DeviceConstants(const DeviceConstants&) = delete;
  DeviceConstants& operator=(const DeviceConstants&) = delete;

  /// Writes to `addresses` the device address of a tensor for each of `descs`. Creates missing tensors, whose data
  /// `fill` writes, and blocks until they are complete. May be called during stream capture.
  [[nodiscard]] virtual Status find_or_make(std::span<const TensorDesc> descs, const Fill& fill,
                                            std::span<const void*> addresses) = 0;
};

/// The CUDA functions of a definition. A program with kernels sets them in register_cuda_kernels(), before it creates
/// an operator. In a program without kernels all members stay null, and no CUDA library is linked.
template <class D>
struct CudaSide {
  std::span<const Variant<D>> (*kernels)(const D&) = nullptr;
  Status (*runs_on_current_device)(int compute) = nullptr;
  std::shared_ptr<DeviceConstants> (*new_constants)() = nullptr;
};
template <class D>
inline CudaSide<D> cuda_side;

}  // namespace detail

template <OperatorDefinition D>
class OperatorOf final : public Operator {
  static_assert(detail::check_optional_members<D>());
  static_assert(detail::check_ports<D>());
  static constexpr bool has_optional_inputs = detail::has_port_of<D>(PortKind::optional_input);
  /// The maximum number of tensors of a node, inputs and outputs together.
  static constexpr std::size_t tensor_count =
      detail::has_port_of<D>(PortKind::variadic_input) ? TypeRow::max_ports : D::ports().size();

 public:
  OperatorOf() = default;
  explicit OperatorOf(D definition) : definition_(std::move(definition)) {}

  [[nodiscard]] const D& definition() const { return definition_; }
  [[nodiscard]] const OperatorType& type() const override { return operator_type<D>(); }
  [[nodiscard]] std::unique_ptr<Operator> clone() const override { return std::make_unique<OperatorOf>(*this); }

  using Operator::set;
  [[nodiscard]] Status set(std::span<const NamedAttribute> values) override {
    if (Status status = check_attributes(type(), values); !status.ok()) return status;
    D changed = definition_;
    for (const NamedAttribute& named : values) {
      for_each_attribute([&](const auto& attribute) {
        using Value = std::remove_reference_t<decltype(changed.*(attribute.member))>;
        if (attribute.name == named.name) {
          changed.*(attribute.member) = detail::AttributeTraits<Value>::from_wire(named.value);
        }
      });
    }
    if constexpr (detail::has_check_attributes<D>) {
      if (Status status = changed.check_attributes(); !status.ok()) return status;
    }
    definition_ = std::move(changed);
    constants_ = no_constants_yet();
    return {};
  }

  [[nodiscard]] std::optional<AttributeValue> get(std::string_view name) const override {
    std::optional<AttributeValue> found;
    for_each_attribute([&](const auto& attribute) {
      using Value = std::remove_cvref_t<decltype(definition_.*(attribute.member))>;
      if (attribute.name == name) found = detail::AttributeTraits<Value>::to_wire(definition_.*(attribute.member));
    });
    return found;
  }

  [[nodiscard]] Status infer_shapes(std::span<const Shape> inputs, std::vector<Shape>& outputs) const override {
    if (inputs.size() < type().required_input_count() || inputs.size() > type().most_inputs()) {
      return invalid_argument(std::string(D::name) + " takes " + type().input_count_text() + " inputs, found " +
                              std::to_string(inputs.size()));
    }
    try {
      outputs = definition_.infer_shapes(inputs);
    } catch (const std::exception& error) {  // for example std::overflow_error for a size that exceeds 64 bits
      return invalid_argument(std::string(D::name) + ": " + error.what());
    }
    return check_output_shapes(type(), outputs);
  }

  [[nodiscard]] bool accepts(const TypeRow& row, std::span<const int> input_ranks) const override {
    if (!has_rank_of_layout(type(), row, input_ranks)) return false;
    if constexpr (detail::has_accepts<D>) return definition_.accepts(row, input_ranks);
    return true;
  }

  [[nodiscard]] std::optional<std::size_t> aliased_input([[maybe_unused]] std::size_t output) const override {
    if constexpr (detail::has_aliased_input<D>) return definition_.aliased_input(output);
    return std::nullopt;
  }

  [[nodiscard]] Status check(const Problem& given) const override {
    if (Status status = check_port_counts(type(), given); !status.ok()) return status;
    if (Status status = check_sizes(type(), given); !status.ok()) return status;
    const Completed all(definition_, given);
    if (Status status = check_formats(type(), *this, all.problem(), given.inputs.size()); !status.ok()) return status;
    if (Status status = check_shapes(*this, given); !status.ok()) return status;
    if constexpr (detail::has_check<D>) return definition_.check(all.problem());
    return {};
  }

  [[nodiscard]] std::size_t workspace(const Problem& given) const override {
    if constexpr (detail::has_workspace<D>) {
      return definition_.workspace(Completed(definition_, given).problem());
    }
    return 0;
  }

  [[nodiscard]] Status run_cpu(const Problem& given, const Buffers& buffers, const CpuContext& context) const override {
    if (Status status = check(given); !status.ok()) return status;
    const Completed all(definition_, given);
    std::array<std::vector<std::byte>, tensor_count> constants;
    std::array<const void*, tensor_count> addresses = all.addresses(buffers);
    if constexpr (has_optional_inputs) {
      const std::span<const TensorDesc> inputs = all.problem().inputs;
      for (std::size_t port = given.inputs.size(); port < all.input_count(); ++port) {
        const TensorDesc& desc = inputs[port];
        constants[port].resize(static_cast<std::size_t>(desc.storage_bytes()));
        definition_.fill_constant(port, desc, constants[port].data());
        addresses[port] = constants[port].data();
      }
    }
    const Buffers completed{std::span(addresses).first(all.input_count()), buffers.outputs, buffers.workspace};
    return run(definition_, all.problem(), completed, context);
  }

  [[nodiscard]] Status prepare_cuda(const Problem& given) const override {
    if (!carries_kernels()) return no_kernels();
    const Completed all(definition_, given);
    std::array<const void*, tensor_count> addresses{};
    return add_constants(all, given.inputs.size(), addresses);
  }

  [[nodiscard]] Status run_cuda(const Problem& given, const Buffers& buffers,
                                const CudaContext& context) const override {
    if (!carries_kernels()) return no_kernels();
    const Completed all(definition_, given);
    std::array<const void*, tensor_count> addresses = all.addresses(buffers);
    if (Status status = add_constants(all, given.inputs.size(), addresses); !status.ok()) return status;
    const Buffers completed{std::span(addresses).first(all.input_count()), buffers.outputs, buffers.workspace};
    std::string reasons;
    for (const Variant<D>& variant : detail::cuda_side<D>.kernels(definition_)) {
      if (!context.variant.empty() && context.variant != variant.name) continue;
      Status fits = variant.fits(definition_, all.problem());
      if (fits.ok()) fits = detail::cuda_side<D>.runs_on_current_device(variant.compute);
      if (fits.ok()) return variant.run(definition_, all.problem(), completed, context);
      reasons += "; " + std::string(variant.name) + ": " + fits.message();
    }
    return unsupported(std::string(D::name) + " has no CUDA variant for this problem" + reasons);
  }

  [[nodiscard]] std::vector<VariantInfo> cuda_variants(const Problem& given) const override {
    std::vector<VariantInfo> infos;
    if (!carries_kernels()) return infos;
    const Completed all(definition_, given);
    for (const Variant<D>& variant : detail::cuda_side<D>.kernels(definition_)) {
      infos.push_back({variant.name, variant.fits(definition_, all.problem()), variant.compute});
    }
    return infos;
  }

  [[nodiscard]] Status function([[maybe_unused]] const FunctionInputs& inputs,
                                std::optional<Function>& result) const override {
    result.reset();
    if constexpr (detail::has_function<D>) {
      return without_exceptions("function", [&] { result = definition_.function(inputs); });
    }
    return {};
  }

  [[nodiscard]] Status native_form([[maybe_unused]] const FunctionInputs& inputs,
                                   std::optional<std::string>& result) const override {
    result.reset();
    if constexpr (detail::has_native_form<D>) {
      return without_exceptions("native_form", [&] { result = definition_.native_form(inputs); });
    }
    return {};
  }

  [[nodiscard]] bool is_data_movement() const override {
    if constexpr (detail::has_is_data_movement<D>) return definition_.is_data_movement();
    return false;
  }

 private:
  /// A Problem to which the optional inputs that the node leaves out are added. It lives on the stack, so that enqueue
  /// allocates nothing.
  class Completed {
   public:
    Completed(const D& definition, const Problem& given) : given_(given), count_(given.inputs.size()) {
      if constexpr (has_optional_inputs) {
        std::copy(given.inputs.begin(), given.inputs.end(), inputs_.begin());
        for (; count_ < operator_type<D>().input_count(); ++count_) {
          inputs_[count_] = definition.constant(count_, given.inputs);
        }
      }
    }
    [[nodiscard]] std::size_t input_count() const { return count_; }
    [[nodiscard]] Problem problem() const {
      if constexpr (has_optional_inputs) return {std::span(inputs_).first(count_), given_.outputs};
      return given_;
    }
    [[nodiscard]] std::array<const void*, tensor_count> addresses(const Buffers& buffers) const {
      std::array<const void*, tensor_count> result{};
      std::copy_n(buffers.inputs.begin(), given_.inputs.size(), result.begin());
      return result;
    }

   private:
    Problem given_;
    std::array<TensorDesc, has_optional_inputs ? tensor_count : 0> inputs_;
    std::size_t count_;
  };

  template <class Call>
  static Status without_exceptions(std::string_view member, const Call& call) {
    try {
      call();
    } catch (const std::exception& error) {
      return invalid_argument("its `" + std::string(member) + "` throws an exception: " + error.what());
    } catch (...) {
      return invalid_argument("its `" + std::string(member) + "` throws an exception, which is no std::exception");
    }
    return {};
  }

  static bool carries_kernels() { return detail::cuda_side<D>.kernels != nullptr; }
  static Status no_kernels() { return unsupported("this program carries no CUDA kernels of " + std::string(D::name)); }

  [[nodiscard]] Status add_constants([[maybe_unused]] const Completed& all, [[maybe_unused]] std::size_t given,
                                     [[maybe_unused]] std::span<const void*> addresses) const {
    if constexpr (has_optional_inputs) {
      const auto missing = all.problem().inputs.subspan(given);
      if (missing.empty()) return {};
      const auto fill = [&](std::size_t index, std::byte* bytes) {
        definition_.fill_constant(given + index, missing[index], bytes);
      };
      // Passes a std::cref, so that std::function allocates nothing in enqueue.
      return constants_->find_or_make(missing, std::cref(fill), addresses.subspan(given, missing.size()));
    }
    return {};
  }

  template <class F>
  static void for_each_attribute(F&& f) {
    std::apply([&](const auto&... attribute) { (f(attribute), ...); }, D::attributes());
  }

  static std::shared_ptr<detail::DeviceConstants> no_constants_yet() {
    if constexpr (has_optional_inputs) {
      if (carries_kernels()) return detail::cuda_side<D>.new_constants();
    }
    return nullptr;
  }

  D definition_;
  std::shared_ptr<detail::DeviceConstants> constants_ = no_constants_yet();
};

template <OperatorDefinition D>
[[nodiscard]] const OperatorType& operator_type() {
  static const OperatorType type = [] {
    OperatorType result{.name = D::name,
                        .version = D::version,
                        .doc = D::doc,
                        .source = D::source,
                        .why_plugin = D::why_plugin,
                        .attributes = {},
                        .ports = {},
                        .type_rows = {},
                        .drop_ins = {},
                        .timed_variants = false,
                        .create = [] { return std::unique_ptr<Operator>(std::make_unique<OperatorOf<D>>()); }};
    std::apply([&](const auto&... attribute) { (result.attributes.push_back(detail::describe(attribute)), ...); },
               D::attributes());
    for (const Port& port : D::ports()) result.ports.push_back(port);
    const auto constraints = D::types();
    result.type_rows = rows_of(result.ports, constraints);
    if constexpr (detail::has_why_plugin_for_floats<D>) result.why_plugin_for_floats = D::why_plugin_for_floats;
    if constexpr (detail::has_int8_weight<D>) result.int8_weight = D::int8_weight;
    if constexpr (detail::has_native_equivalents<D>) result.native_equivalents = D::native_equivalents();
    if constexpr (detail::has_drop_ins<D>) result.drop_ins = D::drop_ins();
    if constexpr (detail::has_onnx_form<D>) result.onnx_form = D::onnx_form();
    if constexpr (detail::has_timed_variants<D>) result.timed_variants = D::timed_variants;
    return result;
  }();
  return type;
}

}  // namespace graft
