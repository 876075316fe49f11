// A model's inputs and outputs, and the format that it was read from, in words.
#pragma once

#include <string>
#include <vector>

#include "import/origin.hpp"
#include "onnx/model.hpp"
#include "present/text/table.hpp"

namespace graft::present {

/// Returns "224", a symbol, or "?" for a dimension that is not known.
[[nodiscard]] std::string size_text(const Dim& dim);

/// "image  f32 ? x 3 x 224 x 224": a row for each input and output.
[[nodiscard]] Table io_table(const onnx::Model& model);

/// A warning for each input without a rank.
[[nodiscard]] std::vector<std::string> missing_rank_warnings(const onnx::Model& model);

/// "TensorFlow graph of 30 nodes"; empty for ONNX.
[[nodiscard]] std::string origin_text(const Origin& origin);

/// What the reader of another format made of the file.
[[nodiscard]] Table origin_table(const Origin& origin);

}  // namespace graft::present
