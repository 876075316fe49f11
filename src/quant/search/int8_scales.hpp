// Finds the scales of the tensors that become int8: by calibration, or in a calibration cache of TensorRT.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quant/calibrate/histogram.hpp"
#include "quant/search/choose_int8.hpp"

namespace graft::quant {

/// The layers that stay in f32, as a map from their key_of() to the reason.
using KeptLayers = std::map<std::string, std::string, std::less<>>;

/// Calibrates the tensors of a network, or reads their scales from a cache, and computes plans and scales from them.
class Int8Scaling {
 public:
  /// Both arguments must outlive the object.
  Int8Scaling(const onnx::Model& prepared, const Int8Options& options) : prepared_(prepared), options_(options) {}

  /// Calibrates the tensors that are quantized while the layers `kept` stay in f32. If the options set a limit, the
  /// search may keep more layers in f32, so the tensors that are quantized then are calibrated too. Returns the number
  /// of samples, and adds remarks for the user to `notes`.
  std::int64_t calibrate(const runtime::Engine& engine, const CalibrationData& data, const KeptLayers& kept,
                         std::vector<std::string>& notes);
  /// Reads the scales from Int8Options::cache instead of calibrating. Throws Error if the cache has no scale for any
  /// tensor that is quantized.
  void read_cache();

  /// Returns the plan with the layers `kept` in f32. Nodes that need a tensor without a scale, for example one that was
  /// never observed, are kept in f32 too.
  [[nodiscard]] Int8Plan plan_with(const KeptLayers& kept) const;
  /// Returns the scale of each tensor of the plan. Tensors that share a scale get the one of the tensor with the widest
  /// range. Scales of a cache are used unchanged.
  [[nodiscard]] Int8Scales scales_of(const Int8Plan& plan) const;
  /// Returns, for the report, the tensors that the plan rounds, in the order of the network, with their scales and
  /// rounding errors.
  [[nodiscard]] std::vector<QuantizedTensor> describe_tensors(const Int8Plan& plan) const;

 private:
  [[nodiscard]] float own_scale(const std::string& tensor) const;
  /// Adds the node `planned` to `choice.kept` if it reads or computes `tensor`, which has no scale, and returns whether
  /// it did.
  bool keep_reader(Int8Choice& choice, const Int8Node& planned, const std::string& tensor) const;

  const onnx::Model& prepared_;
  const Int8Options& options_;
  std::map<std::string, double, std::less<>> thresholds_;
  std::map<std::string, Histogram, std::less<>> histograms_;
};

}  // namespace graft::quant
