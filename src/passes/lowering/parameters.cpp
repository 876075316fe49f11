// Operators that TensorRT has, with a parameter that it refuses or reads differently from ONNX: the same operator with
// the parameter written in another way.
//
//   before                                          after
//   NonMaxSuppression(b, s, 9223372036854775807)    NonMaxSuppression(b, s, 2147483647)
//   Einsum<"BHQd,BHKd->BHQK">(q, k)                 Einsum<"abcd,abed->abce">(q, k)
#include <fmt/format.h>

#include <cctype>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "passes/lowering/lowering.hpp"

namespace graft::passes {
namespace {

constexpr std::string_view all_letters = "abcdefghijklmnopqrstuvwxyz";

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// Returns the output subscripts of an Einsum equation without "->": an ellipsis, if the operands have one, followed by
/// the letters that occur exactly once, in the order of their character codes.
std::string implied_result(const std::string& operands) {
  std::map<char, int> counts;
  for (const char c : operands) {
    if (is_letter(c)) ++counts[c];
  }
  std::string result = operands.find('.') == std::string::npos ? "" : "...";
  for (const auto& [letter, count] : counts) {
    if (count == 1) result += letter;
  }
  return result;
}

}  // namespace

std::optional<Replacement> lower_einsum(Site& site) {
  std::string equation = site.node().string_or("equation", "");
  std::erase(equation, ' ');
  const auto is_upper = [](char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; };
  // The order of an implied result follows from the letters, so it must be written before they change.
  if (equation.find("->") == std::string::npos) equation += "->" + implied_result(equation);
  std::set<char> used;
  for (const char c : equation) {
    if (is_letter(c)) used.insert(c);
  }
  if (used.size() > all_letters.size()) {
    return site.no(fmt::format("its equation has {} letters; TensorRT supports only the {} lowercase ones", used.size(),
                               all_letters.size()));
  }
  std::map<char, char> names;
  auto free = all_letters.begin();
  for (const char letter : used) {
    if (!is_upper(letter)) continue;
    while (used.contains(*free)) ++free;
    names.emplace(letter, *free++);
  }
  for (char& c : equation) {
    if (const auto name = names.find(c); name != names.end()) c = name->second;
  }
  std::string inputs;
  for (std::size_t i = 0; i < site.node().inputs.size(); ++i) inputs += fmt::format("{}x{}", i == 0 ? "" : ", ", i);
  Replacement result;
  result.line(fmt::format("y0 = Einsum<equation=\"{}\">({})", equation, inputs));
  result.summary = fmt::format("Einsum<equation=\"{}\">", equation);
  return result;
}

std::optional<Replacement> lower_box_limit(Site& site) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const auto limit = site.ints(2);
  if (!limit || limit->size() != 1 || limit->front() <= most) return std::nullopt;
  Replacement result;
  const std::string clamped = result.ints("limit", {most});
  std::string inputs = fmt::format("x0, x1, {}", clamped);
  // A threshold that is left out stays left out.
  if (site.has_input(3)) inputs += ", x3";
  if (site.has_input(4)) inputs += site.has_input(3) ? ", x4" : ", _, x4";
  result.line(fmt::format("y0 = NonMaxSuppression<center_point_box={}>({})", site.node().int_or("center_point_box", 0),
                          inputs));
  result.by_definition = fmt::format(
      "by definition: the limit counts boxes, and a tensor of TensorRT has at most {} of them along one axis", most);
  result.summary = fmt::format("NonMaxSuppression with at most {} boxes for each class", most);
  return result;
}

}  // namespace graft::passes
