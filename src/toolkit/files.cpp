// By beginning to write one.
#include "toolkit/files.hpp"

#include "graph/atomic_file.hpp"
#include "graph/mapped_file.hpp"

namespace graft::toolkit {

void check_writable(const std::filesystem::path& file) { const AtomicFile probe(file); }

const char* mapped_file_at(const void* address) { return MappedFile::path_at(address); }

}  // namespace graft::toolkit
