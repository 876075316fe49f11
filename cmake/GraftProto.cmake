# graft_add_proto(<target> <folder> <file below it>): compiles a protobuf schema of Graft, whose header is included by
# that path.
function(graft_add_proto target folder file)
  set(output "${PROJECT_BINARY_DIR}/proto")
  string(REGEX REPLACE "\\.proto$" ".pb" compiled "${output}/${file}")
  get_filename_component(output_folder "${compiled}" DIRECTORY)
  file(MAKE_DIRECTORY "${output_folder}")
  add_custom_command(
    OUTPUT "${compiled}.cc" "${compiled}.h"
    COMMAND protobuf::protoc "--proto_path=${folder}" "--cpp_out=${output}" "${file}"
    DEPENDS "${folder}/${file}"
    COMMENT "Compiling ${file}"
    VERBATIM)
  add_library(${target} STATIC "${compiled}.cc" "${compiled}.h")
  target_compile_options(${target} PRIVATE -w ${graft_unoptimized})
  target_include_directories(${target} SYSTEM PUBLIC "${output}")
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf)
endfunction()
