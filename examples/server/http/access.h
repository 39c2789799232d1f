// SPDX-License-Identifier: Apache-2.0
// Which web pages may use the server. A browser sends requests to this machine for any page that
// asks; Origin names the page, and Host the name by which it reached the server.
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
  /// `hosts`: names that may stand in Host, besides localhost and numeric addresses. `origins`:
  /// pages from elsewhere that may use the server, such as "https://example.org"; "*" is any.
  Access(std::vector<std::string> hosts, std::vector<std::string> origins);

  /// ApiError 403 for a request with another name or from another page, 400 for an invalid Host. A
  /// page whose own name resolves to this machine is recognised by Host; it may not even read.
  void check(const Head& head) const;
  /// ApiError 415 unless the body is declared as JSON. Clients other than browsers may also use the
  /// type that `curl -d` sends, or none: a page could send those anywhere without asking.
  static void check_type(const Head& head);

  /// The fields that let the page that sent the request read the answer; empty for others.
  HeaderFields fields(const Head& head) const;
  /// Additional fields of the answer to a preflight request.
  static HeaderFields preflight_fields(const Head& head);

 private:
  bool is_foreign(const Head& head, const std::string& origin) const;

  std::vector<std::string> hosts_;
  std::vector<std::string> origins_;
};

}  // namespace server
