// SPDX-License-Identifier: Apache-2.0
// See connection.h.
#include "connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "../openai/api_error.h"

namespace server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kIdleTime(60);   // between requests
constexpr seconds kWriteTime(10);  // without a byte taken
constexpr seconds kLingerTime(2);
constexpr size_t kLingerBytes = size_t{64} << 20U;
constexpr size_t kPiece = 65536;

ApiError too_slow() {
  return {408, "invalid_request_error", {}, {}, "the request did not arrive in time"};
}
ApiError cut_short() { return bad_request({}, "the request ends too early"); }

}  // namespace

Connection::Connection(int socket, Waiting& waiting, int request_seconds)
    : socket_(socket), waiting_(waiting), request_time_(request_seconds) {}

Connection::~Connection() { ::close(socket_); }

bool Connection::read_head(Head& head) {
  const auto drop_empty_lines = [this] {
    size_t n = 0;
    while (received_.compare(n, 2, "\r\n") == 0) n += 2;
    received_.erase(0, n);
    return received_.empty() || received_ == "\r";  // the other half may follow
  };
  // A client that never pauses is never waited for; between its requests it may have to leave, too.
  if (std::exchange(served_, true)) {
    if (!waiting_.begin(*this, Waiting::For::kRequest)) {
      linger();
      return false;
    }
    waiting_.end(*this);
  }
  const Clock::time_point idle_until = Clock::now() + kIdleTime;
  while (drop_empty_lines()) {
    if (receive(idle_until) != Ready::kYes) return false;
  }
  deadline_ = Clock::now() + request_time_;
  for (size_t seen = 0;;) {
    if (const auto size = find_head_end(received_, seen)) {
      head = parse_head(std::string_view(received_).substr(0, *size));
      received_.erase(0, *size);
      return true;
    }
    seen = received_.size();
    const Ready ready = receive(deadline_);
    if (ready == Ready::kTimeout) throw too_slow();
    if (ready == Ready::kEnd && ended_) throw cut_short();
    if (ready == Ready::kEnd) return false;
  }
}

std::string Connection::read_body(const Head& head, size_t max_bytes) {
  std::string body;
  if (head.content_length > max_bytes) {
    throw ApiError(413, "invalid_request_error", "body_too_large", {},
                   "the body is larger than " + std::to_string(max_bytes) + " bytes");
  }
  if (head.expects_continue && received_.empty()) write("HTTP/1.1 100 Continue\r\n\r\n");
  ChunkReader chunks(max_bytes);
  for (;;) {
    std::string_view bytes = received_;
    if (head.chunked) {
      chunks.read(bytes, body);
    } else {
      const size_t n = std::min(bytes.size(), head.content_length - body.size());
      body.append(bytes.substr(0, n));
      bytes.remove_prefix(n);
    }
    received_.erase(0, received_.size() - bytes.size());
    if (head.chunked ? chunks.done() : body.size() == head.content_length) return body;
    const Ready ready = receive(deadline_);
    if (ready == Ready::kTimeout) throw too_slow();
    if (ready == Ready::kEnd) throw cut_short();
  }
}

bool Connection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (wait(POLLOUT, Waiting::For::kRoom, Clock::now() + kWriteTime) != Ready::kYes) {
        return false;
      }
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void Connection::linger() {
  ::shutdown(socket_, SHUT_WR);
  const Clock::time_point until = Clock::now() + kLingerTime;
  size_t dropped = 0;
  do {
    dropped += received_.size();
    received_.clear();
  } while (dropped < kLingerBytes && receive(until) == Ready::kYes);
}

void Connection::evict() { ::shutdown(socket_, SHUT_RDWR); }

Connection::Peer Connection::look() const {
  pollfd poll_for = {socket_, POLLRDHUP, 0};
  if (::poll(&poll_for, 1, 0) <= 0) return Peer::kThere;
  if ((poll_for.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return Peer::kGone;
  return (poll_for.revents & POLLRDHUP) != 0 ? Peer::kHalfClosed : Peer::kThere;
}

Connection::Ready Connection::wait(short events, Waiting::For what, Clock::time_point until) {
  if (!waiting_.begin(*this, what)) return Ready::kEnd;
  pollfd poll_for = {socket_, events, 0};
  int found = 0;
  do {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
    found = ::poll(&poll_for, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 3600'000)));
  } while (found < 0 && errno == EINTR);
  waiting_.end(*this);
  return found > 0 ? Ready::kYes : Ready::kTimeout;
}

Connection::Ready Connection::receive(Clock::time_point until) {
  char piece[kPiece];
  for (;;) {
    const ssize_t n = ended_ ? 0 : ::recv(socket_, piece, sizeof piece, MSG_DONTWAIT);
    if (n > 0) {
      // A client that sends without a pause gets no more time than any other.
      if (Clock::now() >= until) return Ready::kTimeout;
      received_.append(piece, static_cast<size_t>(n));
      return Ready::kYes;
    }
    ended_ = n == 0;
    if (ended_) return Ready::kEnd;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Ready::kEnd;
    const Ready ready = wait(POLLIN, Waiting::For::kRequest, until);
    if (ready != Ready::kYes) return ready;
  }
}

}  // namespace server
