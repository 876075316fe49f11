// Tests that large fields are cut out of messages; the protobuf library determines a message's contents.
#include "onnx/wire.hpp"

#include <gtest/gtest.h>

#include <array>

#include "graft/error.hpp"
#include "onnx/onnx-ml.pb.h"

namespace graft::test {
namespace {

constexpr std::array fields = {onnx::WireField{0, 7, 1}, onnx::WireField{1, 5, 2},
                               onnx::WireField{2, 9, onnx::wire_data}};

/// Returns a model with an initializer for each string, which is its data.
::onnx::ModelProto model_with(const std::vector<std::string>& data) {
  ::onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.set_producer_name(std::string(1000, 'p'));
  for (const std::string& bytes : data) {
    auto& tensor = *proto.mutable_graph()->add_initializer();
    tensor.set_name("t");
    tensor.add_dims(static_cast<std::int64_t>(bytes.size()));
    tensor.set_raw_data(bytes);
  }
  proto.mutable_graph()->set_name("g");
  return proto;
}

TEST(Wire, CutsLargeDataAndNothingElse) {
  const std::string large(5000, 'a');
  const std::string small(255, 'b');
  const std::string bytes = model_with({large, small, "", large + "c"}).SerializeAsString();
  const auto cut = cut_large_fields(bytes, fields);
  ASSERT_TRUE(cut);
  EXPECT_LT(cut->rest.size(), 1500U);
  ASSERT_EQ(cut->pieces, (std::vector<std::string_view>{large, large + "c"}));
  EXPECT_GE(cut->pieces[0].data(), bytes.data()) << "not copied";
  EXPECT_LT(cut->pieces[0].data(), bytes.data() + bytes.size());

  ::onnx::ModelProto rest;
  ASSERT_TRUE(rest.ParseFromString(cut->rest));
  auto& tensors = *rest.mutable_graph()->mutable_initializer();
  for (int i = 0; i < 4; ++i) {
    const auto piece = onnx::take_piece(*tensors[i].mutable_unknown_fields());
    EXPECT_EQ(piece.has_value(), i == 0 || i == 3);
    if (piece) tensors[i].set_raw_data(std::string(cut->pieces.at(*piece - 1)));
  }
  EXPECT_EQ(rest.SerializeAsString(), bytes);
}

TEST(Wire, LeavesDataThatStandsTwice) {
  // By protobuf's rule the last field is valid; protobuf itself applies the rule.
  std::string twice = model_with({std::string(300, 'a')}).graph().initializer(0).SerializeAsString();
  twice += twice;
  ::onnx::GraphProto graph;
  ASSERT_TRUE(graph.add_initializer()->ParseFromString(twice));
  std::string bytes;
  const auto append_field = [](std::string& out, std::uint64_t number, const std::string& content) {
    onnx::append_varint(out, (number << 3U) | onnx::wire_length);
    onnx::append_varint(out, content.size());
    out += content;
  };
  std::string inner;
  append_field(inner, 5, twice);
  append_field(bytes, 7, inner);
  const auto cut = cut_large_fields(bytes, fields);
  ASSERT_TRUE(cut);
  EXPECT_TRUE(cut->pieces.empty());
  EXPECT_EQ(cut->rest, bytes);
}

TEST(Wire, RefusesWhatIsNoProtobufAndWhatIsTooDeep) {
  const std::string bytes = model_with({std::string(1000, 'a')}).SerializeAsString();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = cut_large_fields(std::string_view(bytes).substr(0, size), fields);
    ::onnx::ModelProto proto;
    EXPECT_EQ(cut.has_value(), proto.ParsePartialFromString(bytes.substr(0, size))) << size;
  }
  constexpr std::array itself = {onnx::WireField{0, 1, 0}};
  std::string nested(300, '\x10');
  for (int depth = 0; depth < 150; ++depth) {
    std::string outer;
    onnx::append_varint(outer, (1U << 3U) | onnx::wire_length);
    onnx::append_varint(outer, nested.size());
    nested = outer + nested;
  }
  EXPECT_FALSE(cut_large_fields(nested, itself));
}

TEST(Wire, FindsTheSizeOfATruncatedMessage) {
  constexpr std::uint32_t graph = ::onnx::ModelProto::kGraphFieldNumber;
  ::onnx::ModelProto proto = model_with({std::string(1000, 'a')});
  const std::string bytes = proto.SerializeAsString();
  for (const std::size_t left_out : {1, 500, 1000}) {
    const std::string_view part = std::string_view(bytes).substr(0, bytes.size() - left_out);
    EXPECT_EQ(onnx::size_before_truncation(part, graph), bytes.size()) << left_out;
  }
  EXPECT_FALSE(onnx::size_before_truncation(bytes, graph)) << "the message is whole";
  EXPECT_FALSE(onnx::size_before_truncation(std::string_view(bytes).substr(0, 100), graph))
      << "the graph has not begun";
  EXPECT_FALSE(onnx::size_before_truncation("This is no model", graph));
}

TEST(Wire, TakesNoPieceThatAFileClaimsToHave) {
  ::onnx::ModelProto proto = model_with({std::string(1000, 'a'), std::string(300, 'b')});
  std::string& claim = *proto.mutable_graph()->mutable_initializer(1)->mutable_unknown_fields();
  onnx::append_varint(claim, std::uint64_t{onnx::wire_piece_field} << 3U);
  onnx::append_varint(claim, 1);
  const auto bytes = proto.SerializeAsString();
  const auto cut = cut_large_fields(bytes, fields);
  ASSERT_TRUE(cut);
  ::onnx::ModelProto rest;
  ASSERT_TRUE(rest.ParseFromString(cut->rest));
  EXPECT_EQ(onnx::take_piece(*rest.mutable_graph()->mutable_initializer(1)->mutable_unknown_fields()), 2U);

  // A forged piece in a message that is too small to be cut is not accepted either.
  proto.mutable_graph()->mutable_initializer(1)->clear_raw_data();
  const auto small = proto.SerializeAsString();
  ASSERT_TRUE(rest.ParseFromString(cut_large_fields(small, fields)->rest));
  EXPECT_FALSE(onnx::take_piece(*rest.mutable_graph()->mutable_initializer(1)->mutable_unknown_fields()));
  EXPECT_THROW((void)onnx::Pieces({}, nullptr).at(1), Error);
  EXPECT_THROW((void)onnx::Pieces(cut->pieces, nullptr).at(0), Error);
}

}  // namespace
}  // namespace graft::test
