// SPDX-License-Identifier: Apache-2.0
// Which web pages may talk to the server. A browser sends requests to this machine for any page that
// asks; it says whose they are in Origin, and what name the page used for the server in Host.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "head.h"

namespace server {

/// Fields of a response.
using HeaderFields = std::vector<std::pair<std::string, std::string>>;

class Access {
 public:
  /// `hosts`: names by which the server may be called, beside localhost and numeric addresses.
  /// `origins`: "https://example.org" and the like, pages from elsewhere that may use the server.
  /// "*" is any.
  Access(std::vector<std::string> hosts, std::vector<std::string> origins);

  /// ApiError 403 for a request by another name or from another page, 400 for a Host that is none.
  /// A page whose own name resolves to this machine shows in Host; it may not even read.
  void check(const Head& head) const;
  /// ApiError 415 unless the body is said to be JSON. What `curl -d` sends, or nothing, will do too
  /// from who is no browser: a page may send those anywhere without asking.
  static void check_type(const Head& head);

  /// What lets the page that sent the request read the answer; empty for others.
  HeaderFields fields(const Head& head) const;
  /// What a request that asks whether the page may send another is told beside that.
  static HeaderFields preflight_fields(const Head& head);

 private:
  bool is_foreign(const Head& head, const std::string& origin) const;

  std::vector<std::string> hosts_;
  std::vector<std::string> origins_;
};

}  // namespace server
