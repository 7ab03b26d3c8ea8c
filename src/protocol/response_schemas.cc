#include "protocol/response_schemas.h"

#include <algorithm>
#include <string>
#include <utility>

namespace paceline {
namespace {

// Below, @Name is a reference to a schema, and @name one of these members.
constexpr std::pair<std::string_view, std::string_view> kMembers[] = {
    {"head", R"("created": {"type": "integer", "minimum": 0}, "model": {"type": "string"},
  "system_fingerprint": {"type": "string"})"},
    {"warnings", R"("warnings": {"type": "array", "items": {"type": "string"}, "description":
  "What was asked for and not done, such as a part of a schema that isn't enforced. In streams, of the first chunk."})"},
    {"model", R"("id": {"type": "string"}, "object": {"const": "model"},
  "created": {"type": "integer", "minimum": 0}, "owned_by": {"type": "string"},
  "root": {"type": "string"},
  "parent": {"type": "string", "description": "Of a LoRA adapter: the model that it changes."},
  "max_model_len": {"type": "integer", "minimum": 0, "description": "Of a loaded model."},
  "meta": {"type": "object", "required": ["n_vocab", "n_ctx_train"], "properties": {
  "n_vocab": {"type": "integer", "minimum": 0},
  "n_ctx_train": {"type": "integer", "minimum": 0}}})"},
    {"index",
     R"("index": {"type": "integer", "minimum": 0, "description": "Prompt's index * n + k."})"},
    {"text", R"("text": {"type": ["string", "null"]})"},
    {"nativelogprobs", R"("logprobs": @CompletionLogprobs, "completion_probabilities": {
  "type": "array", "description": "With n_probs, in place of logprobs.",
  "items": @Probability})"},
    {"ending", R"("stop_reason": @StopReason, "prompt_logprobs": @PromptLogprobs,
  "token_ids": @TokenIds, "timings": @Timings, "seed": @Seed)"},
    {"finish", R"("finish_reason": {"enum": ["stop", "length"]})"},
    {"chatfinish", R"("finish_reason": {"enum": ["stop", "length", "tool_calls"]})"},
    {"chunkfinish", R"("finish_reason": {"enum": ["stop", "length", null],
  "description": "null until the choice ends."})"},
    {"reasoning", R"("reasoning_content": {"type": "string",
    "description": "What the model thought before it answered."},
  "reasoning": {"type": "string", "description": "In the place of reasoning_content, with --reasoning-field reasoning."})"},
    {"function", R"("id": {"type": "string"}, "type": {"const": "function"},
  "function": {"type": "object", "required": ["name", "arguments"], "properties": {
    "name": {"type": "string"},
    "arguments": {"type": "string", "description": "JSON, which a cut may leave unfinished."}}})"},
    {"token", R"("token": {"type": "string"}, "logprob": {"type": "number", "maximum": 0},
  "bytes": {"type": ["array", "null"],
            "items": {"type": "integer", "minimum": 0, "maximum": 255}})"},
    {"tokenid", R"("id": {"type": "integer", "minimum": 0})"},
    {"pieces", R"("pieces": {"type": "array", "minItems": 1,
  "description": "With include_accepted, of a chunk with drafted tokens: its text in parts.",
  "items": {"type": "object", "required": ["text", "accepted"], "properties": {
    "text": {"type": "string", "minLength": 1},
    "accepted": {"type": "boolean", "description": "Whether its tokens were drafted."}}}})"},
    {"anthropicstop", R"("stop_reason": {"enum": ["end_turn", "max_tokens", "stop_sequence",
  "tool_use", "model_context_window_exceeded", null]},
  "stop_sequence": {"type": ["string", "null"]})"},
    {"confidence", R"("confidence": {"type": "number", "minimum": 0, "maximum": 1,
  "description": "0 where all options are equally likely, 1 where one is certain."})"},
    {"evidence", R"("label_mass": {"type": "number", "minimum": 0, "maximum": 1,
    "description": "The probability that the model's answer is one of the options, before calibration."},
  "argmax_is_label": {"type": "boolean",
    "description": "Whether the model's likeliest answer is one of the options."})"},
    {"ollama", R"("model": {"type": "string", "description": "As the request names it."},
  "created_at": {"type": "string"}, "done": {"type": "boolean"},
  "done_reason": {"enum": ["stop", "length", "load", "unload"]},
  "logprobs": {"type": "array", "items": {"type": "object",
    "required": ["token", "logprob", "bytes", "top_logprobs"], "properties": {@token,
      "top_logprobs": {"type": "array", "items": {"type": "object",
        "required": ["token", "logprob", "bytes"], "properties": {@token}}}}}},
  "total_duration": {"type": "integer", "minimum": 0, "description": "Nanoseconds, as the others."},
  "load_duration": {"type": "integer", "minimum": 0, "description": "Until the first step."},
  "prompt_eval_count": {"type": "integer", "minimum": 0},
  "prompt_eval_duration": {"type": "integer", "minimum": 0},
  "eval_count": {"type": "integer", "minimum": 0},
  "eval_duration": {"type": "integer", "minimum": 0}, @warnings)"},
    {"chunkusage", R"("usage": {"anyOf": [@Usage, {"type": "null"}],
  "description": "So far, with continuous_usage_stats; of all in the last one, with include_usage."})"},
};

constexpr std::string_view kShared = R"({
"Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "object",
  "required": ["message", "type", "param", "code"], "properties": {
    "message": {"type": "string", "minLength": 1},
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
    "completion_tokens_details": {"type": "object", "properties": {
      "reasoning_tokens": {"type": "integer", "minimum": 0,
        "description": "Of a chat whose template writes reasoning."},
      "accepted_prediction_tokens": {"type": "integer", "minimum": 0,
        "description": "Of a request with a prediction: tokens drafted from it that the model drew."},
      "rejected_prediction_tokens": {"type": "integer", "minimum": 0,
        "description": "Of a request with a prediction: the other tokens drafted from it."}}}}},
"StopReason": {"type": ["integer", "string", "null"],
  "description": "The stop string or stop token id that ended the text."},
"Timings": {"type": "object", "description": "What a choice took, when timings asked for it.",
  "required": ["queue_ms", "ttft_ms", "cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms",
    "prompt_per_second", "predicted_n", "predicted_ms", "predicted_per_token_ms",
    "predicted_per_second"], "properties": {
    "queue_ms": {"type": "number", "minimum": 0}, "ttft_ms": {"type": "number", "minimum": 0},
    "cache_n": {"type": "integer", "minimum": 0}, "prompt_n": {"type": "integer", "minimum": 0},
    "prompt_ms": {"type": "number", "minimum": 0},
    "prompt_per_token_ms": {"type": "number", "minimum": 0},
    "prompt_per_second": {"type": "number", "minimum": 0},
    "predicted_n": {"type": "integer", "minimum": 0},
    "predicted_ms": {"type": "number", "minimum": 0},
    "predicted_per_token_ms": {"type": "number", "minimum": 0},
    "predicted_per_second": {"type": "number", "minimum": 0},
    "draft_n": {"type": "integer", "minimum": 1,
      "description": "Tokens drafted by speculative decoding, if any."},
    "draft_n_accepted": {"type": "integer", "minimum": 0,
      "description": "Drafted tokens that the model drew."}}},
"Seed": {"type": "integer", "description": "The seed that gives this answer again."},
"TokenIds": {"type": "array", "items": {"type": "integer", "minimum": 0},
  "description": "Of the text; with return_token_ids, or when the model has no tokenizer."},
"PromptLogprobs": {"type": "array",
  "description": "One entry a token, by its id; null for the first.",
  "items": {"type": ["object", "null"], "propertyNames": {"pattern": "^[0-9]+$"},
    "additionalProperties": {"type": "object",
    "required": ["logprob", "rank", "decoded_token"], "properties": {
      "logprob": {"type": "number", "maximum": 0},
      "rank": {"type": ["integer", "null"], "minimum": 1},
      "decoded_token": {"type": ["string", "null"]}}}}},
"CompletionLogprobs": {"type": "object",
  "required": ["tokens", "token_logprobs", "top_logprobs", "text_offset"], "properties": {
    "tokens": {"type": "array", "items": {"type": "string"}},
    "token_logprobs": {"type": "array", "items": {"type": ["number", "null"], "maximum": 0}},
    "top_logprobs": {"type": "array", "items": {"type": ["object", "null"],
      "additionalProperties": {"type": "number", "maximum": 0}}},
    "text_offset": {"type": "array", "items": {"type": "integer", "minimum": 0}}}},
"ChatLogprobs": {"type": "object", "required": ["content", "refusal"], "properties": {
    "refusal": {"type": "null"},
    "content": {"type": "array", "items": {"type": "object",
      "required": ["token", "logprob", "bytes", "top_logprobs"], "properties": {@token,
        "top_logprobs": {"type": "array", "items": {"type": "object",
          "required": ["token", "logprob", "bytes"], "properties": {@token}}}}}}}},
"Probability": {"type": "object", "required": ["id", "token", "logprob", "bytes", "top_logprobs"],
  "properties": {@tokenid, @token, "top_logprobs": {"type": "array", "items": {"type": "object",
    "required": ["id", "token", "logprob", "bytes"], "properties": {@tokenid, @token}}}}},
)";

constexpr std::string_view kTexts = R"(
"CompletionChoice": {"type": "object",
  "required": ["index", "text", "logprobs", "finish_reason", "stop_reason", "seed"],
  "properties": {@index, @text, "logprobs": {"anyOf": [@CompletionLogprobs, {"type": "null"}]},
    @finish, @ending}},
"Completion": {"type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage"],
  "properties": {"id": {"type": "string", "pattern": "^cmpl-"},
    "object": {"const": "text_completion"}, @head, @warnings,
    "choices": {"type": "array", "minItems": 1, "items": @CompletionChoice}, "usage": @Usage}},
"CompletionChunkChoice": {"type": "object",
  "required": ["index", "text", "logprobs", "finish_reason"],
  "properties": {@index, @text, "logprobs": {"anyOf": [@CompletionLogprobs, {"type": "null"}]},
    @pieces, @chunkfinish, @ending}},
"CompletionChunk": {"type": "object",
  "required": ["id", "object", "created", "model", "choices"],
  "properties": {"id": {"type": "string", "pattern": "^cmpl-"},
    "object": {"const": "text_completion"}, @head, @warnings,
    "choices": {"type": "array", "items": @CompletionChunkChoice}, @chunkusage}},
"ToolCall": {"type": "object", "required": ["id", "type", "function"], "properties": {@function}},
"ToolCallDelta": {"type": "object", "required": ["index", "function"],
  "description": "id, type and name come in the first delta of a call, arguments in pieces.",
  "properties": {"index": {"type": "integer", "minimum": 0}, "id": {"type": "string"},
    "type": {"const": "function"},
    "function": {"type": "object", "required": ["arguments"], "properties": {
      "name": {"type": "string"}, "arguments": {"type": "string"}}}}},
"ChatChoice": {"type": "object",
  "required": ["index", "message", "logprobs", "finish_reason", "stop_reason", "seed"],
  "properties": {@index,
    "message": {"type": "object", "required": ["role", "content", "refusal"], "properties": {
      "role": {"const": "assistant"},
      "content": {"type": ["string", "null"], "description": "null beside tool calls alone."},
      @reasoning, "tool_calls": {"type": "array", "minItems": 1, "items": @ToolCall},
      "refusal": {"type": "null"}}},
    "logprobs": {"anyOf": [@ChatLogprobs, {"type": "null"}]}, @chatfinish, @ending}},
"ChatCompletion": {"type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage"],
  "properties": {"id": {"type": "string", "pattern": "^chatcmpl-"},
    "object": {"const": "chat.completion"}, @head, @warnings,
    "choices": {"type": "array", "minItems": 1, "items": @ChatChoice}, "usage": @Usage}},
"ChatChunkChoice": {"type": "object", "required": ["index", "delta", "logprobs", "finish_reason"],
  "properties": {@index,
    "delta": {"type": "object", "properties": {
      "role": {"const": "assistant"}, "content": {"type": "string"}, @reasoning,
      "tool_calls": {"type": "array", "minItems": 1, "items": @ToolCallDelta}}},
    "logprobs": {"anyOf": [@ChatLogprobs, {"type": "null"}]}, @pieces,
    "finish_reason": {"enum": ["stop", "length", "tool_calls", null],
      "description": "null until the choice ends."}, @ending}},
"ChatCompletionChunk": {"type": "object",
  "required": ["id", "object", "created", "model", "choices"],
  "properties": {"id": {"type": "string", "pattern": "^chatcmpl-"},
    "object": {"const": "chat.completion.chunk"}, @head, @warnings,
    "choices": {"type": "array", "items": @ChatChunkChoice}, @chunkusage}},
"Generated": {"type": "object",
  "required": ["id", "model", "text", "finish_reason", "stop_reason", "token_ids", "seed", "usage"],
  "properties": {"id": {"type": "string", "pattern": "^gen-"}, "model": {"type": "string"}, @text,
    @nativelogprobs, @finish, @ending, "usage": @Usage}},
"GeneratedPiece": {"type": "object", "required": ["id", "text", "finish_reason"],
  "properties": {"id": {"type": "string", "pattern": "^gen-"}, @text, @nativelogprobs, @pieces,
    @chunkfinish, @ending, "usage": @Usage}},
"GeneratedUsage": {"type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage"],
  "properties": {"id": {"type": "string", "pattern": "^gen-"},
    "object": {"const": "text_completion"}, @head, "choices": {"type": "array", "maxItems": 0},
    "usage": @Usage}},
"GeneratedChunk": {"description": "A piece of the text, or, with include_usage, what ends the stream.",
  "anyOf": [@GeneratedPiece, @GeneratedUsage]},
)";

// Of Anthropic's API.
constexpr std::string_view kAnthropic = R"(
"OutputItem": {"type": "object", "required": ["id", "type"], "properties": {
    "id": {"type": "string"},
    "type": {"enum": ["message", "reasoning", "function_call", "custom_tool_call", "compaction"]},
    "role": {"const": "assistant"}, "status": {"enum": ["in_progress", "completed", "incomplete"]},
    "content": {"type": "array", "items": {"type": "object", "required": ["type", "text"],
      "properties": {"type": {"enum": ["output_text", "reasoning_text"]},
        "text": {"type": "string"}, "annotations": {"type": "array"},
        "logprobs": {"type": "array"}}}},
    "summary": {"type": "array", "items": {"type": "object", "required": ["type", "text"],
      "properties": {"type": {"const": "summary_text"}, "text": {"type": "string"}}}},
    "encrypted_content": {"type": ["string", "null"], "description": "Sealed by this server."},
    "call_id": {"type": "string"}, "name": {"type": "string"}, "arguments": {"type": "string"},
    "input": {"type": "string"}}},
"ResponseUsage": {"type": "object", "required": ["input_tokens", "input_tokens_details",
    "output_tokens", "output_tokens_details", "total_tokens"], "properties": {
    "input_tokens": {"type": "integer"}, "output_tokens": {"type": "integer"},
    "total_tokens": {"type": "integer"},
    "input_tokens_details": {"type": "object", "properties": {
      "cached_tokens": {"type": "integer"}, "cache_write_tokens": {"type": "integer"}}},
    "output_tokens_details": {"type": "object", "properties": {
      "reasoning_tokens": {"type": "integer"}}}}},
"Response": {"type": "object", "required": ["id", "object", "created_at", "status", "model",
    "output", "error", "incomplete_details", "usage"], "properties": {
    "id": {"type": "string", "pattern": "^resp_"}, "object": {"const": "response"},
    "created_at": {"type": "integer"}, "completed_at": {"type": ["integer", "null"]},
    "status": {"enum": ["queued", "in_progress", "completed", "incomplete", "failed",
      "cancelled"]},
    "background": {"type": "boolean"}, "model": {"type": "string"},
    "error": {"type": ["object", "null"], "properties": {"code": {"type": "string"},
      "message": {"type": "string"}}},
    "incomplete_details": {"type": ["object", "null"], "properties": {
      "reason": {"const": "max_output_tokens"}}},
    "output": {"type": "array", "items": @OutputItem},
    "usage": {"anyOf": [@ResponseUsage, {"type": "null"}]}, "service_tier": {"const": "default"},
    "temperature": {"type": "number"}, "top_p": {"type": "number"}, @warnings,
    "instructions": {"description": "This and what follows is the request's."},
    "max_output_tokens": {}, "max_tool_calls": {}, "parallel_tool_calls": {},
    "previous_response_id": {}, "prompt_cache_key": {}, "prompt_cache_retention": {},
    "reasoning": {}, "safety_identifier": {}, "store": {}, "text": {}, "tool_choice": {},
    "tools": {}, "top_logprobs": {}, "truncation": {}, "user": {}, "metadata": {}}},
"ResponseEvent": {"type": "object", "required": ["type", "sequence_number"], "properties": {
    "type": {"type": "string", "pattern": "^response\\."}, "sequence_number": {"type": "integer"},
    "response": @Response, "item": @OutputItem, "output_index": {"type": "integer"},
    "item_id": {"type": "string"}, "content_index": {"type": "integer"},
    "summary_index": {"type": "integer"}, "part": {"type": "object"},
    "delta": {"type": "string"}, "text": {"type": "string"}, "arguments": {"type": "string"},
    "input": {"type": "string"}, "logprobs": {"type": "array"}}},
"CompactedResponse": {"type": "object", "required": ["id", "object", "created_at", "output",
    "usage"], "properties": {"id": {"type": "string"}, "object": {"const": "response.compaction"},
    "created_at": {"type": "integer"}, "output": {"type": "array", "items": @OutputItem},
    "usage": @ResponseUsage}},
"InputTokens": {"type": "object", "required": ["object", "input_tokens"], "properties": {
    "object": {"const": "response.input_tokens"}, "input_tokens": {"type": "integer"}}},
"ItemList": {"type": "object", "required": ["object", "data", "first_id", "last_id", "has_more"],
  "properties": {"object": {"const": "list"}, "data": {"type": "array",
      "items": {"type": "object", "required": ["id"]}},
    "first_id": {"type": ["string", "null"]}, "last_id": {"type": ["string", "null"]},
    "has_more": {"type": "boolean"}}},
"DeletedResponse": {"type": "object", "required": ["id", "object", "deleted"], "properties": {
    "id": {"type": "string"}, "object": {"const": "response"}, "deleted": {"const": true}}},
"AnthropicError": {"type": "object", "required": ["type", "error"], "properties": {
    "type": {"const": "error"}, "request_id": {"type": "string"},
    "error": {"type": "object", "required": ["type", "message"], "properties": {
      "type": {"enum": ["invalid_request_error", "authentication_error", "permission_error",
        "not_found_error", "request_too_large", "rate_limit_error", "timeout_error", "api_error",
        "overloaded_error"]},
      "message": {"type": "string", "minLength": 1}}}}},
"AnthropicUsage": {"type": "object", "required": ["input_tokens", "cache_creation_input_tokens",
    "cache_read_input_tokens", "output_tokens"], "properties": {
    "input_tokens": {"type": "integer", "minimum": 0, "description": "Without those of the cache."},
    "cache_creation_input_tokens": {"const": 0},
    "cache_read_input_tokens": {"type": "integer", "minimum": 0},
    "output_tokens": {"type": "integer", "minimum": 0},
    "output_tokens_details": {"type": "object", "required": ["thinking_tokens"], "properties": {
      "thinking_tokens": {"type": "integer", "minimum": 0}}}}},
"AnthropicBlock": {"type": "object", "required": ["type"], "properties": {
    "type": {"enum": ["thinking", "text", "tool_use"]}, "text": {"type": "string"},
    "thinking": {"type": "string"},
    "signature": {"type": "string", "description": "The reasoning, sealed."},
    "id": {"type": "string"}, "name": {"type": "string"}, "input": {"type": "object"}}},
"AnthropicMessage": {"type": "object", "required": ["id", "type", "role", "model", "content",
    "stop_reason", "stop_sequence", "usage"], "properties": {
    "id": {"type": "string", "pattern": "^msg_"}, "type": {"const": "message"},
    "role": {"const": "assistant"}, "model": {"type": "string"}, @warnings,
    "content": {"type": "array", "items": @AnthropicBlock}, @anthropicstop,
    "usage": @AnthropicUsage}},
"AnthropicEvent": {"type": "object", "required": ["type"], "properties": {
    "type": {"enum": ["message_start", "content_block_start", "content_block_delta",
      "content_block_stop", "message_delta", "message_stop", "ping"]},
    "message": @AnthropicMessage, "index": {"type": "integer", "minimum": 0},
    "content_block": @AnthropicBlock, "usage": @AnthropicUsage,
    "delta": {"type": "object", "properties": {
      "type": {"enum": ["thinking_delta", "signature_delta", "text_delta", "input_json_delta"]},
      "thinking": {"type": "string"}, "signature": {"type": "string"}, "text": {"type": "string"},
      "partial_json": {"type": "string"}, @anthropicstop}}}},
"AnthropicCount": {"type": "object", "required": ["input_tokens"], "properties": {
    "input_tokens": {"type": "integer", "minimum": 0}}},
)";

// Of llama.cpp's routes.
constexpr std::string_view kLlama = R"(
"LlamaSettings": {"type": "object", "required": ["n_ctx", "model", "n_predict", "max_tokens",
    "seed", "temperature", "dynatemp_range", "dynatemp_exponent", "top_k", "top_p", "min_p",
    "xtc_probability", "typical_p", "top_n_sigma", "repeat_last_n", "repeat_penalty",
    "presence_penalty", "frequency_penalty", "dry_multiplier", "mirostat", "samplers", "stop",
    "ignore_eos", "n_keep", "n_discard", "min_keep", "n_probs", "grammar", "stream",
    "timings_per_token", "post_sampling_probs", "speculative.n_max", "speculative.n_min"],
  "description": "The options in use, and further ones of llama.cpp with their values of off.",
  "properties": {"n_ctx": {"type": "integer"}, "model": {"type": "string"},
    "n_predict": {"type": "integer"}, "max_tokens": {"type": "integer"}, "seed": @Seed,
    "temperature": {"type": "number"}, "dynatemp_range": {"const": 0},
    "dynatemp_exponent": {"const": 1}, "top_k": {"type": "integer"}, "top_p": {"type": "number"},
    "min_p": {"type": "number"}, "xtc_probability": {"const": 0},
    "typical_p": {"type": "number"}, "top_n_sigma": {"type": "number"},
    "repeat_last_n": {"const": -1, "description": "All tokens."},
    "repeat_penalty": {"type": "number"}, "presence_penalty": {"type": "number"},
    "frequency_penalty": {"type": "number"}, "dry_multiplier": {"const": 0},
    "mirostat": {"const": 0}, "samplers": {"type": "array", "items": {"type": "string"}},
    "stop": {"type": "array", "items": {"type": "string"}}, "ignore_eos": {"type": "boolean"},
    "n_keep": {"const": 0}, "n_discard": {"const": 0}, "min_keep": {"const": 0},
    "n_probs": {"type": "integer", "minimum": 0}, "grammar": {"const": ""},
    "stream": {"type": "boolean"}, "timings_per_token": {"const": false},
    "post_sampling_probs": {"const": false}, "speculative.n_max": {"type": "integer"},
    "speculative.n_min": {"const": 0}}},
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
"LlamaPiece": {"type": "object", "required": ["index", "content", "tokens", "stop"],
  "properties": {@index, "content": {"type": "string"}, "tokens": @TokenIds,
    "stop": {"const": false},
    "completion_probabilities": {"type": "array", "items": @Probability}}},
"LlamaChunk": {"description": "A piece of the text, or the result that ends it.",
  "anyOf": [@LlamaPiece, @LlamaResult]},
"LlamaProps": {"type": "object", "required": ["default_generation_settings", "total_slots",
    "model_alias", "model_path", "chat_template", "modalities", "build_info"], "properties": {
    "default_generation_settings": {"type": "object", "required": ["n_ctx", "params"],
      "properties": {"n_ctx": {"type": "integer"}, "params": @LlamaSettings}},
    "total_slots": {"type": "integer", "description": "Requests computed at once (--max-num-seqs)."},
    "model_alias": {"type": "string"}, "model_path": {"type": "string"},
    "chat_template": {"type": "string", "description": "Empty when the model has none."},
    "bos_token": {"type": "string"}, "eos_token": {"type": "string"},
    "modalities": {"type": "object", "required": ["vision", "audio"], "properties": {
      "vision": {"const": false}, "audio": {"const": false}}},
    "build_info": {"type": "string"}}},
"LlamaSlots": {"type": "array", "description": "One for each request that can be computed at once.",
  "items": {"type": "object",
    "required": ["id", "id_task", "n_ctx", "speculative", "is_processing"],
    "properties": {"id": {"type": "integer"}, "id_task": {"type": "integer"},
      "n_ctx": {"type": "integer"}, "speculative": {"type": "boolean",
        "description": "Whether the server has a drafter."},
      "is_processing": {"type": "boolean"},
      "next_token": {"type": "object", "required": ["has_next_token", "n_remain", "n_decoded"],
        "description": "While it is processing.",
        "properties": {"has_next_token": {"type": "boolean"},
          "n_remain": {"type": "integer"}, "n_decoded": {"type": "integer"}}}}}},
)";

constexpr std::string_view kOllama = R"(
"OllamaError": {"type": "object", "required": ["error"], "properties": {
  "error": {"type": "string", "minLength": 1}}},
"OllamaCalls": {"type": "array", "minItems": 1, "items": {"type": "object",
  "required": ["id", "function"], "properties": {"id": {"type": "string"},
    "function": {"type": "object", "required": ["index", "name", "arguments"], "properties": {
      "index": {"type": "integer", "minimum": 0}, "name": {"type": "string"},
      "arguments": {"type": "object"}}}}}},
"OllamaChat": {"type": "object", "required": ["model", "created_at", "message", "done"],
  "description": "One line of a stream, or all of the answer.", "properties": {@ollama,
    "message": {"type": "object", "required": ["role", "content"], "properties": {
      "role": {"const": "assistant"}, "content": {"type": "string"},
      "thinking": {"type": "string", "minLength": 1}, "tool_calls": @OllamaCalls}}}},
"OllamaGenerated": {"type": "object", "required": ["model", "created_at", "response", "done"],
  "description": "One line of a stream, or all of the answer.", "properties": {@ollama,
    "response": {"type": "string"}, "thinking": {"type": "string", "minLength": 1},
    "context": {"type": "array", "items": {"type": "integer", "minimum": 0},
      "description": "The tokens of prompt and answer, of a chat's."}}},
"OllamaEmbeddings": {"type": "object", "required": ["model", "embeddings"], "properties": {
  "model": {"type": "string"},
  "embeddings": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
  "prompt_eval_count": {"type": "integer", "minimum": 0}}},
"OllamaEmbedding": {"type": "object", "required": ["embedding"], "properties": {
  "embedding": {"type": "array", "items": {"type": "number"}}}},
"OllamaDetails": {"type": "object", "required": ["parent_model", "format", "family", "families",
  "parameter_size", "quantization_level"], "properties": {
    "parent_model": {"const": ""}, "format": {"type": "string"}, "family": {"type": "string"},
    "families": {"type": "array", "items": {"type": "string"}},
    "parameter_size": {"type": "string", "pattern": "^([0-9.]+[BM])?$"},
    "quantization_level": {"type": "string"},
    "context_length": {"type": "integer", "minimum": 1},
    "embedding_length": {"type": "integer", "minimum": 1}}},
"OllamaModel": {"type": "object", "description": "All of it once the model is loaded.", "required": ["details", "model_info", "modified_at"], "properties": {
    "parameters": {"type": "string", "description": "What the model's files set, one a line."},
    "template": {"type": "string", "description": "Jinja; empty when the model has none."},
    "details": @OllamaDetails, "model_info": {"type": "object"},
    "capabilities": {"type": "array", "items": {
      "enum": ["completion", "tools", "thinking", "insert", "embedding"]}},
    "modified_at": {"type": "string"}}},
"OllamaModels": {"type": "object", "required": ["models"], "properties": {"models": {
  "type": "array", "items": {"type": "object",
    "required": ["name", "model", "size", "digest", "details"], "properties": {
      "name": {"type": "string", "pattern": ":"}, "model": {"type": "string", "pattern": ":"},
      "size": {"type": "integer", "minimum": 0, "description": "Bytes of the weights in memory."},
      "digest": {"type": "string"}, "details": @OllamaDetails,
      "modified_at": {"type": "string", "description": "When the server started."},
      "expires_at": {"type": "string"}, "size_vram": {"type": "integer", "minimum": 0},
      "context_length": {"type": "integer", "minimum": 1}}}}}},
"OllamaVersion": {"type": "object", "required": ["version"], "properties": {
  "version": {"type": "string", "pattern": "^[0-9]+[.][0-9]+[.][0-9]+-paceline[.]"}}},
)";

constexpr std::string_view kOthers = R"(
"Classifications": {"type": "object",
  "required": ["id", "object", "created", "model", "data", "usage"], "properties": {
    "id": {"type": "string", "pattern": "^classify-"}, "object": {"const": "list"}, @head,
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
"Decisions": {"type": "object", "required": ["answers", "model", "usage"], "properties": {
    "answers": {"type": "array", "minItems": 1, "description": "In the order of the questions.",
      "items": {"type": "object", "required": ["type", "name", "label_mass", "argmax_is_label"],
      "properties": {"type": {"enum": ["predicate", "choice", "score"]},
        "name": {"type": ["string", "null"]},
        "probability": {"type": "number", "minimum": 0, "maximum": 1, "description": "Of a predicate."},
        "choice": {"type": ["string", "boolean"], "description": "Of a choice: the likeliest value."},
        "score": {"type": "number", "minimum": 0, "description": "The expected level, counted from 0."},
        @confidence, @evidence,
        "probabilities": {"type": "array", "items": {"type": "object",
          "required": ["value", "probability"], "properties": {
            "label": {"type": "string", "description": "Of a level."},
            "value": {"type": ["string", "boolean", "integer"]},
            "probability": {"type": "number", "minimum": 0, "maximum": 1}}}}}}},
    "model": {"type": "string"},
    "usage": {"type": "object", "required": ["input_tokens", "input_tokens_details",
      "output_tokens", "output_tokens_details", "total_tokens"], "properties": {
        "input_tokens": {"type": "integer", "minimum": 1,
          "description": "The input counts once, and so does every question."},
        "input_tokens_details": {"type": "object",
          "required": ["cached_tokens", "cache_write_tokens"], "properties": {
            "cached_tokens": {"type": "integer", "minimum": 0},
            "cache_write_tokens": {"type": "integer", "minimum": 0}}},
        "output_tokens": {"type": "integer", "const": 0},
        "output_tokens_details": {"type": "object", "required": ["reasoning_tokens"],
          "properties": {"reasoning_tokens": {"type": "integer", "const": 0}}},
        "total_tokens": {"type": "integer", "minimum": 1}}}}},
"SystemOne": {"type": "object", "required": ["model", "answers", "usage"], "properties": {
    "model": {"type": "string"},
    "answers": {"type": "object", "description": "By the names of the questions.",
      "additionalProperties": {"type": "object",
      "required": ["type", "label_mass", "argmax_is_label"], "properties": {
        "type": {"enum": ["noul", "choice", "score"]},
        "noul": {"type": "number", "minimum": 0, "maximum": 1, "description": "The probability of yes."},
        "choice": {"type": "string"}, "score": {"type": "number", "minimum": 0},
        "legend": {"type": "object", "additionalProperties": {"type": "string"}},
        @confidence, @evidence,
        "probabilities": {"type": "object",
          "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1}}}}},
    "usage": {"type": "object", "required": ["input_tokens", "output_tokens"], "properties": {
      "input_tokens": {"type": "integer", "minimum": 1},
      "output_tokens": {"type": "integer", "const": 0}}}}},
"Embeddings": {"type": "object",
  "required": ["id", "object", "created", "model", "data", "usage"], "properties": {
    "id": {"type": "string", "pattern": "^embd-"}, "object": {"const": "list"}, @head,
    "data": {"type": "array", "items": {"type": "object",
      "required": ["object", "index", "embedding"], "properties": {
        "object": {"const": "embedding"}, "index": {"type": "integer", "minimum": 0},
        "embedding": {"type": ["array", "string"], "minItems": 1, "items": {"type": "number"},
          "pattern": "^[A-Za-z0-9+/]+={0,2}$",
          "description": "Numbers, or the base64 of their float32 bytes."}}}},
    "usage": @Usage}},
"PairScores": {"type": "object",
  "required": ["id", "object", "created", "model", "data", "usage"], "properties": {
    "id": {"type": "string", "pattern": "^score-"}, "object": {"const": "list"}, @head,
    "data": {"type": "array", "items": {"type": "object",
      "required": ["object", "index", "score"], "properties": {
        "object": {"const": "score"}, "index": {"type": "integer", "minimum": 0},
        "score": {"type": "number"}}}},
    "usage": @Usage}},
"Reranked": {"type": "object",
  "required": ["id", "object", "created", "model", "results", "usage"], "properties": {
    "id": {"type": "string", "pattern": "^rerank-"}, "object": {"const": "list"}, @head,
    "results": {"type": "array", "items": {"type": "object",
      "required": ["index", "relevance_score"], "properties": {
        "index": {"type": "integer", "minimum": 0, "description": "Of the document."},
        "relevance_score": {"type": "number"},
        "document": {"type": "object", "required": ["text"], "properties": {
          "text": {"type": "string"}}}}}},
    "usage": @Usage}},
"TokenScores": {"type": "object",
  "required": ["id", "object", "created", "model", "data", "usage"], "properties": {
    "id": {"type": "string", "pattern": "^score-"}, "object": {"const": "list"}, @head,
    "data": {"type": "array", "items": {"type": "object",
      "required": ["object", "index", "token_ids", "token_logprobs", "logprob"], "properties": {
        "object": {"const": "score"}, "index": {"type": "integer", "minimum": 0},
        "token_ids": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "token_logprobs": {"type": "array", "items": {"type": ["number", "null"], "maximum": 0}},
        "logprob": {"type": "number", "maximum": 0, "description": "Their sum."},
        "prompt_logprobs": @PromptLogprobs}}},
    "usage": @Usage}},
"Tokens": {"type": "object", "required": ["count", "max_model_len", "tokens"], "properties": {
    "count": {"type": "integer", "minimum": 0}, "max_model_len": {"type": "integer"},
    "tokens": {"type": "array", "items": {"anyOf": [{"type": "integer", "minimum": 0},
      {"type": "object", "required": ["id", "piece"], "properties": {
        @tokenid, "piece": {"type": ["string", "array"],
          "description": "Its text, or its bytes where they are no well-formed UTF-8.",
          "items": {"type": "integer", "minimum": 0, "maximum": 255}}}}]}},
    "token_strs": {"type": "array", "items": {"type": "string"}}}},
"Text": {"type": "object", "required": ["prompt", "content"], "properties": {
    "prompt": {"type": "string"}, "content": {"type": "string"}}},
"Prompt": {"type": "object", "required": ["prompt"], "properties": {"prompt": {"type": "string"}}},
"Model": {"type": "object", "required": ["id", "object", "created", "owned_by", "root"],
  "properties": {@model}},
"Models": {"type": "object", "required": ["object", "data"], "properties": {
    "object": {"const": "list"},
    "data": {"type": "array", "minItems": 1, "items": @Model}}},
"ModelStates": {"type": "object", "required": ["object", "data"], "properties": {
    "object": {"const": "list"},
    "data": {"type": "array", "minItems": 1, "items": {"type": "object",
      "required": ["id", "object", "created", "owned_by", "root", "status", "in_cache"],
      "properties": {@model,
        "status": {"type": "object", "required": ["value"], "properties": {
          "value": {"enum": ["unloaded", "loading", "loaded", "unloading"]},
          "failed": {"const": true, "description": "The last load failed."},
          "message": {"type": "string", "description": "Why it failed."}}},
        "in_cache": {"const": true}}}}}},
"Success": {"type": "object", "required": ["success"], "properties": {
    "success": {"const": true}}},
"Requests": {"type": "object", "required": ["object", "data", "engine", "pools", "steps"],
  "properties": {
    "object": {"const": "list"},
    "data": {"type": "array", "description": "Running and waiting sequences.",
      "items": {"type": "object", "required": ["sequence", "id", "choice", "state",
          "prompt_tokens", "cached_tokens", "output_tokens", "max_tokens", "blocks", "preemptions",
          "queue_s", "age_s"], "properties": {
        "sequence": {"type": "integer"},
        "id": {"type": "string", "description": "Of the answer."},
        "choice": {"type": "integer", "minimum": 0}, "state": {"enum": ["running", "waiting"]},
        "prompt_tokens": {"type": "integer"}, "cached_tokens": {"type": "integer"},
        "output_tokens": {"type": "integer"}, "max_tokens": {"type": "integer"},
        "blocks": {"type": "integer"}, "preemptions": {"type": "integer"},
        "queue_s": {"type": "number"}, "age_s": {"type": "number"}}}},
    "engine": {"type": "object", "required": ["step", "num_running", "num_waiting",
        "max_num_seqs", "max_queued", "max_model_len", "tokens_per_second", "ttft_p50_s",
        "ttft_p99_s", "step_age_s", "prefix_queries", "prefix_hits", "preemptions",
        "max_drafted_tokens", "drafted_tokens", "accepted_tokens"], "properties": {
      "step": {"type": "integer"}, "num_running": {"type": "integer"},
      "num_waiting": {"type": "integer"}, "max_num_seqs": {"type": "integer"},
      "max_queued": {"type": "integer"}, "max_model_len": {"type": "integer"},
      "tokens_per_second": {"type": "number"}, "ttft_p50_s": {"type": ["number", "null"]},
      "ttft_p99_s": {"type": ["number", "null"]}, "step_age_s": {"type": "number"},
      "prefix_queries": {"type": "integer"}, "prefix_hits": {"type": "integer"},
      "preemptions": {"type": "integer"}, "max_drafted_tokens": {"type": "integer"},
      "drafted_tokens": {"type": "integer"}, "accepted_tokens": {"type": "integer"}}},
    "pools": {"type": "array", "items": {"type": "object",
      "required": ["num_blocks", "block_size", "window", "blocks"], "properties": {
        "num_blocks": {"type": "integer"}, "block_size": {"type": "integer"},
        "window": {"type": ["integer", "null"]},
        "blocks": {"type": "array", "description": "[holder, number of blocks], in their order.",
          "items": {"type": "array", "items": {"type": "integer"}}}}}},
    "steps": {"type": "array", "description": "The last steps.",
      "items": {"type": "object", "required": ["step", "ms", "slices"], "properties": {
        "step": {"type": "integer"}, "ms": {"type": "number"},
        "slices": {"type": "array", "description": "[sequence, rows]",
          "items": {"type": "array", "items": {"type": "integer"}}},
        "drafts": {"type": "array", "description": "[sequence, drafted rows, accepted]",
          "items": {"type": "array", "items": {"type": "integer"}}}}}}}},
"OpenApi": {"type": "object",
  "required": ["openapi", "info", "security", "paths", "components"], "properties": {
    "openapi": {"type": "string"}, "info": {"type": "object"}, "security": {"type": "array"},
    "paths": {"type": "object"}, "components": {"type": "object"}}},
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
    for (const std::string_view part : {kShared, kTexts, kAnthropic, kLlama, kOllama, kOthers})
      append_expanded(part, json);
    return json;
  }();
  return all;
}

}  // namespace paceline
