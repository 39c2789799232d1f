// SPDX-License-Identifier: Apache-2.0
// The response to one request: whole, or piece by piece as it comes.
#pragma once

#include <string>
#include <string_view>

#include "../reply.h"
#include "access.h"
#include "connection.h"
#include "head.h"

namespace server {

class Exchange : public Client {
 public:
  /// Both must outlive the exchange.
  Exchange(Connection& connection, const Head& head, HeaderFields fields)
      : connection_(connection), head_(head), fields_(std::move(fields)) {}
  Exchange(Connection& connection, Head&& head, HeaderFields fields) = delete;

  /// One more field of the response.
  void add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  /// Closes the connection after the response.
  void close() { keep_alive_ = false; }

  /// Writes a whole response. False if the client has left. A HEAD has no body.
  bool respond(int status, const std::string& type, std::string_view body);

  /// Begins a response of unknown length; `probe` is text that may occur anywhere between its
  /// pieces and means nothing.
  bool begin(const std::string& type, std::string_view probe);
  bool write(std::string_view bytes) override;
  bool is_there() override;
  /// Ends the response. Without it the client sees that the response is incomplete.
  bool finish();

  /// Status of the response; 0 before.
  int status() const { return status_; }
  /// The connection may serve another request.
  bool keeps_alive() const { return keep_alive_ && head_.keep_alive; }

 private:
  std::string response_head(int status, const std::string& type, const std::string& length) const;

  Connection& connection_;
  const Head& head_;
  HeaderFields fields_;
  std::string_view probe_;
  bool keep_alive_ = true;
  int status_ = 0;
};

}  // namespace server
