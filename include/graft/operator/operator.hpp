// Operators: the types from which a definition is built, and the interface through which every tool uses an operator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graft/operator/attribute.hpp"
#include "graft/operator/dtype.hpp"
#include "graft/operator/layout.hpp"
#include "graft/operator/shape.hpp"
#include "graft/operator/status.hpp"
#include "graft/operator/tensor.hpp"

namespace graft {

/// The domain of Graft's nodes in ONNX files, and the namespace of Graft's TensorRT plugins.
inline constexpr std::string_view onnx_domain = "graft";

/// The element type and the memory layout of a port.
struct Format {
  DType dtype = DType::f32;
  Layout layout = Layout::linear;
  constexpr Format() = default;
  constexpr Format(DType d, Layout l = Layout::linear) : dtype(d), layout(l) {}  // NOLINT(google-explicit-constructor)
  friend constexpr bool operator==(const Format&, const Format&) = default;
};

/// A named set of formats, such as "T": f32, f16. All ports with the same name have the same format in a node.
struct TypeConstraint {
  static constexpr std::size_t max_formats = 16;
  std::string_view name;
  std::array<Format, max_formats> formats{};
  std::size_t count = 0;

  template <class... Formats>
  explicit constexpr TypeConstraint(std::string_view type_name, Formats... allowed)
      : name(type_name), formats{Format(allowed)...}, count(sizeof...(allowed)) {}
};

/// The type of a port: the name of a TypeConstraint, or one fixed DType in the linear layout.
struct PortType {
  std::string_view constraint = {};
  DType fixed = DType::f32;
  constexpr PortType(const char* name) : constraint(name) {}  // NOLINT(google-explicit-constructor)
  constexpr PortType(DType dtype) : fixed(dtype) {}           // NOLINT(google-explicit-constructor)
};

/// The kind of a port. A definition lists its ports in this order.
enum class PortKind {
  input,
  optional_input,  ///< A node may leave it out; `constant` of the definition then supplies the input.
  variadic_input,  ///< A node has one or more tensors for this port.
  shape_input,     ///< Integers from which output sizes are computed, known before the operator runs.
  output,
  size_output,  ///< An integer that the operator writes: the size of a dimension of another output.
};

/// An input or output. `shape` is shown in the documentation only: "N,C,...".
struct Port {
  std::string_view name;
  PortType type;
  std::string_view shape;
  std::string_view doc;
  PortKind kind = PortKind::input;
  /// The attribute that holds the scale where the port is i8 or f8e4m3fn: real value = scale * stored value, zero point
  /// 0. The attribute is a number; for the input of Int8Weight, one number for each slice.
  std::string_view scale = {};

  [[nodiscard]] constexpr Port scaled_by(std::string_view attribute) const {
    Port port = *this;
    port.scale = attribute;
    return port;
  }
  [[nodiscard]] constexpr bool is_output() const { return kind >= PortKind::output; }
  [[nodiscard]] constexpr bool is_optional() const { return kind == PortKind::optional_input; }
  [[nodiscard]] constexpr bool is_variadic() const { return kind == PortKind::variadic_input; }
  [[nodiscard]] constexpr bool is_shape() const { return kind == PortKind::shape_input; }
  [[nodiscard]] constexpr bool is_size() const { return kind == PortKind::size_output; }
};
[[nodiscard]] constexpr Port input(std::string_view name, PortType type, std::string_view shape, std::string_view doc) {
  return {.name = name, .type = type, .shape = shape, .doc = doc};
}
/// Declares an input that a node may leave out. Only optional inputs may follow among the inputs. See `constant` in
/// define_operator.hpp.
[[nodiscard]] constexpr Port optional_input(std::string_view name, PortType type, std::string_view shape,
                                            std::string_view doc) {
  return {.name = name, .type = type, .shape = shape, .doc = doc, .kind = PortKind::optional_input};
}
/// Declares the last inputs of a node: one or more tensors of one type. In the ONNX function of the node, "x" is x_1,
/// x_2 and so on. The type is neither i8 nor f8e4m3fn, as each tensor would need a scale. An operator with a variadic
/// input has no optional inputs.
[[nodiscard]] constexpr Port variadic_input(std::string_view name, PortType type, std::string_view shape,
                                            std::string_view doc) {
  return {.name = name, .type = type, .shape = shape, .doc = doc, .kind = PortKind::variadic_input};
}
/// Declares an i64 tensor of rank 1 with at most 8 values, from which shapes of outputs are computed: infer_shapes gets
/// the values as dimensions in the place of a shape. Kernels read only the sizes of the outputs; Problem and Buffers do
/// not contain shape inputs. They are the last inputs. An operator with a shape input has a `check` of the outputs'
/// sizes, and neither optional nor variadic inputs.
[[nodiscard]] constexpr Port shape_input(std::string_view name, std::string_view shape, std::string_view doc) {
  return {.name = name, .type = DType::i64, .shape = shape, .doc = doc, .kind = PortKind::shape_input};
}
[[nodiscard]] constexpr Port output(std::string_view name, PortType type, std::string_view shape,
                                    std::string_view doc) {
  return {.name = name, .type = type, .shape = shape, .doc = doc, .kind = PortKind::output};
}
/// Declares the output that holds the value of a data_size() in the outputs' shapes: one i64, or one i32 with a
/// TensorRT older than 10.15; kernels write the type that Problem has. Only size outputs may follow.
[[nodiscard]] constexpr Port size_output(std::string_view name, std::string_view doc) {
  return {.name = name, .type = DType::i64, .shape = "scalar", .doc = doc, .kind = PortKind::size_output};
}

/// A combination of formats that an operator accepts: one format for each port, inputs first, including optional ones.
struct TypeRow {
  /// The maximum number of ports of an operator, and of tensors of a node.
  static constexpr std::size_t max_ports = 32;
  std::array<Format, max_ports> formats{};
  std::size_t count = 0;

  /// Takes one format for each port.
  template <class... Formats>  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr TypeRow(Formats... row) : formats{Format(row)...}, count(sizeof...(row)) {}
};

/// All formats that TensorRT offers to a plugin of numbers, except f8e4m3fn: T of most operators.
inline constexpr TypeConstraint every_format("T", DType::f32, DType::f16, DType::bf16, DType::i8,
                                             Format(DType::f16, Layout::hwc8), Format(DType::bf16, Layout::hwc8),
                                             Format(DType::i8, Layout::chw32));
/// `every_format` with f8e4m3fn, which TensorRT supports on devices of compute capability 8.9 and later.
inline constexpr TypeConstraint every_format_and_f8("T", DType::f32, DType::f16, DType::bf16, DType::i8,
                                                    DType::f8e4m3fn, Format(DType::f16, Layout::hwc8),
                                                    Format(DType::bf16, Layout::hwc8),
                                                    Format(DType::i8, Layout::chw32));

/// Returns a row for every combination of one format per constraint; the first constraint changes slowest.
[[nodiscard]] std::vector<TypeRow> rows_of(std::span<const Port> ports, std::span<const TypeConstraint> constraints);

/// An ONNX model-local function (opset 17) of standard operators that computes the same as the operator. `body` has one
/// node on each line, `y = LeakyRelu<alpha=@alpha>(x)`; `@name` refers to the node's attribute. `name` is the
/// operator's name where one body serves all attributes; otherwise it is composed of the attributes that determine the
/// body.
struct Function {
  std::string name;
  std::string body;
};

/// The facts on which a function or native form may depend, besides the attributes.
struct FunctionInputs {
  DType dtype = DType::f32;  ///< The type of the first input.
  /// The number of inputs of the node, including shape inputs: fewer than input ports where optional ones are left out,
  /// more where a variadic one has several tensors.
  std::size_t count = 1;
  int rank = -1;  ///< The rank of the first input; -1 where it is not known.
};

struct NamedAttribute {
  std::string_view name;
  AttributeValue value;
};

/// A field of another library's plugin. It sets an attribute of the operator, or DropIn::translate converts its value.
struct DropInField {
  std::string_view name;       ///< The field's name in the other plugin.
  std::string_view attribute;  ///< The operator's attribute with the field's value; empty for a translated field.
  /// The type of a translated field. A field with `attribute` has that attribute's type.
  AttributeType type = AttributeType::float_number;
  std::string_view doc = {};  ///< The description of a translated field.
  bool is_required = false;   ///< Whether the other plugin has no default for the field.
};
/// A plugin of another library that an operator can replace under the plugin's own name and version. The other library
/// defines its fields, their defaults and their meaning.
struct DropIn {
  std::string_view plugin_name;
  std::string_view version;
  std::vector<DropInField> fields;
  std::string_view doc;
  /// Values of the operator's attributes where no field sets them, if they differ from the attributes' own defaults.
  std::vector<NamedAttribute> defaults = {};
  /// Converts the values of translated fields to attributes of the operator and appends these to `attributes`, which
  /// already contains the attributes that other fields set. Engines store the attributes. Called only where a node has
  /// a translated field.
  Status (*translate)(std::span<const NamedAttribute> fields, std::vector<NamedAttribute>& attributes) = nullptr;
  /// For each input of the other plugin, the name of the operator's input; "" for an input that the operator does not
  /// need. Empty: the operator's own inputs in their order. See InputOrder.
  std::vector<std::string_view> inputs = {};

  /// Returns null for an unknown name.
  [[nodiscard]] const DropInField* find(std::string_view field) const;
};

/// The operator of ONNX's own domain that an operator computes. Attributes have the same names, and the outputs are the
/// same, beginning with the first.
struct OnnxForm {
  std::string_view name;
  /// For each input of the ONNX operator, the name of the operator's input or, where the ONNX input is a constant, of
  /// the operator's attribute. The operator's inputs among them keep their order. Empty: the operator's inputs.
  std::vector<std::string_view> inputs = {};
  /// Attributes whose default differs between operator sets of ONNX. TensorRT does not pass the operator set to a
  /// plugin, so a node under ONNX's name has to have these attributes.
  std::vector<std::string_view> changed_defaults = {};
  /// Whether TensorRT's parser has a layer or plugin of its own for the name. It then uses this plugin only under its
  /// flag ENABLE_PLUGIN_OVERRIDE, and a node has to list every output of the plugin.
  bool needs_override = false;
};

/// A standard ONNX operator that computes the same, with the names of its attributes in both operators.
struct NativeEquivalent {
  struct Attribute {
    std::string_view standard;
    std::string_view own;
  };
  std::string_view op;
  std::vector<Attribute> attributes;
};

/// A weight that int8 quantization stores as i8, with one scale for each slice of its first axis. A node has the weight
/// as an input or, row-major and together with the number of slices, in attributes.
struct Int8Weight {
  std::size_t input = 0;
  std::string_view numbers;  ///< The attribute that holds the weight in f32.
  std::string_view slices;   ///< The attribute that holds the number of slices.
  std::string_view scales;   ///< The attribute that holds the scales.
};

/// A CUDA implementation, and whether it fits a problem.
struct VariantInfo {
  std::string_view name;
  Status fits;      ///< ok() where the variant fits; otherwise the message says why it does not.
  int compute = 0;  ///< 90: runs on devices of compute capability 9.x only. 0: runs on all devices.
};
/// Returns whether the current device can run variants with this `compute`. Calls CUDA unless it is 0. Defined only in
/// programs with kernels.
[[nodiscard]] Status runs_on_current_device(int compute);

struct OperatorType;

/// An operator with values for its attributes. Running it does not change it, so several threads may use one object.
class Operator {
 public:
  virtual ~Operator() = default;
  Operator& operator=(const Operator&) = delete;

  [[nodiscard]] virtual const OperatorType& type() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Operator> clone() const = 0;

  /// Sets all attributes or, where one is refused, none. Returns invalid_argument for an unknown name, a wrong type, a
  /// value out of range, two different values for one attribute, and a violated rule between attributes; the message
  /// names the attribute.
  [[nodiscard]] virtual Status set(std::span<const NamedAttribute> attributes) = 0;
  [[nodiscard]] Status set(std::string_view attribute, const AttributeValue& value);
  /// Returns the value of an attribute, or nothing for an unknown name.
  [[nodiscard]] virtual std::optional<AttributeValue> get(std::string_view attribute) const = 0;

  /// Computes the shapes of the outputs. `inputs` has the shape of each input and, for a shape input, its values. Fails
  /// for a wrong number of inputs, where the definition throws (sizes beyond 64 bits), and where check_output_shapes
  /// refuses the result.
  [[nodiscard]] virtual Status infer_shapes(std::span<const Shape> inputs, std::vector<Shape>& outputs) const = 0;
  /// Returns whether this node can use a type row. TensorRT reports only ranks at this point, and -1 stands for a rank
  /// that is not known yet; the rank of the first input is always known.
  [[nodiscard]] virtual bool accepts(const TypeRow& row, std::span<const int> input_ranks) const = 0;
  /// Returns the input whose memory an output may use: state that is updated in place. Both have the same type, layout
  /// and shape. Kernels also run where each has its own memory. Returns nothing for other outputs.
  [[nodiscard]] virtual std::optional<std::size_t> aliased_input(std::size_t output) const = 0;
  /// Checks the number of tensors, their formats, ranks and sizes, as they are at run time. All calls with a Problem
  /// get the inputs of the node; the operator supplies the optional inputs that the node omits.
  [[nodiscard]] virtual Status check(const Problem& problem) const = 0;
  /// Returns the bytes of device scratch memory that run_cuda needs.
  [[nodiscard]] virtual std::size_t workspace(const Problem& problem) const = 0;

  /// Runs the reference kernel; linear layouts only. Calls `check` first.
  [[nodiscard]] virtual Status run_cpu(const Problem& problem, const Buffers& buffers,
                                       const CpuContext& context) const = 0;
  /// Copies inputs that attributes supply to the current device, unless that was done before. Otherwise the first
  /// run_cuda does so. Returns unsupported in a program without kernels.
  [[nodiscard]] virtual Status prepare_cuda(const Problem& problem) const = 0;
  /// Queues a kernel on the context's stream; legal inside CUDA graph capture. Does not call `check`. Runs the variant
  /// that the context names or, where it names none, the first variant that fits and runs on the current device.
  /// Returns unsupported, with the reasons, where no variant does.
  [[nodiscard]] virtual Status run_cuda(const Problem& problem, const Buffers& buffers,
                                        const CudaContext& context) const = 0;
  /// Returns the variants in order of preference; an empty list in a program without kernels. Makes no CUDA call.
  [[nodiscard]] virtual std::vector<VariantInfo> cuda_variants(const Problem& problem) const = 0;

  /// Writes the ONNX function of a node to `result`; nothing where standard operators cannot express it. Fails where
  /// the definition throws an exception, which must not cross from a library into the program: each has its own C++
  /// runtime.
  [[nodiscard]] virtual Status function(const FunctionInputs& inputs, std::optional<Function>& result) const = 0;
  /// Writes a single native layer that is exact and as fast to `result`, in the syntax of Function::body; nothing where
  /// no such layer exists. Fails as `function` does.
  [[nodiscard]] virtual Status native_form(const FunctionInputs& inputs, std::optional<std::string>& result) const = 0;
  /// Returns whether every element of the outputs is an element of the input or 0, so that the int8 scale of the input
  /// is also right for the output.
  [[nodiscard]] virtual bool is_data_movement() const = 0;

 protected:
  Operator() = default;
  Operator(const Operator&) = default;
};

/// The properties of an operator that do not depend on the values of its attributes. There is one object for each line
/// of ops.inc.
struct OperatorType {
  std::string_view name;
  int version = 1;
  std::string_view doc;         ///< The formula, and the purpose of the operator.
  std::string_view source;      ///< The source of the maths: a paper or a function of a framework.
  std::string_view why_plugin;  ///< The reason for the plugin that `convert` prints.
  /// The reason for nodes of floating-point numbers, where it differs; otherwise empty.
  std::string_view why_plugin_for_floats = {};
  std::vector<AttributeInfo> attributes;
  std::vector<Port> ports;  ///< All inputs and outputs: inputs first, size outputs last.
  std::vector<TypeRow> type_rows;
  std::vector<DropIn> drop_ins;
  /// Whether TensorRT times the variants that fit and chooses one; otherwise the first that fits runs.
  bool timed_variants = false;
  std::optional<Int8Weight> int8_weight = std::nullopt;
  std::vector<NativeEquivalent> native_equivalents = {};
  std::optional<OnnxForm> onnx_form = std::nullopt;
  std::unique_ptr<Operator> (*create)() = nullptr;  ///< Creates an operator with the default of each attribute.

  /// The number of input ports: optional ones count, and a variadic one counts once.
  [[nodiscard]] std::size_t input_count() const;
  [[nodiscard]] std::size_t required_input_count() const;
  [[nodiscard]] std::size_t most_inputs() const;  ///< The maximum number of inputs of a node.
  /// The number of shape inputs, which are the last inputs of a node.
  [[nodiscard]] std::size_t shape_input_count() const;
  [[nodiscard]] std::size_t output_count() const;  ///< The number of outputs, including size outputs.
  [[nodiscard]] std::size_t size_output_count() const;
  [[nodiscard]] const AttributeInfo* find_attribute(std::string_view attribute) const;
  /// Returns the index of the input port of this name, or nothing.
  [[nodiscard]] std::optional<std::size_t> find_input(std::string_view input) const;
  /// Returns whether TensorRT's parser can create the plugin, under the name of `onnx_form`, for nodes as ONNX defines
  /// them: each input of the ONNX operator is an input of this operator, there is no shape input, and an operator that
  /// needs ENABLE_PLUGIN_OVERRIDE has no size output.
  [[nodiscard]] bool takes_onnx_nodes() const;
  /// Returns the allowed number of inputs of a node: "2" or "1 to 3".
  [[nodiscard]] std::string input_count_text() const;
  /// Returns the name of input `index` of a node: the name of its port; tensors of a variadic port are x_1, x_2 and so
  /// on.
  [[nodiscard]] std::string input_name(std::size_t index) const;
  /// Returns the port of tensor `index` of a node with `given` inputs. The node's outputs are counted after its inputs.
  [[nodiscard]] std::size_t port_of(std::size_t given, std::size_t index) const;
  /// Returns the format in `row` of tensor `index` of a node with `given` inputs. The node's outputs are counted after
  /// its inputs.
  [[nodiscard]] const Format& format_of(const TypeRow& row, std::size_t given, std::size_t index) const;
  /// Returns the output types of the first row that matches the input types, with or without the types of shape inputs;
  /// nothing where no row matches.
  [[nodiscard]] std::optional<std::vector<DType>> output_dtypes(std::span<const DType> input_dtypes) const;
};

/// Checks that the product of a tensor's extents, except those that are 0, is at most 2^48: no device holds more, and
/// values computed from it (bytes, workspaces) then fit in 64 bits. Returns invalid_argument for a larger tensor.
[[nodiscard]] Status check_sizes(const OperatorType& type, const Problem& problem);

/// Computes the extents of the outputs, as Problem needs them: a dimension that depends on data has its largest value.
/// `shape_values` has the values of each shape input.
[[nodiscard]] Status infer_extents(const Operator& op, std::span<const TensorDesc> inputs,
                                   std::vector<Extents>& outputs, std::span<const Extents> shape_values = {});
/// Computes the extents of the outputs after the operator has run. `addresses` has one address in host memory for each
/// output of `problem`; size outputs are read from there. Fails where a size output is negative or exceeds its largest
/// value.
[[nodiscard]] Status read_extents(const Operator& op, const Problem& problem, std::span<const void* const> addresses,
                                  std::vector<Extents>& outputs);

/// Creates the operator for a plugin node of another library. `fields` have the names of that plugin's fields or of
/// Graft's attributes. Fails as Operator::set does, and where a required field or attribute is missing or a translated
/// field has a wrong type.
[[nodiscard]] Status make_operator(const OperatorType& type, const DropIn* drop_in,
                                   std::span<const NamedAttribute> fields, std::unique_ptr<Operator>& result);

}  // namespace graft
