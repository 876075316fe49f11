// A model in f16, bf16 or int8, typed, as every TensorRT builds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/precision.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/tensor.hpp"

namespace graft::toolkit {

/// Where int8 saturates, from the numbers that calibration counted.
enum class Calibration : std::uint8_t { percentile, entropy, minmax, mse };

struct QuantizeOptions {
  Precision precision = Precision::f16;
  /// Inputs as the network will see them; the first axis counts samples. Int8 needs them, a hundred or more; f16 and
  /// bf16 decide by synthetic inputs where there are none.
  Tensors data = {};
  std::vector<std::string> keep = {};  ///< What stays in f32: names of nodes, tensors or operators, with * and ?.
  std::vector<std::string> only = {};  ///< What may leave f32, and nothing else; as keep.
  /// Least signal to noise ratio of each output; nodes stay in f32 until it is met. Nothing: 40 dB in f16, 25 dB in
  /// bf16, and none in int8.
  std::optional<double> limit_db = {};
  Calibration calibration = Calibration::percentile;  ///< Int8 only.
  double percentile = 99.99;                          ///< Of Calibration::percentile; above 0, at most 100.
  /// Int8 only: how many per cent of the outputs' rows may have their largest element elsewhere.
  std::optional<double> max_drop = {};
  Watch watch = {};
};

/// What became of a node.
struct QuantizedNode {
  NodeRef node;
  std::string type;    ///< "int8", "f16", "bf16", "f32"; "fused" in f32 within an int8 kernel; empty: no real tensors.
  std::string reason;  ///< Why it stays in f32; empty for others.
};

/// An output against that of the f32 model on the CPU.
struct OutputQuality {
  std::string name;
  std::optional<double> snr_db;  ///< Nothing where nothing differs.
  double largest_error = 0;
  std::int64_t rows = 0;      ///< Along the last axis.
  std::int64_t same_top = 0;  ///< Rows whose largest element is where f32 has it.
};

struct QuantizeResult {
  Model model;
  std::vector<QuantizedNode> nodes;
  std::vector<OutputQuality> outputs;
  std::vector<std::string> notes;
  bool met = true;  ///< Whether every output meets the limits of the options.
};

/// Makes a typed copy of an f32 model: casts for f16 and bf16, QuantizeLinear and DequantizeLinear for int8, and says
/// of each node why it has its type. Throws Error for int8 without data, a pattern in `keep` or `only` that matches
/// nothing, data that do not fit the inputs, and (missing_tool) in a build without a CPU engine; Cancelled. A limit
/// that is not met is no error: `met` says so.
[[nodiscard]] GRAFT_API QuantizeResult quantize(const Model& model, const QuantizeOptions& options);

}  // namespace graft::toolkit
