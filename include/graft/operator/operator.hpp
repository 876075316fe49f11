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
  optional_input,  ///< An input that a node may leave out. The definition's member `constant` then supplies the input.
  variadic_input,  ///< The last input port, for which a node has one or more tensors.
  /// An integer input from whose values output sizes are computed. The values are known before the operator runs.
  shape_input,
  output,
  size_output,  ///< An output that contains one integer: the size of a dimension of another output.
};

/// An input or output of an operator. `shape`, such as "N,C,...", only appears in the documentation.
struct Port {
  std::string_view name;
  PortType type;
  std::string_view shape;
  std::string_view doc;
  PortKind kind = PortKind::input;
  /// The name of the attribute that holds the port's scale for i8 and f8e4m3fn: real value = scale * stored value, zero
  /// point 0. The attribute is one number; for the input of Int8Weight, one number for each slice.
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
/// Declares an input that a node may leave out. All inputs after it must be optional too. See `constant` in
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
/// Declares an output that contains the value of a data_size() in the shapes of the other outputs. Its type is i64, or
/// i32 in TensorRT older than 10.15; kernels write the type that Problem has. Only size outputs may follow it.
[[nodiscard]] constexpr Port size_output(std::string_view name, std::string_view doc) {
  return {.name = name, .type = DType::i64, .shape = "scalar", .doc = doc, .kind = PortKind::size_output};
}

/// A combination of formats that an operator accepts: one format for each port, inputs first, including optional ones.
struct TypeRow {
  /// The maximum number of ports of an operator, and of tensors of a node.
  static constexpr std::size_t max_ports = 32;
  std::array<Format, max_ports> formats{};
  std::size_t count = 0;

  /// Creates a row from one format for each port.
  template <class... Formats>  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr TypeRow(Formats... row) : formats{Format(row)...}, count(sizeof...(row)) {}
};

/// The usual constraint T of operators on numeric tensors: all formats that TensorRT offers to plugins, except
/// f8e4m3fn.
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

/// The facts, besides the attributes, on which a node's ONNX function or native form may depend.
struct FunctionInputs {
  DType dtype = DType::f32;  ///< The type of the first input.
  /// The number of inputs of the node, including shape inputs. It is smaller than the number of input ports if optional
  /// inputs are left out, and larger if a variadic input has several tensors.
  std::size_t count = 1;
  int rank = -1;  ///< The rank of the first input, or -1 if the rank is not known.
};

struct NamedAttribute {
  std::string_view name;
  AttributeValue value;
};

/// A field of another library's plugin. It sets an attribute of the operator, or DropIn::translate converts its value.
struct DropInField {
  std::string_view name;       ///< The field's name in the other plugin.
  std::string_view attribute;  ///< The operator's attribute that takes the field's value; empty for a translated field.
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
  /// Values for attributes that no field sets, where they differ from the attributes' own defaults.
  std::vector<NamedAttribute> defaults = {};
  /// Converts the values of translated fields to attributes of the operator and appends them to `attributes`, which
  /// already contains the attributes that the other fields set. Engines store the resulting attributes. Called only if
  /// a node has a translated field.
  Status (*translate)(std::span<const NamedAttribute> fields, std::vector<NamedAttribute>& attributes) = nullptr;
  /// The name of the operator's input for each input of the other plugin, or "" for an input that the operator does not
  /// need. An empty list means the operator's own inputs in their own order. See InputOrder.
  std::vector<std::string_view> inputs = {};

  /// Returns the field of this name, or null if the plugin has no such field.
  [[nodiscard]] const DropInField* find(std::string_view field) const;
};

/// The standard ONNX operator that a Graft operator implements. Attributes of both have the same names, and the outputs
/// of the ONNX operator are the first outputs of the Graft operator.
struct OnnxForm {
  std::string_view name;
  /// For each input of the ONNX operator, the name of the operator's input or, if the ONNX input must be a constant, of
  /// the operator's attribute. The operator's inputs keep their order in this list. An empty list stands for the
  /// operator's own inputs.
  std::vector<std::string_view> inputs = {};
  /// Attributes whose default differs between opsets of ONNX. TensorRT does not pass the opset to a plugin, so a node
  /// under ONNX's name must state these attributes.
  std::vector<std::string_view> changed_defaults = {};
  /// Whether TensorRT's parser has a layer or plugin of its own for the name. It then uses this plugin only if the flag
  /// ENABLE_PLUGIN_OVERRIDE is set, and a node must list every output of the plugin.
  bool needs_override = false;
};

/// A standard ONNX operator that computes the same as the Graft operator. `attributes` pairs the attribute names of
/// both operators.
struct NativeEquivalent {
  struct Attribute {
    std::string_view standard;
    std::string_view own;
  };
  std::string_view op;
  std::vector<Attribute> attributes;
};

/// A weight that int8 quantization stores as i8, with one scale for each slice along its first axis. The weight of a
/// node is either an input or an attribute; the attribute has the elements in row-major order, and a second attribute
/// has the number of slices.
struct Int8Weight {
  std::size_t input = 0;
  std::string_view numbers;  ///< The attribute that holds the weight's elements in f32.
  std::string_view slices;   ///< The attribute that holds the number of slices.
  std::string_view scales;   ///< The attribute that holds one scale for each slice.
};

/// A CUDA implementation of an operator, and whether it fits a given problem.
struct VariantInfo {
  std::string_view name;
  Status fits;  ///< ok() if the variant fits; otherwise the message says why it does not.
  /// The compute capability that the variant requires: 90 for devices of capability 9.x only, 0 for all devices.
  int compute = 0;
};
/// Returns ok() if the current device can run variants with this `compute`; otherwise unsupported, with the two compute
/// capabilities in the message. Calls CUDA unless `compute` is 0. Defined only in programs with kernels.
[[nodiscard]] Status runs_on_current_device(int compute);

struct OperatorType;

/// An operator with values for its attributes. Running an operator does not change it, so several threads may use one
/// object.
class Operator {
 public:
  virtual ~Operator() = default;
  Operator& operator=(const Operator&) = delete;

  [[nodiscard]] virtual const OperatorType& type() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Operator> clone() const = 0;

  /// Sets all attributes, or none if any of them is refused. Returns invalid_argument for an unknown name, a wrong
  /// type, a value out of range, two different values for one attribute, and a violated rule between attributes; the
  /// message names the attribute.
  [[nodiscard]] virtual Status set(std::span<const NamedAttribute> attributes) = 0;
  [[nodiscard]] Status set(std::string_view attribute, const AttributeValue& value);
  /// Returns the value of an attribute, or nothing for an unknown name.
  [[nodiscard]] virtual std::optional<AttributeValue> get(std::string_view attribute) const = 0;

  /// Computes the shapes of the outputs. `inputs` contains the shape of each input; for a shape input, it contains the
  /// input's values. Fails for a wrong number of inputs, if the definition throws an exception (for sizes beyond 64
  /// bits), or if check_output_shapes refuses the result.
  [[nodiscard]] virtual Status infer_shapes(std::span<const Shape> inputs, std::vector<Shape>& outputs) const = 0;
  /// Returns whether this node can use a type row. TensorRT reports only ranks at this point, and -1 stands for a rank
  /// that is not known yet; the rank of the first input is always known.
  [[nodiscard]] virtual bool accepts(const TypeRow& row, std::span<const int> input_ranks) const = 0;
  /// Returns the input whose memory this output may share, for state that is updated in place; nothing for other
  /// outputs. Both tensors have the same type, layout and shape. Kernels also run if the two have separate memory.
  [[nodiscard]] virtual std::optional<std::size_t> aliased_input(std::size_t output) const = 0;
  /// Checks the number of tensors, their formats, ranks and sizes at run time. Every member function with a Problem
  /// expects the inputs that the node has; the operator adds the optional inputs that the node omits.
  [[nodiscard]] virtual Status check(const Problem& problem) const = 0;
  /// Returns the bytes of device scratch memory that run_cuda needs.
  [[nodiscard]] virtual std::size_t workspace(const Problem& problem) const = 0;

  /// Runs the reference kernel, which supports linear layouts only. Calls `check` first.
  [[nodiscard]] virtual Status run_cpu(const Problem& problem, const Buffers& buffers,
                                       const CpuContext& context) const = 0;
  /// Copies the optional inputs that attributes supply to the current device, if they are not there yet. Without this
  /// call, the first run_cuda copies them. Returns unsupported in a program without kernels.
  [[nodiscard]] virtual Status prepare_cuda(const Problem& problem) const = 0;
  /// Queues a kernel on the context's stream; may be called during CUDA graph capture. Does not call `check`. Runs the
  /// variant that the context names or, if it names none, the first variant that fits the problem and runs on the
  /// current device. Returns unsupported, with the reasons, if no variant does both.
  [[nodiscard]] virtual Status run_cuda(const Problem& problem, const Buffers& buffers,
                                        const CudaContext& context) const = 0;
  /// Returns the variants in order of preference, or an empty list in a program without kernels. Does not call CUDA.
  [[nodiscard]] virtual std::vector<VariantInfo> cuda_variants(const Problem& problem) const = 0;

  /// Writes the ONNX function of a node to `result`, or nothing if standard operators cannot express the operator.
  /// Fails if the definition throws an exception: exceptions must not cross from a library into the program, because
  /// each has its own C++ runtime.
  [[nodiscard]] virtual Status function(const FunctionInputs& inputs, std::optional<Function>& result) const = 0;
  /// Writes a single native layer that is exact and as fast as the plugin to `result`, in the syntax of Function::body,
  /// or nothing if no such layer exists. Fails as `function` does.
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
  std::string_view doc;         ///< The formula of the operator, and its purpose.
  std::string_view source;      ///< The source of the formula: a paper, or a function of a framework.
  std::string_view why_plugin;  ///< Why the operator needs a plugin, as `convert` prints it.
  /// Why nodes of floating-point numbers need a plugin, if that differs from `why_plugin`; otherwise empty.
  std::string_view why_plugin_for_floats = {};
  std::vector<AttributeInfo> attributes;
  std::vector<Port> ports;  ///< All inputs and outputs: inputs first, size outputs last.
  std::vector<TypeRow> type_rows;
  std::vector<DropIn> drop_ins;
  /// Whether TensorRT times all variants that fit and chooses the fastest. Otherwise the first variant that fits runs.
  bool timed_variants = false;
  std::optional<Int8Weight> int8_weight = std::nullopt;
  std::vector<NativeEquivalent> native_equivalents = {};
  std::optional<OnnxForm> onnx_form = std::nullopt;
  std::unique_ptr<Operator> (*create)() = nullptr;  ///< Creates an operator whose attributes have their default values.

  /// Returns the number of input ports. Optional ports count, and a variadic port counts once.
  [[nodiscard]] std::size_t input_count() const;
  [[nodiscard]] std::size_t required_input_count() const;
  [[nodiscard]] std::size_t most_inputs() const;  ///< Returns the maximum number of inputs of a node.
  /// Returns the number of shape inputs, which are the last inputs of a node.
  [[nodiscard]] std::size_t shape_input_count() const;
  [[nodiscard]] std::size_t output_count() const;  ///< Returns the number of outputs, including size outputs.
  [[nodiscard]] std::size_t size_output_count() const;
  [[nodiscard]] const AttributeInfo* find_attribute(std::string_view attribute) const;
  /// Returns the index of the input port of this name, or nothing.
  [[nodiscard]] std::optional<std::size_t> find_input(std::string_view input) const;
  /// Returns whether TensorRT's parser can create the plugin, under the name in `onnx_form`, for nodes as ONNX defines
  /// them. This requires that each input of the ONNX operator is an input of this operator, that there is no shape
  /// input, and that an operator that needs ENABLE_PLUGIN_OVERRIDE has no size output.
  [[nodiscard]] bool takes_onnx_nodes() const;
  /// Returns the allowed number of inputs of a node: "2" or "1 to 3".
  [[nodiscard]] std::string input_count_text() const;
  /// Returns the name of input `index` of a node: the name of its port, or x_1, x_2 and so on for the tensors of a
  /// variadic port x.
  [[nodiscard]] std::string input_name(std::size_t index) const;
  /// Returns the port of tensor `index` of a node with `given` inputs. The node's outputs are counted after its inputs.
  [[nodiscard]] std::size_t port_of(std::size_t given, std::size_t index) const;
  /// Returns the format in `row` of tensor `index` of a node with `given` inputs. The node's outputs are counted after
  /// its inputs.
  [[nodiscard]] const Format& format_of(const TypeRow& row, std::size_t given, std::size_t index) const;
  /// Returns the output types of the first row that matches `input_dtypes`, which may include or omit the types of
  /// shape inputs; nothing if no row matches.
  [[nodiscard]] std::optional<std::vector<DType>> output_dtypes(std::span<const DType> input_dtypes) const;
};

/// Checks that each tensor has at most 2^48 elements, ignoring extents of 0. No device holds more, and values computed
/// from the sizes (bytes, workspaces) then fit in 64 bits. Returns invalid_argument for a larger tensor.
[[nodiscard]] Status check_sizes(const OperatorType& type, const Problem& problem);

/// Computes the extents of the outputs for a Problem: a dimension that depends on data has its largest value.
/// `shape_values` contains the values of each shape input.
[[nodiscard]] Status infer_extents(const Operator& op, std::span<const TensorDesc> inputs,
                                   std::vector<Extents>& outputs, std::span<const Extents> shape_values = {});
/// Computes the extents of the outputs after the operator has run. `addresses` contains an address in host memory for
/// each output of `problem`, from which size outputs are read. Fails if a size output is negative or exceeds its
/// largest value.
[[nodiscard]] Status read_extents(const Operator& op, const Problem& problem, std::span<const void* const> addresses,
                                  std::vector<Extents>& outputs);

/// Creates the operator for a plugin node. If the node has the name of another library's plugin, `drop_in` describes
/// the plugin; otherwise it is null. `fields` have the names of the plugin's fields or of Graft's attributes. Fails as
/// Operator::set does, and if a required field or attribute is missing or a translated field has a wrong type.
[[nodiscard]] Status make_operator(const OperatorType& type, const DropIn* drop_in,
                                   std::span<const NamedAttribute> fields, std::unique_ptr<Operator>& result);

}  // namespace graft
