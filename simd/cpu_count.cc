#include "simd/cpu_count.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace lanewise {
namespace {

// CPUs of the affinity mask; 0 when unknown.
size_t AffinityCount() {
#if defined(__linux__)
  // The kernel refuses masks smaller than its own (EINVAL).
  for (size_t cpus = 1024; cpus <= (size_t{1} << 20); cpus *= 2) {
    std::vector<cpu_set_t> mask(cpus / CPU_SETSIZE);
    const size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) {
      return static_cast<size_t>(CPU_COUNT_S(bytes, mask.data()));
    }
  }
#endif
  return 0;
}

// First 4 KiB of a small file; empty when it cannot be read.
std::string ReadSmallFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(4096, '\0');
  file.read(&text[0], static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// quota / period, or 0 for "max", −1 (unlimited in v1), and garbage.
double Ratio(absl::string_view quota, absl::string_view period) {
  int64_t quota_us = 0;
  int64_t period_us = 0;
  if (!absl::SimpleAtoi(quota, &quota_us) ||
      !absl::SimpleAtoi(period, &period_us) || quota_us <= 0 ||
      period_us <= 0) {
    return 0.0;
  }
  return static_cast<double>(quota_us) / static_cast<double>(period_us);
}

// "max 100000" or "400000 100000" (kernel documentation, cgroup-v2, cpu.max).
double QuotaV2(const std::string& directory) {
  const std::string text = ReadSmallFile(directory + "/cpu.max");
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
  return fields.size() == 2 ? Ratio(fields[0], fields[1]) : 0.0;
}

double QuotaV1(const std::string& directory) {
  return Ratio(ReadSmallFile(directory + "/cpu.cfs_quota_us"),
               ReadSmallFile(directory + "/cpu.cfs_period_us"));
}

// The smallest quota of mount/path and of every directory above it up to the
// mount; 0 when there is none. Inside a container, `path` may be that of the
// host and not exist: its ancestors and the mount itself are still read.
double SmallestQuota(const std::string& mount, std::string path,
                     double (*quota)(const std::string&)) {
  double smallest = 0.0;
  for (;;) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    const double found = quota(mount + path);
    if (found > 0.0 && (smallest == 0.0 || found < smallest)) smallest = found;
    if (path.empty()) return smallest;
    const size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash);
  }
}

double Smaller(double a, double b) {
  if (a == 0.0) return b;
  return b == 0.0 ? a : std::min(a, b);
}

}  // namespace

double CgroupCpuQuota(const std::string& root) {
  const std::string base(absl::StripSuffix(root, "/"));
  const std::string mount = base + "/sys/fs/cgroup";
  const std::string groups = ReadSmallFile(base + "/proc/self/cgroup");
  double smallest = 0.0;
  for (const absl::string_view line :
       absl::StrSplit(groups, '\n', absl::SkipEmpty())) {
    // hierarchy:controllers:/path; v2 has "0::/path" (cgroups(7)).
    const std::vector<std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::string& path = fields[2];
    if (fields[0] == "0" && fields[1].empty()) {
      smallest = Smaller(smallest, SmallestQuota(mount, path, QuotaV2));
      continue;
    }
    const std::vector<absl::string_view> controllers =
        absl::StrSplit(fields[1], ',');
    if (std::find(controllers.begin(), controllers.end(), "cpu") ==
        controllers.end()) {
      continue;
    }
    for (const char* directory : {"/cpu", "/cpu,cpuacct", "/cpuacct,cpu"}) {
      smallest =
          Smaller(smallest, SmallestQuota(mount + directory, path, QuotaV1));
    }
  }
  return smallest;
}

size_t ThreadsWithinQuota(size_t cpus, double quota) {
  if (quota > 0.0 && quota < static_cast<double>(cpus)) {
    cpus = static_cast<size_t>(quota);
  }
  return std::max<size_t>(cpus, 1);
}

size_t DefaultThreadCount() {
  size_t cpus = AffinityCount();
  if (cpus == 0) cpus = std::thread::hardware_concurrency();
  return ThreadsWithinQuota(cpus, CgroupCpuQuota("/"));
}

}  // namespace lanewise
