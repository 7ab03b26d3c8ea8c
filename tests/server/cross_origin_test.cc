#include "server/cross_origin.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/expect_error.h"

namespace paceline {
namespace {

const std::vector<std::string> kAllowed = {"https://chat.example", "http://localhost:3000"};

HttpRequest request(std::string method, std::vector<HttpHeader> headers) {
  HttpRequest made;
  made.method = std::move(method);
  made.headers = std::move(headers);
  return made;
}

std::string header_for(const std::string& origin, std::string_view name,
                       const std::vector<std::string>& allowed = kAllowed) {
  HttpResponse response;
  add_origin_headers(request("GET", {{"Origin", origin}}), allowed, response);
  const auto found = std::find_if(response.headers.begin(), response.headers.end(),
                                  [&](const HttpHeader& one) { return one.name == name; });
  return found == response.headers.end() ? "none" : found->value;
}

TEST(CrossOrigin, ExactlyTheNamedOriginsMayRead) {
  constexpr std::string_view kAllow = "Access-Control-Allow-Origin";
  for (const std::string& origin : kAllowed) EXPECT_EQ(header_for(origin, kAllow), origin);
  for (const char* origin : {"http://chat.example", "https://chat.example:443", "null", "",
                             "https://chat.example.evil.example", "https://CHAT.example", "*"}) {
    EXPECT_EQ(header_for(origin, kAllow), "none") << origin;
    EXPECT_EQ(header_for(origin, "Vary"), "Origin");
  }
  EXPECT_EQ(header_for("https://chat.example", kAllow, {}), "none");
  EXPECT_EQ(header_for("https://chat.example", "Vary", {}), "none");
}

TEST(CrossOrigin, APreflightAsksForAnAllowedOrigin) {
  const HttpHeader method{"Access-Control-Request-Method", "POST"};
  const HttpHeader origin{"Origin", "https://chat.example"};
  EXPECT_TRUE(is_preflight(request("OPTIONS", {origin, method}), kAllowed));
  EXPECT_FALSE(is_preflight(request("OPTIONS", {origin}), kAllowed));
  EXPECT_FALSE(is_preflight(request("POST", {origin, method}), kAllowed));
  EXPECT_FALSE(
      is_preflight(request("OPTIONS", {{"Origin", "https://x.example"}, method}), kAllowed));
  EXPECT_FALSE(is_preflight(request("OPTIONS", {origin, method}), {}));
}

TEST(CrossOrigin, WhatIsNoOriginIsRefused) {
  EXPECT_NO_THROW(check_allowed_origins(kAllowed));
  for (const char* text : {"*", "chat.example", "https://", "://x", "https://chat.example/",
                           "https://Chat.example", "https://a b", "https://*.example", ""}) {
    const std::vector<std::string> origins = {text};
    expect_error(ErrorCode::invalid, {"--allowed-origin", "origin"},
                 [&] { check_allowed_origins(origins); });
  }
}

}  // namespace
}  // namespace paceline
