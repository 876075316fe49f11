// Implements dimension expressions and concrete extents.
#include "graft/operator/shape.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace graft {

struct Dim::Node {
  Kind kind;
  std::string name;          // The name of a symbol.
  std::optional<Dim> left;   // The left operand of an expression; the optimum of a data size.
  std::optional<Dim> right;  // The right operand of an expression; the largest value of a data size.
};

namespace {

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) throw std::domain_error("a dimension is divided by zero");
  if (a == std::numeric_limits<std::int64_t>::min() && b == -1)
    throw std::overflow_error("a dimension exceeds 64 bits");
  const std::int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t floor = floor_divide(a, b);
  return floor * b == a ? floor : floor + 1;
}

std::int64_t apply(Dim::Kind kind, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (kind) {
    case Dim::Kind::add: overflow = __builtin_add_overflow(a, b, &result); break;
    case Dim::Kind::subtract: overflow = __builtin_sub_overflow(a, b, &result); break;
    case Dim::Kind::multiply: overflow = __builtin_mul_overflow(a, b, &result); break;
    case Dim::Kind::minimum: result = std::min(a, b); break;
    case Dim::Kind::maximum: result = std::max(a, b); break;
    case Dim::Kind::floor_divide: result = floor_divide(a, b); break;
    case Dim::Kind::ceil_divide: result = ceil_divide(a, b); break;
    case Dim::Kind::equal: result = a == b ? 1 : 0; break;
    case Dim::Kind::less: result = a < b ? 1 : 0; break;
    case Dim::Kind::constant:
    case Dim::Kind::symbol:
    case Dim::Kind::data_size: throw std::logic_error("no expression");
  }
  if (overflow) throw std::overflow_error("a dimension exceeds 64 bits");
  return result;
}

}  // namespace

Dim Dim::symbol(std::string name) {
  Dim result(0);
  result.node_ = std::make_shared<const Node>(Node{Kind::symbol, std::move(name), std::nullopt, std::nullopt});
  return result;
}

Dim Dim::make(Kind kind, const Dim& left, const Dim& right) {
  if (left.kind() == Kind::data_size || right.kind() == Kind::data_size) {
    throw std::domain_error("a data-dependent size must be a dimension by itself, not part of an expression");
  }
  if (left.is_constant() && right.is_constant()) return {apply(kind, left.value_, right.value_)};
  // Applies only identities that hold for all values of the symbols.
  const bool right_is_zero = right.is_constant() && right.value_ == 0;
  const bool right_is_one = right.is_constant() && right.value_ == 1;
  if ((kind == Kind::add || kind == Kind::subtract) && right_is_zero) return left;
  if ((kind == Kind::multiply || kind == Kind::floor_divide || kind == Kind::ceil_divide) && right_is_one) return left;
  if (kind == Kind::add && left == Dim(0)) return right;
  if (kind == Kind::multiply && left == Dim(1)) return right;
  if ((kind == Kind::minimum || kind == Kind::maximum) && left == right) return left;
  Dim result(0);
  result.node_ = std::make_shared<const Node>(Node{kind, std::string(), left, right});
  return result;
}

Dim data_size(std::size_t output, const Dim& optimum, const Dim& largest) {
  if (optimum.kind() == Dim::Kind::data_size || largest.kind() == Dim::Kind::data_size) {
    throw std::domain_error("the optimum and the largest value of a size must not depend on data");
  }
  Dim result(static_cast<std::int64_t>(output));
  result.node_ = std::make_shared<const Dim::Node>(Dim::Node{Dim::Kind::data_size, std::string(), optimum, largest});
  return result;
}

std::optional<std::int64_t> Dim::largest() const {
  const Dim& dim = kind() == Kind::data_size ? right() : *this;
  return dim.is_constant() ? std::optional(dim.value()) : std::nullopt;
}

Dim::Kind Dim::kind() const { return node_ ? node_->kind : Kind::constant; }
const std::string& Dim::name() const { return node_->name; }
const Dim& Dim::left() const { return *node_->left; }
const Dim& Dim::right() const { return *node_->right; }

std::string Dim::to_string() const {
  const auto call = [&](const char* function) {
    return std::string(function) + "(" + left().to_string() + ", " + right().to_string() + ")";
  };
  const auto infix = [&](const char* sign) { return "(" + left().to_string() + sign + right().to_string() + ")"; };
  switch (kind()) {
    case Kind::constant: return std::to_string(value_);
    case Kind::symbol: return name();
    case Kind::add: return infix(" + ");
    case Kind::subtract: return infix(" - ");
    case Kind::multiply: return infix(" * ");
    case Kind::minimum: return call("min");
    case Kind::maximum: return call("max");
    case Kind::floor_divide: return call("floor_div");
    case Kind::ceil_divide: return call("ceil_div");
    case Kind::equal: return infix(" == ");
    case Kind::less: return infix(" < ");
    case Kind::data_size: return "0 to " + right().to_string();
  }
  return {};
}

std::optional<std::int64_t> Dim::evaluate(
    const std::function<std::optional<std::int64_t>(const std::string&)>& value_of) const {
  if (is_constant()) return value_;
  if (kind() == Kind::symbol) return value_of(name());
  if (kind() == Kind::data_size) return std::nullopt;
  const auto a = left().evaluate(value_of);
  const auto b = right().evaluate(value_of);
  if (!a || !b) return std::nullopt;
  return apply(kind(), *a, *b);
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.node_ == b.node_) return a.value_ == b.value_;
  if (a.is_constant() || b.is_constant() || a.kind() != b.kind()) return false;
  if (a.kind() == Dim::Kind::symbol) return a.name() == b.name();
  return a.value_ == b.value_ && a.left() == b.left() && a.right() == b.right();
}

Dim operator+(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::add, a, b); }
Dim operator-(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::subtract, a, b); }
Dim operator*(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::multiply, a, b); }
Dim min(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::minimum, a, b); }
Dim max(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::maximum, a, b); }
Dim floor_div(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::floor_divide, a, b); }
Dim ceil_div(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::ceil_divide, a, b); }
Dim equal(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::equal, a, b); }
Dim less(const Dim& a, const Dim& b) { return Dim::make(Dim::Kind::less, a, b); }

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::string dim = shape[i].to_string();
    // A dimension without a name has an internal name such as "?79", which means nothing to a reader.
    text += (i == 0 ? "" : ", ") + (dim.find('?') == std::string::npos ? dim : "?");
  }
  return text + "]";
}

Extents::Extents(std::initializer_list<std::int64_t> values) {
  for (const std::int64_t value : values) push_back(value);
}

Status Extents::make(const std::vector<std::int64_t>& values, Extents& result) {
  if (values.size() > static_cast<std::size_t>(max_rank)) {
    return invalid_argument("a tensor may have at most " + std::to_string(max_rank) + " dimensions; found " +
                            std::to_string(values.size()));
  }
  Extents made;
  for (const std::int64_t value : values) {
    if (value < 0) return invalid_argument("a dimension must be at least 0; found " + std::to_string(value));
    made.push_back(value);
  }
  result = made;
  return {};
}

void Extents::push_back(std::int64_t value) {
  if (rank_ == max_rank) throw std::length_error("a tensor has at most 8 dimensions");
  values_[static_cast<std::size_t>(rank_++)] = value;
}

std::int64_t Extents::element_count() const {
  if (std::find(begin(), end(), 0) != end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t value : *this) {
    if (__builtin_mul_overflow(count, value, &count)) return std::numeric_limits<std::int64_t>::max();
  }
  return count;
}

bool operator==(const Extents& a, const Extents& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

std::string to_string(const Extents& extents) {
  if (extents.rank() == 0) return "scalar";
  std::string text;
  for (const std::int64_t value : extents) text += (text.empty() ? "" : "x") + std::to_string(value);
  return text;
}

}  // namespace graft
