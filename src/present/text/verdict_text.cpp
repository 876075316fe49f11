// Maps verdicts to green, yellow, red or no color, and to clauses.
#include "present/text/verdict_text.hpp"

#include <fmt/format.h>

#include "graft/setting.hpp"

namespace graft::present {

Color color_of(report::Support verdict) {
  switch (verdict) {
    case report::Support::plugin: return Color::good;
    case report::Support::native:
    case report::Support::lowered: return Color::none;
    case report::Support::unknown:
    case report::Support::not_asked: return Color::caution;
    default: return Color::bad;
  }
}

std::string meaning_of(report::Support verdict, bool by_rules, const std::string& release) {
  using report::Support;
  switch (verdict) {
    case Support::native: return by_rules ? "no rule refuses it; judged without TensorRT" : "TensorRT runs it as it is";
    case Support::lowered: return "`graft convert` replaces it with native layers, or removes it";
    case Support::plugin: return "a plugin runs it";
    case Support::unknown:
      if (!release.empty()) {
        return fmt::format("unknown to the rules; inspect the model where {} is installed", release);
      }
      return fmt::format("unknown to the rules; {} runs TensorRT", setting_name(Setting::judge_builder));
    case Support::not_asked: return "TensorRT was not run on this node separately";
    case Support::unsupported: return "neither TensorRT nor Graft runs it";
    case Support::refused: return "TensorRT's parser refuses it";
    case Support::fails: return "TensorRT's parser accepts it, and the build fails";
    case Support::hangs: return "TensorRT does not finish with it";
    case Support::crashes: return "it crashes TensorRT's process";
  }
  return "";
}

}  // namespace graft::present
