#include "tests/tools/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <thread>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace lanewise {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{60};

// Between fork and exec of a process with one thread.
[[noreturn]] void Exec(const std::string& program,
                       const std::vector<std::string>& arguments,
                       const RunOptions& options) {
  for (const auto& [name, value] : options.environment) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  signal(SIGINT, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  execv(program.c_str(), argv.data());
  _exit(127);
}

void AppendAvailable(int* fd, std::string* text) {
  char block[65536];
  const ssize_t count = read(*fd, block, sizeof(block));
  if (count > 0) {
    text->append(block, static_cast<size_t>(count));
  } else if (count == 0 || errno != EINTR) {  // EIO: the terminal has closed
    close(*fd);
    *fd = -1;
  }
}

}  // namespace

void Child::MakePipes(const RunOptions& options) {
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
  if (pipe2(out, O_CLOEXEC) != 0) abort();
  if (options.block_out) {
    // A pipe of one page that has room for 8 bytes.
    filled_ = static_cast<size_t>(fcntl(out[1], F_SETPIPE_SZ, 4096)) - 8;
    const std::string fill(filled_, '#');
    if (write(out[1], fill.data(), fill.size()) < 0) abort();
  }
  if (options.terminal) {
    if (openpty(&err[0], &err[1], nullptr, nullptr, nullptr) != 0) abort();
    in[0] = dup(err[1]);
    in[1] = dup(err[0]);
    for (int fd : {in[0], in[1], err[0], err[1]}) {
      fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
  } else if (pipe2(in, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    abort();
  }
  in_ = in[1];
  out_fd_ = out[0];
  err_fd_ = err[0];
  theirs_[0] = in[0];
  theirs_[1] = out[1];
  theirs_[2] = err[1];
  if (!options.out_file.empty()) {
    close(theirs_[1]);
    theirs_[1] = open(options.out_file.c_str(), O_WRONLY | O_CLOEXEC);
  }
}

Child::Child(const std::string& program,
             const std::vector<std::string>& arguments,
             const RunOptions& options) {
  signal(SIGPIPE, SIG_IGN);
  MakePipes(options);
  pid_ = fork();
  if (pid_ == 0) {
    for (int i = 0; i < 3; ++i) dup2(theirs_[i], i);
    Exec(program, arguments, options);
  }
  for (int& fd : theirs_) close(fd);
  Send(options.in);
  if (!options.keep_in_open && !options.terminal) CloseIn();
}

Child::~Child() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (int fd : {in_, out_fd_, err_fd_}) {
    if (fd >= 0) close(fd);
  }
}

void Child::Send(const std::string& text) {
  size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t count = write(in_, text.data() + sent, text.size() - sent);
    if (count > 0) sent += static_cast<size_t>(count);
    if (count < 0 && errno != EINTR) return;
  }
}

void Child::CloseIn() {
  close(in_);
  in_ = -1;
}

void Child::Signal(int signal) {
  if (pid_ > 0) kill(pid_, signal);  // others mean groups of processes
}

void Child::CloseOut() {
  close(out_fd_);
  out_fd_ = -1;
}

bool Child::Pump(int timeout_ms, bool out) {
  pollfd fds[2] = {{err_fd_, POLLIN, 0}, {out ? out_fd_ : -1, POLLIN, 0}};
  if (fds[0].fd < 0 && fds[1].fd < 0) return false;
  if (poll(fds, 2, timeout_ms) <= 0) return true;
  if (fds[0].revents != 0) AppendAvailable(&err_fd_, &err_);
  if (fds[1].revents != 0) AppendAvailable(&out_fd_, &out_);
  return true;
}

bool Child::Wait(const std::string& text, std::string* stream) {
  const Clock::time_point end = Clock::now() + kPatience;
  while (stream->find(text) == std::string::npos) {
    if (Clock::now() > end || !Pump(100, stream == &out_)) return false;
  }
  return true;
}

bool Child::WaitForText() const {
  const Clock::time_point end = Clock::now() + kPatience;
  while (Clock::now() < end) {
    int available = 0;
    if (ioctl(out_fd_, FIONREAD, &available) != 0) return false;
    if (static_cast<size_t>(available) > filled_) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

bool Child::WaitUntilAsleep() const {
  const std::string path = "/proc/" + std::to_string(pid_) + "/status";
  const Clock::time_point end = Clock::now() + kPatience;
  while (Clock::now() < end) {
    std::ifstream status(path);
    std::string word;
    while (status >> word && word != "State:") {
    }
    if (status >> word && word == "S") return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

bool Child::WaitForDefaultInterrupt() const {
  const std::string path = "/proc/" + std::to_string(pid_) + "/status";
  const Clock::time_point end = Clock::now() + kPatience;
  while (Clock::now() < end) {
    std::ifstream status(path);
    std::string word;
    while (status >> word && word != "SigCgt:") {
    }
    uint64_t mask = 0;
    status >> std::hex >> mask;
    if ((mask >> (SIGINT - 1) & 1) == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

RunResult Child::Finish() {
  const Clock::time_point end = Clock::now() + kPatience;
  int status = 0;
  bool ended = false;
  while (!ended) {
    if (!Pump(20, true))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ended = waitpid(pid_, &status, WNOHANG) == pid_;
    if (!ended && Clock::now() > end) {
      kill(pid_, SIGKILL);
      waitpid(pid_, &status, 0);
      ended = true;
    }
  }
  pid_ = -1;
  // What it left behind; the ends of the program are closed now.
  while ((out_fd_ >= 0 || err_fd_ >= 0) && Clock::now() < end) {
    if (!Pump(100, true)) break;
  }
  RunResult result;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.out = out_;
  result.err = err_;
  return result;
}

RunResult RunProgram(const std::string& program,
                     const std::vector<std::string>& arguments,
                     const RunOptions& options) {
  return Child(program, arguments, options).Finish();
}

void ExpectErrorLine(const RunResult& result, const std::string& program,
                     int exit_code, const std::vector<std::string>& words) {
  SCOPED_TRACE(result.err);
  EXPECT_EQ(result.exit_code, exit_code);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(absl::StartsWith(result.err, program + ": "));
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1);
  for (const std::string& word : words) {
    EXPECT_TRUE(absl::StrContains(result.err, word)) << word;
  }
}

}  // namespace lanewise
