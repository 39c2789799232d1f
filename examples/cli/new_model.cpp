// SPDX-License-Identifier: Apache-2.0
// See new_model.h.
#include "new_model.h"

#include <csignal>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "progress_bar.h"

namespace cli {
namespace {

// The signal handler's state.
volatile std::sig_atomic_t interrupted = 0;

extern "C" void on_stop(int signal) {
  interrupted = 1;
  std::signal(signal, SIG_DFL);
}

int on_share(void* bar, double share) {
  static_cast<ProgressBar*>(bar)->update(share);
  return interrupted;
}

}  // namespace

void write_model(
    const char* doing, const std::string& out,
    const std::function<gen_status(gen_progress_callback, void* user, gen_error*)>& call) {
  std::signal(SIGINT, on_stop);
  std::signal(SIGTERM, on_stop);
  {
    ProgressBar bar(doing);
    gen_error error;
    const gen_status status = call(on_share, &bar, &error);
    // The name of a type is checked before all else.
    const bool is_type = std::string_view(error.message).starts_with("type '");
    if (status == GEN_ERROR_INVALID_ARGUMENT && is_type) throw Failure(error.message, 2, status);
    check(status, error);
  }
  std::cout << out << ": " << std::filesystem::file_size(out) << " bytes\n";
}

}  // namespace cli
