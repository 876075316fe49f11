// The C functions of graft/graft_c.h, over the operator interface.
#include "graft/graft_c.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "c_api/empty_kernel.hpp"
#include "graft/registry.hpp"
#include "ops/operator_case.hpp"
#include "ops/random_cases.hpp"

struct graft_operator {  // NOLINT(readability-identifier-naming): a name of C
  std::shared_ptr<const graft::Operator> op;
};

namespace graft {
namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

void check(const Status& status) {
  if (!status.ok()) throw std::invalid_argument(status.message());
}

/// Whatever `f` throws becomes the last error, and `failed` the result.
template <class Result, class F>
Result guarded(Result failed, F&& f) noexcept {
  try {
    return f();
  } catch (const std::exception& error) {
    last_error() = error.what();
  } catch (...) {
    last_error() = "unknown exception";
  }
  return failed;
}

TensorDesc desc_of(const graft_tensor& tensor) {
  TensorDesc desc;
  if (tensor.dtype == nullptr || tensor.layout == nullptr)
    throw std::invalid_argument("a tensor without type or layout");
  const auto dtype = parse_dtype(tensor.dtype);
  if (!dtype) throw std::invalid_argument(std::string("there is no type ") + tensor.dtype);
  desc.dtype = *dtype;
  const auto layouts = {Layout::linear, Layout::hwc8, Layout::chw32};
  const auto layout =
      std::find_if(layouts.begin(), layouts.end(), [&](Layout l) { return to_string(l) == tensor.layout; });
  if (layout == layouts.end()) throw std::invalid_argument(std::string("there is no layout ") + tensor.layout);
  desc.layout = *layout;
  if (tensor.rank < 0 || tensor.rank > GRAFT_MAX_RANK) {
    throw std::invalid_argument("rank " + std::to_string(tensor.rank) + ", allowed is 0 to 8");
  }
  check(Extents::make({tensor.extents, tensor.extents + tensor.rank}, desc.extents));
  return desc;
}

/// A call in the terms of the operator interface.
struct Call {
  std::vector<TensorDesc> inputs;
  std::vector<TensorDesc> outputs;
  std::vector<const void*> input_data;
  std::vector<void*> output_data;

  explicit Call(const graft_call& call) {
    for (std::int32_t i = 0; i < call.input_count; ++i) {
      inputs.push_back(desc_of(call.inputs[i]));
      input_data.push_back(call.inputs[i].data);
    }
    for (std::int32_t i = 0; i < call.output_count; ++i) {
      outputs.push_back(desc_of(call.outputs[i]));
      output_data.push_back(call.outputs[i].data);
    }
  }
  [[nodiscard]] Problem problem() const { return {inputs, outputs}; }
  [[nodiscard]] Buffers buffers(void* workspace) const { return {input_data, output_data, workspace}; }
};

/// A number with a fraction would be cut off without a word.
bool is_integer(const nlohmann::ordered_json& value) {
  if (value.is_array())
    return std::all_of(value.begin(), value.end(), [](const auto& each) { return is_integer(each); });
  return value.is_number_integer() || value.is_boolean();
}

/// Of the tensors alone: the rest is for graft_workspace_bytes and graft_cuda_variants, which are asked once.
void check_counts(const OperatorType& type, const Call& call) {
  if (call.inputs.empty() || call.inputs.size() > type.input_count() || call.outputs.size() != type.output_count()) {
    throw std::invalid_argument(std::string(type.name) + " takes up to " + std::to_string(type.input_count()) +
                                " inputs and gives " + std::to_string(type.output_count()) + " outputs; found " +
                                std::to_string(call.inputs.size()) + " and " + std::to_string(call.outputs.size()));
  }
}

AttributeValue to_attribute(const AttributeInfo& info, const nlohmann::ordered_json& value) {
  const bool wants_integer = info.type == AttributeType::integer || info.type == AttributeType::integers;
  if (wants_integer && !is_integer(value)) {
    throw std::invalid_argument("attribute `" + std::string(info.name) + "` is " + value.dump() +
                                ", allowed are integers");
  }
  switch (info.type) {
    case AttributeType::float_number: return value.get<float>();
    case AttributeType::integer: return value.get<std::int64_t>();
    case AttributeType::text: return value.get<std::string>();
    case AttributeType::float_numbers: return value.get<std::vector<float>>();
    case AttributeType::integers: return value.get<std::vector<std::int64_t>>();
  }
  throw std::invalid_argument("attribute of unknown type");
}

std::shared_ptr<const Operator> make_from_json(const char* name, const char* text) {
  const OperatorType* type = find_operator(name);
  if (type == nullptr) throw std::invalid_argument(std::string("there is no operator ") + name);
  const nlohmann::ordered_json object = nlohmann::ordered_json::parse(text == nullptr ? "{}" : text);
  ops::Attributes attributes;
  for (const auto& [key, value] : object.items()) {
    const AttributeInfo* info = type->find_attribute(key);
    if (info == nullptr) throw std::invalid_argument(std::string(name) + " has no attribute `" + key + "`");
    attributes.emplace_back(key, to_attribute(*info, value));
  }
  return ops::make_operator(*type, attributes);
}

nlohmann::ordered_json to_json(const Port& port, const TensorDesc& desc) {
  return {{"port", port.name},
          {"dtype", to_string(desc.dtype)},
          {"layout", to_string(desc.layout)},
          {"shape", std::vector(desc.extents.begin(), desc.extents.end())}};
}

/// "LeakyReLU f16 1x64x56x56 alpha=0.1": inputs, with a type where it is not that of the first, and the attributes that
/// are not at their default, but for i8's scales.
std::string name_of(const OperatorType& type, const Operator& op, const std::vector<TensorDesc>& inputs) {
  std::string name(type.name);
  for (const TensorDesc& desc : inputs) {
    const bool is_first = &desc == inputs.data();
    const bool as_first = !is_first && desc.dtype == inputs[0].dtype && desc.layout == inputs[0].layout;
    name += (is_first ? " " : ", ") + (as_first ? to_string(desc.extents) : to_string(desc));
  }
  for (const AttributeInfo& info : type.attributes) {
    const auto value = op.get(info.name);
    if (!value || *value == info.default_value || info.name.ends_with("_scale")) continue;
    name += " " + std::string(info.name) + "=" + to_string(*value);
  }
  return name;
}

nlohmann::ordered_json to_json(const OperatorType& type, const ops::TimedCase& timed) {
  const auto op = ops::make_operator(type, timed.attributes);
  const std::vector<TensorDesc> outputs = ops::output_descs(*op, timed.inputs);
  check(op->check({timed.inputs, outputs}));
  nlohmann::ordered_json attributes = nlohmann::ordered_json::object();
  for (const AttributeInfo& info : type.attributes) {
    const auto value = op->get(info.name);
    if (value) std::visit([&](const auto& plain) { attributes[std::string(info.name)] = plain; }, *value);
  }
  nlohmann::ordered_json result{{"name", name_of(type, *op, timed.inputs)},
                                {"operator", type.name},
                                {"attributes", attributes},
                                {"inputs", nlohmann::ordered_json::array()},
                                {"outputs", nlohmann::ordered_json::array()},
                                {"to_reach", {{"of_copy", timed.of_copy}, {"of_eager", timed.of_eager}}},
                                {"operations", timed.operations},
                                {"choose_variant", type.timed_variants}};
  for (std::size_t i = 0; i < timed.inputs.size(); ++i) {
    result["inputs"].push_back(to_json(type.ports[i], timed.inputs[i]));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    result["outputs"].push_back(to_json(type.ports[type.input_count() + i], outputs[i]));
  }
  return result;
}

/// `body` on pieces of 0..count, one for each thread.
void in_threads(std::int64_t count, std::int32_t threads, const CpuContext::Body& body) {
  const std::int64_t pieces = std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(count, 1));
  std::vector<std::jthread> running;
  for (std::int64_t i = 1; i < pieces; ++i) {
    running.emplace_back([&body, begin = count * i / pieces, end = count * (i + 1) / pieces] { body(begin, end); });
  }
  body(0, count / pieces);
}

}  // namespace
}  // namespace graft

const char* graft_version() { return GRAFT_VERSION; }

int graft_has_cuda() { return GRAFT_WITH_CUDA; }

const char* graft_last_error() { return graft::last_error().c_str(); }

graft_operator* graft_operator_create(const char* name, const char* attributes) {
  return graft::guarded<graft_operator*>(nullptr, [&] {
#if GRAFT_WITH_CUDA
    graft::register_cuda_kernels();
#endif
    return std::make_unique<graft_operator>(graft_operator{graft::make_from_json(name, attributes)}).release();
  });
}

void graft_operator_destroy(graft_operator* op) { const std::unique_ptr<graft_operator> owned(op); }

std::int64_t graft_storage_bytes(const graft_tensor* tensor) {
  return graft::guarded<std::int64_t>(-1, [&] { return graft::desc_of(*tensor).storage_bytes(); });
}

std::int64_t graft_workspace_bytes(const graft_operator* op, const graft_call* call) {
  return graft::guarded<std::int64_t>(-1, [&] {
    const graft::Call parsed(*call);
    graft::check(op->op->check(parsed.problem()));
    return static_cast<std::int64_t>(op->op->workspace(parsed.problem()));
  });
}

const char* graft_cuda_variants(const graft_operator* op, const graft_call* call) {
  thread_local std::string names;
  return graft::guarded<const char*>(nullptr, [&] {
    const graft::Call parsed(*call);
    graft::check(op->op->check(parsed.problem()));
    names.clear();
    for (const graft::VariantInfo& variant : op->op->cuda_variants(parsed.problem())) {
      if (variant.fits.ok()) names.append(names.empty() ? "" : ",").append(variant.name);
    }
    return names.c_str();
  });
}

int graft_run_cpu(const graft_operator* op, const graft_call* call, std::int32_t threads) {
  return graft::guarded(1, [&] {
    const graft::Call parsed(*call);
    graft::CpuContext context;
    context.parallel_for = [threads](std::int64_t count, const graft::CpuContext::Body& body) {
      graft::in_threads(count, threads, body);
    };
    graft::check(op->op->run_cpu(parsed.problem(), parsed.buffers(nullptr), context));
    return 0;
  });
}

int graft_run_cuda(const graft_operator* op, const graft_call* call, void* workspace, void* stream,
                   const char* variant) {
  return graft::guarded(1, [&] {
    const graft::Call parsed(*call);
    const graft::CudaContext context{static_cast<CUstream_st*>(stream), variant == nullptr ? "" : variant};
    graft::check_counts(op->op->type(), parsed);
    graft::check(op->op->run_cuda(parsed.problem(), parsed.buffers(workspace), context));
    return 0;
  });
}

int graft_run_empty([[maybe_unused]] void* stream) {
  return graft::guarded(1, [&] {
#if GRAFT_WITH_CUDA
    graft::check(graft::run_empty_kernel(static_cast<CUstream_st*>(stream)));
    return 0;
#else
    throw std::invalid_argument("this build of Graft has no CUDA kernels");
    return 1;
#endif
  });
}

const char* graft_timed_cases() {
  return graft::guarded<const char*>(nullptr, [] {
    static const std::string text = [] {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const graft::ops::OperatorTimings& each : graft::ops::operator_timings()) {
        for (const graft::ops::TimedCase& timed : each.timings) list.push_back(graft::to_json(*each.type, timed));
      }
      return list.dump();
    }();
    return text.c_str();
  });
}

const char* graft_random_cases(std::uint64_t seed, std::int32_t count) {
  thread_local std::string text;
  return graft::guarded<const char*>(nullptr, [&] {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const graft::ops::OperatorTimings& each : graft::ops::operator_timings()) {
      if (each.draw == nullptr) continue;
      for (const graft::ops::TimedCase& timed : graft::ops::random_cases(*each.type, each.draw, seed, count)) {
        list.push_back(graft::to_json(*each.type, timed));
      }
    }
    text = list.dump();
    return text.c_str();
  });
}
