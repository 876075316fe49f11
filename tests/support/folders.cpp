// The only test source that is compiled with a path of the checkout, so that all others can come from the compiler
// cache in any checkout.
#include "tests/support/folders.hpp"

namespace graft {

std::filesystem::path golden_folder() { return GRAFT_GOLDEN_DIR; }

}  // namespace graft
