// A model in f16, bf16, int8 or f8, typed, as every TensorRT builds it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/node_ref.hpp"
#include "graft/toolkit/cpu_engine.hpp"
#include "graft/toolkit/export.hpp"
#include "graft/toolkit/import.hpp"
#include "graft/toolkit/model.hpp"
#include "graft/toolkit/precision.hpp"
#include "graft/toolkit/progress.hpp"
#include "graft/toolkit/tensor.hpp"
#include "graft/toolkit/verify.hpp"

namespace graft::toolkit {

/// Where int8 or f8 saturates, from the numbers that calibration counted. entropy is of int8.
enum class Calibration : std::uint8_t { percentile, entropy, minmax, mse };

/// What is done to weights and biases so that int8 loses less.
struct Improvements {
  bool equalize = false;  ///< Cross-layer equalization, before calibration.
  bool smooth = false;    ///< SmoothQuant, before calibration.
  bool round = false;     ///< AdaRound: each weight up or down, so that a layer's results change least; of int8.
  bool bias = false;      ///< Takes away what rounding adds on average; the last.
};

/// How good a model is, as the application measures it; more is better. Called one at a time.
using Metric = std::function<double(const Model&)>;

/// What only Precision::int8 and f8 have; refused with the others.
struct Int8Options {
  /// In place of QuantizeOptions::data: a folder of images, with a recipe; a folder of .npz and .npy files, each the
  /// inputs of one run; or one such file. Images are never all in memory.
  std::filesystem::path data = {};
  std::filesystem::path recipe = {};  ///< How images are prepared, in YAML (docs/guide/int8.md).
  std::int64_t samples = 0;           ///< Calibrates with so many at most; 0: with all.
  /// Nothing: percentile in int8, minmax in f8, whose steps are finer where numbers are small.
  std::optional<Calibration> calibration = {};
  double percentile = 99.99;  ///< Of Calibration::percentile; above 0, at most 100.
  /// A calibration cache of TensorRT 7 to 10, whose scales are used; data then only judge, and may be missing. Of
  /// int8.
  std::filesystem::path cache = {};
  /// Counts are kept in this file, and a calibration that was interrupted goes on from it; empty: they are not.
  std::filesystem::path state = {};
  Improvements improve = {};
  /// f16 or bf16: what nodes that are not int8 or f8 compute in, where that breaks nothing. Nothing: f32.
  std::optional<Precision> rest = {};
  /// Asked for the f32 model and for each model that is tried. Empty: per cent of the outputs' rows whose largest
  /// element is where f32 has it.
  Metric metric = {};
  std::optional<double> max_drop = {};  ///< How much the metric may fall, in its own unit.
  std::int64_t judged = 64;             ///< Outputs are compared for so many samples at most.
};

struct QuantizeOptions {
  Precision precision = Precision::f16;
  /// Inputs as the network will see them; the first axis counts samples. Int8 and f8 need them, a hundred or more; f16
  /// and bf16 decide by synthetic inputs where there are none.
  Tensors data = {};
  /// In place of `data`: the same without a copy. A view without an owner has to outlive the result.
  TensorViews data_views = {};
  Shapes shapes = {};                  ///< Of synthetic inputs, without a dynamic dimension; f16 and bf16 only.
  std::vector<std::string> keep = {};  ///< What stays in f32: names of nodes, tensors or operators, with * and ?.
  std::vector<std::string> only = {};  ///< What may leave f32, and nothing else; as keep.
  bool typed_io = false;               ///< Inputs and outputs have the type too, and are not f32; f16 and bf16 only.
  /// Least signal to noise ratio of each output; nodes stay in f32 until it is met. Nothing: 40 dB in f16 and 25 dB in
  /// bf16, for which nodes stay in f32, and 20 dB in int8 and f8, for which none does.
  std::optional<double> limit_db = {};
  Int8Options int8 = {};
  CpuEngine engine = CpuEngine::automatic;  ///< Runs the model for calibration and comparisons.
  Watch watch = {};
};

/// What became of a node.
struct QuantizedNode {
  NodeRef node;
  std::string
      type;  ///< "int8", "f8", "f16", "bf16", "f32"; "fused": in f32, in the kernel of an int8 or f8 node; empty: none.
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

struct Quantization;

struct QuantizeResult {
  Model model;
  std::vector<QuantizedNode> nodes;
  std::vector<OutputQuality> outputs;
  std::optional<double> metric_f32;  ///< Of Int8Options::metric, or the rows' agreement; nothing without data.
  std::optional<double> metric_int8;
  std::vector<std::string> notes;
  /// What `verify` finds of the model before and after, with the same data, shapes and limit. Nothing where a metric or
  /// max_drop judges, and for a calibration cache without data.
  std::optional<Verdict> verified;
  bool met = true;  ///< Whether every output meets the limits of the options, and `verified` is same or nothing.
  std::shared_ptr<const Quantization> details = {};  ///< For graft/toolkit/present.hpp.
};

/// Makes a typed copy of an f32 model: casts for f16 and bf16, QuantizeLinear and DequantizeLinear for int8 and f8,
/// and says of each node why it has its type. Throws Error for these without data and cache, a pattern in `keep` or
/// `only` that matches nothing, data that do not fit the inputs, options that the precision does not have, and
/// (missing_tool) in a build without a CPU engine; what the metric throws; Cancelled. A limit that is not met is no
/// error: `met` says so.
[[nodiscard]] GRAFT_API QuantizeResult quantize(const Model& model, const QuantizeOptions& options);

/// Writes the scales of an int8 model as a calibration cache of TensorRT 7 to 10, whole or not at all, and returns how
/// many there are. Throws Error naming the node for a scale that a cache cannot hold, and for a model without any.
GRAFT_API std::size_t write_calibration_cache(const Model& model, const std::filesystem::path& file);

}  // namespace graft::toolkit
