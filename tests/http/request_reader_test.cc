// Requests without a socket: the same bytes give the same request or refusal however they are cut.
#include "http/request_reader.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "http/head.h"
#include "tests/test_scale.h"

namespace paceline {
namespace {

using State = HttpRequestReader::State;

// What came of the bytes, and how many of them belonged to the request.
struct Reading {
  State state = State::head;
  int status = 0;
  std::string request;
  size_t taken = 0;

  bool operator==(const Reading&) const = default;
};

// `next_size` says how many bytes come together.
Reading read(std::string_view bytes, const HttpLimits& limits,
             const std::function<size_t()>& next_size) {
  HttpRequestReader reader(limits);
  Reading reading;
  const auto is_open = [&] {
    return reader.state() == State::head || reader.state() == State::body;
  };
  while (is_open() && reading.taken < bytes.size()) {
    reading.taken += reader.take(bytes.substr(reading.taken, next_size()));
    if (reader.state() == State::gate) reader.accept_body();
  }
  reading.state = reader.state();
  if (reading.state == State::refused) {
    reading.status = reader.refusal().status();
    reading.request = reader.refusal().what();
    reading.taken = 0;  // of no interest: the connection closes
    return reading;
  }
  const HttpRequest& request = reader.request();
  reading.request = request.method + " " + request.path + "?" + request.query + "\n";
  for (const HttpHeader& header : request.headers) {
    reading.request += header.name + ": " + header.value + "\n";
  }
  reading.request += request.body;
  return reading;
}

Reading read_whole(std::string_view bytes, const HttpLimits& limits = {}) {
  return read(bytes, limits, [&] { return bytes.size(); });
}

TEST(HttpRequestReader, ReadsARequest) {
  const std::string text =
      "\r\nPOST /a?b HTTP/1.1\r\nHost: h\r\nX:  y \t\r\nx:z\r\nContent-Length: 2\r\n\r\nokNEXT";
  const Reading reading = read_whole(text);
  EXPECT_EQ(reading.state, State::done);
  EXPECT_EQ(reading.request, "POST /a?b\nHost: h\nX: y, z\nContent-Length: 2\nok");
  EXPECT_EQ(reading.taken, text.size() - 4);
}

TEST(HttpRequestReader, DropsTheTrailer) {
  const Reading reading = read_whole(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "00a;e\r\n0123456789\r\n0\r\nAuthorization: x\r\n\r\n");
  EXPECT_EQ(reading.state, State::done);
  EXPECT_EQ(reading.request, "POST /?\nHost: h\nTransfer-Encoding: Chunked\n0123456789");
}

TEST(HttpRequestReader, StopsAtTheGate) {
  const HttpLimits limits;
  HttpRequestReader reader(limits);
  EXPECT_FALSE(reader.has_begun());
  const std::string head = "HEAD / HTTP/1.0\r\nContent-Length: 3\r\n\r\n";
  EXPECT_EQ(reader.take(head + "abc"), head.size());
  EXPECT_EQ(reader.state(), State::gate);
  EXPECT_EQ(reader.take("abc"), 0u);
  EXPECT_TRUE(reader.is_head());
  EXPECT_EQ(reader.request().method, "GET");
  EXPECT_FALSE(reader.framing().keep_alive);
  reader.accept_body();
  EXPECT_EQ(reader.take("abcd"), 3u);
  EXPECT_EQ(reader.state(), State::done);
}

TEST(HttpRequestReader, CountsWhatAChunkedBodyCosts) {
  const HttpLimits limits{.max_header_bytes = 100, .max_body_bytes = 10};
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(read_whole(head + "a\r\n0123456789\r\n0\r\n\r\n", limits).state, State::done);
  EXPECT_EQ(read_whole(head + "b\r\n", limits).status, 413);
  EXPECT_EQ(read_whole(head + "a\r\n0123456789\r\n1", limits).status, 413);
  EXPECT_EQ(read_whole(head + "00000000000000001\r\n", limits).status, 400);
  EXPECT_EQ(read_whole(head + "0\r\na: " + std::string(100, 'x'), limits).status, 431);
  EXPECT_EQ(read_whole(head + "0\r\na: b\r\nc", limits).state, State::body);
}

TEST(HttpRequestReader, TooLongANumberIsTooLongABody) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ";
  EXPECT_EQ(read_whole(head + "9999999999999999\r\n\r\n").status, 413);
  EXPECT_EQ(read_whole(head + "99999999999999999999999\r\n\r\n").status, 400);
  EXPECT_EQ(read_whole(head + "00000000000000000000002\r\n\r\nok").state, State::done);
}

TEST(HttpRequestReader, ItNeverMattersHowBytesAreCut) {
  const std::string chunked = "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::vector<std::string> seeds = {
      "GET /a%20b?c HTTP/1.1\r\nHost: h\r\nAccept: */*\r\nConnection: close\r\n\r\nGET",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\nhello world",
      chunked + "5;x\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\na: b\r\n\r\nrest",
      "GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
  };
  const std::string odd("\r\n\0 :;,%/?0159af\x7f\xff\tHTGh", 24);
  const HttpLimits limits{.max_uri_bytes = 30,
                          .max_header_line_bytes = 40,
                          .max_header_bytes = 80,
                          .max_header_fields = 4,
                          .max_body_bytes = 40};
  std::mt19937_64 random(7);
  const auto below = [&](size_t end) { return static_cast<size_t>(random() % end); };
  std::vector<int> num_by_state(5);
  const int num_rounds = scaled(20'000, 1'000'000);
  for (int round = 0; round < num_rounds; ++round) {
    std::string text = seeds[below(seeds.size())];
    for (size_t k = below(4); k > 0; --k) {
      const size_t at = below(text.size());
      const char c = odd[below(odd.size())];
      if (below(2) == 0) {
        text[at] = c;
      } else {
        text.insert(at, 1 + below(3) * below(20), c);
      }
    }
    if (below(2) == 0) text.resize(below(text.size()));
    const Reading whole = read_whole(text, limits);
    ASSERT_EQ(whole, read(text, limits, [] { return size_t{1}; })) << text;
    ASSERT_EQ(whole, read(text, limits, [&] { return 1 + below(20); })) << text;
    ++num_by_state[static_cast<size_t>(whole.state)];
  }
  for (const State state : {State::head, State::body, State::done, State::refused}) {
    EXPECT_GT(num_by_state[static_cast<size_t>(state)], num_rounds / 100);
  }
}

TEST(HttpHead, IsSplitByBeast) {
  const HttpHead head = parse_http_head("PUT /x HTTP/1.0\r\na:b\r\nC: d e \r\n\r\n");
  EXPECT_EQ(head.method, "PUT");
  EXPECT_EQ(head.target, "/x");
  EXPECT_EQ(head.version_minor, 0);
  ASSERT_EQ(head.fields.size(), 2u);
  EXPECT_EQ(head.fields[0].value, "b");
  EXPECT_EQ(head.fields[1].name, "C");
  EXPECT_EQ(head.fields[1].value, "d e");
  EXPECT_THROW(parse_http_head("PUT /x HTTP/1.1\r\na: b"), HttpRefusal);
  EXPECT_THROW(parse_http_head(""), HttpRefusal);
}

}  // namespace
}  // namespace paceline
