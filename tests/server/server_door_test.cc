#include "server/server_door.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/http_fixture.h"

namespace paceline {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class ServerDoorTest : public testing::Test {
 protected:
  RawAnswer ask(const std::string& request) {
    RawHttpClient client(door_.http().port());
    client.send(request);
    return client.read_answer();
  }

  ServerDoor door_{{.port = 0}, {}};
};

TEST_F(ServerDoorTest, WhileTheModelIsLoadedItLivesAndShowsThePage) {
  EXPECT_EQ(ask(get("/live")).status, 200);
  const RawAnswer page = ask(get("/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.header("Content-Type"), StartsWith("text/html"));
  EXPECT_EQ(ask(get("/nothing")).status, 404);
  EXPECT_EQ(ask(get("/v1/embeddings")).status, 501);
  const RawAnswer wrong = ask(get("/v1/completions"));
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("Allow"), "POST");
}

TEST_F(ServerDoorTest, WhileTheModelIsLoadedThereIsNoAnswerYet) {
  for (const std::string& request :
       {get("/ready"), get("/health"), get("/v1/models"), post("/v1/completions", "{}")}) {
    const RawAnswer answer = ask(request);
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.header("Retry-After"), "1");
    EXPECT_THAT(answer.body, HasSubstr(R"("code":"loading")"));
  }
}

TEST_F(ServerDoorTest, TheKeeperAnswersWhoHadConnectedBefore) {
  RawHttpClient early(door_.http().port());
  door_.open({.gate = [](const HttpRequest&) -> HttpGate { return {}; },
              .handle = [](const std::shared_ptr<HttpExchange>& exchange,
                           const std::shared_ptr<void>&) { exchange->respond({.body = "kept"}); },
              .drain = [this] { door_.http().stop(); }});
  early.send(get("/ready"));
  EXPECT_EQ(early.read_answer().body, "kept");
  door_.drain();
  door_.wait();
  EXPECT_TRUE(early.is_closed());
}

TEST_F(ServerDoorTest, ADrainBeforeTheModelIsThereClosesIt) {
  RawHttpClient client(door_.http().port());
  door_.drain();
  door_.wait();
  EXPECT_TRUE(client.is_closed());
  door_.open({});  // comes too late, and does nothing
  door_.wait();
}

}  // namespace
}  // namespace paceline
