// Frozen TensorFlow graphs, for the fuzzer and its test.
#include "import/tensorflow/import.hpp"
#include "tensorflow/graph_def.pb.h"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/target.hpp"

namespace graft::fuzz {

Model read(std::string_view bytes) { return parse_tensorflow(bytes, "fuzz", {}, stay(bytes)); }

std::string mutate(std::string_view bytes, std::uint64_t seed) {
  tensorflow::GraphDef graph;
  if (!graph.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return "";
  mutate(graph, seed);
  return graph.SerializePartialAsString();
}

}  // namespace graft::fuzz
