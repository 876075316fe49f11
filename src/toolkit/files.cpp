// Implements files.hpp with the file classes of src/core: to create an AtomicFile shows whether a file can be written.
#include "graft/toolkit/files.hpp"

#include "core/atomic_file.hpp"
#include "core/temporaries.hpp"
#include "onnx/mapped_file.hpp"

namespace graft::toolkit {

void check_writable(const std::filesystem::path& file) { const AtomicFile probe(file); }

bool has_temporary_files() { return CountedTemporary::any(); }

const char* mapped_file_at(const void* address) { return onnx::MappedFile::path_at(address); }

}  // namespace graft::toolkit
