#include "simd/cpu_count.h"

#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "gtest/gtest.h"

#if defined(__linux__)
#include <sched.h>

#include <thread>
#endif

namespace lanewise {
namespace {

// A made-up root directory with files of /proc and /sys.
class FakeRoot {
 public:
  FakeRoot() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    static int count = 0;
    path_ = testing::TempDir() + "/" + info->name() + std::to_string(count++);
    mkdir(path_.c_str(), 0755);
  }

  FakeRoot& Write(const std::string& name, const std::string& text) {
    for (size_t slash = name.find('/'); slash != std::string::npos;
         slash = name.find('/', slash + 1)) {
      mkdir((path_ + "/" + name.substr(0, slash)).c_str(), 0755);
    }
    std::ofstream(path_ + "/" + name) << text;
    return *this;
  }
  FakeRoot& Group(const std::string& text) {
    return Write("proc/self/cgroup", text);
  }

  double Quota() const { return CgroupCpuQuota(path_); }
  size_t Threads(size_t cpus) const {
    return ThreadsWithinQuota(cpus, Quota());
  }

 private:
  std::string path_;
};

TEST(CpuCount, P1QuotaOfVersion2) {
  FakeRoot root;
  root.Group("0::/box\n").Write("sys/fs/cgroup/box/cpu.max", "400000 100000\n");
  EXPECT_EQ(root.Quota(), 4.0);
  EXPECT_EQ(root.Threads(8), 4u);
  EXPECT_EQ(root.Threads(2), 2u);
}

TEST(CpuCount, P1FractionIsCut) {
  FakeRoot root;
  root.Group("0::/\n").Write("sys/fs/cgroup/cpu.max", "765000 100000\n");
  EXPECT_DOUBLE_EQ(root.Quota(), 7.65);
  EXPECT_EQ(root.Threads(64), 7u);
}

TEST(CpuCount, P1BelowOneCpuIsOneThread) {
  FakeRoot root;
  root.Group("0::/\n").Write("sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_DOUBLE_EQ(root.Quota(), 0.2);
  EXPECT_EQ(root.Threads(64), 1u);
}

TEST(CpuCount, P2NestedGroupsTakeTheSmallest) {
  FakeRoot root;
  root.Group("0::/a/b/c\n")
      .Write("sys/fs/cgroup/a/cpu.max", "300000 100000\n")
      .Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
      .Write("sys/fs/cgroup/a/b/c/cpu.max", "500000 100000\n");
  EXPECT_EQ(root.Quota(), 3.0);
  root.Write("sys/fs/cgroup/a/b/c/cpu.max", "50000 25000\n");
  EXPECT_EQ(root.Quota(), 2.0);
}

TEST(CpuCount, P2PathOfTheHostInsideAContainer) {
  FakeRoot root;
  root.Group("0::/system.slice/docker-0123.scope\n")
      .Write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(root.Quota(), 2.0);
}

TEST(CpuCount, QuotaOfVersion1) {
  for (const std::string directory : {"cpu", "cpu,cpuacct", "cpuacct,cpu"}) {
    FakeRoot root;
    const std::string group = "sys/fs/cgroup/" + directory + "/docker/x/";
    root.Group("12:cpuset:/docker/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/")
        .Write(group + "cpu.cfs_quota_us", "250000\n")
        .Write(group + "cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(root.Quota(), 2.5) << directory;
    EXPECT_EQ(root.Threads(8), 2u);
  }
}

TEST(CpuCount, Version1WithoutLimit) {
  FakeRoot root;
  root.Group("4:cpu,cpuacct:/\n")
      .Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
      .Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(root.Quota(), 0.0);
  EXPECT_EQ(root.Threads(8), 8u);
}

TEST(CpuCount, NoLimitAndNoFiles) {
  FakeRoot root;
  EXPECT_EQ(root.Quota(), 0.0);
  root.Group("0::/box\n");
  EXPECT_EQ(root.Quota(), 0.0);
  root.Write("sys/fs/cgroup/box/cpu.max", "max 100000\n");
  EXPECT_EQ(root.Quota(), 0.0);
  EXPECT_EQ(root.Threads(0), 1u);
  EXPECT_EQ(CgroupCpuQuota("/no/such/directory"), 0.0);
}

TEST(CpuCount, GarbageIsNoLimit) {
  for (const std::string text :
       {"", "\n", "max", "100000", "0 100000", "100000 0", "-5 100000",
        "1e5 100000", "100000 100000 1", "99999999999999999999999 1", "x y",
        "\xff\xfe \x01"}) {
    FakeRoot root;
    root.Group("0::/\n").Write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(root.Quota(), 0.0) << text;
  }
  for (const std::string group :
       {"", "\n\n", "0", "0:", "0::", ":::::", "x:cpu:", "0::////", "0::a",
        "0::/../../.."}) {
    FakeRoot root;
    root.Group(group);
    EXPECT_EQ(root.Quota(), 0.0) << group;
  }
  FakeRoot root;
  root.Group(std::string(100000, ':') + "\n0::/" + std::string(100000, '/'));
  EXPECT_EQ(root.Quota(), 0.0);
}

TEST(CpuCount, DefaultIsAtLeastOne) {
  EXPECT_GE(DefaultThreadCount(), 1u);
#if defined(__linux__)
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  EXPECT_LE(DefaultThreadCount(), static_cast<size_t>(CPU_COUNT(&all)));
#endif
}

#if defined(__linux__)
TEST(CpuCount, P1AffinityOfOneCpuIsOneThread) {
  std::thread([] {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &all)) {
        CPU_SET(cpu, &one);
        break;
      }
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(DefaultThreadCount(), 1u);
  }).join();
}
#endif

}  // namespace
}  // namespace lanewise
