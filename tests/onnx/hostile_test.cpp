// Tests inconsistent files: each yields one error that names the file, the place and the fault.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "onnx/onnx-ml.pb.h"
#include "onnx/onnx_io.hpp"
#include "tests/support/text_model.hpp"

namespace graft::test {
namespace {

namespace fs = std::filesystem;

::onnx::NodeProto& add_node(::onnx::GraphProto& graph, const std::string& op_type, const std::string& input,
                            const std::string& output) {
  auto& node = *graph.add_node();
  node.set_op_type(op_type);
  node.set_name(op_type + "_node");
  node.add_input(input);
  node.add_output(output);
  return node;
}

/// Returns x -> Relu -> y with a constant w of two floats.
::onnx::ModelProto good_model() {
  ::onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(17);
  auto& graph = *proto.mutable_graph();
  graph.set_name("g");
  graph.add_input()->set_name("x");
  graph.add_output()->set_name("y");
  add_node(graph, "Relu", "x", "y");
  auto& tensor = *graph.add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(1);
  tensor.add_dims(2);
  tensor.add_float_data(1);
  tensor.add_float_data(2);
  return proto;
}

struct Case {
  const char* name;
  std::function<void(::onnx::ModelProto&)> spoil;
  std::vector<std::string> says;
};

::onnx::TensorProto& weight(::onnx::ModelProto& m) { return *m.mutable_graph()->mutable_initializer(0); }
::onnx::NodeProto& relu(::onnx::ModelProto& m) { return *m.mutable_graph()->mutable_node(0); }

void make_external(::onnx::ModelProto& m, const std::string& location, const std::string& offset = "0") {
  auto& tensor = weight(m);
  tensor.clear_float_data();
  tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
  auto add = [&](const char* key, const std::string& value) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", location);
  add("offset", offset);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> list{
      {"no_graph", [](auto& m) { m.clear_graph(); }, {"contains no graph"}},
      {"training", [](auto& m) { m.add_training_info(); }, {"training_info"}},
      {"negative_dim", [](auto& m) { weight(m).set_dims(0, -2); }, {"initializer 'w'", "dimension -2", "at least 0"}},
      {"dims_overflow",
       [](auto& m) {
         weight(m).set_dims(0, INT64_MAX);
         weight(m).add_dims(3);
       },
       {"'w'", "64 bits"}},
      {"bytes_overflow",
       [](auto& m) {
         weight(m).set_dims(0, INT64_MAX / 2);
         weight(m).clear_float_data();
         weight(m).set_raw_data("a");
       },
       {"'w'", "64 bits"}},
      {"complex_overflow",
       [](auto& m) {
         weight(m).set_dims(0, INT64_MAX / 2 + 1);
         weight(m).set_data_type(::onnx::TensorProto::COMPLEX64);
       },
       {"'w'", "64 bits"}},
      {"negative_sparse_dim",
       [](auto& m) {
         auto& sparse = *m.mutable_graph()->add_sparse_initializer();
         sparse.mutable_values()->set_name("s");
         sparse.add_dims(-3);
       },
       {"'s'", "dimension -3", "at least 0"}},
      {"too_little_data", [](auto& m) { weight(m).set_dims(0, 5); }, {"'w'", "2 elements", "need 5"}},
      {"too_much_raw_data", [](auto& m) { weight(m).set_raw_data(std::string(9, 'a')); }, {"'w'", "9 bytes", "need 8"}},
      {"undefined_type", [](auto& m) { weight(m).set_data_type(0); }, {"'w'", "element type"}},
      {"unknown_type", [](auto& m) { weight(m).set_data_type(99); }, {"'w'", "type 99"}},
      {"segment", [](auto& m) { weight(m).mutable_segment()->set_begin(1); }, {"'w'", "segments"}},
      {"unnamed_initializer",
       [](auto& m) { weight(m).set_name(""); },
       {"a name is empty; every initializer needs a name"}},
      {"initializer_twice",
       [](auto& m) { *m.mutable_graph()->add_initializer() = weight(m); },
       {"'w'", "defined twice"}},
      {"output_twice", [](auto& m) { add_node(*m.mutable_graph(), "Abs", "x", "y"); }, {"'y'", "defined twice"}},
      {"input_twice", [](auto& m) { m.mutable_graph()->add_input()->set_name("x"); }, {"'x'", "defined twice"}},
      {"initializer_is_output", [](auto& m) { weight(m).set_name("y"); }, {"'y'", "defined twice"}},
      {"undefined_input",
       [](auto& m) { relu(m).set_input(0, "nowhere"); },
       {"'Relu_node' (Relu)", "input 0 is 'nowhere'"}},
      {"undefined_output", [](auto& m) { m.mutable_graph()->mutable_output(0)->set_name("z"); }, {"graph output 'z'"}},
      {"cycle",
       [](auto& m) {
         relu(m).set_input(0, "a");
         add_node(*m.mutable_graph(), "Abs", "y", "a");
       },
       {"cycle"}},
      {"self", [](auto& m) { relu(m).set_input(0, "y"); }, {"'Relu_node' (Relu)", "cycle"}},
      {"no_op_type", [](auto& m) { relu(m).clear_op_type(); }, {"no op_type"}},
      {"negative_value_dim",
       [](auto& m) {
         m.mutable_graph()
             ->mutable_input(0)
             ->mutable_type()
             ->mutable_tensor_type()
             ->mutable_shape()
             ->add_dim()
             ->set_dim_value(-7);
       },
       {"'x'", "dimension -7"}},
      {"opset_of_the_future",
       [](auto& m) { m.mutable_opset_import(0)->set_version(99); },
       {"operator set 99", "1 to 28"}},
      {"ir_version_of_the_future", [](auto& m) { m.set_ir_version(99); }, {"IR version 99", "1 to 14"}},
      {"no_opset", [](auto& m) { m.clear_opset_import(); }, {"'Relu_node' (Relu)", "no operator set"}},
      {"two_opsets", [](auto& m) { m.add_opset_import()->set_version(13); }, {"versions 17 and 13"}},
      {"opset_zero", [](auto& m) { m.mutable_opset_import(0)->set_version(0); }, {"version 0"}},
      {"attribute_twice",
       [](auto& m) {
         for (int i = 0; i < 2; ++i) {
           auto& a = *relu(m).add_attribute();
           a.set_name("k");
           a.set_type(::onnx::AttributeProto::INT);
         }
       },
       {"'Relu_node' (Relu)", "`k` is given twice"}},
      {"attribute_without_value", [](auto& m) { relu(m).add_attribute()->set_name("k"); }, {"`k`", "no type"}},
      {"attribute_tensor_missing",
       [](auto& m) {
         auto& a = *relu(m).add_attribute();
         a.set_name("k");
         a.set_type(::onnx::AttributeProto::TENSOR);
       },
       {"`k`", "contains none"}},
      {"attribute_graph_missing",
       [](auto& m) {
         auto& a = *relu(m).add_attribute();
         a.set_name("k");
         a.set_type(::onnx::AttributeProto::GRAPH);
       },
       {"`k`", "contains none"}},
      {"reference_in_main_graph",
       [](auto& m) {
         auto& a = *relu(m).add_attribute();
         a.set_name("k");
         a.set_ref_attr_name("r");
       },
       {"`k`", "body of a function"}},
      {"nested_too_deep",
       [](auto& m) {
         auto* graph = m.mutable_graph();
         for (int i = 0; i < 27; ++i) {
           auto& node = add_node(*graph, "If", "x", "o" + std::to_string(i));
           auto& a = *node.add_attribute();
           a.set_name("then_branch");
           a.set_type(::onnx::AttributeProto::GRAPH);
           graph = a.mutable_g();
         }
       },
       {"deeper than 24"}},
      {"recursive_function",
       [](auto& m) {
         auto& f = *m.add_functions();
         f.set_domain("d");
         f.set_name("F");
         f.add_input("x");
         f.add_output("y");
         auto& node = *f.add_node();
         node.set_domain("d");
         node.set_op_type("F");
         node.add_input("x");
         node.add_output("y");
       },
       {"d::F", "calls itself"}},
      {"function_twice",
       [](auto& m) {
         for (int i = 0; i < 2; ++i) m.add_functions()->set_name("F");
       },
       {"::F is defined twice"}},
      {"function_undefined_output",
       [](auto& m) {
         auto& f = *m.add_functions();
         f.set_name("F");
         f.add_output("q");
       },
       {"function ::F", "'q'"}},
      {"function_undeclared_attribute",
       [](auto& m) {
         auto& f = *m.add_functions();
         f.set_name("F");
         f.add_opset_import()->set_version(17);
         auto& node = *f.add_node();
         node.set_op_type("Relu");
         auto& a = *node.add_attribute();
         a.set_name("k");
         a.set_ref_attr_name("r");
       },
       {"function ::F", "`r`", "does not declare"}},
      {"required_input_left_out",
       [](auto& m) {
         relu(m).set_op_type("Mod");
         relu(m).add_input("");
       },
       {"'Relu_node' (Mod)", "input 1 of Mod cannot be left out", "operator set 17"}},
      {"first_input_left_out",
       [](auto& m) {
         relu(m).set_op_type("Clip");
         relu(m).set_input(0, "");
         relu(m).add_input("x");
       },
       {"'Relu_node' (Clip)", "input 0 of Clip cannot be left out"}},
      {"too_few_inputs",
       [](auto& m) { relu(m).set_op_type("Add"); },
       {"(Add)", "Add takes 2 inputs, but the node has 1"}},
      {"too_many_inputs",
       [](auto& m) { relu(m).add_input("x"); },
       {"(Relu)", "Relu takes 1 input, but the node has 2"}},
      {"one_of_any_number_left_out",
       [](auto& m) {
         relu(m).set_op_type("Max");
         relu(m).add_input("");
       },
       {"(Max)", "input 1 of Max cannot be left out"}},
      {"no_output",
       [](auto& m) { m.mutable_graph()->add_node()->set_op_type("Relu"); },
       {"Relu takes 1 input, but the node has 0"}},
      {"required_output_left_out",
       [](auto& m) {
         auto& node = add_node(*m.mutable_graph(), "TopK", "x", "");
         node.add_input("w");
         node.add_output("i");
       },
       {"'TopK_node' (TopK)", "output 0 of TopK cannot be left out"}},
      {"too_many_outputs",
       [](auto& m) { relu(m).add_output("z"); },
       {"(Relu)", "Relu has 1 output, but the node has 2"}},
      {"left_out_of_an_old_form",
       [](auto& m) {
         m.mutable_opset_import(0)->set_version(12);
         relu(m).set_op_type("Resize");
         relu(m).add_input("");
         relu(m).add_input("w");
       },
       {"(Resize)", "input 1 of Resize cannot be left out", "operator set 12"}},
      {"left_out_in_a_branch",
       [](auto& m) {
         relu(m).set_op_type("If");
         auto& attribute = *relu(m).add_attribute();
         attribute.set_name("then_branch");
         attribute.set_type(::onnx::AttributeProto::GRAPH);
         auto& branch = *attribute.mutable_g();
         add_node(branch, "Mod", "x", "z").add_input("");
         branch.add_output()->set_name("z");
       },
       {"'Mod_node' (Mod)", "input 1 of Mod cannot be left out"}},
      {"left_out_in_a_function",
       [](auto& m) {
         auto& f = *m.add_functions();
         f.set_domain("d");
         f.set_name("F");
         f.add_input("x");
         f.add_opset_import()->set_version(17);
         auto& node = *f.add_node();
         node.set_op_type("Mod");
         node.add_input("x");
         node.add_input("");
         node.add_output("y");
       },
       {"function d::F", "input 1 of Mod cannot be left out"}},
      {"external_in_memory", [](auto& m) { make_external(m, "data"); }, {"'w'", "not read from a file"}},
  };
  return list;
}

class Hostile : public ::testing::TestWithParam<Case> {};

TEST_P(Hostile, IsRefusedByName) {
  ::onnx::ModelProto proto = good_model();
  ASSERT_EQ(error_of([&] { (void)onnx::parse_onnx(proto.SerializeAsString(), "", "bad.onnx"); }), "");
  GetParam().spoil(proto);
  const std::string error = error_of([&] { (void)onnx::parse_onnx(proto.SerializePartialAsString(), "", "bad.onnx"); });
  EXPECT_TRUE(error.starts_with("bad.onnx: ")) << error;
  for (const std::string& part : GetParam().says)
    EXPECT_NE(error.find(part), std::string::npos) << part << " in: " << error;
}

INSTANTIATE_TEST_SUITE_P(Files, Hostile, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

/// The reader accepts all that ONNX Runtime runs: optional inputs left out, also before other inputs, operators of
/// other domains and unknown names, forms of old operator sets.
TEST(LeftOutPorts, AreReadWhereTheSchemaHasThemOptional) {
  const auto read = [](const std::function<void(::onnx::ModelProto&)>& change) {
    ::onnx::ModelProto proto = good_model();
    change(proto);
    return error_of([&] { (void)onnx::parse_onnx(proto.SerializeAsString(), "", "good.onnx"); });
  };
  const auto inputs = [](const char* op_type, std::initializer_list<const char*> names, std::int64_t opset = 17) {
    return [=, names = std::vector<std::string>(names.begin(), names.end())](::onnx::ModelProto& m) {
      m.mutable_opset_import(0)->set_version(opset);
      relu(m).set_op_type(op_type);
      relu(m).clear_input();
      for (const std::string& name : names) relu(m).add_input(name);
    };
  };
  EXPECT_EQ(read(inputs("Clip", {"x", "", "w"})), "");
  EXPECT_EQ(read(inputs("Clip", {"x", "", ""})), "");
  EXPECT_EQ(read(inputs("Dropout", {"x", "", ""})), "");
  EXPECT_EQ(read(inputs("Resize", {"x", "", "w"})), "");
  EXPECT_EQ(read(inputs("Resize", {"x", "w"}, 10)), "");
  EXPECT_EQ(read(inputs("Loop", {"", "x", "w"})), "");
  EXPECT_EQ(read(inputs("Upsample", {"x"}, 8)), "");
  EXPECT_EQ(read(inputs("Upsample", {"x", "w"}, 17)), "") << "it is no operator of this operator set";
  EXPECT_EQ(read(inputs("Unknown", {"", "x"})), "");
  EXPECT_EQ(read([&](auto& m) {
              inputs("Mod", {"x", ""})(m);
              m.add_opset_import()->set_domain("other");
              m.mutable_opset_import(1)->set_version(1);
              relu(m).set_domain("other");
            }),
            "");
  EXPECT_EQ(read([&](auto& m) {
              inputs("BatchNormalization", {"x", "w", "w", "w", "w"}, 9)(m);
              for (int i = 0; i < 4; ++i) relu(m).add_output("");
            }),
            "");
}

class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "graft.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    fs::create_directory(folder_ / "model");
    std::ofstream(folder_ / "secret") << "12345678";
    std::ofstream(folder_ / "model" / "data") << "12345678";
    fs::create_symlink("../secret", folder_ / "model" / "link");
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string error(const std::string& location, const std::string& offset = "0") {
    ::onnx::ModelProto proto = good_model();
    make_external(proto, location, offset);
    std::ofstream(folder_ / "model" / "m.onnx", std::ios::binary) << proto.SerializeAsString();
    return error_of([&] { (void)onnx::read_onnx(folder_ / "model" / "m.onnx"); });
  }

  fs::path folder_;
};

TEST_F(ExternalData, StaysInTheModelsFolder) {
  EXPECT_EQ(error("data"), "");
  EXPECT_NE(error("../secret").find("not contain '..'"), std::string::npos);
  EXPECT_NE(error("a/../../secret").find("not contain '..'"), std::string::npos);
  EXPECT_NE(error((folder_ / "secret").string()).find("inside the model's folder"), std::string::npos);
  EXPECT_NE(error("link").find("outside the model's folder"), std::string::npos);
  EXPECT_NE(error("").find("inside the model's folder"), std::string::npos);
  EXPECT_NE(error(std::string("data\0x", 6)).find("inside the model's folder"), std::string::npos);
}

TEST_F(ExternalData, HasToBeThereInFull) {
  EXPECT_NE(error("nothing").find("No such file"), std::string::npos);
  EXPECT_NE(error(".").find("'w'"), std::string::npos);
  EXPECT_NE(error("data", "1").find("8 bytes; 8 from byte 1 on are needed"), std::string::npos);
  EXPECT_NE(error("data", "9223372036854775807").find("from byte 9223372036854775807"), std::string::npos);
  EXPECT_NE(error("data", "-1").find("offset is '-1'"), std::string::npos);
  EXPECT_NE(error("data", "99999999999999999999").find("offset is"), std::string::npos);
  EXPECT_NE(error("data", "0x0").find("offset is"), std::string::npos);
}

TEST(HostileFiles, AreNoFiles) {
  EXPECT_NE(error_of([] { (void)onnx::read_onnx("/nonexistent/m.onnx"); }).find("No such file"), std::string::npos);
  EXPECT_NE(error_of([] { (void)onnx::read_onnx("/"); }).find("directory"), std::string::npos);
  EXPECT_NE(error_of([] { (void)onnx::read_onnx("/dev/null"); }).find("not a regular file"), std::string::npos);
  EXPECT_NE(error_of([] { (void)onnx::parse_onnx("", "", "empty.onnx"); }).find("empty.onnx: it contains no graph"),
            std::string::npos);
  EXPECT_NE(error_of([] {
              (void)onnx::parse_onnx("not a model", "", "text.onnx");
            }).find("text.onnx: this is not an ONNX file"),
            std::string::npos);
}

}  // namespace
}  // namespace graft::test
