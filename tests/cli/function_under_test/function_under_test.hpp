// An operator whose function is the text in GRAFT_TEST_FUNCTION, to test the messages of `graft --operators` about
// invalid functions.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "graft/operator/define_operator.hpp"

namespace my {

struct FunctionUnderTest {
  static constexpr auto name = "FunctionUnderTest";
  static constexpr int version = 1;
  static constexpr auto doc = "What the test says.";
  static constexpr auto source = "a test";
  static constexpr auto why_plugin = "a test";

  float beta = 1;
  std::int64_t times = 1;

  static constexpr auto attributes() {
    return std::tuple{
        attribute("beta", &FunctionUnderTest::beta, "a number", graft::positive_and_finite()),
        attribute("times", &FunctionUnderTest::times, "an integer", graft::Range{.lowest = 1, .highest = 2})};
  }
  static constexpr auto ports() {
    return std::array{graft::input("x", "T", "any", "the values"), graft::output("y", "T", "as x", "the result")};
  }
  static constexpr auto types() {
    using enum graft::DType;
    return std::array{graft::TypeConstraint("T", f32, f16, bf16)};
  }
  static std::vector<graft::Shape> infer_shapes(std::span<const graft::Shape> inputs) { return {inputs[0]}; }

  static std::string text(const char* variable) {
    const char* given = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nothing sets it
    return given == nullptr ? "" : given;
  }
  [[nodiscard]] std::optional<graft::Function> function(const graft::FunctionInputs& /*inputs*/) const {
    // Where `times` is 2, returns another body with the same name.
    const std::string other = times == 2 ? text("GRAFT_TEST_SECOND_FUNCTION") : "";
    const std::string body = other.empty() ? text("GRAFT_TEST_FUNCTION") : other;
    if (body == "throw an exception") throw std::out_of_range("no such rank");
    if (body == "throw a number") throw 1;  // NOLINT(hicpp-exception-baseclass): the test is that any is caught
    const bool is_named = text("GRAFT_TEST_WITHOUT_NAME").empty();
    return graft::Function{is_named ? name : "", body.empty() ? "y = Identity(x)" : body};
  }
  [[nodiscard]] std::optional<std::string> native_form(const graft::FunctionInputs& /*inputs*/) const {
    const std::string form = text("GRAFT_TEST_NATIVE_FORM");
    if (form == "throw an exception") throw std::out_of_range("no such rank");
    return form.empty() ? std::nullopt : std::optional(form);
  }
};

graft::Status run(const FunctionUnderTest& op, const graft::Problem& problem, const graft::Buffers& buffers,
                  const graft::CpuContext& context);
std::span<const graft::Variant<FunctionUnderTest>> cuda_kernels(const FunctionUnderTest& op);

}  // namespace my
