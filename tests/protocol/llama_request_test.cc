#include "protocol/llama_request.h"

#include <gmock/gmock.h>

#include "tests/protocol/requests.h"

namespace paceline {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LlamaRequest llama(std::string_view body) { return parse_llama_request(parse_json(body, "body")); }
LlamaRequest infill(std::string_view body) {
  return parse_infill_request(parse_json(body, "body"));
}
std::string llama_body(std::string_view members) {
  return R"({"prompt": "x", )" + std::string(members) + "}";
}

TEST(LlamaRequest, DefaultsAreThoseOfLlamaCpp) {
  const LlamaRequest request = llama(R"({"prompt": "Once"})");
  EXPECT_EQ(request.mixed_prompts, (std::vector<MixedPrompt>{{"Once"}}));
  EXPECT_EQ(request.options.max_tokens, static_cast<int64_t>(kMaxOutputTokens));
  EXPECT_FALSE(request.options.temperature);  // the model's own
  EXPECT_FALSE(request.logprobs);
  EXPECT_FALSE(request.returns_tokens);
  EXPECT_TRUE(request.generation.return_token_ids) << "streams have them";
  EXPECT_TRUE(request.generation.timings);
}

TEST(LlamaRequest, ReadsPromptsOfEveryKind) {
  const auto prompts = [](std::string_view json) {
    return llama(R"({"prompt": )" + std::string(json) + "}").mixed_prompts;
  };
  using Prompts = std::vector<MixedPrompt>;
  EXPECT_EQ(prompts(R"([12, 34])"), (Prompts{{12, 34}}));
  EXPECT_EQ(prompts(R"([12, "a", 5])"), (Prompts{{12, "a", 5}}));
  EXPECT_EQ(prompts(R"(["a", 5])"), (Prompts{{"a", 5}}));
  EXPECT_EQ(prompts(R"(["a", "b"])"), (Prompts{{"a"}, {"b"}}));
  EXPECT_EQ(prompts(R"(["a"])"), (Prompts{{"a"}}));
  EXPECT_EQ(prompts(R"([[1, "b"], "a", [2]])"), (Prompts{{1, "b"}, {"a"}, {2}}));
  for (const char* wrong : {"5", "{}", "[]", "[[]]", "[true]", "[-1]", "[1.5]", "[[1, [2]]]",
                            R"([[1], 2])", R"({"prompt_string": "x"})"}) {
    const ApiError error = refusal(llama, R"({"prompt": )" + std::string(wrong) + "}");
    EXPECT_THAT(error.field.value_or(""), HasSubstr("prompt")) << wrong;
  }
}

TEST(LlamaRequest, ReadsItsOwnNames) {
  const LlamaRequest request = llama(llama_body(
      R"("n_predict": 7, "n_probs": 3, "return_tokens": true, "repeat_penalty": 1.5, "top_k": 40,
         "logit_bias": [[5, false]], "stop": ["a"], "id_slot": 3, "cache_prompt": false,
         "n_cmpl": 2, "seed": 9, "ignore_eos": true)"));
  EXPECT_EQ(request.options.max_tokens, 7);
  EXPECT_EQ(request.logprobs, 3);
  EXPECT_TRUE(request.as_probabilities);
  EXPECT_TRUE(request.returns_tokens);
  EXPECT_EQ(request.options.repetition_penalty, 1.5f);
  EXPECT_EQ(request.generation.n, 2);
  EXPECT_EQ(request.options.seed, 9u);
  EXPECT_EQ(llama(llama_body(R"("n_predict": 0, "n_probs": 0)")).options.max_tokens, 0);
  for (const char* all : {"-1", "-2"}) {
    EXPECT_EQ(llama(llama_body(R"("n_predict": )" + std::string(all))).options.max_tokens,
              static_cast<int64_t>(kMaxOutputTokens));
  }
  EXPECT_EQ(refusal(llama, llama_body(R"("n_predict": -3)")).field, "n_predict");
}

TEST(LlamaRequest, HasTwoNamesOfARandomSeed) {
  for (const char* seed : {"-1", "4294967295"}) {
    const LlamaRequest request = llama(llama_body(R"("seed": )" + std::string(seed)));
    EXPECT_FALSE(request.options.seed) << seed;
    EXPECT_FALSE(request.generation.has_negative_seed) << seed;
  }
}

TEST(LlamaRequest, TakesFeaturesThatAreSwitchedOffAndRefusesThemOn) {
  EXPECT_NO_THROW(llama(llama_body(
      R"("typical_p": 1.0, "mirostat": 0, "mirostat_tau": 5.0, "mirostat_eta": 0.1,
         "dynatemp_range": 0.0, "dynatemp_exponent": 1.0, "dry_multiplier": 0.0, "dry_base": 1.75,
         "dry_allowed_length": 2, "dry_penalty_last_n": -1, "dry_sequence_breakers": ["\n", ":"],
         "xtc_probability": 0.0, "xtc_threshold": 0.1, "tfs_z": 1, "min_keep": 0, "n_keep": -1,
         "n_discard": 0, "n_indent": 0, "t_max_predict_ms": 500, "grammar": "", "lora": [],
         "post_sampling_probs": false, "repeat_last_n": 64)")));
  for (const char* member : {R"("mirostat": 2)", R"("dynatemp_range": 0.5)",
                             R"("dry_multiplier": 0.8)", R"("xtc_probability": 0.5)",
                             R"("lora": [{"id": 0, "scale": 1}])", R"("post_sampling_probs": true)",
                             R"("samplers": ["top_k"])", R"("stream": true, "stream_options": {})",
                             R"("min_keep": 3)", R"("repeat_last_n": 64, "repeat_penalty": 1.1)",
                             R"("repeat_last_n": 64, "frequency_penalty": 0.5)",
                             R"("repeat_last_n": 64, "presence_penalty": 0.5)"}) {
    EXPECT_EQ(code_of(refusal(llama, llama_body(member))), "unsupported_parameter") << member;
  }
  EXPECT_EQ(code_of(refusal(llama, llama_body(R"("n_predicts": 3)"))), "unknown_parameter");
  EXPECT_EQ(refusal(llama, llama_body(R"("logprob_token_ids": [7])")).field, "logprob_token_ids");
}

TEST(LlamaRequest, ReadsGapsAndFiles) {
  const LlamaRequest request = infill(R"({"input_prefix": "def f():", "input_suffix": "return x",
      "input_extra": [{"filename": "a.py", "text": "import b"}], "prompt": "  x", "n_predict": 3})");
  ASSERT_TRUE(request.infill);
  const InfillPrompt& gap = *request.infill;
  EXPECT_EQ(gap.prefix, "def f():");
  EXPECT_EQ(gap.suffix, "return x");
  using Files = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(gap.files, (Files{{"a.py", "import b"}}));
  EXPECT_EQ(gap.beginning, "  x");
  EXPECT_EQ(infill("{}").infill->beginning, "");
  EXPECT_EQ(refusal(infill, R"({"input_extra": [{"filename": "a"}]})").field,
            "input_extra[0].text");
  EXPECT_EQ(refusal(infill, R"({"prompt": ["a"]})").field, "prompt");
}

}  // namespace
}  // namespace paceline
