#include "tools/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace lanewise {
namespace {

class InterruptTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(pipe(fds_), 0);
    alarm(60);  // a wait that does not end must not hang the test
  }
  void TearDown() override {
    alarm(0);
    close(fds_[0]);
    close(fds_[1]);
  }

  int fds_[2];
};

TEST_F(InterruptTest, WaitsForInputAndItsEnd) {
  const InterruptScope interrupt;
  ASSERT_EQ(write(fds_[1], "a", 1), 1);
  EXPECT_TRUE(interrupt.WaitToRead(fds_[0]));
  char byte = 0;
  ASSERT_EQ(read(fds_[0], &byte, 1), 1);
  std::thread writer([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(write(fds_[1], "b", 1), 1);
  });
  EXPECT_TRUE(interrupt.WaitToRead(fds_[0]));
  writer.join();
  ASSERT_EQ(read(fds_[0], &byte, 1), 1);
  close(fds_[1]);
  EXPECT_TRUE(interrupt.WaitToRead(fds_[0]));
  fds_[1] = dup(fds_[0]);
}

// Between the prompt and the wait: a blocking read would go on for ever.
TEST_F(InterruptTest, CtrlCBeforeTheWaitEndsIt) {
  const InterruptScope interrupt;
  ASSERT_EQ(raise(SIGINT), 0);
  EXPECT_TRUE(interrupt.requested());
  EXPECT_FALSE(interrupt.WaitToRead(fds_[0]));
  ASSERT_EQ(write(fds_[1], "a", 1), 1);
  EXPECT_FALSE(interrupt.WaitToRead(fds_[0]));
}

// The system may give the signal to any thread of the process.
TEST_F(InterruptTest, CtrlCOnAnotherThreadEndsTheWait) {
  const InterruptScope interrupt;
  std::thread other([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    pthread_kill(pthread_self(), SIGINT);
  });
  EXPECT_FALSE(interrupt.WaitToRead(fds_[0]));
  other.join();
}

TEST_F(InterruptTest, ANewScopeForgetsTheLastOnes) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    const InterruptScope interrupt;
    EXPECT_FALSE(interrupt.requested());
    ASSERT_EQ(write(fds_[1], "a", 1), 1);
    EXPECT_TRUE(interrupt.WaitToRead(fds_[0]));
    char byte = 0;
    ASSERT_EQ(read(fds_[0], &byte, 1), 1);
    ASSERT_EQ(raise(SIGINT), 0);
    EXPECT_FALSE(interrupt.WaitToRead(fds_[0]));
  }
}

TEST_F(InterruptTest, AnIgnoredCtrlCStaysIgnored) {
  struct sigaction ignore = {};
  struct sigaction before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignore, &before);
  {
    const InterruptScope interrupt;
    ASSERT_EQ(raise(SIGINT), 0);
    EXPECT_FALSE(interrupt.requested());
    ASSERT_EQ(write(fds_[1], "a", 1), 1);
    EXPECT_TRUE(interrupt.WaitToRead(fds_[0]));
  }
  sigaction(SIGINT, &before, nullptr);
}

}  // namespace
}  // namespace lanewise
