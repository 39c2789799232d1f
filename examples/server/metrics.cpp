// SPDX-License-Identifier: Apache-2.0
// See metrics.h.
#include "metrics.h"

#include <generate/base.h>

#include <sstream>

namespace server {
namespace {

const char* finish_label(int32_t reason) {
  switch (reason) {
    case GEN_FINISH_STOP_TOKEN:
    case GEN_FINISH_STOP_STRING:
    case GEN_FINISH_GRAMMAR_COMPLETE:
      return "stop";
    case GEN_FINISH_LENGTH:
    case GEN_FINISH_CONTEXT_FULL:
      return "length";
    case GEN_FINISH_CANCELLED:
    case GEN_FINISH_CALLBACK:
      return "cancelled";
    default:
      return "error";
  }
}

void head(std::ostream& out, const char* name, const char* type, const char* help) {
  out << "# HELP generate_" << name << ' ' << help << "\n# TYPE generate_" << name << ' ' << type
      << '\n';
}

void single(std::ostream& out, const char* name, const char* type, const char* help,
            int64_t value) {
  head(out, name, type, help);
  out << "generate_" << name << ' ' << value << '\n';
}

}  // namespace

void Metrics::responded(const std::string& path, int status) {
  const std::lock_guard lock(mutex_);
  ++responses_[{path, status}];
}

void Metrics::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  ++first_tokens_;
  first_token_seconds_ += seconds;
}

void Metrics::finished(int32_t finish_reason, int64_t completion_tokens) {
  const std::lock_guard lock(mutex_);
  ++finished_[finish_reason];
  completion_tokens_ += completion_tokens;
}

std::string Metrics::page(size_t running, size_t waiting,
                          const Languages::Counts& languages) const {
  const std::lock_guard lock(mutex_);
  std::ostringstream out;
  head(out, "http_responses_total", "counter", "Responses by path and status.");
  for (const auto& [key, count] : responses_) {
    out << "generate_http_responses_total{path=\"" << key.first << "\",code=\"" << key.second
        << "\"} " << count << '\n';
  }
  head(out, "finished_total", "counter", "Answers by the reason of their end.");
  std::map<std::string, int64_t> reasons;
  for (const auto& [reason, count] : finished_) reasons[finish_label(reason)] += count;
  for (const auto& [reason, count] : reasons) {
    out << "generate_finished_total{reason=\"" << reason << "\"} " << count << '\n';
  }
  single(out, "prompt_tokens_total", "counter", "Tokens of prompts.", prompt_tokens);
  single(out, "prompt_cached_tokens_total", "counter",
         "Tokens of prompts found in the prefix cache.", cached_tokens);
  single(out, "completion_tokens_total", "counter", "Tokens drawn.", completion_tokens_);
  single(out, "drafted_tokens_total", "counter", "Draft tokens that were verified.",
         drafted_tokens);
  single(out, "accepted_tokens_total", "counter", "Of these, tokens that were accepted.",
         accepted_tokens);
  single(out, "disconnects_total", "counter",
         "Clients that disconnected before the end of their answer.", disconnects);
  single(out, "running", "gauge", "Answers being generated.", static_cast<int64_t>(running));
  single(out, "waiting", "gauge", "Answers waiting for their turn.", static_cast<int64_t>(waiting));
  single(out, "clients", "gauge", "Clients being answered.", clients);
  const auto of_grammars = [&](const char* name, const char* type, const char* help, size_t n) {
    single(out, name, type, help, static_cast<int64_t>(n));
  };
  of_grammars("grammars_made_total", "counter", "Grammars compiled, including refused ones.",
              languages.made);
  of_grammars("grammars_given_up_total", "counter",
              "Grammars whose clients left before they were compiled.", languages.given_up);
  of_grammars("grammars_making", "gauge", "Grammars being compiled.", languages.making);
  of_grammars("grammars_waiting", "gauge", "Grammars waiting for their turn.", languages.waiting);
  head(out, "first_token_seconds", "summary",
       "Seconds from the start of an answer to its first token.");
  out << "generate_first_token_seconds_sum " << first_token_seconds_ << '\n';
  out << "generate_first_token_seconds_count " << first_tokens_ << '\n';
  return out.str();
}

}  // namespace server
