// Tests the reader with malformed calibration caches.
#include "tests/fuzz/spoiled.hpp"

namespace graft::fuzz {
namespace {

std::vector<std::string> caches() {
  return {"TRT-8601-EntropyCalibration2\nimage: 3c010a14\n(Unnamed Layer* 0) [Convolution]_output: 3d3a5b1c\n",
          "TRT-100300-MinMaxCalibration\r\na:b:c: 7f800000\r\n\r\n\xC3\xA4: 0\r\n"};
}

TEST(CacheFuzz, Corpus) {
  for (const std::string& bytes : corpus("cache")) expect_bounded(bytes);
}

TEST(CacheFuzz, Truncated) { cut_short(caches(), 200); }
TEST(CacheFuzz, FlippedBitsAndOverwrittenBytes) { flip_and_overwrite(caches(), 3000); }
TEST(CacheFuzz, OtherWords) { change_fields(caches(), 3000); }
TEST(CacheFuzz, RandomBytes) { random_bytes(); }

}  // namespace
}  // namespace graft::fuzz
