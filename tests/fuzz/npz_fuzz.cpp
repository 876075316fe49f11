// Fuzzes the reader of NumPy's files: archives, and single arrays, which the first bytes distinguish.
#include <algorithm>
#include <array>

#include "graft/error.hpp"
#include "io/npy.hpp"
#include "tests/fuzz/counting.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/fuzz/text.hpp"

namespace graft::fuzz {

void run(std::string_view bytes) {
  // the limit of 256 MiB for an archive, and a transposed copy of an array
  constexpr std::size_t most = std::size_t{600} << 20U;
  const Counting while_it_runs(most, most);
  try {
    if (bytes.starts_with("\x93NUMPY")) {
      (void)io::parse_npy(bytes, "fuzz");
    } else {
      (void)io::parse_npz(bytes, "fuzz");
    }
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::internal) throw;
  }
}

std::string mutate(std::string_view bytes, std::uint64_t seed) {
  static constexpr std::array<std::string_view, 16> words{"'descr': '<f4'",
                                                          "'<f8'",
                                                          "'|V2'",
                                                          "'fortran_order': True",
                                                          "'shape': (",
                                                          "(4611686018427387904, 8)",
                                                          "(1073741824,)",
                                                          "(-1,)",
                                                          "(0,)",
                                                          "()",
                                                          "}",
                                                          "{",
                                                          "99999999999999",
                                                          "'|O'",
                                                          ",",
                                                          "(2, 3, 4)"};
  if (!bytes.starts_with("\x93NUMPY")) return "";  // an archive has checksums
  constexpr std::size_t prefix = 10;
  const std::size_t begin = std::min(prefix, bytes.size());
  return std::string(bytes.substr(0, begin)) + change_text(bytes.substr(begin), words, seed);
}

}  // namespace graft::fuzz
