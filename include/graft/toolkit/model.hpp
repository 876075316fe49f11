// A model as applications hold it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graft/toolkit/export.hpp"

namespace graft::toolkit {

/// An input or an output of a model.
struct Port {
  std::string name;
  std::string type;  ///< "f32", "i64" ...; "?" where the file does not say.
  /// The sizes, -1 for a dynamic dimension; nothing where not even the rank is known.
  std::optional<std::vector<std::int64_t>> shape;
};

/// A network, as ONNX has it, whatever format it came from. A value that never changes: copies share the weights, and
/// several threads may use it. Weights of a file beyond 64 MiB stay in that file until they are needed: put a new file
/// in its place while a Model of it lives, but do not write into it. `load` (graft/toolkit/import.hpp) reads one; a
/// Model of the default constructor has no node.
class GRAFT_API Model {
 public:
  Model();
  ~Model();
  Model(const Model&);
  Model(Model&&) noexcept;
  Model& operator=(const Model&);
  Model& operator=(Model&&) noexcept;

  /// Inputs that a run needs, without those that have a default.
  [[nodiscard]] std::vector<Port> inputs() const;
  [[nodiscard]] std::vector<Port> outputs() const;
  /// Of the main graph.
  [[nodiscard]] std::size_t node_count() const;
  /// The file that it was read from, as it was named, for messages.
  [[nodiscard]] const std::string& source() const;

  /// Writes an ONNX file, whole or not at all; what does not fit into protobuf's 2 GiB goes to `<file>.data` beside it.
  /// Throws Error for a folder that cannot be written to or a full disk.
  void save(const std::filesystem::path& file) const;
  /// The bytes of an ONNX file with all weights inside. Throws Error where they exceed protobuf's 2 GiB.
  [[nodiscard]] std::string serialize() const;

 private:
  friend struct ModelAccess;  // of the library
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace graft::toolkit
