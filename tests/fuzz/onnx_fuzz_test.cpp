// Tests the reader with malformed ONNX files: damaged copies, files that the fuzzer found, and handwritten files.

#include "onnx/onnx-ml.pb.h"
#include "onnx/wire.hpp"
#include "tests/fuzz/spoiled.hpp"
#include "tests/support/folders.hpp"

namespace graft::fuzz {
namespace {

std::vector<std::string> models() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"models", "near_misses", "exports"}) {
    const auto path = golden_folder() / folder;
    if (!std::filesystem::exists(path)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() == ".onnx" && entry.file_size() < 4096) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> contents;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return contents;
}

TEST(OnnxFuzz, Corpus) {
  for (const std::string& bytes : corpus("onnx")) expect_bounded(bytes);
}

TEST(OnnxFuzz, Truncated) {
  ASSERT_GE(models().size(), 10U);
  cut_short(some_of(models(), 4), 8);
}

TEST(OnnxFuzz, FlippedBitsAndOverwrittenBytes) { flip_and_overwrite(some_of(models(), 4), 8); }
TEST(OnnxFuzz, OtherFields) { change_fields(some_of(models(), 4), 8); }
TEST(OnnxFuzz, RandomBytes) { random_bytes(); }

// ---- Handwritten files

constexpr std::int64_t huge = std::int64_t{1} << 40;
constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

::onnx::ModelProto empty_model() {
  ::onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  model.mutable_graph()->set_name("graph");
  return model;
}

::onnx::ValueInfoProto* describe(::onnx::ValueInfoProto* info, const std::string& name,
                                 const std::vector<std::int64_t>& dims, int type = 1) {
  info->set_name(name);
  info->mutable_type()->mutable_tensor_type()->set_elem_type(type);
  auto* shape = info->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const std::int64_t dim : dims) shape->add_dim()->set_dim_value(dim);
  return info;
}

void add_input(::onnx::ModelProto& model, const std::string& name, const std::vector<std::int64_t>& dims) {
  describe(model.mutable_graph()->add_input(), name, dims);
}

void add_output(::onnx::ModelProto& model, const std::string& name) {
  model.mutable_graph()->add_output()->set_name(name);
}

template <class Owner>
::onnx::NodeProto& add_node(Owner& owner, const std::string& op, const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs) {
  ::onnx::NodeProto& node = *owner.add_node();
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

void add_ints(::onnx::ModelProto& model, const std::string& name, const std::vector<std::int64_t>& values,
              bool scalar = false) {
  ::onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(::onnx::TensorProto::INT64);
  if (!scalar) tensor.add_dims(static_cast<std::int64_t>(values.size()));
  for (const std::int64_t value : values) tensor.add_int64_data(value);
}

void add_floats(::onnx::ModelProto& model, const std::string& name, const std::vector<std::int64_t>& dims,
                std::size_t count) {
  ::onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  for (const std::int64_t dim : dims) tensor.add_dims(dim);
  for (std::size_t i = 0; i < count; ++i) tensor.add_float_data(0.5F);
}

void set_ints(::onnx::NodeProto& node, const std::string& name, const std::vector<std::int64_t>& values) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute.add_ints(value);
}

void set_int(::onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  ::onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(::onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void expect_bounded(const ::onnx::ModelProto& model) { fuzz::expect_bounded(model.SerializePartialAsString()); }

TEST(OnnxHostile, ConstantsOfAnySizeFromAFewBytes) {
  for (const std::int64_t size : {huge, highest, std::int64_t{1} << 28, std::int64_t{1} << 31}) {
    for (const std::vector<std::int64_t>& declared : {std::vector<std::int64_t>{}, {3}, {size}}) {
      ::onnx::ModelProto model = empty_model();
      add_input(model, "x", {1});
      add_ints(model, "shape", {size});
      add_ints(model, "size", {size}, true);
      add_ints(model, "zero", {0}, true);
      add_ints(model, "one", {1}, true);
      add_floats(model, "number", {1}, 1);
      add_node(*model.mutable_graph(), "ConstantOfShape", {"shape"}, {"a"});
      add_node(*model.mutable_graph(), "Range", {"zero", "size", "one"}, {"b"});
      add_node(*model.mutable_graph(), "Tile", {"number", "shape"}, {"c"});
      add_node(*model.mutable_graph(), "Expand", {"number", "shape"}, {"d"});
      for (const char* name : {"a", "b", "c", "d"}) {
        if (!declared.empty())
          describe(model.mutable_graph()->add_value_info(), name, declared, name[0] == 'b' ? 7 : 1);
        add_node(*model.mutable_graph(), "Shape", {name}, {std::string("shape_") + name});
        add_node(*model.mutable_graph(), "Sum", {name, name}, {std::string("sum_") + name});
        add_output(model, std::string("sum_") + name);
        add_output(model, std::string("shape_") + name);
      }
      expect_bounded(model);
    }
  }
}

TEST(OnnxHostile, ConstantsThatDoubleAndDouble) {
  ::onnx::ModelProto model = empty_model();
  add_floats(model, "x0", {1024}, 1024);
  for (int i = 0; i < 40; ++i) {
    const std::string from = "x" + std::to_string(i);
    set_int(add_node(*model.mutable_graph(), "Concat", {from, from}, {"x" + std::to_string(i + 1)}), "axis", 0);
  }
  add_node(*model.mutable_graph(), "ReduceMax", {"x40"}, {"y"});
  add_output(model, "y");
  expect_bounded(model);
}

TEST(OnnxHostile, ManyConstantsThatGrow) {
  ::onnx::ModelProto model = empty_model();
  add_input(model, "x", {1});
  add_floats(model, "number", {1}, 1);
  add_ints(model, "shape", {1 << 17});
  for (int i = 0; i < 500; ++i) {
    const std::string name = "a" + std::to_string(i);
    add_node(*model.mutable_graph(), "Expand", {"number", "shape"}, {name});
    add_node(*model.mutable_graph(), "Mul", {"x", name}, {"y" + std::to_string(i)});
    add_output(model, "y" + std::to_string(i));
  }
  expect_bounded(model);
}

TEST(OnnxHostile, Dimensions) {
  for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{lowest},
                                                {-1},
                                                {-2, 3},
                                                {highest},
                                                {highest, highest},
                                                {0, highest, highest},
                                                {huge, huge, huge, 0},
                                                {std::int64_t{1} << 32, std::int64_t{1} << 32},
                                                {0},
                                                {},
                                                {highest, 2, 0}}) {
    ::onnx::ModelProto model = empty_model();
    add_input(model, "x", dims);
    add_floats(model, "w", dims, 0);
    const char* ops[] = {"Conv",
                         "ConvTranspose",
                         "MatMul",
                         "Add",
                         "Gemm",
                         "PRelu",
                         "BatchNormalization",
                         "MaxPool",
                         "GlobalAveragePool",
                         "Flatten",
                         "Transpose",
                         "Softmax",
                         "LRN",
                         "Size",
                         "Shape",
                         "DepthToSpace",
                         "SpaceToDepth",
                         "ReduceMean",
                         "Squeeze",
                         "NonZero",
                         "Identity",
                         "Split",
                         "Gather",
                         "Dropout"};
    for (const char* op : ops) {
      ::onnx::ModelProto one = model;
      auto& node = add_node(*one.mutable_graph(), op, {"x", "w"}, {"y"});
      if (std::string(op) == "MaxPool") {
        set_ints(node, "kernel_shape", {3});
        set_ints(node, "strides", {highest});
        set_ints(node, "pads", {highest, lowest});
      }
      set_int(node, "blocksize", huge);
      add_output(one, "y");
      expect_bounded(one);
    }
  }
}

TEST(OnnxHostile, AttributesAtTheEndsOfTheirRange) {
  for (const std::int64_t value : {lowest, highest, std::int64_t{-1}, std::int64_t{0}, huge}) {
    for (const char* op : {"MaxPool", "AveragePool", "Conv", "ConvTranspose", "LpPool"}) {
      for (int which = 0; which < 6; ++which) {
        ::onnx::ModelProto model = empty_model();
        add_input(model, "x", {1, 4, 8, 8});
        add_floats(model, "w", {4, 4, 3, 3}, 144);
        auto& node = add_node(*model.mutable_graph(), op, {"x", "w"}, {"y"});
        if (std::string(op).ends_with("Pool")) node.mutable_input()->RemoveLast();
        set_ints(node, "kernel_shape", which == 0 ? std::vector{value, value} : std::vector<std::int64_t>{3, 3});
        if (which == 1) set_ints(node, "strides", {value, value});
        if (which == 2) set_ints(node, "dilations", {value, value});
        if (which == 3) set_ints(node, "pads", {value, value, value, value});
        if (which == 4) set_int(node, "group", value);
        if (which == 5) set_int(node, "ceil_mode", value);
        add_output(model, "y");
        expect_bounded(model);
      }
    }
    for (const char* op : {"Concat",  "Softmax",      "Flatten",      "Split",    "Gather", "ReduceMean", "Unsqueeze",
                           "Squeeze", "DepthToSpace", "SpaceToDepth", "ArgMax",   "TopK",   "Cast",       "Shape",
                           "LRN",     "OneHot",       "Slice",        "Resize",   "Pad",    "Reshape",    "Tile",
                           "Expand",  "Trilu",        "EyeLike",      "GatherND", "CumSum"}) {
      ::onnx::ModelProto model = empty_model();
      add_input(model, "x", {2, 4, 8, 8});
      add_ints(model, "n", {value, value, value, value});
      add_ints(model, "one", {value});
      auto& node = add_node(*model.mutable_graph(), op, {"x", "n", "n", "one", "one"}, {"y"});
      for (const char* attribute : {"axis", "blocksize", "to", "start", "end", "size", "batch_dims", "dtype"}) {
        set_int(node, attribute, value);
      }
      set_ints(node, "axes", {value});
      add_output(model, "y");
      expect_bounded(model);
      node.mutable_input()->DeleteSubrange(1, 4);
      expect_bounded(model);
    }
  }
}

TEST(OnnxHostile, NestedSubgraphs) {
  for (const int depth : {20, 24, 25, 40, 90, 400}) {
    ::onnx::ModelProto model = empty_model();
    add_input(model, "condition", {});
    ::onnx::GraphProto* graph = model.mutable_graph();
    for (int i = 0; i < depth; ++i) {
      const std::string output = "y" + std::to_string(i);
      ::onnx::NodeProto& node = add_node(*graph, "If", {"condition"}, {output});
      graph->add_output()->set_name(output);
      ::onnx::AttributeProto& otherwise = *node.add_attribute();
      otherwise.set_name("else_branch");
      otherwise.set_type(::onnx::AttributeProto::GRAPH);
      add_node(*otherwise.mutable_g(), "Identity", {"condition"}, {output + "_else"});
      otherwise.mutable_g()->add_output()->set_name(output + "_else");
      ::onnx::AttributeProto& then = *node.add_attribute();
      then.set_name("then_branch");
      then.set_type(::onnx::AttributeProto::GRAPH);
      graph = then.mutable_g();
    }
    add_node(*graph, "Identity", {"condition"}, {"last"});
    graph->add_output()->set_name("last");
    expect_bounded(model);
  }
}

/// Returns a model in which f0 calls f1 `calls` times, f1 calls f2 and so on; the last function has `nodes` nodes.
::onnx::ModelProto tower(int functions, int calls, int nodes, bool recursive) {
  ::onnx::ModelProto model = empty_model();
  model.add_opset_import()->set_domain("f");
  model.mutable_opset_import(1)->set_version(1);
  add_input(model, "x", {2});
  add_node(*model.mutable_graph(), "f0", {"x"}, {"y"}).set_domain("f");
  add_output(model, "y");
  for (int i = 0; i < functions; ++i) {
    ::onnx::FunctionProto& function = *model.add_functions();
    function.set_domain("f");
    function.set_name("f" + std::to_string(i));
    function.add_input("x");
    function.add_output("y");
    function.add_opset_import()->set_version(17);
    ::onnx::OperatorSetIdProto& own = *function.add_opset_import();
    own.set_domain("f");
    own.set_version(1);
    const bool last = i + 1 == functions;
    std::string value = "x";
    const int count = last && !recursive ? nodes : calls;
    for (int call = 0; call < count; ++call) {
      const std::string next = call + 1 == count ? "y" : "v" + std::to_string(call);
      if (last && !recursive) {
        add_node(function, "Relu", {value}, {next});
      } else {
        add_node(function, "f" + std::to_string(last ? 0 : i + 1), {value}, {next}).set_domain("f");
      }
      value = next;
    }
    if (count == 0) function.set_output(0, "x");
  }
  return model;
}

TEST(OnnxHostile, FunctionsThatCallEachOther) {
  expect_bounded(tower(40, 2, 1, false));    // 2^40 nodes
  expect_bounded(tower(40, 2, 0, false));    // 2^40 calls of nothing
  expect_bounded(tower(12, 2, 3, false));    // 12288 nodes
  expect_bounded(tower(5000, 1, 1, false));  // one after another
  expect_bounded(tower(300, 1, 1, true));    // round and round
  expect_bounded(tower(1, 1, 1, true));      // itself
  expect_bounded(tower(2, 5000, 1, false));  // wide
}

TEST(OnnxHostile, CyclesAndNames) {
  ::onnx::ModelProto model = empty_model();
  add_node(*model.mutable_graph(), "Relu", {"b"}, {"a"});
  add_node(*model.mutable_graph(), "Relu", {"a"}, {"b"});
  add_output(model, "b");
  expect_bounded(model);

  for (const std::string& name : {std::string("a\0b", 3), std::string("\xff\xfe\x80"), std::string(200'000, 'n'),
                                  std::string("{}"), std::string("a\nb"),
                                  std::string("\x01"
                                              "0")}) {
    model = empty_model();
    add_input(model, name, {1, 4, 8, 8});
    add_node(*model.mutable_graph(), "LeakyRelu", {name}, {name + "y"}).set_name(name);
    add_node(*model.mutable_graph(), name, {name + "y"}, {name + "z"}).set_domain(name);
    add_output(model, name + "y");
    expect_bounded(model);
  }
}

TEST(OnnxHostile, Chains) {
  constexpr int count = 2'000;
  for (const std::string op : {"Identity", "Transpose", "Relu", "Add", "Neg", "Cast", "Reshape"}) {
    ::onnx::ModelProto model = empty_model();
    add_input(model, "x0", {2, 3});
    add_ints(model, "shape", {3, 2});
    for (int i = 0; i < count; ++i) {
      const std::string from = "x" + std::to_string(i);
      std::vector<std::string> inputs{from};
      if (op == "Add") inputs.push_back(from);
      if (op == "Reshape") inputs.emplace_back("shape");
      auto& node = add_node(*model.mutable_graph(), op, inputs, {"x" + std::to_string(i + 1)});
      if (op == "Transpose") set_ints(node, "perm", {1, 0});
      if (op == "Cast") set_int(node, "to", i % 2 == 0 ? 11 : 1);
    }
    add_output(model, "x" + std::to_string(count));
    expect_bounded(model);
  }
}

TEST(OnnxHostile, ConstantChains) {
  constexpr int count = 1'000;
  ::onnx::ModelProto model = empty_model();
  add_input(model, "x", {2, 2});
  add_floats(model, "c0", {2, 2}, 4);
  for (int i = 0; i < count; ++i) {
    const std::string next = "c" + std::to_string(i + 1);
    add_node(*model.mutable_graph(), "Neg", {"c" + std::to_string(i)}, {next});
    add_node(*model.mutable_graph(), "Add", {"x", next}, {"y" + std::to_string(i)});
    add_output(model, "y" + std::to_string(i));
  }
  expect_bounded(model);
}

TEST(OnnxHostile, OneValueWithManyReaders) {
  constexpr int count = 2'000;
  for (const std::string op : {"Identity", "Relu", "Transpose", "Shape", "Cast"}) {
    ::onnx::ModelProto model = empty_model();
    add_input(model, "input", {2, 3});
    add_node(*model.mutable_graph(), "Transpose", {"input"}, {"x"});
    std::vector<std::string> outputs;
    for (int i = 0; i < count; ++i) {
      outputs.push_back("y" + std::to_string(i));
      auto& node = add_node(*model.mutable_graph(), op, {"x"}, {outputs.back()});
      if (op == "Cast") set_int(node, "to", 1);
    }
    set_int(add_node(*model.mutable_graph(), "Concat", outputs, {"z"}), "axis", 0);
    add_output(model, "z");
    expect_bounded(model);
    for (const std::string& name : outputs) add_output(model, name);
    expect_bounded(model);
  }
}

TEST(OnnxHostile, ManyInputsAndOutputsOfOneNode) {
  constexpr int count = 5'000;
  ::onnx::ModelProto model = empty_model();
  add_input(model, "x", {count, 2});
  std::vector<std::string> parts;
  for (int i = 0; i < count; ++i) parts.push_back("p" + std::to_string(i));
  set_int(add_node(*model.mutable_graph(), "Split", {"x"}, parts), "axis", 0);
  set_int(add_node(*model.mutable_graph(), "Concat", parts, {"y"}), "axis", 1);
  add_output(model, "y");
  for (int i = 0; i < count; ++i) add_output(model, "y");
  expect_bounded(model);
}

TEST(OnnxHostile, ManyAttributesAndUnusedThings) {
  constexpr int count = 5'000;
  ::onnx::ModelProto model = empty_model();
  add_input(model, "x", {2});
  auto& node = add_node(*model.mutable_graph(), "Relu", {"x"}, {"y"});
  for (int i = 0; i < count; ++i) set_int(node, "a" + std::to_string(i), i);
  for (int i = 0; i < count; ++i) add_input(model, "i" + std::to_string(i), {1});
  for (int i = 0; i < count; ++i) add_ints(model, "c" + std::to_string(i), {1});
  for (int i = 0; i < count; ++i) describe(model.mutable_graph()->add_value_info(), "v" + std::to_string(i), {1});
  add_output(model, "y");
  expect_bounded(model);
}

TEST(OnnxHostile, HighRanks) {
  constexpr int rank = 50'000;
  ::onnx::ModelProto model = empty_model();
  add_input(model, "x", std::vector<std::int64_t>(rank, 1));
  add_floats(model, "w", std::vector<std::int64_t>(rank, 1), 1);
  std::vector<std::int64_t> order;
  for (int i = 0; i < rank; ++i) order.push_back(rank - 1 - i);
  set_ints(add_node(*model.mutable_graph(), "Transpose", {"x"}, {"t"}), "perm", order);
  set_ints(add_node(*model.mutable_graph(), "Transpose", {"t"}, {"u"}), "perm", order);
  add_node(*model.mutable_graph(), "Add", {"u", "w"}, {"v"});
  add_node(*model.mutable_graph(), "Squeeze", {"v"}, {"q"});
  add_node(*model.mutable_graph(), "Flatten", {"v"}, {"f"});
  set_ints(add_node(*model.mutable_graph(), "ReduceMean", {"v"}, {"r"}), "axes", order);
  for (const char* name : {"q", "f", "r"}) add_output(model, name);
  expect_bounded(model);
}

TEST(OnnxHostile, SymbolsThatGrow) {
  ::onnx::ModelProto model = empty_model();
  add_input(model, "x0", {-1, -1});
  for (int i = 0; i < 40; ++i) {
    const std::string from = "x" + std::to_string(i);
    set_int(add_node(*model.mutable_graph(), "Concat", {from, from}, {"c" + std::to_string(i)}), "axis", i % 2);
    add_node(*model.mutable_graph(), "Shape", {"c" + std::to_string(i)}, {"s" + std::to_string(i)});
    add_node(*model.mutable_graph(), "Mul", {"s" + std::to_string(i), "s" + std::to_string(i)},
             {"m" + std::to_string(i)});
    add_node(*model.mutable_graph(), "Expand", {"c" + std::to_string(i), "m" + std::to_string(i)},
             {"x" + std::to_string(i + 1)});
  }
  add_output(model, "x40");
  expect_bounded(model);
}

TEST(OnnxHostile, BytesThatDoNotFitTheirType) {
  for (const int type : {1, 2, 7, 8, 9, 10, 11, 14, 15, 16, 17, 21, 22, 23, 25, 27, 28, 99, -1}) {
    for (const std::size_t size : {0U, 1U, 3U, 7U, 8U, 9U, 16U}) {
      for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{}, {1}, {2}, {3}, {0}, {huge}}) {
        ::onnx::ModelProto model = empty_model();
        ::onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
        tensor.set_name("w");
        tensor.set_data_type(type);
        for (const std::int64_t dim : dims) tensor.add_dims(dim);
        tensor.set_raw_data(std::string(size, '\x7f'));
        add_node(*model.mutable_graph(), "Identity", {"w"}, {"y"});
        add_node(*model.mutable_graph(), "Mul", {"y", "w"}, {"z"});
        add_output(model, "z");
        expect_bounded(model);
      }
    }
  }
}

/// Checks that reading is not quadratic in a message with many small fields and many large ones.
TEST(OnnxHostile, ManyFieldsOfData) {
  constexpr int small_count = 200'000;
  constexpr int large_count = 8000;
  ::onnx::TensorProto dims;
  for (int i = 0; i < small_count; ++i) dims.add_dims(1);
  std::string tensor = dims.SerializeAsString();
  const auto append = [](std::string& out, int field, const std::string& content) {
    onnx::append_varint(out, (static_cast<std::uint64_t>(field) << 3U) | onnx::wire_length);
    onnx::append_varint(out, content.size());
    out += content;
  };
  for (int i = 0; i < large_count; ++i) append(tensor, ::onnx::TensorProto::kRawDataFieldNumber, std::string(256, 'a'));
  std::string graph;
  append(graph, ::onnx::GraphProto::kInitializerFieldNumber, tensor);
  std::string model = empty_model().SerializeAsString();
  append(model, ::onnx::ModelProto::kGraphFieldNumber, graph);
  fuzz::expect_bounded(model);
}

/// Checks that the data of a large file are not copied several times.
TEST(OnnxHostile, MemoryOfALargeFile) {
  ::onnx::ModelProto model = empty_model();
  add_input(model, "x", {1, 1024});
  ::onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(::onnx::TensorProto::FLOAT);
  tensor.add_dims(1024);
  tensor.add_dims(8192);
  tensor.set_raw_data(std::string(std::size_t{1024} * 8192 * 4, '\1'));
  set_ints(add_node(*model.mutable_graph(), "Transpose", {"w"}, {"t"}), "perm", {0, 1});
  add_node(*model.mutable_graph(), "MatMul", {"x", "t"}, {"y"});
  add_output(model, "y");
  expect_bounded(model);
}

}  // namespace
}  // namespace graft::fuzz
