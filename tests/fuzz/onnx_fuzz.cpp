// Fuzzes the reader of ONNX files.
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "onnx/onnx_io.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/fuzz/target.hpp"

namespace graft::fuzz {
namespace {

/// The schema of ONNX with the names of its fields, read from a file: the compiled one lacks them (optimize_for =
/// LITE_RUNTIME).
class Schema {
 public:
  Schema() {
    const char* elsewhere = std::getenv("GRAFT_ONNX_SCHEMA");
    std::ifstream file(elsewhere == nullptr ? GRAFT_ONNX_SCHEMA : elsewhere, std::ios::binary);
    google::protobuf::FileDescriptorSet files;
    if (!files.ParseFromIstream(&file)) std::abort();
    model_ = factory_.GetPrototype(pool_.BuildFile(files.file(0))->FindMessageTypeByName("ModelProto"));
  }

  [[nodiscard]] std::unique_ptr<google::protobuf::Message> make_model() const {
    return std::unique_ptr<google::protobuf::Message>(model_->New());
  }

 private:
  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_;
  const google::protobuf::Message* model_ = nullptr;
};

}  // namespace

onnx::Model read(std::string_view bytes) { return onnx::parse_onnx(bytes, "", "fuzz", stay(bytes)); }

std::string mutate(std::string_view bytes, std::uint64_t seed) {
  static const Schema schema;
  const auto model = schema.make_model();
  if (!model->ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size()))) return "";
  mutate(*model, seed);
  return model->SerializePartialAsString();
}

}  // namespace graft::fuzz
