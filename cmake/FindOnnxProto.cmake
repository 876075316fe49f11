# Compiles the ONNX schema of the onnx wheel into graft::onnx_proto; include it as "onnx/onnx-ml.pb.h".
set(proto_source "${GRAFT_SITE_PACKAGES}/onnx/onnx-ml.proto")
set(proto_output "${PROJECT_BINARY_DIR}/proto")
if(NOT EXISTS "${proto_source}")
  message(FATAL_ERROR "The ONNX schema is missing: ${proto_source}. Run `make deps`.")
endif()

file(MAKE_DIRECTORY "${proto_output}")
add_custom_command(
  OUTPUT "${proto_output}/onnx/onnx-ml.pb.cc" "${proto_output}/onnx/onnx-ml.pb.h"
  COMMAND protobuf::protoc "--proto_path=${GRAFT_SITE_PACKAGES}" "--cpp_out=${proto_output}" onnx/onnx-ml.proto
  DEPENDS "${proto_source}"
  COMMENT "Compiling the ONNX schema"
  VERBATIM)
add_library(graft_onnx_proto STATIC "${proto_output}/onnx/onnx-ml.pb.cc" "${proto_output}/onnx/onnx-ml.pb.h")
add_library(graft::onnx_proto ALIAS graft_onnx_proto)
target_compile_options(graft_onnx_proto PRIVATE -w ${graft_unoptimized})
target_include_directories(graft_onnx_proto SYSTEM PUBLIC "${proto_output}")
target_link_libraries(graft_onnx_proto PUBLIC protobuf::libprotobuf)
