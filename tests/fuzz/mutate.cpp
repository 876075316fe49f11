// Changes protobuf messages by reflection.
#include "tests/fuzz/mutate.hpp"

#include <array>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace graft::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::array<std::int64_t, 28> numbers = {0,
                                                  1,
                                                  -1,
                                                  2,
                                                  3,
                                                  4,
                                                  5,
                                                  7,
                                                  8,
                                                  10,
                                                  16,
                                                  64,
                                                  127,
                                                  255,
                                                  256,
                                                  1000,
                                                  65536,
                                                  -2,
                                                  -5,
                                                  std::numeric_limits<std::int32_t>::max(),
                                                  std::numeric_limits<std::int32_t>::min(),
                                                  std::numeric_limits<std::uint32_t>::max(),
                                                  std::int64_t{1} << 31,
                                                  std::int64_t{1} << 33,
                                                  std::int64_t{1} << 40,
                                                  std::int64_t{1} << 62,
                                                  std::numeric_limits<std::int64_t>::max(),
                                                  std::numeric_limits<std::int64_t>::min()};

constexpr std::array<double, 12> reals = {0,
                                          -0.0,
                                          1,
                                          -1,
                                          0.5,
                                          1e-45,
                                          1e-12,
                                          3e38,
                                          1e300,
                                          std::numeric_limits<double>::infinity(),
                                          -std::numeric_limits<double>::infinity(),
                                          std::numeric_limits<double>::quiet_NaN()};

/// Limits of a message: messages that grow with each mutation only slow the fuzzer down.
constexpr int most_elements = 4096;
constexpr std::size_t most_bytes = 1 << 20;

class Mutation {
 public:
  Mutation(Message& root, std::uint64_t seed) : root_(root), random_(seed) {}

  void run() {
    for (std::uint64_t left = 1 + below(4); left > 0; --left) {
      collect_all();
      change(*messages_[below(messages_.size())]);
    }
  }

 private:
  std::uint64_t below(std::uint64_t count) { return random_() % count; }

  void collect_all() {
    messages_.clear();
    texts_.clear();
    collect(root_, 0);
  }

  void collect(Message& message, int depth) {
    messages_.push_back(&message);
    if (depth > 40) return;
    const Reflection& reflection = *message.GetReflection();
    std::vector<const FieldDescriptor*> set;
    reflection.ListFields(message, &set);
    for (const FieldDescriptor* field : set) {
      if (field->is_map()) sort_by_key(message, reflection, field);
      const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
      for (int i = 0; i < count && i < most_elements; ++i) {
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          collect(*(field->is_repeated() ? reflection.MutableRepeatedMessage(&message, field, i)
                                         : reflection.MutableMessage(&message, field)),
                  depth + 1);
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
          std::string text = field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                                  : reflection.GetString(message, field);
          if (text.size() < 64) texts_.push_back(std::move(text));
        }
      }
    }
  }

  /// Sorts the entries of a map, whose hash order differs between runs. The keys are strings.
  static void sort_by_key(Message& message, const Reflection& reflection, const FieldDescriptor* field) {
    const auto key = [&](int i) {
      const Message& entry = reflection.GetRepeatedMessage(message, field, i);
      return entry.GetReflection()->GetString(entry, entry.GetDescriptor()->map_key());
    };
    const int count = reflection.FieldSize(message, field);
    for (int to = 0; to < count; ++to) {
      int lowest = to;
      for (int i = to + 1; i < count; ++i) lowest = key(i) < key(lowest) ? i : lowest;
      if (lowest != to) reflection.SwapElements(&message, field, to, lowest);
    }
  }

  void change(Message& message) {
    const Reflection& reflection = *message.GetReflection();
    // Mostly fields that are set; sometimes any field.
    std::vector<const FieldDescriptor*> fields;
    if (below(4) != 0) reflection.ListFields(message, &fields);
    if (fields.empty()) {
      for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
        fields.push_back(message.GetDescriptor()->field(i));
      }
    }
    if (fields.empty()) return;
    const FieldDescriptor* field = fields[below(fields.size())];
    if (below(12) == 0) {
      reflection.ClearField(&message, field);
    } else if (field->is_repeated()) {
      change_list(message, reflection, field);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      replace(*reflection.MutableMessage(&message, field));
    } else {
      set(message, reflection, field, -1);
    }
  }

  void change_list(Message& message, const Reflection& reflection, const FieldDescriptor* field) {
    const int count = reflection.FieldSize(message, field);
    const int place = count == 0 ? 0 : static_cast<int>(below(static_cast<std::uint64_t>(count)));
    const auto action = count == 0 ? 0 : below(6);
    if (action == 1) {
      reflection.SwapElements(&message, field, place, count - 1);
      reflection.RemoveLast(&message, field);
    } else if (action == 2) {
      reflection.SwapElements(&message, field, place, static_cast<int>(below(static_cast<std::uint64_t>(count))));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (action >= 3) {
        replace(*reflection.MutableRepeatedMessage(&message, field, place));
        return;
      }
      if (count >= most_elements || message.ByteSizeLong() > most_bytes) return;
      if (count == 0) {
        replace(*reflection.AddMessage(&message, field));
        return;
      }
      const std::unique_ptr<Message> copy(reflection.GetRepeatedMessage(message, field, place).New());
      copy->CopyFrom(reflection.GetRepeatedMessage(message, field, place));
      for (std::uint64_t left = below(8) == 0 ? 16 : 1; left > 0; --left) {
        reflection.AddMessage(&message, field)->CopyFrom(*copy);
      }
    } else if (action >= 3) {
      set(message, reflection, field, place);
    } else {
      if (count >= most_elements) return;
      for (std::uint64_t left = below(8) == 0 ? 16 : 1; left > 0; --left) add(message, reflection, field);
    }
  }

  /// Replaces a message by a copy of another one of its type, which may be a message that contains it.
  void replace(Message& message) {
    // Setting the message may have removed another one of its oneof, and messages that were collected in it.
    collect_all();
    std::vector<const Message*> others;
    for (const Message* other : messages_) {
      if (other->GetDescriptor() == message.GetDescriptor() && other != &message) others.push_back(other);
    }
    if (others.empty() || below(3) == 0) {
      change_scalar_of(message);
      return;
    }
    const Message& other = *others[below(others.size())];
    if (other.ByteSizeLong() > most_bytes) return;
    const std::unique_ptr<Message> copy(other.New());
    copy->CopyFrom(other);
    message.CopyFrom(*copy);
  }

  void change_scalar_of(Message& message) {
    const int count = message.GetDescriptor()->field_count();
    if (count == 0) return;
    const FieldDescriptor* field =
        message.GetDescriptor()->field(static_cast<int>(below(static_cast<std::uint64_t>(count))));
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return;
    if (field->is_repeated()) {
      add(message, *message.GetReflection(), field);
    } else {
      set(message, *message.GetReflection(), field, -1);
    }
  }

  std::int64_t number(std::int64_t old) {
    switch (below(4)) {
      case 0: return static_cast<std::int64_t>(static_cast<std::uint64_t>(old) + below(3) - 1);
      case 1: return static_cast<std::int64_t>(below(12));
      default: return numbers[below(numbers.size())];
    }
  }

  double real() { return reals[below(reals.size())]; }

  std::string text(const FieldDescriptor* field) {
    const bool any_bytes = field->type() == FieldDescriptor::TYPE_BYTES;
    switch (below(any_bytes ? 10 : 8)) {
      case 0: return "";
      case 1: return std::string("a\0b", 3);
      case 2: return std::string(1 + below(300), 'n');
      case 3: return (texts_.empty() ? "" : texts_[below(texts_.size())]) + ":1";
      case 8: return "\xff\xfe\x80";
      case 9: return std::string(below(64), '\x01');
      default: return texts_.empty() ? "x" : texts_[below(texts_.size())];
    }
  }

  /// Sets the element at `place` of a list, or the field itself where `place` is below 0.
  void set(Message& message, const Reflection& reflection, const FieldDescriptor* field, int place) {
    const bool listed = place >= 0;
    const auto enumerator = [&] {
      const auto* type = field->enum_type();
      return type->value(static_cast<int>(below(static_cast<std::uint64_t>(type->value_count()))));
    };
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: {
        const auto old =
            listed ? reflection.GetRepeatedInt32(message, field, place) : reflection.GetInt32(message, field);
        const auto value = static_cast<std::int32_t>(number(old));
        listed ? reflection.SetRepeatedInt32(&message, field, place, value)
               : reflection.SetInt32(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_INT64: {
        const auto old =
            listed ? reflection.GetRepeatedInt64(message, field, place) : reflection.GetInt64(message, field);
        const auto value = number(old);
        listed ? reflection.SetRepeatedInt64(&message, field, place, value)
               : reflection.SetInt64(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_UINT32: {
        const auto value = static_cast<std::uint32_t>(number(1));
        listed ? reflection.SetRepeatedUInt32(&message, field, place, value)
               : reflection.SetUInt32(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_UINT64: {
        const auto value = static_cast<std::uint64_t>(number(1));
        listed ? reflection.SetRepeatedUInt64(&message, field, place, value)
               : reflection.SetUInt64(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_FLOAT: {
        const auto value = static_cast<float>(std::min(real(), 3e38));
        listed ? reflection.SetRepeatedFloat(&message, field, place, value)
               : reflection.SetFloat(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        const auto value = real();
        listed ? reflection.SetRepeatedDouble(&message, field, place, value)
               : reflection.SetDouble(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        const bool value = below(2) == 0;
        listed ? reflection.SetRepeatedBool(&message, field, place, value) : reflection.SetBool(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_ENUM:
        listed ? reflection.SetRepeatedEnum(&message, field, place, enumerator())
               : reflection.SetEnum(&message, field, enumerator());
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        listed ? reflection.SetRepeatedString(&message, field, place, text(field))
               : reflection.SetString(&message, field, text(field));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE: break;
    }
  }

  void add(Message& message, const Reflection& reflection, const FieldDescriptor* field) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32: reflection.AddInt32(&message, field, 0); break;
      case FieldDescriptor::CPPTYPE_INT64: reflection.AddInt64(&message, field, 0); break;
      case FieldDescriptor::CPPTYPE_UINT32: reflection.AddUInt32(&message, field, 0); break;
      case FieldDescriptor::CPPTYPE_UINT64: reflection.AddUInt64(&message, field, 0); break;
      case FieldDescriptor::CPPTYPE_FLOAT: reflection.AddFloat(&message, field, 0); break;
      case FieldDescriptor::CPPTYPE_DOUBLE: reflection.AddDouble(&message, field, 0); break;
      case FieldDescriptor::CPPTYPE_BOOL: reflection.AddBool(&message, field, false); break;
      case FieldDescriptor::CPPTYPE_ENUM: reflection.AddEnum(&message, field, field->enum_type()->value(0)); break;
      case FieldDescriptor::CPPTYPE_STRING: reflection.AddString(&message, field, ""); break;
      case FieldDescriptor::CPPTYPE_MESSAGE: return;
    }
    set(message, reflection, field, reflection.FieldSize(message, field) - 1);
  }

  Message& root_;
  std::mt19937_64 random_;
  std::vector<Message*> messages_;
  std::vector<std::string> texts_;
};

}  // namespace

void mutate(Message& message, std::uint64_t seed) { Mutation(message, seed).run(); }

}  // namespace graft::fuzz
