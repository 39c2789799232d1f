// SPDX-License-Identifier: Apache-2.0
// Accepts connections and serves each in its own thread, up to a maximum number at once. When all
// places are taken, a new connection replaces the one that has waited longest for its client:
// clients that send nothing, or read nothing, keep nobody out.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "connection.h"

namespace server {

class Listener : private Waiting {
 public:
  /// Serves one client until either side ends. Called by many threads.
  using Serve = std::function<void(Connection&)>;

  Listener(size_t places, int request_seconds, Serve serve);
  ~Listener() override;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Takes a port (0: a free one) and returns it. std::runtime_error with the reason.
  int bind(const std::string& host, int port);
  /// Serves until stop(), then waits for answers in progress. False if accepting failed;
  /// std::system_error without enough threads.
  bool run();
  /// Any thread, also before run(). Connections between or within requests end at once, those that
  /// are answered at their next wait for room after some seconds.
  void stop();

 private:
  bool begin(Connection& connection, For what) override;
  void end(Connection& connection) override;

  bool accept_all();
  void work();
  void make_room();

  const size_t places_;
  const int request_seconds_;
  const Serve serve_;
  int socket_ = -1;
  int wake_ = -1;  // an eventfd that ends the wait for connections

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> accepted_;  // sockets without a place yet
  std::set<Connection*> served_;
  size_t leaving_ = 0;     // of served_, already evicted
  size_t last_place_ = 0;  // in line
  bool stopping_ = false;
  Connection::Clock::time_point room_until_;  // once stopping, the last wait for a client to read
  std::vector<std::thread> threads_;
};

}  // namespace server
