// SPDX-License-Identifier: Apache-2.0
// Proves that heads and bodies in chunks are read in one way only, whatever pieces they come in, and
// which hosts, pages and types of bodies are let in (attack_test.py has what is refused, over TCP).
#include "http/head.h"

#include <gtest/gtest.h>

#include <string>

#include "http/access.h"
#include "openai/api_error.h"

namespace server {
namespace {

template <typename Call>
int status_of(Call call) {
  try {
    call();
    return 200;
  } catch (const ApiError& error) {
    return error.status;
  }
}

/// A head with more lines behind its Host.
Head with(const std::string& lines, const std::string& host = "localhost") {
  return parse_head("POST /p HTTP/1.1\r\nHost: " + host + "\r\n" + lines + "\r\n");
}

TEST(Head, HasWhatWasSent) {
  const Head head = parse_head(
      "POST /a%20b?c=d HTTP/1.1\r\nHOST:x\r\nX-Y: \t a  b \t\r\nX-Y:\r\nContent-Length: 007\r\n\r\n");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/a%20b");
  EXPECT_EQ(percent_decoded(head.path), "/a b");
  EXPECT_TRUE(head.version11);
  EXPECT_TRUE(head.keep_alive);
  ASSERT_NE(head.find("x-y"), nullptr);
  EXPECT_EQ(*head.find("x-y"), "a  b");
  EXPECT_EQ(head.find("y"), nullptr);
  EXPECT_TRUE(head.has_length);
  EXPECT_EQ(head.content_length, 7U);
  EXPECT_FALSE(parse_head("GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_FALSE(with("Connection: a, CLOSE ,b\r\n").keep_alive);
  EXPECT_TRUE(with("Connection: closed\r\n").keep_alive);
  EXPECT_EQ(percent_decoded("%4x%%41%4"), "%4x%A%4");
}

TEST(Head, EndsWithAnEmptyLineInWhateverPieces) {
  const std::string whole = "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET ";
  for (size_t n = 0; n < whole.size() - 4; ++n) {
    for (size_t seen = 0; seen <= n; ++seen) {
      EXPECT_EQ(find_head_end(std::string_view(whole).substr(0, n), seen), std::nullopt);
    }
    EXPECT_EQ(find_head_end(whole, n), whole.size() - 4);
  }
  const std::string longest(kMaxHeadBytes - 4, 'a');
  EXPECT_EQ(find_head_end(longest + "\r\n\r\n", 0), kMaxHeadBytes);
  EXPECT_EQ(status_of([&] { find_head_end(longest + "a\r\n\r\n", 0); }), 431);
  EXPECT_EQ(status_of([&] { find_head_end("GET / HTTP/1.1\n", 0); }), 400);
}

TEST(Head, OtherVersionsAndExpectationsAreTold) {
  EXPECT_EQ(status_of([] { parse_head("GET / HTTP/2.0\r\nHost: a\r\n\r\n"); }), 505);
  EXPECT_EQ(status_of([] { parse_head("GET / HTTPS\r\nHost: a\r\n\r\n"); }), 400);
  EXPECT_EQ(status_of([] { with("Expect: 200\r\n"); }), 417);
  EXPECT_TRUE(with("Expect: 100-Continue\r\n").expects_continue);
}

TEST(Chunks, AreOneBodyInWhateverPieces) {
  const std::string text = "3;name=\"v\"\r\nabc\r\n0A\r\n0123456789\r\n000\r\nTrailer: x\r\n\r\nNEXT";
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    ChunkReader reader(13);
    std::string body;
    std::string left;
    for (size_t at = 0; at < text.size(); at += piece) {
      std::string_view bytes = std::string_view(text).substr(at, piece);
      reader.read(bytes, body);
      left += bytes;
    }
    EXPECT_TRUE(reader.done());
    EXPECT_EQ(body, "abc0123456789");
    EXPECT_EQ(left, "NEXT");
  }
  const auto read = [](const std::string& sent, size_t limit) {
    ChunkReader reader(limit);
    std::string body;
    std::string_view bytes = sent;
    reader.read(bytes, body);
  };
  EXPECT_EQ(status_of([&] { read(text, 12); }), 413);
  // A size is refused with its line, before any of its bytes come, also one at which sums wrap.
  for (const char* size : {"d", "7fffffffffffffff", "8000000000000000", "ffffffffffffffff"}) {
    EXPECT_EQ(status_of([&] { read(std::string(size) + "\r\n", 12); }), 413) << size;
    EXPECT_EQ(status_of([&] { read("1\r\na\r\n" + std::string(size) + "\r\n", 12); }), 413) << size;
  }
  EXPECT_EQ(status_of([&] { read("1\r\na\r\nc\r\n", 12); }), 413);
  EXPECT_EQ(status_of([&] { read("1\r\na\r\nb\r\n", 12); }), 200);
  EXPECT_EQ(status_of([&] { read("10000000000000000\r\n", 12); }), 400);
  EXPECT_EQ(status_of([&] { read("1;" + std::string(200, 'a'), 12); }), 400);
  EXPECT_EQ(status_of([&] { read("0\r\n" + std::string(kMaxHeadBytes + 1, 'a'), 12); }), 400);
  std::string trailers = "0\r\n";
  for (size_t i = 0; i < kMaxHeadBytes / 3; ++i) trailers += "a:b\r\n";
  EXPECT_EQ(status_of([&] { read(trailers, 12); }), 400);
}

TEST(Access, GoesByHostAndOrigin) {
  const Access closed({"Name"}, {});
  const auto host = [&](const std::string& name) {
    return status_of([&] { closed.check(with("", name)); });
  };
  for (const char* name : {"localhost", "LocalHost:1", "a.localhost", "10.0.0.1:80", "[::1]",
                           "[fe80::1]:8080", "name", "NAME:8080"}) {
    EXPECT_EQ(host(name), 200) << name;
  }
  for (const char* name : {"example.org", "localhost.example.org", "1.2.3", "1.2.3.4.example.org",
                           "xlocalhost", "name.example.org", "localhost."}) {
    EXPECT_EQ(host(name), 403) << name;
  }
  for (const char* name : {"", ":80", "a:b", "::1", "localhost:80:80"}) {
    EXPECT_EQ(host(name), 400) << name;
  }
  const auto origin = [](const Access& access, const std::string& text) {
    return status_of([&] { access.check(with("Origin: " + text + "\r\n", "localhost:8080")); });
  };
  EXPECT_EQ(origin(closed, "http://localhost:8080"), 200);
  EXPECT_EQ(origin(closed, "https://LOCALHOST:8080"), 200);
  EXPECT_EQ(origin(closed, "http://localhost"), 403);
  EXPECT_EQ(origin(closed, "http://127.0.0.1:8080"), 403);
  EXPECT_EQ(origin(closed, "null"), 403);
  const Access open({}, {"https://Page"});
  EXPECT_EQ(origin(open, "https://page"), 200);
  EXPECT_EQ(origin(open, "http://page"), 403);
  EXPECT_TRUE(closed.fields(with("Origin: https://page\r\n")).empty());
  const HeaderFields expected = {{"Vary", "Origin"},
                                 {"Access-Control-Allow-Origin", "https://page"}};
  EXPECT_EQ(open.fields(with("Origin: https://page\r\n")), expected);
}

}  // namespace
}  // namespace server
