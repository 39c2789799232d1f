// SPDX-License-Identifier: Apache-2.0
// See access.h.
#include "access.h"

#include <arpa/inet.h>

#include <algorithm>

#include "../openai/api_error.h"

namespace server {
namespace {

bool has(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

ApiError refused(const std::string& code, const std::string& message) {
  return {403, "invalid_request_error", code, {}, message};
}

/// The host of "name", "name:port" or "[address]:port"; nothing for any other form. The port is not
/// compared: a tunnel may use another one.
std::string host_name(const std::string& host) {
  const size_t bracket = host.rfind(']');
  const size_t colon = host.find(':', bracket == std::string::npos ? 0 : bracket);
  const std::string port = colon == std::string::npos ? "" : host.substr(colon + 1);
  const bool digits = port.size() <= 5 && std::all_of(port.begin(), port.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  return digits ? lower_case(host.substr(0, colon)) : "";
}

/// A numeric address is safe: no page can have one as its name.
bool is_address(const std::string& name) {
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, name.c_str(), &four) == 1) return true;
  const bool brackets = name.size() > 2 && name.front() == '[' && name.back() == ']';
  return brackets && inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), &six) == 1;
}

bool is_loopback_name(const std::string& name) {
  constexpr std::string_view kEnd = ".localhost";
  return name == "localhost" || (name.size() > kEnd.size() &&
                                 name.compare(name.size() - kEnd.size(), kEnd.size(), kEnd) == 0);
}

std::string shown(const std::string& text) { return "'" + text.substr(0, 100) + "'"; }

}  // namespace

Access::Access(std::vector<std::string> hosts, std::vector<std::string> origins)
    : hosts_(std::move(hosts)), origins_(std::move(origins)) {
  for (std::string& host : hosts_) host = lower_case(host);
  for (std::string& origin : origins_) origin = lower_case(origin);
}

void Access::check(const Head& head) const {
  if (const std::string* host = head.find("host")) {
    const std::string name = host_name(*host);
    if (name.empty()) throw bad_request({}, "the request's Host is neither a name nor an address");
    if (!is_address(name) && !is_loopback_name(name) && !has(hosts_, name) && !has(hosts_, "*")) {
      throw refused("host_not_allowed",
                    "the server does not answer to the name " + shown(name) + " (--allow-host)");
    }
  }
  const std::string* origin = head.find("origin");
  if (origin != nullptr && is_foreign(head, lower_case(*origin)) &&
      !has(origins_, lower_case(*origin)) && !has(origins_, "*")) {
    throw refused("origin_not_allowed",
                  "pages of " + shown(*origin) + " may not use the server (--allow-origin)");
  }
}

void Access::check_type(const Head& head) {
  const std::string* field = head.find("content-type");
  std::string type = lower_case(field == nullptr ? "" : field->substr(0, field->find(';')));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.pop_back();
  if (type == "application/json") return;
  const bool browser = head.find("origin") != nullptr || head.find("sec-fetch-site") != nullptr;
  const bool plain = field == nullptr || type == "application/x-www-form-urlencoded";
  if (plain && !browser) return;
  throw ApiError(415, "invalid_request_error", {}, {},
                 "the Content-Type must be application/json");
}

HeaderFields Access::fields(const Head& head) const {
  // Whether a page may read depends on its Origin, also where there is none.
  HeaderFields out;
  if (!origins_.empty()) out.emplace_back("Vary", "Origin");
  const std::string* origin = head.find("origin");
  if (origin == nullptr || !is_foreign(head, lower_case(*origin))) return out;
  if (has(origins_, lower_case(*origin)) || has(origins_, "*")) {
    out.emplace_back("Access-Control-Allow-Origin", *origin);
  }
  return out;
}

HeaderFields Access::preflight_fields(const Head& head) {
  HeaderFields out = {{"Access-Control-Allow-Methods", "GET, POST"}};
  if (const std::string* asked = head.find("access-control-request-headers")) {
    out.emplace_back("Access-Control-Allow-Headers", *asked);
  }
  if (head.find("access-control-request-private-network") != nullptr) {
    out.emplace_back("Access-Control-Allow-Private-Network", "true");
  }
  out.emplace_back("Access-Control-Max-Age", "600");
  return out;
}

/// Whether the page cannot be one of the server's own.
bool Access::is_foreign(const Head& head, const std::string& origin) const {
  const std::string* host = head.find("host");
  if (host == nullptr) return true;
  const std::string name = lower_case(*host);
  return origin != "http://" + name && origin != "https://" + name;
}

}  // namespace server
