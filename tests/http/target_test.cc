#include "http/target.h"

#include <gtest/gtest.h>

#include "http/refusal.h"

namespace paceline {
namespace {

TEST(HttpTarget, SplitsPathAndQuery) {
  EXPECT_EQ(parse_http_target("/v1/models").path, "/v1/models");
  EXPECT_EQ(parse_http_target("/v1/models").query, "");
  const HttpTarget target = parse_http_target("/a%20b?c=%20?d/e");
  EXPECT_EQ(target.path, "/a b");
  EXPECT_EQ(target.query, "c=%20?d/e");
}

TEST(HttpTarget, DecodesOnce) {
  EXPECT_EQ(parse_http_target("/%2541").path, "/%41");
  EXPECT_EQ(parse_http_target("/org%2Fmodel").path, "/org/model");
  EXPECT_EQ(parse_http_target("/%E2%82%AC+x").path, "/\xE2\x82\xAC+x");
  EXPECT_EQ(parse_http_target("/%41").path, "/A");
}

TEST(HttpTarget, TakesTheFormsOfRfc9112) {
  EXPECT_EQ(parse_http_target("http://host:80/x?y").path, "/x");
  EXPECT_EQ(parse_http_target("HTTPS://host/x").path, "/x");
  EXPECT_EQ(parse_http_target("http://host").path, "/");
  EXPECT_EQ(parse_http_target("http://host?q").path, "/");
  EXPECT_EQ(parse_http_target("http://host?q").query, "q");
  EXPECT_EQ(parse_http_target("*").path, "*");
}

TEST(HttpTarget, TellsTheHostThatItNames) {
  EXPECT_EQ(parse_http_target("http://host:80/x?y").authority, "host:80");
  EXPECT_EQ(parse_http_target("https://host").authority, "host");
  EXPECT_EQ(parse_http_target("http://host?q").authority, "host");
  EXPECT_EQ(parse_http_target("/http://host/").authority, "");
  EXPECT_EQ(parse_http_target("*").authority, "");
}

TEST(HttpTarget, RefusesWhatAPathCannotHold) {
  for (const char* const target : {"http://",    "http:///x", "http://localhost:x@host/",
                                   "http://?q",  "",          "x",
                                   "?x",         "host:80",   "*x",
                                   "/%",         "/%4",       "/%4x",
                                   "/%x4",       "/%-1",      "/%00",
                                   "/%0A",       "/%0d",      "/%7f",
                                   "/%ff",       "/%C3",      "/%C0%80",
                                   "/%ED%A0%80", "/a b",      "/\xC3\xA9",
                                   "/a#b",       "/a?b#c",    "/\x01"}) {
    try {
      parse_http_target(target);
      ADD_FAILURE() << target;
    } catch (const HttpRefusal& refusal) {
      EXPECT_EQ(refusal.status(), 400);
    }
  }
}

}  // namespace
}  // namespace paceline
