// Fuzzes the reader of Caffe networks. An input is the text of the network, a zero byte, and the weights.
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>

#include "caffe/caffe.pb.h"
#include "import/caffe/import.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/target.hpp"

namespace graft::fuzz {
namespace {

struct Files {
  std::string_view network;
  std::string_view weights;
};

Files split(std::string_view bytes) {
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  return {bytes.substr(0, end), end == bytes.size() ? std::string_view() : bytes.substr(end + 1)};
}

class Silence final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int /*line*/, int /*column*/, const std::string& /*message*/) override {}
};

}  // namespace

onnx::Model read(std::string_view bytes) {
  const Files files = split(bytes);
  return parse_caffe(std::string(files.network), files.weights, "fuzz", files.weights.empty() ? "" : "weights", {},
                     stay(files.weights));
}

std::string mutate(std::string_view bytes, std::uint64_t seed) {
  const Files files = split(bytes);
  std::string text(files.network);
  std::string binary(files.weights);
  if (seed % 5 == 0) {
    caffe::NetParameter weights;
    if (!weights.ParsePartialFromString(binary)) return "";
    mutate(weights, seed);
    binary = weights.SerializePartialAsString();
  } else {
    google::protobuf::TextFormat::Parser parser;
    Silence silence;
    parser.RecordErrorsTo(&silence);
    parser.AllowUnknownField(true);
    parser.AllowPartialMessage(true);
    parser.SetRecursionLimit(32);
    caffe::NetParameter network;
    if (!parser.ParseFromString(text, &network)) return "";
    mutate(network, seed);
    google::protobuf::TextFormat::PrintToString(network, &text);
  }
  return text + '\0' + binary;
}

}  // namespace graft::fuzz
