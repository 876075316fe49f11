// Reads two models so that their inputs have the same shapes.
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "graft/error.hpp"
#include "graft/toolkit/verify.hpp"
#include "import/read_model.hpp"
#include "toolkit/access.hpp"
#include "toolkit/compare_models.hpp"
#include "toolkit/read.hpp"

namespace graft::toolkit {
namespace {

graft::onnx::Model read(const ModelFiles& files, const InputShapes& shapes) {
  return read_model(files.model, files.weights, {.outputs = files.outputs, .input_shapes = shapes, .origin = nullptr});
}

/// Reads a network, or returns nothing where it cannot be read with these shapes.
std::optional<graft::onnx::Model> try_read(const ModelFiles& files, const InputShapes& shapes) {
  try {
    return read(files, shapes);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::bad_input) throw;
    return std::nullopt;
  }
}

/// Reads the reference where no shapes are given. A network of another format is read with the shapes of the candidate.
graft::onnx::Model read_reference(const ModelFiles& files, const graft::onnx::Model& candidate) {
  if (is_imported(files.model)) {
    InputShapes shapes;
    for (const onnx::Value* input : candidate.graph().inputs()) {
      if (input->shape) shapes.emplace(input->name, *input->shape);
    }
    if (std::optional<graft::onnx::Model> reference = try_read(files, shapes)) return std::move(*reference);
  }
  return read(files, {});  // where the inputs differ, this call has the clearer message, or verify reports the inputs
}

InputShapes given_shapes(const graft::verify::VerifyOptions& options) {
  InputShapes shapes;
  for (const auto& [name, sizes] : options.shapes) shapes.emplace(name, Shape(sizes.begin(), sizes.end()));
  if (options.data.empty()) return shapes;
  for (const auto& [name, tensor] : options.data.front()) {
    shapes.emplace(name, Shape(tensor.dims.begin(), tensor.dims.end()));
  }
  return shapes;
}

ModelPair pair_of(graft::onnx::Model reference, graft::onnx::Model candidate) {
  return {.reference = ModelAccess::make(std::move(reference)), .candidate = ModelAccess::make(std::move(candidate))};
}

}  // namespace

ModelPair load_pair(const ModelFiles& reference_files, const ModelFiles& candidate_files,
                    const VerifyOptions& options) {
  const CompareOptions inner = compare_options(options);
  const InputShapes shapes = given_shapes(inner.common);
  if (shapes.empty()) {
    graft::onnx::Model candidate = read(candidate_files, {});
    graft::onnx::Model reference = read_reference(reference_files, candidate);
    return pair_of(std::move(reference), std::move(candidate));
  }
  std::optional<graft::onnx::Model> reference = try_read(reference_files, {});
  std::optional<graft::onnx::Model> candidate = try_read(candidate_files, {});
  if (!reference || !candidate) return pair_of(read(reference_files, shapes), read(candidate_files, shapes));
  const verify::PlacedShapes placed = place_shapes(*reference, *candidate, inner.common, inner.names);
  if (is_imported(reference_files.model)) reference = read(reference_files, placed.reference);
  if (is_imported(candidate_files.model)) candidate = read(candidate_files, placed.candidate);
  return pair_of(std::move(*reference), std::move(*candidate));
}

}  // namespace graft::toolkit
