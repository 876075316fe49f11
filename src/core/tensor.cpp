// Computes the storage sizes of tensors.
#include "graft/operator/tensor.hpp"

#include <limits>
#include <string>

namespace graft {

std::int64_t TensorDesc::storage_count() const {
  const std::int64_t vector = channels_per_vector(layout);
  if (vector == 1 || extents.rank() < 2) return extents.element_count();
  Extents padded = extents;
  if (padded[1] > std::numeric_limits<std::int64_t>::max() - vector) return std::numeric_limits<std::int64_t>::max();
  padded[1] = (padded[1] + vector - 1) / vector * vector;
  return padded.element_count();
}

std::int64_t TensorDesc::storage_bytes() const {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(storage_count(), static_cast<std::int64_t>(size_of(dtype)), &bytes)) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return bytes;
}

std::string to_string(const TensorDesc& desc) {
  std::string text(to_string(desc.dtype));
  if (desc.layout != Layout::linear) text += " " + std::string(to_string(desc.layout));
  return text + " " + to_string(desc.extents);
}

}  // namespace graft
