#include "protocol/response_schemas.h"

#include <algorithm>
#include <string>
#include <utility>

namespace paceline {
namespace {

// Below, @Name is a reference to a schema, and @name one of these members.
constexpr std::pair<std::string_view, std::string_view> kMembers[] = {
    {"head", R"("id": {"type": "string"}, "created": {"type": "integer"},
  "model": {"type": "string"}, "system_fingerprint": {"type": "string"})"},
    {"warnings", R"("warnings": {"type": "array", "items": {"type": "string"}, "description":
  "What was asked for and not done, such as a part of a schema that isn't enforced. In streams, of the first chunk."})"},
    {"index",
     R"("index": {"type": "integer", "minimum": 0, "description": "Prompt's index * n + k."})"},
    {"text", R"("text": {"type": ["string", "null"]})"},
    {"nativelogprobs", R"("logprobs": @CompletionLogprobs, "completion_probabilities": {
  "type": "array", "description": "With n_probs, in place of logprobs.", "items": @Probability})"},
    {"ending", R"("finish_reason": @FinishReason, "stop_reason": @StopReason,
  "prompt_logprobs": @PromptLogprobs, "token_ids": @TokenIds, "timings": @Timings, "seed": @Seed)"},
    {"pieces", R"("pieces": {"type": "array",
  "description": "With include_accepted, of a chunk with drafted tokens: its text in parts.",
  "items": {"type": "object", "required": ["text", "accepted"], "properties": {
    "text": {"type": "string"},
    "accepted": {"type": "boolean", "description": "Whether its tokens were drafted."}}}})"},
    {"chunkusage", R"("usage": {"anyOf": [@Usage, {"type": "null"}],
  "description": "So far, with continuous_usage_stats; of all in the last one, with include_usage."})"},
};

constexpr std::string_view kShared = R"({
"Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "object",
  "required": ["message", "type", "param", "code"], "properties": {
    "message": {"type": "string"},
    "type": {"enum": ["invalid_request_error", "permission_error", "rate_limit_error",
                      "server_error", "not_supported_error"]},
    "param": {"type": ["string", "null"], "description": "The path of the field at fault."},
    "code": {"type": ["string", "null"]}}}}},
"Usage": {"type": "object", "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
  "properties": {
    "prompt_tokens": {"type": "integer", "minimum": 0},
    "completion_tokens": {"type": "integer", "minimum": 0},
    "total_tokens": {"type": "integer", "minimum": 0},
    "prompt_tokens_details": {"type": "object", "required": ["cached_tokens"], "properties": {
      "cached_tokens": {"type": "integer", "minimum": 0}}},
    "completion_tokens_details": {"type": "object",
      "description": "Of a request with a prediction: tokens drafted from it that the model drew, and others.",
      "required": ["accepted_prediction_tokens", "rejected_prediction_tokens"], "properties": {
        "accepted_prediction_tokens": {"type": "integer", "minimum": 0},
        "rejected_prediction_tokens": {"type": "integer", "minimum": 0}}}}},
"FinishReason": {"enum": ["stop", "length", null]},
"StopReason": {"type": ["integer", "string", "null"],
  "description": "The stop string or stop token id that ended the text."},
"Timings": {"type": "object", "description": "What a choice took, when timings asked for it.",
  "required": ["queue_ms", "ttft_ms", "cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms",
    "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_token_ms",
    "predicted_per_second"], "properties": {
    "queue_ms": {"type": "number"}, "ttft_ms": {"type": "number"}, "cache_n": {"type": "integer"},
    "prompt_n": {"type": "integer"}, "prompt_ms": {"type": "number"},
    "prompt_per_token_ms": {"type": "number"}, "prompt_per_second": {"type": "number"},
    "predicted_n": {"type": "integer"}, "predicted_ms": {"type": "number"},
    "predicted_per_token_ms": {"type": "number"}, "predicted_per_second": {"type": "number"},
    "draft_n": {"type": "integer", "description": "Tokens drafted by speculative decoding, if any."},
    "draft_n_accepted": {"type": "integer", "description": "Drafted tokens that the model drew."}}},
"Seed": {"type": "integer", "description": "The seed that gives this answer again."},
"TokenIds": {"type": "array", "items": {"type": "integer", "minimum": 0},
  "description": "Of the text; with return_token_ids, or when the model has no tokenizer."},
"PromptLogprobs": {"type": "array", "description": "One entry a token, null for the first.",
  "items": {"type": ["object", "null"], "additionalProperties": {"type": "object",
    "required": ["logprob", "rank", "decoded_token"], "properties": {
      "logprob": {"type": "number"}, "rank": {"type": ["integer", "null"]},
      "decoded_token": {"type": ["string", "null"]}}}}},
"CompletionLogprobs": {"type": "object",
  "required": ["tokens", "token_logprobs", "top_logprobs", "text_offset"], "properties": {
    "tokens": {"type": "array", "items": {"type": "string"}},
    "token_logprobs": {"type": "array", "items": {"type": ["number", "null"]}},
    "top_logprobs": {"type": "array", "items": {"type": ["object", "null"],
      "additionalProperties": {"type": "number"}}},
    "text_offset": {"type": "array", "items": {"type": "integer", "minimum": 0}}}},
"ChatToken": {"type": "object", "required": ["token", "logprob", "bytes"], "properties": {
    "token": {"type": "string"}, "logprob": {"type": "number"},
    "bytes": {"type": ["array", "null"],
              "items": {"type": "integer", "minimum": 0, "maximum": 255}}}},
"ChatLogprobs": {"type": "object", "required": ["content", "refusal"], "properties": {
    "refusal": {"type": "null"},
    "content": {"type": "array", "items": {"allOf": [@ChatToken,
      {"type": "object", "required": ["top_logprobs"], "properties": {"top_logprobs": {
        "type": "array", "items": @ChatToken}}}]}}}},
"Probability": {"allOf": [@ChatToken, {"type": "object", "required": ["id", "top_logprobs"],
  "properties": {"id": {"type": "integer"}, "top_logprobs": {"type": "array", "items":
    {"allOf": [@ChatToken, {"type": "object", "required": ["id"],
      "properties": {"id": {"type": "integer"}}}]}}}}]},
)";

constexpr std::string_view kTexts = R"(
"CompletionChoice": {"type": "object", "required": ["index", "text", "logprobs", "finish_reason"],
  "properties": {@index, @text, "logprobs": {"anyOf": [@CompletionLogprobs, {"type": "null"}]},
    @pieces, @ending}},
"Completion": {"type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage"],
  "properties": {@head, @warnings, "object": {"const": "text_completion"},
    "choices": {"type": "array", "items": @CompletionChoice}, "usage": @Usage}},
"CompletionChunk": {"type": "object",
  "required": ["id", "object", "created", "model", "choices"],
  "properties": {@head, @warnings, "object": {"const": "text_completion"},
    "choices": {"type": "array", "items": @CompletionChoice}, @chunkusage}},
"ChatChoice": {"type": "object", "required": ["index", "message", "logprobs", "finish_reason"],
  "properties": {@index,
    "message": {"type": "object", "required": ["role", "content", "refusal"], "properties": {
      "role": {"const": "assistant"}, "content": {"type": ["string", "null"]},
      "refusal": {"type": "null"}}},
    "logprobs": {"anyOf": [@ChatLogprobs, {"type": "null"}]}, @ending}},
"ChatCompletion": {"type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage"],
  "properties": {@head, @warnings, "object": {"const": "chat.completion"},
    "choices": {"type": "array", "items": @ChatChoice}, "usage": @Usage}},
"ChatChunkChoice": {"type": "object", "required": ["index", "delta", "logprobs", "finish_reason"],
  "properties": {@index,
    "delta": {"type": "object", "properties": {
      "role": {"const": "assistant"}, "content": {"type": "string"}}},
    "logprobs": {"anyOf": [@ChatLogprobs, {"type": "null"}]}, @pieces, @ending}},
"ChatCompletionChunk": {"type": "object",
  "required": ["id", "object", "created", "model", "choices"],
  "properties": {@head, @warnings, "object": {"const": "chat.completion.chunk"},
    "choices": {"type": "array", "items": @ChatChunkChoice}, @chunkusage}},
"Generated": {"type": "object",
  "required": ["id", "model", "text", "finish_reason", "stop_reason", "token_ids", "seed", "usage"],
  "properties": {"id": {"type": "string"}, "model": {"type": "string"}, @text, @nativelogprobs,
    @ending, "usage": @Usage}},
"GeneratedChunk": {"type": "object",
  "properties": {"id": {"type": "string"}, @text, @nativelogprobs, @pieces, @ending, @chunkusage}},
)";

// Of llama.cpp's routes.
constexpr std::string_view kLlama = R"(
"LlamaSettings": {"type": "object", "required": ["n_ctx", "model", "n_predict", "seed",
    "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "stop", "n_probs"],
  "description": "The options in use, and further ones of llama.cpp with their values of off."},
"LlamaResult": {"type": "object", "required": ["index", "content", "tokens", "id_slot", "stop",
    "model", "tokens_predicted", "tokens_evaluated", "tokens_cached", "generation_settings",
    "prompt", "has_new_line", "truncated", "stop_type", "stopping_word", "seed", "timings"],
  "properties": {@index, "content": {"type": "string"}, "tokens": @TokenIds,
    "id_slot": {"const": -1, "description": "There are no slots."}, "stop": {"const": true},
    "model": {"type": "string"},
    "tokens_predicted": {"type": "integer", "minimum": 0},
    "tokens_evaluated": {"type": "integer", "minimum": 0, "description": "Of the prompt."},
    "tokens_cached": {"type": "integer", "minimum": 0, "description": "Of the prompt, from the cache."},
    "generation_settings": @LlamaSettings,
    "prompt": {"type": "string", "description": "With the special tokens that were added."},
    "has_new_line": {"type": "boolean"},
    "truncated": {"type": "boolean", "description": "The context was full."},
    "stop_type": {"enum": ["eos", "limit", "word"]}, "stopping_word": {"type": "string"},
    "seed": @Seed, "timings": @Timings,
    "prompt_logprobs": @PromptLogprobs,
    "completion_probabilities": {"type": "array", "items": @Probability}}},
"LlamaResults": {"description": "One object; of several prompts or choices an array of them.",
  "anyOf": [@LlamaResult, {"type": "array", "items": @LlamaResult}]},
"LlamaChunk": {"description": "A piece of the text, or the result that ends it.",
  "anyOf": [{"type": "object", "required": ["index", "content", "tokens", "stop"], "properties": {
    @index, "content": {"type": "string"}, "tokens": @TokenIds, "stop": {"const": false},
    "completion_probabilities": {"type": "array", "items": @Probability}}}, @LlamaResult]},
"LlamaProps": {"type": "object", "required": ["default_generation_settings", "total_slots",
    "model_alias", "model_path", "chat_template", "modalities", "build_info"], "properties": {
    "default_generation_settings": {"type": "object", "required": ["n_ctx", "params"],
      "properties": {"n_ctx": {"type": "integer"}, "params": @LlamaSettings}},
    "total_slots": {"type": "integer", "description": "Requests computed at once (--max-num-seqs)."},
    "model_alias": {"type": "string"}, "model_path": {"type": "string"},
    "chat_template": {"type": "string", "description": "Empty when the model has none."},
    "bos_token": {"type": "string"}, "eos_token": {"type": "string"},
    "modalities": {"type": "object", "properties": {
      "vision": {"const": false}, "audio": {"const": false}}},
    "build_info": {"type": "string"}}},
"LlamaSlots": {"type": "array", "description": "One for each request that can be computed at once.",
  "items": {"type": "object", "required": ["id", "id_task", "n_ctx", "is_processing"],
    "properties": {"id": {"type": "integer"}, "id_task": {"type": "integer"},
      "n_ctx": {"type": "integer"}, "speculative": {"type": "boolean",
        "description": "Whether the server has a drafter."},
      "is_processing": {"type": "boolean"},
      "next_token": {"type": "object", "properties": {"has_next_token": {"type": "boolean"},
        "n_remain": {"type": "integer"}, "n_decoded": {"type": "integer"}}}}}},
)";

constexpr std::string_view kOthers = R"(
"Classifications": {"type": "object",
  "required": ["id", "object", "created", "model", "data", "usage"], "properties": {
    "object": {"const": "list"}, @head,
    "data": {"type": "array", "items": {"type": "object",
      "required": ["object", "index", "token_id", "token", "label", "scores"], "properties": {
        "object": {"const": "classification"}, "index": {"type": "integer", "minimum": 0},
        "token_id": {"type": ["integer", "null"]}, "token": {"type": ["string", "null"]},
        "label": {"type": ["string", "null"], "description": "The likeliest of the labels."},
        "scores": {"type": ["array", "null"], "items": {"type": "number"}},
        "labels": {"type": "array", "items": {"type": "string"},
          "description": "The model's own, where its head classifies."},
        "logits": {"type": "array", "items": {"type": "number"}}}}},
    "usage": @Usage}},
"Embeddings": {"type": "object",
  "required": ["id", "object", "created", "model", "data", "usage"], "properties": {
    "object": {"const": "list"}, @head,
    "data": {"type": "array", "items": {"type": "object",
      "required": ["object", "index", "embedding"], "properties": {
        "object": {"const": "embedding"}, "index": {"type": "integer", "minimum": 0},
        "embedding": {"type": ["array", "string"], "items": {"type": "number"},
          "description": "Numbers, or the base64 of their float32 bytes."}}}},
    "usage": @Usage}},
"PairScores": {"type": "object",
  "required": ["id", "object", "created", "model", "data", "usage"], "properties": {
    "object": {"const": "list"}, @head,
    "data": {"type": "array", "items": {"type": "object",
      "required": ["object", "index", "score"], "properties": {
        "object": {"const": "score"}, "index": {"type": "integer", "minimum": 0},
        "score": {"type": "number"}}}},
    "usage": @Usage}},
"Reranked": {"type": "object",
  "required": ["id", "object", "created", "model", "results", "usage"], "properties": {
    "object": {"const": "list"}, @head,
    "results": {"type": "array", "items": {"type": "object",
      "required": ["index", "relevance_score"], "properties": {
        "index": {"type": "integer", "minimum": 0, "description": "Of the document."},
        "relevance_score": {"type": "number"},
        "document": {"type": "object", "required": ["text"], "properties": {
          "text": {"type": "string"}}}}}},
    "usage": @Usage}},
"TokenScores": {"type": "object",
  "required": ["id", "object", "created", "model", "data", "usage"], "properties": {
    "object": {"const": "list"}, @head,
    "data": {"type": "array", "items": {"type": "object",
      "required": ["object", "index", "token_ids", "token_logprobs", "logprob"], "properties": {
        "object": {"const": "score"}, "index": {"type": "integer", "minimum": 0},
        "token_ids": {"type": "array", "items": {"type": "integer"}},
        "token_logprobs": {"type": "array", "items": {"type": ["number", "null"]}},
        "logprob": {"type": "number", "description": "Their sum."},
        "prompt_logprobs": @PromptLogprobs}}},
    "usage": @Usage}},
"Tokens": {"type": "object", "required": ["count", "max_model_len", "tokens"], "properties": {
    "count": {"type": "integer", "minimum": 0}, "max_model_len": {"type": "integer"},
    "tokens": {"type": "array", "items": {"anyOf": [{"type": "integer", "minimum": 0},
      {"type": "object", "required": ["id", "piece"], "properties": {
        "id": {"type": "integer"}, "piece": {"type": ["string", "array"],
          "description": "Its text, or its bytes where they are no well-formed UTF-8.",
          "items": {"type": "integer", "minimum": 0, "maximum": 255}}}}]}},
    "token_strs": {"type": "array", "items": {"type": "string"}}}},
"Text": {"type": "object", "required": ["prompt", "content"], "properties": {
    "prompt": {"type": "string"}, "content": {"type": "string"}}},
"Prompt": {"type": "object", "required": ["prompt"], "properties": {"prompt": {"type": "string"}}},
"Model": {"type": "object", "required": ["id", "object", "created", "owned_by"], "properties": {
    "id": {"type": "string"}, "object": {"const": "model"}, "created": {"type": "integer"},
    "owned_by": {"type": "string"}, "root": {"type": "string"},
    "parent": {"type": "string", "description": "Of a LoRA adapter: the model that it changes."},
    "max_model_len": {"type": "integer"}, "meta": {"type": "object"}}},
"Models": {"type": "object", "required": ["object", "data"], "properties": {
    "object": {"const": "list"},
    "data": {"type": "array", "items": @Model}}},
"Requests": {"type": "object", "required": ["object", "data", "engine", "pools", "steps"],
  "properties": {
    "object": {"const": "list"},
    "data": {"type": "array", "description": "Running and waiting sequences.",
             "items": {"type": "object"}},
    "engine": {"type": "object"},
    "pools": {"type": "array", "description": "Who holds which block.",
              "items": {"type": "object"}},
    "steps": {"type": "array", "description": "The last steps: slices are [sequence, rows], drafts [sequence, drafted rows, accepted].",
              "items": {"type": "object"}}}},
"Version": {"type": "object", "required": ["version", "commit"], "properties": {
    "version": {"type": "string"}, "commit": {"type": "string"}}},
"Status": {"type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}}
})";

void append_expanded(std::string_view text, std::string& json);

// A name behind an @.
void append_named(std::string_view name, std::string& json) {
  for (const auto& [member, text] : kMembers) {
    if (member == name) return append_expanded(text, json);
  }
  json.append(R"({"$ref": "#/components/schemas/)").append(name).append(R"("})");
}

void append_expanded(std::string_view text, std::string& json) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  for (size_t at = text.find('@'); at != std::string_view::npos; at = text.find('@')) {
    json += text.substr(0, at);
    text.remove_prefix(at + 1);
    const size_t end = std::min(text.find_first_not_of(kLetters), text.size());
    append_named(text.substr(0, end), json);
    text.remove_prefix(end);
  }
  json += text;
}

}  // namespace

std::string_view response_schemas_json() {
  static const std::string all = [] {
    std::string json;
    for (const std::string_view part : {kShared, kTexts, kLlama, kOthers})
      append_expanded(part, json);
    return json;
  }();
  return all;
}

}  // namespace paceline
