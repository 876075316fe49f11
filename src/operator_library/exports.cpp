// Defines the function by which `graft --operators` finds the operators of a library. Compiled into each operator
// library.
#include "graft/operator/registry.hpp"
#include "operator_library/exported.hpp"

const graft::ExportedOperators* graft_operators() noexcept {
  try {
    static const graft::ExportedOperators exported{.version = graft::operator_library_version,
                                                   .headers = GRAFT_HEADERS_DIGEST,
                                                   .standard_library = graft::standard_library,
                                                   .graft_version = GRAFT_VERSION,
                                                   .plugin_namespace = GRAFT_PLUGIN_NAMESPACE,
                                                   .operators = graft::linked_operators().data(),
                                                   .count = graft::linked_operators().size(),
                                                   .fusions = graft::linked_fusions().data(),
                                                   .fusion_count = graft::linked_fusions().size(),
                                                   .folders = GRAFT_OPERATOR_FOLDERS};
    return &exported;
  } catch (...) {  // `drop_ins` of a definition threw, or memory is exhausted: the caller reports the null
    return nullptr;
  }
}
