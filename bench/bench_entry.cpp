// C entry points through which bench/operators.py runs operators in the process, and with the timer, of their peers.
#include <cstring>
#include <memory>
#include <string>

#include "graft/registry.hpp"

namespace {

std::string& last_error() {
  static std::string text;
  return text;
}

int fail(const std::string& message) {
  last_error() = message;
  return 1;
}

int finish(const graft::Status& status) { return status.ok() ? 0 : fail(status.message()); }

struct Call {
  graft::TensorDesc x;
  graft::TensorDesc y;
  [[nodiscard]] graft::Problem problem() const { return {{&x, 1}, {&y, 1}}; }
};

/// One input and one output of the same type, layout and shape.
int make_call(const char* dtype, const char* layout, const long long* extents, int rank, Call& call) {
  const auto parsed = graft::parse_dtype(dtype);
  if (!parsed) return fail(std::string("unknown dtype ") + dtype);
  call.x.dtype = *parsed;
  for (const graft::Layout candidate : {graft::Layout::linear, graft::Layout::hwc8, graft::Layout::chw32}) {
    if (to_string(candidate) == layout) call.x.layout = candidate;
  }
  if (const graft::Status status = graft::Extents::make({extents, extents + rank}, call.x.extents); !status.ok()) {
    return finish(status);
  }
  call.y = call.x;
  return 0;
}

}  // namespace

#define GRAFT_BENCH_ENTRY extern "C" __attribute__((visibility("default")))

/// What the last call that returned not 0, or null, had to say.
GRAFT_BENCH_ENTRY const char* graft_bench_error() { return last_error().c_str(); }

GRAFT_BENCH_ENTRY graft::Operator* graft_bench_create(const char* name) {
  const graft::OperatorType* type = graft::find_operator(name);
  if (type == nullptr) last_error() = std::string("no operator ") + name;
  return type == nullptr ? nullptr : type->create().release();
}
GRAFT_BENCH_ENTRY void graft_bench_destroy(graft::Operator* op) { const std::unique_ptr<graft::Operator> owned(op); }

GRAFT_BENCH_ENTRY int graft_bench_set_float(graft::Operator* op, const char* name, float value) {
  return finish(op->set(name, value));
}
GRAFT_BENCH_ENTRY int graft_bench_set_text(graft::Operator* op, const char* name, const char* value) {
  return finish(op->set(name, std::string(value)));
}
GRAFT_BENCH_ENTRY int graft_bench_set_ints(graft::Operator* op, const char* name, const long long* values, int count) {
  return finish(op->set(name, std::vector<std::int64_t>(values, values + count)));
}

/// The name of the variant that runs by itself, into `name` of `size` bytes.
GRAFT_BENCH_ENTRY int graft_bench_variant(const graft::Operator* op, const char* dtype, const char* layout,
                                          const long long* extents, int rank, char* name, int size) {
  Call call;
  if (const int failed = make_call(dtype, layout, extents, rank, call); failed != 0) return failed;
  for (const graft::VariantInfo& variant : op->cuda_variants(call.problem())) {
    if (!variant.fits.ok()) continue;
    std::strncpy(name, std::string(variant.name).c_str(), static_cast<std::size_t>(size) - 1);
    return 0;
  }
  return fail("no variant fits");
}

/// `variant` empty: the first that fits. The workspace holds at least 64 KiB.
GRAFT_BENCH_ENTRY int graft_bench_run(const graft::Operator* op, const char* dtype, const char* layout,
                                      const long long* extents, int rank, const void* x, void* y, void* workspace,
                                      void* stream, const char* variant) {
  constexpr std::size_t workspace_size = 65536;
  Call call;
  if (const int failed = make_call(dtype, layout, extents, rank, call); failed != 0) return failed;
  if (op->workspace(call.problem()) > workspace_size) return fail("the workspace is too small");
  return finish(
      op->run_cuda(call.problem(), {{&x, 1}, {&y, 1}, workspace}, {static_cast<CUstream_st*>(stream), variant}));
}
