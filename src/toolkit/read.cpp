// Calls the reader of a file's format, and improves its message where given shapes do not fit.
#include "toolkit/read.hpp"

#include <fmt/format.h>

#include <utility>

#include "graft/error.hpp"
#include "import/messages.hpp"
#include "import/read_model.hpp"

namespace graft::toolkit {
namespace {

/// Returns the inputs that the file declares, as text, or an empty string where it cannot be read without shapes.
std::string inputs_without_shapes(const std::filesystem::path& file, const ImportOptions& options) {
  try {
    return inputs_text(
        read_model(file, options.weights, {.outputs = options.outputs, .input_shapes = {}, .origin = nullptr}).graph());
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

InputShapes to_internal(const Shapes& shapes) {
  InputShapes internal;
  for (const auto& [name, sizes] : shapes) {
    Shape shape;
    for (const std::int64_t size : sizes) shape.push_back(size < 0 ? onnx::unknown_dim() : Dim(size));
    internal.emplace(name, std::move(shape));
  }
  return internal;
}

graft::onnx::Model read(const std::filesystem::path& file, const ImportOptions& options, const InputShapes& shapes,
                        std::string_view shapes_name, report::Origin* origin,
                        std::function<void(std::size_t done, std::size_t total)> progress) {
  try {
    return read_model(
        file, options.weights,
        {.outputs = options.outputs, .input_shapes = shapes, .origin = origin, .progress = std::move(progress)});
  } catch (const Error& error) {
    if (options.shapes.empty() || error.kind() != Error::Kind::bad_input) throw;
    const std::string said = inputs_without_shapes(file, options);
    if (said.empty() || std::string_view(error.what()).find(said) != std::string_view::npos) throw;
    throw Error(fmt::format("{}\nWithout {} {}", error.what(), shapes_name, said));
  }
}

std::vector<passes::FrozenSize> frozen_sizes_of(const graft::onnx::Model& model, const std::filesystem::path& file,
                                                const ImportOptions& options) {
  return passes::find_frozen_sizes(model, to_internal(options.shapes), [&] {
    return read_model(file, options.weights, {.outputs = options.outputs, .input_shapes = {}, .origin = nullptr});
  });
}

}  // namespace graft::toolkit
