// What TensorRT's library says of its version, in a library of its name.
#include <cstdint>

extern "C" __attribute__((visibility("default"))) std::int32_t getInferLibVersion() noexcept { return VERSION; }
