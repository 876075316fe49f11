// Tests the reader with malformed Caffe networks: damaged copies, files that the fuzzer found, and handwritten files.
#include <limits>

#include "caffe/caffe.pb.h"
#include "tests/fuzz/spoiled.hpp"
#include "tests/fuzz/stored_parts.hpp"

namespace graft::fuzz {
namespace {

std::vector<std::string> networks() {
  const auto weights = stored_parts("caffe", "weights");
  std::vector<std::string> result;
  for (const auto& [name, text] : stored_parts("caffe", "network")) {
    std::string bytes = text + '\0' + weights.at(name);
    if (bytes.size() < 8192) result.push_back(std::move(bytes));
  }
  return result;
}

TEST(CaffeFuzz, Corpus) {
  for (const std::string& bytes : corpus("caffe")) expect_bounded(bytes);
}

TEST(CaffeFuzz, Truncated) {
  ASSERT_GE(networks().size(), 60U);
  cut_short(some_of(networks(), 1), 8);
}

TEST(CaffeFuzz, FlippedBitsAndOverwrittenBytes) { flip_and_overwrite(some_of(networks(), 1), 8); }
TEST(CaffeFuzz, OtherFields) { change_fields(some_of(networks(), 1), 8); }
TEST(CaffeFuzz, RandomBytes) { random_bytes(); }

// ---- Handwritten files

void expect_bounded(const std::string& text, const caffe::NetParameter& weights = {}) {
  fuzz::expect_bounded(text + '\0' + weights.SerializePartialAsString());
}

std::string input(const std::string& name, const std::string& dims) {
  std::string text = "layer { name: '" + name + "' type: 'Input' top: '" + name + "' input_param { shape {";
  std::string dim;
  for (const char c : dims + ' ') {
    if (c != ' ') {
      dim += c;
    } else if (!dim.empty()) {
      text += " dim: " + dim;
      dim.clear();
    }
  }
  return text + " } } }\n";
}

TEST(CaffeHostile, Dimensions) {
  for (const std::string dims : {"9223372036854775807", "1 9223372036854775807 9223372036854775807 3", "1 3 0 0",
                                 "1 3 -1 -1", "1 1099511627776 1 1", "1 2147483647 2147483647 2147483647",
                                 "2147483647 2147483648 1 1", "", "1 3 4294967295 4294967297", "1 64 8 8", "5"}) {
    for (const char* type :
         {"AbsVal",        "ArgMax",    "BNLL",  "BatchNorm", "Bias",  "Concat",   "Convolution",  "Crop",
          "Deconvolution", "Dropout",   "ELU",   "Eltwise",   "Exp",   "Flatten",  "InnerProduct", "Interp",
          "LRN",           "Log",       "MVN",   "Normalize", "PReLU", "Permute",  "Pooling",      "Power",
          "ReLU",          "Reduction", "Reorg", "Reshape",   "SPP",   "Scale",    "Sigmoid",      "Slice",
          "Softmax",       "Split",     "TanH",  "Threshold", "Tile",  "Upsample", "PriorBox",     "DetectionOutput",
          "ROIPooling",    "Region"}) {
      for (const std::string number : {"0", "1", "4294967295", "65536"}) {
        std::string text = input("x", dims) + input("z", "1 8 4 4") + "layer { name: 'y' type: '" + type +
                           "' bottom: 'x' bottom: 'z' bottom: 'x' top: 'y'";
        text += " convolution_param { num_output: " + number + " kernel_size: " + number + " stride: " + number +
                " pad: " + number + " dilation: " + number + " }";
        text += " inner_product_param { num_output: " + number + " }";
        text += " pooling_param { kernel_size: " + number + " stride: " + number + " pad: 1 }";
        text += " reorg_param { stride: " + number + " }";
        text += " prelu_param { channel_shared: true }";
        text += " prior_box_param { min_size: 1e38 max_size: 3e38 aspect_ratio: 1e-30 clip: true }";
        text += " detection_output_param { num_classes: " + number + " }";
        text += " region_param { classes: " + number + " num: " + number + " coords: 4 }";
        text += " upsample_param { scale: " + number + " }";
        text += " interp_param { zoom_factor: 2147483647 }";
        text += " lrn_param { local_size: " + number + " norm_region: WITHIN_CHANNEL }";
        text += " tile_param { tiles: 2147483647 }";
        text += " crop_param { offset: " + number + " }";
        text += " }\n";
        caffe::NetParameter weights;
        auto* layer = weights.add_layer();
        layer->set_name("y");
        for (int i = 0; i < 3; ++i) {
          auto* blob = layer->add_blobs();
          blob->mutable_shape()->add_dim(1);
          blob->add_data(1);
        }
        expect_bounded(text, weights);
      }
    }
  }
}

TEST(CaffeHostile, ManyPriorBoxes) {
  std::string text = input("x", "1 3 500 500") + input("z", "1 3 600 600");
  for (int i = 0; i < 200; ++i) {
    const std::string name = "p" + std::to_string(i);
    text += "layer { name: '" + name + "' type: 'PriorBox' bottom: 'x' bottom: 'z' top: '" + name +
            "' prior_box_param { min_size: 3 } }\n";
  }
  expect_bounded(text);
  std::string sizes;
  for (int i = 0; i < 20'000; ++i) sizes += " min_size: 1 aspect_ratio: " + std::to_string(i + 2);
  expect_bounded(input("x", "1 3 5 5") + input("z", "1 3 6 6") +
                 "layer { name: 'p' type: 'PriorBox' bottom: 'x' bottom: 'z' top: 'p' prior_box_param {" + sizes +
                 " } }\n");
}

TEST(CaffeHostile, WeightsOfAnySize) {
  for (const std::int64_t dim : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
                                 std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()}) {
    for (const int numbers : {0, 1, 5}) {
      caffe::NetParameter weights;
      auto* layer = weights.add_layer();
      layer->set_name("y");
      for (int i = 0; i < 2; ++i) {
        auto* blob = layer->add_blobs();
        for (const std::int64_t each : {dim, std::int64_t{2}, dim, std::int64_t{0}})
          blob->mutable_shape()->add_dim(each);
        for (int k = 0; k < numbers; ++k) blob->add_data(1);
        if (numbers == 0) blob->add_double_data(1e300);
      }
      expect_bounded(input("x", "1 5 1 1") +
                         "layer { name: 'y' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { "
                         "num_output: 1 } }\n",
                     weights);
    }
  }
}

TEST(CaffeHostile, TextThatNests) {
  for (const int depth : {10, 31, 32, 33, 100'000}) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "layer { unknown { a {";
    expect_bounded(text);
    for (int i = 0; i < depth; ++i) text += "} } }";
    expect_bounded(text);
  }
  expect_bounded("name: \"" + std::string(1 << 20, 'n') + "\"");
  expect_bounded("name: \"\\377\\376\\000\"\nlayer { name: \"a\\000b\" type: \"\\377\" }");
  expect_bounded("input_dim: 99999999999999999999999 input_dim: -1 input_dim: 0x7fffffffffffffff input: 'x'");
  expect_bounded(std::string(100'000, '#'));
  expect_bounded("name: " + std::string(100'000, '\''));
  expect_bounded(std::string(100'000, '{'));
  expect_bounded("[a.b/c.d] { x: 1 } any { [type.googleapis.com/graft.caffe.NetParameter] { name: 'x' } }");
}

TEST(CaffeHostile, ChainsAndInPlaceLayers) {
  constexpr int count = 1'000;
  for (const std::string type : {"ReLU", "Split", "Sigmoid", "Flatten", "Power", "Dropout"}) {
    for (const bool in_place : {false, true}) {
      std::string text = input("x0", "1 3 4 4");
      for (int i = 0; i < count; ++i) {
        const std::string from = "x" + std::to_string(in_place ? 0 : i);
        const std::string to = "x" + std::to_string(in_place ? 0 : i + 1);
        text += "layer { name: 'l" + std::to_string(i) + "' type: '" + type + "' bottom: '" + from + "' top: '" + to +
                "' }\n";
      }
      expect_bounded(text);
    }
  }
}

TEST(CaffeHostile, ManyTopsAndBottoms) {
  constexpr int count = 5'000;
  std::string tops;
  std::string bottoms;
  for (int i = 0; i < count; ++i) {
    tops += " top: 't" + std::to_string(i) + "'";
    bottoms += " bottom: 't" + std::to_string(i) + "'";
  }
  expect_bounded(input("x", "1 3 4 4") + "layer { name: 's' type: 'Split' bottom: 'x'" + tops + " }");
  expect_bounded(input("x", "1 3 4 4") + "layer { name: 's' type: 'Split' bottom: 'x'" + tops +
                 " } layer { name: 'c' type: 'Concat' top: 'y'" + bottoms + " }");
  expect_bounded(input("x", "1 5000 4 4") + "layer { name: 's' type: 'Slice' bottom: 'x'" + tops +
                 " } layer { name: 'c' type: 'Eltwise' top: 'y'" + bottoms + " }");
  expect_bounded("layer { name: 'd' type: 'Data'" + tops + " } layer { name: 'c' type: 'Concat' top: 'y'" + bottoms +
                 " }");
  expect_bounded("layer { name: 'd' type: 'Input'" + tops + " input_param { shape { dim: 1 } } }");
}

/// Checks that the data of a large file are not copied several times.
TEST(CaffeHostile, MemoryOfALargeFile) {
  constexpr int inputs = 2'000;
  constexpr int outputs = 4'000;
  caffe::NetParameter weights;
  auto* layer = weights.add_layer();
  layer->set_name("y");
  auto* blob = layer->add_blobs();
  blob->mutable_shape()->add_dim(outputs);
  blob->mutable_shape()->add_dim(inputs);
  blob->mutable_data()->Resize(inputs * outputs, 1);
  expect_bounded(
      input("x", "1 2000") +
          "layer { name: 'y' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 4000 "
          "bias_term: false } }",
      weights);
}

}  // namespace
}  // namespace graft::fuzz
