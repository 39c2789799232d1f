// SPDX-License-Identifier: Apache-2.0
// One client's connection: reads whole requests within limits of size and time, and writes bytes.
// Requests that arrive before the previous answer is complete are kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "head.h"

namespace server {

class Connection;

/// Notified when a connection waits for its client, so that another client can take its place.
class Waiting {
 public:
  enum class For { kRequest, kRoom };  // until it sends, or until it reads
  virtual ~Waiting() = default;
  /// False if the connection should end instead.
  virtual bool begin(Connection& connection, For what) = 0;
  virtual void end(Connection& connection) = 0;
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  /// Takes ownership of the socket. A request must be complete `request_seconds` after its first
  /// byte.
  Connection(int socket, Waiting& waiting, int request_seconds);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Reads the next request's head. False if there is none: the client has left or has been idle
  /// for too long. ApiError for an invalid request, 408 for one that arrives too slowly.
  bool read_head(Head& head);
  /// Reads the body that belongs to the head. ApiError 400, 408, 413.
  std::string read_body(const Head& head, size_t max_bytes);

  /// False if the client has left, reads nothing for ten seconds, or has to leave.
  bool write(std::string_view bytes);
  /// False if the client has left. A client that only closed its sending direction looks the same
  /// until something is written to it; then `probe`, which must not change the meaning of the
  /// output, is written once.
  template <typename Probe>
  bool is_there(Probe probe) {
    const Peer peer = look();
    if (peer == Peer::kHalfClosed && !probed_) {
      probed_ = true;
      return probe();
    }
    return peer != Peer::kGone;
  }

  /// Ends the output and drops further input, within limits: a client that is still sending when
  /// its connection is closed does not see the answer.
  void linger();

  /// Ends a waiting connection. Any thread.
  void evict();

 private:
  enum class Peer { kThere, kHalfClosed, kGone };
  enum class Ready { kYes, kTimeout, kEnd };
  friend class Listener;

  Peer look() const;
  Ready wait(short events, Waiting::For what, Clock::time_point until);
  /// Waits for more bytes and appends them to received_. kEnd if the client closed or the
  /// connection was evicted.
  Ready receive(Clock::time_point until);

  const int socket_;
  Waiting& waiting_;
  const std::chrono::seconds request_time_;
  Clock::time_point deadline_;  // of the request that is being read
  std::string received_;        // not parsed yet
  bool served_ = false;         // not for the first request any more
  bool ended_ = false;          // no more input will come
  bool probed_ = false;

  // Used by the listener, under its lock.
  size_t place_in_line_ = 0;  // 0: not waiting; otherwise the lower, the longer
  Waiting::For waits_for_ = Waiting::For::kRequest;
  bool evicted_ = false;
};

}  // namespace server
