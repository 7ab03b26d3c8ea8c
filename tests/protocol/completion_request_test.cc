#include <gmock/gmock.h>

#include <limits>

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

using Ids = std::vector<int32_t>;

TEST(CompletionRequest, DefaultsAreThoseOfTheApi) {
  const CompletionRequest request = completion(R"({"prompt": "Once"})");
  EXPECT_EQ(std::get<std::string>(request.prompt.prompts.at(0)), "Once");
  EXPECT_EQ(request.options.max_tokens, 16);
  EXPECT_EQ(request.generation.n, 1);
  EXPECT_FALSE(request.common.model);
  EXPECT_FALSE(request.options.temperature);  // the model's own
  EXPECT_FALSE(request.options.seed);
  EXPECT_FALSE(request.logprobs);
  EXPECT_FALSE(request.echo);
  EXPECT_TRUE(request.options.add_special_tokens);
  EXPECT_FALSE(request.generation.streaming.stream);
}

TEST(CompletionRequest, ReadsEveryField) {
  const CompletionRequest request = completion(R"({
      "model": "m", "prompt": [1, 2], "max_tokens": 0, "logprobs": 5, "echo": true, "n": 3,
      "best_of": 3, "suffix": "", "temperature": 0.5, "top_p": 1, "top_k": -1, "min_p": 0.1,
      "repetition_penalty": 1.5, "frequency_penalty": -2, "presence_penalty": 2, "seed": 7,
      "logit_bias": {"5": -100, "6": 1.5}, "sampler_order": "mlx", "stop": ["a", "b"],
      "stop_token_ids": [9], "ignore_eos": true, "prompt_logprobs": 2, "return_token_ids": true,
      "return_tokens_as_token_ids": true, "stream": true, "stream_options": {"include_usage": true},
      "add_special_tokens": false, "priority": -3, "cache_salt": "s", "user": "u",
      "metadata": {"a": "b"}, "store": false, "min_tokens": 0, "bad_words": []})");
  EXPECT_EQ(request.common.model, "m");
  EXPECT_EQ(request.common.priority, -3);
  EXPECT_EQ(request.common.cache_salt, "s");
  EXPECT_EQ(std::get<Ids>(request.prompt.prompts.at(0)), (Ids{1, 2}));
  EXPECT_EQ(request.options.max_tokens, 0);
  EXPECT_EQ(request.logprobs, 5);
  EXPECT_TRUE(request.echo);
  EXPECT_FALSE(request.options.add_special_tokens);
  const GenerateOptions& sampling = request.options;
  EXPECT_EQ(sampling.temperature, 0.5f);
  EXPECT_EQ(sampling.top_p, 1.0f);
  EXPECT_EQ(sampling.top_k, -1);
  EXPECT_EQ(sampling.min_p, 0.1f);
  EXPECT_EQ(sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(sampling.frequency_penalty, -2.0f);
  EXPECT_EQ(sampling.presence_penalty, 2.0f);
  EXPECT_THAT(sampling.logit_bias, ElementsAre(Pair(5, -100.0f), Pair(6, 1.5f)));
  EXPECT_TRUE(sampling.mlx_sampler_order);
  EXPECT_EQ(sampling.seed, 7u);
  const GenerationFields& generation = request.generation;
  EXPECT_EQ(generation.n, 3);
  EXPECT_THAT(request.options.stop, ElementsAre("a", "b"));
  EXPECT_THAT(request.options.stop_token_ids, ElementsAre(9));
  EXPECT_TRUE(request.options.ignore_eos);
  EXPECT_EQ(generation.prompt_logprobs, 2);
  EXPECT_TRUE(generation.return_token_ids);
  EXPECT_TRUE(generation.return_tokens_as_token_ids);
  EXPECT_TRUE(generation.streaming.stream);
  EXPECT_TRUE(generation.streaming.include_usage);
}

TEST(CompletionRequest, PromptsComeInFourShapes) {
  const auto prompts = [](std::string_view prompt) {
    return completion(R"({"prompt": )" + std::string(prompt) + "}").prompt;
  };
  EXPECT_EQ(prompts(R"("")").name("prompt", 0), "prompt");
  const PromptList texts = prompts(R"(["a", "b"])");
  EXPECT_EQ(std::get<std::string>(texts.prompts.at(1)), "b");
  EXPECT_EQ(texts.name("prompt", 1), "prompt[1]");
  EXPECT_EQ(prompts("[3]").name("prompt", 0), "prompt");
  const PromptList lists = prompts("[[1], [2, 3]]");
  EXPECT_EQ(std::get<Ids>(lists.prompts.at(1)), (Ids{2, 3}));
  EXPECT_EQ(lists.name("prompt", 0), "prompt[0]");
}

TEST(CompletionRequest, AWrongItemOfAPromptIsToldAllThatItCouldBe) {
  EXPECT_EQ(refusal(completion, R"({"prompt": [true]})").message,
            "prompt[0]: found true, expected a string or a token id, an integer from 0 on or an "
            "array");
}

TEST(CompletionRequest, TheSizeOfAListIsCheckedBeforeItsItems) {
  EXPECT_EQ(refusal(completion, completion_body(R"("stop": [5, 5, 5, 5])")).field, "stop[0]");
  std::string many = "5";
  for (int i = 0; i < 128; ++i) many += ", 5";
  EXPECT_EQ(refusal(completion, completion_body("\"stop\": [" + many + "]")).message,
            "stop: 129 items, expected at most 128");
}

TEST(CompletionRequest, OtherSpellingsAndShapes) {
  EXPECT_EQ(completion(completion_body(R"("repeat_penalty": 2)")).options.repetition_penalty, 2.0f);
  EXPECT_THAT(completion(completion_body(R"("logit_bias": [[4, 1], [5, -1]])")).options.logit_bias,
              ElementsAre(Pair(4, 1.0f), Pair(5, -1.0f)));
  EXPECT_TRUE(completion(completion_body(R"("logit_bias": false)")).options.logit_bias.empty());
  EXPECT_THAT(completion(completion_body(R"("stop": "x")")).options.stop, ElementsAre("x"));
  EXPECT_EQ(completion(completion_body(R"("max_tokens": 4.0)")).options.max_tokens, 4);
}

TEST(CompletionRequest, TokensCanBeForbidden) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(
      completion(completion_body(R"("logit_bias": [[4, 1], [5, false]])")).options.logit_bias,
      ElementsAre(Pair(4, 1.0f), Pair(5, kNever)));
  EXPECT_THAT(completion(completion_body(R"("logit_bias": {"6": false})")).options.logit_bias,
              ElementsAre(Pair(6, kNever)));
  EXPECT_EQ(refusal(completion, completion_body(R"("logit_bias": [[4, true]])")).field,
            "logit_bias[0][1]");
  const CompletionRequest request =
      completion(completion_body(R"("bad_words": ["x", " y"], "allowed_token_ids": [9, 3],
                                    "skip_special_tokens": false, "return_tokens": true)"));
  EXPECT_THAT(request.options.bad_words, ElementsAre("x", " y"));
  EXPECT_THAT(request.options.allowed_token_ids, ElementsAre(9, 3));
  EXPECT_EQ(specials_of(request.options), SpecialTokens::shown);
  EXPECT_TRUE(request.generation.return_token_ids);
}

TEST(CompletionRequest, CandidatesAndAlternatives) {
  EXPECT_EQ(completion(completion_body(R"("n": 2)")).num_candidates(), 2);
  EXPECT_EQ(completion(completion_body(R"("n": 2, "best_of": 5)")).num_candidates(), 5);
  EXPECT_EQ(refusal(completion, completion_body(R"("n": 2, "best_of": 1)")).field, "best_of");
  EXPECT_EQ(refusal(completion, completion_body(R"("best_of": 2, "stream": true)")).field,
            "best_of");
  EXPECT_NO_THROW(completion(completion_body(R"("n": 2, "best_of": 2, "stream": true)")));
  EXPECT_EQ(completion(completion_body(R"("n_probs": 4)")).num_alternatives(), 4);
  EXPECT_EQ(completion(completion_body(R"("n_probs": 0)")).num_alternatives(), std::nullopt);
  EXPECT_EQ(refusal(completion, completion_body(R"("logprobs": 1, "n_probs": 4)")).field,
            "n_probs");
  EXPECT_EQ(completion(completion_body(R"("logprobs": 1, "logprob_token_ids": [4, 5, 6])"))
                .num_alternatives(),
            3);
  EXPECT_EQ(refusal(completion, completion_body(R"("logprob_token_ids": [4])")).field,
            "logprob_token_ids");
}

TEST(CompletionRequest, AMessageShowsWholeCharacters) {
  // The 60th byte is inside the last character.
  const std::string text = std::string(59, 'x') + "\u00e9\u00e9";
  const ApiError error = refusal(completion, completion_body("\"max_tokens\": \"" + text + "\""));
  EXPECT_EQ(error.message, "max_tokens: found \"" + std::string(59, 'x') +
                               "\"..., expected an integer from 0 to 2147483647");
}

TEST(CompletionRequest, SeedsHave64Bits) {
  const auto seed = [](std::string_view text) {
    return completion(completion_body("\"seed\": " + std::string(text))).options.seed;
  };
  EXPECT_EQ(seed("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(seed("-1"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(seed("-9223372036854775808"), uint64_t{1} << 63);
  EXPECT_TRUE(completion(completion_body(R"("seed": -1)")).generation.has_negative_seed);
  EXPECT_FALSE(
      completion(completion_body(R"("seed": 18446744073709551615)")).generation.has_negative_seed);
}

TEST(CompletionRequest, AWrongFieldIsNamed) {
  const struct {
    const char* members;
    const char* param;
    const char* message;
  } kCases[] = {
      {R"("max_tokens": -1)", "max_tokens",
       "max_tokens: found -1, expected an integer from 0 to 2147483647"},
      {R"("max_tokens": 1.5)", "max_tokens", "max_tokens: found 1.5, expected an integer"},
      {R"("max_tokens": 1e300)", "max_tokens", "max_tokens: found"},
      {R"("max_tokens": "5")", "max_tokens", "max_tokens: found \"5\", expected an integer"},
      {R"("max_tokens": 18446744073709551615)", "max_tokens", "max_tokens: found"},
      {R"("n": 0)", "n", "n: found 0, expected an integer from 1 to 128"},
      {R"("n": 1000000)", "n", "n: found 1000000"},
      {R"("temperature": 2.1)", "temperature",
       "temperature: found 2.1, expected a number from 0 to"},
      {R"("temperature": true)", "temperature", "temperature: found true"},
      {R"("top_p": -0.1)", "top_p", "top_p: found -0.1, expected a number from 0 to 1"},
      {R"("typical_p": 0)", "typical_p",
       "typical_p: found 0, expected a number above 0 and at most 1"},
      {R"("top_k": -2)", "top_k", "top_k: found -2"},
      {R"("min_p": 2)", "min_p", "min_p: found 2"},
      {R"("repetition_penalty": 0)", "repetition_penalty", "repetition_penalty: found 0"},
      {R"("repetition_penalty": 1e200)", "repetition_penalty", "repetition_penalty: found 1e+200"},
      {R"("repetition_penalty": 1, "repeat_penalty": 1)", "repeat_penalty", "only one of"},
      {R"("frequency_penalty": 3)", "frequency_penalty", "frequency_penalty: found 3"},
      {R"("presence_penalty": [])", "presence_penalty", "presence_penalty: found an array"},
      {R"("logit_bias": {"x": 1})", "logit_bias.x", "expected a token id as its key"},
      {R"("logit_bias": {"-1": 1})", "logit_bias.-1", "expected a token id as its key"},
      {R"("logit_bias": {"1234567890": 1})", "logit_bias.1234567890",
       "expected a token id as its key"},
      {R"("logit_bias": {"1": 101})", "logit_bias.1", "logit_bias.1: found 101"},
      {R"("logit_bias": [[1]])", "logit_bias[0]", "expected [token id, bias]"},
      {R"("logit_bias": 5)", "logit_bias", "expected an object"},
      {R"("logprobs": 21)", "logprobs", "logprobs: found 21, expected an integer from 0 to 20"},
      {R"("logprobs": true)", "logprobs", "logprobs: found true"},
      {R"("prompt_logprobs": -1)", "prompt_logprobs", "prompt_logprobs: found -1"},
      {R"("echo": 1)", "echo", "echo: found 1, expected true or false"},
      {R"("stop": ["a", 5])", "stop[1]", "stop[1]: found 5, expected a string"},
      {R"("stop": [""])", "stop[0]", "stop[0]: found \"\", expected some text"},
      {R"("stop": {})", "stop", "stop: found an object"},
      {R"("stop_token_ids": [1, -1])", "stop_token_ids[1]", "stop_token_ids[1]: found -1"},
      {R"("seed": 1.5)", "seed", "seed: found 1.5, expected an integer of 64 bits"},
      {R"("sampler_order": "x")", "sampler_order",
       "sampler_order: found \"x\", expected \"default\" or \"mlx\""},
      {R"("stream_options": {"include_usage": true})", "stream_options",
       "only allowed when stream"},
      {R"("stream": true, "stream_options": {"x": 1})", "stream_options.x",
       "unknown field stream_options.x"},
      {R"("user": 5)", "user", "user: found 5, expected a string"},
      {R"("model": 5)", "model", "model: found 5, expected a string"},
      {R"("priority": 5000)", "priority", "priority: found 5000"},
  };
  for (const auto& [members, param, message] : kCases) {
    const ApiError error = refusal(completion, completion_body(members));
    EXPECT_EQ(openai_kind(error.reason).status, 400) << members;
    EXPECT_EQ(openai_kind(error.reason).type, "invalid_request_error") << members;
    EXPECT_EQ(error.field, param) << members;
    EXPECT_THAT(error.message, HasSubstr(message));
  }
}

TEST(CompletionRequest, WrongPromptsAreNamed) {
  const struct {
    const char* prompt;
    const char* param;
  } kCases[] = {{"5", "prompt"},
                {"[]", "prompt"},
                {"{}", "prompt"},
                {"[true]", "prompt[0]"},
                {"[\"a\", 5]", "prompt[1]"},
                {"[1, \"a\"]", "prompt[1]"},
                {"[1, -1]", "prompt[1]"},
                {"[[1], 5]", "prompt[1]"},
                {"[[1], [2, 1.5]]", "prompt[1][1]"},
                {"[2147483648]", "prompt[0]"}};
  for (const auto& [prompt, param] : kCases) {
    EXPECT_EQ(refusal(completion, R"({"prompt": )" + std::string(prompt) + "}").field, param)
        << prompt;
  }
  std::string many = "[";
  for (size_t i = 0; i < kMaxPrompts; ++i) many += "\"a\", ";
  EXPECT_EQ(refusal(completion, R"({"prompt": )" + many + "\"a\"]}").message,
            "prompt: 129 items, expected at most 128");
}

TEST(CompletionRequest, LimitsOfStops) {
  const std::string longest(generation_option("stop").list.max_bytes, 'x');
  EXPECT_EQ(completion(completion_body("\"stop\": \"" + longest + "\"")).options.stop[0], longest);
  EXPECT_EQ(refusal(completion, completion_body("\"stop\": \"" + longest + "x\"")).message,
            "stop: 257 bytes, expected at most 256");
  std::string ids = "[0";
  for (size_t i = 1; i < generation_option("stop_token_ids").list.max_items; ++i) ids += ", 0";
  EXPECT_NO_THROW(completion(completion_body("\"stop_token_ids\": " + ids + "]")));
  EXPECT_EQ(refusal(completion, completion_body("\"stop_token_ids\": " + ids + ", 0]")).field,
            "stop_token_ids");
}

TEST(CompletionRequest, ThePromptMustBeThere) {
  for (const char* body : {"{}", R"({"prompt": null})"}) {
    const ApiError error = refusal(completion, body);
    EXPECT_EQ(error.field, "prompt");
    EXPECT_EQ(code_of(error), "missing_required_parameter");
  }
  const ApiError error = refusal(completion, "[1]");
  EXPECT_EQ(error.message, "the request: found an array, expected an object");
  EXPECT_FALSE(error.field);
}

TEST(CompletionRequest, WhatIsNotOfferedIsRefusedByName) {
  for (const char* members :
       {R"("tools": [])", R"("use_beam_search": true)", R"("length_penalty": 2)"}) {
    const ApiError error = refusal(completion, completion_body(members));
    EXPECT_EQ(code_of(error), "unsupported_parameter") << members;
    EXPECT_THAT(members, HasSubstr("\"" + *error.field + "\""));
    EXPECT_THAT(error.message, HasSubstr(*error.field + ": ")) << members;
  }
}

TEST(CompletionRequest, ASuffixIsTheTextBehindTheGap) {
  EXPECT_EQ(completion(completion_body(R"("suffix": "end")")).suffix, "end");
  EXPECT_EQ(refusal(completion, completion_body(R"("suffix": "end", "echo": true)")).field,
            "suffix");
}

TEST(CompletionRequest, UnknownFieldsGetSuggestions) {
  const ApiError error = refusal(completion, completion_body(R"("max_token": 5)"));
  EXPECT_EQ(error.message, "unknown field max_token; did you mean max_tokens?");
  EXPECT_EQ(error.field, "max_token");
  EXPECT_EQ(code_of(error), "unknown_parameter");
  EXPECT_EQ(refusal(completion, completion_body(R"("messages": [])")).field, "messages");
}

}  // namespace
}  // namespace paceline
