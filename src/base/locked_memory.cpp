// SPDX-License-Identifier: Apache-2.0
// See locked_memory.h.
#include "base/locked_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace gen {
namespace {

/// Whole pages, ascending, those that touch joined.
std::vector<LockedMemory::Part> pages_of(std::vector<LockedMemory::Part> parts) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::erase_if(parts, [](LockedMemory::Part part) { return part.empty(); });
  std::sort(parts.begin(), parts.end(),
            [](LockedMemory::Part a, LockedMemory::Part b) { return a.data() < b.data(); });
  std::vector<LockedMemory::Part> pages;
  for (const LockedMemory::Part part : parts) {
    const size_t before = reinterpret_cast<uintptr_t>(part.data()) % page;
    const std::byte* const begin = part.data() - before;
    const size_t size = (before + part.size() + page - 1) / page * page;
    if (!pages.empty() && begin <= pages.back().data() + pages.back().size()) {
      const std::byte* const first = pages.back().data();
      const size_t reach = static_cast<size_t>(begin - first) + size;
      pages.back() = {first, std::max(pages.back().size(), reach)};
    } else {
      pages.emplace_back(begin, size);
    }
  }
  return pages;
}

Status refusal(size_t bytes, int number) {
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (limited) {
    return error(Code::kOutOfMemory,
                 "cannot lock %zu bytes in memory: the limit of the process is %llu bytes "
                 "(RLIMIT_MEMLOCK, ulimit -l)",
                 bytes, static_cast<unsigned long long>(limit.rlim_cur));
  }
  return error(Code::kOutOfMemory, "cannot lock %zu bytes in memory: %s", bytes,
               std::strerror(number));
}

}  // namespace

LockedMemory::LockedMemory(LockedMemory&& other) noexcept : held_(std::exchange(other.held_, {})) {}

LockedMemory& LockedMemory::operator=(LockedMemory&& other) noexcept {
  std::swap(held_, other.held_);
  return *this;
}

LockedMemory::~LockedMemory() {
  for (const Part part : held_) ::munlock(part.data(), part.size());
}

Result<LockedMemory> LockedMemory::lock(std::vector<Part> parts) {
  const std::vector<Part> pages = pages_of(std::move(parts));
  size_t bytes = 0;
  for (const Part part : pages) bytes += part.size();
  LockedMemory made;
  made.held_.reserve(pages.size());
  for (const Part part : pages) {
    if (::mlock(part.data(), part.size()) != 0) return refusal(bytes, errno);
    made.held_.push_back(part);
  }
  return made;
}

}  // namespace gen
