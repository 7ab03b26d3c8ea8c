#include <gmock/gmock.h>

#include "protocol/dialect.h"
#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using testing::HasSubstr;

ResponseHead ollama_head() {
  return {.id = "ollama-1", .created = 1'764'296'123, .created_micros = 45'006, .model = "served"};
}

ResponseTimings timings() {
  return {.tokens = {.prompt_tokens = 7, .completion_tokens = 3},
          .times = {.queue_seconds = 0.25, .prompt_seconds = 0.5, .output_seconds = 1.5}};
}

constexpr std::string_view kAnswerStart =
    R"({"model":"m:latest","created_at":"2025-11-28T02:15:23.045006Z",)";
constexpr std::string_view kAnswerTimes =
    R"("total_duration":2250000000,"load_duration":250000000,"prompt_eval_count":7,)"
    R"("prompt_eval_duration":500000000,"eval_count":3,"eval_duration":1500000000})";

class OllamaAnswers : public testing::Test {
 protected:
  void ask(const Dialect& dialect, std::string_view body) {
    const RequestTerms limits;
    Call call = dialect.parse(parse_json(body, "body"), {.limits = limits});
    writer_ = std::move(std::get<GenerationCall>(call).writer);
    const TokenNames names(nullptr);
    prompt_.prompt = {1, 2};
    const GenerateRequest* const prompts[] = {&prompt_};
    writer_->see_prompts({.names = names, .model = "served", .context = 64, .requests = prompts});
  }
  void ask_chat(std::string_view members = "") {
    ask(kOllamaChatDialect,
        R"({"model": "m:latest", "messages": [{"role": "user", "content": "x"}])" +
            std::string(members) + "}");
  }

  // What the chunk adds to the stream.
  std::string added(const ResponseChunk& chunk) {
    std::string out;
    writer_->chunk(chunk, out);
    return out;
  }
  std::string added(const TurnDelta& delta) { return added(ResponseChunk{.turn = &delta}); }
  std::string ended(std::string_view reason) {
    const ResponseChoice ending{.finish_reason = std::string(reason), .timings = timings()};
    return added(ResponseChunk{.text = "", .ending = &ending});
  }

  std::unique_ptr<ChoiceWriter> writer_;
  GenerateRequest prompt_;
};

TEST_F(OllamaAnswers, AChatIsOneObject) {
  ask_chat();
  ResponseChoice choice{.text = "Hi", .finish_reason = "stop", .timings = timings()};
  EXPECT_EQ(writer_->whole({.head = ollama_head(), .choices = {choice}}),
            std::string(kAnswerStart) +
                R"("message":{"role":"assistant","content":"Hi"},"done":true,)"
                R"("done_reason":"stop",)" +
                std::string(kAnswerTimes));
  choice.finish_reason = "length";
  choice.turn = TurnParts{.reasoning = "Hm.",
                          .content = "",
                          .tool_calls = {{"a", "f", R"({"x":1})"}, {"b", "g", R"({"y":)"}}};
  EXPECT_THAT(writer_->whole({.head = ollama_head(), .choices = {choice}}),
              HasSubstr(R"("message":{"role":"assistant","content":"","thinking":"Hm.",)"
                        R"("tool_calls":[{"id":"a","function":{"index":0,"name":"f",)"
                        R"("arguments":{"x":1}}}]},"done":true,"done_reason":"length",)"))
      << "the second call is cut, so that its arguments are no object";
}

TEST_F(OllamaAnswers, AChatStreamsLines) {
  ask_chat();
  std::string out;
  writer_->begin({.head = ollama_head()}, out);
  EXPECT_EQ(out, "");
  EXPECT_EQ(added(ResponseChunk{.text = "He"}),
            std::string(kAnswerStart) +
                R"("message":{"role":"assistant","content":"He"},"done":false})" + "\n");
  EXPECT_EQ(added(ResponseChunk{.text = ""}), "");
  EXPECT_EQ(ended("stop"), std::string(kAnswerStart) +
                               R"("message":{"role":"assistant","content":""},"done":true,)"
                               R"("done_reason":"stop",)" +
                               std::string(kAnswerTimes) + "\n");
  writer_->end({}, out);
  EXPECT_EQ(out, "");
}

TEST_F(OllamaAnswers, CallsComeWhole) {
  ask_chat();
  std::string out;
  writer_->begin({.head = ollama_head()}, out);
  EXPECT_THAT(added(TurnDelta{.reasoning = "Hm."}),
              HasSubstr(R"("message":{"role":"assistant","content":"","thinking":"Hm."})"));
  EXPECT_EQ(
      added(TurnDelta{.call_index = 0, .begins_call = true, .call_id = "a", .call_name = "f"}), "");
  EXPECT_EQ(added(TurnDelta{.call_index = 0, .arguments = R"({"x":)"}), "");
  EXPECT_EQ(added(TurnDelta{.call_index = 0, .arguments = "1}"}), "");
  EXPECT_THAT(
      added(TurnDelta{.call_index = 1, .begins_call = true, .call_id = "b", .call_name = "g"}),
      HasSubstr(R"("message":{"role":"assistant","content":"","tool_calls":[{"id":"a",)"
                R"("function":{"index":0,"name":"f","arguments":{"x":1}}}]},"done":false)"));
  EXPECT_EQ(added(TurnDelta{.call_index = 1, .arguments = "{}"}), "");
  const std::string end = ended("tool_calls");
  EXPECT_THAT(end,
              HasSubstr(R"("function":{"index":1,"name":"g","arguments":{}}}]},"done":false)"));
  EXPECT_THAT(end, HasSubstr(R"("content":""},"done":true,"done_reason":"stop")"));
}

TEST_F(OllamaAnswers, GenerateReturnsTheContext) {
  ask(kOllamaGenerateDialect, R"({"prompt": "x"})");
  ResponseChoice choice{.text = "Hi", .finish_reason = "stop", .token_ids = {{3, 4}}};
  EXPECT_EQ(writer_->whole({.head = ollama_head(), .choices = {choice}}),
            R"({"model":"served","created_at":"2025-11-28T02:15:23.045006Z","response":"Hi",)"
            R"("done":true,"done_reason":"stop","context":[1,2,3,4]})");
  ask(kOllamaGenerateDialect, R"({"prompt": "x"})");
  std::string out;
  writer_->begin({.head = ollama_head()}, out);
  EXPECT_THAT(added(ResponseChunk{.text = "Hi", .token_ids = {{3, 4}}}),
              HasSubstr(R"("response":"Hi","done":false})"));
  EXPECT_THAT(ended("stop"), HasSubstr(R"("response":"","done":true,"done_reason":"stop",)"
                                       R"("context":[1,2,3,4],"total_duration")"));
}

TEST_F(OllamaAnswers, LogprobsComeWithTheirText) {
  ask_chat(R"(, "logprobs": true)");
  std::string out;
  writer_->begin({.head = ollama_head()}, out);
  ResponseChunk chunk{.text = "Hi"};
  chunk.logprobs = {{.token = {.id = 3, .bytes = "Hi"}, .logprob = -0.5f, .top = {}}};
  EXPECT_THAT(added(chunk), HasSubstr(R"("done":false,"logprobs":[{"token":"Hi","logprob":-0.5,)"
                                      R"("bytes":[72,105],"top_logprobs":[]}]})"));
}

TEST_F(OllamaAnswers, AnErrorInAStreamIsALineAndAPingNone) {
  ask_chat();
  std::string out;
  writer_->ping(out);
  EXPECT_EQ(out, " ") << "JSON's blanks, which begin the next line";
  writer_->fail({.reason = ErrorReason::numerical_error, .message = "no \"number\""}, out);
  EXPECT_EQ(out, R"( {"error":"no \"number\""})"
                 "\n");
}

TEST_F(OllamaAnswers, WarningsStandInTheLastObject) {
  ask_chat();
  ResponseHead warned = ollama_head();
  warned.warnings = {"w"};
  const ResponseChoice choice{.text = "Hi", .finish_reason = "stop"};
  EXPECT_THAT(writer_->whole({.head = warned, .choices = {choice}}),
              HasSubstr(R"("done_reason":"stop","warnings":["w"]})"));
}

TEST(OllamaDialect, LoadsAndUnloads) {
  const auto answer = [](const Dialect& dialect, std::string_view body) {
    const RequestTerms limits;
    const Call call = dialect.parse(parse_json(body, "body"), {.limits = limits});
    const auto& load = std::get<LoadCall>(call);
    return load.write(load, ollama_head());
  };
  EXPECT_EQ(answer(kOllamaChatDialect, R"({"model": "m:latest"})"),
            std::string(kAnswerStart) +
                R"("message":{"role":"assistant","content":""},"done":true,)"
                R"("done_reason":"load"})");
  EXPECT_EQ(answer(kOllamaGenerateDialect, R"({"model": "m:latest", "keep_alive": 0})"),
            std::string(kAnswerStart) + R"("response":"","done":true,"done_reason":"unload"})");
  EXPECT_EQ(answer(kOllamaEmbedDialect, R"({"input": []})"),
            R"({"model":"served","embeddings":[]})");
  EXPECT_EQ(answer(kOllamaEmbeddingsDialect, "{}"), R"({"embedding":[]})");
}

TEST(OllamaDialect, EmbeddingsAreLists) {
  const RequestTerms limits;
  const TokenNames names(nullptr);
  const ItemAnswer answer{
      .head = ollama_head(), .usage = {.prompt_tokens = 5}, .embeddings = {{0.5f, -1}, {2, 0.25f}}};
  const Json embed = parse_json(R"({"model": "m", "input": ["x", "y"]})", "body");
  const Call several = kOllamaEmbedDialect.parse(embed, {.limits = limits});
  const auto& items = std::get<ItemCall>(several);
  EXPECT_EQ(items.write(items.request, answer, names),
            R"({"model":"served","embeddings":[[0.5,-1],[2,0.25]],"prompt_eval_count":5})");
  const Json embeddings = parse_json(R"({"model": "m", "prompt": "x"})", "body");
  const Call one = kOllamaEmbeddingsDialect.parse(embeddings, {.limits = limits});
  const auto& item = std::get<ItemCall>(one);
  EXPECT_EQ(item.write(item.request, answer, names), R"({"embedding":[0.5,-1]})");
}

TEST(OllamaDialect, AnErrorIsASentenceWithAStatus) {
  using enum ErrorReason;
  constexpr std::pair<ErrorReason, int> kExpected[] = {
      {invalid_value, 400}, {model_not_found, 404}, {feature_disabled, 501}, {invalid_api_key, 401},
      {queue_full, 429},    {draining, 503},        {request_timeout, 504},  {internal_error, 500}};
  for (const auto& [reason, status] : kExpected) {
    const ErrorAnswer answer = ollama_error({.reason = reason, .message = "model: none"}, "id");
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.body, R"({"error":"model: none"})");
  }
}

}  // namespace
}  // namespace paceline
