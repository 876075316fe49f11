// Compares every case of every operator, in every CUDA variant that fits it, with the reference kernel.
//
// GRAFT_LARGE=1 adds the cases of more than 2^31 elements. GRAFT_ACCURACY=<file> writes the sizes of the errors, with
// GRAFT_COMMIT as the commit of the sources: rows of docs/ops/accuracy.json. GRAFT_SANITIZE=1 is for compute-sanitizer:
// every variant of every case runs once, and results are not compared.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "gpu/device_tensor.hpp"
#include "ops/operator_case.hpp"

namespace graft {
namespace {

using graft::testing::check_cuda;
using graft::testing::DeviceTensor;
using graft::testing::make_stream;
using graft::testing::Stream;
using graft::testing::under_sanitizer;

struct Parameter {
  const OperatorType* type;
  const ops::OperatorCase* test;
};

std::vector<Parameter> cases_to_run(bool large) {
  std::vector<Parameter> parameters;
  for (const auto& [type, cases] : ops::operator_cases()) {
    for (const ops::OperatorCase& test : cases) {
      if (test.refused.empty() && test.large == large) parameters.push_back({type, &test});
    }
  }
  return parameters;
}

std::string parameter_name(const ::testing::TestParamInfo<Parameter>& info) {
  return std::string(info.param.type->name) + "_" + info.param.test->name;
}

/// A problem on the device: inputs, outputs, scratch memory.
class DeviceProblem {
 public:
  DeviceProblem(const ops::OperatorCase& test, std::vector<TensorDesc> inputs)
      : op_(*test.op), inputs_(std::move(inputs)), outputs_(ops::output_descs(op_, inputs_)) {
    const auto add = [&](const TensorDesc& desc, std::vector<DeviceTensor>& tensors) {
      tensors.emplace_back(static_cast<std::size_t>(desc.storage_bytes()),
                           static_cast<std::size_t>(test.shift) * size_of(desc.dtype));
    };
    for (const TensorDesc& desc : inputs_) add(desc, input_tensors_);
    for (const TensorDesc& desc : outputs_) add(desc, output_tensors_);
    workspace_ = std::make_unique<DeviceTensor>(op_.workspace(problem()));
    for (const DeviceTensor& tensor : input_tensors_) input_addresses_.push_back(tensor.data());
    for (const DeviceTensor& tensor : output_tensors_) output_addresses_.push_back(tensor.data());
  }

  [[nodiscard]] Problem problem() const { return {inputs_, outputs_}; }
  [[nodiscard]] const std::vector<DeviceTensor>& inputs() const { return input_tensors_; }
  [[nodiscard]] const std::vector<DeviceTensor>& outputs() const { return output_tensors_; }
  [[nodiscard]] const std::vector<TensorDesc>& output_types() const { return outputs_; }

  /// Overwrites the outputs and the workspace, so that no result of an earlier run remains.
  void spoil() const {
    for (const DeviceTensor& tensor : output_tensors_) tensor.spoil();
    workspace_->spoil();
  }
  [[nodiscard]] Status run(std::string_view variant, cudaStream_t stream) const {
    return op_.run_cuda(problem(), {input_addresses_, output_addresses_, workspace_->data()}, {stream, variant});
  }
  [[nodiscard]] std::vector<std::vector<std::byte>> results() const {
    std::vector<std::vector<std::byte>> bytes;
    for (const DeviceTensor& tensor : output_tensors_) bytes.push_back(tensor.read());
    return bytes;
  }
  [[nodiscard]] bool guards_intact() const {
    bool intact = workspace_->guards_intact();
    for (const DeviceTensor& tensor : input_tensors_) intact = intact && tensor.guards_intact();
    for (const DeviceTensor& tensor : output_tensors_) intact = intact && tensor.guards_intact();
    return intact;
  }

 private:
  const Operator& op_;
  std::vector<TensorDesc> inputs_;
  std::vector<TensorDesc> outputs_;
  std::vector<DeviceTensor> input_tensors_;
  std::vector<DeviceTensor> output_tensors_;
  std::unique_ptr<DeviceTensor> workspace_;
  std::vector<const void*> input_addresses_;
  std::vector<void*> output_addresses_;
};

/// Captures a run as a CUDA graph and replays it twice on another stream.
void run_as_graph(const DeviceProblem& device, std::string_view variant, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  const Status status = device.run(variant, stream);
  check_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  ASSERT_TRUE(status.ok()) << status.message();
  cudaGraphExec_t executable = nullptr;
  check_cuda(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  const Stream other = make_stream();
  for (int replay = 0; replay < 2; ++replay) {
    device.spoil();
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check_cuda(cudaGraphLaunch(executable, other.get()), "cudaGraphLaunch");
    check_cuda(cudaStreamSynchronize(other.get()), "cudaStreamSynchronize");
  }
  check_cuda(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
  check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
}

std::string reproduce() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  return "reproduce: operator_gpu_test --gtest_filter=" + std::string(info->test_suite_name()) + "." + info->name();
}

/// Sums up the kernels' errors by operator and type, and writes them to the file GRAFT_ACCURACY.
class Accuracy : public ::testing::Environment {
 public:
  void add(const ops::OperatorCase& test, const ops::HostTensor& found, const ops::ExpectedOutput& expected,
           float scale) {
    if (expected.numbers.empty()) return;
    rows_[{std::string(test.op->type().name), found.desc.dtype}] +=
        errors_of(found, expected, test.tolerance, scale, test.absolute);
  }
  void TearDown() override {
    const char* path = std::getenv("GRAFT_ACCURACY");
    if (path == nullptr) return;
    cudaDeviceProp device{};
    check_cuda(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
    const char* commit = std::getenv("GRAFT_COMMIT");
    std::ofstream file(path);
    file << R"({"rows": [)";
    const char* separator = "\n";
    for (const auto& [key, row] : rows_) {
      file << separator << R"( {"operator": ")" << key.first << R"(", "dtype": ")" << to_string(key.second)
           << R"(", "device": ")" << device.name << R"(", "commit": ")" << (commit == nullptr ? "" : commit)
           << R"(", "results": )" << row.results << R"(, "off": )" << row.off << R"(, "beyond": )" << row.beyond
           << R"(, "of_bound": )" << row.of_bound << R"(, "beyond_size": )" << row.beyond_size
           << R"(, "beyond_error": )" << row.beyond_error << R"(, "from_tie": )" << row.from_tie << "}";
      separator = ",\n";
    }
    file << "\n]}\n";
  }

 private:
  std::map<std::pair<std::string, DType>, ops::Errors> rows_;
};

Accuracy& accuracy() {
  static auto* const environment = dynamic_cast<Accuracy*>(::testing::AddGlobalTestEnvironment(new Accuracy));
  return *environment;
}
const bool accuracy_is_registered = (accuracy(), true);  // registered before the tests run

/// Runs each variant in freshly allocated memory, so that a checker finds reads of elements that were not written.
void run_every_variant_once(const ops::OperatorCase& test) {
  const std::vector<ops::HostTensor> inputs = ops::make_inputs(test);
  const std::vector<TensorDesc> outputs = ops::output_descs(*test.op, test.inputs);
  const Stream stream = make_stream();
  for (const VariantInfo& variant : test.op->cuda_variants({test.inputs, outputs})) {
    if (!variant.fits.ok() || !runs_on_current_device(variant.compute).ok()) continue;
    SCOPED_TRACE("variant " + std::string(variant.name));
    const DeviceProblem device(test, test.inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) device.inputs()[i].write(inputs[i].bytes);
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const Status status = device.run(variant.name, stream.get());
    ASSERT_TRUE(status.ok()) << status.message();
    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    static_cast<void>(device.results());  // copying finds elements that no kernel wrote
  }
}

class OperatorOnGpu : public ::testing::TestWithParam<Parameter> {};

TEST_P(OperatorOnGpu, EveryVariantAgreesWithTheReference) {
  SCOPED_TRACE(reproduce());
  const auto& [type, test] = GetParam();
  if (under_sanitizer()) return run_every_variant_once(*test);
  const std::vector<ops::HostTensor> inputs = ops::make_inputs(*test);
  const auto expected = expected_outputs(*test->op, inputs);
  const DeviceProblem device(*test, test->inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) device.inputs()[i].write(inputs[i].bytes);
  const Stream stream = make_stream();

  int fitting = 0;
  for (const VariantInfo& variant : test->op->cuda_variants(device.problem())) {
    SCOPED_TRACE("variant " + std::string(variant.name));
    if (!runs_on_current_device(variant.compute).ok()) continue;
    if (!variant.fits.ok()) {
      EXPECT_FALSE(variant.fits.message().empty());
      EXPECT_EQ(device.run(variant.name, stream.get()).code(), StatusCode::unsupported);
      continue;
    }
    ++fitting;
    device.spoil();
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const Status status = device.run(variant.name, stream.get());
    ASSERT_TRUE(status.ok()) << status.message();
    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    const auto results = device.results();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const float scale = ops::scale_of(*test->op, type->ports[type->input_count() + i].name);
      EXPECT_EQ(
          ops::compare({device.output_types()[i], results[i]}, expected[i], test->tolerance, scale, test->absolute),
          "");
      accuracy().add(*test, {device.output_types()[i], results[i]}, expected[i], scale);
    }
    EXPECT_TRUE(device.guards_intact());
    for (std::size_t i = 0; i < inputs.size(); ++i) EXPECT_EQ(device.inputs()[i].read(), inputs[i].bytes);

    ASSERT_NO_FATAL_FAILURE(run_as_graph(device, variant.name, stream.get()));
    if (!test->any_order) {
      EXPECT_EQ(device.results(), results) << "a second run, replayed from a graph, gave other bits";
    }
    EXPECT_TRUE(device.guards_intact());
  }
  EXPECT_GT(fitting, 0) << "no variant takes this case";
}

INSTANTIATE_TEST_SUITE_P(Cases, OperatorOnGpu, ::testing::ValuesIn(cases_to_run(false)), parameter_name);

class ContextsOnGpu : public ::testing::TestWithParam<Parameter> {};

/// Runs as many execution contexts as a busy server has: each is a clone of the operator with its own memory, on 4
/// streams.
TEST_P(ContextsOnGpu, GiveTheBitsOfOne) {
  if (under_sanitizer()) GTEST_SKIP() << "what lies beyond a size that depends on data is not poisoned there";
  SCOPED_TRACE(reproduce());
  constexpr std::size_t contexts = 64;
  constexpr std::size_t stream_count = 4;
  const auto& [type, test] = GetParam();
  const std::vector<ops::HostTensor> inputs = ops::make_inputs(*test);
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < stream_count; ++i) streams.push_back(make_stream());
  std::vector<std::shared_ptr<const Operator>> clones;
  std::vector<std::unique_ptr<DeviceProblem>> problems;
  for (std::size_t i = 0; i < contexts; ++i) {
    ops::OperatorCase own = *test;
    own.op = clones.emplace_back(test->op->clone());
    problems.push_back(std::make_unique<DeviceProblem>(own, test->inputs));
    for (std::size_t input = 0; input < inputs.size(); ++input) {
      problems.back()->inputs()[input].write(inputs[input].bytes);
    }
  }
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const Status alone = problems[0]->run("", streams[0].get());
  ASSERT_TRUE(alone.ok()) << alone.message();
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const auto expected = problems[0]->results();
  for (const auto& problem : problems) problem->spoil();
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (std::size_t i = 0; i < contexts; ++i) {
      const Status status = problems[i]->run("", streams[i % stream_count].get());
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  for (const auto& problem : problems) EXPECT_EQ(problem->results(), expected);
}

/// Returns a case of medium size for each set of attributes, type and layout.
std::vector<Parameter> cases_for_contexts() {
  constexpr std::int64_t least = 20'000;
  constexpr std::int64_t most = 4'000'000;
  std::vector<Parameter> parameters;
  std::set<std::tuple<const Operator*, DType, Layout>> taken;
  for (const Parameter& parameter : cases_to_run(false)) {
    const TensorDesc& x = parameter.test->inputs[0];
    if (x.storage_count() < least || x.storage_count() > most || parameter.test->any_order) continue;
    if (taken.emplace(parameter.test->op.get(), x.dtype, x.layout).second) parameters.push_back(parameter);
  }
  return parameters;
}
INSTANTIATE_TEST_SUITE_P(Cases, ContextsOnGpu, ::testing::ValuesIn(cases_for_contexts()), parameter_name);

class LargeOnGpu : public ::testing::TestWithParam<Parameter> {};

/// All items of the batch are equal, so the reference computes only one of them and all results must be equal.
TEST_P(LargeOnGpu, EveryItemOfTheBatchIsTheSame) {
  if (std::getenv("GRAFT_LARGE") == nullptr) GTEST_SKIP() << "set GRAFT_LARGE=1 for tensors beyond 2^31 elements";
  SCOPED_TRACE(reproduce());
  const auto& [type, test] = GetParam();
  const std::vector<ops::HostTensor> item = ops::make_inputs(*test, 1);
  const auto expected = expected_outputs(*test->op, item);
  const DeviceProblem device(*test, test->inputs);
  const std::size_t item_bytes = item[0].bytes.size();
  auto* input = static_cast<std::byte*>(device.inputs()[0].data());
  check_cuda(cudaMemcpy(input, item[0].bytes.data(), item_bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  const std::size_t total = device.inputs()[0].size();
  for (std::size_t filled = item_bytes; filled < total; filled *= 2) {
    check_cuda(cudaMemcpy(input + filled, input, std::min(filled, total - filled), cudaMemcpyDeviceToDevice),
               "cudaMemcpy");
  }
  for (std::size_t i = 1; i < item.size(); ++i) device.inputs()[i].write(item[i].bytes);
  const Stream stream = make_stream();
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  for (const VariantInfo& variant : test->op->cuda_variants(device.problem())) {
    if (!variant.fits.ok() || !runs_on_current_device(variant.compute).ok()) continue;
    SCOPED_TRACE("variant " + std::string(variant.name));
    device.spoil();
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const Status status = device.run(variant.name, stream.get());
    ASSERT_TRUE(status.ok()) << status.message();
    check_cuda(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
    const std::vector<std::byte> result = device.outputs()[0].read();
    TensorDesc desc = device.output_types()[0];
    desc.extents[0] = 1;
    const auto bytes = static_cast<std::size_t>(desc.storage_bytes());
    const ops::HostTensor first{desc, {result.begin(), result.begin() + static_cast<std::ptrdiff_t>(bytes)}};
    EXPECT_EQ(ops::compare(first, expected[0], test->tolerance,
                           ops::scale_of(*test->op, type->ports[type->input_count()].name), test->absolute),
              "");
    std::size_t different = 0;
    for (std::size_t at = bytes; at < result.size(); at += bytes) {
      different += std::memcmp(result.data() + at, result.data(), bytes) != 0 ? 1 : 0;
    }
    EXPECT_EQ(different, 0U) << "items of the batch differ from the first one";
    EXPECT_TRUE(device.guards_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LargeOnGpu, ::testing::ValuesIn(cases_to_run(true)), parameter_name);

}  // namespace
}  // namespace graft
