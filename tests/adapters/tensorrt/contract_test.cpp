// Tests rules of TensorRT's plugin interface that TensorRT itself may not exercise: calls in other orders, with other
// arguments and after errors.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/tensorrt/convert.hpp"
#include "adapters/tensorrt/creator.hpp"
#include "adapters/tensorrt/logger.hpp"
#include "adapters/tensorrt/plugin.hpp"
#include "adapters/tensorrt/plugin_host.hpp"
#include "graft/error.hpp"
#include "graft/operator/elementwise.hpp"
#include "graft/operator/registry.hpp"
#include "kernels/register.hpp"
#include "ops/causal_conv_with_state/causal_conv_with_state.hpp"
#include "ops/convolution/convolution.hpp"
#include "ops/leaky_relu/leaky_relu.hpp"
#include "ops/spatial_pyramid_pooling/spatial_pyramid_pooling.hpp"

namespace {
std::size_t allocations = 0;  ///< The number of allocations in this program, which has a single thread.
}

[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace graft::tensorrt {

/// The parts that every definition of these tests has in common.
struct Described {
  static constexpr int version = 1;
  static constexpr auto source = "a test";
  static constexpr auto why_plugin = "a test";
};

/// An operator whose only variant counts the calls of `fits`.
struct Counted : Elementwise, Described {
  static constexpr auto name = "Counted";
  static constexpr auto doc = "y = x";
  static inline int questions = 0;

  float first = 0;
  float second = 0;
  static constexpr auto attributes() {
    return with_scales(attribute("first", &Counted::first, ""), attribute("second", &Counted::second, ""));
  }
};
Status run(const Counted& /*op*/, const Problem& /*problem*/, const Buffers& /*buffers*/,
           const CpuContext& /*context*/) {
  return {};
}
std::span<const Variant<Counted>> cuda_kernels(const Counted& /*op*/) {
  static constexpr auto fits = [](const Counted&, const Problem&) {
    ++Counted::questions;
    return Status();
  };
  static constexpr auto run = [](const Counted&, const Problem&, const Buffers&, const CudaContext&) {
    return Status();
  };
  static const std::array variants{Variant<Counted>{"only", fits, run}};
  return variants;
}

/// An operator with a size that depends on data: it returns the values that are not 0. Its only variant records the
/// descriptions of its outputs and computes nothing.
struct Kept : Described {
  static constexpr auto name = "Kept";
  static constexpr auto doc = "y = the values that are not 0";
  static inline std::vector<TensorDesc> told;

  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
    return std::array{input("x", "T", "N,M", ""), output("y", "T", "count", ""), output("twice", "T", "count,2", ""),
                      size_output("count", "")};
  }
  static constexpr auto types() { return std::array{TypeConstraint("T", DType::f32, DType::f16)}; }
  static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) {
    const Dim all = inputs[0][0] * inputs[0][1];
    const Dim count = data_size(2, ceil_div(all, 4), all);
    return {{count}, {count, 2}, {}};
  }
  static std::size_t workspace(const Problem& problem) {
    return static_cast<std::size_t>(problem.outputs[0].extents[0]) * sizeof(float);
  }
};
Status run(const Kept& /*op*/, const Problem& /*problem*/, const Buffers& /*buffers*/, const CpuContext& /*context*/) {
  return {};
}
std::span<const Variant<Kept>> cuda_kernels(const Kept& /*op*/) {
  static constexpr auto fits = [](const Kept&, const Problem&) { return Status(); };
  static constexpr auto run = [](const Kept&, const Problem& problem, const Buffers&, const CudaContext&) {
    Kept::told.assign(problem.outputs.begin(), problem.outputs.end());
    return Status();
  };
  static const std::array variants{Variant<Kept>{"only", fits, run}};
  return variants;
}

/// The base of operators whose only variant records its inputs and computes nothing.
template <class Definition>
struct KeepsInputs : Described {
  static inline std::vector<TensorDesc> told;
  static inline std::vector<const void*> addresses;

  friend Status run(const Definition& /*op*/, const Problem& /*problem*/, const Buffers& /*buffers*/,
                    const CpuContext& /*context*/) {
    return {};
  }
  friend std::span<const Variant<Definition>> cuda_kernels(const Definition& /*op*/) {
    static constexpr auto fits = [](const Definition&, const Problem&) { return Status(); };
    static constexpr auto keep = [](const Definition&, const Problem& problem, const Buffers& buffers,
                                    const CudaContext&) {
      told.assign(problem.inputs.begin(), problem.inputs.end());
      addresses.assign(buffers.inputs.begin(), buffers.inputs.end());
      return Status();
    };
    static const std::array variants{Variant<Definition>{"only", fits, keep}};
    return variants;
  }
};

/// An operator with the inputs of another plugin in a different order.
struct Ordered : KeepsInputs<Ordered> {
  static constexpr auto name = "Ordered";
  static constexpr auto doc = "y = x";

  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
    return std::array{input("x", "T", "N", ""), input("weight", "T", "M", ""),
                      optional_input("bias", "T", "K or 0", ""), optional_input("mask", "T", "L or 0", ""),
                      output("y", "T", "N,M,L", "")};
  }
  static constexpr auto types() { return std::array{TypeConstraint("T", DType::f32, DType::f16)}; }
  static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) {
    return {{inputs[0][0], inputs[1][0], inputs.size() > 3 ? inputs[3][0] : Dim(0)}};
  }
  static TensorDesc constant(std::size_t /*port*/, std::span<const TensorDesc> given) {
    return {.dtype = given[0].dtype, .extents = {0}};
  }
  static void fill_constant(std::size_t /*port*/, const TensorDesc& /*desc*/, std::byte* /*bytes*/) {}
  static std::size_t workspace(const Problem& problem) {
    std::size_t bytes = 0;
    for (const TensorDesc& desc : problem.inputs) bytes = bytes * 100 + static_cast<std::size_t>(desc.extents[0]);
    return bytes;
  }
};

/// An operator whose aliased_input returns `aliased`.
struct Updated : Described {
  static constexpr auto name = "Updated";
  static constexpr auto doc = "y = z = x";
  static inline std::array<std::optional<std::size_t>, 2> aliased;
  static inline bool throws = false;

  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
    return std::array{input("x", "T", "N", ""), output("y", "T", "N", ""), output("z", "T", "N", "")};
  }
  static constexpr auto types() { return std::array{TypeConstraint("T", DType::f32)}; }
  static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) { return {inputs[0], inputs[0]}; }
  static std::optional<std::size_t> aliased_input(std::size_t output) {
    if (throws) throw std::runtime_error("thrown by an operator");
    return aliased[output];
  }
};
Status run(const Updated& /*op*/, const Problem& /*problem*/, const Buffers& /*buffers*/,
           const CpuContext& /*context*/) {
  return {};
}
std::span<const Variant<Updated>> cuda_kernels(const Updated& /*op*/) { return {}; }

/// An operator with two inputs of the same length, and a variant that fits only lengths that are a multiple of 4.
struct Paired : Described {
  static constexpr auto name = "Paired";
  static constexpr auto doc = "y = a + b";
  static inline std::string ran;
  static inline std::vector<TensorDesc> told;

  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
    return std::array{input("a", "T", "N", ""), input("b", "T", "N", ""), output("y", "T", "2N", "")};
  }
  static constexpr auto types() { return std::array{TypeConstraint("T", DType::f32)}; }
  static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) { return {{inputs[0][0] * 2}}; }
  static Status check(const Problem& problem) {
    return problem.inputs[0] == problem.inputs[1] ? Status() : invalid_argument("`b` is not as long as `a`");
  }
};
Status run(const Paired& /*op*/, const Problem& /*problem*/, const Buffers& /*buffers*/,
           const CpuContext& /*context*/) {
  return {};
}
template <char name>
Status run_paired(const Paired& /*op*/, const Problem& problem, const Buffers& /*buffers*/,
                  const CudaContext& /*context*/) {
  Paired::ran = name;
  Paired::told.assign(problem.outputs.begin(), problem.outputs.end());
  return {};
}
std::span<const Variant<Paired>> cuda_kernels(const Paired& /*op*/) {
  static constexpr auto fits_vectors = [](const Paired&, const Problem& problem) {
    return problem.inputs[0].extents[0] % 4 == 0 ? Status() : unsupported("no multiple of 4");
  };
  static constexpr auto fits = [](const Paired&, const Problem&) { return Status(); };
  static const std::array variants{Variant<Paired>{"vectors", fits_vectors, run_paired<'v'>},
                                   Variant<Paired>{"any", fits, run_paired<'a'>}};
  return variants;
}

/// An operator of any number of inputs.
struct Gathered : KeepsInputs<Gathered> {
  static constexpr auto name = "Gathered";
  static constexpr auto doc = "y = x_1 + x_2 + ...";

  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
    return std::array{input("index", DType::i32, "N", ""), variadic_input("x", "T", "N", ""),
                      output("y", "T", "N", "")};
  }
  static constexpr auto types() { return std::array{TypeConstraint("T", DType::f32, DType::f16)}; }
  static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) { return {inputs.back()}; }
};

/// An operator with a shape input.
struct Tiled : KeepsInputs<Tiled> {
  static constexpr auto name = "Tiled";
  static constexpr auto doc = "y has the sizes that `size` says";

  static constexpr auto attributes() { return std::tuple{}; }
  static constexpr auto ports() {
    return std::array{input("x", "T", "N", ""), shape_input("size", "2", ""), output("y", "T", "N,2A,B", "")};
  }
  static constexpr auto types() { return std::array{TypeConstraint("T", DType::f32, DType::f16)}; }
  static std::vector<Shape> infer_shapes(std::span<const Shape> inputs) {
    return {{inputs[0][0], inputs[1][0] * 2, inputs[1][1]}};
  }
  static Status check(const Problem& problem) {
    return problem.outputs[0].extents.rank() == 3 ? Status() : invalid_argument("allowed is rank 3");
  }
};

namespace {

using nvinfer1::DataType;
using nvinfer1::DynamicPluginTensorDesc;
using nvinfer1::PluginTensorDesc;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

nvinfer1::Dims dims(const std::vector<std::int64_t>& extents) {
  nvinfer1::Dims result{static_cast<std::int32_t>(extents.size()), {}};
  std::copy(extents.begin(), extents.end(), result.d);
  return result;
}

PluginTensorDesc desc(const std::vector<std::int64_t>& extents, DataType type = DataType::kFLOAT, float scale = -1,
                      nvinfer1::TensorFormat format = nvinfer1::TensorFormat::kLINEAR) {
  return {dims(extents), type, format, scale};
}

DynamicPluginTensorDesc fixed(const PluginTensorDesc& desc) { return {desc, desc.dims, desc.dims, desc.dims}; }

/// An operator as a plugin, with its build and runtime capabilities.
template <class Definition>
struct Made {
  explicit Made(Definition definition = {})
      : schema(own_schema(operator_type<Definition>())), plugin(schema, with_kernels(std::move(definition))) {}

  float number(const char* field) {
    const auto* kept = plugin.getFieldsToSerialize();
    for (std::int32_t i = 0; i < kept->nbFields; ++i) {
      if (std::string_view(kept->fields[i].name) == field) return *static_cast<const float*>(kept->fields[i].data);
    }
    ADD_FAILURE() << field;
    return 0;
  }

  static std::unique_ptr<Operator> with_kernels(Definition definition) {
    detail::register_cuda_kernels_of<Definition>();
    return std::make_unique<OperatorOf<Definition>>(std::move(definition));
  }

  PluginSchema schema;
  Plugin plugin;
};

/// An expression builder for calls that are refused before they use it.
class UnusedBuilder final : public nvinfer1::IExprBuilder {
 public:
  ~UnusedBuilder() noexcept override = default;
};

ops::LeakyReLU leaky(float alpha) {
  ops::LeakyReLU op;
  op.alpha = alpha;
  return op;
}

ops::Convolution convolution(std::vector<float> weights = {}) {
  ops::Convolution op;
  op.num_output = 1;
  op.kernel = {1, 1};
  op.kernel_weights = std::move(weights);
  return op;
}

/// Collects the log messages of plugins during its lifetime.
class Log final : public nvinfer1::ILogger, public nvinfer1::ILoggerFinder {
 public:
  Log() { set_logger_finder(this); }
  ~Log() override { set_logger_finder(nullptr); }
  void log(Severity severity, const char* message) noexcept override {
    (severity == Severity::kWARNING ? warnings : errors).emplace_back(message);
  }
  nvinfer1::ILogger* findLogger() override { return this; }
  std::vector<std::string> warnings;
  std::vector<std::string> errors;
};

TEST(SupportsFormatCombination, LooksAtNothingBeyondThePosition) {
  Made<ops::Convolution> made(convolution());
  constexpr auto hwc8 = nvinfer1::TensorFormat::kHWC8;
  for (const std::int32_t garbage : {0, -7, 3, 1 << 20}) {
    std::array<DynamicPluginTensorDesc, 3> in_out{};
    in_out[0] = fixed(desc({1, 8, 4, 4}, DataType::kHALF, -1, hwc8));
    for (std::size_t i = 1; i < in_out.size(); ++i) in_out[i].desc.dims.nbDims = garbage;
    EXPECT_TRUE(made.plugin.supportsFormatCombination(0, in_out.data(), 2, 1)) << garbage;
    in_out[1] = fixed(desc({4, 8, 1, 1}, DataType::kHALF, -1, hwc8));
    EXPECT_TRUE(made.plugin.supportsFormatCombination(1, in_out.data(), 2, 1)) << garbage;
    // known now, and the layout does not allow this rank
    in_out[1] = fixed(desc({4, 8, 1}, DataType::kHALF, -1, hwc8));
    EXPECT_FALSE(made.plugin.supportsFormatCombination(1, in_out.data(), 2, 1)) << garbage;
  }
}

/// A node may have a wrong number of inputs, and the plugin reads the rank of the first one.
TEST(SupportsFormatCombination, IsRefusedForAnotherNumberOfInputs) {
  const Log log;
  Made<ops::LeakyReLU> leaky_relu(leaky(0.1F));
  Made<ops::SpatialPyramidPooling> pyramid;
  for (Plugin* plugin : {&leaky_relu.plugin, &pyramid.plugin}) {
    std::array<DynamicPluginTensorDesc, 3> in_out{};
    in_out.fill(fixed(desc({1, 8, 4, 4})));
    EXPECT_TRUE(plugin->supportsFormatCombination(1, in_out.data(), 1, 1));
    EXPECT_FALSE(plugin->supportsFormatCombination(0, in_out.data(), 0, 1));
    EXPECT_FALSE(plugin->supportsFormatCombination(2, in_out.data(), 2, 1));
  }
  EXPECT_THAT(log.errors, Contains(HasSubstr("SpatialPyramidPooling takes 1 inputs, found 0")));
}

TEST(VariadicInputs, AHostThatCallsAsTensorRTDoesBuildsThem) {
  detail::register_cuda_kernels_of<Gathered>();
  const PluginSchema schema = own_schema(operator_type<Gathered>());
  Creator creator(schema, schema);
  for (const std::size_t count : {1U, 2U, 30U}) {
    std::vector<TensorDesc> inputs(1 + count, {.dtype = DType::f16, .extents = {3}});
    inputs[0] = {.dtype = DType::i32, .extents = {7}};
    inputs.back().extents = {5};
    const BuiltPlugin built = build_plugin(creator, {}, inputs);
    EXPECT_EQ(built.outputs, std::vector{(TensorDesc{.dtype = DType::f16, .extents = {5}})}) << count;
  }
}

/// Type rows have one format per port, so each position has the format of the port to which its tensor belongs.
TEST(VariadicInputs, HaveTheFormatOfTheirPort) {
  const Log log;
  Made<Gathered> made;
  std::array<DynamicPluginTensorDesc, 33> in_out{};
  in_out.fill(fixed(desc({3}, DataType::kHALF)));
  in_out[0] = fixed(desc({7}, DataType::kINT32));
  for (const std::int32_t inputs : {2, 4, 31}) {
    for (std::int32_t i = 0; i <= inputs; ++i) {
      EXPECT_TRUE(made.plugin.supportsFormatCombination(i, in_out.data(), inputs, 1)) << i << " of " << inputs;
    }
    const DynamicPluginTensorDesc good = in_out[static_cast<std::size_t>(inputs)];
    for (const DataType wrong : {DataType::kFLOAT, DataType::kINT32}) {
      for (const std::int32_t at : {inputs - 1, inputs}) {
        if (at == 1 && wrong == DataType::kFLOAT) continue;  // the first f32 input determines T
        in_out[static_cast<std::size_t>(at)] = fixed(desc({3}, wrong));
        EXPECT_FALSE(made.plugin.supportsFormatCombination(at, in_out.data(), inputs, 1)) << at << " of " << inputs;
        in_out[static_cast<std::size_t>(at)] = good;
      }
    }
  }
  EXPECT_FALSE(made.plugin.supportsFormatCombination(0, in_out.data(), 1, 1));
  EXPECT_FALSE(made.plugin.supportsFormatCombination(0, in_out.data(), 32, 1));
  EXPECT_THAT(log.errors, Contains(HasSubstr("Gathered takes 2 to 31 inputs, found 32")));
}

TEST(VariadicInputs, AllReachTheKernel) {
  const Log log;
  Made<Gathered> made;
  const PluginTensorDesc out = desc({3});
  for (const std::size_t count : {3U, 31U, 2U}) {
    std::vector<PluginTensorDesc> in(count, desc({3}));
    in[0] = desc({7}, DataType::kINT32);
    const std::vector<float> memory(count);
    std::vector<const void*> addresses;
    for (const float& each : memory) addresses.push_back(&each);
    void* output = nullptr;
    ASSERT_EQ(made.plugin.onShapeChange(in.data(), static_cast<std::int32_t>(count), &out, 1), 0);
    ASSERT_EQ(made.plugin.enqueue(in.data(), &out, addresses.data(), &output, nullptr, nullptr), 0);
    EXPECT_EQ(Gathered::addresses, addresses);
    ASSERT_EQ(Gathered::told.size(), count);
    EXPECT_EQ(Gathered::told.front().extents, Extents{7});
    EXPECT_EQ(Gathered::told.back().extents, Extents{3});
  }
  EXPECT_THAT(log.errors, IsEmpty());
}

TEST(ShapeInputs, AHostThatCallsAsTensorRTDoesBuildsThem) {
  const Log log;
  detail::register_cuda_kernels_of<Tiled>();
  const PluginSchema schema = own_schema(operator_type<Tiled>());
  Creator creator(schema, schema);
  const TensorDesc x{.dtype = DType::f16, .extents = {3}};
  const Extents size{5, 7};
  const BuiltPlugin built = build_plugin(creator, {}, {&x, 1}, {}, nullptr, {&size, 1});
  EXPECT_EQ(built.outputs, std::vector{(TensorDesc{.dtype = DType::f16, .extents = {3, 10, 7}})});
  EXPECT_THROW(static_cast<void>(build_plugin(creator, {}, {&x, 1})), Error);
  EXPECT_THAT(log.errors,
              Contains(HasSubstr("Tiled has 1 shape inputs, but TensorRT passed 0; in an ONNX file the attribute "
                                 "`tensorrt_plugin_shape_input_indices` of the node must list them")));
}

/// TensorRT-RTX 1.7 passes shape inputs to getOutputShapes only, not to the kernels.
TEST(ShapeInputs, AreNoneOfTheKernels) {
  const Log log;
  Made<Tiled> made;
  const std::array in_out{fixed(desc({3})), fixed(desc({3, 10, 7}))};
  EXPECT_TRUE(made.plugin.supportsFormatCombination(1, in_out.data(), 1, 1));
  EXPECT_EQ(made.plugin.configurePlugin(in_out.data(), 1, &in_out[1], 1), 0);
  EXPECT_FALSE(made.plugin.supportsFormatCombination(1, in_out.data(), 2, 1));
  const PluginTensorDesc in = desc({3});
  const PluginTensorDesc out = desc({3, 10, 7});
  const void* input = nullptr;
  void* output = nullptr;
  ASSERT_EQ(made.plugin.onShapeChange(&in, 1, &out, 1), 0);
  ASSERT_EQ(made.plugin.enqueue(&in, &out, &input, &output, nullptr, nullptr), 0);
  EXPECT_EQ(Tiled::told.size(), 1U);
  EXPECT_EQ(Tiled::addresses.size(), 1U);
  EXPECT_THAT(log.errors, testing::ElementsAre(HasSubstr("Tiled takes 2 inputs, found 3")));
}

TEST(ImplicitQuantization, ScalesOfTensorRTAreTaken) {
  Made<ops::LeakyReLU> made(leaky(0.1F));
  const auto in = fixed(desc({1, 3}, DataType::kINT8, 0.5F));
  const auto out = fixed(desc({1, 3}, DataType::kINT8, 0.25F));
  ASSERT_EQ(made.plugin.configurePlugin(&in, 1, &out, 1), 0);
  EXPECT_EQ(made.number("x_scale"), 0.5F);
  EXPECT_EQ(made.number("y_scale"), 0.25F);
  EXPECT_EQ(made.number("alpha"), 0.1F);
}

TEST(ImplicitQuantization, ScalesOfTheModelStayWhereThereAreSome) {
  ops::LeakyReLU quantized;
  quantized.x_scale = 0.1F;
  Made<ops::LeakyReLU> made(quantized);
  const auto none = fixed(desc({1, 3}, DataType::kINT8, -1));
  ASSERT_EQ(made.plugin.configurePlugin(&none, 1, &none, 1), 0);
  EXPECT_EQ(made.number("x_scale"), 0.1F);
  EXPECT_EQ(made.number("y_scale"), 1);
  const auto other = fixed(desc({1, 3}, DataType::kINT8, 2));
  ASSERT_EQ(made.plugin.configurePlugin(&other, 1, &other, 1), 0);
  EXPECT_EQ(made.number("x_scale"), 0.1F);
  EXPECT_EQ(made.number("y_scale"), 2);
}

TEST(ImplicitQuantization, StronglyTypedNetworksHaveNone) {
  Made<ops::Convolution> made(convolution({1.F, 2.F}));
  const auto in = fixed(desc({1, 2, 3, 3}, DataType::kINT8, 1));
  const auto out = fixed(desc({1, 1, 3, 3}, DataType::kINT8, 1));
  ASSERT_EQ(made.plugin.configurePlugin(&in, 1, &out, 1), 0);
  EXPECT_EQ(made.number("x_scale"), 1);
}

TEST(ImplicitQuantization, WeightsWithoutAScaleAreRefused) {
  Log log;
  Made<ops::Convolution> made(convolution({0.1F, 0.2F}));
  const auto in = fixed(desc({1, 2, 3, 3}, DataType::kINT8, 0.5F));
  const auto out = fixed(desc({1, 1, 3, 3}, DataType::kINT8, 0.5F));
  EXPECT_NE(made.plugin.configurePlugin(&in, 1, &out, 1), 0);
  EXPECT_THAT(log.errors, Contains(HasSubstr("provides no scale for `weight`")));
}

TEST(ConfigurePlugin, BoundsNeedNotBeSizesThatOccur) {
  Log log;
  Made<ops::LeakyReLU> made;
  DynamicPluginTensorDesc in{desc({-1, 3}), dims({1, 3}), dims({8, 3}), dims({2, 3})};
  DynamicPluginTensorDesc out{desc({-1, 3}), dims({2, 3}), dims({8, 3}), dims({2, 3})};
  EXPECT_EQ(made.plugin.configurePlugin(&in, 1, &out, 1), 0);
  EXPECT_THAT(log.errors, IsEmpty());
  EXPECT_THAT(log.warnings, Contains(HasSubstr("used together, would be refused at inference")));
  const auto wrong = fixed(desc({2, 3}));
  const auto sizes = fixed(desc({2, 4}));
  EXPECT_NE(made.plugin.configurePlugin(&wrong, 1, &sizes, 1), 0) << "sizes that are known are checked";
}

TEST(ConfigurePlugin, TheOptimumHasToRun) {
  Log log;
  Made<ops::LeakyReLU> made;
  DynamicPluginTensorDesc in{desc({-1, 3}), dims({1, 3}), dims({8, 3}), dims({2, 3})};
  DynamicPluginTensorDesc out{desc({-1, 3}), dims({1, 3}), dims({8, 3}), dims({3, 3})};
  EXPECT_NE(made.plugin.configurePlugin(&in, 1, &out, 1), 0);
  EXPECT_THAT(log.errors, Contains(HasSubstr("at the profile's optimum")));
}

/// TensorRT calls getWorkspaceSize after a successful configurePlugin. In any other order the plugin must not return a
/// size that kernels could be run with, nor read beyond a shape.
TEST(GetWorkspaceSize, IsKnownWhereConfigurePluginTakesTheSizes) {
  const Log log;
  std::size_t taken = 0;
  std::size_t refused = 0;
  for (const OperatorType* type : linked_operators()) {
    const PluginSchema schema = own_schema(*type);
    for (std::size_t rank = 0; rank <= nvinfer1::Dims::MAX_DIMS; ++rank) {
      for (const DataType dtype : {DataType::kFLOAT, DataType::kHALF}) {
        for (std::size_t inputs = type->required_input_count(); inputs <= type->input_count(); ++inputs) {
          const std::vector tensors(inputs + type->output_count(),
                                    fixed(desc(std::vector<std::int64_t>(rank, 2), dtype)));
          const auto count = static_cast<std::int32_t>(inputs);
          const auto outputs = static_cast<std::int32_t>(type->output_count());
          const auto make = [&]() -> std::unique_ptr<Plugin> {
            std::unique_ptr<Operator> op;
            if (!make_operator(*type, nullptr, {}, op).ok()) return nullptr;  // it has required attributes
            return std::make_unique<Plugin>(schema, std::move(op));
          };
          const auto configured = make();
          const auto fresh = make();
          if (fresh == nullptr) continue;
          const bool is_taken =
              configured->configurePlugin(tensors.data(), count, tensors.data() + inputs, outputs) == 0;
          const std::size_t bytes = fresh->getWorkspaceSize(tensors.data(), count, tensors.data() + inputs, outputs);
          EXPECT_EQ(bytes != std::numeric_limits<std::size_t>::max(), is_taken)
              << type->name << " with " << inputs << " inputs of rank " << rank;
          ++(is_taken ? taken : refused);
        }
      }
    }
  }
  EXPECT_GT(taken, 50U);
  EXPECT_GT(refused, 200U);
}

TEST(Calls, OfPlacesThatAPluginDoesNotHaveFail) {
  Made<ops::LeakyReLU> made;
  const std::array in_out{fixed(desc({2, 3})), fixed(desc({2, 3}))};
  EXPECT_TRUE(made.plugin.supportsFormatCombination(1, in_out.data(), 1, 1));
  EXPECT_FALSE(made.plugin.supportsFormatCombination(-1, in_out.data(), 1, 1));
  EXPECT_FALSE(made.plugin.supportsFormatCombination(2, in_out.data(), 1, 1));
  std::int32_t tactic = 0;
  EXPECT_NE(made.plugin.getValidTactics(&tactic, made.plugin.getNbTactics() + 1), 0);
}

TEST(OnShapeChange, WorksAnewOnlyWhereSomethingButAddressesChanged) {
  Made<Counted> made;
  const PluginTensorDesc small = desc({2, 3});
  ASSERT_EQ(made.plugin.onShapeChange(&small, 1, &small, 1), 0);
  const int asked = Counted::questions;
  EXPECT_GT(asked, 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(made.plugin.onShapeChange(&small, 1, &small, 1), 0);
  EXPECT_EQ(Counted::questions, asked);
  const PluginTensorDesc large = desc({4, 3});
  ASSERT_EQ(made.plugin.onShapeChange(&large, 1, &large, 1), 0);
  EXPECT_GT(Counted::questions, asked);
  EXPECT_NE(made.plugin.onShapeChange(&large, 1, &small, 1), 0);
  EXPECT_NE(made.plugin.onShapeChange(&large, 1, &small, 1), 0) << "a refusal is not remembered as done";
}

std::vector<DataType> output_types_of(Plugin& plugin, std::size_t outputs) {
  std::vector<DataType> types(outputs);
  const DataType input = DataType::kHALF;
  EXPECT_EQ(plugin.getOutputDataTypes(types.data(), static_cast<std::int32_t>(outputs), &input, 1), 0);
  return types;
}

TEST(DataSizes, AHostThatCallsAsTensorRTDoesBuildsThem) {
  detail::register_cuda_kernels_of<Kept>();
  const PluginSchema schema = own_schema(operator_type<Kept>());
  Creator creator(schema, schema);
  const TensorDesc x{.dtype = DType::f16, .extents = {3, 5}};
  const BuiltPlugin built = build_plugin(creator, {}, {&x, 1});
  ASSERT_EQ(built.shapes.size(), 3U);
  EXPECT_EQ(built.shapes[0], Shape{data_size(2, 4, 15)});
  EXPECT_EQ(built.shapes[1], (Shape{data_size(2, 4, 15), 2}));
  EXPECT_EQ(built.outputs[0], (TensorDesc{.dtype = DType::f16, .extents = {15}}));
  EXPECT_EQ(built.outputs[2], (TensorDesc{.dtype = DType::i64, .extents = {}}));
  EXPECT_EQ(built.workspace, 15 * sizeof(float));
}

/// A plugin of another author, whose optimum is the size of its input, whether or not that depends on data.
class CarelessPlugin final : public nvinfer1::IPluginV3, public nvinfer1::IPluginV3OneBuild {
 public:
  nvinfer1::IPluginCapability* getCapabilityInterface(nvinfer1::PluginCapabilityType /*type*/) noexcept override {
    return static_cast<nvinfer1::IPluginV3OneBuild*>(this);
  }
  nvinfer1::IPluginV3* clone() noexcept override { return new CarelessPlugin(); }
  std::int32_t configurePlugin(const DynamicPluginTensorDesc* /*in*/, std::int32_t /*inputs*/,
                               const DynamicPluginTensorDesc* /*out*/, std::int32_t /*outputs*/) noexcept override {
    return 0;
  }
  std::int32_t getOutputDataTypes(DataType* types, std::int32_t /*outputs*/, const DataType* /*input_types*/,
                                  std::int32_t /*inputs*/) const noexcept override {
    types[0] = DataType::kFLOAT;
    types[1] = DataType::kINT64;
    return 0;
  }
  std::int32_t getOutputShapes(const nvinfer1::DimsExprs* inputs, std::int32_t /*input_count*/,
                               const nvinfer1::DimsExprs* /*shape_inputs*/, std::int32_t /*shape_input_count*/,
                               nvinfer1::DimsExprs* outputs, std::int32_t /*output_count*/,
                               nvinfer1::IExprBuilder& builder) noexcept override {
    const auto* twice = builder.operation(nvinfer1::DimensionOperation::kSUM, *inputs[0].d[0], *inputs[0].d[0]);
    outputs[0] = {1, {builder.declareSizeTensor(1, *twice, *twice)}};
    outputs[1] = {0, {}};
    return 0;
  }
  bool supportsFormatCombination(std::int32_t /*position*/, const DynamicPluginTensorDesc* /*in_out*/,
                                 std::int32_t /*inputs*/, std::int32_t /*outputs*/) noexcept override {
    return true;
  }
  [[nodiscard]] std::int32_t getNbOutputs() const noexcept override { return 2; }
};

class CarelessCreator final : public nvinfer1::IPluginCreatorV3One {
 public:
  nvinfer1::IPluginV3* createPlugin(const char* /*name*/, const nvinfer1::PluginFieldCollection* /*fields*/,
                                    nvinfer1::TensorRTPhase /*phase*/) noexcept override {
    return new CarelessPlugin();
  }
  const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
  [[nodiscard]] const char* getPluginName() const noexcept override { return "Careless"; }
  [[nodiscard]] const char* getPluginVersion() const noexcept override { return "1"; }
  [[nodiscard]] const char* getPluginNamespace() const noexcept override { return ""; }
};

/// NvInferRuntime.h of declareSizeTensor: "opt ... Must not depend on a size tensor". Kept's optimum is computed from
/// its input's sizes, and passes where those are size tensors.
TEST(DataSizes, WhoseOptimumDependsOnASizeTensorAreRefused) {
  CarelessCreator creator;
  const TensorDesc x{.dtype = DType::f32, .extents = {3}};
  try {
    static_cast<void>(build_plugin(creator, {}, {&x, 1}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("getOutputShapes: the optimum of size output 1 depends on a size tensor"));
  }
}

nvinfer1::IPluginV3OneBuild& build_of(Plugin& plugin) {
  return *static_cast<nvinfer1::IPluginV3OneBuild*>(
      plugin.getCapabilityInterface(nvinfer1::PluginCapabilityType::kBUILD));
}

/// The input order of a plugin of another library: mask before weight, and between them an input that the operator does
/// not need.
constexpr std::string_view other_order = "x,mask,,weight,bias";

std::unique_ptr<nvinfer1::IPluginV3> make_ordered(nvinfer1::TensorRTPhase phase, std::string_view names) {
  detail::register_cuda_kernels_of<Ordered>();
  static const PluginSchema schema = own_schema(operator_type<Ordered>());
  static Creator creator(schema, schema);
  const nvinfer1::PluginField field{input_order_field, names.data(), nvinfer1::PluginFieldType::kCHAR,
                                    static_cast<std::int32_t>(names.size())};
  const nvinfer1::PluginFieldCollection fields{1, &field};
  return std::unique_ptr<nvinfer1::IPluginV3>(creator.createPlugin("layer", &fields, phase));
}

TEST(InputsInAnotherOrder, EveryCallPutsThemIntoTheOperators) {
  Log log;
  std::unique_ptr<nvinfer1::IPluginV3> made = make_ordered(nvinfer1::TensorRTPhase::kRUNTIME, other_order);
  ASSERT_NE(made, nullptr);
  made.reset(made->clone());
  auto& plugin = static_cast<Plugin&>(*made);
  const std::array inputs{desc({3}, DataType::kHALF), desc({7}, DataType::kHALF), desc({9}, DataType::kINT32),
                          desc({5}, DataType::kHALF), desc({4}, DataType::kHALF)};
  const PluginTensorDesc y = desc({3, 5, 7}, DataType::kHALF);
  constexpr std::array<int, 5> memory{};
  for (const std::size_t count : {4U, 5U}) {
    const auto given = static_cast<std::int32_t>(count);
    std::vector<DataType> types;
    std::vector<DynamicPluginTensorDesc> in_out;
    std::vector<const void*> addresses;
    for (std::size_t i = 0; i < count; ++i) {
      types.push_back(inputs[i].type);
      in_out.push_back(fixed(inputs[i]));
      addresses.push_back(&memory[i]);
    }
    in_out.push_back(fixed(y));
    DataType type_of_y{};
    ASSERT_EQ(plugin.getOutputDataTypes(&type_of_y, 1, types.data(), given), 0);
    EXPECT_EQ(type_of_y, DataType::kHALF);
    for (std::int32_t position = 0; position <= given; ++position) {
      EXPECT_TRUE(plugin.supportsFormatCombination(position, in_out.data(), given, 1)) << position;
    }
    std::vector<DynamicPluginTensorDesc> mixed = in_out;
    mixed[3].desc.type = DataType::kFLOAT;  // weight
    EXPECT_FALSE(plugin.supportsFormatCombination(3, mixed.data(), given, 1));
    EXPECT_EQ(plugin.configurePlugin(in_out.data(), given, &in_out[count], 1), 0);
    const std::size_t bias = count == 5 ? 4 : 0;
    EXPECT_EQ(plugin.getWorkspaceSize(in_out.data(), given, &in_out[count], 1), 3050007 + bias * 100);
    ASSERT_EQ(plugin.onShapeChange(inputs.data(), given, &y, 1), 0);
    void* output = nullptr;
    ASSERT_EQ(plugin.enqueue(inputs.data(), &y, addresses.data(), &output, nullptr, nullptr), 0);
    ASSERT_EQ(Ordered::told.size(), 4U);
    EXPECT_EQ(Ordered::told[0].extents, Extents{3});
    EXPECT_EQ(Ordered::told[1].extents, Extents{5});
    EXPECT_EQ(Ordered::told[2].extents, Extents{static_cast<std::int64_t>(bias)});
    EXPECT_EQ(Ordered::told[3].extents, Extents{7});
    const void* address_of_bias = count == 5 ? &memory[4] : nullptr;
    EXPECT_EQ(Ordered::addresses, (std::vector<const void*>{memory.data(), &memory[3], address_of_bias, &memory[1]}));
  }
  EXPECT_THAT(log.errors, IsEmpty());
  EXPECT_THAT(log.warnings, IsEmpty());
  const auto* kept = plugin.getFieldsToSerialize();
  ASSERT_EQ(kept->nbFields, 1);
  EXPECT_STREQ(kept->fields[0].name, input_order_field);
  EXPECT_EQ(std::string_view(static_cast<const char*>(kept->fields[0].data),
                             static_cast<std::size_t>(kept->fields[0].length)),
            other_order);
  EXPECT_THAT(plugin.getMetadataString(), HasSubstr(std::string("graft.inputs=") + std::string(other_order)));
}

TEST(InputsInAnotherOrder, AnotherNumberOfThemIsRefused) {
  Log log;
  const auto made = make_ordered(nvinfer1::TensorRTPhase::kRUNTIME, other_order);
  ASSERT_NE(made, nullptr);
  std::array<DynamicPluginTensorDesc, 4> in_out{};
  in_out.fill(fixed(desc({3})));
  EXPECT_FALSE(static_cast<Plugin&>(*made).supportsFormatCombination(0, in_out.data(), 3, 1));
  EXPECT_THAT(log.errors, Contains(HasSubstr("Ordered takes 4 to 5 inputs, found 3: x,mask,,weight,bias")));
}

TEST(InputsInAnotherOrder, OnlyEnginesSaySo) {
  Log log;
  EXPECT_EQ(make_ordered(nvinfer1::TensorRTPhase::kBUILD, other_order), nullptr);
  EXPECT_THAT(log.errors, Contains(HasSubstr("field `graft.inputs` is unknown")));
  EXPECT_EQ(make_ordered(nvinfer1::TensorRTPhase::kRUNTIME, "x,mask,scale,weight"), nullptr);
  EXPECT_THAT(log.errors, Contains(HasSubstr("`scale` is not an input of the operator")));
  EXPECT_NE(make_ordered(nvinfer1::TensorRTPhase::kRUNTIME, ""), nullptr);
}

/// TensorRT 10.0 to 10.2 have only the first version of the interface.
TEST(AliasedPorts, AreInTheSecondFormOfTheInterface) {
  Made<ops::CausalConvWithState> apart;
  EXPECT_EQ(build_of(apart.plugin).getInterfaceInfo().major, 1);
  Made<ops::LeakyReLU> other;
  EXPECT_EQ(build_of(other.plugin).getInterfaceInfo().major, 1);

  ops::CausalConvWithState op;
  op.in_place = true;
  Made<ops::CausalConvWithState> made(op);
  ASSERT_EQ(build_of(made.plugin).getInterfaceInfo().major, 2);
  EXPECT_STREQ(build_of(made.plugin).getInterfaceInfo().kind, build_of(apart.plugin).getInterfaceInfo().kind);
  auto& build = static_cast<nvinfer1::IPluginV3OneBuildV2&>(build_of(made.plugin));
  EXPECT_EQ(build.getAliasedInput(0), -1);
  EXPECT_EQ(build.getAliasedInput(1), 3);
  const std::unique_ptr<nvinfer1::IPluginV3> copy(made.plugin.clone());
  EXPECT_EQ(build_of(static_cast<Plugin&>(*copy)).getInterfaceInfo().major, 2);
}

TEST(AliasedPorts, AreWhatTheHostIsToldAndAllows) {
  detail::register_cuda_kernels_of<Updated>();
  const PluginSchema schema = own_schema(operator_type<Updated>());
  Creator creator(schema, schema);
  const TensorDesc x{.dtype = DType::f32, .extents = {5}};
  Updated::aliased = {};
  EXPECT_EQ(build_plugin(creator, {}, {&x, 1}).aliased, (std::vector{-1, -1}));
  Updated::aliased = {std::nullopt, 0};
  EXPECT_EQ(build_plugin(creator, {}, {&x, 1}).aliased, (std::vector{-1, 0}));
  const auto refusal = [&] {
    try {
      static_cast<void>(build_plugin(creator, {}, {&x, 1}));
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  Updated::aliased = {0, 0};
  EXPECT_THAT(refusal(), HasSubstr("returned input 0 for two outputs"));
}

/// TensorRT reads the aliased input before configurePlugin, and reports a missing one as a broken plugin.
TEST(AliasedPorts, OfAnInputThatIsLeftOutAreRefusedByName) {
  Log log;
  ops::CausalConvWithState op;
  op.in_place = true;
  detail::register_cuda_kernels_of<ops::CausalConvWithState>();
  const PluginSchema schema = own_schema(operator_type<ops::CausalConvWithState>());
  Creator creator(schema, schema);
  const std::vector<TensorDesc> inputs{{.dtype = DType::f32, .extents = {2, 6, 9}},
                                       {.dtype = DType::f32, .extents = {6, 1, 4}},
                                       {.dtype = DType::f32, .extents = {6}}};
  const PluginFields in_place{{"in_place", std::int64_t{1}}};
  EXPECT_THROW(static_cast<void>(build_plugin(creator, in_place, inputs)), Error);
  EXPECT_THAT(
      log.errors,
      testing::ElementsAre(HasSubstr(
          "getOutputDataTypes: CausalConvWithState: `past_state` is absent, but `present_state` shares its memory")));
  EXPECT_EQ(build_plugin(creator, {}, inputs).aliased, (std::vector{-1, -1}));

  Made<ops::CausalConvWithState> made(op);
  std::array<nvinfer1::DimsExprs, 2> outputs{};
  log.errors.clear();
  UnusedBuilder builder;
  EXPECT_NE(made.plugin.getOutputShapes(nullptr, 3, nullptr, 0, outputs.data(), 2, builder), 0);
  EXPECT_THAT(log.errors,
              testing::ElementsAre(HasSubstr("getOutputShapes: CausalConvWithState: `past_state` is absent")));
}

/// Functions of a definition may throw, but functions of TensorRT's interface must not.
TEST(AliasedPorts, MayThrow) {
  const Log log;
  Updated::throws = true;
  Made<Updated> made;
  EXPECT_EQ(build_of(made.plugin).getInterfaceInfo().major, 1);
  EXPECT_EQ(made.plugin.getAliasedInput(0), -1);
  Updated::throws = false;
  EXPECT_THAT(log.errors, testing::Each(HasSubstr("thrown by an operator")));
  EXPECT_EQ(log.errors.size(), 2U);
}

/// A node must have the input of a state that is updated in place.
TEST(AliasedPorts, OfAnInputThatIsLeftOutAreRefused) {
  const Log log;
  ops::CausalConvWithState op;
  op.in_place = true;
  Made<ops::CausalConvWithState> made(op);
  const std::array in{fixed(desc({2, 6, 9})), fixed(desc({6, 1, 4})), fixed(desc({6}))};
  const std::array out{fixed(desc({2, 6, 9})), fixed(desc({2, 6, 3}))};
  EXPECT_NE(made.plugin.configurePlugin(in.data(), 3, out.data(), 2), 0);
  EXPECT_THAT(log.errors, Contains(HasSubstr("`past_state` is left out")));
}

/// TensorRT passes -1 for such a size at run time, and values from 0 to the largest while it builds.
TEST(DataSizes, KernelsAreToldTheLargest) {
  const Log log;
  Made<Kept> made;
  const std::array out{desc({-1}, DataType::kHALF), desc({-1, 2}, DataType::kHALF), desc({}, DataType::kINT64)};
  const PluginTensorDesc in = desc({3, 5}, DataType::kHALF);
  ASSERT_EQ(made.plugin.onShapeChange(&in, 1, out.data(), 3), 0);
  const void* input = nullptr;
  std::array<void*, 3> outputs{};
  ASSERT_EQ(made.plugin.enqueue(&in, out.data(), &input, outputs.data(), nullptr, nullptr), 0);
  ASSERT_EQ(Kept::told.size(), 3U);
  EXPECT_EQ(Kept::told[0].extents, Extents{15});
  EXPECT_EQ(Kept::told[1].extents, (Extents{15, 2}));

  const DynamicPluginTensorDesc range{desc({-1, 5}, DataType::kHALF), dims({1, 5}), dims({8, 5}), dims({2, 5})};
  const std::array<DynamicPluginTensorDesc, 3> ranges{
      DynamicPluginTensorDesc{out[0], dims({0}), dims({40}), dims({3})},
      DynamicPluginTensorDesc{out[1], dims({0, 2}), dims({40, 2}), dims({3, 2})}, fixed(out[2])};
  EXPECT_EQ(made.plugin.configurePlugin(&range, 1, ranges.data(), 3), 0);
  EXPECT_EQ(made.plugin.getWorkspaceSize(&range, 1, ranges.data(), 3), 40 * sizeof(float));
  EXPECT_THAT(log.errors, IsEmpty());
  EXPECT_THAT(log.warnings, IsEmpty());
}

/// If configurePlugin accepted it, kernels would write to a workspace of 0 bytes at run time.
TEST(ConfigurePlugin, TheWorkspaceOfTheLargestSizesHasToBeKnown) {
  const Log log;
  Made<Kept> made;
  constexpr std::int64_t many = 1 << 25;
  const DynamicPluginTensorDesc in{desc({-1, -1}), dims({1, 1}), dims({many, many}), dims({2, 5})};
  const std::array<DynamicPluginTensorDesc, 3> out{
      DynamicPluginTensorDesc{desc({-1}), dims({0}), dims({many * many}), dims({3})},
      DynamicPluginTensorDesc{desc({-1, 2}), dims({0, 2}), dims({many * many, 2}), dims({3, 2})},
      fixed(desc({}, DataType::kINT64))};
  EXPECT_NE(made.plugin.configurePlugin(&in, 1, out.data(), 3), 0);
  EXPECT_THAT(log.errors, Contains(HasSubstr("the workspace of the profile's largest sizes: Kept: a tensor of")));
  EXPECT_EQ(made.plugin.getWorkspaceSize(&in, 1, out.data(), 3), std::numeric_limits<std::size_t>::max());
}

/// After a layer whose size also depends on data, TensorRT passes the actual size in enqueue only.
TEST(DataSizes, KernelsAreToldWhatEnqueueSays) {
  const Log log;
  Made<Kept> made;
  const std::array out{desc({-1}, DataType::kHALF), desc({-1, 2}, DataType::kHALF), desc({}, DataType::kINT64)};
  const auto run = [&](const PluginTensorDesc& in) {
    const void* input = nullptr;
    std::array<void*, 3> outputs{};
    return made.plugin.enqueue(&in, out.data(), &input, outputs.data(), nullptr, nullptr);
  };
  ASSERT_EQ(run(desc({2, 5}, DataType::kHALF)), 0) << "without onShapeChange";
  EXPECT_EQ(Kept::told[0].extents, Extents{10});
  const PluginTensorDesc prepared = desc({3, 5}, DataType::kHALF);
  ASSERT_EQ(made.plugin.onShapeChange(&prepared, 1, out.data(), 3), 0);
  ASSERT_EQ(run(desc({7, 5}, DataType::kHALF)), 0);
  EXPECT_EQ(Kept::told[0].extents, Extents{35});
  ASSERT_EQ(run(prepared), 0);
  EXPECT_EQ(Kept::told[0].extents, Extents{15});
  EXPECT_THAT(log.errors, IsEmpty());
}

struct PairedCalls {
  std::int32_t announce(std::int64_t a, std::int64_t b) {
    const std::array in{desc({a}), desc({b})};
    const PluginTensorDesc out = desc({a < 0 ? -1 : a * 2});
    return made.plugin.onShapeChange(in.data(), 2, &out, 1);
  }
  /// Calls enqueue with inputs of `a` and `b` elements and an output of `y` elements, as TensorRT passes it; a size of
  /// an earlier layer may determine `y` too.
  std::int32_t run(std::int64_t a, std::int64_t b, std::int64_t y) {
    Paired::ran = "";
    Paired::told.clear();
    const std::array in{desc({a}), desc({b})};
    const PluginTensorDesc out = desc({y});
    const std::array<const void*, 2> inputs{};
    void* output = nullptr;
    return made.plugin.enqueue(in.data(), &out, inputs.data(), &output, nullptr, nullptr);
  }
  Made<Paired> made;
};

/// TensorRT calls onShapeChange before enqueue, but not where only a size changes that depends on data of an earlier
/// layer.
TEST(Enqueue, RunsOtherSizesThanWereAnnounced) {
  const Log log;
  PairedCalls calls;
  ASSERT_EQ(calls.announce(8, 8), 0);
  ASSERT_EQ(calls.run(8, 8, 16), 0);
  EXPECT_EQ(Paired::ran, "v");
  for (const std::int64_t size : {12, 3}) {
    for (const std::int64_t told : {size * 2, std::int64_t{-1}}) {
      ASSERT_EQ(calls.run(size, size, told), 0) << size;
      EXPECT_EQ(Paired::ran, size == 3 ? "a" : "v") << "the announced variant takes multiples of 4 alone";
      ASSERT_EQ(Paired::told.size(), 1U);
      EXPECT_EQ(Paired::told[0].extents, Extents{size * 2});
    }
  }
  ASSERT_EQ(calls.run(8, 8, 16), 0) << "what was announced still runs";
  EXPECT_THAT(log.errors, IsEmpty());
}

TEST(Enqueue, ChecksOtherSizesThanWereAnnounced) {
  const Log log;
  PairedCalls calls;
  ASSERT_EQ(calls.announce(8, 8), 0);
  EXPECT_NE(calls.run(8, 5, 16), 0);
  EXPECT_EQ(Paired::ran, "") << "a kernel would read beyond the end of b";
  EXPECT_THAT(log.errors, testing::ElementsAre(HasSubstr("enqueue: `b` is not as long as `a`")));
}

TEST(Enqueue, ComparesTheOutputsOfAnOperatorWithShapeInputs) {
  const Log log;
  Made<Tiled> made;
  const PluginTensorDesc in = desc({3});
  const void* input = nullptr;
  void* output = nullptr;
  PluginTensorDesc out = desc({3, 10, 7});
  ASSERT_EQ(made.plugin.onShapeChange(&in, 1, &out, 1), 0);
  out = desc({3, 10});
  EXPECT_NE(made.plugin.enqueue(&in, &out, &input, &output, nullptr, nullptr), 0);
  EXPECT_THAT(log.errors, testing::ElementsAre(HasSubstr("allowed is rank 3")));
}

TEST(OnShapeChange, PreparesNothingForSizesThatAreNotKnown) {
  const Log log;
  PairedCalls calls;
  ASSERT_EQ(calls.announce(8, 8), 0);
  ASSERT_EQ(calls.announce(-1, -1), 0);
  ASSERT_EQ(calls.run(5, 5, -1), 0);
  EXPECT_EQ(Paired::ran, "a");
  EXPECT_NE(calls.run(8, 4, -1), 0);
  EXPECT_THAT(log.errors, testing::ElementsAre(HasSubstr("`b` is not as long as `a`")));
}

TEST(Enqueue, AllocatesNothingForSizesThatWereAnnounced) {
  Made<Counted> made;
  const PluginTensorDesc small = desc({2, 3});
  const void* input = nullptr;
  void* output = nullptr;
  ASSERT_EQ(made.plugin.onShapeChange(&small, 1, &small, 1), 0);
  const std::size_t before = allocations;
  ASSERT_EQ(made.plugin.enqueue(&small, &small, &input, &output, nullptr, nullptr), 0);
  EXPECT_EQ(allocations, before);
  const PluginTensorDesc large = desc({4, 3});
  ASSERT_EQ(made.plugin.enqueue(&large, &large, &input, &output, nullptr, nullptr), 0);
  EXPECT_GT(allocations, before) << "what counts them counts";
}

/// Optimum sizes are bounds from different layers; they need not occur together.
TEST(DataSizes, OfInputsMayDifferInTheOptimum) {
  const Log log;
  Made<ops::LeakyReLU> made;
  const DynamicPluginTensorDesc in{desc({-1, 3}), dims({0, 3}), dims({8, 3}), dims({2, 3})};
  const DynamicPluginTensorDesc out{desc({-1, 3}), dims({0, 3}), dims({8, 3}), dims({3, 3})};
  EXPECT_EQ(made.plugin.configurePlugin(&in, 1, &out, 1), 0);
  EXPECT_THAT(log.warnings, Contains(HasSubstr("at the profile's optimum")));
}

/// A wrong size of a dimension that does not depend on data is always an error.
TEST(DataSizes, ExcuseNoOtherSizeOfTheOptimum) {
  const Log log;
  Made<ops::LeakyReLU> made;
  const auto configure = [&](std::int64_t length_of_output) {
    const DynamicPluginTensorDesc in{desc({-1, -1}), dims({0, 1}), dims({8, 4}), dims({2, 3})};
    const DynamicPluginTensorDesc out{desc({-1, -1}), dims({0, 1}), dims({8, 4}), dims({5, length_of_output})};
    return made.plugin.configurePlugin(&in, 1, &out, 1);
  };
  EXPECT_EQ(configure(3), 0);
  EXPECT_THAT(log.errors, IsEmpty());
  EXPECT_NE(configure(2), 0);
  EXPECT_THAT(log.errors, Contains(HasSubstr("at the profile's optimum")));
}

TEST(DataSizes, AreOf32BitsInTensorRTsThatWantThat) {
  Made<Kept> made;
  EXPECT_EQ(output_types_of(made.plugin, 3).back(), DataType::kINT64);
  for (const auto& [library, type] :
       {std::pair{OLD_TENSORRT, DataType::kINT32}, std::pair{NEW_TENSORRT, DataType::kINT64}}) {
    const std::unique_ptr<void, int (*)(void*)> loaded(dlopen(library, RTLD_NOW | RTLD_LOCAL), dlclose);
    ASSERT_NE(loaded, nullptr) << library << ": " << dlerror();
    EXPECT_EQ(output_types_of(made.plugin, 3).back(), type) << library;
    std::array in_out{fixed(desc({3, 5}, DataType::kHALF)), fixed(desc({-1}, DataType::kHALF)),
                      fixed(desc({-1, 2}, DataType::kHALF)), fixed(desc({}, DataType::kINT32))};
    EXPECT_EQ(made.plugin.supportsFormatCombination(3, in_out.data(), 1, 3), type == DataType::kINT32);
    in_out[3] = fixed(desc({}, DataType::kINT64));
    EXPECT_EQ(made.plugin.supportsFormatCombination(3, in_out.data(), 1, 3), type == DataType::kINT64);
  }
}

TEST(TimingCacheId, DependsOnTheAttributes) {
  const std::string plain = Made<ops::LeakyReLU>().plugin.getTimingCacheID();
  EXPECT_EQ(Made<ops::LeakyReLU>().plugin.getTimingCacheID(), plain);
  EXPECT_NE(Made<ops::LeakyReLU>(leaky(0.3F)).plugin.getTimingCacheID(), plain);
  std::vector<float> weights(1000, 1.F);
  const std::string one = Made<ops::Convolution>(convolution(weights)).plugin.getTimingCacheID();
  weights.back() = 2;
  EXPECT_NE(Made<ops::Convolution>(convolution(weights)).plugin.getTimingCacheID(), one);
  EXPECT_LT(one.size(), 1000U);
}

TEST(MetadataString, NamesThePluginAndWhatDiffersFromItsDefaults) {
  EXPECT_STREQ(Made<ops::LeakyReLU>().plugin.getMetadataString(), "graft::LeakyReLU 1");
  EXPECT_STREQ(Made<ops::LeakyReLU>(leaky(0.5F)).plugin.getMetadataString(), "graft::LeakyReLU 1 alpha=0.5");
}

}  // namespace
}  // namespace graft::tensorrt
