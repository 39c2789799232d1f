// SPDX-License-Identifier: Apache-2.0
// Proves that requests on one connection are read in one way only, whatever pieces they come in:
// each further piece is sent when the connection waits for it.
#include "http/connection.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>

#include "http/listener.h"
#include "openai/api_error.h"

namespace server {
namespace {

/// A client that sends its text piece by piece, and then that nothing more comes.
class Client : public Waiting {
 public:
  Client(std::string text, size_t piece) : text_(std::move(text)), piece_(piece) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    socket_ = ends[0];
    served_ = ends[1];
  }
  ~Client() override { ::close(socket_); }
  [[nodiscard]] int served() const { return served_; }

 private:
  bool begin(Connection& /*connection*/, For what) override {
    EXPECT_EQ(what, For::kRequest);
    const size_t n = std::min(piece_, text_.size() - sent_);
    if (n == 0) {
      ::shutdown(socket_, SHUT_WR);
      return true;
    }
    EXPECT_EQ(::send(socket_, text_.data() + sent_, n, MSG_NOSIGNAL), static_cast<ssize_t>(n));
    sent_ += n;
    return true;
  }
  void end(Connection& /*connection*/) override {}

  const std::string text_;
  const size_t piece_;
  size_t sent_ = 0;
  int socket_ = -1;
  int served_ = -1;
};

TEST(Connection, ReadsRequestsInWhateverPieces) {
  const std::string text =
      "\r\n\r\nPOST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
      "\r\nPOST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n"
      "GET /c HTTP/1.1\r\nHost: x\r\n\r\n\r\n";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    SCOPED_TRACE(piece);
    Client client(text, piece);
    Connection connection(client.served(), client, 1000);
    try {
      Head head;
      ASSERT_TRUE(connection.read_head(head));
      EXPECT_EQ(head.path, "/a");
      EXPECT_EQ(connection.read_body(head, 100), "abc");
      ASSERT_TRUE(connection.read_head(head));
      EXPECT_EQ(head.path, "/b");
      EXPECT_EQ(connection.read_body(head, 100), "de");
      ASSERT_TRUE(connection.read_head(head));
      EXPECT_EQ(head.path, "/c");
      EXPECT_FALSE(connection.read_head(head));
    } catch (const ApiError& error) {
      FAIL() << error.status << ' ' << error.what();
    }
  }
}

/// Lets nobody wait.
class Closed : public Waiting {
 private:
  bool begin(Connection& /*connection*/, For /*what*/) override { return false; }
  void end(Connection& /*connection*/) override {}
};

TEST(Connection, EndsBetweenRequestsThatAreThereAlready) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const std::string_view text =
      "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n";
  ASSERT_EQ(::send(ends[0], text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
  Closed closed;
  Connection connection(ends[1], closed, 1000);
  Head head;
  ASSERT_TRUE(connection.read_head(head));
  EXPECT_EQ(head.path, "/a");
  EXPECT_FALSE(connection.read_head(head));
  ::close(ends[0]);
}

// The answer has no end, and the client reads all the time.
TEST(Listener, StopsWhileAClientReads) {
  Listener listener(1, 1000, [](Connection& connection) {
    const std::string piece(1 << 20, 'a');
    while (connection.write(piece)) {
    }
  });
  const int port = listener.bind("127.0.0.1", 0);
  std::thread server([&] { EXPECT_TRUE(listener.run()); });
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  std::string piece(1 << 16, '\0');
  ASSERT_GT(::recv(client, piece.data(), piece.size(), 0), 0);
  listener.stop();
  while (::recv(client, piece.data(), piece.size(), 0) > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // slower than the server
  }
  server.join();
  ::close(client);
}

}  // namespace
}  // namespace server
