// Operators: the vocabulary in which a definition is written, and the form in which every tool sees one.
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

#include "graft/attribute.hpp"
#include "graft/dtype.hpp"
#include "graft/layout.hpp"
#include "graft/shape.hpp"
#include "graft/status.hpp"
#include "graft/tensor.hpp"

namespace graft {

/// The domain of Graft's nodes in ONNX files, and the version of its operator set.
inline constexpr std::string_view onnx_domain = "graft";

/// How one port's elements are stored.
struct Format {
  DType dtype = DType::f32;
  Layout layout = Layout::linear;
  constexpr Format() = default;
  constexpr Format(DType d, Layout l = Layout::linear) : dtype(d), layout(l) {}  // NOLINT(google-explicit-constructor)
  friend constexpr bool operator==(const Format&, const Format&) = default;
};

/// The formats that a name stands for: "T" f32, f16. All ports of that name have the same one of them.
struct TypeConstraint {
  static constexpr std::size_t max_formats = 16;
  std::string_view name;
  std::array<Format, max_formats> formats{};
  std::size_t count = 0;

  template <class... Formats>
  explicit constexpr TypeConstraint(std::string_view type_name, Formats... allowed)
      : name(type_name), formats{Format(allowed)...}, count(sizeof...(allowed)) {}
};

/// That of a constraint, by its name, or one that is always the same, in the linear layout.
struct PortType {
  std::string_view constraint = {};
  DType fixed = DType::f32;
  constexpr PortType(const char* name) : constraint(name) {}  // NOLINT(google-explicit-constructor)
  constexpr PortType(DType dtype) : fixed(dtype) {}           // NOLINT(google-explicit-constructor)
};

/// In the order in which ports come.
enum class PortKind {
  input,
  optional_input,  ///< A node may leave it out; the definition then supplies it.
  variadic_input,  ///< A node has one tensor of it or more.
  shape_input,     ///< Integers that sizes of outputs are computed from, known before the operator runs.
  output,
  size_output,  ///< Says how large others are.
};

/// An input or output. `shape` is for people: "N,C,..." .
struct Port {
  std::string_view name;
  PortType type;
  std::string_view shape;
  std::string_view doc;
  PortKind kind = PortKind::input;
  /// The attribute that holds the real value of 1 in it where it is i8 or f8e4m3fn: a number, of Int8Weight's input one
  /// for each slice. The zero point is 0.
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
/// Only other optional inputs follow it. See `constant` in define_operator.hpp.
[[nodiscard]] constexpr Port optional_input(std::string_view name, PortType type, std::string_view shape,
                                            std::string_view doc) {
  return {.name = name, .type = type, .shape = shape, .doc = doc, .kind = PortKind::optional_input};
}
/// One tensor or more, all of one type, the last inputs of a node: in its function "x" is x_1, x_2 and so on. It is
/// neither i8 nor f8e4m3fn, as each of its tensors would need a scale. An operator with one has no optional inputs.
[[nodiscard]] constexpr Port variadic_input(std::string_view name, PortType type, std::string_view shape,
                                            std::string_view doc) {
  return {.name = name, .type = type, .shape = shape, .doc = doc, .kind = PortKind::variadic_input};
}
/// An i64 tensor of at most 8 values and 1 axis, which shapes of outputs are made of: infer_shapes has its values as
/// dimensions where other inputs have their shape. Kernels do not get it, they know it by the sizes of the outputs; nor
/// do Problem and Buffers hold it. The last inputs; an operator with one has a `check` of the outputs' sizes, and
/// neither optional nor variadic inputs.
[[nodiscard]] constexpr Port shape_input(std::string_view name, std::string_view shape, std::string_view doc) {
  return {.name = name, .type = DType::i64, .shape = shape, .doc = doc, .kind = PortKind::shape_input};
}
[[nodiscard]] constexpr Port output(std::string_view name, PortType type, std::string_view shape,
                                    std::string_view doc) {
  return {.name = name, .type = type, .shape = shape, .doc = doc, .kind = PortKind::output};
}
/// What a data_size() of the outputs' shapes turned out to be: one i64, or an i32 where TensorRT is older than 10.15
/// and asks for that; kernels write it as Problem says. Only other size outputs follow it.
[[nodiscard]] constexpr Port size_output(std::string_view name, std::string_view doc) {
  return {.name = name, .type = DType::i64, .shape = "scalar", .doc = doc, .kind = PortKind::size_output};
}

/// One combination of formats that an operator accepts: a format for each port, inputs first, optional ones among them.
struct TypeRow {
  static constexpr std::size_t max_ports = 32;  ///< Of an operator, and tensors of a node.
  std::array<Format, max_ports> formats{};
  std::size_t count = 0;

  /// A format for each port.
  template <class... Formats>  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr TypeRow(Formats... row) : formats{Format(row)...}, count(sizeof...(row)) {}
};

/// All that a plugin of numbers can be offered: T of most operators.
inline constexpr TypeConstraint every_format("T", DType::f32, DType::f16, DType::bf16, DType::i8,
                                             Format(DType::f16, Layout::hwc8), Format(DType::bf16, Layout::hwc8),
                                             Format(DType::i8, Layout::chw32));
/// The same with f8e4m3fn, which TensorRT has on devices of compute capability 8.9 and later.
inline constexpr TypeConstraint every_format_and_f8("T", DType::f32, DType::f16, DType::bf16, DType::i8,
                                                    DType::f8e4m3fn, Format(DType::f16, Layout::hwc8),
                                                    Format(DType::bf16, Layout::hwc8),
                                                    Format(DType::i8, Layout::chw32));

/// Every choice of a format for each constraint, the first constraint changing slowest.
[[nodiscard]] std::vector<TypeRow> rows_of(std::span<const Port> ports, std::span<const TypeConstraint> constraints);

/// The same maths in standard ONNX operators (opset 17), as an ONNX model-local function.
/// `body` is text: one node a line, `y = LeakyRelu<alpha=@alpha>(x)`; `@name` refers to the node's attribute.
/// `name` is the operator's own where one body serves all attributes, otherwise made from those that shape the body.
struct Function {
  std::string name;
  std::string body;
};

/// What a function or native form may depend on beside the attributes.
struct FunctionInputs {
  DType dtype = DType::f32;  ///< Of the first input.
  /// Inputs that the node has, shape inputs among them; optional ones may be left out, variadic ones repeated.
  std::size_t count = 1;
  int rank = -1;  ///< Of the first input; -1 where it is not known.
};

struct NamedAttribute {
  std::string_view name;
  AttributeValue value;
};

/// A field of a plugin of another library.
struct DropInField {
  std::string_view name;       ///< As the other plugin calls it.
  std::string_view attribute;  ///< The operator's attribute that takes its value; empty for one that is translated.
  AttributeType type = AttributeType::float_number;  ///< Of a translated field; any other has its attribute's.
  std::string_view doc = {};                         ///< Of a translated field.
  bool is_required = false;                          ///< The other plugin refuses to be made without it.
};
/// A plugin of another library that an operator can stand in for. Its fields, their defaults and what they mean are the
/// other library's.
struct DropIn {
  std::string_view plugin_name;
  std::string_view version;
  std::vector<DropInField> fields;
  std::string_view doc;
  /// What the operator's attributes are under this name where no field sets them, if not their own defaults.
  std::vector<NamedAttribute> defaults = {};
  /// From those translated fields that were given to attributes of the operator, which already holds what the other
  /// fields set. Engines keep the attributes. Called if a translated field was given.
  Status (*translate)(std::span<const NamedAttribute> fields, std::vector<NamedAttribute>& attributes) = nullptr;
  /// The operator's input that each input of the other plugin is, by name; "" for one that the operator does not need.
  /// Empty: the operator's own inputs in their order. See InputOrder.
  std::vector<std::string_view> inputs = {};

  /// Null for an unknown name.
  [[nodiscard]] const DropInField* find(std::string_view field) const;
};

/// The operator of ONNX's own domain that an operator computes: with attributes of the same names and, from the first
/// on, the same outputs.
struct OnnxForm {
  std::string_view name;
  /// What each of its inputs is here, by name: an input of the operator or, where it is a constant, an attribute. The
  /// operator's inputs among them are in its order. Empty: they are the operator's inputs.
  std::vector<std::string_view> inputs = {};
  /// Attributes that mean something else where a node of an older operator set lacks them than in a newer set. A plugin
  /// is not told the set, so that under ONNX's name they have to be given.
  std::vector<std::string_view> changed_defaults = {};
  /// TensorRT's parser has a layer or plugin of its own for the name, and looks for this one under its flag
  /// ENABLE_PLUGIN_OVERRIDE alone, where a node has to list every output that the plugin has.
  bool needs_override = false;
};

/// A standard ONNX operator that computes the same, and how its attributes are called here.
struct NativeEquivalent {
  struct Attribute {
    std::string_view standard;
    std::string_view own;
  };
  std::string_view op;
  std::vector<Attribute> attributes;
};

/// A weight that i8 stores as i8, with one scale for each slice of its first axis. A node has it as an input or,
/// row-major and with the count of slices beside it, in attributes.
struct Int8Weight {
  std::size_t input = 0;
  std::string_view numbers;  ///< The attribute that holds it in f32.
  std::string_view slices;   ///< The attribute that counts the slices.
  std::string_view scales;   ///< The attribute that takes the scales.
};

/// One CUDA implementation and whether it can take a problem.
struct VariantInfo {
  std::string_view name;
  Status fits;      ///< Not ok says why it does not fit.
  int compute = 0;  ///< 90: runs on devices of compute capability 9.x only. 0: on all.
};
/// Whether the current device can run variants of that `compute`; asks CUDA unless it is 0. In programs with kernels.
[[nodiscard]] Status runs_on_current_device(int compute);

struct OperatorType;

/// An operator with values for its attributes. Immutable while it runs, so one object may serve many threads.
class Operator {
 public:
  virtual ~Operator() = default;
  Operator& operator=(const Operator&) = delete;

  [[nodiscard]] virtual const OperatorType& type() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Operator> clone() const = 0;

  /// Sets all of them or, where one is refused, none. Refuses an unknown name, a wrong type, a value out of range, two
  /// different values for one attribute, and what breaks a rule between attributes; the message names the attribute.
  [[nodiscard]] virtual Status set(std::span<const NamedAttribute> attributes) = 0;
  [[nodiscard]] Status set(std::string_view attribute, const AttributeValue& value);
  /// Nothing for an unknown name.
  [[nodiscard]] virtual std::optional<AttributeValue> get(std::string_view attribute) const = 0;

  /// Of a shape input `inputs` has the values.
  [[nodiscard]] virtual Status infer_shapes(std::span<const Shape> inputs, std::vector<Shape>& outputs) const = 0;
  /// Whether a type row can be used by this node; the ranks are all that is known when TensorRT asks, and -1 stands for
  /// one that it has not told yet. The first input's is always known.
  [[nodiscard]] virtual bool accepts(const TypeRow& row, std::span<const int> input_ranks) const = 0;
  /// The input whose memory an output takes, where the caller can have it so: state that is updated in place. The two
  /// have one description. Kernels also run where each has memory of its own. Nothing for other outputs.
  [[nodiscard]] virtual std::optional<std::size_t> aliased_input(std::size_t output) const = 0;
  /// Everything that must hold at run time: number of ports, formats, ranks, sizes.
  [[nodiscard]] virtual Status check(const Problem& problem) const = 0;
  /// Bytes of scratch memory that run_cuda needs. In all calls that take a Problem, its inputs are those of the node:
  /// what is left out is supplied by the operator.
  [[nodiscard]] virtual std::size_t workspace(const Problem& problem) const = 0;

  /// Linear layouts only.
  [[nodiscard]] virtual Status run_cpu(const Problem& problem, const Buffers& buffers,
                                       const CpuContext& context) const = 0;
  /// Makes what run_cuda needs on the current device besides its buffers: copies of inputs that attributes supply. The
  /// first run_cuda does it otherwise.
  [[nodiscard]] virtual Status prepare_cuda(const Problem& problem) const = 0;
  /// Asynchronous on the context's stream; legal inside CUDA graph capture. Without a variant in the context
  /// the first that fits and runs on the current device is taken; a named one that does not is refused.
  [[nodiscard]] virtual Status run_cuda(const Problem& problem, const Buffers& buffers,
                                        const CudaContext& context) const = 0;
  /// In the order of preference; empty in a program that carries no kernels. Makes no CUDA call.
  [[nodiscard]] virtual std::vector<VariantInfo> cuda_variants(const Problem& problem) const = 0;

  /// Nothing where standard operators cannot express it. Fails where the definition throws an exception, which must not
  /// cross from a library into the program: each has a C++ runtime of its own.
  [[nodiscard]] virtual Status function(const FunctionInputs& inputs, std::optional<Function>& result) const = 0;
  /// A single native layer that is exact and as fast, as text in the manner of Function::body; nothing where there is
  /// none. Fails as `function` does.
  [[nodiscard]] virtual Status native_form(const FunctionInputs& inputs, std::optional<std::string>& result) const = 0;
  /// Every element of the results is one that it reads, or 0: an int8 scale of the input is right for the output.
  [[nodiscard]] virtual bool is_data_movement() const = 0;

 protected:
  Operator() = default;
  Operator(const Operator&) = default;
};

/// What is known of an operator without an instance. One for each line of ops.inc.
struct OperatorType {
  std::string_view name;
  int version = 1;
  std::string_view doc;                         ///< The formula and what it is for.
  std::string_view source;                      ///< Where the maths comes from: a paper or a framework's function.
  std::string_view why_plugin;                  ///< The reason that `convert` gives for choosing the plugin.
  std::string_view why_plugin_for_floats = {};  ///< The same for nodes of floating-point numbers, where it differs.
  std::vector<AttributeInfo> attributes;
  std::vector<Port> ports;  ///< Inputs first, size outputs last.
  std::vector<TypeRow> type_rows;
  std::vector<DropIn> drop_ins;
  /// TensorRT times the variants that fit and chooses; otherwise the first that fits is taken.
  bool timed_variants = false;
  std::optional<Int8Weight> int8_weight = std::nullopt;
  std::vector<NativeEquivalent> native_equivalents = {};
  std::optional<OnnxForm> onnx_form = std::nullopt;
  std::unique_ptr<Operator> (*create)() = nullptr;  ///< With every attribute at its default.

  [[nodiscard]] std::size_t input_count() const;  ///< Ports: with the optional ones, and a variadic one once.
  [[nodiscard]] std::size_t required_input_count() const;
  [[nodiscard]] std::size_t most_inputs() const;        ///< Of a node.
  [[nodiscard]] std::size_t shape_input_count() const;  ///< They are the last of a node's inputs.
  [[nodiscard]] std::size_t output_count() const;       ///< With the size outputs.
  [[nodiscard]] std::size_t size_output_count() const;
  [[nodiscard]] const AttributeInfo* find_attribute(std::string_view attribute) const;
  /// Nothing for a name that no input port has.
  [[nodiscard]] std::optional<std::size_t> find_input(std::string_view input) const;
  /// Whether TensorRT's parser makes a plugin under the name of `onnx_form` of nodes as ONNX has them: each of their
  /// inputs is one of the operator's, and no shape input, and the parser does not ask them for a size output.
  [[nodiscard]] bool takes_onnx_nodes() const;
  /// How many a node has: "2" or "1 to 3".
  [[nodiscard]] std::string input_count_text() const;
  /// What input `index` of a node is called: as its port, tensors of a variadic one as x_1, x_2 and so on.
  [[nodiscard]] std::string input_name(std::size_t index) const;
  /// The port of tensor `index` of a node with `given` inputs, its outputs counted after those.
  [[nodiscard]] std::size_t port_of(std::size_t given, std::size_t index) const;
  /// The format that a row asks of tensor `index` of a node with `given` inputs, its outputs counted after those.
  [[nodiscard]] const Format& format_of(const TypeRow& row, std::size_t given, std::size_t index) const;
  /// The output types that go with these input types, those of shape inputs among them or not; nothing where no row
  /// matches.
  [[nodiscard]] std::optional<std::vector<DType>> output_dtypes(std::span<const DType> input_dtypes) const;
};

/// That products of a tensor's extents, other than 0, stay below 2^48: no device holds more, and what is computed from
/// them (bytes, workspaces) then fits in 64 bits.
[[nodiscard]] Status check_sizes(const OperatorType& type, const Problem& problem);

/// The extents of the outputs, each dimension that depends on data as large as it may become: what Problem wants.
/// `shape_values`: those of each shape input.
[[nodiscard]] Status infer_extents(const Operator& op, std::span<const TensorDesc> inputs,
                                   std::vector<Extents>& outputs, std::span<const Extents> shape_values = {});
/// The same once the operator has run: size outputs are read from `addresses`, one in host memory for each output of
/// `problem`. Fails if one holds what it may not.
[[nodiscard]] Status read_extents(const Operator& op, const Problem& problem, std::span<const void* const> addresses,
                                  std::vector<Extents>& outputs);

/// The operator that a plugin node of another library asks for; `fields` are named as that plugin or as Graft's
/// attributes. Fails as Operator::set does; where an attribute with no default is missing as well.
[[nodiscard]] Status make_operator(const OperatorType& type, const DropIn* drop_in,
                                   std::span<const NamedAttribute> fields, std::unique_ptr<Operator>& result);

}  // namespace graft
