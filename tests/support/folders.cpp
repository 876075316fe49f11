// The only test source that is compiled with a path of the checkout: the compiler cache serves all others to any
// checkout.
#include "tests/support/folders.hpp"

namespace graft {

std::filesystem::path golden_folder() { return GRAFT_GOLDEN_DIR; }

}  // namespace graft
