// Plugins for the engine driver's tests: an identity that reports its fields, and faulty plugins.
#include <NvInferRuntime.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using namespace nvinfer1;

enum class Behavior {
  kWell,
  kAbortInBuild,
  kSegfaultInBuild,
  kRefuseFormats,
  kHangInBuild,
  kAbortInPairs,
  kStrict,
  kForkAndAbort,
  kFussy,
  kLarge,
};

/// Aborts, and leaves a child process that keeps every pipe of this process open; its number is written to the file
/// FIXTURE_CHILD.
void fork_and_abort() {
  ::pid_t const child = ::fork();
  if (child == 0) {
    ::sleep(600);
    ::_exit(0);
  }
  if (char const* path = std::getenv("FIXTURE_CHILD")) {
    if (std::FILE* file = std::fopen(path, "w")) {
      std::fprintf(file, "%d", static_cast<int>(child));
      std::fclose(file);
    }
  }
  std::abort();
}

int live[3];  // number of live kAbortInPairs plugins by axis (1 or 2)

class FixturePlugin final : public IPluginV3,
                            public IPluginV3OneCore,
                            public IPluginV3OneBuild,
                            public IPluginV3OneRuntime {
 public:
  FixturePlugin(char const* name, Behavior behavior, float gain, std::vector<std::int64_t> axes)
      : name_(name), behavior_(behavior), gain_(gain), axes_(std::move(axes)) {
    count(1);
  }
  FixturePlugin(FixturePlugin const& other)
      : IPluginV3(),
        IPluginV3OneCore(),
        IPluginV3OneBuild(),
        IPluginV3OneRuntime(),
        name_(other.name_),
        behavior_(other.behavior_),
        gain_(other.gain_),
        axes_(other.axes_) {
    count(1);
  }
  ~FixturePlugin() override { count(-1); }

  IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept override {
    switch (type) {
      case PluginCapabilityType::kCORE: return static_cast<IPluginV3OneCore*>(this);
      case PluginCapabilityType::kBUILD: return static_cast<IPluginV3OneBuild*>(this);
      case PluginCapabilityType::kRUNTIME: return static_cast<IPluginV3OneRuntime*>(this);
    }
    return nullptr;
  }
  IPluginV3* clone() noexcept override { return new FixturePlugin(*this); }

  AsciiChar const* getPluginName() const noexcept override { return name_; }
  AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
  AsciiChar const* getPluginNamespace() const noexcept override { return "fixture"; }

  std::int32_t configurePlugin(DynamicPluginTensorDesc const*, std::int32_t, DynamicPluginTensorDesc const*,
                               std::int32_t) noexcept override {
    return 0;
  }
  std::int32_t getOutputDataTypes(DataType* outputs, std::int32_t, DataType const* inputs,
                                  std::int32_t count) const noexcept override {
    if (behavior_ == Behavior::kStrict && count != 1) return -1;
    outputs[0] = inputs[0];
    return 0;
  }
  std::int32_t getOutputShapes(DimsExprs const* inputs, std::int32_t, DimsExprs const*, std::int32_t,
                               DimsExprs* outputs, std::int32_t, IExprBuilder&) noexcept override {
    outputs[0] = inputs[0];
    return 0;
  }
  bool supportsFormatCombination(std::int32_t pos, DynamicPluginTensorDesc const* descs, std::int32_t,
                                 std::int32_t) noexcept override {
    if (behavior_ == Behavior::kAbortInBuild) std::abort();
    if (behavior_ == Behavior::kSegfaultInBuild) *reinterpret_cast<int volatile*>(std::uintptr_t{8}) = 1;
    if (behavior_ == Behavior::kRefuseFormats) return false;
    if (behavior_ == Behavior::kHangInBuild) ::pause();
    if (behavior_ == Behavior::kForkAndAbort) fork_and_abort();
    if (behavior_ == Behavior::kLarge && descs[0].desc.dims.d[0] < 2) return false;
    if (behavior_ == Behavior::kAbortInPairs && live[1] != 0 && live[2] != 0) std::abort();
    return descs[pos].desc.format == TensorFormat::kLINEAR && descs[pos].desc.type == descs[0].desc.type;
  }
  std::int32_t getNbOutputs() const noexcept override { return 1; }

  std::int32_t onShapeChange(PluginTensorDesc const*, std::int32_t, PluginTensorDesc const*,
                             std::int32_t) noexcept override {
    return 0;
  }
  std::int32_t enqueue(PluginTensorDesc const*, PluginTensorDesc const*, void const* const*, void* const*, void*,
                       cudaStream_t) noexcept override {
    return 1;
  }
  IPluginV3* attachToContext(IPluginResourceContext*) noexcept override { return clone(); }
  PluginFieldCollection const* getFieldsToSerialize() noexcept override {
    fields_ = {PluginField{"gain", &gain_, PluginFieldType::kFLOAT32, 1},
               PluginField{"axes", axes_.data(), PluginFieldType::kINT64, static_cast<std::int32_t>(axes_.size())}};
    collection_ = {static_cast<std::int32_t>(fields_.size()), fields_.data()};
    return &collection_;
  }

 private:
  void count(int change) const {
    if (behavior_ == Behavior::kAbortInPairs && (axes_[0] == 1 || axes_[0] == 2)) live[axes_[0]] += change;
  }

  char const* name_;
  Behavior behavior_;
  float gain_;
  std::vector<std::int64_t> axes_;
  std::vector<PluginField> fields_;
  PluginFieldCollection collection_{};
};

class FixtureCreator final : public IPluginCreatorV3One {
 public:
  FixtureCreator(char const* name, Behavior behavior) : name_(name), behavior_(behavior) {}
  IPluginV3* createPlugin(AsciiChar const*, PluginFieldCollection const* given, TensorRTPhase) noexcept override {
    float gain = 1.0F;
    bool has_gain = false;
    std::vector<std::int64_t> axes{1};
    for (std::int32_t i = 0; i < given->nbFields; ++i) {
      PluginField const& field = given->fields[i];
      if (std::strcmp(field.name, "gain") == 0) {
        has_gain = field.type == PluginFieldType::kFLOAT32;
        gain = *static_cast<float const*>(field.data);
      }
      if (std::strcmp(field.name, "axes") == 0) {
        // The parser of TensorRT-RTX 1.7 passes integers as INT32, whatever type the creator declares.
        if (field.type == PluginFieldType::kINT32) {
          auto const* first = static_cast<std::int32_t const*>(field.data);
          axes.assign(first, first + field.length);
        } else {
          auto const* first = static_cast<std::int64_t const*>(field.data);
          axes.assign(first, first + field.length);
        }
      }
    }
    if (behavior_ == Behavior::kStrict && !has_gain) return nullptr;
    if (behavior_ == Behavior::kFussy && !(gain >= 1.0F)) {
      std::fprintf(stderr, "FixtureFussy: gain is %g; allowed is 1 and more\n", gain);
      return nullptr;
    }
    return new FixturePlugin(name_, behavior_, gain, axes);
  }
  PluginFieldCollection const* getFieldNames() noexcept override { return &collection_; }
  AsciiChar const* getPluginName() const noexcept override { return name_; }
  AsciiChar const* getPluginVersion() const noexcept override { return "1"; }
  AsciiChar const* getPluginNamespace() const noexcept override { return "fixture"; }

 private:
  char const* name_;
  Behavior behavior_;
  PluginField fields_[2] = {PluginField{"gain", nullptr, PluginFieldType::kFLOAT32, 1},
                            PluginField{"axes", nullptr, PluginFieldType::kINT64, 1}};
  PluginFieldCollection collection_{2, fields_};
};

}  // namespace

extern "C" void setLoggerFinder(ILoggerFinder*) {}

extern "C" IPluginCreatorInterface* const* getCreators(std::int32_t& count) {
  static FixtureCreator well{"FixtureIdentity", Behavior::kWell};
  static FixtureCreator aborts{"FixtureAbort", Behavior::kAbortInBuild};
  static FixtureCreator segfaults{"FixtureSegfault", Behavior::kSegfaultInBuild};
  static FixtureCreator refuses{"FixtureRefuse", Behavior::kRefuseFormats};
  static FixtureCreator hangs{"FixtureHang", Behavior::kHangInBuild};
  static FixtureCreator pairs{"FixturePair", Behavior::kAbortInPairs};
  static FixtureCreator strict{"FixtureStrict", Behavior::kStrict};
  static FixtureCreator forks{"FixtureFork", Behavior::kForkAndAbort};
  static FixtureCreator fussy{"FixtureFussy", Behavior::kFussy};
  static FixtureCreator large{"FixtureLarge", Behavior::kLarge};
  static IPluginCreatorInterface* const creators[] = {&well,  &aborts, &segfaults, &refuses, &hangs,
                                                      &pairs, &strict, &forks,     &fussy,   &large};
  count = 10;
  return creators;
}
