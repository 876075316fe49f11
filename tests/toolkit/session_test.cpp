// Tests that a token cancels a run of a session, also in a Loop of many short iterations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "graft/toolkit/run.hpp"
#include "tests/support/text_model.hpp"
#include "toolkit/access.hpp"
#include "toolkit/tensors.hpp"

namespace graft::toolkit {
namespace {

/// Returns a network that repeats an operator of Graft `n` times.
Model repeating_model() {
  onnx::Model model = test::text_model({{"x", onnx::ElementType::f32, Shape{2, 4}},
                                        {"n", onnx::ElementType::i64, Shape{}},
                                        {"yes", onnx::TensorData::scalar_of(onnx::ElementType::boolean, 1)}},
                                       "", {});
  onnx::Graph& graph = model.graph();
  onnx::Node* loop = graph.add_node("Loop", {graph.find("n"), graph.find("yes"), graph.find("x")}, {"y"});
  auto body = std::make_unique<onnx::Graph>(&graph);
  for (const char* input : {"i", "go"}) body->add_input(input);
  onnx::Value* carried = body->add_input("v");
  carried->type = onnx::ElementType::f32;
  carried->shape = Shape{2, 4};
  onnx::parse_nodes(*body, "on = Identity(go)\nu = graft::LeakyReLU<alpha=0.5>(v)\nw = Add(u, x)", {"on", "w"},
                    nullptr);
  loop->attributes["body"] = onnx::NodeAttribute(onnx::AttributeData(std::move(body)));
  graph.add_output(*loop->output());
  infer_shapes(model);
  return ModelAccess::make(std::move(model));
}

Tensors inputs(std::int64_t iterations) {
  return to_public({{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {2, 4}, {1, -2, 3, -4, 5, -6, 7, -8})},
                    {"n", onnx::TensorData::scalar_of(onnx::ElementType::i64, static_cast<double>(iterations))}},
                   "input");
}

/// Returns the processor time of the processes below this one, in ticks by process id.
std::map<int, std::int64_t> times_of_engines() {
  std::map<int, int> parents;
  std::map<int, std::int64_t> times;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (!std::getline(file, line)) continue;  // the process has ended
    std::istringstream fields(line.substr(line.rfind(')') + 1));
    std::string skipped;
    int parent = 0;
    std::int64_t user = 0;
    std::int64_t system = 0;
    fields >> skipped >> parent;
    for (int i = 0; i < 9; ++i) fields >> skipped;
    fields >> user >> system;
    parents[std::stoi(name)] = parent;
    times[std::stoi(name)] = user + system;
  }
  const auto is_below = [&](int process) {
    for (auto each = parents.find(process); each != parents.end(); each = parents.find(each->second)) {
      if (each->second == ::getpid()) return true;
    }
    return false;
  };
  std::erase_if(times, [&](const auto& each) { return !is_below(each.first); });
  return times;
}

// The iterations would take many minutes. The token is used once a process of an engine has computed for a while:
// before the run these processes are idle, except those of runs that were cancelled earlier. They end with the test.
TEST(Session, ARunOfManyShortIterationsIsCancelled) {
  const Model model = repeating_model();
  std::set<int> abandoned;
  for (const bool own_kernels : {false, true}) {
    SessionOptions options;
    options.own_kernels = own_kernels;
    CancelToken token = options.watch.cancel;
    Session session(model, options);
    EXPECT_EQ(session.run(inputs(2)).size(), 1U);
    const std::map<int, std::int64_t> before = times_of_engines();
    const auto find_computing = [&]() -> std::optional<int> {
      constexpr std::int64_t enough = 10;
      for (const auto& [process, time] : times_of_engines()) {
        const auto known = before.find(process);
        if (known != before.end() && time - known->second >= enough && !abandoned.contains(process)) return process;
      }
      return std::nullopt;
    };
    std::atomic<bool> has_ended = false;
    std::optional<int> computing;
    std::thread canceller([&] {
      while (!has_ended && !computing) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        computing = find_computing();
      }
      token.cancel();
    });
    EXPECT_THROW(static_cast<void>(session.run(inputs(1'000'000'000))), Cancelled) << own_kernels;
    has_ended = true;
    canceller.join();
    ASSERT_TRUE(computing) << "the run ended before a process computed for it";
    abandoned.insert(*computing);
    EXPECT_THROW(static_cast<void>(session.run(inputs(2))), Cancelled) << own_kernels;
  }
}

}  // namespace
}  // namespace graft::toolkit
