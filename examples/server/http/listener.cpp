// SPDX-License-Identifier: Apache-2.0
// See listener.h.
#include "listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace server {
namespace {

constexpr int kBacklog = 1024;
constexpr int kRetryMilliseconds = 10;        // when there are no more files
constexpr std::chrono::seconds kStopTime(5);  // for clients that read slowly

std::string reason(int error) { return std::system_category().message(error); }

/// A listening socket at one address, or -1 and errno.
int listen_at(const addrinfo& address) {
  const int type = address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const int made = ::socket(address.ai_family, type, address.ai_protocol);
  if (made < 0) return -1;
  // Not SO_REUSEPORT, which would silently let two servers share a port.
  const int yes = 1;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(made, address.ai_addr, address.ai_addrlen) == 0 && ::listen(made, kBacklog) == 0) {
    return made;
  }
  const int error = errno;
  ::close(made);
  errno = error;
  return -1;
}

int port_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Listener::Listener(size_t places, int request_seconds, Serve serve)
    : places_(places),
      request_seconds_(request_seconds),
      serve_(std::move(serve)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw std::runtime_error("cannot create an eventfd: " + reason(errno));
}

Listener::~Listener() {
  if (socket_ >= 0) ::close(socket_);
  ::close(wake_);
}

int Listener::bind(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found)) {
    throw std::runtime_error(error == EAI_SYSTEM ? reason(errno) : gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr && socket_ < 0;
       address = address->ai_next) {
    socket_ = listen_at(*address);
  }
  if (socket_ < 0) throw std::runtime_error(reason(errno));
  return port_of(socket_);
}

bool Listener::run() {
  bool accepted = false;
  std::exception_ptr failure;
  try {
    for (size_t i = 0; i < places_; ++i) threads_.emplace_back([this] { work(); });
    accepted = accept_all();
  } catch (const std::exception&) {  // the system has no more threads
    failure = std::current_exception();
  }
  stop();
  ::close(std::exchange(socket_, -1));
  for (std::thread& thread : threads_) thread.join();
  for (const int socket : std::exchange(accepted_, {})) ::close(socket);
  if (failure) std::rethrow_exception(failure);
  return accepted;
}

void Listener::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  room_until_ = Connection::Clock::now() + kStopTime;
  const uint64_t one = 1;
  // Cannot fail: the counter would have to overflow.
  if (::write(wake_, &one, sizeof one) < 0) return;
  changed_.notify_all();
  for (Connection* connection : served_) {
    const bool waits = connection->place_in_line_ != 0 && !connection->evicted_;
    if (waits && connection->waits_for_ == For::kRequest) connection->evict();
  }
}

/// False if accepting cannot continue.
bool Listener::accept_all() {
  pollfd poll_for[] = {{socket_, POLLIN, 0}, {wake_, POLLIN, 0}};
  for (;;) {
    if (::poll(poll_for, 2, -1) < 0 && errno != EINTR) return false;
    if ((poll_for[1].revents & POLLIN) != 0) return true;
    const int made = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (made >= 0) {
      const int yes = 1;
      setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      const std::lock_guard lock(mutex_);
      try {
        accepted_.push_back(made);
      } catch (const std::bad_alloc&) {
        ::close(made);
      }
      changed_.notify_one();
      make_room();
    } else if (errno == EBADF || errno == EINVAL || errno == ENOTSOCK) {
      return false;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      ::poll(poll_for + 1, 1, kRetryMilliseconds);
    }
    // Any other error concerns a single connection.
  }
}

void Listener::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !accepted_.empty(); });
    if (stopping_) return;
    Connection connection(accepted_.front(), *this, request_seconds_);
    accepted_.pop_front();
    try {
      served_.insert(&connection);
    } catch (const std::bad_alloc&) {
      continue;
    }
    lock.unlock();
    serve_(connection);
    lock.lock();
    served_.erase(&connection);
    leaving_ -= connection.evicted_ ? 1 : 0;
  }
}

/// Evicts as many waiting connections as there are new ones without a place. Under the lock.
void Listener::make_room() {
  while (accepted_.size() + served_.size() > places_ + leaving_) {
    Connection* longest = nullptr;
    for (Connection* connection : served_) {
      if (connection->place_in_line_ == 0 || connection->evicted_) continue;
      if (longest == nullptr || connection->place_in_line_ < longest->place_in_line_) {
        longest = connection;
      }
    }
    if (longest == nullptr) return;
    longest->evicted_ = true;
    ++leaving_;
    longest->evict();
  }
}

bool Listener::begin(Connection& connection, For what) {
  const std::lock_guard lock(mutex_);
  const bool may_wait =
      !stopping_ || (what == For::kRoom && Connection::Clock::now() < room_until_);
  if (connection.evicted_ || !may_wait) return false;
  connection.place_in_line_ = ++last_place_;
  connection.waits_for_ = what;
  make_room();
  return !connection.evicted_;
}

void Listener::end(Connection& connection) {
  const std::lock_guard lock(mutex_);
  connection.place_in_line_ = 0;
}

}  // namespace server
