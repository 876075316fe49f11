// Messages call settings by the keywords of Python's functions.
#include <string_view>

#include "graft/toolkit/setting.hpp"
#include "python/bindings.hpp"

namespace graft::python {
namespace {

std::string_view keyword_of(Setting setting) {
  switch (setting) {
    case Setting::without_proofs: return "prove=False";
    case Setting::cut: return "graft.cut";
    case Setting::explanation: return "ConvertResult.to_json";
    case Setting::without_plugins: return "plugins=False";
    case Setting::quantize_int8: return R"(quantize(precision="int8"))";
    case Setting::quantize_typed_io: return R"(quantize(precision="f16", typed_io=True))";
    case Setting::judge_builder: return R"(judge="builder")";
    case Setting::inspect_builder: return R"(inspect(judge="builder"))";
    case Setting::operator_libraries: return "graft.load_operators";
    case Setting::build_with_library: return R"(build(plugin_libraries=["LIB.so"]))";
    case Setting::dla: return "dla_core";
    default: break;
  }
  // "InspectOptions::budget.max_builds" is `max_builds`: the functions take all of them flat.
  const std::string_view field = toolkit::field_name(setting);
  return field.substr(field.find_last_of(":.") + 1);
}

}  // namespace

void name_settings() { toolkit::name_settings(keyword_of); }

}  // namespace graft::python
