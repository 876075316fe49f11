// Fuzzes the reader of frozen TensorFlow graphs.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "import/tensorflow/import.hpp"
#include "tensorflow/graph_def.pb.h"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/target.hpp"

namespace graft::fuzz {

onnx::Model read(std::string_view bytes) { return parse_tensorflow(bytes, "fuzz", {}, stay(bytes)); }

std::string mutate(std::string_view bytes, std::uint64_t seed) {
  tensorflow::GraphDef graph;
  if (!graph.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return "";
  mutate(graph, seed);
  std::string written;
  {  // otherwise the entries of a map are written in hash order, which differs between runs
    google::protobuf::io::StringOutputStream stream(&written);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    graph.SerializePartialToCodedStream(&coded);
  }
  return written;
}

}  // namespace graft::fuzz
