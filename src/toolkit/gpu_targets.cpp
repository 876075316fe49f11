// Names of products are compared as words without the parts that do not change the architecture, such as the size of
// the memory.
#include "toolkit/gpu_targets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <sstream>

#include "core/suggest.hpp"
#include "graft/error.hpp"
#include "graft/setting.hpp"

namespace graft::toolkit {
namespace {

// NVIDIA's list of compute capabilities (developer.nvidia.com/cuda-gpus). CUDA 13 has the number 110 for Thor.
constexpr std::array architectures{
    GpuArchitecture{"sm75",
                    "t4 t400 t600 t1000 t1200 t2000 rtx2050 rtx2060 rtx2070 rtx2080 titanrtx gtx1630 gtx1650 gtx1660 "
                    "quadrortx3000 quadrortx4000 quadrortx5000 quadrortx6000 quadrortx8000"},
    GpuArchitecture{"sm80", "a100 a800 a30"},
    GpuArchitecture{"sm86",
                    "a2 a10 a10g a16 a40 rtx3050 rtx3060 rtx3070 rtx3080 rtx3090 rtxa400 rtxa500 rtxa1000 rtxa2000 "
                    "rtxa3000 rtxa4000 rtxa4500 rtxa5000 rtxa5500 rtxa6000"},
    GpuArchitecture{"sm87", "orin agxorin orinnx orinnano"},
    GpuArchitecture{"sm89",
                    "l4 l20 l40 l40s rtx4050 rtx4060 rtx4070 rtx4080 rtx4090 rtx4090d rtx2000ada rtx4000ada "
                    "rtx4500ada rtx5000ada rtx5880ada rtx6000ada"},
    GpuArchitecture{"sm90", "h100 h200 h800 h20 gh200"},
    GpuArchitecture{"sm100", "b200 gb200"},
    GpuArchitecture{"sm103", "b300 gb300"},
    GpuArchitecture{"sm110", "thor agxthor t5000"},
    GpuArchitecture{"sm120",
                    "rtx5050 rtx5060 rtx5070 rtx5080 rtx5090 rtx5090d rtxpro2000 rtxpro4000 rtxpro4500 rtxpro5000 "
                    "rtxpro6000"},
    GpuArchitecture{"sm121", "gb10 dgxspark"},
};

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Returns whether a word of a product's name has no influence on the architecture: "geforce", "sxm4", "80gb".
bool is_ignored(const std::string& word) {
  static constexpr std::array ignored{"nvidia", "geforce", "tesla",      "jetson",      "laptop", "mobile",
                                      "gpu",    "edition", "generation", "workstation", "server", "max",
                                      "q",      "pcie",    "nvl",        "super",       "ti",     "blackwell"};
  const bool has_number = std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  return std::find(ignored.begin(), ignored.end(), word) != ignored.end() ||
         (has_number && (word.starts_with("sxm") || word.starts_with("hbm") || word.ends_with("gb")));
}

/// Returns the name of a product as the table spells it: "NVIDIA GeForce RTX 4070 Ti SUPER" becomes "rtx4070".
std::string product_key(const std::string& text) {
  std::string spaced = text;
  std::replace_if(
      spaced.begin(), spaced.end(), [](char c) { return c == '-' || c == '_'; }, ' ');
  std::string key;
  for (const std::string& word : words_of(spaced)) {
    if (!is_ignored(word)) key += word;
  }
  for (const std::string_view brand : {"nvidia", "geforce", "tesla", "jetson"}) {
    if (key.starts_with(brand)) key.erase(0, brand.size());
  }
  for (const std::string_view suffix : {"super", "ti"}) {
    if (key.ends_with(suffix)) key.erase(key.size() - suffix.size());
  }
  return key;
}

std::optional<std::string> find_product(const std::string& key) {
  for (const GpuArchitecture& architecture : architectures) {
    const std::vector<std::string> products = words_of(architecture.products);
    if (std::find(products.begin(), products.end(), key) != products.end()) return std::string(architecture.target);
  }
  return std::nullopt;
}

/// Returns the architecture that `text` names by its number: "sm89", "sm_89" and "89" are "sm89".
std::optional<std::string> parse_architecture(std::string_view text) {
  if (text.starts_with("sm")) text.remove_prefix(text.starts_with("sm_") ? 3 : 2);
  constexpr std::size_t fewest = 2;
  constexpr std::size_t most = 3;
  const bool is_number = std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!is_number || text.size() < fewest || text.size() > most) return std::nullopt;
  return "sm" + std::string(text);
}

[[noreturn]] void fail(const std::string& text, const std::string& key) {
  std::vector<std::string> known;
  std::string table;
  for (const GpuArchitecture& architecture : architectures) {
    const std::vector<std::string> products = words_of(architecture.products);
    known.insert(known.end(), products.begin(), products.end());
    table += fmt::format("\n{}: {}", architecture.target, fmt::join(products, ", "));
  }
  const auto meant = nearest(key, known);
  throw Error(
      fmt::format("{} {}: not a target{}\nWrite current, architectures such as sm89, or products, joined by "
                  "commas; \"Ti\" and \"Super\" make no difference{}",
                  setting_name(Setting::targets), text.empty() ? "''" : text,
                  meant ? fmt::format(" (did you mean {}?)", *meant) : "", table));
}

}  // namespace

std::span<const GpuArchitecture> gpu_architectures() { return architectures; }

std::vector<std::string> parse_targets(const std::vector<std::string>& texts) {
  std::vector<std::string> targets;
  for (const std::string& text : texts) {
    std::size_t begin = 0;
    while (begin <= text.size()) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      std::string part = text.substr(begin, end - begin);
      begin = end + 1;
      const std::size_t first = std::min(part.find_first_not_of(" \t"), part.size());
      part = part.substr(first, part.find_last_not_of(" \t") + 1 - first);
      std::string lower = part;
      std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
      const std::string key = product_key(lower);
      std::optional<std::string> target = lower == "current" ? lower : parse_architecture(lower);
      if (!target) target = find_product(key);
      if (!target) fail(part, key);
      if (std::find(targets.begin(), targets.end(), *target) == targets.end()) targets.push_back(*target);
    }
  }
  if (targets.size() > 1 && std::find(targets.begin(), targets.end(), "current") != targets.end()) {
    throw Error(
        fmt::format("{} {}: current cannot be combined with other targets\nName the generation of this "
                    "machine's GPU instead of current",
                    setting_name(Setting::targets), fmt::join(targets, ",")));
  }
  return targets;
}

}  // namespace graft::toolkit
