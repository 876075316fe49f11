// Tests the reader with malformed TensorFlow graphs: damaged copies, files that the fuzzer found, and handwritten
// files.
#include <limits>

#include "tensorflow/graph_def.pb.h"
#include "tests/fuzz/spoiled.hpp"
#include "tests/fuzz/stored_parts.hpp"

namespace graft::fuzz {
namespace {

std::vector<std::string> graphs() {
  std::vector<std::string> result;
  for (const auto& [name, bytes] : stored_parts("tensorflow", "graph")) {
    if (bytes.size() < 4096) result.push_back(bytes);
  }
  return result;
}

TEST(TensorFlowFuzz, Corpus) {
  for (const std::string& bytes : corpus("tensorflow")) expect_bounded(bytes);
}

TEST(TensorFlowFuzz, Truncated) {
  ASSERT_GE(graphs().size(), 100U);
  cut_short(some_of(graphs(), 2), 8);
}

TEST(TensorFlowFuzz, FlippedBitsAndOverwrittenBytes) { flip_and_overwrite(some_of(graphs(), 2), 8); }
TEST(TensorFlowFuzz, OtherFields) { change_fields(some_of(graphs(), 2), 8); }
TEST(TensorFlowFuzz, RandomBytes) { random_bytes(); }

// ---- Handwritten files

constexpr std::int64_t huge = std::int64_t{1} << 40;
constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
constexpr tensorflow::DataType f32 = tensorflow::DT_FLOAT;

template <class Nodes>
tensorflow::NodeDef& add_node(Nodes* nodes, const std::string& op, const std::string& name,
                              const std::vector<std::string>& inputs) {
  tensorflow::NodeDef& node = *nodes->Add();
  node.set_op(op);
  node.set_name(name);
  for (const std::string& input : inputs) node.add_input(input);
  return node;
}

tensorflow::NodeDef& add_node(tensorflow::GraphDef& graph, const std::string& op, const std::string& name,
                              const std::vector<std::string>& inputs) {
  tensorflow::NodeDef& node = add_node(graph.mutable_node(), op, name, inputs);
  (*node.mutable_attr())["T"].set_type(f32);
  return node;
}

void add_placeholder(tensorflow::GraphDef& graph, const std::string& name, const std::vector<std::int64_t>& dims) {
  tensorflow::NodeDef& node = add_node(graph, "Placeholder", name, {});
  (*node.mutable_attr())["dtype"].set_type(f32);
  auto* shape = (*node.mutable_attr())["shape"].mutable_shape();
  for (const std::int64_t dim : dims) shape->add_dim()->set_size(dim);
}

void add_ints(tensorflow::GraphDef& graph, const std::string& name, const std::vector<std::int64_t>& values,
              bool scalar = false) {
  tensorflow::NodeDef& node = add_node(graph, "Const", name, {});
  (*node.mutable_attr())["dtype"].set_type(tensorflow::DT_INT64);
  auto* tensor = (*node.mutable_attr())["value"].mutable_tensor();
  tensor->set_dtype(tensorflow::DT_INT64);
  if (!scalar) tensor->mutable_tensor_shape()->add_dim()->set_size(static_cast<std::int64_t>(values.size()));
  for (const std::int64_t value : values) tensor->add_int64_val(value);
}

/// Adds a Const of shape `dims` that stores only `given` elements; the last one stands for all following elements.
void add_floats(tensorflow::GraphDef& graph, const std::string& name, const std::vector<std::int64_t>& dims,
                int given = 1) {
  tensorflow::NodeDef& node = add_node(graph, "Const", name, {});
  (*node.mutable_attr())["dtype"].set_type(f32);
  auto* tensor = (*node.mutable_attr())["value"].mutable_tensor();
  tensor->set_dtype(f32);
  for (const std::int64_t dim : dims) tensor->mutable_tensor_shape()->add_dim()->set_size(dim);
  for (int i = 0; i < given; ++i) tensor->add_float_val(0.5F);
}

void expect_bounded(const tensorflow::GraphDef& graph) { fuzz::expect_bounded(graph.SerializePartialAsString()); }

/// Returns a graph in which f0 calls f1 `calls` times, f1 calls f2 and so on; the last function has `nodes` nodes.
tensorflow::GraphDef tower(int functions, int calls, int nodes, bool recursive, bool named,
                           const std::string& name = "n") {
  tensorflow::GraphDef graph;
  add_placeholder(graph, "x", {2});
  const auto call = [&](auto* owner, const std::string& function, const std::string& node_name,
                        const std::string& input) {
    tensorflow::NodeDef& node = add_node(owner, named ? "PartitionedCall" : function, node_name, {input});
    if (named) (*node.mutable_attr())["f"].mutable_func()->set_name(function);
  };
  call(graph.mutable_node(), "f0", "y", "x");
  for (int i = 0; i < functions; ++i) {
    tensorflow::FunctionDef& function = *graph.mutable_library()->add_function();
    function.mutable_signature()->set_name("f" + std::to_string(i));
    function.mutable_signature()->add_input_arg()->set_name("x");
    function.mutable_signature()->add_output_arg()->set_name("y");
    const bool last = i + 1 == functions;
    std::string value = "x";
    const int count = last && !recursive ? nodes : calls;
    for (int each = 0; each < count; ++each) {
      const std::string next = name + std::to_string(each);
      if (last && !recursive) {
        add_node(function.mutable_node_def(), "Relu", next, {value});
      } else {
        call(function.mutable_node_def(), "f" + std::to_string(last ? 0 : i + 1), next, value);
      }
      value = next + ":y:0";
    }
    (*function.mutable_ret())["y"] = value;
  }
  return graph;
}

TEST(TensorFlowHostile, FunctionsThatCallEachOther) {
  for (const bool named : {false, true}) {
    expect_bounded(tower(40, 2, 1, false, named));                            // 2^40 nodes
    expect_bounded(tower(24, 2, 0, false, named));                            // 2^24 calls of nothing
    expect_bounded(tower(20, 2, 1, false, named, std::string(10'000, 'n')));  // long names
    expect_bounded(tower(11, 2, 3, false, named));                            // 6144 nodes
    expect_bounded(tower(5000, 1, 1, false, named));                          // one after another
    expect_bounded(tower(20, 1, 1, true, named));                             // round and round
    expect_bounded(tower(1, 1, 1, true, named));                              // itself
    expect_bounded(tower(2, 5000, 1, false, named));                          // wide
  }
}

TEST(TensorFlowHostile, ConstantsOfAnySizeFromAFewBytes) {
  for (const std::int64_t size : {huge, highest, std::int64_t{1} << 28, std::int64_t{1} << 18}) {
    tensorflow::GraphDef graph;
    add_placeholder(graph, "x", {1});
    add_ints(graph, "shape", {size});
    add_ints(graph, "size", {size}, true);
    add_ints(graph, "zero", {0}, true);
    add_ints(graph, "one", {1}, true);
    add_floats(graph, "number", {}, 1);
    add_floats(graph, "filled", {size}, 1);
    add_node(graph, "Fill", "a", {"shape", "number"});
    add_node(graph, "Range", "b", {"zero", "size", "one"});
    add_node(graph, "Tile", "c", {"filled", "shape"});
    add_node(graph, "BroadcastTo", "d", {"number", "shape"});
    for (const char* name : {"a", "b", "c", "d", "filled"}) {
      add_node(graph, "AddV2", std::string("y_") + name, {"x", name});
      expect_bounded(graph);
    }
  }
}

TEST(TensorFlowHostile, ManyConstantsThatAreFilled) {
  for (const int given : {1, 2}) {
    tensorflow::GraphDef graph;
    add_placeholder(graph, "x", {1});
    for (int i = 0; i < 500; ++i) {
      add_floats(graph, "c" + std::to_string(i), {1 << 18}, given);
      add_node(graph, "AddV2", "y" + std::to_string(i), {"x", "c" + std::to_string(i)});
    }
    expect_bounded(graph);
  }
}

TEST(TensorFlowHostile, Dimensions) {
  for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{lowest},
                                                {-1},
                                                {-2, 3, 4, 5},
                                                {highest},
                                                {1, highest, highest, 3},
                                                {0, highest, 1, 3},
                                                {1, huge, huge, 0},
                                                {0},
                                                {},
                                                {highest, 2, 0, 1},
                                                {1, 8, 8, highest},
                                                {1, highest, 8, 4}}) {
    for (const char* op : {"Conv2D",
                           "DepthwiseConv2dNative",
                           "Conv2DBackpropInput",
                           "MatMul",
                           "BatchMatMulV2",
                           "BiasAdd",
                           "MaxPool",
                           "AvgPool",
                           "Reshape",
                           "Transpose",
                           "ExpandDims",
                           "Squeeze",
                           "Mean",
                           "Softmax",
                           "SpaceToDepth",
                           "DepthToSpace",
                           "SpaceToBatchND",
                           "BatchToSpaceND",
                           "Pad",
                           "MirrorPad",
                           "StridedSlice",
                           "ResizeBilinear",
                           "ResizeNearestNeighbor",
                           "ConcatV2",
                           "Pack",
                           "Unpack",
                           "Split",
                           "GatherV2",
                           "Tile",
                           "LRN",
                           "FusedBatchNormV3",
                           "OneHot",
                           "ArgMax",
                           "TopKV2",
                           "ReverseV2",
                           "Slice",
                           "Cumsum",
                           "Rank",
                           "Size",
                           "Shape",
                           "ZerosLike",
                           "L2Loss"}) {
      for (const bool constant : {false, true}) {
        tensorflow::GraphDef graph;
        add_placeholder(graph, "x", dims);
        if (constant) {
          add_floats(graph, "w", dims, 0);
        } else {
          add_floats(graph, "w", {3, 3, 3, 8}, 1);
        }
        add_ints(graph, "n", {lowest, highest, huge, 0});
        add_ints(graph, "one", {1}, true);
        const std::string name = op;
        std::vector<std::string> inputs{"x", "w"};
        if (name == "Reshape" || name == "Pad" || name == "Tile" || name == "Transpose" || name == "MirrorPad") {
          inputs = {"x", "n"};
        } else if (name == "Slice" || name == "SpaceToBatchND" || name == "BatchToSpaceND") {
          inputs = {"x", "n", "n"};
        } else if (name == "StridedSlice") {
          inputs = {"x", "n", "n", "n"};
        } else if (name == "Split") {
          inputs = {"one", "x"};
        } else if (name == "Conv2DBackpropInput") {
          inputs = {"n", "w", "x"};
        } else if (name == "ConcatV2") {
          inputs = {"x", "x", "one"};
        } else if (name == "FusedBatchNormV3") {
          inputs = {"x", "w", "w", "w", "w"};
        } else if (name == "Mean" || name == "ExpandDims" || name == "ArgMax" || name == "TopKV2" || name == "Cumsum") {
          inputs = {"x", "one"};
        }
        tensorflow::NodeDef& node = add_node(graph, op, "y", inputs);
        auto& attributes = *node.mutable_attr();
        for (const char* list : {"ksize", "strides", "dilations"}) {
          for (const std::int64_t number : {std::int64_t{1}, highest, std::int64_t{2}, std::int64_t{1}}) {
            attributes[list].mutable_list()->add_i(number);
          }
        }
        attributes["padding"].set_s("SAME");
        attributes["block_size"].set_i(huge);
        attributes["is_training"].set_b(false);
        attributes["num_split"].set_i(highest);
        attributes["num"].set_i(60'000);
        attributes["axis"].set_i(lowest);
        attributes["mode"].set_s("SYMMETRIC");
        attributes["depth_radius"].set_i(highest);
        expect_bounded(graph);
      }
    }
  }
}

TEST(TensorFlowHostile, CyclesAndNames) {
  tensorflow::GraphDef graph;
  add_node(graph, "Relu", "a", {"b"});
  add_node(graph, "Relu", "b", {"a"});
  add_node(graph, "Relu", "c", {"a"});
  expect_bounded(graph);
  for (const std::string& name :
       {std::string("a\0b", 3), std::string(200'000, 'n'), std::string("{}"), std::string("a:b"),
        std::string("a:99999999999999999999"), std::string("^a"), std::string("a\nb"), std::string(":")}) {
    graph.Clear();
    add_placeholder(graph, name, {2});
    add_node(graph, "Relu", name + "y", {name});
    add_node(graph, name, name + "z", {name + "y", "^" + name});
    expect_bounded(graph);
    add_node(graph, "Relu", "last", {name + ":4294967296"});
    expect_bounded(graph);
  }
}

TEST(TensorFlowHostile, Chains) {
  constexpr int count = 2'000;
  for (const std::string op : {"Identity", "Relu", "AddV2", "Transpose", "Reshape", "BiasAdd", "Switch", "MaxPool"}) {
    tensorflow::GraphDef graph;
    add_placeholder(graph, "x0", {1, 3, 3, 3});
    add_ints(graph, "order", {0, 2, 1, 3});
    add_floats(graph, "bias", {3});
    for (int i = 0; i < count; ++i) {
      const std::string from = "x" + std::to_string(i);
      std::vector<std::string> inputs{from};
      if (op == "AddV2" || op == "Switch") inputs.push_back(from);
      if (op == "Transpose" || op == "Reshape") inputs.emplace_back("order");
      if (op == "BiasAdd") inputs.emplace_back("bias");
      auto& node = add_node(graph, op, "x" + std::to_string(i + 1), inputs);
      if (op == "MaxPool") {
        for (const char* list : {"ksize", "strides"}) {
          for (int k = 0; k < 4; ++k) (*node.mutable_attr())[list].mutable_list()->add_i(1);
        }
      }
    }
    expect_bounded(graph);
  }
}

TEST(TensorFlowHostile, OneValueWithManyReaders) {
  constexpr int count = 2'000;
  for (const std::string op : {"Identity", "Relu", "Shape", "MaxPool"}) {
    tensorflow::GraphDef graph;
    add_placeholder(graph, "x", {1, 3, 3, 3});
    for (int i = 0; i < count; ++i) {
      auto& node = add_node(graph, op, "y" + std::to_string(i), {"x"});
      for (const char* list : {"ksize", "strides"}) {
        for (int k = 0; k < 4; ++k) (*node.mutable_attr())[list].mutable_list()->add_i(1);
      }
    }
    expect_bounded(graph);
  }
}

TEST(TensorFlowHostile, ManySwitchesAndMerges) {
  constexpr int count = 2'000;
  tensorflow::GraphDef graph;
  add_placeholder(graph, "x", {2});
  tensorflow::NodeDef& predicate = add_node(graph, "Const", "p", {});
  auto* tensor = (*predicate.mutable_attr())["value"].mutable_tensor();
  tensor->set_dtype(tensorflow::DT_BOOL);
  tensor->mutable_tensor_shape()->add_dim()->set_size(100'000);
  for (int i = 0; i < 100'000; ++i) tensor->add_bool_val(true);
  std::string value = "x";
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    add_node(graph, "Relu", "r" + name, {value});
    value = "r" + name;
  }
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    add_node(graph, "Switch", "s" + name, {"x", "p"});
    add_node(graph, "Merge", "m" + name, {value, "s" + name, "s" + name + ":1"});
  }
  expect_bounded(graph);
  tensorflow::NodeDef& wide = add_node(graph, "Merge", "wide", {});
  for (int i = 0; i < count; ++i) wide.add_input(value);
  expect_bounded(graph);
}

TEST(TensorFlowHostile, HighRanks) {
  constexpr int rank = 20'000;
  tensorflow::GraphDef graph;
  add_placeholder(graph, "x", std::vector<std::int64_t>(rank, 1));
  std::vector<std::int64_t> order;
  for (int i = 0; i < rank; ++i) order.push_back(rank - 1 - i);
  add_ints(graph, "n", order);
  add_ints(graph, "ones", std::vector<std::int64_t>(rank, 1));
  for (const char* op : {"Transpose", "Mean", "Reshape", "Tile", "ReverseV2"}) {
    add_node(graph, op, op, {"x", std::string(op) == "Tile" ? "ones" : "n"});
    expect_bounded(graph);
  }
  add_node(graph, "StridedSlice", "slice", {"x", "n", "n", "ones"});
  expect_bounded(graph);
  add_node(graph, "Squeeze", "squeeze", {"x"});
  expect_bounded(graph);
}

/// Checks that the data of a large file are not copied several times.
TEST(TensorFlowHostile, MemoryOfALargeFile) {
  tensorflow::GraphDef graph;
  add_placeholder(graph, "x", {-1, 64, 64, 64});
  add_floats(graph, "w", {8, 8, 64, 2048}, 0);
  (*graph.mutable_node(1)->mutable_attr())["value"].mutable_tensor()->set_tensor_content(
      std::string(std::size_t{8} * 8 * 64 * 2048 * 4, '\1'));
  tensorflow::NodeDef& node = add_node(graph, "Conv2D", "y", {"x", "w"});
  for (int k = 0; k < 4; ++k) (*node.mutable_attr())["strides"].mutable_list()->add_i(1);
  (*node.mutable_attr())["padding"].set_s("SAME");
  expect_bounded(graph);
}

}  // namespace
}  // namespace graft::fuzz
