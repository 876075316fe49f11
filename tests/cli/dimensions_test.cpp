// Tests how shapes on the command line are parsed.
#include <gtest/gtest.h>

#include "cli/model_arguments.hpp"
#include "graft/error.hpp"

namespace graft::cli {
namespace {

TEST(ParseShapes, name_and_sizes) {
  const TypedShapes shapes = parse_shapes("--input", {"x:1x3x8x8", "scope/y:0:7"}, false);
  EXPECT_EQ(shapes.at("x"), (std::vector<std::int64_t>{1, 3, 8, 8}));
  EXPECT_EQ(shapes.at("scope/y:0"), (std::vector<std::int64_t>{7}));
}

TEST(ParseShapes, an_equals_sign_does_too) {
  EXPECT_EQ(parse_shapes("--input", {"y:0=1x3"}, false).at("y:0"), (std::vector<std::int64_t>{1, 3}));
}

TEST(ParseShapes, minus_one_is_an_open_size) {
  EXPECT_EQ(parse_shapes("--input", {"x:-1x8"}, true).at("x"), (std::vector<std::int64_t>{-1, 8}));
  EXPECT_THROW((void)parse_shapes("--input", {"x:-1x8"}, false), Error);
}

TEST(ParseShapes, question_mark_only_where_it_is_allowed) {
  EXPECT_EQ(parse_shapes("--input", {"x:?x8"}, true).at("x"), (std::vector<std::int64_t>{-1, 8}));
  EXPECT_THROW((void)parse_shapes("--input", {"x:?x8"}, false), Error);
}

class RefusedShape : public testing::TestWithParam<const char*> {};

TEST_P(RefusedShape, is_quoted_in_the_message) {
  try {
    (void)parse_shapes("--input", {GetParam()}, true);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(GetParam()), std::string::npos) << error.what();
    EXPECT_EQ(error.kind(), Error::Kind::bad_input);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RefusedShape,
                         testing::Values("x", "x:", ":1x2", "x:1xx2", "x:1x", "x:0x1", "x:-3", "x:1.5", "x:a",
                                         "x:99999999999999999999"));

TEST(ParseShapes, a_name_twice_is_refused) {
  EXPECT_THROW((void)parse_shapes("--input", {"x:1", "x:2"}, false), Error);
}

}  // namespace
}  // namespace graft::cli
