// How many threads this process may usefully run.
#ifndef LANEWISE_SIMD_CPU_COUNT_H_
#define LANEWISE_SIMD_CPU_COUNT_H_

#include <cstddef>
#include <string>

namespace lanewise {

// The smallest of: CPUs of the affinity mask (which includes the cpuset), and
// the floor of the CPU quota of this process's cgroup and its ancestors (v1 or
// v2); at least 1.
size_t DefaultThreadCount();

// `cpus` cut down to the floor of `quota` CPUs (0: none); at least 1.
size_t ThreadsWithinQuota(size_t cpus, double quota);

// The quota in CPUs found under `root` (normally "/") for the process, from
// root/proc/self/cgroup and root/sys/fs/cgroup; 0 when there is none. Separate
// for tests with a made-up tree.
double CgroupCpuQuota(const std::string& root);

}  // namespace lanewise

#endif  // LANEWISE_SIMD_CPU_COUNT_H_
