// Maps the inputs of a plugin to the inputs of an operator, which may have another order.
#include "graft/operator/input_order.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace graft {
namespace {

Status refuse_order(const OperatorType& type, std::span<const std::string_view> names, const std::string& why) {
  std::string found;
  for (const std::string_view name : names) found += (found.empty() ? "`" : ", `") + std::string(name) + "`";
  return invalid_argument("operator " + std::string(type.name) + ", a plugin's inputs " + found + ": " + why);
}

}  // namespace

Status InputOrder::make(const OperatorType& type, std::span<const std::string_view> names, InputOrder& result) {
  InputOrder order;
  const std::size_t inputs = type.input_count();
  const auto refuse = [&](std::size_t port, const std::string& why) {
    return refuse_order(type, names, "`" + std::string(type.ports[port].name) + "` " + why);
  };
  if (names.size() > order.ports_.size()) {
    return refuse_order(type, names, "a plugin may have at most " + std::to_string(order.ports_.size()) + " inputs");
  }
  for (const std::string_view name : names) {
    std::size_t port = 0;
    while (port < inputs && type.ports[port].name != name) ++port;
    if (!name.empty() && port == inputs) {
      return refuse_order(type, names, "`" + std::string(name) + "` is not an input of the operator");
    }
    const auto known = std::span(order.ports_).first(order.count_);
    if (!name.empty() && std::find(known.begin(), known.end(), port) != known.end()) {
      return refuse(port, "appears twice");
    }
    order.ports_[order.count_++] = name.empty() ? unused : port;
  }
  if (order.count_ == 0) {
    result = order;
    return {};
  }
  if (type.shape_input_count() > 0 || type.most_inputs() != inputs) {
    return refuse_order(type, names,
                        "the inputs of an operator with shape inputs or a variadic input must keep their order");
  }
  if (order.ports_[0] != 0) return refuse(0, "must be the first input");
  for (std::size_t port = 0; port < inputs; ++port) {
    const std::optional<std::size_t> index = order.index_of(port, order.count_);
    if (!type.ports[port].is_optional()) {
      if (!index) return refuse(port, "is required and missing");
      order.least_ = std::max(order.least_, *index + 1);
      continue;
    }
    for (std::size_t later = port + 1; later < inputs; ++later) {
      const std::optional<std::size_t> index_of_later = order.index_of(later, index.value_or(order.count_));
      const bool has_type_of_first = !type.ports[port].type.constraint.empty() &&
                                     type.ports[port].type.constraint == type.ports[0].type.constraint;
      if (index_of_later && !has_type_of_first) {
        return refuse(port, "is optional and comes before `" + std::string(type.ports[later].name) +
                                "`; only an input with the type constraint of `" + std::string(type.ports[0].name) +
                                "` may be left out before another input");
      }
    }
  }
  result = order;
  return {};
}

InputOrder InputOrder::of(const OperatorType& type, const DropIn* drop_in) {
  InputOrder order;
  if (drop_in == nullptr) return order;
  if (Status status = make(type, drop_in->inputs, order); !status.ok()) throw std::invalid_argument(status.message());
  return order;
}

std::optional<std::size_t> InputOrder::port_of(std::size_t index) const {
  if (is_own()) return index;
  return index < count_ && ports_[index] != unused ? std::optional(ports_[index]) : std::nullopt;
}

std::optional<std::size_t> InputOrder::index_of(std::size_t port, std::size_t given) const {
  if (is_own()) return port < given ? std::optional(port) : std::nullopt;
  const auto known = std::span(ports_).first(std::min(given, count_));
  const auto found = std::find(known.begin(), known.end(), port);
  return found == known.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - known.begin()));
}

std::size_t InputOrder::port_count(std::size_t given) const {
  if (is_own()) return given;
  std::size_t count = 0;
  for (std::size_t index = 0; index < std::min(given, count_); ++index) {
    if (ports_[index] != unused) count = std::max(count, ports_[index] + 1);
  }
  return count;
}

std::string InputOrder::to_string(const OperatorType& type) const {
  std::string text;
  for (std::size_t index = 0; index < count_; ++index) {
    if (index > 0) text += ',';
    if (ports_[index] != unused) text += type.ports[ports_[index]].name;
  }
  return text;
}

Status InputOrder::parse(const OperatorType& type, std::string_view text, InputOrder& result) {
  std::vector<std::string_view> names;
  if (!text.empty()) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t end = std::min(text.find(',', begin), text.size());
      names.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return make(type, names, result);
}

}  // namespace graft
