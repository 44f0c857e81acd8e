#include "tools/cli.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"
#include "tools/escaped.h"
#include "tools/output.h"

namespace lanewise {
namespace {

// A pipe as a descriptor pair.
struct Pipe {
  Pipe() { EXPECT_EQ(pipe(fds), 0); }
  ~Pipe() {
    close(fds[0]);
    if (open) close(fds[1]);
  }
  std::string Drain() {
    close(fds[1]);
    open = false;
    std::string text(65536, '\0');
    const ssize_t count = read(fds[0], text.data(), text.size());
    text.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return text;
  }
  int fds[2];
  bool open = true;
};

TEST(Escaped, KeepsTextAndEscapesControls) {
  EXPECT_EQ(Escaped("plain é 日本 🦙"), "plain é 日本 🦙");
  EXPECT_EQ(Escaped("a\nb\tc\rd\\e"), "a\\nb\\tc\\rd\\\\e");
  EXPECT_EQ(Escaped(std::string("\0\x1b[2J\x7f", 6)),
            "\\u{0}\\u{1b}[2J\\u{7f}");
  // C1 controls, a change of direction, a line separator.
  EXPECT_EQ(Escaped("\xc2\x9b|\xe2\x80\xae|\xe2\x80\xa8"),
            "\\u{9b}|\\u{202e}|\\u{2028}");
}

TEST(Escaped, ShowsBytesThatAreNoUtf8) {
  EXPECT_EQ(Escaped("a\xff\xc3"), "a\\xff\\xc3");
  EXPECT_EQ(Escaped("\xc0\x80"), "\\xc0\\x80");           // overlong
  EXPECT_EQ(Escaped("\xe0\x80\x80"), "\\xe0\\x80\\x80");  // overlong
  EXPECT_EQ(Escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(Escaped("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Escaped, CutsBetweenCharacters) {
  EXPECT_EQ(Escaped("abcdef", 3), "abc...");
  EXPECT_EQ(Escaped("aéb", 2), "a...");
  EXPECT_EQ(Escaped("abc", 3), "abc");
  EXPECT_EQ(OneLine("a\\b\nc"), "a\\b\\nc");
}

TEST(Escaped, TerminalKeepsLines) {
  EXPECT_EQ(ForTerminal("a\n\tb\\\x1b[0m"), "a\n\tb\\\\u{1b}[0m");
}

TEST(Output, EndsLinesOnce) {
  Pipe pipe;
  Output out(pipe.fds[1]);
  EXPECT_TRUE(out.EndLine());  // nothing there
  EXPECT_TRUE(out.Write("a"));
  EXPECT_TRUE(out.EndLine());
  EXPECT_TRUE(out.EndLine());
  EXPECT_EQ(pipe.Drain(), "a\n");
}

TEST(Output, AReaderThatHasGoneIsNoError) {
  signal(SIGPIPE, SIG_IGN);
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  close(fds[0]);
  Output out(fds[1]);
  EXPECT_FALSE(out.Write("a"));
  EXPECT_TRUE(out.reader_gone());
  EXPECT_TRUE(out.status().ok());
  EXPECT_FALSE(out.Write("b"));
  close(fds[1]);
}

TEST(Output, AFullDiskIsAnError) {
  const int fd = open("/dev/full", O_WRONLY);
  ASSERT_GE(fd, 0);
  Output out(fd);
  EXPECT_FALSE(out.Write("a"));
  EXPECT_FALSE(out.reader_gone());
  EXPECT_EQ(out.status().message(),
            "cannot write the output: No space left on device");
  close(fd);
}

TEST(ProgressLine, SaysNothingInAPipe) {
  Pipe pipe;
  {
    ProgressLine progress(pipe.fds[1], "loading");
    progress.Update(1, 2);
  }
  EXPECT_EQ(pipe.Drain(), "");
}

TEST(Cli, PathsAreRelativeToWhereBazelWasCalled) {
  unsetenv("BUILD_WORKING_DIRECTORY");
  EXPECT_EQ(ResolvePath("a/b"), "a/b");
  setenv("BUILD_WORKING_DIRECTORY", "/home/me", 1);
  EXPECT_EQ(ResolvePath("a/b"), "/home/me/a/b");
  EXPECT_EQ(ResolvePath("/a/b"), "/a/b");
  unsetenv("BUILD_WORKING_DIRECTORY");
}

TEST(Cli, MessagesAreOneLine) {
  Pipe pipe;
  Invocation call;
  call.program = "generate";
  call.io.err = pipe.fds[1];
  EXPECT_EQ(Fail(call, absl::NotFoundError("bad\nfile\x1b")), kExitError);
  EXPECT_EQ(FailUsage(call, absl::InvalidArgumentError("no")), kExitUsage);
  EXPECT_EQ(pipe.Drain(),
            "generate: bad\\nfile\\u{1b}\ngenerate: no (see --help)\n");
}

TEST(Cli, TextFilesLoseOneNewline) {
  const std::string path = std::string(getenv("TEST_TMPDIR")) + "/text";
  const auto read = [&path](const std::string& bytes) {
    FILE* file = fopen(path.c_str(), "wb");
    fwrite(bytes.data(), 1, bytes.size(), file);
    fclose(file);
    return ReadTextFile(Invocation(), path).value_or("?");
  };
  EXPECT_EQ(read("a\n"), "a");
  EXPECT_EQ(read("a\r\n"), "a");
  EXPECT_EQ(read("a\n\n"), "a\n");
  EXPECT_EQ(read("\n"), "");
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("a\r"), "a\r");
}

TEST(Cli, TextFilesAreBounded) {
  const std::string path = std::string(getenv("TEST_TMPDIR")) + "/large";
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  ASSERT_EQ(ftruncate(fd, kMaxInputBytes + 1), 0);
  close(fd);
  EXPECT_EQ(ReadTextFile(Invocation(), path).status().message(),
            path + ": expected at most 64 MiB of text, found more");
  unlink(path.c_str());
}

TEST(Cli, AModelIsNamedOrTheDefault) {
  Invocation call;
  EXPECT_EQ(*ModelPath(call, "/m.gguf"), "/m.gguf");
  EXPECT_TRUE(absl::IsNotFound(ModelPath(call, "").status()));
  call.default_model = "not_in/the/runfiles";
  EXPECT_TRUE(absl::IsNotFound(ModelPath(call, "").status()));
}

}  // namespace
}  // namespace lanewise
