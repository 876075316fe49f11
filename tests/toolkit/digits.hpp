// The digits network of the examples, and helpers of the toolkit's tests.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "graft/toolkit/error.hpp"
#include "graft/toolkit/tensor.hpp"

namespace graft::toolkit {

inline std::filesystem::path digits(const std::string& file) {
  return std::filesystem::path(std::getenv("GRAFT_SOURCE_DIR")) / "examples" / "digits" / file;
}

inline Tensors images(std::int64_t count = 450) {
  Tensor all = read_npz(digits("digits_test.npz")).at("images");
  all.shape[0] = count;
  all.data.resize(static_cast<std::size_t>(count) * 64 * sizeof(float));
  return {{"image", all}};
}

template <class Function>
std::string message_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace graft::toolkit
