// The report of `ops`: operators as their definitions declare them, and what the Caffe and TensorFlow readers support.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "graft/operator/attribute.hpp"
#include "graft/operator/dtype.hpp"
#include "graft/operator/layout.hpp"
#include "graft/report/field.hpp"

namespace graft::report {

/// An attribute of an operator.
struct OperatorAttribute {
  std::string name;
  AttributeType type = AttributeType::float_number;
  bool required = false;
  std::optional<AttributeValue> default_value;
  std::string default_text;
  std::string allowed;
  std::string doc;

  static constexpr auto fields() {
    return std::tuple{
        field("name", &OperatorAttribute::name, "The name of the attribute."),
        field("type", &OperatorAttribute::type, "'float', 'int', 'string', 'floats' or 'ints'."),
        field("required", &OperatorAttribute::required, "Whether each node must have the attribute."),
        field("default", &OperatorAttribute::default_value, "The default; null if the attribute is required."),
        field("default_text", &OperatorAttribute::default_text, "The default as messages show it, or empty."),
        field("allowed", &OperatorAttribute::allowed, "The allowed values: the choices or the range."),
        field("doc", &OperatorAttribute::doc, "The meaning of the attribute.")};
  }
};

/// An input or an output of an operator.
struct OperatorPort {
  std::string name;
  bool is_output = false;
  bool is_optional = false;
  bool is_variadic = false;
  bool is_shape = false;
  bool is_size = false;
  std::string shape;
  std::string doc;

  static constexpr auto fields() {
    return std::tuple{
        field("name", &OperatorPort::name, "The name of the input or output."),
        field("output", &OperatorPort::is_output, "Whether the tensor is an output."),
        field("optional", &OperatorPort::is_optional, "Whether a node may omit the tensor."),
        field("variadic", &OperatorPort::is_variadic, "Whether the operator accepts any number of tensors here."),
        field("shape_input", &OperatorPort::is_shape, "Whether the values of the tensor are dimensions."),
        field("size", &OperatorPort::is_size, "Whether the tensor is the size of an output that depends on data."),
        field("shape", &OperatorPort::shape, "The shape in words."),
        field("doc", &OperatorPort::doc, "The meaning of the tensor.")};
  }
};

/// The format of a tensor.
struct TensorFormat {
  DType dtype = DType::f32;
  Layout layout = Layout::linear;

  static constexpr auto fields() {
    return std::tuple{field("dtype", &TensorFormat::dtype, "The type of the elements, such as 'f16'."),
                      field("layout", &TensorFormat::layout, "'linear', 'hwc8' or 'chw32'.")};
  }
};

/// A field of another library's plugin.
struct StandInField {
  std::string name;
  std::string attribute;
  std::string doc;

  static constexpr auto fields() {
    return std::tuple{
        field("name", &StandInField::name, "The name of the plugin's field."),
        field("attribute", &StandInField::attribute, "The operator's attribute; empty if the value is translated."),
        field("doc", &StandInField::doc, "The meaning of a translated field.")};
  }
};

/// A plugin of another library that a Graft operator replaces.
struct StandIn {
  std::string name;
  std::string version;
  std::vector<std::optional<std::string>> inputs;
  /// How the order of the plugin's inputs differs from the order of the operator's inputs; empty if both are the same.
  std::string input_order;
  std::vector<StandInField> plugin_fields;
  std::string doc;
  /// Whether TensorRT can create the operator under the name of the plugin.
  bool is_creator = true;

  static constexpr auto fields() {
    return std::tuple{field("name", &StandIn::name, "The name of the plugin."),
                      field("version", &StandIn::version, "The version of the plugin."),
                      field("inputs", &StandIn::inputs,
                            "The operator's input for each input of the plugin; null if the operator does not need the "
                            "plugin's input."),
                      field("fields", &StandIn::plugin_fields, "The fields of the plugin."),
                      field("doc", &StandIn::doc, "The library with the plugin, and what differs."),
                      field("creator", &StandIn::is_creator,
                            "Whether libgraft_stand_ins.so has a creator of this name. If not, the plugin has other "
                            "outputs than the operator, and `graft convert` replaces its nodes.")};
  }
};

/// The conditions for nodes that run as a plugin under the name of a standard ONNX operator.
struct OnnxPlugin {
  bool needs_override = false;
  std::vector<std::string> needs_attributes;

  static constexpr auto fields() {
    return std::tuple{
        field("needs_override", &OnnxPlugin::needs_override,
              "Whether TensorRT has a layer of this name, so that its parser must be configured to prefer plugins."),
        field("needs_attributes", &OnnxPlugin::needs_attributes, "Attributes that a node must have.")};
  }
};

/// An ONNX function of an operator. An operator has several if the body depends on the types, the attributes or the
/// number of inputs.
struct OperatorFunction {
  std::string name;
  std::string body;

  static constexpr auto fields() {
    return std::tuple{field("name", &OperatorFunction::name, "The name of the function."),
                      field("body", &OperatorFunction::body, "One node on each line.")};
  }
};

/// The facts about an operator: its definition, its ONNX functions and its native form.
struct OperatorFacts {
  std::string name;
  int version = 1;
  std::string domain;
  std::optional<std::string> library;
  std::string doc;
  std::string source;
  std::string why_plugin;
  std::vector<OperatorAttribute> attributes;
  std::vector<OperatorPort> ports;
  std::vector<std::vector<TensorFormat>> type_rows;
  std::vector<StandIn> drop_ins;
  std::optional<std::string> onnx_name;
  std::vector<std::string> onnx_inputs;
  std::optional<OnnxPlugin> onnx_plugin;
  std::vector<OperatorFunction> functions;
  std::optional<std::string> native_form;

  static constexpr Schema schema{"graft ops", 1,
                                 "An operator, or the key `operators` or `layers` alone, which list them."};
  static constexpr auto fields() {
    return std::tuple{
        field("name", &OperatorFacts::name, "The name of the operator."),
        field("version", &OperatorFacts::version, "The version of the operator's definition."),
        field("domain", &OperatorFacts::domain, "The ONNX domain of the operator."),
        field("library", &OperatorFacts::library,
              "The file of the operator's library; null for Graft's own operators."),
        field("doc", &OperatorFacts::doc, "The formula, and the purpose of the operator."),
        field("source", &OperatorFacts::source, "The publications and programs that define the operator."),
        field("why_plugin", &OperatorFacts::why_plugin, "The reason for the plugin."),
        field("attributes", &OperatorFacts::attributes, "The attributes."),
        field("ports", &OperatorFacts::ports, "The inputs and outputs."),
        field("type_rows", &OperatorFacts::type_rows,
              "The supported combinations of the formats of all inputs and outputs."),
        field("drop_ins", &OperatorFacts::drop_ins, "The plugins of other libraries that the operator replaces."),
        field("onnx_name", &OperatorFacts::onnx_name, "The standard ONNX operator that it computes, or null."),
        field("onnx_inputs", &OperatorFacts::onnx_inputs,
              "The operator's input or attribute for each input of that operator; empty if they are the same."),
        field("onnx_plugin", &OperatorFacts::onnx_plugin,
              "The conditions for nodes that run as a plugin of that name; null if no plugin has that name."),
        field("functions", &OperatorFacts::functions, "All bodies that its ONNX function can have."),
        field("native_form", &OperatorFacts::native_form,
              "The native layers that compute the same and are as fast, or null.")};
  }
};

/// A field of a Caffe layer's parameters.
struct CaffeField {
  std::string name;
  std::string default_text;

  static constexpr auto fields() {
    return std::tuple{field("name", &CaffeField::name, "The name of the field."),
                      field("default_text", &CaffeField::default_text,
                            "The default; empty if there is none, or if the field may be repeated.")};
  }
};

/// A layer type of Caffe that Graft reads.
struct CaffeLayer {
  std::string_view type;
  std::string_view parameters;
  std::vector<CaffeField> parameter_fields;
  std::size_t blobs = 0;
  std::string_view doc;

  static constexpr auto fields() {
    return std::tuple{
        field("type", &CaffeLayer::type, "The type of the layer."),
        field("parameters", &CaffeLayer::parameters, "The field of LayerParameter with its parameters, or empty."),
        field("fields", &CaffeLayer::parameter_fields, "The fields of the parameters."),
        field("blobs", &CaffeLayer::blobs, "The number of trained blobs that it requires."),
        field("doc", &CaffeLayer::doc, "Notes on how the layer is read, and on settings that are refused.")};
  }
};

/// A TensorFlow operator that Graft reads.
struct TensorFlowOperator {
  std::string_view name;
  std::string_view group;
  std::string_view limits;

  static constexpr auto fields() {
    return std::tuple{field("name", &TensorFlowOperator::name, "The name of the operator."),
                      field("group", &TensorFlowOperator::group, "The group of operators to which it belongs."),
                      field("limits", &TensorFlowOperator::limits,
                            "The limits of the reader for this operator; empty if there are none.")};
  }
};

}  // namespace graft::report
