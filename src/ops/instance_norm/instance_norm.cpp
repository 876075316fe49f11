// Definition of InstanceNorm: checks, the attributes that replace missing inputs, ONNX function, drop-ins.
#include "ops/instance_norm/instance_norm.hpp"

#include "ops/channel_values.hpp"

namespace graft::ops {
namespace {

constexpr std::size_t scale_port = 1;

/// Translates the field `relu` of NVIDIA's plugin: a value above 0 becomes activation=leaky_relu, whose slope is
/// `alpha`, and any other value activation=none.
Status translate(std::span<const NamedAttribute> fields, std::vector<NamedAttribute>& attributes) {
  for (const auto& [name, value] : fields) {
    attributes.push_back({"activation", std::string(std::get<std::int64_t>(value) > 0 ? "leaky_relu" : "none")});
  }
  return {};
}

}  // namespace

Status InstanceNorm::check(const Problem& problem) const {
  const Extents& x = problem.inputs[0].extents;
  if (x.rank() < 3 || x.rank() > 5) {
    return invalid_argument("InstanceNorm: x has rank " + std::to_string(x.rank()) +
                            "; the rank must be between 3 and 5");
  }
  for (std::size_t port = scale_port; port < problem.inputs.size(); ++port) {
    const Extents& found = problem.inputs[port].extents;
    if (found.rank() == 1 && found[0] == x[1]) continue;
    return invalid_argument(std::string("InstanceNorm: ") + (port == scale_port ? "scale" : "bias") + " has shape " +
                            to_string(found) + "; it must have one value for each of " + std::to_string(x[1]) +
                            " channels");
  }
  return {};
}

TensorDesc InstanceNorm::constant(std::size_t port, std::span<const TensorDesc> given) const {
  const std::vector<float>& values = port == scale_port ? scales : bias;
  const Extents& x = given[0].extents;
  const std::int64_t channels = x.rank() > 1 ? x[1] : 0;
  return channel_values(values, channels);
}

void InstanceNorm::fill_constant(std::size_t port, const TensorDesc& desc, std::byte* bytes) const {
  const bool is_scale = port == scale_port;
  fill_channel_values(is_scale ? scales : bias, is_scale ? 1.F : 0.F, desc, bytes);
}

std::optional<Function> InstanceNorm::function(const FunctionInputs& inputs) const {
  std::string name = "InstanceNorm";
  std::string maths;
  const auto supply = [&](std::size_t port, const std::string& input, const std::string& given, bool empty,
                          const std::string& filler) {
    if (inputs.count > port) return;
    if (empty) {
      name += "_no_" + input;
      maths += input + "_shape = Shape<start=1, end=2>(x32)\n";
      maths += input + " = ConstantOfShape<value=f32([" + filler + "])>(" + input + "_shape)\n";
    } else {
      name += "_" + given;
      maths += input + " = Constant<value_floats=@" + given + ">()\n";
    }
  };
  supply(scale_port, "scale", "scales", scales.empty(), "1.0");
  supply(scale_port + 1, "bias", "bias", bias.empty(), "0.0");
  const std::string normalized = activation == InstanceNormActivation::none ? "y32" : "normalized";
  maths += normalized + " = InstanceNormalization<epsilon=@epsilon>(x32, scale, bias)\n";
  if (activation == InstanceNormActivation::relu) {
    name += "_relu";
    maths += "y32 = Relu(normalized)\n";
  } else if (activation == InstanceNormActivation::leaky_relu) {
    name += "_leaky_relu";
    maths += "y32 = LeakyRelu<alpha=@alpha>(normalized)\n";
  }
  return function_in_f32(name, inputs.dtype, maths);
}

std::vector<DropIn> InstanceNorm::drop_ins() {
  std::vector<DropIn> versions;
  for (const char* version : {"1", "2", "3"}) {
    versions.push_back({.plugin_name = "InstanceNormalization_TRT",
                        .version = version,
                        .fields = {{"epsilon", "epsilon"},
                                   {"scales", "scales"},
                                   {"bias", "bias"},
                                   {.name = "relu",
                                    .attribute = {},
                                    .type = AttributeType::integer,
                                    .doc = "a value above 0 applies a leaky ReLU of slope alpha to the result"},
                                   {"alpha", "alpha"}},
                        .doc = "NVIDIA's plugin of TensorRT 5 to 11",
                        .defaults = {{"epsilon", 0.F}, {"alpha", 0.F}},
                        .translate = translate});
  }
  return versions;
}

}  // namespace graft::ops
