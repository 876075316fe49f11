// Adds Graft's operators as layers to a TensorRT network that is built in C++.
//
// Header-only. It needs TensorRT's headers (10 or later) and the header of an operator's definition. The plugin library
// contains the kernels and has to be loaded first:
//
//   builder->getPluginRegistry().loadLibrary("libgraft_plugins.so");
//   auto& layer = graft::tensorrt::add_layer<graft::ops::LeakyReLU>(*network, {tensor}, {.alpha = 0.1F});
//   nvinfer1::ITensor* result = layer.getOutput(0);
#pragma once

#include <NvInfer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "graft/error.hpp"
#include "graft/operator/attribute.hpp"
#include "graft/operator/define_operator.hpp"

namespace graft::tensorrt {

/// The names and values of a definition's attributes, as the plugin fields that TensorRT passes to a creator.
class AttributeFields {
 public:
  template <OperatorDefinition D>
  explicit AttributeFields(const D& definition) {
    std::apply([&](const auto&... attribute) { (add(definition, attribute), ...); }, D::attributes());
    for (const auto& [name, value] : values_) fields_.push_back(field(name, value));
    collection_ = {static_cast<std::int32_t>(fields_.size()), fields_.data()};
  }
  AttributeFields(const AttributeFields&) = delete;  // Not copyable: fields_ points into values_.
  AttributeFields& operator=(const AttributeFields&) = delete;

  [[nodiscard]] const nvinfer1::PluginFieldCollection& collection() const { return collection_; }

  /// Returns the attributes for messages, such as "alpha = 0.1, x_scale = 1". Lists are cut after 8 elements.
  [[nodiscard]] std::string to_string() const {
    std::ostringstream text;
    for (const auto& [name, value] : values_) {
      text << (&name == &values_.front().first ? "" : ", ") << name << " = ";
      std::visit([&](const auto& held) { print(text, held); }, value);
    }
    return text.str();
  }

 private:
  template <class D, class Owner, class Value>  // `Owner` may be a base of D.
  void add(const D& definition, const Attribute<Owner, Value>& attribute) {
    values_.emplace_back(attribute.name, detail::AttributeTraits<Value>::to_wire(definition.*(attribute.member)));
  }

  static nvinfer1::PluginField field(const std::string& name, const AttributeValue& value) {
    using nvinfer1::PluginFieldType;
    const auto list = [&](const auto& numbers, PluginFieldType type) {
      return nvinfer1::PluginField{name.c_str(), numbers.data(), type, static_cast<std::int32_t>(numbers.size())};
    };
    switch (type_of(value)) {
      case AttributeType::float_number: return {name.c_str(), std::get_if<float>(&value), PluginFieldType::kFLOAT32, 1};
      case AttributeType::integer: return {name.c_str(), std::get_if<std::int64_t>(&value), PluginFieldType::kINT64, 1};
      case AttributeType::text: return list(*std::get_if<std::string>(&value), PluginFieldType::kCHAR);
      case AttributeType::float_numbers:
        return list(*std::get_if<std::vector<float>>(&value), PluginFieldType::kFLOAT32);
      case AttributeType::integers: break;
    }
    return list(*std::get_if<std::vector<std::int64_t>>(&value), PluginFieldType::kINT64);
  }

  template <class Held>
  static void print(std::ostream& out, const Held& held) {
    if constexpr (std::is_arithmetic_v<Held>) {
      out << held;
    } else if constexpr (std::is_same_v<Held, std::string>) {
      out << '"' << held << '"';
    } else {
      constexpr std::size_t shown = 8;
      out << '[';
      for (std::size_t i = 0; i < held.size() && i < shown; ++i) out << (i == 0 ? "" : ", ") << held[i];
      out << (held.size() > shown ? ", ...]" : "]");
    }
  }

  std::vector<std::pair<std::string, AttributeValue>> values_;
  std::vector<nvinfer1::PluginField> fields_;
  nvinfer1::PluginFieldCollection collection_{};
};

namespace detail {

inline bool is_v3(const nvinfer1::IPluginCreatorInterface& creator) {
  return std::string_view(creator.getInterfaceInfo().kind) == "PLUGIN CREATOR_V3ONE";
}

/// Returns the namespaces in which the registry has an IPluginV3 creator of this name and version.
inline std::set<std::string> namespaces_of(const nvinfer1::IPluginRegistry& registry, const std::string& name,
                                           const std::string& version) {
  std::set<std::string> spaces;
  std::int32_t count = 0;
  auto* const* creators = registry.getAllCreators(&count);
  for (std::int32_t i = 0; i < count; ++i) {
    if (!is_v3(*creators[i])) continue;
    const auto& creator = *static_cast<const nvinfer1::IPluginCreatorV3One*>(creators[i]);
    if (name == creator.getPluginName() && version == creator.getPluginVersion()) {
      spaces.emplace(creator.getPluginNamespace());
    }
  }
  return spaces;
}

/// Returns the creator in `plugin_namespace` or, if that is not set, in Graft's namespace, in the empty namespace, or
/// in the only other namespace that has one, in this order. Returns null if no namespace has one, and throws Error if
/// several other namespaces have one.
inline nvinfer1::IPluginCreatorInterface* find_creator(nvinfer1::IPluginRegistry& registry, const std::string& name,
                                                       const std::string& version,
                                                       const std::optional<std::string>& plugin_namespace) {
  const auto get = [&](const std::string& space) {
    return registry.getCreator(name.c_str(), version.c_str(), space.c_str());
  };
  if (plugin_namespace) return get(*plugin_namespace);
  for (const std::string& space : {std::string(onnx_domain), std::string()}) {
    if (auto* found = get(space); found != nullptr) return found;
  }
  const std::set<std::string> spaces = namespaces_of(registry, name, version);
  if (spaces.size() > 1) {
    std::string text;
    for (const std::string& space : spaces) text += (text.empty() ? "`" : ", `") + space + "`";
    throw Error("TensorRT's plugin registry has the creator `" + name + "` of version " + version +
                " in several namespaces: " + text + ". Say which one is meant.");
  }
  return spaces.empty() ? nullptr : get(*spaces.begin());
}

}  // namespace detail

/// Returns the plugin of an operator, created by the creator that `registry` holds for it. `name` appears in messages
/// about the plugin. Without `plugin_namespace` the creator is searched for in Graft's namespace, in the empty one, and
/// then in all other namespaces. Throws Error (missing_tool) if the registry has no creator for the operator and
/// version, and Error (bad_input) if several other namespaces have one, if the creator is not an IPluginV3 creator, or
/// if it refuses an attribute.
template <OperatorDefinition D>
[[nodiscard]] std::unique_ptr<nvinfer1::IPluginV3> make_plugin(
    nvinfer1::IPluginRegistry& registry, const D& definition, const std::string& name = std::string(D::name),
    const std::optional<std::string>& plugin_namespace = std::nullopt) {
  const std::string plugin_name(D::name);
  const std::string version = std::to_string(D::version);
  auto* found = detail::find_creator(registry, plugin_name, version, plugin_namespace);
  if (found == nullptr) {
    throw Error(Error::Kind::missing_tool,
                "TensorRT's plugin registry has no creator `" + plugin_name + "` of version " + version +
                    (plugin_namespace ? " in the namespace `" + *plugin_namespace + "`" : " in any namespace") +
                    ". Load the plugin library before the network is written: "
                    "builder->getPluginRegistry().loadLibrary(\"libgraft_plugins.so\"). `graft plugins LIBRARY` lists "
                    "what a library offers.");
  }
  if (!detail::is_v3(*found)) {
    throw Error("the creator `" + plugin_name + "` of version " + version +
                " in TensorRT's plugin registry is not Graft's: it makes plugins of an older interface. Load "
                "libgraft_plugins.so before the library that registers it, or leave that library out.");
  }
  const AttributeFields fields(definition);
  std::unique_ptr<nvinfer1::IPluginV3> plugin(static_cast<nvinfer1::IPluginCreatorV3One*>(found)->createPlugin(
      name.c_str(), &fields.collection(), nvinfer1::TensorRTPhase::kBUILD));
  if (plugin == nullptr) {
    throw Error("layer `" + name + "`: the creator of `" + plugin_name +
                "` refused its attributes: " + fields.to_string() +
                ". TensorRT's logger was told which and why; `graft ops " + plugin_name + "` lists what each may be.");
  }
  return plugin;
}

/// Adds an operator to a network: `add_layer<LeakyReLU>(network, {x}, {.alpha = 0.1F})`. Shape inputs are the last
/// inputs; trailing optional inputs may be omitted. `plugin_namespace` is passed to make_plugin. Throws Error as
/// make_plugin does, and if the network refuses the layer.
template <OperatorDefinition D>
nvinfer1::IPluginV3Layer& add_layer(nvinfer1::INetworkDefinition& network,
                                    const std::vector<nvinfer1::ITensor*>& inputs, const D& definition = {},
                                    const std::string& name = std::string(D::name),
                                    const std::optional<std::string>& plugin_namespace = std::nullopt) {
  // The network clones the plugin and owns the clone.
  const auto plugin = make_plugin<D>(network.getBuilder().getPluginRegistry(), definition, name, plugin_namespace);
  const auto ports = D::ports();
  const auto shape_ports = std::count_if(ports.begin(), ports.end(), [](const Port& port) { return port.is_shape(); });
  const auto shape_inputs = std::min(std::ssize(inputs), std::ptrdiff_t{shape_ports});
  const auto tensors = std::ssize(inputs) - shape_inputs;
  auto* layer = network.addPluginV3(inputs.data(), static_cast<std::int32_t>(tensors), inputs.data() + tensors,
                                    static_cast<std::int32_t>(shape_inputs), *plugin);
  if (layer == nullptr) {
    throw Error("layer `" + name + "`: the network refused " + std::string(D::name) + " with " +
                std::to_string(inputs.size()) + " inputs. TensorRT's logger was told why; `graft ops " +
                std::string(D::name) + "` lists its inputs, their types and shapes.");
  }
  layer->setName(name.c_str());
  return *layer;
}

}  // namespace graft::tensorrt
