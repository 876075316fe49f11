// Finds the scales of the tensors that become int8: by calibration, or in a calibration cache of TensorRT.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quant/calibrate/histogram.hpp"
#include "quant/search/choose_int8.hpp"

namespace graft::quant {

/// Maps the key_of a layer that stays in f32 to the reason.
using KeptLayers = std::map<std::string, std::string, std::less<>>;

/// The calibrated tensors of a network, from which each plan gets its scales.
class Int8Scaling {
 public:
  /// Both arguments must outlive the object.
  Int8Scaling(const onnx::Model& prepared, const Int8Options& options) : prepared_(prepared), options_(options) {}

  /// Calibrates the tensors that become int8 if these layers are kept, and returns the number of samples. If more
  /// layers may be kept later, the tensors that become int8 then are calibrated too.
  std::int64_t calibrate(const runtime::Engine& engine, const CalibrationData& data, const KeptLayers& kept,
                         std::vector<std::string>& notes);
  /// Uses the scales of the cache in the options. Throws Error if it has no scale for any tensor that becomes int8.
  void read_cache();

  /// Returns a plan in which all tensors have a scale.
  [[nodiscard]] Int8Plan plan_with(const KeptLayers& kept) const;
  /// Returns the step size of each tensor; tensors that share a scale get the step of the one with the widest range.
  /// The scales of a cache are used unchanged.
  [[nodiscard]] Int8Scales scales_of(const Int8Plan& plan) const;
  /// Returns the rounded tensors, in the order of the network, with their scales and the effect of the rounding.
  [[nodiscard]] std::vector<QuantizedTensor> describe_tensors(const Int8Plan& plan) const;

 private:
  [[nodiscard]] float own_scale(const std::string& tensor) const;
  /// Keeps a node in f32 that reads or computes a tensor without a scale, and returns whether it did.
  bool keep_reader(Int8Choice& choice, const Int8Node& planned, const std::string& tensor) const;

  const onnx::Model& prepared_;
  const Int8Options& options_;
  std::map<std::string, double, std::less<>> thresholds_;
  std::map<std::string, Histogram, std::less<>> histograms_;
};

}  // namespace graft::quant
