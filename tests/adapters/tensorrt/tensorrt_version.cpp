// A stand-in for TensorRT's library, with its name and its function that returns the version.
#include <cstdint>

extern "C" __attribute__((visibility("default"))) std::int32_t getInferLibVersion() noexcept { return VERSION; }
