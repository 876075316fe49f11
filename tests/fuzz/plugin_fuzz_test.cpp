// Tests fields of plugins as an engine might contain them: of any type and length, for every operator.
#include "tests/fuzz/spoiled.hpp"

namespace graft::fuzz {
namespace {

TEST(PluginFuzz, Corpus) {
  for (const std::string& bytes : corpus("plugin")) expect_bounded(bytes);
}

TEST(PluginFuzz, RandomFields) {
  std::mt19937 random(11);
  for (int round = 0; round < 100'000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 3 == 0 ? random() % 8 : random());
    expect_bounded(bytes);
  }
}

}  // namespace
}  // namespace graft::fuzz
