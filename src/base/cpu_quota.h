// SPDX-License-Identifier: Apache-2.0
// The CPU quota of the control group this process runs in (Linux containers), for usable_cpus() in
// base/thread_pool.h. Knows versions 1 and 2 and the hybrid layout.
#pragma once

#include <string>

namespace gen {

/// CPUs granted by the tightest quota between this process' group and the root, for example 1.5;
/// 0 if there is no quota or none can be read. Throws std::bad_alloc. `root` is put before
/// /proc/self/cgroup and /sys/fs/cgroup, for tests; empty means the real files.
double cgroup_cpu_quota(const std::string& root = {});

}  // namespace gen
