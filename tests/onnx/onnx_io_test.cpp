// Tests files: fields that Graft does not model are kept, and a file is written completely or not at all.
#include "onnx/onnx_io.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/atomic_file.hpp"
#include "onnx/faults.hpp"
#include "onnx/onnx-ml.pb.h"
#include "onnx/text.hpp"
#include "tests/support/text_model.hpp"

namespace graft::test {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "graft.XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }
  [[nodiscard]] std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

::onnx::ModelProto small_proto() {
  ::onnx::ModelProto proto;
  proto.set_ir_version(10);
  proto.add_opset_import()->set_version(17);
  auto& graph = *proto.mutable_graph();
  graph.set_name("g");
  graph.add_input()->set_name("x");
  graph.add_output()->set_name("y");
  auto& node = *graph.add_node();
  node.set_op_type("Relu");
  node.add_input("x");
  node.add_output("y");
  return proto;
}

::onnx::ModelProto through_graft(const ::onnx::ModelProto& proto) {
  ::onnx::ModelProto result;
  EXPECT_TRUE(result.ParseFromString(serialize_onnx(onnx::parse_onnx(proto.SerializeAsString(), "", "test"))));
  return result;
}

TEST(OnnxFiles, KeepWhatGraftDoesNotModel) {
  ::onnx::ModelProto proto = small_proto();
  auto& graph = *proto.mutable_graph();
  auto& annotation = *graph.add_quantization_annotation();
  annotation.set_tensor_name("y");
  auto& device = *proto.add_configuration();
  device.set_name("cluster");
  device.set_num_devices(2);
  graph.mutable_node(0)->add_device_configurations()->set_configuration_id("cluster");
  graph.mutable_node(0)->set_doc_string("node doc");
  auto& sequence = *graph.mutable_input(0)->mutable_type()->mutable_sequence_type();
  sequence.mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
  graph.mutable_input(0)->set_doc_string("input doc");
  auto& output = *graph.mutable_output(0)->mutable_type();
  output.set_denotation("IMAGE");
  output.mutable_tensor_type()->set_elem_type(1);
  auto& dim = *output.mutable_tensor_type()->mutable_shape()->add_dim();
  dim.set_dim_param("n");
  dim.set_denotation("DATA_BATCH");
  auto& sparse = *graph.add_sparse_initializer();
  sparse.mutable_values()->set_name("s");
  sparse.mutable_values()->set_data_type(1);
  sparse.mutable_values()->add_dims(0);
  sparse.add_dims(5);
  auto& attribute = *graph.mutable_node(0)->add_attribute();
  attribute.set_name("type");
  attribute.set_type(::onnx::AttributeProto::TYPE_PROTO);
  attribute.mutable_tp()->mutable_tensor_type()->set_elem_type(7);
  EXPECT_EQ(through_graft(proto).SerializeAsString(), proto.SerializeAsString());
}

TEST(OnnxFiles, KeepFieldsOfNewerVersions) {
  ::onnx::ModelProto proto = small_proto();
  const std::string newer = proto.SerializeAsString() + std::string("\xfa\x3e\x03new", 6);  // field 1007, a string
  const std::string written = serialize_onnx(onnx::parse_onnx(newer, "", "test"));
  EXPECT_NE(written.find("new"), std::string::npos);
}

TEST(OnnxFiles, DimensionsKeepTheirMeaning) {
  ::onnx::ModelProto proto = small_proto();
  auto& tensor = *proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(1);
  auto& shape = *tensor.mutable_shape();
  shape.add_dim()->set_dim_param("batch");
  shape.add_dim()->set_dim_value(3);
  shape.add_dim();
  shape.add_dim()->set_dim_value(-1);  // some exporters write this for an unknown size
  const onnx::Model model = onnx::parse_onnx(proto.SerializeAsString(), "", "test");
  EXPECT_EQ(type_text(*model.graph().inputs()[0]), "f32[batch, 3, ?, ?]");
  shape.mutable_dim(3)->clear_dim_value();
  EXPECT_EQ(through_graft(proto).SerializeAsString(), proto.SerializeAsString());
}

TEST(OnnxFiles, InitializersOfIr3AreConstants) {
  ::onnx::ModelProto proto = small_proto();
  auto& graph = *proto.mutable_graph();
  graph.add_input()->set_name("w");
  auto& tensor = *graph.add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(1);
  tensor.add_float_data(2);
  proto.set_ir_version(3);
  const onnx::Model old = onnx::parse_onnx(proto.SerializeAsString(), "", "test");
  EXPECT_EQ(old.graph().inputs().size(), 1U);
  EXPECT_EQ(old.graph().find("w")->constant()->scalar(), 2.0);
  EXPECT_EQ(old.ir_version, 4);
  proto.set_ir_version(8);
  const onnx::Model newer = onnx::parse_onnx(proto.SerializeAsString(), "", "test");
  EXPECT_EQ(newer.graph().inputs().size(), 2U);
  EXPECT_FALSE(newer.graph().find("w")->constant());  // a default that a caller may replace
}

TEST(OnnxFiles, NodesInAnyOrderAreSorted) {
  ::onnx::ModelProto proto = small_proto();
  auto& late = *proto.mutable_graph()->add_node();
  late.set_op_type("Abs");
  late.add_input("x");
  late.add_output("a");
  proto.mutable_graph()->mutable_node(0)->set_input(0, "a");
  const onnx::Model model = onnx::parse_onnx(proto.SerializeAsString(), "", "test");
  EXPECT_EQ(model.graph().nodes()[0]->op_type, "Abs");
  model.graph().check();
}

TEST(OnnxFiles, WeightsAreCountedInListsOfTensorsAndFunctions) {
  const auto floats = [](std::size_t count) { return onnx::TensorData::from_floats(std::vector<float>(count)); };
  onnx::Model model = text_model({{"x"}}, "y = Relu(x)", {"y"});
  EXPECT_EQ(onnx::weight_bytes(model), 0U);
  model.graph().nodes()[0]->attributes["list"] = onnx::AttributeData(std::vector{floats(1), floats(2)});
  EXPECT_EQ(onnx::weight_bytes(model), 3 * sizeof(float));

  onnx::FunctionDefinition function;
  function.key = {"own", "F", ""};
  onnx::Node* constant = function.body->add_node("Constant", {}, {"c"});
  constant->attributes["value"] = onnx::AttributeData(floats(10));
  function.attribute_defaults["table"] = onnx::AttributeData(floats(100));
  model.functions.emplace(function.key, std::move(function));
  EXPECT_EQ(onnx::weight_bytes(model), (3 + 10 + 100) * sizeof(float));
}

TEST(OnnxFiles, ExternalDataBesideTheModel) {
  const Folder folder;
  onnx::Model model = text_model({{"x"}}, "y = Relu(x)", {"y"});
  onnx::Value* w = model.graph().add_constant("w", onnx::TensorData::from_floats({1, 2, 3}));
  onnx::Value* small = model.graph().add_constant("small", onnx::TensorData::from_floats({4}));
  onnx::Node* sum = model.graph().add_node("Sum", {model.graph().find("y"), w, small}, {"z"});
  model.graph().add_output(*sum->output());
  onnx::write_onnx(model, folder / "m.onnx", {onnx::ExternalData::always, 4});
  EXPECT_EQ(folder.file_count(), 2U);
  const onnx::Model read = onnx::read_onnx(folder / "m.onnx");
  EXPECT_TRUE(read.graph().find("w")->initializer->external);
  EXPECT_FALSE(read.graph().find("small")->initializer->external);
  EXPECT_TRUE(read.graph().find("w")->initializer->same_as(*w->initializer));
}

TEST(OnnxFiles, AFailedWriteLeavesNothing) {
  const Folder folder;
  onnx::Model model = text_model({{"x"}}, "y = Relu(x)", {"y"});
  EXPECT_NE(error_of([&] { onnx::write_onnx(model, folder / "none" / "m.onnx"); }).find("No such file"),
            std::string::npos);
  fs::create_directory(folder / "m.onnx");
  EXPECT_NE(error_of([&] { onnx::write_onnx(model, folder / "m.onnx"); }), "");
  EXPECT_EQ(folder.file_count(), 1U);
}

// A pipe represents /dev/null, which a faulty implementation would replace.
TEST(OnnxFiles, OnlyRegularFilesAreReplaced) {
  const Folder folder;
  const onnx::Model model = text_model({{"x"}}, "y = Relu(x)", {"y"});
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", folder / "to_pipe");
  for (const char* name : {"pipe", "to_pipe"}) {
    const std::string error = error_of([&] { onnx::write_onnx(model, folder / name); });
    EXPECT_NE(error.find(std::string(name) + ": this is a device, a pipe"), std::string::npos) << error;
  }
  EXPECT_TRUE(fs::is_fifo(folder / "pipe"));
  EXPECT_EQ(folder.file_count(), 2U);
  const std::string inside = error_of([&] { onnx::write_onnx(model, folder / ""); });
  EXPECT_NE(inside.find("this is a folder"), std::string::npos) << inside;
}

// A link in untrusted files may refer to any of the user's files.
TEST(OnnxFiles, LinksAreReplacedAndNotFollowed) {
  const Folder folder;
  onnx::Model model = text_model({{"x"}}, "y = Relu(x)", {"y"});
  model.graph().add_output(
      *model.graph().add_constant("w", onnx::TensorData::from_floats(std::vector<float>(100'000, 1.F))));
  write_file(folder / "secret", "secret");
  fs::permissions(folder / "secret", fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("secret", folder / "m.onnx");
  fs::create_symlink("secret", folder / "m.onnx.data");
  fs::create_symlink("nowhere", folder / "dangling");
  fs::create_symlink("circle", folder / "circle");
  const auto data = onnx::write_onnx(model, folder / "m.onnx", {onnx::ExternalData::always});
  ASSERT_EQ(data, folder / "m.onnx.data");
  onnx::write_onnx(model, folder / "dangling");
  onnx::write_onnx(model, folder / "circle");
  for (const char* name : {"m.onnx", "m.onnx.data", "dangling", "circle"}) {
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / name))) << name;
  }
  EXPECT_EQ(fs::file_size(folder / "secret"), 6U);
  EXPECT_FALSE(fs::exists(folder / "nowhere"));
  // The mode is that of a new file, not that of the link's target.
  EXPECT_EQ(fs::status(folder / "m.onnx").permissions(), fs::status(folder / "dangling").permissions());
}

TEST(OnnxFiles, WhatAKilledProcessLeftIsRemoved) {
  const Folder folder;
  const onnx::Model model = text_model({{"x"}}, "y = Relu(x)", {"y"});
  const AtomicFile in_use(folder / "m.onnx");
  const char* const removed = "m.onnx.4000000-0.tmp";
  const char* const young = "m.onnx.4000000-1.tmp";
  const char* const others = "m.onnx.mine.tmp";
  for (const char* name : {removed, young, others}) std::ofstream(folder / name) << "part";
  fs::create_symlink(others, folder / "m.onnx.4000000-2.tmp");
  const auto hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder / "")) {
    if (entry.path().filename() != young) fs::last_write_time(entry.path(), hour_ago);
  }
  const std::size_t before = folder.file_count();
  onnx::write_onnx(model, folder / "m.onnx");
  EXPECT_FALSE(fs::exists(folder / removed));
  EXPECT_TRUE(fs::exists(folder / young));
  EXPECT_TRUE(fs::exists(folder / others));
  EXPECT_EQ(folder.file_count(), before);  // one file more and one less: the file of `in_use` still exists
}

// A limit on the size of files represents a full disk: in both cases, write fails midway with an error.
TEST(OnnxFiles, AFullDiskLeavesTheOldFile) {
  const Folder folder;
  onnx::Model model = text_model({{"x"}}, "y = Relu(x)", {"y"});
  onnx::write_onnx(model, folder / "m.onnx");
  const auto size = fs::file_size(folder / "m.onnx");
  model.graph().add_output(
      *model.graph().add_constant("w", onnx::TensorData::from_floats(std::vector<float>(100'000, 1.F))));

  struct ::rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct ::rlimit limit = before;
  limit.rlim_cur = 64 * 1024;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string inside = error_of([&] { onnx::write_onnx(model, folder / "m.onnx"); });
  const std::string external =
      error_of([&] { onnx::write_onnx(model, folder / "m.onnx", {onnx::ExternalData::always}); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_NE(inside.find("m.onnx: cannot be written"), std::string::npos) << inside;
  EXPECT_NE(external.find("cannot be written"), std::string::npos) << external;
  EXPECT_EQ(folder.file_count(), 1U);
  EXPECT_EQ(fs::file_size(folder / "m.onnx"), size);
}

TEST(OnnxFiles, AWrittenFileHasTheModeOfAnyOther) {
  const Folder folder;
  std::ofstream(folder / "plain") << "x";
  write_file(folder / "ours", "x");
  EXPECT_EQ(fs::status(folder / "plain").permissions(), fs::status(folder / "ours").permissions());
}

// A defect of Graft and a missing tool are no faults of the model.
TEST(OnnxFiles, OnlyBadInputIsToBeCorrectedInTheModel) {
  using Kind = Error::Kind;
  EXPECT_STREQ(onnx::with_next_step(Error(Kind::bad_input, "bad"), "Correct it").what(), "bad\nCorrect it");
  EXPECT_STREQ(onnx::with_next_step(Error(Kind::bad_input, "bad\nCopy it"), "Correct it").what(), "bad\nCopy it");
  for (const Kind kind : {Kind::answer_is_no, Kind::missing_tool, Kind::internal}) {
    const Error kept = onnx::with_next_step(Error(kind, "bad"), "Correct it");
    EXPECT_STREQ(kept.what(), "bad");
    EXPECT_EQ(kept.kind(), kind);
  }
}

TEST(OnnxFiles, AMissingFolderIsNotToBeCorrectedInTheModel) {
  const Folder folder;
  ::onnx::ModelProto proto = small_proto();
  auto& weight = *proto.mutable_graph()->add_initializer();
  weight.set_name("w");
  weight.set_data_type(::onnx::TensorProto::FLOAT);
  weight.add_dims(2);
  weight.set_data_location(::onnx::TensorProto::EXTERNAL);
  auto& location = *weight.add_external_data();
  location.set_key("location");
  location.set_value("w.bin");
  try {
    static_cast<void>(onnx::parse_onnx(proto.SerializeAsString(), folder / "absent", "test"));
    ADD_FAILURE() << "the folder does not exist";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("No such file or directory\nCopy the whole file to "), std::string::npos) << message;
    EXPECT_EQ(message.find("Correct this"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace graft::test
