// Fuzzes the readers of rules and image recipes: each text is read as both, and patterns are matched with names.
#include <array>

#include "data/images.hpp"
#include "graft/error.hpp"
#include "rules/rule.hpp"
#include "rules/rule_passes.hpp"
#include "tests/fuzz/counting.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/fuzz/text.hpp"

namespace graft::fuzz {
namespace {

template <class Read>
void expect_error_or_result(Read&& read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::internal) throw;
  }
}

}  // namespace

void run(std::string_view bytes) {
  const std::string text(bytes);
  const std::size_t most = memory_limit(16 * bytes.size());  // yaml-cpp's nodes are large
  const Counting while_it_runs(most, most);
  expect_error_or_result([&] { (void)data::parse_image_recipe(text, "fuzz"); });
  expect_error_or_result([&] { (void)rules::rule_passes(rules::parse_rules(text, "fuzz")); });
  expect_error_or_result([&] {
    const rules::NamePattern pattern(text.substr(0, 1000), {"fuzz", 1, 1});
    const std::string name = text + std::string(1000, 'a');
    if (pattern.matches(name)) (void)pattern.renamed(name, "$1-$0-$9-$$");
  });
}

std::string mutate(std::string_view bytes, std::uint64_t seed) {
  static constexpr std::array<std::string_view, 30> words{"- replace: ",  "- match: ",    "- remove: ",
                                                          "- set: ",      "- constant: ", "- rename: ",
                                                          "- shape: ",    "- dtype: ",    "- fix: ",
                                                          "- cut: ",      "with: ",       "plugin: ",
                                                          "inputs: ",     "outputs: ",    "when: ",
                                                          "attributes: ", "{op: ",        "[",
                                                          "&a ",          "*a",           "<<: *a",
                                                          "!!binary ",    "re:(a*)*b",    "'*a*a*a*b'",
                                                          "@x + 1",       "1e999",        "-9223372036854775808",
                                                          "resize: ",     "mean: ",       "crop: "};
  return change_text(bytes, words, seed);
}

}  // namespace graft::fuzz
