// SPDX-License-Identifier: Apache-2.0
// See backend_library.h.
#include "engine/backend/backend_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gen::engine {
namespace {

/// The folder to search; false if the path of this library is unknown.
bool find_folder(char (&folder)[PATH_MAX]) noexcept {
  // A setuid process must not take paths from its environment.
  const char* const given = ::secure_getenv("GEN_BACKEND_PATH");
  if (given != nullptr && *given != '\0') {
    return std::snprintf(folder, sizeof folder, "%s", given) < PATH_MAX;
  }
  Dl_info self{};
  char file[PATH_MAX];
  if (::dladdr(reinterpret_cast<const void*>(&load_backend_library), &self) == 0 ||
      self.dli_fname == nullptr) {
    return false;
  }
  // In a static build this is argv[0], which may lack the path.
  if (std::strchr(self.dli_fname, '/') != nullptr) {
    if (std::snprintf(file, sizeof file, "%s", self.dli_fname) >= PATH_MAX) return false;
  } else {
    const ssize_t n = ::readlink("/proc/self/exe", file, sizeof file - 1);
    if (n <= 0) return false;
    file[n] = '\0';
  }
  char* slash = std::strrchr(file, '/');
  if (slash == nullptr) return false;
  slash[slash == file ? 1 : 0] = '\0';
  return std::snprintf(folder, sizeof folder, "%s", file) < PATH_MAX;
}

}  // namespace

BackendLibrary load_backend_library(const char* name) noexcept {
  BackendLibrary made;
  char folder[PATH_MAX];
  char path[PATH_MAX];
  if (!find_folder(folder) ||
      std::snprintf(path, sizeof path, "%s/libgenerate-%s.so", folder, name) >= PATH_MAX) {
    std::snprintf(made.reason, sizeof made.reason,
                  "the folder of libgenerate-%s.so is not known (GEN_BACKEND_PATH names one)",
                  name);
    return made;
  }
  if (::access(path, F_OK) != 0) {
    std::snprintf(made.reason, sizeof made.reason,
                  "there is no libgenerate-%s.so in %.500s (GEN_BACKEND_PATH names the folder)",
                  name, folder);
    return made;
  }
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    std::snprintf(made.reason, sizeof made.reason, "%.600s", why != nullptr ? why : path);
    return made;
  }
  const auto get = reinterpret_cast<gen_backend_v1_get_fn>(::dlsym(library, kBackendFunction));
  const gen_backend_v1* table = get != nullptr ? get() : nullptr;
  if (table == nullptr) {
    std::snprintf(made.reason, sizeof made.reason, "%.560s has no engine in it", path);
  } else if (const Status status = check_backend(*table); !status.ok()) {
    std::snprintf(made.reason, sizeof made.reason, "%s", status.message());
  } else {
    // The loaded library has a log of its own: forward it to ours.
    table->set_log([](void*, int32_t level, const char* line) {
      log(static_cast<LogLevel>(level), "%s", line);
    });
    made.table = table;
    return made;
  }
  ::dlclose(library);
  return made;
}

const BackendLibrary& cuda_library() noexcept {
  static const BackendLibrary loaded = load_backend_library("cuda");
  return loaded;
}

}  // namespace gen::engine
