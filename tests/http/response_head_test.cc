#include "http/response_head.h"

#include <gtest/gtest.h>

#include "http/field.h"
#include "http/wire_exchange.h"

namespace paceline {
namespace {

TEST(HttpResponseHead, SaysHowLongTheBodyIs) {
  const HttpResponse response{.status = 429, .body = "full", .headers = {{"Retry-After", "2"}}};
  EXPECT_EQ(http_response_head(response, {}, "now"),
            "HTTP/1.1 429 Too Many Requests\r\nDate: now\r\nContent-Type: application/json\r\n"
            "Content-Length: 4\r\nRetry-After: 2\r\n\r\n");
  EXPECT_EQ(http_response_head({.content_type = "text/event-stream"},
                               {.body_end = HttpBodyEnd::chunked}, "now"),
            "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Type: text/event-stream\r\n"
            "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(http_response_head({}, {.body_end = HttpBodyEnd::close, .keep_alive = false}, "now"),
            "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Type: application/json\r\n"
            "Connection: close\r\n\r\n");
  EXPECT_EQ(http_response_head({.status = 204}, {.version_minor = 0}, "now"),
            "HTTP/1.1 204 No Content\r\nDate: now\r\nConnection: keep-alive\r\n\r\n");
}

TEST(HttpResponseHead, WritesDatesAsRfc9110Does) {
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(1709164800), "Thu, 29 Feb 2024 00:00:00 GMT");
}

TEST(HttpResponseHead, WritesSizesOfChunks) {
  EXPECT_EQ(http_chunk_head(1), "1\r\n");
  EXPECT_EQ(http_chunk_head(255), "ff\r\n");
}

// Random pieces and large bodies, against one string.
TEST(HttpOutput, HoldsUnsentBytesInOrder) {
  HttpOutput output;
  std::string model;
  size_t sent = 0;
  for (size_t i = 1; i < 3000; ++i) {
    const size_t size = i % 131 == 0 ? (64 << 10) + i : i % 97;
    const std::string piece(size, static_cast<char>('a' + i % 26));
    if (i % 3 == 0) {
      output.append_body(piece);
    } else {
      output.append(piece);
    }
    model += piece;
    ASSERT_EQ(output.unsent().empty(), output.empty());
    const size_t num_bytes = std::min(output.unsent().size(), i % 7 == 0 ? 70'000 : i % 89);
    ASSERT_EQ(output.unsent().substr(0, num_bytes), model.substr(sent, num_bytes));
    output.drop(num_bytes);
    sent += num_bytes;
    ASSERT_EQ(output.size(), model.size() - sent);
  }
  while (!output.empty()) {
    const std::string_view next = output.unsent();
    ASSERT_EQ(next, model.substr(sent, next.size()));
    sent += next.size();
    output.drop(next.size());
  }
  EXPECT_EQ(sent, model.size());
}

TEST(HttpField, FindsMembersOfLists) {
  EXPECT_TRUE(http_list_has("close", "close"));
  EXPECT_TRUE(http_list_has("a,\tCLOSE ,b", "close"));
  EXPECT_TRUE(http_list_has(",close", "close"));
  EXPECT_FALSE(http_list_has("closed, not-close", "close"));
  EXPECT_FALSE(http_list_has("", "close"));
}

TEST(HttpField, AreFoundInEitherCase) {
  const HttpRequest request{.headers = join_http_fields({{"A", "1"}, {"B", "2"}, {"a", "3"}})};
  ASSERT_NE(request.header("a"), nullptr);
  EXPECT_EQ(*request.header("a"), "1, 3");
  EXPECT_EQ(*request.header("b"), "2");
  EXPECT_EQ(request.header("c"), nullptr);
  EXPECT_EQ(request.headers.size(), 2u);
}

}  // namespace
}  // namespace paceline
