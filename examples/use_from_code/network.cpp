// Builds a network with Graft's operators through TensorRT's C++ API.
#include <NvInfer.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "graft/tensorrt/add_layer.hpp"
#include "ops/instance_norm/instance_norm.hpp"
#include "ops/leaky_relu/leaky_relu.hpp"

using graft::tensorrt::add_layer;

namespace {

class Logger : public nvinfer1::ILogger {
  void log(Severity severity, const char* message) noexcept override {
    if (severity <= Severity::kWARNING) std::fprintf(stderr, "%s\n", message);
  }
};

void write_network(nvinfer1::INetworkDefinition& network) {
  nvinfer1::ITensor* image = network.addInput("image", nvinfer1::DataType::kFLOAT, nvinfer1::Dims4{1, 3, 32, 32});
  auto& norm = add_layer<graft::ops::InstanceNorm>(network, {image}, {.epsilon = 1e-3F});
  auto& leaky = add_layer<graft::ops::LeakyReLU>(network, {norm.getOutput(0)}, {.alpha = 0.1F}, "activation");
  nvinfer1::ITensor* result = leaky.getOutput(0);
  result->setName("result");
  network.markOutput(*result);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw graft::Error("usage: network libgraft_plugins.so ENGINE");
  Logger logger;
  const std::unique_ptr<nvinfer1::IBuilder> builder(nvinfer1::createInferBuilder(logger));
  builder->getPluginRegistry().loadLibrary(argv[1]);
  constexpr auto strongly_typed = 1U << static_cast<unsigned>(nvinfer1::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
  const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(strongly_typed));
  write_network(*network);
  const std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
  const std::unique_ptr<nvinfer1::IHostMemory> engine(builder->buildSerializedNetwork(*network, *config));
  if (engine == nullptr) throw graft::Error("TensorRT did not build the network; its log says why");
  std::ofstream file(argv[2], std::ios::binary);
  file.write(static_cast<const char*>(engine->data()), static_cast<std::streamsize>(engine->size()));
  if (!file.flush()) throw graft::Error(std::string(argv[2]) + ": could not be written");
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
