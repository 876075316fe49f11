// The class of models in applications.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "graft/report/graph.hpp"
#include "graft/report/port.hpp"
#include "graft/toolkit/export.hpp"

namespace graft::toolkit {

using report::Port;

/// A network as an ONNX model, whatever format it was read from. The value is immutable: copies share the weights, and
/// several threads may use it. Weights of a file beyond 64 MiB stay in the file until they are needed: an application
/// may replace the file while a Model of it exists, but must not write into it. `load` (graft/toolkit/import.hpp) reads
/// a model; a default-constructed Model has no node.
class GRAFT_API Model {
 public:
  Model();
  ~Model();
  Model(const Model&);
  Model(Model&&) noexcept;
  Model& operator=(const Model&);
  Model& operator=(Model&&) noexcept;

  /// Returns the inputs that a run needs, without those that have a default.
  [[nodiscard]] std::vector<Port> inputs() const;
  [[nodiscard]] std::vector<Port> outputs() const;
  /// Returns the number of nodes of the main graph.
  [[nodiscard]] std::size_t node_count() const;
  /// Returns the main graph, with the types and shapes that the file declares or that were inferred before.
  [[nodiscard]] report::ModelGraph graph() const;
  /// Returns the functions that the model defines for its own nodes.
  [[nodiscard]] std::vector<report::ModelFunction> functions() const;
  /// Returns the model with the types and shapes that follow from those of its inputs. Throws Error naming the node for
  /// shapes that contradict each other.
  [[nodiscard]] Model with_inferred_shapes() const;
  /// Returns the file from which the model was read, as the caller named it, for messages.
  [[nodiscard]] const std::string& source() const;

  /// Writes an ONNX file, completely or not at all; weights that do not fit into protobuf's 2 GiB are written to
  /// `<file>.data` next to it. Throws Error for a folder that cannot be written to or a full disk.
  void save(const std::filesystem::path& file) const;
  /// Returns the bytes of an ONNX file with all weights inside. Throws Error where they exceed protobuf's 2 GiB.
  [[nodiscard]] std::string serialize() const;

 private:
  friend struct ModelAccess;  // the library's access to `state_`
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace graft::toolkit
