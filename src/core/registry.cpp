// Holds the operators of a program: the linked operators, and the operators that libraries add.
#include "graft/operator/registry.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "core/remove_operators.hpp"
#include "graft/operator/input_order.hpp"

namespace graft {
namespace {

struct Registry {
  std::vector<const OperatorType*> operators;
  std::vector<OperatorLibrary> libraries;
};

/// Holds all versions of the registry. A version is never changed or freed, because readers may hold spans of it while
/// another thread creates the next version.
class Registries {
 public:
  Registries() { publish({{linked_operators().begin(), linked_operators().end()}, {}}); }

  [[nodiscard]] const Registry& newest() const { return *newest_.load(std::memory_order_acquire); }
  void publish(Registry next) { newest_.store(&all_.emplace_back(std::move(next)), std::memory_order_release); }
  [[nodiscard]] std::mutex& writers() { return writers_; }

 private:
  std::deque<Registry> all_;
  std::atomic<const Registry*> newest_ = nullptr;
  std::mutex writers_;
};

Registries& registries() {
  static Registries all;
  return all;
}

/// Returns "operator of Graft" or "operator of libmine.so".
std::string owner_text(const OperatorType& type) {
  const OperatorLibrary* library = library_of(type);
  return "operator of " + (library == nullptr ? "Graft" : library->file);
}

Status check_onnx_form(const OperatorType& type) {
  if (!type.onnx_form) return {};
  const OnnxForm& form = *type.onnx_form;
  const auto refuse = [&](std::string_view name, const std::string& why) {
    return invalid_argument("operator " + std::string(type.name) + ", onnx_form of " + std::string(form.name) + ": `" +
                            std::string(name) + "` " + why);
  };
  for (const std::string_view name : form.changed_defaults) {
    if (type.find_attribute(name) == nullptr) return refuse(name, "is not an attribute of the operator");
  }
  if (form.inputs.empty()) return {};
  std::size_t next = 0;
  for (const std::string_view name : form.inputs) {
    if (std::count(form.inputs.begin(), form.inputs.end(), name) > 1) return refuse(name, "appears twice");
    const std::optional<std::size_t> port = type.find_input(name);
    if (port && type.ports[*port].is_variadic()) return refuse(name, "is a variadic input");
    if (port && *port != next++) return refuse(name, "is not in the order of the operator's inputs");
    if (!port && type.find_attribute(name) == nullptr)
      return refuse(name, "is neither an input nor an attribute of the operator");
  }
  if (next >= type.required_input_count()) return {};
  return refuse(type.ports[next].name, "is required and missing");
}

/// Returns an error for a definition that no program can use, because it is incomplete, inconsistent or too large.
Status check_type(const OperatorType& type) {
  const std::string name = type.name.empty() ? "an operator without a name" : "operator " + std::string(type.name);
  if (type.name.empty() || type.create == nullptr) return invalid_argument(name + " has an incomplete definition");
  if (type.ports.size() > TypeRow::max_ports) {
    return invalid_argument(name + " has " + std::to_string(type.ports.size()) +
                            " inputs and outputs; it may have at most " + std::to_string(TypeRow::max_ports));
  }
  for (const TypeRow& row : type.type_rows) {
    if (row.count == type.ports.size()) continue;
    return invalid_argument(name + " has a type row of " + std::to_string(row.count) + " formats for " +
                            std::to_string(type.ports.size()) + " inputs and outputs");
  }
  for (const DropIn& drop_in : type.drop_ins) {
    InputOrder order;
    Status status = InputOrder::make(type, drop_in.inputs, order);
    if (!status.ok()) return invalid_argument(std::string(drop_in.plugin_name) + ": " + status.message());
  }
  return check_onnx_form(type);
}

bool share_a_drop_in(const OperatorType& a, const OperatorType& b) {
  return std::any_of(a.drop_ins.begin(), a.drop_ins.end(), [&](const DropIn& mine) {
    return std::any_of(b.drop_ins.begin(), b.drop_ins.end(), [&](const DropIn& theirs) {
      return mine.plugin_name == theirs.plugin_name && mine.version == theirs.version;
    });
  });
}

/// Returns an error if two operators have the same name, replace the same plugin (DropIn), or implement the same ONNX
/// operator (OnnxForm). `owner` describes `known`, for example "operator of Graft".
Status check_names(const OperatorType& added, const OperatorType& known, const std::string& owner) {
  std::string message = "operator " + std::string(added.name);
  if (known.name == added.name) {
    message.append(": an ").append(owner).append(" already has this name");
    return invalid_argument(std::move(message));
  }
  if (share_a_drop_in(known, added)) {
    message.append(" replaces a plugin that ").append(known.name).append(", an ").append(owner);
    message.append(", already replaces");
    return invalid_argument(std::move(message));
  }
  if (added.onnx_form && known.onnx_form && added.onnx_form->name == known.onnx_form->name) {
    message.append(" computes ONNX's ").append(added.onnx_form->name).append(", which ").append(known.name);
    message.append(", an ").append(owner).append(", already computes");
    return invalid_argument(std::move(message));
  }
  return {};
}

}  // namespace

std::span<const OperatorType* const> operators() { return registries().newest().operators; }

const OperatorType* find_operator(std::string_view name) {
  for (const OperatorType* type : operators()) {
    if (type->name == name) return type;
  }
  return nullptr;
}

Status check_operators(std::span<const OperatorType* const> together) {
  for (std::size_t i = 0; i < together.size(); ++i) {
    if (Status status = check_type(*together[i]); !status.ok()) return status;
    for (const OperatorType* earlier : together.first(i)) {
      Status status = check_names(*together[i], *earlier, "operator of the same library");
      if (!status.ok()) return status;
    }
  }
  return {};
}

Status add_operator_library(OperatorLibrary library) {
  const std::lock_guard lock(registries().writers());
  Registry next = registries().newest();
  if (Status status = check_operators(library.operators); !status.ok()) return status;
  for (const OperatorType* added : library.operators) {
    for (const OperatorType* known : next.operators) {
      if (Status status = check_names(*added, *known, owner_text(*known)); !status.ok()) return status;
    }
  }
  next.operators.insert(next.operators.end(), library.operators.begin(), library.operators.end());
  next.libraries.push_back(std::move(library));
  registries().publish(std::move(next));
  return {};
}

void remove_operator_library(std::string_view file) {
  const std::lock_guard lock(registries().writers());
  Registry next = registries().newest();
  for (const OperatorLibrary& library : next.libraries) {
    if (library.file != file) continue;
    for (const OperatorType* gone : library.operators) std::erase(next.operators, gone);
  }
  std::erase_if(next.libraries, [&](const OperatorLibrary& library) { return library.file == file; });
  registries().publish(std::move(next));
}

std::span<const OperatorLibrary> operator_libraries() { return registries().newest().libraries; }

const OperatorLibrary* library_of(const OperatorType& type) {
  for (const OperatorLibrary& library : operator_libraries()) {
    if (std::find(library.operators.begin(), library.operators.end(), &type) != library.operators.end())
      return &library;
  }
  return nullptr;
}

}  // namespace graft
