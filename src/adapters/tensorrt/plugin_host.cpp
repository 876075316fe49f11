// Runs TensorRT plugins without TensorRT, by the sequence of calls that TensorRT documents.
#include "adapters/tensorrt/plugin_host.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "adapters/tensorrt/convert.hpp"
#include "graft/error.hpp"

namespace graft::tensorrt {
namespace {

using PluginPointer = std::unique_ptr<nvinfer1::IPluginV3>;
using SetLoggerFinder = void (*)(nvinfer1::ILoggerFinder*);

[[noreturn]] void fail(const std::string& call, const std::string& what) {
  throw Error(Error::Kind::answer_is_no, call + ": " + what);
}

void require(bool condition, const std::string& call, const std::string& what) {
  if (!condition) fail(call, what);
}

template <class Capability>
Capability& capability(nvinfer1::IPluginV3& plugin, nvinfer1::PluginCapabilityType type, const char* name) {
  auto* interface = plugin.getCapabilityInterface(type);
  require(interface != nullptr, "getCapabilityInterface",
          std::string("the plugin does not have the capability ") + name);
  return *static_cast<Capability*>(interface);
}

nvinfer1::IPluginV3OneBuild& build_capability(nvinfer1::IPluginV3& plugin) {
  return capability<nvinfer1::IPluginV3OneBuild>(plugin, nvinfer1::PluginCapabilityType::kBUILD, "BUILD");
}
nvinfer1::IPluginV3OneRuntime& runtime_capability(nvinfer1::IPluginV3& plugin) {
  return capability<nvinfer1::IPluginV3OneRuntime>(plugin, nvinfer1::PluginCapabilityType::kRUNTIME, "RUNTIME");
}

PluginPointer create(nvinfer1::IPluginCreatorV3One& creator, const std::vector<nvinfer1::PluginField>& fields,
                     nvinfer1::TensorRTPhase phase) {
  const nvinfer1::PluginFieldCollection collection{static_cast<std::int32_t>(fields.size()), fields.data()};
  PluginPointer plugin(creator.createPlugin("plugin_host", &collection, phase));
  require(plugin != nullptr, "createPlugin", "returned null; the reason is in the log");
  return plugin;
}

PluginPointer create_to_build(nvinfer1::IPluginCreatorV3One& creator, const PluginFields& values) {
  std::vector<nvinfer1::PluginField> fields;
  for (const auto& [name, value] : values) fields.push_back(to_field(name.c_str(), value));
  return create(creator, fields, nvinfer1::TensorRTPhase::kBUILD);
}

PluginPointer create_to_run(nvinfer1::IPluginCreatorV3One& creator, const std::vector<SerializedField>& serialized) {
  std::vector<nvinfer1::PluginField> fields;
  for (const SerializedField& field : serialized) {
    fields.emplace_back(field.name.c_str(), field.bytes.data(), field.type, field.length);
  }
  return create(creator, fields, nvinfer1::TensorRTPhase::kRUNTIME);
}

std::size_t bytes_of(nvinfer1::PluginFieldType type) {
  switch (type) {
    case nvinfer1::PluginFieldType::kFLOAT64:
    case nvinfer1::PluginFieldType::kINT64: return 8;
    case nvinfer1::PluginFieldType::kFLOAT32:
    case nvinfer1::PluginFieldType::kINT32: return 4;
    case nvinfer1::PluginFieldType::kFLOAT16:
    case nvinfer1::PluginFieldType::kBF16:
    case nvinfer1::PluginFieldType::kINT16: return 2;
    case nvinfer1::PluginFieldType::kDIMS: return sizeof(nvinfer1::Dims);
    default: return 1;  // Characters, bytes, and kUNKNOWN, whose length TensorRT counts in bytes.
  }
}

std::vector<SerializedField> serialize(nvinfer1::IPluginV3& plugin) {
  const auto* collection = runtime_capability(plugin).getFieldsToSerialize();
  require(collection != nullptr, "getFieldsToSerialize", "returned null");
  std::vector<SerializedField> fields;
  for (std::int32_t i = 0; i < collection->nbFields; ++i) {
    const nvinfer1::PluginField& field = collection->fields[i];
    require(field.name != nullptr && field.length >= 0 && (field.length == 0 || field.data != nullptr),
            "getFieldsToSerialize", "field " + std::to_string(i) + " has no name or no data");
    const auto* data = static_cast<const std::byte*>(field.data);
    const std::size_t size = static_cast<std::size_t>(field.length) * bytes_of(field.type);
    fields.push_back({field.name, field.type, field.length, {data, data + size}});
  }
  return fields;
}

/// The context that attachToContext receives. It provides neither memory nor an error recorder.
class EmptyContext final : public nvinfer1::IPluginResourceContext {
 public:
  EmptyContext() = default;
  ~EmptyContext() noexcept override = default;
  [[nodiscard]] nvinfer1::IGpuAllocator* getGpuAllocator() const noexcept override { return nullptr; }
  [[nodiscard]] nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override { return nullptr; }
};

/// Dimension expressions that behave like the expressions of TensorRT's builder, implemented with Graft's Dim.
class Expressions final : public nvinfer1::IExprBuilder, private nvinfer1::apiv::VExprBuilder {
 public:
  Expressions() { mImpl = this; }
  ~Expressions() noexcept override = default;

  /// States whether the size of an input is a size tensor of another layer.
  enum class Input { other, size_tensor };

  const nvinfer1::IDimensionExpr* make(Dim dim, Input input = Input::other, bool has_size_tensor = false) {
    return &owned_.emplace_back(std::move(dim), input, has_size_tensor || input == Input::size_tensor);
  }
  /// Returns why an expression was refused, or an empty string if no expression was.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  static const Dim& read(const nvinfer1::IDimensionExpr& expression) {
    return static_cast<const Expression&>(expression).dim;
  }

 private:
  struct Expression final : nvinfer1::IDimensionExpr, nvinfer1::apiv::VDimensionExpr {
    Expression(Dim value, Input from, bool depends)
        : dim(std::move(value)), input(from), depends_on_size_tensor(depends || dim.kind() == Dim::Kind::data_size) {
      mImpl = this;
    }
    ~Expression() noexcept override = default;
    [[nodiscard]] bool isConstant() const override { return dim.is_constant(); }
    [[nodiscard]] std::int64_t getConstantValue() const override { return dim.is_constant() ? dim.value() : 0; }
    [[nodiscard]] bool isSizeTensor() const override {
      return dim.kind() == Dim::Kind::data_size || input == Input::size_tensor;
    }
    Dim dim;
    Input input;
    bool depends_on_size_tensor;
  };

  const nvinfer1::IDimensionExpr* constant(std::int64_t value) override { return make(Dim(value)); }
  const nvinfer1::IDimensionExpr* operation(nvinfer1::DimensionOperation op, const nvinfer1::IDimensionExpr& first,
                                            const nvinfer1::IDimensionExpr& second) override {
    const bool depends = depends_on_size_tensor(first) || depends_on_size_tensor(second);
    return guarded([&] { return Dim::make(kind(op), read(first), read(second)); }, depends);
  }
  const nvinfer1::IDimensionExpr* declareSizeTensor(std::int32_t output, const nvinfer1::IDimensionExpr& opt,
                                                    const nvinfer1::IDimensionExpr& upper) override {
    return guarded([&] {
      if (depends_on_size_tensor(opt)) {
        throw Error(Error::Kind::answer_is_no,
                    "the optimum of size output " + std::to_string(output) + " depends on a size tensor; it must not");
      }
      return data_size(static_cast<std::size_t>(output), read(opt), read(upper));
    });
  }
  static bool depends_on_size_tensor(const nvinfer1::IDimensionExpr& expression) {
    return static_cast<const Expression&>(expression).depends_on_size_tensor;
  }
  /// Returns the expression of the dimension that `make_dim` returns. `has_size_tensor` states whether the dimension is
  /// computed from a size tensor. TensorRT's interface must not throw, so the message of an exception is stored in
  /// refusal_, and the constant 0 is returned.
  template <class Make>
  const nvinfer1::IDimensionExpr* guarded(const Make& make_dim, bool has_size_tensor = false) {
    try {
      return make(make_dim(), Input::other, has_size_tensor);
    } catch (const std::exception& error) {
      refusal_ = error.what();
      return make(Dim(0));
    }
  }
  static Dim::Kind kind(nvinfer1::DimensionOperation op) {
    switch (op) {
      case nvinfer1::DimensionOperation::kSUM: return Dim::Kind::add;
      case nvinfer1::DimensionOperation::kPROD: return Dim::Kind::multiply;
      case nvinfer1::DimensionOperation::kMAX: return Dim::Kind::maximum;
      case nvinfer1::DimensionOperation::kMIN: return Dim::Kind::minimum;
      case nvinfer1::DimensionOperation::kSUB: return Dim::Kind::subtract;
      case nvinfer1::DimensionOperation::kEQUAL: return Dim::Kind::equal;
      case nvinfer1::DimensionOperation::kLESS: return Dim::Kind::less;
      case nvinfer1::DimensionOperation::kFLOOR_DIV: return Dim::Kind::floor_divide;
      case nvinfer1::DimensionOperation::kCEIL_DIV: return Dim::Kind::ceil_divide;
    }
    return Dim::Kind::add;
  }

  std::deque<Expression> owned_;  // The addresses stay valid, because a deque does not move its elements when it grows.
  std::string refusal_;
};

/// The expressions that the host passes to getOutputShapes for the sizes of the inputs. In the resulting shapes,
/// symbols and size tensors are replaced with the actual sizes.
enum class InputSizes {
  known,
  symbolic,
  of_data,  ///< Each size is the size tensor of another layer.
};

/// Calls getOutputShapes and returns the shapes, in which symbols and size tensors are replaced with the actual sizes.
/// A size that depends on data is returned with its bounds.
std::vector<Shape> output_shapes(nvinfer1::IPluginV3OneBuild& build, std::span<const TensorDesc> inputs,
                                 std::span<const Extents> shape_values, std::size_t output_count, InputSizes kind) {
  const auto expression_kind =
      kind == InputSizes::of_data ? Expressions::Input::size_tensor : Expressions::Input::other;
  const auto name_of = [](std::size_t input, int axis) { return std::to_string(input) + "." + std::to_string(axis); };
  Expressions expressions;
  std::vector<nvinfer1::DimsExprs> in(inputs.size() + shape_values.size());  // The values of shape inputs come last.
  std::map<std::string, std::int64_t> sizes;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Extents& known = i < inputs.size() ? inputs[i].extents : shape_values[i - inputs.size()];
    in[i].nbDims = known.rank();
    for (int axis = 0; axis < in[i].nbDims; ++axis) {
      sizes[name_of(i, axis)] = known[axis];
      in[i].d[axis] = expressions.make(kind == InputSizes::known ? Dim(known[axis]) : Dim::symbol(name_of(i, axis)),
                                       expression_kind);
    }
  }
  std::vector<nvinfer1::DimsExprs> out(output_count);
  const auto code = build.getOutputShapes(in.data(), static_cast<std::int32_t>(inputs.size()),
                                          in.data() + inputs.size(), static_cast<std::int32_t>(shape_values.size()),
                                          out.data(), static_cast<std::int32_t>(out.size()), expressions);
  require(expressions.refusal().empty(), "getOutputShapes", expressions.refusal());
  require(code == 0, "getOutputShapes", "returned " + std::to_string(code));
  const auto number = [&](const Dim& dim) -> std::int64_t {
    const auto size =
        dim.evaluate([&](const std::string& name) { return std::optional<std::int64_t>(sizes.at(name)); });
    require(size && *size >= 0, "getOutputShapes", "a dimension of an output has no size");
    return *size;
  };
  std::vector<Shape> result;
  for (const nvinfer1::DimsExprs& dims : out) {
    Shape& shape = result.emplace_back();
    require(dims.nbDims >= 0 && dims.nbDims <= Extents::max_rank, "getOutputShapes",
            "the rank of an output is not between 0 and 8");
    for (std::int32_t axis = 0; axis < dims.nbDims; ++axis) {
      const Dim& dim = Expressions::read(*dims.d[axis]);
      if (dim.kind() != Dim::Kind::data_size) {
        shape.emplace_back(number(dim));
        continue;
      }
      require(dim.size_output() < output_count && out[dim.size_output()].nbDims == 0, "declareSizeTensor",
              "output " + std::to_string(dim.size_output()) + " must exist and have rank 0");
      shape.push_back(data_size(dim.size_output(), number(dim.left()), number(dim.right())));
    }
  }
  return result;
}

std::vector<Extents> largest_extents(const std::vector<Shape>& shapes) {
  std::vector<Extents> result;
  for (const Shape& shape : shapes) {
    Extents& extents = result.emplace_back();
    for (const Dim& dim : shape) extents.push_back(dim.largest().value_or(0));
  }
  return result;
}

nvinfer1::PluginTensorDesc to_plugin_desc(const TensorDesc& desc) {
  nvinfer1::PluginTensorDesc result{};
  result.dims.nbDims = desc.extents.rank();
  for (int axis = 0; axis < desc.extents.rank(); ++axis) result.dims.d[axis] = desc.extents[axis];
  result.type = to_tensorrt(desc.dtype);
  result.format = to_tensorrt(desc.layout);
  result.scale = 1;  // The scale in a strongly typed network of TensorRT-RTX.
  return result;
}

nvinfer1::DynamicPluginTensorDesc to_dynamic_desc(const TensorDesc& desc) {
  const nvinfer1::PluginTensorDesc fixed = to_plugin_desc(desc);
  return {fixed, fixed.dims, fixed.dims, fixed.dims};
}

/// Sets the extents of `desc` that depend on data to -1, as TensorRT does.
void hide_data_sizes(const Shape& shape, nvinfer1::PluginTensorDesc& desc) {
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis].kind() == Dim::Kind::data_size) desc.dims.d[axis] = -1;
  }
}

/// Returns the description that TensorRT passes while an engine is built: sizes that depend on data are ranges from 0,
/// as observed in TensorRT-RTX 1.7.
nvinfer1::DynamicPluginTensorDesc to_dynamic_desc(const TensorDesc& desc, const Shape& shape) {
  nvinfer1::DynamicPluginTensorDesc result = to_dynamic_desc(desc);
  hide_data_sizes(shape, result.desc);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis].kind() != Dim::Kind::data_size) continue;
    result.min.d[axis] = 0;
    result.opt.d[axis] = shape[axis].left().value();
  }
  return result;
}

/// Calls supportsFormatCombination for each position in `in_out`, the descriptions of all inputs and then of all
/// outputs, in two rounds. Throws Error if the plugin refuses a position in either round.
void check_formats(nvinfer1::IPluginV3OneBuild& build, std::span<const nvinfer1::DynamicPluginTensorDesc> in_out,
                   std::size_t input_count) {
  const auto inputs = static_cast<std::int32_t>(input_count);
  const auto outputs = static_cast<std::int32_t>(in_out.size() - input_count);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t position = 0; position < in_out.size(); ++position) {
      require(build.supportsFormatCombination(static_cast<std::int32_t>(position), in_out.data(), inputs, outputs),
              "supportsFormatCombination",
              "refused the type and format of the tensor at position " + std::to_string(position));
    }
  }
}

/// Returns the input whose memory each output uses, or -1 for an output with memory of its own. Checks that no two
/// outputs use the same input, and that input and output have the same description. Only version 2 of the interface has
/// this call.
std::vector<std::int32_t> aliased_inputs(nvinfer1::IPluginV3OneBuild& build, std::span<const TensorDesc> inputs,
                                         std::span<const TensorDesc> outputs) {
  std::vector<std::int32_t> aliased(outputs.size(), -1);
  if (build.getInterfaceInfo().major < 2) return aliased;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::int32_t input =
        static_cast<nvinfer1::IPluginV3OneBuildV2&>(build).getAliasedInput(static_cast<std::int32_t>(i));
    if (input == -1) continue;
    require(input >= 0 && static_cast<std::size_t>(input) < inputs.size(), "getAliasedInput",
            "returned " + std::to_string(input) + "; it must return -1 to " + std::to_string(inputs.size() - 1));
    require(std::find(aliased.begin(), aliased.end(), input) == aliased.end(), "getAliasedInput",
            "returned input " + std::to_string(input) + " for two outputs");
    require(inputs[static_cast<std::size_t>(input)] == outputs[i], "getAliasedInput",
            "output " + std::to_string(i) + " must have the type, format and shape of input " + std::to_string(input) +
                ", whose memory it uses");
    aliased[i] = input;
  }
  return aliased;
}

/// Returns the tactic numbers, sorted. Throws Error if two are equal or one is not positive, because TensorRT stores
/// the number of the fastest tactic.
std::vector<std::int32_t> tactics_of(nvinfer1::IPluginV3OneBuild& build) {
  std::vector<std::int32_t> tactics(static_cast<std::size_t>(std::max(0, build.getNbTactics())));
  const auto code = build.getValidTactics(tactics.data(), static_cast<std::int32_t>(tactics.size()));
  require(code == 0, "getValidTactics", "returned " + std::to_string(code));
  std::sort(tactics.begin(), tactics.end());
  require(std::adjacent_find(tactics.begin(), tactics.end()) == tactics.end(), "getValidTactics",
          "returned a tactic twice");
  require(tactics.empty() || tactics.front() > 0, "getValidTactics", "returned a tactic that is not positive");
  return tactics;
}

void check_cuda(cudaError_t error, const char* call) {
  if (error != cudaSuccess) fail(call, cudaGetErrorString(error));
}

/// Device memory of one tensor between two guard regions.
class GuardedBuffer {
 public:
  static constexpr std::size_t guard = 256;
  static constexpr int guard_byte = 0xA5;
  // The poison is NaN in f16 and f8e4m3fn, 3.4e38 in f32 and bf16, and 127 in i8.
  static constexpr int poison_byte = 0x7F;

  GuardedBuffer(std::size_t bytes, std::size_t misalign) : bytes_(bytes), offset_(guard + misalign) {
    check_cuda(cudaMalloc(&memory_, total()), "cudaMalloc");
    check_cuda(cudaMemset(memory_, guard_byte, total()), "cudaMemset");
  }
  ~GuardedBuffer() { static_cast<void>(cudaFree(memory_)); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  [[nodiscard]] void* data() const { return static_cast<std::byte*>(memory_) + offset_; }
  void write(std::span<const std::byte> bytes) {
    check_cuda(cudaMemcpy(data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  void poison() { check_cuda(cudaMemset(data(), poison_byte, bytes_), "cudaMemset"); }
  /// Returns the tensor's bytes. Throws if a guard region has changed.
  [[nodiscard]] std::vector<std::byte> read(const std::string& name) const {
    std::vector<std::byte> all(total());
    check_cuda(cudaMemcpy(all.data(), memory_, all.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    const auto intact = [](std::span<const std::byte> bytes) {
      return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{guard_byte}; });
    };
    const std::span<const std::byte> span(all);
    require(intact(span.first(offset_)), "enqueue", "wrote before " + name);
    require(intact(span.subspan(offset_ + bytes_)), "enqueue", "wrote past the end of " + name);
    return {all.begin() + static_cast<std::ptrdiff_t>(offset_),
            all.begin() + static_cast<std::ptrdiff_t>(offset_ + bytes_)};
  }

 private:
  [[nodiscard]] std::size_t total() const { return offset_ + bytes_ + guard; }
  std::size_t bytes_;
  std::size_t offset_;
  void* memory_ = nullptr;
};

class Stream {
 public:
  Stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  ~Stream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void wait() const { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Truncates results to the sizes that depend on data, because memory after them is unspecified. Throws if a size
/// output is out of range.
void keep_what_has_a_size(const BuiltPlugin& built, std::vector<std::vector<std::byte>>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    TensorDesc desc = built.outputs[i];
    for (std::size_t axis = 0; axis < built.shapes[i].size(); ++axis) {
      const Dim& dim = built.shapes[i][axis];
      if (dim.kind() != Dim::Kind::data_size) continue;
      const std::vector<std::byte>& bytes = results[dim.size_output()];
      std::int64_t size = 0;
      if (bytes.size() == sizeof(std::int32_t)) {
        std::int32_t narrow = 0;
        std::memcpy(&narrow, bytes.data(), sizeof(narrow));
        size = narrow;
      } else {
        std::memcpy(&size, bytes.data(), sizeof(size));
      }
      require(size >= 0 && size <= dim.right().value(), "enqueue",
              "size output " + std::to_string(dim.size_output()) + " is " + std::to_string(size) +
                  "; it must be between 0 and " + std::to_string(dim.right().value()));
      desc.extents[static_cast<int>(axis)] = size;
    }
    results[i].resize(static_cast<std::size_t>(desc.storage_bytes()));
  }
}

void capture_and_replay(const Stream& stream, const std::function<void()>& work) {
  check_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  cudaGraph_t captured = nullptr;
  try {
    work();
  } catch (...) {  // The stream must not stay in capture mode.
    static_cast<void>(cudaStreamEndCapture(stream.get(), &captured));
    if (captured != nullptr) static_cast<void>(cudaGraphDestroy(captured));
    throw;
  }
  check_cuda(cudaStreamEndCapture(stream.get(), &captured), "enqueue cannot be captured in a CUDA graph");
  const std::unique_ptr<CUgraph_st, cudaError_t (*)(cudaGraph_t)> graph(captured, cudaGraphDestroy);
  cudaGraphExec_t instance = nullptr;
  check_cuda(cudaGraphInstantiate(&instance, graph.get(), 0), "cudaGraphInstantiate");
  const std::unique_ptr<CUgraphExec_st, cudaError_t (*)(cudaGraphExec_t)> executable(instance, cudaGraphExecDestroy);
  check_cuda(cudaGraphLaunch(executable.get(), stream.get()), "cudaGraphLaunch");
  stream.wait();
}

}  // namespace

class PluginLibrary::Logger final : public nvinfer1::ILogger, public nvinfer1::ILoggerFinder {
 public:
  ~Logger() override = default;
  void log(Severity severity, const char* message) noexcept override {
    if (severity > Severity::kWARNING) return;
    try {
      const std::lock_guard lock(mutex_);
      lines_.emplace_back(message);
    } catch (...) {  // Losing a log line is better than ending the process.
      return;
    }
  }
  nvinfer1::ILogger* findLogger() override { return this; }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

PluginLibrary::PluginLibrary(const std::filesystem::path& path) : logger_(std::make_unique<Logger>()) {
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) throw Error(path.string() + ": " + dlerror());
  using GetCreators = nvinfer1::IPluginCreatorInterface* const* (*)(std::int32_t&);
  const auto set_logger_finder = reinterpret_cast<SetLoggerFinder>(dlsym(handle_, "setLoggerFinder"));
  const auto get_creators = reinterpret_cast<GetCreators>(dlsym(handle_, "getCreators"));
  if (set_logger_finder == nullptr || get_creators == nullptr) {
    dlclose(handle_);
    throw Error(path.string() + ": a plugin library must export getCreators and setLoggerFinder; this library lacks " +
                (get_creators == nullptr ? "getCreators" : "setLoggerFinder"));
  }
  set_logger_finder(logger_.get());
  std::int32_t count = 0;
  nvinfer1::IPluginCreatorInterface* const* list = get_creators(count);
  for (std::int32_t i = 0; i < count; ++i) {
    if (std::strcmp(list[i]->getInterfaceInfo().kind, "PLUGIN CREATOR_V3ONE") == 0) {
      creators_.push_back(static_cast<nvinfer1::IPluginCreatorV3One*>(list[i]));
    }
  }
}

PluginLibrary::~PluginLibrary() {
  if (handle_ == nullptr) return;
  // The library may stay mapped if other code has loaded it too. It must not keep the address of this logger.
  const auto set_logger_finder = reinterpret_cast<SetLoggerFinder>(dlsym(handle_, "setLoggerFinder"));
  if (set_logger_finder != nullptr) set_logger_finder(nullptr);
  dlclose(handle_);
}

nvinfer1::IPluginCreatorV3One* PluginLibrary::find(const std::string& name, const std::string& version) const {
  for (auto* creator : creators_) {
    if (name == creator->getPluginName() && version == creator->getPluginVersion()) return creator;
  }
  return nullptr;
}

std::vector<std::string> PluginLibrary::take_log() { return logger_->take(); }

BuiltPlugin build_plugin(nvinfer1::IPluginCreatorV3One& creator, const PluginFields& fields,
                         std::span<const TensorDesc> inputs, std::span<const Layout> output_layouts,
                         nvinfer1::IPluginCreatorV3One* at_runtime, std::span<const Extents> shape_values) {
  const PluginPointer original = create_to_build(creator, fields);
  const PluginPointer plugin(original->clone());
  require(plugin != nullptr, "clone", "returned null");
  auto& build = build_capability(*plugin);
  const std::int32_t output_count = build.getNbOutputs();
  require(output_count > 0, "getNbOutputs", "returned " + std::to_string(output_count));

  std::vector<nvinfer1::DataType> input_types;
  for (const TensorDesc& desc : inputs) input_types.push_back(to_tensorrt(desc.dtype));
  std::vector<nvinfer1::DataType> output_types(static_cast<std::size_t>(output_count));
  const auto typed = build.getOutputDataTypes(output_types.data(), output_count, input_types.data(),
                                              static_cast<std::int32_t>(input_types.size()));
  require(typed == 0, "getOutputDataTypes", "returned " + std::to_string(typed));

  BuiltPlugin result;
  const auto shapes = [&](InputSizes kind) {
    return output_shapes(build, inputs, shape_values, output_types.size(), kind);
  };
  result.shapes = shapes(InputSizes::known);
  require(result.shapes == shapes(InputSizes::symbolic), "getOutputShapes",
          "returned different sizes for symbolic dimensions and for fixed dimensions");
  const std::vector<Extents> extents = largest_extents(result.shapes);
  require(extents == largest_extents(shapes(InputSizes::of_data)), "getOutputShapes",
          "returned different sizes for dimensions that depend on data and for fixed dimensions");
  for (const Shape& shape : result.shapes) {
    for (const Dim& dim : shape) {
      if (dim.kind() != Dim::Kind::data_size) continue;
      const nvinfer1::DataType type = output_types[dim.size_output()];
      require(type == nvinfer1::DataType::kINT32 || type == nvinfer1::DataType::kINT64, "declareSizeTensor",
              "output " + std::to_string(dim.size_output()) + " is a size output and must have type INT32 or INT64");
    }
  }
  for (std::size_t i = 0; i < output_types.size(); ++i) {
    const auto dtype = from_tensorrt(output_types[i]);
    require(dtype.has_value(), "getOutputDataTypes", "returned a type that Graft does not support");
    const Layout layout = i < output_layouts.size() ? output_layouts[i] : inputs[0].layout;
    result.outputs.push_back({*dtype, layout, extents[i]});
  }

  result.aliased = aliased_inputs(build, inputs, result.outputs);

  std::vector<nvinfer1::DynamicPluginTensorDesc> in_out;
  for (const TensorDesc& desc : inputs) in_out.push_back(to_dynamic_desc(desc));
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    in_out.push_back(to_dynamic_desc(result.outputs[i], result.shapes[i]));
  }
  check_formats(build, in_out, inputs.size());
  const auto* out = in_out.data() + inputs.size();
  const auto input_count = static_cast<std::int32_t>(inputs.size());
  const auto configured = build.configurePlugin(in_out.data(), input_count, out, output_count);
  require(configured == 0, "configurePlugin", "returned " + std::to_string(configured));
  result.tactics = tactics_of(build);
  result.workspace = build.getWorkspaceSize(in_out.data(), input_count, out, output_count);

  result.serialized = serialize(*plugin);
  const PluginPointer again = create_to_run(at_runtime == nullptr ? creator : *at_runtime, result.serialized);
  require(serialize(*again) == result.serialized, "getFieldsToSerialize",
          "a plugin that was created again from these fields serializes to different values");
  return result;
}

std::vector<std::vector<std::byte>> run_plugin(nvinfer1::IPluginCreatorV3One& creator, const BuiltPlugin& built,
                                               std::span<const TensorDesc> inputs,
                                               std::span<const std::vector<std::byte>> input_data,
                                               const RunOptions& options) {
  const PluginPointer loaded = create_to_run(creator, built.serialized);
  EmptyContext context;
  const PluginPointer plugin(runtime_capability(*loaded).attachToContext(&context));
  require(plugin != nullptr, "attachToContext", "returned null");
  auto& runtime = runtime_capability(*plugin);

  std::vector<nvinfer1::PluginTensorDesc> in;
  std::vector<nvinfer1::PluginTensorDesc> out;
  std::deque<GuardedBuffer> buffers;
  std::vector<const void*> in_addresses;
  std::vector<void*> out_addresses;
  std::vector<GuardedBuffer*> out_buffers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    in.push_back(to_plugin_desc(inputs[i]));
    require(input_data[i].size() == static_cast<std::size_t>(inputs[i].storage_bytes()), "run_plugin",
            "input " + std::to_string(i) +
                " does not have the number of bytes that follows from its type, format and shape");
    buffers.emplace_back(input_data[i].size(), options.misalign).write(input_data[i]);
    in_addresses.push_back(buffers.back().data());
  }
  for (const TensorDesc& desc : built.outputs) {
    out.push_back(to_plugin_desc(desc));
    hide_data_sizes(built.shapes[out.size() - 1], out.back());
    const std::int32_t input = built.aliased[out.size() - 1];
    out_buffers.push_back(
        input >= 0 ? &buffers[static_cast<std::size_t>(input)]
                   : &buffers.emplace_back(static_cast<std::size_t>(desc.storage_bytes()), options.misalign));
    out_addresses.push_back(out_buffers.back()->data());
  }
  GuardedBuffer workspace(built.workspace, 0);

  std::vector<nvinfer1::PluginTensorDesc> announced = in;
  std::vector<nvinfer1::PluginTensorDesc> announced_out = out;
  for (std::size_t i = 0; i < options.announced_inputs.size(); ++i) {
    announced[i] = to_plugin_desc(options.announced_inputs[i]);
  }
  for (std::size_t i = 0; i < options.announced_outputs.size(); ++i) {
    announced_out[i] = to_plugin_desc(options.announced_outputs[i]);
    hide_data_sizes(built.shapes[i], announced_out[i]);
  }
  const auto changed = runtime.onShapeChange(announced.data(), static_cast<std::int32_t>(announced.size()),
                                             announced_out.data(), static_cast<std::int32_t>(announced_out.size()));
  require(changed == 0, "onShapeChange", "returned " + std::to_string(changed));

  const Stream stream;
  const auto enqueue = [&] {
    const auto code = runtime.enqueue(in.data(), out.data(), in_addresses.data(), out_addresses.data(),
                                      workspace.data(), stream.get());
    require(code == 0, "enqueue", "returned " + std::to_string(code));
  };
  const auto run_once = [&](const std::function<void()>& work) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::int32_t input = built.aliased[i];
      input >= 0 ? out_buffers[i]->write(input_data[static_cast<std::size_t>(input)]) : out_buffers[i]->poison();
    }
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    work();
    stream.wait();
    std::vector<std::vector<std::byte>> results;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const auto aliased = std::find(built.aliased.begin(), built.aliased.end(), static_cast<std::int32_t>(i));
      if (aliased != built.aliased.end()) continue;
      require(buffers[i].read("input " + std::to_string(i)) == input_data[i], "enqueue",
              "changed input " + std::to_string(i));
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      results.push_back(out_buffers[i]->read("output " + std::to_string(i)));
    }
    static_cast<void>(workspace.read("the workspace"));
    keep_what_has_a_size(built, results);
    return results;
  };

  auto first = run_once(enqueue);
  require(run_once(enqueue) == first || options.any_order, "enqueue",
          "a second run with the same inputs returned different bits");
  if (options.capture) {
    const bool same = run_once([&] { capture_and_replay(stream, enqueue); }) == first;
    require(same || options.any_order, "enqueue", "the replay of the captured CUDA graph returned different bits");
  }
  // A builder times tactics in this way: it sets one tactic after another for the same shapes.
  for (const std::int32_t tactic : built.tactics) {
    require(runtime.setTactic(tactic) == 0, "setTactic", "refused the tactic " + std::to_string(tactic));
    static_cast<void>(run_once(enqueue));
  }
  return first;
}

}  // namespace graft::tensorrt
