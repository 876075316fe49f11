// A model's inputs and outputs, and the format that it was read from, in words.
#pragma once

#include <string>
#include <vector>

#include "graft/report/model.hpp"
#include "present/text/table.hpp"

namespace graft::present {

/// Returns "9 nodes and 2 constants (3 of them in branches and bodies)".
[[nodiscard]] std::string nodes_text(const report::NodeCounts& counts);

/// Returns a row for each input and output: "input  image  f32  ? x 3 x 224 x 224".
[[nodiscard]] Table io_table(const std::vector<report::ModelPort>& inputs,
                             const std::vector<report::ModelPort>& outputs);

/// Returns the original format: "TensorFlow graph of 30 nodes"; empty for ONNX.
[[nodiscard]] std::string origin_text(const report::Origin& origin);

/// Returns the operators that the reader of another format read, left out and renamed.
[[nodiscard]] Table origin_table(const report::Origin& origin);

}  // namespace graft::present
