// Tests graft::tensorrt::add_layer on a stand-in for TensorRT's network, with the real plugin library.
#include "graft/tensorrt/add_layer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>

#include "adapters/tensorrt/plugin_host.hpp"
#include "ops/instance_norm/instance_norm.hpp"
#include "ops/l2_normalize/l2_normalize.hpp"
#include "ops/leaky_relu/leaky_relu.hpp"
#include "page_examples.hpp"
#include "stub_interfaces.hpp"

namespace graft::tensorrt {

struct Resized {
  static constexpr auto name = "Resized";
  static constexpr int version = 1;
  static constexpr auto doc = "y has the size that `size` says";
  static constexpr auto source = "a test";
  static constexpr auto why_plugin = "a test";
  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
    return std::array{input("x", "T", "N", ""), shape_input("size", "1", ""), output("y", "T", "size", "")};
  }
  static constexpr auto types() { return std::array{TypeConstraint("T", DType::f32)}; }
  static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) { return {inputs[1]}; }
  static Status check(const Problem& /*problem*/) { return {}; }
};
Status run(const Resized& op, const Problem& problem, const Buffers& buffers, const CpuContext& context);

namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

PluginLibrary& library() {
  static PluginLibrary loaded(std::getenv("GRAFT_PLUGIN_LIBRARY"));
  return loaded;
}

/// A creator of another library, in a namespace of its own. It creates Graft's plugins.
class OtherCreator final : public nvinfer1::IPluginCreatorV3One {
 public:
  OtherCreator(std::string in, std::string named, std::string of_version)
      : space(std::move(in)), name(std::move(named)), version(std::move(of_version)) {}

  nvinfer1::IPluginV3* createPlugin(const char* layer, const nvinfer1::PluginFieldCollection* fields,
                                    nvinfer1::TensorRTPhase phase) noexcept override {
    ++made;
    auto* own = static_cast<nvinfer1::IPluginCreatorV3One*>(library().find("LeakyReLU", "1"));
    return own->createPlugin(layer, fields, phase);
  }
  const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  const char* getPluginName() const noexcept override { return name.c_str(); }
  const char* getPluginVersion() const noexcept override { return version.c_str(); }
  const char* getPluginNamespace() const noexcept override { return space.c_str(); }

  std::string space;
  std::string name;
  std::string version;
  int made = 0;
};

/// A registry that contains the creators of the plugin library after that was loaded.
class Registry final : public nvinfer1::StubIPluginRegistry {
 public:
  PluginLibraryHandle loadLibrary(const char* path) noexcept override {
    loaded_ = std::string_view(path) == "libgraft_plugins.so";
    return this;
  }
  nvinfer1::IPluginCreatorInterface* getCreator(const char* name, const char* version,
                                                const char* space) noexcept override {
    if (loaded_ && std::string_view(space) == "graft") return library().find(name, version);
    for (OtherCreator& other : others) {
      if (other.space == space && other.name == name && other.version == version) return &other;
    }
    return nullptr;
  }
  nvinfer1::IPluginCreatorInterface* const* getAllCreators(int32_t* count) const noexcept override {
    all_.clear();
    for (const OtherCreator& other : others) all_.push_back(const_cast<OtherCreator*>(&other));
    *count = static_cast<int32_t>(all_.size());
    return all_.data();
  }

  std::deque<OtherCreator> others;

 private:
  mutable std::vector<nvinfer1::IPluginCreatorInterface*> all_;
  bool loaded_ = false;
};

class Builder final : public nvinfer1::StubVBuilder {
 public:
  nvinfer1::IPluginRegistry& getPluginRegistry() noexcept override { return registry; }
  Registry registry;
};
struct BuilderHandle final : nvinfer1::IBuilder {
  explicit BuilderHandle(Builder& builder) { mImpl = &builder; }
};

/// A layer that records the arguments of addPluginV3.
struct Layer final : nvinfer1::StubVLayer {
  void setName(const char* given) noexcept override { name = given; }
  const char* getName() const noexcept override { return name.c_str(); }
  int32_t getNbInputs() const noexcept override { return static_cast<int32_t>(inputs.size()); }
  nvinfer1::ITensor* getOutput(int32_t /*index*/) const noexcept override { return inputs[0]; }
  nvinfer1::ITensor* getInput(int32_t index) const noexcept override { return inputs[static_cast<std::size_t>(index)]; }

  std::string name;
  std::vector<nvinfer1::ITensor*> inputs;
  std::vector<nvinfer1::ITensor*> shape_inputs;
  std::map<std::string, SerializedField> fields;
};
struct LayerHandle final : nvinfer1::IPluginV3Layer {
  explicit LayerHandle(Layer& layer) { mLayer = &layer; }
};
struct Tensor final : nvinfer1::ITensor {};

class Network final : public nvinfer1::StubVNetworkDefinition {
 public:
  nvinfer1::IBuilder& getBuilder() const noexcept override { return handle_; }
  nvinfer1::IPluginV3Layer* addPluginV3(nvinfer1::ITensor* const* inputs, int32_t input_count,
                                        nvinfer1::ITensor* const* shape_inputs, int32_t shape_input_count,
                                        nvinfer1::IPluginV3& plugin) noexcept override {
    if (input_count == 0) return nullptr;
    Layer& layer = layers.emplace_back();
    layer.inputs.assign(inputs, inputs + input_count);
    layer.shape_inputs.assign(shape_inputs, shape_inputs + shape_input_count);
    auto& runtime = *static_cast<nvinfer1::IPluginV3OneRuntime*>(
        plugin.getCapabilityInterface(nvinfer1::PluginCapabilityType::kRUNTIME));
    const auto* kept = runtime.getFieldsToSerialize();
    for (int32_t i = 0; i < kept->nbFields; ++i) {
      const nvinfer1::PluginField& field = kept->fields[i];
      const std::size_t size = field.type == nvinfer1::PluginFieldType::kINT64  ? 8
                               : field.type == nvinfer1::PluginFieldType::kCHAR ? 1
                                                                                : 4;
      const auto* data = static_cast<const std::byte*>(field.data);
      layer.fields[field.name] = {
          field.name, field.type, field.length, {data, data + size * std::size_t(field.length)}};
    }
    return &handles_.emplace_back(layer);
  }

  std::deque<Layer> layers;
  Builder builder;

 private:
  mutable BuilderHandle handle_{builder};
  std::deque<LayerHandle> handles_;
};
struct NetworkHandle final : nvinfer1::INetworkDefinition {
  explicit NetworkHandle(Network& network) { mImpl = &network; }
};

template <class Number>
std::vector<Number> numbers(const SerializedField& field) {
  std::vector<Number> result(static_cast<std::size_t>(field.length));
  std::memcpy(result.data(), field.bytes.data(), field.bytes.size());
  return result;
}
std::string text(const SerializedField& field) {
  return {reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size()};
}
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class AddLayer : public testing::Test {
 protected:
  void load() { network_.getBuilder().getPluginRegistry().loadLibrary("libgraft_plugins.so"); }
  const Layer& last() { return behind_.layers.back(); }

  Network behind_;
  NetworkHandle network_{behind_};
  Tensor x_;
};

TEST_F(AddLayer, GivesThePluginTheAttributesOfTheDefinition) {
  load();
  const nvinfer1::IPluginV3Layer& layer = add_layer<ops::LeakyReLU>(network_, {&x_}, {.alpha = 0.2F});
  EXPECT_STREQ(layer.getName(), "LeakyReLU");
  EXPECT_EQ(layer.getInput(0), &x_);
  EXPECT_THAT(numbers<float>(last().fields.at("alpha")), ElementsAre(0.2F));
}

TEST_F(AddLayer, CarriesListsChoicesAndInheritedAttributes) {
  load();
  add_layer<ops::L2Normalize>(network_, {&x_},
                              {.axes = {2, -1}, .epsilon = 1e-6F, .epsilon_mode = ops::EpsilonMode::add}, "norm");
  EXPECT_EQ(last().name, "norm");
  EXPECT_THAT(numbers<std::int64_t>(last().fields.at("axes")), ElementsAre(2, -1));
  EXPECT_EQ(text(last().fields.at("epsilon_mode")), "add");

  ops::LeakyReLU quantized{.alpha = 0.1F};
  quantized.x_scale = 0.5F;
  add_layer(network_, {&x_}, quantized);
  EXPECT_THAT(numbers<float>(last().fields.at("x_scale")), ElementsAre(0.5F));
}

TEST_F(AddLayer, TakesWeightsAsInputsOrAsAttributes) {
  load();
  Tensor scale;
  EXPECT_EQ(add_layer<ops::InstanceNorm>(network_, {&x_, &scale}, {.epsilon = 1e-3F}).getInput(1), &scale);
  EXPECT_THAT(numbers<float>(last().fields.at("epsilon")), ElementsAre(1e-3F));
  EXPECT_EQ(last().fields.at("scales").length, 0);
  add_layer<ops::InstanceNorm>(network_, {&x_}, {.scales = {1, 2}, .bias = {3, 4}});
  EXPECT_THAT(numbers<float>(last().fields.at("scales")), ElementsAre(1, 2));
  EXPECT_THAT(numbers<float>(last().fields.at("bias")), ElementsAre(3, 4));
}

TEST_F(AddLayer, PassesShapeInputsApart) {
  behind_.builder.registry.others.emplace_back("theirs", "Resized", "1");
  Tensor size;
  add_layer<Resized>(network_, {&x_, &size});
  EXPECT_THAT(last().inputs, ElementsAre(&x_));
  EXPECT_THAT(last().shape_inputs, ElementsAre(&size));
  load();
  add_layer<ops::InstanceNorm>(network_, {&x_, &size});
  EXPECT_THAT(last().inputs, ElementsAre(&x_, &size));
  EXPECT_THAT(last().shape_inputs, testing::IsEmpty());
}

TEST_F(AddLayer, TakesTheExamplesOfTheOperatorPages) {
  load();
  add_page_examples(network_, &x_);
  ASSERT_EQ(behind_.layers.size(), page_example_count);
  const auto convolution = std::find_if(behind_.layers.begin(), behind_.layers.end(),
                                        [](const Layer& layer) { return layer.name == "Convolution"; });
  ASSERT_NE(convolution, behind_.layers.end());
  EXPECT_THAT(numbers<std::int64_t>(convolution->fields.at("pad")), ElementsAre(1, 1));
}

TEST_F(AddLayer, SaysToLoadTheLibraryWhereTheCreatorIsMissing) {
  const std::string message = message_of([&] { add_layer<ops::LeakyReLU>(network_, {&x_}); });
  EXPECT_THAT(message, HasSubstr("no creator `LeakyReLU` of version 1"));
  EXPECT_THAT(message, HasSubstr("loadLibrary"));
}

TEST_F(AddLayer, FindsTheOnlyCreatorInWhateverNamespaceItIs) {
  std::deque<OtherCreator>& others = behind_.builder.registry.others;
  others.emplace_back("theirs", "LeakyReLU", "2");  // another version, which is not this operator
  others.emplace_back("theirs", "LeakyReLU", "1");
  add_layer<ops::LeakyReLU>(network_, {&x_}, {.alpha = 0.2F});
  EXPECT_THAT(numbers<float>(last().fields.at("alpha")), ElementsAre(0.2F));
  EXPECT_EQ(others[1].made, 1);

  others.emplace_back("others", "LeakyReLU", "1");
  const std::string message = message_of([&] { add_layer<ops::LeakyReLU>(network_, {&x_}); });
  EXPECT_THAT(message, HasSubstr("in several namespaces: `others`, `theirs`"));
  add_layer<ops::LeakyReLU>(network_, {&x_}, {}, "named", "others");
  EXPECT_EQ(others[2].made, 1);

  load();
  add_layer<ops::LeakyReLU>(network_, {&x_});
  EXPECT_EQ(others[1].made + others[2].made, 2) << "Graft's own goes first";
  EXPECT_THAT(message_of([&] { add_layer<ops::LeakyReLU>(network_, {&x_}, {}, "named", "nowhere"); }),
              HasSubstr("no creator `LeakyReLU` of version 1 in the namespace `nowhere`"));
}

TEST_F(AddLayer, NamesTheLayerAndItsAttributesWhereTheCreatorRefuses) {
  load();
  library().take_log();
  const std::string message =
      message_of([&] { add_layer<ops::L2Normalize>(network_, {&x_}, {.axes = {1}, .epsilon = -1}, "head"); });
  EXPECT_THAT(message, HasSubstr("layer `head`"));
  EXPECT_THAT(message, HasSubstr("axes = [1], epsilon = -1, epsilon_mode = \"max\""));
  EXPECT_THAT(library().take_log(), Contains(HasSubstr("`epsilon` is -1")));
}

TEST_F(AddLayer, ReportsALayerThatTheNetworkRefuses) {
  load();
  EXPECT_THAT(message_of([&] { add_layer<ops::LeakyReLU>(network_, {}); }),
              HasSubstr("refused LeakyReLU with 0 inputs"));
}

}  // namespace
}  // namespace graft::tensorrt
