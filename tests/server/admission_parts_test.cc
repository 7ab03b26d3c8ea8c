// The parts of admission: in-flight limits, keys, hosts, routes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "server/api_keys.h"
#include "server/host_check.h"
#include "server/in_flight_limit.h"
#include "server/route_table.h"
#include "server/routes.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

TEST(InFlightLimit, ComeBackWhenTheLastHolderLetsGo) {
  InFlightLimit in_flight(2);
  auto first = in_flight.acquire();
  auto copy = first;
  EXPECT_EQ(in_flight.num_in_flight(), 1);
  first.reset();
  EXPECT_EQ(in_flight.num_in_flight(), 1);
  copy.reset();
  EXPECT_EQ(in_flight.num_in_flight(), 0);
}

TEST(InFlightLimit, AreRefusedUntilAFifthIsBack) {
  InFlightLimit in_flight(10);
  std::vector<std::shared_ptr<void>> held;
  for (int i = 0; i < 10; ++i) held.push_back(in_flight.acquire());
  EXPECT_EQ(in_flight.acquire(), nullptr);
  held.pop_back();
  EXPECT_EQ(in_flight.acquire(), nullptr) << "nine are still taken";
  held.pop_back();
  held.push_back(in_flight.acquire());
  EXPECT_NE(held.back(), nullptr);
  held.push_back(in_flight.acquire());
  EXPECT_NE(held.back(), nullptr);
  EXPECT_EQ(in_flight.acquire(), nullptr);
}

TEST(InFlightLimit, KnowForHowLongThereHasBeenNoRoom) {
  InFlightLimit in_flight(2);
  auto one = in_flight.acquire(), two = in_flight.acquire();
  EXPECT_EQ(in_flight.full_for().count(), 0) << "no request has been refused";
  EXPECT_EQ(in_flight.acquire(), nullptr);
  const auto since = in_flight.full_for();
  EXPECT_GT(since.count(), 0);
  EXPECT_EQ(in_flight.acquire(), nullptr);
  EXPECT_GT(in_flight.full_for(), since);
  one.reset();
  EXPECT_EQ(in_flight.full_for().count(), 0);
}

TEST(InFlightLimit, ASingleOneCanBeTakenAgain) {
  InFlightLimit in_flight(1);
  for (int i = 0; i < 3; ++i) {
    const auto permit = in_flight.acquire();
    EXPECT_NE(permit, nullptr);
    EXPECT_EQ(in_flight.acquire(), nullptr);
  }
}

TEST(InFlightLimit, MayBeOutlived) {
  auto in_flight = std::make_unique<InFlightLimit>(1);
  auto permit = in_flight->acquire();
  in_flight.reset();
  permit.reset();
}

TEST(BytesLimit, BoundsAllHoldersTogetherButNoneAlone) {
  BytesLimit bytes(100);
  auto first = bytes.acquire(60);
  EXPECT_EQ(bytes.acquire(41), nullptr);
  auto second = bytes.acquire(40);
  EXPECT_EQ(bytes.num_held(), 100);
  first.reset();
  second.reset();
  EXPECT_EQ(bytes.num_held(), 0);
  EXPECT_NE(bytes.acquire(1000), nullptr);
  EXPECT_EQ(bytes.num_held(), 0);
}

TEST(ApiKeys, AreComparedWhole) {
  const std::vector<std::string> given = {"one", "two"};
  const ApiKeys keys(given);
  const auto request = [](const std::string& name, const std::string& value) {
    return HttpRequest{.headers = {{name, value}}};
  };
  const auto allows = [&](const std::string& header) {
    return keys.allows(request("authorization", header));
  };
  EXPECT_TRUE(allows("Bearer one"));
  EXPECT_TRUE(allows("bearer  two"));
  for (const char* wrong : {"Bearer on", "Bearer onee", "Bearer One", "one", "Basic one", "Bearer",
                            "Bearer ", "Bearer one two", ""}) {
    EXPECT_FALSE(allows(wrong)) << wrong;
  }
  EXPECT_FALSE(keys.allows({}));
  EXPECT_TRUE(ApiKeys({}).allows({}));
  // As Anthropic's client sends it; Authorization goes before it.
  EXPECT_TRUE(keys.allows(request("x-api-key", "two")));
  EXPECT_FALSE(keys.allows(request("x-api-key", "three")));
  EXPECT_FALSE(keys.allows({.headers = {{"x-api-key", "one"}, {"authorization", "Bearer three"}}}));
  EXPECT_EQ(keys.tenant_of(request("x-api-key", "two")),
            keys.tenant_of(request("authorization", "Bearer two")));
  EXPECT_NE(keys.tenant_of(request("x-api-key", "two")),
            keys.tenant_of(request("x-api-key", "one")));
}

TEST(HostCheck, NamesOfTheLoopback) {
  for (const char* good :
       {"localhost", "LocalHost:80", "127.0.0.1:8080", "127.8.9.1", "[::1]", "[::1]:8080"}) {
    EXPECT_TRUE(is_allowed_host(good, {})) << good;
  }
  for (const char* bad : {"", "example.com", "localhost.example.com", "127.0.0.1.example.com",
                          "10.0.0.1", "[::2]:80", "0.0.0.0", "[", "localhost@example.com"}) {
    EXPECT_FALSE(is_allowed_host(bad, {})) << bad;
  }
  const std::vector<std::string> names = {"models.lan"};
  EXPECT_TRUE(is_allowed_host("MODELS.lan:80", names));
}

struct Found {
  std::string message;
  const Route* route = nullptr;
  int status = 200;
  std::string allow;
};

Found find(std::string_view method, std::string_view path) {
  Found found;
  const auto result = find_route(method, path, found.allow);
  if (const auto* error = std::get_if<ApiError>(&result)) {
    found.status = openai_kind(error->reason).status;
    found.message = error->message;
  } else {
    found.route = std::get<const Route*>(result);
  }
  return found;
}

TEST(RouteTable, EveryRouteIsFound) {
  std::set<std::string> seen;
  for (const Route& route : route_table()) {
    const std::string path(route.path);
    EXPECT_TRUE(seen.insert(std::string(route.method) + path).second) << path;
    const std::string asked = path.ends_with('*') ? path.substr(0, path.size() - 1) + "x/y" : path;
    EXPECT_EQ(find(route.method, asked).route, &route) << path;
    EXPECT_EQ(find("PATCH", asked).status, 405) << path;
    // What acts on one thing, and what only refuses, reads no body.
    const bool reads =
        route.method == "POST" && !route.names_one() && route.handle != refuse_management;
    EXPECT_EQ(route.has_body(), reads) << path;
    EXPECT_TRUE(route.summary.ends_with('.')) << path;
  }
}

TEST(RouteTable, WhatNeedsNoKeyIsHealthAndThePage) {
  for (const Route& route : route_table()) {
    const bool is_open = route.access == RouteAccess::open;
    const std::set<std::string_view> open = {"/health", "/v1/health", "/live",
                                             "/ready",  "/",          "/page/*"};
    EXPECT_EQ(is_open, open.contains(route.path)) << route.path;
  }
}

TEST(RouteTable, WhatIsNotThere) {
  EXPECT_EQ(find("GET", "/nothing").status, 404);
  EXPECT_EQ(find("GET", "/v1/models/").status, 404);
  EXPECT_EQ(find("GET", "/page/").status, 404);
  EXPECT_EQ(find("GET", "/v1/completionsx").status, 404);
  // 404, not 501: OpenAI's clients retry after 500 and above.
  for (const char* path :
       {"/v1/images/generations", "/v1/audio/speech", "/v1/batches", "/api/edit", "/nothing"}) {
    EXPECT_EQ(find("POST", path).status, 404) << path;
    EXPECT_THAT(find("POST", path).message, ::testing::HasSubstr("POST /v1/chat/completions"));
  }
  EXPECT_EQ(find("DELETE", "/v1/models").allow, "GET, HEAD");
}

}  // namespace
}  // namespace paceline
