// Tests what the list of a report's fields leads to: JSON, its schema, and a report read from the engine driver's JSON.
#include "present/json/fields.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/read_fields.hpp"
#include "graft/report/field.hpp"
#include "present/json/schema.hpp"

namespace graft::present {
namespace {

struct Part {
  std::string name;
  std::optional<std::vector<std::string>> targets = {};

  static constexpr auto fields() {
    return std::tuple{report::field("name", &Part::name, "The name."),
                      report::field_if_any("targets", &Part::targets, "The targets.")};
  }
};

struct Whole {
  std::vector<Part> parts = {};
  std::vector<Part> checks = {};
  std::optional<std::optional<bool>> conforms = {};

  [[nodiscard]] std::size_t count() const { return parts.size(); }

  static constexpr auto fields() {
    return std::tuple{report::field("parts", &Whole::parts, "The parts."),
                      report::field("count", &Whole::count, "The number of parts."),
                      report::field_if_any("checks", &Whole::checks, "The checks."),
                      report::field_if_any("conforms", &Whole::conforms, "Null where that is not known.")};
  }
};

TEST(Fields, JsonLeavesOutWhatIsEmpty) {
  const Whole whole{.parts = {{.name = "a"}, {.name = "b", .targets = std::vector<std::string>()}}};
  EXPECT_EQ(json_of_fields(whole).dump(), R"({"parts":[{"name":"a"},{"name":"b","targets":[]}],"count":2})");
  const Whole unknown{.checks = {{.name = "c"}}, .conforms = std::optional<bool>()};
  EXPECT_EQ(json_of_fields(unknown).dump(), R"({"parts":[],"count":0,"checks":[{"name":"c"}],"conforms":null})");
}

TEST(Fields, ASchemaRequiresOnlyWhatJsonAlwaysHas) {
  const Json schema = schema_of_fields<Whole>();
  EXPECT_EQ(schema["required"], Json::array({"parts", "count"}));
  EXPECT_EQ(schema["properties"]["parts"]["items"]["properties"]["targets"].dump(),
            R"({"description":"The targets.","type":"array","items":{"type":"string"}})");
  EXPECT_EQ(schema["properties"]["conforms"]["anyOf"].dump(), R"([{"type":"boolean"},{"type":"null"}])");
}

/// A report whose key "trials" is a number or a list.
struct Search {
  bool has_list = false;
  std::optional<double> metric = {};
  std::size_t count = 0;
  std::vector<Part> trials = {};

  [[nodiscard]] bool has_count() const { return !has_list; }

  static constexpr auto fields() {
    return std::tuple{report::field_if(&Search::has_list, "metric", "metric", &Search::metric, "The metric."),
                      report::field_if(&Search::has_count, nullptr, "trials", &Search::count, "The number."),
                      report::field_if(&Search::has_list, nullptr, "trials", &Search::trials, "The list.")};
  }
};

TEST(Fields, JsonHasOnlyFieldsWhoseConditionHolds) {
  EXPECT_EQ(json_of_fields(Search{.count = 3}).dump(), R"({"trials":3})");
  EXPECT_EQ(json_of_fields(Search{.has_list = true}).dump(), R"({"metric":null,"trials":[]})");
  const Json schema = schema_of_fields<Search>();
  EXPECT_TRUE(schema["required"].empty());
  EXPECT_EQ(schema["properties"]["trials"]["anyOf"][0].dump(), R"({"description":"The number.","type":"integer"})");
  EXPECT_EQ(schema["properties"]["trials"]["anyOf"][1]["type"], "array");
}

struct Times {
  report::JsonText attributes = {"{}"};
  std::map<std::string, std::optional<double>, std::less<>> peers = {};
  std::optional<std::optional<double>> warm = {};
  std::optional<double> difference = {};

  static constexpr auto fields() {
    return std::tuple{report::field("attributes", &Times::attributes, "The attributes."),
                      report::field("peers", &Times::peers, "The peers."),
                      report::field_if_any("warm", &Times::warm, "Null where it does not apply."),
                      report::field("difference", &Times::difference, "The difference.")};
  }
};

TEST(Fields, NullsMapsAndOtherJsonAreReadAndWrittenAlike) {
  for (const char* text :
       {R"({"attributes":{"axes":[1],"mode":"a"},"peers":{"x":1.5,"y":null},"warm":null,"difference":2.0})",
        R"({"attributes":{},"peers":{},"difference":null})"}) {
    EXPECT_EQ(json_of_fields(engine::read_fields<Times>(nlohmann::json::parse(text))).dump(), text);
  }
}

TEST(Fields, AReportIsReadFromItsJson) {
  const auto json = nlohmann::json::parse(
      R"({"parts": [{"name": "a", "targets": ["sm89"], "more": 1}, {}], "count": 7, "conforms": true})");
  const Whole whole = engine::read_fields<Whole>(json);
  EXPECT_EQ(json_of_fields(whole).dump(),
            R"({"parts":[{"name":"a","targets":["sm89"]},{"name":""}],"count":2,"conforms":true})");
}

}  // namespace
}  // namespace graft::present
