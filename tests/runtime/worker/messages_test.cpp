// Tests messages to and from a worker: they arrive unchanged, and sizes that a damaged message declares are not
// trusted.
#include "runtime/worker/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "graft/error.hpp"
#include "graft/setting.hpp"
#include "runtime/worker/connection.hpp"
#include "tests/support/text_model.hpp"

namespace graft::runtime {
namespace {

using test::text_model;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::string number(std::uint64_t value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

std::string body_of(const TensorMap& tensors) {
  const TensorMessage message(tensors);
  std::string body;
  for (const std::string_view part : message.parts()) body += part;
  return body;
}

TEST(Messages, tensors_of_all_sizes) {
  const TensorMap sent{
      {"empty", onnx::TensorData::from_numbers(onnx::ElementType::f32, {0, 3}, {})},
      {"scalar", onnx::TensorData::scalar_of(onnx::ElementType::f64, 0.1)},
      {"half", onnx::TensorData::from_numbers(onnx::ElementType::f16, {3}, {1, 2, 3})},
      {"", onnx::TensorData::from_ints({-1, std::int64_t{1} << 62})},
      {"packed", {onnx::ElementType::i4, {3}, onnx::Bytes(std::string(2, '\x21')), nullptr, "", false, ""}}};
  const TensorMap found = decode_tensors(body_of(sent));
  ASSERT_EQ(found.size(), sent.size());
  for (const auto& [name, tensor] : sent) {
    EXPECT_TRUE(found.at(name).same_as(tensor)) << name;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found.at(name).bytes.data()) % 16, 0U) << name;
  }
}

TEST(Messages, models_with_their_options) {
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, {onnx::unknown_dim(), 3}}}, "y = Neg(x)", {"y"});
  model.source = "a file";
  const ModelToCompile found = decode_compile(encode(model, {.kernels = OperatorKernels::own,
                                                             .extra_outputs = {"a", ""},
                                                             .threads = 3,
                                                             .streams = 2,
                                                             .round_inside = true})
                                                  .body);
  EXPECT_EQ(found.model.source, "a file");
  EXPECT_EQ(found.model.graph().outputs()[0]->name, "y");
  EXPECT_EQ(found.options.kernels, OperatorKernels::own);
  EXPECT_EQ(found.options.extra_outputs, (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(found.options.threads, 3);
  EXPECT_EQ(found.options.streams, 2);
  EXPECT_TRUE(found.options.round_inside);
}

TEST(Messages, a_model_that_is_too_large_goes_through_files) {
  const onnx::TensorData weights = onnx::TensorData::from_floats(std::vector<float>(5000, 2.0F));
  onnx::Model model = text_model({{"x", onnx::ElementType::f32, {5000}}, {"w", weights}}, "y = Add(x, w)", {"y"});
  model.source = "a file";
  std::filesystem::path folder;
  onnx::Model found;
  {
    const ModelMessage message = encode(model, std::size_t{19999});
    ASSERT_NE(message.files, nullptr);
    folder = message.files->path();
    EXPECT_LT(message.body.size(), 1000U);
    found = decode_model(message.body);
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_EQ(found.source, "a file");
  EXPECT_TRUE(found.graph().initializers()[0]->initializer->same_as(*model.graph().initializers()[0]->initializer));
  EXPECT_EQ(encode(model, std::size_t{20000}).files, nullptr);
}

TEST(Messages, every_shorter_body_is_refused) {
  const TensorMap tensors{{"x", onnx::TensorData::from_floats({1, 2, 3})}};
  const std::string run = body_of(tensors);
  EXPECT_TRUE(decode_tensors(run).at("x").same_as(tensors.at("x")));
  for (std::size_t size = 0; size < run.size(); ++size) EXPECT_THROW((void)decode_tensors(run.substr(0, size)), Error);
  EXPECT_THROW((void)decode_tensors(run + '\0'), Error);
  const std::string compile = encode(text_model({{"x", onnx::ElementType::f32, {3}}}, "y = Neg(x)", {"y"}), {}).body;
  for (std::size_t size = 0; size < compile.size(); ++size) {
    EXPECT_THROW((void)decode_compile(compile.substr(0, size)), Error);
  }
}

/// A worker does not know how the process that reads its messages names the settings.
TEST(Messages, settings_have_the_names_of_the_reader) {
  const Failure sent{.kind = Error::Kind::bad_input,
                     .text = "load it (" + std::string(mark_of(Setting::operator_libraries)) + "), or set " +
                             std::string(mark_of(Setting::cpu_engine))};
  EXPECT_EQ(decode_failure(encode(sent)).text, "load it (toolkit::load_operators), or set VerifyOptions::engine");
  set_setting_names([](Setting setting) -> std::string_view {
    return setting == Setting::cpu_engine ? "--engine" : "--operators LIB";
  });
  const Failure found = decode_failure(encode(sent));
  set_setting_names(field_name);
  EXPECT_EQ(found.text, "load it (--operators LIB), or set --engine");
}

TEST(Messages, what_a_damaged_body_declares) {
  EXPECT_THAT([] { (void)decode_tensors(number(1) + number(UINT64_MAX)); },
              ThrowsMessage<Error>(HasSubstr("it needs 18446744073709551615 more bytes, and 0 are left")));
  EXPECT_THROW((void)decode_tensors(number(UINT64_MAX)), Error);
  EXPECT_THROW((void)decode_compile(number(2)), Error) << "kernels";
  EXPECT_THROW((void)decode_failure(number(9) + number(0)), Error) << "a kind of error";
  // A tensor 'x' of type f32: one dimension of 4, and 12 bytes; then a negative dimension; then more elements than 64
  // bits count.
  const std::string begin = number(1) + number(1) + "x" + number(1);
  const auto dims = [&](const std::string& dims_and_bytes) {
    return [=] { (void)decode_tensors(begin + dims_and_bytes); };
  };
  const auto padded = [&](std::string head) {
    head.append((16 - (begin.size() + head.size()) % 16) % 16, '\0');
    return head + std::string(12, '\0');
  };
  EXPECT_NO_THROW(dims(padded(number(1) + number(3) + number(12)))());
  EXPECT_THAT(dims(padded(number(1) + number(4) + number(12))),
              ThrowsMessage<Error>(HasSubstr("tensor 'x' has 12 bytes for 4 elements of f32")));
  EXPECT_THROW(dims(padded(number(1) + number(UINT64_MAX) + number(12)))(), Error);
  EXPECT_THROW(dims(padded(number(3) + number(1U << 31U) + number(1U << 31U) + number(4) + number(12)))(), Error);
}

TEST(Connections, messages_and_descriptors_arrive) {
  auto [left, right] = Connection::make_sockets();
  auto [sent, other] = Connection::make_sockets();
  Connection here(std::move(left));
  Connection there(std::move(right));
  const std::string large((std::size_t{1} << 26U) + 1, 'x');  // more than one step of receive
  std::thread sender([&here, &large, &descriptor = sent] {
    EXPECT_TRUE(here.send(1, "", descriptor.get()));
    EXPECT_TRUE(here.send(2, large));
    here = Connection(Descriptor());
  });
  const std::optional<Message> first = there.receive();
  const std::optional<Message> second = there.receive();
  sender.join();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->kind, 1U);
  EXPECT_GE(first->attached.get(), 0);
  EXPECT_EQ(second->body, large);
  EXPECT_EQ(second->attached.get(), -1);
  EXPECT_FALSE(there.receive()) << "the peer is gone";
  EXPECT_FALSE(there.send(1, "text"));
}

TEST(Connections, a_damaged_message) {
  const auto receive = [](const std::string& bytes) {
    auto [left, right] = Connection::make_sockets();
    EXPECT_EQ(::write(left.get(), bytes.data(), bytes.size()), static_cast<::ssize_t>(bytes.size()));
    left.close();
    return Connection(std::move(right)).receive().has_value();
  };
  const std::string magic = std::string("GRFT") + std::string("\1\0\0\0", 4);
  EXPECT_TRUE(receive(magic + number(0)));
  EXPECT_FALSE(receive("GRFT")) << "its end is missing";
  EXPECT_FALSE(receive(magic + number(Connection::largest_body) + "a few bytes")) << "no memory is taken for the rest";
  EXPECT_THAT([&] { (void)receive(magic + number(Connection::largest_body + 1)); },
              ThrowsMessage<Error>(HasSubstr("it may have at most")));
  EXPECT_THAT([&] { (void)receive("HTTP/1.1 400 bad"); }, ThrowsMessage<Error>(HasSubstr("not a message of Graft")));
}

}  // namespace
}  // namespace graft::runtime
