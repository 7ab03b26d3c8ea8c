#include "protocol/llama_request.h"

#include <gmock/gmock.h>

#include "base/json.h"
#include "base/json_writer.h"

namespace paceline {
namespace {

const LlamaPrompt kOnce{.text = "<s>Once", .settings_json = R"({"n_ctx": 64})"};
const LlamaStyle kPlain{.model = "m", .context = 64};

ResponseChoice ended(std::string reason, StopReason stop_reason) {
  ResponseChoice choice;
  choice.text = "upon\na";
  choice.finish_reason = std::move(reason);
  choice.stop_reason = std::move(stop_reason);
  choice.token_ids = {5, 6};
  choice.seed = 9;
  choice.timings =
      ResponseTimings{.tokens = {.prompt_tokens = 7, .completion_tokens = 3, .cached_tokens = 4},
                      .times = {.prompt_seconds = 0.5, .output_seconds = 1}};
  return choice;
}

Json whole(const std::vector<ResponseChoice>& choices, const LlamaStyle& style) {
  return parse_json(llama_response_json(choices, {kOnce}, style), "response");
}

std::string text_of(const Json& json, std::string_view name) {
  return to_json(*json.find_value(name));
}

TEST(LlamaResponse, HasTheMembersOfLlamaCpp) {
  LlamaStyle style = kPlain;
  style.returns_tokens = true;
  const Json json = whole({ended("stop", StopReason("the"))}, style);
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"index", "0"},
                                                        {"content", R"("upon\na")"},
                                                        {"tokens", "[5,6]"},
                                                        {"id_slot", "-1"},
                                                        {"stop", "true"},
                                                        {"model", R"("m")"},
                                                        {"tokens_predicted", "3"},
                                                        {"tokens_evaluated", "7"},
                                                        {"tokens_cached", "4"},
                                                        {"generation_settings", R"({"n_ctx":64})"},
                                                        {"prompt", R"("<s>Once")"},
                                                        {"has_new_line", "true"},
                                                        {"truncated", "false"},
                                                        {"stop_type", R"("word")"},
                                                        {"stopping_word", R"("the")"},
                                                        {"seed", "9"}}) {
    EXPECT_EQ(text_of(json, name), value) << name;
  }
  const Json& timings = *json.find_value("timings");
  EXPECT_EQ(text_of(timings, "cache_n"), "4");
  EXPECT_EQ(text_of(timings, "prompt_n"), "3");
  EXPECT_EQ(timings.find_value("predicted_per_second")->as_double(""), 2);
  EXPECT_EQ(timings.find_value("predicted_per_token_ms")->as_double(""), 500);
}

TEST(LlamaResponse, TimingsWithoutTokensOrTimeHaveNoRates) {
  ResponseChoice choice = ended("stop", {});
  choice.timings->tokens = {.prompt_tokens = 4, .completion_tokens = 1, .cached_tokens = 4};
  const Json json = whole({choice}, kPlain);
  const Json& timings = *json.find_value("timings");
  for (const char* name : {"prompt_n", "prompt_per_token_ms", "prompt_per_second", "predicted_n",
                           "predicted_per_token_ms", "predicted_per_second"}) {
    EXPECT_EQ(timings.find_value(name)->as_double(""), 0) << name;
  }
  choice.timings->tokens.completion_tokens = 0;
  choice.timings->times = {};
  const Json empty = whole({choice}, kPlain);
  EXPECT_EQ(text_of(*empty.find_value("timings"), "predicted_n"), "0");
  EXPECT_EQ(empty.find_value("timings")->find_value("predicted_per_second")->as_double(""), 0);
}

TEST(LlamaResponse, HasTokensWhenAskedForOnly) {
  EXPECT_EQ(text_of(whole({ended("stop", {})}, kPlain), "tokens"), "[]");
  LlamaStyle style = kPlain;
  style.returns_tokens = true;
  ResponseChoice without = ended("stop", {});
  without.token_ids.reset();
  EXPECT_EQ(text_of(whole({without}, style), "tokens"), "[]");
}

TEST(LlamaResponse, SaysWhyItStopped) {
  const Json eos = whole({ended("stop", {})}, kPlain);
  EXPECT_EQ(text_of(eos, "stop_type"), R"("eos")");
  EXPECT_EQ(text_of(eos, "stopping_word"), R"("")");
  EXPECT_EQ(text_of(whole({ended("stop", StopReason(3))}, kPlain), "stop_type"), R"("eos")");
  const Json limit = whole({ended("length", {})}, kPlain);
  EXPECT_EQ(text_of(limit, "stop_type"), R"("limit")");
  EXPECT_EQ(text_of(limit, "truncated"), "false");
  LlamaStyle full = kPlain;
  full.context = 10;
  EXPECT_EQ(text_of(whole({ended("length", {})}, full), "truncated"), "true");
}

TEST(LlamaResponse, SettingsAreThoseOfTheRequest) {
  GenerateRequest request{.prompt = {1}, .max_tokens = 5, .stop_strings = {"a", "b"}};
  request.ignore_eos = true;
  request.sampling.seed = 9;
  request.sampling.temperature = 0.5f;
  request.sampling.top_k = 40;
  request.sampling.top_p = 0.75f;
  request.sampling.min_p = 0.25f;
  request.sampling.typical_p = 0.875f;
  request.sampling.top_n_sigma = 2;
  request.sampling.repetition_penalty = 1.5f;
  request.sampling.presence_penalty = 0.125f;
  request.sampling.frequency_penalty = -0.5f;
  LlamaStyle style = kPlain;
  style.num_probs = 3;
  style.is_streamed = true;
  EXPECT_EQ(llama_settings_json(request, style),
            R"({"n_ctx":64,"model":"m","n_predict":5,"max_tokens":5,"seed":9,"temperature":0.5,)"
            R"("dynatemp_range":0,"dynatemp_exponent":1,"top_k":40,"top_p":0.75,"min_p":0.25,)"
            R"("xtc_probability":0,"typical_p":0.875,"top_n_sigma":2,"repeat_last_n":-1,)"
            R"("repeat_penalty":1.5,"presence_penalty":0.125,"frequency_penalty":-0.5,)"
            R"("dry_multiplier":0,"mirostat":0,)"
            R"("samplers":["penalties","temperature","min_p","top_k","top_p"],)"
            R"("stop":["a","b"],"ignore_eos":true,"n_keep":0,"n_discard":0,"min_keep":0,)"
            R"("n_probs":3,"grammar":"","stream":true,"timings_per_token":false,)"
            R"("post_sampling_probs":false,"speculative.n_max":0,"speculative.n_min":0})");
  request.sampling.order = SamplerOrder::mlx;
  EXPECT_THAT(
      llama_settings_json(request, kPlain),
      testing::AllOf(
          testing::HasSubstr(R"("samplers":["penalties","top_p","min_p","top_k","temperature"])"),
          testing::HasSubstr(R"("n_probs":0)"), testing::HasSubstr(R"("stream":false)")));
}

TEST(LlamaResponse, IsAnArrayForSeveralChoices) {
  const std::string json =
      llama_response_json({ended("stop", {}), ended("length", {})},
                          {kOnce, {.text = "Twice", .settings_json = "{}"}}, kPlain);
  const Json array = parse_json(json, "response");
  ASSERT_TRUE(array.is_array());
  EXPECT_EQ(text_of(array.as_array("")[1], "prompt"), R"("Twice")");
}

TEST(LlamaResponse, StreamsPiecesAndThenTheResult) {
  ResponseChunk piece{.index = 1};
  piece.text = "upon";
  piece.token_ids = std::vector<int32_t>{5};
  const auto events = llama_chunk_jsons(piece, kOnce, kPlain);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0], R"({"index":1,"content":"upon","tokens":[5],"stop":false})");

  const ResponseChoice choice = ended("length", {});
  piece.ending = &choice;
  const auto last = llama_chunk_jsons(piece, kOnce, kPlain);
  ASSERT_EQ(last.size(), 2u) << "the last piece of text, then the result without text";
  EXPECT_EQ(last[0], events[0]);
  const Json result = parse_json(last[1], "event");
  EXPECT_EQ(text_of(result, "content"), R"("")");
  EXPECT_EQ(text_of(result, "index"), "1");
  EXPECT_EQ(text_of(result, "has_new_line"), "true") << "of the whole text";
  EXPECT_EQ(text_of(result, "stop"), "true");
  EXPECT_EQ(text_of(result, "tokens_predicted"), "3");

  piece.text = "";
  piece.token_ids = std::vector<int32_t>{};
  EXPECT_EQ(llama_chunk_jsons(piece, kOnce, kPlain).size(), 1u);
}

}  // namespace
}  // namespace paceline
