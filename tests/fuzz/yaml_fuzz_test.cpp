// Tests the readers with malformed rules and recipes: damaged, deeply nested, and expanding ones.
#include "tests/fuzz/spoiled.hpp"

namespace graft::fuzz {
namespace {

std::vector<std::string> texts() {
  return {R"(- replace: {op: Relu, name: "block/*"}
  with: LeakyReLU
  attributes: {alpha: "1 / @slope + 2"}
  inputs: [x]
- match: |
    y = Add(x, c)
    z = Mul(y, x)
  with: Scale
  inputs: [x]
- remove: {op: Dropout, input: 0}
- rename: {old: new, "re:(.*)_out": "inner_$1"}
- rename_nodes: {"norm*": "style/norm$1"}
- shape: {x: [n, 3, 8, 8]}
- cut: {inputs: [a], outputs: [b]}
)",
          R"(resize: [256, 256]
crop: [224, 224]
channels: rgb
mean: [123.675, 116.28, 103.53]
scale: [0.01712, 0.01751, 0.01743]
layout: nchw
input: image
)"};
}

TEST(YamlFuzz, Corpus) {
  for (const std::string& bytes : corpus("yaml")) expect_bounded(bytes);
}

TEST(YamlFuzz, Truncated) { cut_short(texts(), 500); }
TEST(YamlFuzz, FlippedBitsAndOverwrittenBytes) { flip_and_overwrite(texts(), 1000); }
TEST(YamlFuzz, OtherWords) { change_fields(texts(), 1000); }
TEST(YamlFuzz, RandomBytes) { random_bytes(); }

TEST(YamlHostile, DeepAndExpanding) {
  const auto times = [](int count, const std::string& text) {
    std::string result;
    for (int i = 0; i < count; ++i) result += text;
    return result;
  };
  constexpr int many = 4'000;  // yaml-cpp's time is quadratic in some of these counts
  for (const char* text : {"[", "{", "- ", "{a: ", "? ", "[{", "&a [", "*", "!!x "}) expect_bounded(times(many, text));
  std::string aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 0; i < 30; ++i) {
    const std::string from = "*a" + std::to_string(i);
    const std::string name = "a" + std::to_string(i + 1);
    aliases += name;
    aliases += ": &" + name + " [" + from + ", " + from + ", " + from + ", " + from + "]\n";
  }
  expect_bounded(aliases);
  expect_bounded("- " + aliases);
  expect_bounded(times(500, "*a") + "b");
  expect_bounded("re:" + times(200, "(a*)*") + "b");
  expect_bounded("re:" + times(200, "(") + times(200, ")"));
  expect_bounded("re:((a{1,100}){1,100}){1,100}");
}

}  // namespace
}  // namespace graft::fuzz
