// Fuzzes the reader of calibration caches.
#include <array>
#include <cstdlib>

#include "graft/error.hpp"
#include "quant/calibrate/calibration_cache.hpp"
#include "tests/fuzz/counting.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/fuzz/text.hpp"

namespace graft::fuzz {

void run(std::string_view bytes) {
  const Counting while_it_runs(memory_limit(4 * bytes.size()), single_limit(4 * bytes.size()));
  try {
    const quant::CalibrationCache cache = quant::parse_calibration_cache(bytes, "fuzz");
    if (quant::parse_calibration_cache(format_calibration_cache(cache), "written") != cache) std::abort();
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::internal) throw;
  }
}

std::string mutate(std::string_view bytes, std::uint64_t seed) {
  static constexpr std::array<std::string_view, 12> words{
      "TRT-",     "8601", "-EntropyCalibration2", ": ", ":", "3c010a14", "7f800000", "7fc00000", "8000000", "fffffffff",
      "a:b:c: 0", "\r"};
  return change_text(bytes, words, seed);
}

}  // namespace graft::fuzz
