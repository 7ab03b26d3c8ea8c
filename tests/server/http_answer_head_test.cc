#include "server/http_answer_head.h"

#include <gtest/gtest.h>

#include "server/http_field.h"
#include "server/http_output.h"

namespace paceline {
namespace {

TEST(HttpAnswerHead, SaysHowLongTheBodyIs) {
  const HttpResponse response{.status = 429, .body = "full", .headers = {{"Retry-After", "2"}}};
  EXPECT_EQ(http_answer_head(response, {}, "now"),
            "HTTP/1.1 429 Too Many Requests\r\nDate: now\r\nContent-Type: application/json\r\n"
            "Content-Length: 4\r\nRetry-After: 2\r\n\r\n");
  EXPECT_EQ(http_answer_head({.content_type = "text/event-stream"},
                             {.body_end = HttpBodyEnd::chunked}, "now"),
            "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Type: text/event-stream\r\n"
            "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(http_answer_head({}, {.body_end = HttpBodyEnd::close, .keep_alive = false}, "now"),
            "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Type: application/json\r\n"
            "Connection: close\r\n\r\n");
  EXPECT_EQ(http_answer_head({.status = 204}, {.version_minor = 0}, "now"),
            "HTTP/1.1 204 No Content\r\nDate: now\r\nConnection: keep-alive\r\n\r\n");
}

TEST(HttpAnswerHead, WritesDatesAsRfc9110Does) {
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(1709164800), "Thu, 29 Feb 2024 00:00:00 GMT");
}

TEST(HttpAnswerHead, WritesChunks) {
  std::string out;
  append_http_chunk(out, "x");
  append_http_chunk(out, std::string(255, 'y'));
  EXPECT_EQ(out, "1\r\nx\r\nff\r\n" + std::string(255, 'y') + "\r\n");
}

TEST(HttpOutput, HoldsWhatIsNotSent) {
  HttpOutput output;
  std::string model;
  size_t sent = 0;
  for (size_t i = 1; i < 2000; ++i) {
    const std::string piece(i % 97, static_cast<char>('a' + i % 26));
    output.bytes().append(piece);
    model += piece;
    const size_t num_bytes = std::min(output.size(), i % 89);
    EXPECT_EQ(output.unsent().substr(0, num_bytes), model.substr(sent, num_bytes));
    output.drop(num_bytes);
    sent += num_bytes;
    ASSERT_EQ(output.size(), model.size() - sent);
  }
  EXPECT_EQ(output.unsent(), model.substr(sent));
  output.drop(output.size());
  EXPECT_TRUE(output.empty());
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
