// Each dialect without a server: a recorded body becomes a call, and the parts of an answer become
// the bytes that its clients read.
#include "protocol/dialect.h"

#include <gmock/gmock.h>

#include <map>

#include "base/json.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const RequestTerms kTerms;

Call call_of(const Dialect& dialect, std::string_view body) {
  return dialect.parse(parse_json(body, "body"), {.limits = kTerms});
}

GenerationCall generation(const Dialect& dialect, std::string_view body) {
  return std::get<GenerationCall>(call_of(dialect, body));
}

ResponseHead answer_head() { return {.id = "id-1", .created = 7, .model = "m"}; }

ResponseChoice ending(std::string reason) {
  ResponseChoice choice;
  choice.text = "ab";
  choice.finish_reason = std::move(reason);
  choice.token_ids = {5, 6};
  choice.seed = 3;
  return choice;
}

ResponseUsage used() { return {.prompt_tokens = 2, .completion_tokens = 2, .cached_tokens = 1}; }

// The bytes of a stream of two chunks, the second of which ends the choice.
std::string streamed(ChoiceWriter& writer) {
  std::string out;
  writer.begin({.head = answer_head(), .usage = {.prompt_tokens = 2, .cached_tokens = {}}}, out);
  writer.chunk({.index = 0, .text = "a", .token_ids = std::vector<int32_t>{5}}, out);
  const ResponseChoice last = ending("stop");
  writer.chunk({.index = 0, .text = "b", .token_ids = std::vector<int32_t>{6}, .ending = &last},
               out);
  writer.end(used(), out);
  return out;
}

constexpr std::string_view kChatBody =
    R"({"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": true,
        "stream_options": {"include_usage": true}})";

TEST(ChatDialect, BodyBecomesAConversation) {
  GenerationCall call = generation(kChatDialect, kChatBody);
  const auto& chat = std::get<ChatRequest>(call.request);
  EXPECT_EQ(chat.input.messages.size(), 1u);
  EXPECT_TRUE(chat.generation.streaming.stream);
  EXPECT_EQ(common_fields_of(Call(std::move(call))).model, "m");
}

TEST(ChatDialect, StreamBeginsWithTheRoleAndEndsWithUsageAndDone) {
  const GenerationCall call = generation(kChatDialect, kChatBody);
  EXPECT_EQ(call.writer->id_prefix(), "chatcmpl-");
  const std::string chunk =
      R"(data: {"id":"id-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[)";
  EXPECT_EQ(
      streamed(*call.writer),
      chunk + R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,)" +
          R"("finish_reason":null}],"usage":null})" + "\n\n" + chunk +
          R"({"index":0,"delta":{"content":"a"},"logprobs":null,"finish_reason":null,)" +
          R"("token_ids":[5]}],"usage":null})" + "\n\n" + chunk +
          R"({"index":0,"delta":{"content":"b"},"logprobs":null,"finish_reason":"stop",)" +
          R"("stop_reason":null,"token_ids":[6],"seed":3}],"usage":null})" + "\n\n" +
          R"(data: {"id":"id-1","object":"chat.completion.chunk","created":7,"model":"m",)" +
          R"("choices":[],"usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4,)" +
          R"("prompt_tokens_details":{"cached_tokens":1}}})" + "\n\ndata: [DONE]\n\n");
}

TEST(ChatDialect, FirstChunkAloneHasWarnings) {
  const GenerationCall call = generation(kChatDialect, kChatBody);
  ResponseHead warned = answer_head();
  warned.warnings = {"left out"};
  std::string out;
  call.writer->begin({.head = warned, .num_choices = 2}, out);
  EXPECT_EQ(out.find("left out"), out.rfind("left out"));
  EXPECT_THAT(out, HasSubstr("left out"));
}

TEST(ChatDialect, BrokenStreamEndsWithTheErrorAndWithoutDone) {
  const GenerationCall call = generation(kChatDialect, kChatBody);
  std::string out;
  call.writer->fail({ErrorReason::numerical_error, "NaN in row 3"}, out);
  EXPECT_EQ(out, R"(data: {"error":{"message":"NaN in row 3","type":"server_error","param":null,)"
                 R"("code":"numerical_error"}})"
                 "\n\n");
}

TEST(CompletionDialect, StreamHasTextsAndDone) {
  const GenerationCall call = generation(kCompletionDialect, R"({"prompt": "x", "stream": true})");
  const std::string chunk =
      R"(data: {"id":"id-1","object":"text_completion","created":7,"model":"m","choices":[)";
  EXPECT_EQ(streamed(*call.writer),
            chunk + R"({"index":0,"text":"a","logprobs":null,"finish_reason":null,)" +
                R"("token_ids":[5]}]})" + "\n\n" + chunk +
                R"({"index":0,"text":"b","logprobs":null,"finish_reason":"stop",)" +
                R"("stop_reason":null,"token_ids":[6],"seed":3}]})" + "\n\ndata: [DONE]\n\n");
}

TEST(GenerateDialect, WholeAnswerIsOneObject) {
  const GenerationCall call = generation(kGenerateDialect, R"({"prompt": "x"})");
  ChoicesResponse answer{.head = answer_head(), .choices = {ending("length")}, .usage = used()};
  EXPECT_EQ(call.writer->whole(answer),
            R"({"id":"id-1","model":"m","text":"ab","finish_reason":"length","stop_reason":null,)"
            R"("token_ids":[5,6],"seed":3,"usage":{"prompt_tokens":2,"completion_tokens":2,)"
            R"("total_tokens":4,"prompt_tokens_details":{"cached_tokens":1}}})");
}

TEST(LlamaDialect, AnswersTellThePromptAndTheSettingsInUse) {
  const GenerationCall call =
      generation(kLlamaDialect, R"({"prompt": [[1, "b"], [2]], "n_predict": 4, "stream": true})");
  const auto& completion = std::get<CompletionRequest>(call.request);
  EXPECT_THAT(completion.mixed_prompts, ElementsAre(MixedPrompt{1, "b"}, MixedPrompt{2}));
  const TokenNames names(nullptr);
  GenerateRequest request;
  request.n = 1;
  request.max_tokens = 4;
  const std::vector<const GenerateRequest*> requests = {&request, &request};
  call.writer->see_prompts(
      {.names = names, .model = "m", .context = 64, .max_drafted = 0, .requests = requests});
  const std::string out = streamed(*call.writer);
  EXPECT_THAT(out, HasSubstr(R"(data: {"index":0,"content":"a","tokens":[5],"stop":false})"));
  EXPECT_THAT(out, HasSubstr(R"("stop":true,"model":"m")"));
  EXPECT_THAT(out, HasSubstr(R"("generation_settings":{"n_ctx":64,"model":"m","n_predict":4)"));
  EXPECT_THAT(out, testing::Not(HasSubstr("[DONE]")));
}

TEST(InfillDialect, BodyBecomesAGap) {
  const GenerationCall call =
      generation(kInfillDialect, R"({"input_prefix": "f(", "input_suffix": "]"})");
  const auto& completion = std::get<CompletionRequest>(call.request);
  ASSERT_TRUE(completion.infill);
  EXPECT_EQ(completion.infill->prefix, "f(");
  EXPECT_EQ(completion.infill->suffix, "]");
}

TEST(ItemDialects, AnswersAreInTheInputsOrder) {
  ItemCall call =
      std::get<ItemCall>(call_of(kEmbeddingDialect, R"({"input": ["a", "b"], "model": "m"})"));
  EXPECT_EQ(call.id_prefix, "embd-");
  ItemAnswer answer{.head = answer_head(), .usage = {.prompt_tokens = 2, .cached_tokens = {}}};
  answer.embeddings = {{1, 0}, {0, 1}};
  EXPECT_THAT(call.write(call.request, answer, TokenNames(nullptr)),
              HasSubstr(R"("data":[{"object":"embedding","index":0,"embedding":[1,0]},)"
                        R"({"object":"embedding","index":1,"embedding":[0,1]}])"));
  call = std::get<ItemCall>(
      call_of(kRerankDialect, R"({"query": "q", "documents": ["a", "b"], "top_n": 1})"));
  answer = {.head = answer_head(), .usage = {}, .pair_scores = {0.25f, 0.5f}};
  EXPECT_THAT(call.write(call.request, answer, TokenNames(nullptr)),
              HasSubstr(R"("results":[{"index":1,"relevance_score":0.5)"));
}

TEST(Dialects, EveryoneRefusesWhatIsNoObjectAndNamesUnknownFields) {
  const std::map<const Dialect*, std::string> required = {
      {&kChatDialect, R"("messages": [{"role": "user", "content": "x"}])"},
      {&kCompletionDialect, R"("prompt": "x")"},
      {&kGenerateDialect, R"("prompt": "x")"},
      {&kLlamaDialect, R"("prompt": "x")"},
      {&kInfillDialect, R"("input_prefix": "x")"},
      {&kEmbeddingDialect, R"("input": "x")"},
      {&kClassificationDialect, R"("input": "x")"},
      {&kTokenScoreDialect, R"("input": "x")"},
      {&kPairScoreDialect, R"("text_1": "x", "text_2": "y")"},
      {&kRerankDialect, R"("query": "x", "documents": ["y"])"},
      {&kDecisionDialect,
       R"("input": "x", "questions": [{"type": "predicate", "instructions": "y"}])"},
      {&kSystemOneDialect,
       R"("state": "x", "questions": {"q": {"type": "noul", "instructions": "y"}})"},
  };
  for (const auto& [dialect, members] : required) {
    EXPECT_NO_THROW(call_of(*dialect, "{" + members + "}")) << members;
    EXPECT_FALSE(dialect->fields().empty());
    for (const std::string& wrong :
         {std::string("[]"), std::string("3"), "{" + members + R"(, "no_such_field": 1})"}) {
      try {
        call_of(*dialect, wrong);
        ADD_FAILURE() << wrong;
      } catch (const RequestError& error) {
        const ErrorAnswer answer = dialect->error(api_error(error), "req_1");
        EXPECT_EQ(answer.status, 400);
        EXPECT_THAT(answer.body, HasSubstr("\"error\":"));
      }
    }
  }
}

}  // namespace
}  // namespace paceline
