// From a definition (a plain struct) to an Operator and its OperatorType. Definitions include this header.
#pragma once

#include <exception>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>

#include "graft/operator.hpp"

namespace graft {

/// One CUDA implementation of a definition. A `<op>_cuda.cu` lists its own in
/// `std::span<const Variant<Definition>> cuda_kernels(const Definition&)`, best first.
template <class Definition>
struct Variant {
  std::string_view name;
  Status (*fits)(const Definition&, const Problem&);
  Status (*run)(const Definition&, const Problem&, const Buffers&, const CudaContext&);
};

/// What every definition must have. See docs/guide/add_an_operator.md for one explained line by line.
///
/// Optional members, found if they are there:
///   bool accepts(const TypeRow&, std::span<const int> input_ranks) const    rows that depend on attributes or ranks
///   Status check(const Problem&) const                                      facts known only at run time
///   std::size_t workspace(const Problem&) const
///   std::optional<Function> function(DType) const
///   std::optional<std::string> native_form(DType) const
///   static std::vector<DropIn> drop_ins()
///   Status check_attributes() const                                         rules between attributes and on list
///   elements
template <class D>
concept OperatorDefinition = std::is_default_constructible_v<D> && std::is_copy_constructible_v<D> &&
    requires(const D& definition, std::span<const Shape> shapes, const Problem& problem, const Buffers& buffers,
             const CpuContext& cpu) {
  { D::name } -> std::convertible_to<std::string_view>;
  { D::version } -> std::convertible_to<int>;
  { D::doc } -> std::convertible_to<std::string_view>;
  { D::source } -> std::convertible_to<std::string_view>;
  { D::why_plugin } -> std::convertible_to<std::string_view>;
  D::attributes();
  D::ports();
  D::type_rows();
  { definition.infer_shapes(shapes) } -> std::same_as<std::vector<Shape>>;
  { run(definition, problem, buffers, cpu) } -> std::same_as<Status>;
};

/// Number of ports and a matching type row.
[[nodiscard]] Status check_formats(const OperatorType& type, const Operator& op, const Problem& problem);
/// The outputs have the shapes that infer_shapes gives them. A dimension that depends on data is not compared.
[[nodiscard]] Status check_shapes(const Operator& op, const Problem& problem);
/// The channel-vector layouts are for N,C,H,W.
[[nodiscard]] bool has_rank_of_layout(const TypeRow& row, std::span<const int> input_ranks);
/// Each by itself, and that none is given twice with different values.
[[nodiscard]] Status check_attributes(const OperatorType& type, std::span<const NamedAttribute> values);

template <OperatorDefinition D>
[[nodiscard]] const OperatorType& operator_type();  // below

template <OperatorDefinition D>
class OperatorOf final : public Operator {
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
    if constexpr (requires { changed.check_attributes(); }) {
      if (Status status = changed.check_attributes(); !status.ok()) return status;
    }
    definition_ = std::move(changed);
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
    if (inputs.size() != type().input_count()) {
      return invalid_argument(std::string(D::name) + " takes " + std::to_string(type().input_count()) +
                              " inputs, found " + std::to_string(inputs.size()));
    }
    try {
      outputs = definition_.infer_shapes(inputs);
    } catch (const std::exception& error) {  // arithmetic on sizes that leaves 64 bits
      return invalid_argument(std::string(D::name) + ": " + error.what());
    }
    return {};
  }

  [[nodiscard]] bool accepts(const TypeRow& row, std::span<const int> input_ranks) const override {
    if (!has_rank_of_layout(row, input_ranks)) return false;
    if constexpr (requires { definition_.accepts(row, input_ranks); }) return definition_.accepts(row, input_ranks);
    return true;
  }

  [[nodiscard]] Status check(const Problem& problem) const override {
    if (Status status = check_formats(type(), *this, problem); !status.ok()) return status;
    if (Status status = check_shapes(*this, problem); !status.ok()) return status;
    if constexpr (requires { definition_.check(problem); }) return definition_.check(problem);
    return {};
  }

  [[nodiscard]] std::size_t workspace(const Problem& problem) const override {
    if constexpr (requires { definition_.workspace(problem); }) return definition_.workspace(problem);
    return 0;
  }

  [[nodiscard]] Status run_cpu(const Problem& problem, const Buffers& buffers,
                               const CpuContext& context) const override {
    if (Status status = check(problem); !status.ok()) return status;
    return run(definition_, problem, buffers, context);
  }

  [[nodiscard]] Status run_cuda([[maybe_unused]] const Problem& problem, [[maybe_unused]] const Buffers& buffers,
                                [[maybe_unused]] const CudaContext& context) const override {
#if GRAFT_WITH_CUDA
    std::string reasons;
    for (const Variant<D>& variant : cuda_kernels(definition_)) {
      if (!context.variant.empty() && context.variant != variant.name) continue;
      if (Status fits = variant.fits(definition_, problem); !fits.ok()) {
        reasons += "; " + std::string(variant.name) + ": " + fits.message();
        continue;
      }
      return variant.run(definition_, problem, buffers, context);
    }
    return unsupported(std::string(D::name) + " has no CUDA variant for this problem" + reasons);
#else
    return unsupported("this build of Graft has no CUDA kernels");
#endif
  }

  [[nodiscard]] std::vector<VariantInfo> cuda_variants([[maybe_unused]] const Problem& problem) const override {
    std::vector<VariantInfo> infos;
#if GRAFT_WITH_CUDA
    for (const Variant<D>& variant : cuda_kernels(definition_)) {
      infos.push_back({variant.name, variant.fits(definition_, problem)});
    }
#endif
    return infos;
  }

  [[nodiscard]] std::optional<Function> function([[maybe_unused]] DType input_dtype) const override {
    if constexpr (requires { definition_.function(input_dtype); }) return definition_.function(input_dtype);
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::string> native_form([[maybe_unused]] DType input_dtype) const override {
    if constexpr (requires { definition_.native_form(input_dtype); }) return definition_.native_form(input_dtype);
    return std::nullopt;
  }

 private:
  template <class F>
  static void for_each_attribute(F&& f) {
    std::apply([&](const auto&... attribute) { (f(attribute), ...); }, D::attributes());
  }

  D definition_;
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
                        .create = [] { return std::unique_ptr<Operator>(std::make_unique<OperatorOf<D>>()); }};
    std::apply([&](const auto&... attribute) { (result.attributes.push_back(detail::describe(attribute)), ...); },
               D::attributes());
    for (const Port& port : D::ports()) result.ports.push_back(port);
    for (const TypeRow& row : D::type_rows()) result.type_rows.push_back(row);
    if constexpr (requires { D::drop_ins(); }) result.drop_ins = D::drop_ins();
    return result;
  }();
  return type;
}

}  // namespace graft
