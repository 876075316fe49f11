// Tests child processes, with the shell as the child.
#include "engine/process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "engine/driver.hpp"
#include "graft/error.hpp"

namespace graft::engine {
namespace {

struct Output {
  std::vector<std::string> lines;
  std::vector<std::string> errors;
  ProcessResult result;
};

Output run_shell(const std::string& script, const std::vector<std::string>& environment = {},
                 const std::function<bool()>& should_stop = {}) {
  Output output;
  output.result = run_process({"sh", "-c", script}, environment,
                              {.on_output = [&](std::string_view line) { output.lines.emplace_back(line); },
                               .on_error = [&](std::string_view line) { output.errors.emplace_back(line); },
                               .should_stop = should_stop});
  return output;
}

TEST(RunProcess, both_outputs_line_by_line) {
  const Output output = run_shell("echo one; echo two >&2; printf 'three\\n\\nfour'; exit 7");
  EXPECT_EQ(output.lines, (std::vector<std::string>{"one", "three", "", "four"}));
  EXPECT_EQ(output.errors, (std::vector<std::string>{"two"}));
  EXPECT_EQ(output.result.exit_code, 7);
  EXPECT_EQ(output.result.signal, 0);
}

TEST(RunProcess, long_lines_arrive_whole) {
  const Output output = run_shell("head -c 300000 /dev/zero | tr '\\0' x; echo; echo end");
  ASSERT_EQ(output.lines.size(), 2U);
  EXPECT_EQ(output.lines[0], std::string(300000, 'x'));
}

TEST(RunProcess, environment_adds_and_replaces) {
  ::setenv("GRAFT_TEST_KEPT", "kept", 1);
  ::setenv("GRAFT_TEST_CHANGED", "old", 1);
  const Output output = run_shell("echo $GRAFT_TEST_KEPT $GRAFT_TEST_CHANGED $GRAFT_TEST_NEW",
                                  {"GRAFT_TEST_CHANGED=changed", "GRAFT_TEST_NEW=new"});
  EXPECT_EQ(output.lines, (std::vector<std::string>{"kept changed new"}));
}

TEST(RunProcess, arguments_reach_the_child_as_they_are) {
  std::string line;
  (void)run_process({"printf", "%s", "a b; $HOME 'c'"}, {},
                    {.on_output = [&](std::string_view l) { line = l; }, .on_error = {}, .should_stop = {}});
  EXPECT_EQ(line, "a b; $HOME 'c'");
}

TEST(RunProcess, standard_input_is_empty) {
  EXPECT_EQ(run_shell("cat; echo end").lines, (std::vector<std::string>{"end"}));
}

/// The surviving process keeps the outputs open, and signals to the child's group do not reach it. It ends when this
/// test has ended.
TEST(RunProcess, what_outlives_the_child_in_a_session_of_its_own_is_not_waited_for) {
  const std::string outlives =
      "setsid sh -c 'while kill -0 $0 2>/dev/null; do sleep 0.1; done' " + std::to_string(::getpid()) + " & ";
  const Output output = run_shell(outlives + "echo one; printf two; exit 3");
  EXPECT_EQ(output.lines, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(output.result.exit_code, 3);
}

TEST(RunProcess, nor_what_writes_on) {
  const Output output = run_shell("setsid sh -c 'while kill -0 $0 2>/dev/null; do echo more; done' " +
                                  std::to_string(::getpid()) + " & exit 4");
  EXPECT_EQ(output.result.exit_code, 4);
}

TEST(ChildProcess, is_talked_to) {
  std::vector<std::string> lines;
  ChildProcess child(
      {"sh", "-c", "while read line; do echo \"heard $line\"; done; exit 5"}, {},
      {.on_output = [&](std::string_view line) { lines.emplace_back(line); }, .on_error = {}, .should_stop = {}});
  for (const char* word : {"one", "two"}) {
    const std::size_t before = lines.size();
    child.write_line(word);
    while (lines.size() == before && child.read_some()) {
    }
    ASSERT_EQ(lines.size(), before + 1);
    EXPECT_EQ(lines.back(), std::string("heard ") + word);
  }
  child.close_input();
  while (child.read_some()) {
  }
  EXPECT_EQ(child.wait().exit_code, 5);
}

TEST(ChildProcess, one_that_is_gone_takes_no_lines_and_harms_nobody) {
  ChildProcess child({"sh", "-c", "exit 0"}, {}, {});
  while (child.read_some()) {
  }
  EXPECT_EQ(child.wait().exit_code, 0);
  child.write_line("nobody reads this");
}

TEST(RunProcess, a_signal_is_told) { EXPECT_EQ(run_shell("kill -ABRT $$").result.signal, SIGABRT); }

TEST(RunProcess, a_child_waits_for_its_own_children_where_the_caller_does_not) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const Output output = run_shell("sh -c 'exit 7'; echo $?");
  std::signal(SIGCHLD, before);
  EXPECT_EQ(output.lines, std::vector<std::string>{"7"});
}

TEST(RunProcess, stop_ends_the_child) {
  const Output output =
      run_shell("trap 'echo stopped; exit 3' TERM; while :; do sleep 0.05; done", {}, [] { return true; });
  EXPECT_TRUE(output.result.signal == SIGTERM || output.result.exit_code == 3);
}

/// Runs a script and terminates it as soon as it has written something.
ProcessResult run_until_it_speaks(const std::string& script) {
  bool speaks = false;
  return run_process({"sh", "-c", script}, {},
                     {.on_output = [&](std::string_view /*line*/) { speaks = true; },
                      .on_error = {},
                      .should_stop = [&] { return speaks; }});
}

TEST(RunProcess, stop_ends_a_child_that_does_not_listen) {
  EXPECT_EQ(run_until_it_speaks("trap '' TERM; echo ready; while :; do sleep 0.1; done").signal, SIGKILL);
}

TEST(RunProcess, stop_reaches_what_a_shell_has_started) {
  // `sleep` keeps the outputs open: if it were not terminated too, this call would wait for it.
  EXPECT_EQ(run_until_it_speaks("echo ready; sleep 600; echo late").signal, SIGTERM);
}

TEST(RunProcess, a_program_that_is_not_there_is_a_missing_tool) {
  try {
    (void)run_process({"/nowhere/python"}, {}, {});
    FAIL() << "started";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::missing_tool);
    EXPECT_NE(std::string(error.what()).find("/nowhere/python"), std::string::npos);
  }
}

TEST(RunProcess, no_descriptor_leaks_into_the_child) {
  int inherited = 0;  // descriptors that this program inherited and passes on
  for (int descriptor = STDERR_FILENO + 1; descriptor < 1024; ++descriptor) {
    const int flags = ::fcntl(descriptor, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) ++inherited;
  }
  const Output output = run_shell("ls /proc/self/fd | wc -l");
  EXPECT_EQ(output.lines.at(0), std::to_string(4 + inherited));  // three standard streams, and the folder that ls reads
}

TEST(ChildProcess, one_that_does_not_end_when_it_is_told_to_is_ended) {
  ::pid_t child = 0;
  {
    ChildProcess stubborn({"sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1; done"}, {},
                          {.on_output = [&](std::string_view line) { child = std::stoi(std::string(line)); },
                           .on_error = {},
                           .should_stop = {}});
    while (child == 0) (void)stubborn.read_some();
  }
  EXPECT_EQ(::kill(child, 0), -1);
}

TEST(ChildProcess, one_that_closes_its_outputs_and_goes_on_can_be_stopped) {
  bool asked = false;
  const ProcessResult result =
      run_process({"sh", "-c", "exec sleep 1000 >/dev/null 2>&1"}, {},
                  {.on_output = {}, .on_error = {}, .should_stop = [&] { return std::exchange(asked, true); }});
  EXPECT_EQ(result.signal, SIGTERM);
}

TEST(FindEngineDriver, a_chosen_python_that_is_not_there_is_refused) {
  ::setenv("GRAFT_PYTHON", "/nowhere/python", 1);
  EXPECT_THROW((void)find_engine_driver(), Error);
  ::setenv("GRAFT_PYTHON", "/bin/sh", 1);
  EXPECT_EQ(find_engine_driver().python, "/bin/sh");
  ::unsetenv("GRAFT_PYTHON");
}

TEST(RunDriver, lines_that_are_no_events_end_up_in_the_message) {
  // `sh -m graft.engine` is not Python: it ends at once with a message.
  const auto kind = [] {
    try {
      (void)run_driver({.python = "/bin/sh", .package_folder = {}}, {"probe"});
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("graft.engine"), std::string::npos) << error.what();
      return error.kind();
    }
    return Error::Kind::answer_is_no;
  };
  ::unsetenv("GRAFT_PYTHON");
  EXPECT_EQ(kind(), Error::Kind::internal);
  // An interpreter that the user chose is the user's to change.
  ::setenv("GRAFT_PYTHON", "/bin/sh", 1);
  EXPECT_EQ(kind(), Error::Kind::missing_tool);
  ::unsetenv("GRAFT_PYTHON");
}

}  // namespace
}  // namespace graft::engine
