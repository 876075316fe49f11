// Returns the results of the toolkit as JSON and HTML for applications, and writes the files of a cut.
#include <string>

#include "core/atomic_file.hpp"
#include "graft/toolkit/auto.hpp"
#include "graft/toolkit/present.hpp"
#include "present/html/auto_page.hpp"
#include "present/html/convert_page.hpp"
#include "present/html/cut_page.hpp"
#include "present/html/inspect_page.hpp"
#include "present/html/layers_page.hpp"
#include "present/html/quantize_page.hpp"
#include "present/html/verify_page.hpp"
#include "present/json/auto_json.hpp"
#include "present/json/build_json.hpp"
#include "present/json/convert_json.hpp"
#include "present/json/fields.hpp"
#include "present/json/inspect_json.hpp"

namespace graft::toolkit {
namespace {

/// Returns JSON as a string. Invalid UTF-8, which names in models may contain, is replaced.
std::string text_of(const present::Json& json) {
  return json.dump(-1, ' ', false, present::Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const InspectReport& report) { return text_of(present::inspect_json(report)); }

std::string to_json(const ConvertReport& report) { return text_of(present::convert_json(report)); }

std::string to_json(const VerifyResult& result) {
  return text_of(present::json_of_report<report::VerifyReport>(result));
}

std::string to_json(const LayersResult& result) {
  return text_of(present::json_of_report<report::LayersReport>(result));
}

std::string to_json(const QuantizeReport& report) { return text_of(present::json_of_report(report)); }

std::string to_json(const BuildReport& report) { return text_of(present::build_json(report)); }

std::string to_json(const CanaryResult& result) { return text_of(present::json_of_report(result)); }

std::string to_json(const AutoReport& report) { return text_of(present::auto_json(report)); }

std::string to_json(const CutResult& result) { return text_of(present::json_of_fields(result)); }

void save(const AutoReport& report) { present::write_auto(report); }

CutFiles save(CutResult& result, const std::filesystem::path& file) {
  CutFiles files = cut_files(file);
  result.tensorrt_model.save(files.tensorrt);
  result.host_model.save(files.host);
  result.tensorrt.file = files.tensorrt;
  result.host.file = files.host;
  write_file(files.network, present::json_of_fields<report::CutHalves>(result).dump(2) + "\n");
  result.file = files.network;
  return files;
}

std::string to_page(const InspectReport& report) { return html_of(present::inspect_page(report)); }

std::string to_page(const ConvertReport& report) { return html_of(present::convert_page(report)); }

std::string to_page(const VerifyResult& result) { return html_of(present::verify_page(result)); }

std::string to_page(const LayersResult& result) { return html_of(present::layers_page(result)); }

std::string to_page(const QuantizeReport& report) { return html_of(present::quantize_page(report)); }

std::string to_page(const AutoReport& report) { return html_of(present::auto_page(report)); }

std::string to_page(const CutResult& result) { return html_of(present::cut_page(result)); }

}  // namespace graft::toolkit
