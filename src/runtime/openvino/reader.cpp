// Converts a prepared model to OpenVINO with an ONNX reader that supports Graft's operators.
#include "runtime/openvino/reader.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <istream>
#include <new>
#include <openvino/frontend/onnx/extension/conversion.hpp>
#include <openvino/frontend/onnx/frontend.hpp>
#include <openvino/op/add.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/divide.hpp>
#include <openvino/op/greater.hpp>
#include <openvino/op/less.hpp>
#include <openvino/op/not_equal.hpp>
#include <openvino/op/op.hpp>
#include <openvino/op/select.hpp>
#include <openvino/op/subtract.hpp>
#include <openvino/op/topk.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <set>
#include <streambuf>
#include <string>
#include <vector>

#include "graft/setting.hpp"
#include "onnx/elements.hpp"
#include "onnx/onnx_io.hpp"
#include "onnx/operator_node.hpp"
#include "onnx/temporary_folder.hpp"
#include "runtime/openvino/element_types.hpp"
#include "runtime/openvino/integer_arithmetic.hpp"
#include "runtime/openvino/integer_nodes.hpp"
#include "runtime/openvino/keep_nan.hpp"
#include "runtime/openvino/message.hpp"

namespace graft::runtime {
namespace {

std::vector<TensorDesc> describe_all(const ov::TensorVector& tensors, const std::vector<DType>& dtypes) {
  std::vector<TensorDesc> descs;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const ov::Shape& shape = tensors[i].get_shape();
    TensorDesc desc{.dtype = dtypes[i], .layout = Layout::linear, .extents = {}};
    const Status made = Extents::make(std::vector<std::int64_t>(shape.begin(), shape.end()), desc.extents);
    if (!made.ok()) OPENVINO_THROW(made.message());
    descs.push_back(desc);
  }
  return descs;
}

ov::Shape to_shape(const Extents& extents) { return {extents.begin(), extents.end()}; }

std::optional<std::vector<DType>> dtypes_of(const std::vector<ov::element::Type>& types) {
  std::vector<DType> dtypes;
  for (const ov::element::Type& type : types) {
    const auto dtype = to_dtype(from_openvino(type));
    if (!dtype) return std::nullopt;
    dtypes.push_back(*dtype);
  }
  return dtypes;
}

ov::Tensor convert(const ov::Tensor& tensor, const ov::element::Type& type) {
  if (tensor.get_element_type() == type) return tensor;
  ov::op::v0::Convert conversion;
  conversion.set_destination_type(type);
  ov::TensorVector result{ov::Tensor(type, tensor.get_shape())};
  if (!conversion.evaluate(result, {tensor}))
    OPENVINO_THROW("no conversion from ", tensor.get_element_type(), " to ", type);
  return result[0];
}

/// Returns the type that an operator declares to OpenVINO's CPU plugin in place of `declared`. The plugin has neither
/// i64 nor boolean internally, and converts these types only in its own operations, so a node after the operator
/// converts its result to the declared type.
DType shown_type(DType declared) {
  if (declared == DType::i64) return DType::i32;
  return declared == DType::boolean ? DType::u8 : declared;
}

/// The types in which one call of a kernel computes.
struct KernelTypes {
  std::vector<DType> inputs;
  std::vector<DType> outputs;
};

/// An OpenVINO operation that runs one of Graft's operators. It has no state, because the CPU plugin may evaluate one
/// object on several threads.
///
/// The plugin changes types: f16 and bf16 tensors arrive as f32, i64 as i32, booleans as u8. If the operator accepts
/// the types that arrive (one of its TypeRow objects matches them), the node declares the output types of that TypeRow,
/// and the kernel computes in its types. Otherwise, and always if PlacedOperator::in_declared_types is set, the kernel
/// computes in the types that the model declares, and tensors are converted before and after it.
class OperatorNode : public ov::op::Op {
 public:
  OPENVINO_OP("Operator", "graft");

  OperatorNode() = default;
  OperatorNode(const ov::OutputVector& inputs, PlacedOperator placed) : Op(inputs), placed_(std::move(placed)) {
    declared_ = input_types();
    constructor_validate_and_infer_types();
  }

  void validate_and_infer_types() override {
    std::vector<Shape> shapes;
    bool ranks_known = true;
    for (std::size_t i = 0; i < get_input_size() && ranks_known; ++i) {
      if (i >= tensor_input_count()) {
        const auto values = values_of_shape_input(i);
        ranks_known = values.has_value();
        if (values) shapes.push_back(*values);
        continue;
      }
      const ov::PartialShape& shape = get_input_partial_shape(i);
      ranks_known = shape.rank().is_static();
      if (!ranks_known) break;
      Shape& dims = shapes.emplace_back();
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        dims.push_back(shape[axis].is_static() ? Dim(shape[axis].get_length())
                                               : Dim::symbol(fmt::format("d{}_{}", i, axis)));
      }
    }
    std::vector<Shape> outputs;
    if (ranks_known) require(op().infer_shapes(shapes, outputs));
    const KernelTypes types = kernel_types(input_types());
    set_output_size(types.outputs.size());
    for (std::size_t i = 0; i < types.outputs.size(); ++i) {
      ov::PartialShape shape = ov::PartialShape::dynamic();
      if (ranks_known) {
        shape = ov::PartialShape::dynamic(static_cast<std::int64_t>(outputs[i].size()));
        for (std::size_t axis = 0; axis < outputs[i].size(); ++axis) {
          if (outputs[i][axis].is_constant()) shape[axis] = outputs[i][axis].value();
        }
      }
      set_output_type(i, to_openvino(onnx::to_element_type(shown_type(types.outputs[i]))), shape);
    }
  }

  std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override {
    auto clone = std::make_shared<OperatorNode>();
    clone->set_arguments(inputs);
    clone->placed_ = placed_;
    clone->declared_ = declared_;
    clone->validate_and_infer_types();
    return clone;
  }

  bool visit_attributes(ov::AttributeVisitor& visitor) override {
    visitor.on_attribute("node", placed_.node);
    return true;
  }

  bool has_evaluate() const override { return true; }

  bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override {
    std::vector<ov::element::Type> arrived;
    for (const ov::Tensor& input : inputs) arrived.push_back(input.get_element_type());
    const KernelTypes types = placed_.in_declared_types ? kernel_types(declared_) : kernel_types(arrived);

    ov::TensorVector sources;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      sources.push_back(convert(inputs[i], to_openvino(onnx::to_element_type(types.inputs[i]))));
    }
    std::vector<Extents> shape_values;
    for (; sources.size() > tensor_input_count(); sources.pop_back()) {
      const auto* values = sources.back().data<std::int64_t>();
      const std::vector<std::int64_t> all(values, values + sources.back().get_size());
      require(Extents::make(all, *shape_values.emplace(shape_values.begin())));
    }
    const std::vector<TensorDesc> source_descs = describe_all(sources, types.inputs);

    std::vector<Extents> result_extents;  // the upper bounds if sizes depend on data
    require(infer_extents(op(), source_descs, result_extents, shape_values));
    const bool has_data_sizes = op().type().size_output_count() > 0;
    ov::TensorVector results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ov::Shape shape = to_shape(result_extents[i]);
      const ov::element::Type type = to_openvino(onnx::to_element_type(types.outputs[i]));
      if (!has_data_sizes) outputs[i].set_shape(shape);
      const bool is_in_place = !has_data_sizes && outputs[i].get_element_type() == type;
      results.push_back(is_in_place ? outputs[i] : ov::Tensor(type, shape));
    }
    const std::vector<TensorDesc> result_descs = describe_all(results, types.outputs);

    std::vector<const void*> addresses;
    for (const ov::Tensor& source : sources) addresses.push_back(source.data());
    std::vector<void*> targets;
    for (ov::Tensor& result : results) targets.push_back(result.data());
    const Problem problem{source_descs, result_descs};
    const CpuContext context{.parallel_for = [](std::int64_t count, const CpuContext::Body& body) {
      tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, count),
                        [&](const tbb::blocked_range<std::int64_t>& range) { body(range.begin(), range.end()); });
    }};
    require(op().run_cpu(problem, {addresses, targets, nullptr}, context));

    if (has_data_sizes) {
      require(read_extents(op(), problem, std::vector<const void*>(targets.begin(), targets.end()), result_extents));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      ov::Tensor found = results[i];
      if (has_data_sizes) {
        const ov::Shape shape = to_shape(result_extents[i]);
        outputs[i].set_shape(shape);
        found = ov::Tensor(found.get_element_type(), shape, results[i].data());  // a view of the memory of results[i]
      }
      if (found.data() != outputs[i].data()) convert(found, outputs[i].get_element_type()).copy_to(outputs[i]);
    }
    return true;
  }

 private:
  [[nodiscard]] const Operator& op() const { return *placed_.op; }

  void require(const Status& status) const {
    if (!status.ok()) OPENVINO_THROW(placed_.node, ": ", status.message());
  }

  [[nodiscard]] std::size_t tensor_input_count() const { return get_input_size() - op().type().shape_input_count(); }

  /// Returns the values of a shape input: integers if it is a constant, otherwise symbols. Returns nothing if not even
  /// their count is known.
  [[nodiscard]] std::optional<Shape> values_of_shape_input(std::size_t input) const {
    if (const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(get_input_node_shared_ptr(input))) {
      const auto values = constant->cast_vector<std::int64_t>();
      return Shape(values.begin(), values.end());
    }
    const ov::PartialShape& shape = get_input_partial_shape(input);
    if (shape.is_dynamic()) return std::nullopt;
    Shape values;
    for (std::size_t i = 0; i < ov::shape_size(shape.to_shape()); ++i) {
      values.push_back(Dim::symbol(fmt::format("d{}_{}", input, i)));
    }
    return values;
  }

  [[nodiscard]] std::vector<ov::element::Type> input_types() const {
    std::vector<ov::element::Type> types;
    for (std::size_t i = 0; i < get_input_size(); ++i) types.push_back(get_input_element_type(i));
    return types;
  }

  [[nodiscard]] KernelTypes kernel_types(const std::vector<ov::element::Type>& arrived) const {
    for (const auto* types : {&arrived, &declared_}) {
      auto inputs = dtypes_of(*types);
      // Shape inputs arrive as i32, but operators declare them as i64.
      if (inputs) std::fill(inputs->begin() + std::ptrdiff_t(tensor_input_count()), inputs->end(), DType::i64);
      const auto outputs = inputs ? op().type().output_dtypes(*inputs) : std::nullopt;
      if (outputs) return {*inputs, *outputs};
    }
    std::string found;
    for (const ov::element::Type& type : declared_)
      found += (found.empty() ? "" : ", ") + to_string(from_openvino(type));
    OPENVINO_THROW(placed_.node, ": ", op().type().name, " does not take inputs of type ", found);
  }

  PlacedOperator placed_;
  std::vector<ov::element::Type> declared_;
};

ov::OutputVector make_operator_node(const ov::frontend::NodeContext& node,
                                    const std::vector<PlacedOperator>& operators) {
  const auto index = static_cast<std::size_t>(node.get_attribute<std::int64_t>("index"));
  ov::OutputVector inputs;
  std::vector<DType> dtypes;
  for (std::size_t i = 0; i < node.get_input_size(); ++i) {
    inputs.push_back(node.get_input(static_cast<int>(i)));
    dtypes.push_back(to_dtype(from_openvino(inputs.back().get_element_type())).value_or(DType::f32));
  }
  const PlacedOperator& placed = operators.at(index);
  ov::OutputVector outputs = std::make_shared<OperatorNode>(inputs, placed)->outputs();
  const auto declared = placed.op->type().output_dtypes(dtypes);
  for (std::size_t i = 0; declared && i < outputs.size(); ++i) {
    const DType type = (*declared)[i];
    if (type == DType::boolean) {
      // NotEqual is used instead of Convert: the plugin removes a Convert to boolean and then reads the operator's
      // first output, whichever output was meant.
      const auto zero = ov::op::v0::Constant::create(ov::element::u8, {}, {0});
      outputs[i] = std::make_shared<ov::op::v1::NotEqual>(outputs[i], zero);
    } else if (shown_type(type) != type) {
      outputs[i] = std::make_shared<ov::op::v0::Convert>(outputs[i], to_openvino(onnx::to_element_type(type)));
    }
  }
  return outputs;
}

/// Rounds each element to f16 or bf16, which arrive as f32. It has no state, like OperatorNode.
class RoundingNode : public ov::op::Op {
 public:
  OPENVINO_OP("Rounding", "graft");

  RoundingNode() = default;
  RoundingNode(const ov::Output<ov::Node>& input, std::int64_t to) : Op({input}), to_(to) {
    constructor_validate_and_infer_types();
  }

  void validate_and_infer_types() override {
    set_output_type(0, get_input_element_type(0), get_input_partial_shape(0));
  }

  std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& inputs) const override {
    return std::make_shared<RoundingNode>(inputs.at(0), to_);
  }

  bool visit_attributes(ov::AttributeVisitor& visitor) override {
    visitor.on_attribute("to", to_);
    return true;
  }

  bool has_evaluate() const override { return true; }

  bool evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const override {
    const ov::Tensor source = convert(inputs[0], ov::element::f32);
    outputs[0].set_shape(source.get_shape());
    ov::Tensor result = outputs[0].get_element_type() == ov::element::f32
                            ? outputs[0]
                            : ov::Tensor(ov::element::f32, source.get_shape());
    const float* from = source.data<float>();
    float* to = result.data<float>();
    const auto round_all = [&](auto round) {
      tbb::parallel_for(tbb::blocked_range<std::size_t>(0, source.get_size()), [&](const auto& range) {
        for (std::size_t i = range.begin(); i != range.end(); ++i) to[i] = round(from[i]);
      });
    };
    if (to_ == static_cast<std::int64_t>(onnx::ElementType::f16)) {
      round_all([](float value) { return onnx::round_to_f16(value); });
    } else {
      round_all([](float value) { return onnx::round_to_bf16(value); });
    }
    if (result.data() != outputs[0].data()) convert(result, outputs[0].get_element_type()).copy_to(outputs[0]);
    return true;
  }

 private:
  std::int64_t to_ = 0;
};

/// Convert(x, bf16) becomes Convert(Rounding(x), bf16), also in sub-graphs. On processors with AVX512_BF16 OpenVINO's
/// CPU plugin converts to bf16 by truncation; on other processors it keeps the f32. The number is rounded first, so
/// that the conversion is exact.
void round_before_bf16(ov::Model& model) {
  for (const std::shared_ptr<ov::Node>& node : model.get_ordered_ops()) {
    if (const auto parent = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node)) {
      for (const std::shared_ptr<ov::Model>& body : parent->get_functions()) round_before_bf16(*body);
    }
    const bool narrows = ov::is_type<ov::op::v0::Convert>(node) &&
                         node->get_output_element_type(0) == ov::element::bf16 &&
                         node->get_input_element_type(0) != ov::element::bf16;
    if (!narrows) continue;
    ov::Output<ov::Node> wide = node->input_value(0);
    if (wide.get_element_type() != ov::element::f32) {
      wide = std::make_shared<ov::op::v0::Convert>(wide, ov::element::f32);
    }
    const auto rounded = std::make_shared<RoundingNode>(wide, static_cast<std::int64_t>(onnx::ElementType::bf16));
    node->input(0).replace_source_output(rounded);
  }
}

/// Builds ThresholdedRelu with a Select. OpenVINO's own reader multiplies with 0 here and in Shrink, which turns
/// infinity into NaN.
ov::OutputVector make_thresholded_relu(const ov::frontend::NodeContext& node) {
  const ov::Output<ov::Node> x = node.get_input(0);
  const auto number = [&](float value) { return ov::op::v0::Constant::create(x.get_element_type(), {}, {value}); };
  const auto above = std::make_shared<ov::op::v1::Greater>(x, number(node.get_attribute<float>("alpha", 1.0F)));
  return std::make_shared<ov::op::v1::Select>(above, x, number(0))->outputs();
}

ov::OutputVector make_shrink(const ov::frontend::NodeContext& node) {
  const ov::Output<ov::Node> x = node.get_input(0);
  const auto number = [&](float value) { return ov::op::v0::Constant::create(x.get_element_type(), {}, {value}); };
  constexpr float usual_limit = 0.5F;
  const auto limit = node.get_attribute<float>("lambd", usual_limit);
  const auto bias = number(node.get_attribute<float>("bias", 0.0F));
  const auto above = std::make_shared<ov::op::v1::Greater>(x, number(limit));
  const auto below = std::make_shared<ov::op::v1::Less>(x, number(-limit));
  const auto lower = std::make_shared<ov::op::v1::Subtract>(x, bias);
  const auto higher = std::make_shared<ov::op::v1::Add>(x, bias);
  const auto outside = std::make_shared<ov::op::v1::Select>(above, lower, number(0));
  return std::make_shared<ov::op::v1::Select>(below, higher, outside)->outputs();
}

/// A stream buffer over existing bytes. A string stream would copy them.
class MemoryBuffer : public std::streambuf {
 public:
  explicit MemoryBuffer(std::string& bytes) { setg(bytes.data(), bytes.data(), bytes.data() + bytes.size()); }

 protected:
  pos_type seekoff(off_type offset, std::ios_base::seekdir direction, std::ios_base::openmode) override {
    const char* base = direction == std::ios_base::beg ? eback() : direction == std::ios_base::cur ? gptr() : egptr();
    const off_type position = base - eback() + offset;
    if (position < 0 || position > egptr() - eback()) return pos_type(off_type(-1));
    setg(eback(), eback() + position, egptr());
    return position;
  }
  pos_type seekpos(pos_type position, std::ios_base::openmode mode) override {
    return seekoff(off_type(position), std::ios_base::beg, mode);
  }
};

/// Returns a text that lists the nodes of unknown operators, for an error message in which OpenVINO names no node.
std::string foreign_nodes(const onnx::Model& model) {
  std::set<std::string> found;
  model.graph().for_each_node([&](const onnx::Node& node) {
    if (node.domain != engine_domain && !onnx::is_standard_operator(node.domain, node.op_type)) {
      found.insert(onnx::describe(node));
    }
  });
  if (found.empty()) return "";
  std::string text;
  for (const std::string& node : found) text += (text.empty() ? "; unknown to ONNX and to Graft: " : ", ") + node;
  return fmt::format(
      "{}\nLoad the library of your own operator with {}, or add the operator's ONNX function to the model", text,
      setting_name(Setting::operator_libraries));
}

/// Sets integer division to round towards zero, as in ONNX. OpenVINO's reader requests Python's division, which
/// constant folding performs and the CPU plugin ignores.
void divide_towards_zero(const ov::Model& model) {
  for (const std::shared_ptr<ov::Node>& node : model.get_ops()) {
    if (const auto divide = ov::as_type_ptr<ov::op::v1::Divide>(node)) divide->set_is_pythondiv(false);
    if (const auto parent = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node)) {
      for (const std::shared_ptr<ov::Model>& body : parent->get_functions()) divide_towards_zero(*body);
    }
  }
}

/// Sets TopK to be stable: among equal elements ONNX selects the lowest indices, in ascending order. OpenVINO's own
/// reader leaves their order to the algorithm.
void keep_order_of_equals(const ov::Model& model) {
  for (const std::shared_ptr<ov::Node>& node : model.get_ops()) {
    const auto top_k = ov::as_type_ptr<ov::op::v11::TopK>(node);
    // Without sorted results, equal elements have no prescribed order.
    if (top_k && top_k->get_sort_type() == ov::op::TopKSortType::SORT_VALUES) top_k->set_stable(true);
    if (const auto parent = ov::as_type_ptr<ov::op::util::MultiSubGraphOp>(node)) {
      for (const std::shared_ptr<ov::Model>& body : parent->get_functions()) keep_order_of_equals(*body);
    }
  }
}

}  // namespace

std::shared_ptr<ov::Model> read_into_openvino(const PreparedModel& prepared) {
  const onnx::Model& model = prepared.model;
  try {
    ov::frontend::onnx::FrontEnd reader;
    reader.add_extension(std::make_shared<ov::frontend::onnx::ConversionExtension>(
        std::string(engine_operator), std::string(engine_domain),
        [&](const ov::frontend::NodeContext& node) { return make_operator_node(node, prepared.operators); }));
    reader.add_extension(std::make_shared<ov::frontend::onnx::ConversionExtension>(
        std::string(engine_rounding), std::string(engine_domain),
        [](const ov::frontend::NodeContext& node) -> ov::OutputVector {
          return std::make_shared<RoundingNode>(node.get_input(0), node.get_attribute<std::int64_t>("to"))->outputs();
        }));
    reader.add_extension(std::make_shared<ov::frontend::onnx::ConversionExtension>(
        std::string(engine_quantize), std::string(engine_domain), make_quantize));
    reader.add_extension(std::make_shared<ov::frontend::onnx::ConversionExtension>(
        std::string(engine_fixed), std::string(engine_domain), make_fixed));
    reader.add_extension(
        std::make_shared<ov::frontend::onnx::ConversionExtension>("ThresholdedRelu", make_thresholded_relu));
    reader.add_extension(std::make_shared<ov::frontend::onnx::ConversionExtension>("Shrink", make_shrink));

    std::shared_ptr<ov::Model> result;
    if (onnx::weight_bytes(model) > onnx::largest_serialized_weights) {
      const onnx::TemporaryFolder folder;
      const std::filesystem::path path = folder.path() / "model.onnx";
      onnx::write_onnx(model, path, {.external_data = onnx::ExternalData::always});
      result = reader.convert(reader.load(path.string()));
    } else {
      std::string bytes = serialize_onnx(model);
      MemoryBuffer buffer(bytes);
      std::istream stream(&buffer);
      result = reader.convert(reader.load(static_cast<std::istream*>(&stream)));
    }
    divide_towards_zero(*result);
    keep_order_of_equals(*result);
    keep_nan(*result);
    round_before_bf16(*result);
    return result;
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& refused) {  // ONNX function builders throw their own exception types.
    throw Error(model.source + ": the CPU engine cannot read this model: " + shorten_openvino_message(refused.what()) +
                foreign_nodes(model));
  }
}

}  // namespace graft::runtime
