// SPDX-License-Identifier: Apache-2.0
// One client's connection: whole requests within limits of size and time, and bytes back. Requests
// that are sent before the answer to the one before are kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "head.h"

namespace server {

class Connection;

/// Told when a connection waits for its client, so that one who needs the place can have it.
class Waiting {
 public:
  enum class For { kRequest, kRoom };  // to send, or to take what is sent
  virtual ~Waiting() = default;
  /// False if the connection should end instead.
  virtual bool begin(Connection& connection, For what) = 0;
  virtual void end(Connection& connection) = 0;
};

class Connection {
 public:
  using Clock = std::chrono::steady_clock;

  /// Takes the socket over. A request must be there `request_seconds` after its first byte.
  Connection(int socket, Waiting& waiting, int request_seconds);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Reads the next request's head. False if there is none: the client has left or is idle for long.
  /// ApiError for what is no request, 408 for one that comes too slowly.
  bool read_head(Head& head);
  /// Reads the body that belongs to the head. ApiError 400, 408, 413.
  std::string read_body(const Head& head, size_t max_bytes);

  /// False if the client has left or takes nothing for ten seconds.
  bool write(std::string_view bytes);
  /// False if the client has left. One who only closed its direction looks the same until it is
  /// written to, so `probe`, which must not change the meaning of what is sent, is written once then.
  template <typename Probe>
  bool is_there(Probe probe) {
    const Peer peer = look();
    if (peer == Peer::kHalfClosed && !probed_) {
      probed_ = true;
      return probe();
    }
    return peer != Peer::kGone;
  }

  /// Says that nothing more comes, and drops what the client still sends, within limits: a client that
  /// is sending when its connection is closed does not see the answer.
  void linger();

  /// Any thread, while the connection waits: it ends.
  void evict();

 private:
  enum class Peer { kThere, kHalfClosed, kGone };
  enum class Ready { kYes, kTimeout, kEnd };
  friend class Listener;

  Peer look() const;
  Ready wait(short events, Waiting::For what, Clock::time_point until);
  /// Waits for more bytes and adds them to received_. kEnd for the client's and for an eviction.
  Ready receive(Clock::time_point until);

  const int socket_;
  Waiting& waiting_;
  const std::chrono::seconds request_time_;
  Clock::time_point deadline_;  // of the request that is being read
  std::string received_;        // and not read yet
  bool ended_ = false;          // nothing more will come
  bool probed_ = false;

  // The listener's, under its lock.
  size_t place_in_line_ = 0;  // 0: does not wait; else the lower the longer
  Waiting::For waits_for_ = Waiting::For::kRequest;
  bool evicted_ = false;
};

}  // namespace server
