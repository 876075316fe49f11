// Tests the engine in a child process: programs that are not workers, workers that die, and use from several threads.
#include "runtime/worker/worker_engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include "graft/error.hpp"
#include "runtime/engine_limit.hpp"
#include "tests/support/text_model.hpp"

namespace graft::runtime {
namespace {

namespace fs = std::filesystem;
using test::text_model;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

/// Returns the worker program of the build.
std::string worker_program() {
  const char* const program = std::getenv("GRAFT_ENGINE_WORKER");
  EXPECT_NE(program, nullptr) << "ctest sets GRAFT_ENGINE_WORKER";
  return program == nullptr ? "" : program;
}

onnx::Model negation() { return text_model({{"x", onnx::ElementType::f32, {3}}}, "y = Neg(x)", {"y"}); }

const TensorMap three{{"x", onnx::TensorData::from_floats({1, 2, 3})}};

std::vector<double> run(CompiledModel& model) { return *model.run(three).at("y").numbers(); }

class WorkerEngineTest : public testing::Test {
 protected:
  WorkerEngineTest() { fs::create_directory(folder_); }
  ~WorkerEngineTest() override { fs::remove_all(folder_); }

  /// Writes a shell script in place of the worker.
  std::string script(const std::string& text) {
    const fs::path path = folder_ / "worker";
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }

  /// Returns an engine whose worker writes its process number to a file.
  std::unique_ptr<Engine> engine(int idle_limit_s = 60) {
    const WorkerCommand command{
        .arguments = {script("echo $$ >" + (folder_ / "number").string() + "\nexec " + worker_program())},
        .idle_limit_s = idle_limit_s};
    return make_worker_engine([command] { return command; });
  }
  [[nodiscard]] ::pid_t number() const {
    ::pid_t found = 0;
    std::ifstream(folder_ / "number") >> found;
    EXPECT_GT(found, 0);
    return found;
  }
  /// Returns once the worker, a child of this process, has stopped.
  void stop() const {
    ASSERT_EQ(::kill(number(), SIGSTOP), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(number(), &status, WUNTRACED), number());
    ASSERT_TRUE(WIFSTOPPED(status));
  }

 private:
  fs::path folder_ = fs::temp_directory_path() / ("graft_worker_" + std::to_string(::getpid()));
};

TEST_F(WorkerEngineTest, runs) {
  const std::unique_ptr<Engine> remote = engine();
  EXPECT_THAT(std::string(remote->name()), StartsWith("OpenVINO 20"));
  const std::unique_ptr<CompiledModel> model = remote->compile(negation());
  EXPECT_THAT(run(*model), testing::ElementsAre(-1, -2, -3));
  EXPECT_THAT(
      *remote->evaluate_constant_graph(text_model({}, "y = Constant<value=float(2.5)>()", {"y"})).at("y").numbers(),
      testing::ElementsAre(2.5));
}

TEST_F(WorkerEngineTest, in_threads) {
  const std::unique_ptr<Engine> remote = engine();
  std::vector<std::future<void>> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.push_back(std::async(std::launch::async, [&] {
      const std::unique_ptr<CompiledModel> model = remote->compile(negation(), {.streams = 2});
      const std::unique_ptr<CompiledModel> other = model->new_request();
      std::future<void> beside = std::async(std::launch::async, [&] {
        for (int i = 0; i < 20; ++i) EXPECT_THAT(run(*other), testing::ElementsAre(-1, -2, -3));
      });
      for (int i = 0; i < 20; ++i) EXPECT_THAT(run(*model), testing::ElementsAre(-1, -2, -3));
    }));
  }
}

TEST_F(WorkerEngineTest, programs_that_are_no_worker) {
  const auto message = [&](const std::string& program) {
    return [=] { (void)make_worker_engine(program)->compile(negation()); };
  };
  EXPECT_THAT(message("/no/such/program"), ThrowsMessage<Error>(HasSubstr("cannot be started: No such file")));
  EXPECT_THAT(message(script("exit 7")),
              ThrowsMessage<Error>(HasSubstr("is not a worker of the CPU engine: it ended with exit code 7")));
  EXPECT_THAT(message(script("echo hello >&0; echo hello >&0; echo hello >&0")),
              ThrowsMessage<Error>(HasSubstr("not a message of Graft")));
  // A greeting of a newer version; then a message that is not a greeting.
  const std::string eight = R"(\010\000\000\000\000\000\000\000)";
  const auto says = [&](const std::string& kind) {
    return "printf 'GRFT\\" + kind + R"(\000\000\000)" + eight + eight + "' >&0; cat >/dev/null";
  };
  EXPECT_THAT(message(script(says("001"))), ThrowsMessage<Error>(HasSubstr("uses version 8 of the protocol")));
  EXPECT_THAT(message(script(says("002"))), ThrowsMessage<Error>(HasSubstr("sent no greeting")));
}

TEST_F(WorkerEngineTest, killed_in_a_run) {
  const std::unique_ptr<Engine> remote = engine();
  std::string products = "a0 = MatMul(x, x)\n";
  for (int i = 0; i < 400; ++i) {
    products += "a" + std::to_string(i + 1) + " = MatMul(a" + std::to_string(i) + ", x)\n";
  }
  const std::unique_ptr<CompiledModel> minutes =
      remote->compile(text_model({{"x", onnx::ElementType::f32, {2048, 2048}}}, products + "y = Neg(a400)", {"y"}));
  const std::unique_ptr<CompiledModel> idle = remote->compile(negation());
  std::future<TensorMap> result = std::async(std::launch::async, [&] {
    return minutes->run({{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {2048, 2048},
                                                              std::vector<double>(2048 * 2048, 0.01))}});
  });
  EXPECT_EQ(result.wait_for(std::chrono::milliseconds(500)), std::future_status::timeout);
  ASSERT_EQ(::kill(number(), SIGKILL), 0);
  EXPECT_THAT([&] { (void)result.get(); },
              ThrowsMessage<EngineLimit>(StartsWith("test.onnx: the process of OpenVINO ")));
  EXPECT_THAT([&] { (void)idle->run(three); },
              ThrowsMessage<EngineLimit>(HasSubstr(" ended by signal 9 while it ran this model")));
  EXPECT_THAT([&] { (void)idle->new_request(); }, ThrowsMessage<Error>(HasSubstr("ended by signal 9")));
  EXPECT_THAT(run(*remote->compile(negation())), testing::ElementsAre(-1, -2, -3)) << "by a new worker";
}

TEST_F(WorkerEngineTest, a_run_that_is_stopped_leaves_the_worker_to_other_models) {
  const std::unique_ptr<Engine> remote = engine();
  std::string products = "a0 = MatMul(x, x)\n";
  for (int i = 0; i < 400; ++i) {
    products += "a" + std::to_string(i + 1) + " = MatMul(a" + std::to_string(i) + ", x)\n";
  }
  std::atomic<bool> stops{false};
  const std::unique_ptr<CompiledModel> minutes =
      remote->compile(text_model({{"x", onnx::ElementType::f32, {2048, 2048}}}, products + "y = Neg(a400)", {"y"}),
                      {.should_stop = [&] { return stops.load(); }});
  const ::pid_t worker = number();
  const std::unique_ptr<CompiledModel> other = remote->compile(negation());
  const std::unique_ptr<CompiledModel> request = minutes->new_request();
  const TensorMap input{{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {2048, 2048},
                                                             std::vector<double>(2048 * 2048, 0.01))}};
  stops = true;
  EXPECT_THROW((void)request->run(input), Stopped);
  EXPECT_THROW((void)minutes->run(input), Stopped);
  stops = false;
  EXPECT_THROW((void)minutes->run(input), Stopped) << "the answer to the first run would be read as its own";
  EXPECT_THAT(run(*other), testing::ElementsAre(-1, -2, -3));
  EXPECT_THAT(run(*remote->compile(negation())), testing::ElementsAre(-1, -2, -3));
  EXPECT_EQ(number(), worker) << "the same worker";
}

TEST_F(WorkerEngineTest, a_stopped_worker_is_killed) {
  const std::unique_ptr<Engine> remote = engine(1);
  const std::unique_ptr<CompiledModel> model = remote->compile(negation());
  stop();
  EXPECT_THAT([&] { (void)model->run(three); },
              ThrowsMessage<EngineLimit>(HasSubstr(" used no processor time for 1 s and was killed while it ran this "
                                                   "model")));
  const std::unique_ptr<CompiledModel> other = remote->compile(negation());
  EXPECT_THAT(run(*other), testing::ElementsAre(-1, -2, -3)) << "by a new worker";

  // A stopped worker does not read a message that exceeds the socket's buffer either.
  stop();
  const onnx::TensorData large = onnx::TensorData::from_floats(std::vector<float>(4'000'000, 1.F));
  EXPECT_THAT([&] { (void)other->run({{"x", large}}); }, ThrowsMessage<Error>(HasSubstr("and was killed")));
}

TEST_F(WorkerEngineTest, a_worker_that_never_greets_is_killed) {
  const WorkerCommand command{.arguments = {script("exec sleep 600")}, .idle_limit_s = 1};
  EXPECT_THAT([&] { (void)make_worker_engine([&] { return command; })->compile(negation()); },
              ThrowsMessage<Error>(HasSubstr("it used no processor time for 1 s and was killed")));
}

TEST_F(WorkerEngineTest, a_long_run_has_no_limit) {
  const std::unique_ptr<Engine> remote = engine(1);
  std::string sums = "a0 = Sin(x)\n";
  for (int i = 0; i < 12; ++i) sums += "a" + std::to_string(i + 1) + " = MatMul(a" + std::to_string(i) + ", x)\n";
  const std::unique_ptr<CompiledModel> model =
      remote->compile(text_model({{"x", onnx::ElementType::f32, {2048, 2048}}}, sums + "y = Neg(a12)", {"y"}));
  const TensorMap input{{"x", onnx::TensorData::from_numbers(onnx::ElementType::f32, {2048, 2048},
                                                             std::vector<double>(2048 * 2048, 0.0))}};
  EXPECT_EQ(model->run(input).at("y").element_count(), 2048 * 2048);
}

TEST_F(WorkerEngineTest, a_forked_process_has_a_worker_of_its_own) {
  const std::unique_ptr<Engine> remote = engine();
  const std::unique_ptr<CompiledModel> model = remote->compile(negation());
  const ::pid_t ours = number();
  const ::pid_t child = ::fork();
  if (child == 0) {
    try {
      (void)model->run(three);
      ::_exit(2);  // the child would read the parent's answers
    } catch (const Error&) {
    }
    const bool right = run(*remote->compile(negation())) == std::vector<double>{-1, -2, -3};
    ::_exit(right && number() != ours ? 0 : 1);
  }
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(run(*model), testing::ElementsAre(-1, -2, -3)) << "it is not disturbed";
}

TEST_F(WorkerEngineTest, ends_with_the_engine) {
  std::unique_ptr<Engine> remote = engine();
  std::unique_ptr<CompiledModel> model = remote->compile(negation());
  const ::pid_t worker = number();
  remote = nullptr;
  EXPECT_THAT(run(*model), testing::ElementsAre(-1, -2, -3)) << "a compiled model keeps it";
  model = nullptr;
  EXPECT_EQ(::kill(worker, 0), -1);
}

}  // namespace
}  // namespace graft::runtime
