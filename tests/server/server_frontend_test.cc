#include "server/server_frontend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/http/http_client.h"
#include "tests/http/http_fixture.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServerFrontendTest : public ::testing::Test {
 protected:
  RawAnswer ask(const std::string& request) {
    RawHttpClient client(frontend_.http().port());
    client.send(request);
    return client.read_answer();
  }

  ServerFrontend frontend_{{.port = 0}, {}};
};

TEST_F(ServerFrontendTest, WhileTheModelIsLoadedItLivesAndShowsThePage) {
  EXPECT_EQ(ask(get("/live")).status, 200);
  const RawAnswer page = ask(get("/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.header("Content-Type"), StartsWith("text/html"));
  EXPECT_EQ(ask(get("/nothing")).status, 404);
  EXPECT_EQ(ask(get("/v1/images")).status, 404);
  const RawAnswer wrong = ask(get("/v1/completions"));
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("Allow"), "POST");
}

TEST_F(ServerFrontendTest, ErrorsOfAPathAreInTheShapeOfItsApi) {
  for (const std::string path : {"/api/nothing", "/api/generate"}) {
    EXPECT_THAT(ask(get(path)).body, StartsWith(R"({"error":")")) << path;
  }
  EXPECT_EQ(ask(get("/api/nothing")).status, 404);
  EXPECT_EQ(ask(get("/api/generate")).header("Allow"), "POST");
  for (const std::string path : {"/v1/messages", "/v1/messages/batches"}) {
    EXPECT_THAT(ask(get(path)).body, StartsWith(R"({"type":"error","error":{"type":")")) << path;
  }
  EXPECT_EQ(ask(get("/v1/messages")).status, 405);
  EXPECT_THAT(ask(get("/v1/nothing")).body, StartsWith(R"({"error":{"message":)"));
  EXPECT_THAT(ask(post("/api/chat", "{}")).body, StartsWith(R"({"error":"the model)"));
}

TEST_F(ServerFrontendTest, WhileTheModelIsLoadedThereIsNoAnswerYet) {
  for (const std::string& request :
       {get("/ready"), get("/health"), get("/v1/models"), post("/v1/completions", "{}")}) {
    const RawAnswer answer = ask(request);
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.header("Retry-After"), "1");
    EXPECT_THAT(answer.body, HasSubstr(R"("code":"loading")"));
  }
}

TEST_F(ServerFrontendTest, TheKeeperAnswersWhoHadConnectedBefore) {
  RawHttpClient early(frontend_.http().port());
  frontend_.open(
      {.gate = [](const HttpRequest&) -> HttpGate { return {}; },
       .handle = [](const std::shared_ptr<HttpExchange>& exchange,
                    const std::shared_ptr<void>&) { exchange->respond({.body = "kept"}); },
       .drain = [this] { frontend_.http().stop(); }});
  early.send(get("/ready"));
  EXPECT_EQ(early.read_answer().body, "kept");
  frontend_.drain();
  frontend_.wait();
  EXPECT_TRUE(early.is_closed());
}

TEST_F(ServerFrontendTest, ADrainBeforeTheModelIsThereClosesIt) {
  RawHttpClient client(frontend_.http().port());
  frontend_.drain();
  frontend_.wait();
  EXPECT_TRUE(client.is_closed());
  frontend_.open({});  // comes too late, and does nothing
  frontend_.wait();
}

}  // namespace
}  // namespace paceline
