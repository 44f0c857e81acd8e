#include "tools/line_reader.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

class LineReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(fds_), 0);
    alarm(60);  // a wait that does not end must not hang the test
  }
  void TearDown() override {
    alarm(0);
    close(fds_[0]);
    if (!closed_) close(fds_[1]);
  }
  void Send(const std::string& text) {
    ASSERT_EQ(write(fds_[1], text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  void End() {
    close(fds_[1]);
    closed_ = true;
  }

  int fds_[2];
  bool closed_ = false;
};

TEST_F(LineReaderTest, LinesWithAndWithoutANewlineAtTheEnd) {
  for (const bool newline : {true, false}) {
    if (!newline) {
      TearDown();
      SetUp();
      closed_ = false;
    }
    Send(newline ? "one\n\nthree\r\nfour\n" : "one\n\nthree\r\nfour");
    End();
    const InterruptScope interrupt;
    LineReader lines(fds_[0]);
    std::vector<std::string> found;
    for (std::string line; lines.Next(interrupt, &line);) found.push_back(line);
    EXPECT_EQ(found, (std::vector<std::string>{"one", "", "three\r", "four"}));
    EXPECT_TRUE(lines.status().ok());
    std::string line;
    EXPECT_FALSE(lines.Next(interrupt, &line));
  }
}

TEST_F(LineReaderTest, ReadyTellsWhatNextFindsAtOnce) {
  const InterruptScope interrupt;
  LineReader lines(fds_[0]);
  EXPECT_FALSE(lines.Ready());
  Send("one\ntwo\nthr");
  std::string line;
  for (const char* expected : {"one", "two"}) {
    EXPECT_TRUE(lines.Ready());
    ASSERT_TRUE(lines.Next(interrupt, &line));
    EXPECT_EQ(line, expected);
  }
  EXPECT_FALSE(lines.Ready());  // a beginning that was read already
  End();
  EXPECT_TRUE(lines.Ready());
  ASSERT_TRUE(lines.Next(interrupt, &line));
  EXPECT_EQ(line, "thr");
  EXPECT_TRUE(lines.Ready());  // the end
  EXPECT_FALSE(lines.Next(interrupt, &line));
}

TEST_F(LineReaderTest, GivesALineBeforeTheNextComes) {
  const InterruptScope interrupt;
  LineReader lines(fds_[0]);
  std::string line;
  Send("one\ntw");
  ASSERT_TRUE(lines.Next(interrupt, &line));
  EXPECT_EQ(line, "one");
  Send("o\n");
  ASSERT_TRUE(lines.Next(interrupt, &line));
  EXPECT_EQ(line, "two");
}

TEST_F(LineReaderTest, LongLinesComeWholeAndTooLongOnesAreAnError) {
  const std::string text = std::string(30'000, 'x') + "\nshort\n";
  for (const size_t longest : {size_t{30'000}, size_t{10'000}}) {
    std::thread writer([&] { Send(text); });
    const InterruptScope interrupt;
    LineReader lines(fds_[0], longest);
    std::string line;
    const bool fits = longest == 30'000;
    EXPECT_EQ(lines.Next(interrupt, &line), fits);
    if (fits) {
      EXPECT_EQ(line.size(), 30'000u);
      EXPECT_TRUE(lines.Next(interrupt, &line));
      EXPECT_EQ(line, "short");
    } else {
      EXPECT_EQ(lines.status().code(), absl::StatusCode::kOutOfRange);
      EXPECT_FALSE(lines.Next(interrupt, &line));
    }
    writer.join();
  }
}

TEST_F(LineReaderTest, WhatCannotBeReadIsAnError) {
  const int folder = open("/", O_RDONLY);
  ASSERT_GE(folder, 0);
  const InterruptScope interrupt;
  LineReader lines(folder);
  std::string line;
  EXPECT_FALSE(lines.Next(interrupt, &line));
  EXPECT_FALSE(lines.status().ok());
  close(folder);
}

TEST_F(LineReaderTest, CtrlCEndsTheWait) {
  const InterruptScope interrupt;
  LineReader lines(fds_[0]);
  ASSERT_EQ(raise(SIGINT), 0);
  std::string line;
  EXPECT_FALSE(lines.Next(interrupt, &line));
  EXPECT_TRUE(lines.status().ok());
}

}  // namespace
}  // namespace lanewise
