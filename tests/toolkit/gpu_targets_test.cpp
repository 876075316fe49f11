// Tests the names of targets. The expectations are NVIDIA's compute capabilities, and the names that nvidia-smi prints.
#include "toolkit/gpu_targets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graft/error.hpp"

namespace graft::toolkit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string target_of(const std::string& name) { return parse_targets({name}).at(0); }

std::string message_of(const std::vector<std::string>& targets) {
  try {
    static_cast<void>(parse_targets(targets));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::bad_input);
    return error.what();
  }
  return "";
}

TEST(GpuTargets, architectures_have_one_spelling) {
  EXPECT_THAT(parse_targets({"sm89,SM_120", "86", " sm89 "}), ElementsAre("sm89", "sm120", "sm86"));
  EXPECT_THAT(parse_targets({"Current"}), ElementsAre("current"));
  EXPECT_THAT(parse_targets({}), IsEmpty());
}

TEST(GpuTargets, products_are_named_as_in_a_shop_and_as_by_nvidia_smi) {
  EXPECT_EQ(target_of("rtx4090"), "sm89");
  EXPECT_EQ(target_of("RTX 4090"), "sm89");
  EXPECT_EQ(target_of("geforce-rtx-4070ti"), "sm89");
  EXPECT_EQ(target_of("NVIDIA GeForce RTX 4070 Ti SUPER"), "sm89");
  EXPECT_EQ(target_of("NVIDIA GeForce RTX 3080 Laptop GPU"), "sm86");
  EXPECT_EQ(target_of("NVIDIA GeForce GTX 1660 Ti"), "sm75");
  EXPECT_EQ(target_of("Tesla T4"), "sm75");
  EXPECT_EQ(target_of("NVIDIA A100-SXM4-80GB"), "sm80");
  EXPECT_EQ(target_of("NVIDIA A100 80GB PCIe"), "sm80");
  EXPECT_EQ(target_of("NVIDIA A10G"), "sm86");
  EXPECT_EQ(target_of("NVIDIA L40S"), "sm89");
  EXPECT_EQ(target_of("NVIDIA H100 80GB HBM3"), "sm90");
  EXPECT_EQ(target_of("jetson orin nano"), "sm87");
  EXPECT_EQ(target_of("NVIDIA RTX PRO 6000 Blackwell Workstation Edition"), "sm120");
  EXPECT_THAT(parse_targets({"rtx4090, rtx 4080", "l4,rtx5090"}), ElementsAre("sm89", "sm120"));
}

TEST(GpuTargets, products_with_similar_names_are_told_apart) {
  EXPECT_EQ(target_of("NVIDIA RTX A1000"), "sm86");  // not an A100
  EXPECT_EQ(target_of("NVIDIA RTX 6000 Ada Generation"), "sm89");
  EXPECT_EQ(target_of("Quadro RTX 6000"), "sm75");
  EXPECT_EQ(target_of("NVIDIA RTX A6000"), "sm86");
  EXPECT_THAT(message_of({"RTX 6000"}), HasSubstr("RTX 6000: not a target"));
}

TEST(GpuTargets, an_unknown_name_lists_all_names) {
  const std::string message = message_of({"sm89", "rtx4900"});
  EXPECT_THAT(message, HasSubstr("BuildOptions::targets rtx4900: not a target (did you mean rtx"));
  EXPECT_THAT(message, HasSubstr("\nsm89: l4, "));
  EXPECT_THAT(message, HasSubstr("current"));
  for (const char* text : {"ampere", "", "sm", "sm8", "sm89,,sm86", "8.9", "sm1200", "\xff"}) {
    EXPECT_THAT(message_of({text}), HasSubstr("not a target")) << text;
  }
  EXPECT_THAT(message_of({"current", "sm89"}), HasSubstr("current cannot be combined with other targets"));
  EXPECT_THAT(message_of({"rtx4090"}), IsEmpty());
}

TEST(GpuTargets, every_product_of_the_table_is_its_own_name) {
  for (const GpuArchitecture& architecture : gpu_architectures()) {
    std::string products(architecture.products);
    for (std::size_t begin = 0; begin < products.size();) {
      const std::size_t end = std::min(products.find(' ', begin), products.size());
      EXPECT_EQ(target_of(products.substr(begin, end - begin)), architecture.target);
      begin = end + 1;
    }
  }
}

}  // namespace
}  // namespace graft::toolkit
