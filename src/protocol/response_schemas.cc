#include "protocol/schemas.h"

#include <string>

namespace paceline {
namespace {

// Members that several objects have.
constexpr std::string_view kParts = R"(
head = {created: count, model: string, system_fingerprint?: string}
warnings = {warnings?: [string] "What was asked for and not done, such as a part of a schema that
  isn't enforced. In streams, of the first chunk."}
model = {id: string, object: 'model', created: count, owned_by: string, root: string,
  parent?: string "Of a LoRA adapter: the model that it changes.", max_model_len?: count "Of a
  loaded model.", meta?: {n_vocab: count, n_ctx_train: count}}
index = {index: count "Prompt's index * n + k."}
text = {text: string | null}
native_logprobs = {logprobs?: CompletionLogprobs, completion_probabilities?: [Probability] "With
  n_probs, in place of logprobs."}
ending = {stop_reason: StopReason, prompt_logprobs?: PromptLogprobs, token_ids?: TokenIds,
  timings?: Timings, seed: Seed}
finish = {finish_reason: 'stop' | 'length'}
chat_finish = {finish_reason: 'stop' | 'length' | 'tool_calls'}
chunk_finish = {finish_reason: 'stop' | 'length' | null "null until the choice ends."}
reasoning = {reasoning_content?: string "What the model thought before it answered.",
  reasoning?: string "In the place of reasoning_content, with --reasoning-field reasoning."}
function = {id: string, type: 'function', function: {name: string, arguments: string "JSON, which
  a cut may leave unfinished."}}
token = {token: string, logprob: number ..0, bytes: [integer 0..255] | null}
token_id = {id: count}
pieces = {pieces?: [{text: text, accepted: boolean "Whether its tokens were drafted."}]+ "With
  include_accepted, of a chunk with drafted tokens: its text in parts."}
anthropic_stop = {stop_reason: 'end_turn' | 'max_tokens' | 'stop_sequence' | 'tool_use' |
  'model_context_window_exceeded' | null, stop_sequence: string | null}
confidence = {confidence?: number 0..1 "0 where all options are equally likely, 1 where one is
  certain."}
evidence = {label_mass: number 0..1 "The probability that the model's answer is one of the
  options, before calibration.", argmax_is_label: boolean "Whether the model's likeliest answer is
  one of the options."}
ollama = {model: string "As the request names it.", created_at: string, done: boolean,
  done_reason?: 'stop' | 'length' | 'load' | 'unload', logprobs?: [{...token,
  top_logprobs: [{...token}]}], total_duration?: count "Nanoseconds, as the others.",
  load_duration?: count "Until the first step.", prompt_eval_count?: count,
  prompt_eval_duration?: count, eval_count?: count, eval_duration?: count, ...warnings}
chunk_usage = {usage?: Usage | null "So far, with continuous_usage_stats; of all in the last one,
  with include_usage."}
)";

constexpr std::string_view kShared = R"(
Error = {error: {message: text, type: 'invalid_request_error' | 'permission_error' |
  'rate_limit_error' | 'server_error' | 'not_supported_error', param: string | null "The path of
  the field at fault.", code: string | null}}
Usage = {prompt_tokens: count, completion_tokens: count, total_tokens: count,
  prompt_tokens_details?: {cached_tokens: count},
  completion_tokens_details?: {reasoning_tokens?: count "Of a chat whose template writes
  reasoning.", accepted_prediction_tokens?: count "Of a request with a prediction: tokens drafted
  from it that the model drew.", rejected_prediction_tokens?: count "Of a request with a
  prediction: the other tokens drafted from it."}}
StopReason = integer | string | null "The stop string or stop token id that ended the text."
Timings = {queue_ms: number 0.., ttft_ms: number 0.., cache_n: count, prompt_n: count,
  prompt_ms: number 0.., prompt_per_token_ms: number 0.., prompt_per_second: number 0..,
  predicted_n: count, predicted_ms: number 0.., predicted_per_token_ms: number 0..,
  predicted_per_second: number 0.., draft_n?: integer 1.. "Tokens drafted by speculative decoding,
  if any.", draft_n_accepted?: count "Drafted tokens that the model drew."} "What a choice took,
  when timings asked for it."
Seed = integer "The seed that gives this answer again."
TokenIds = [count] "Of the text; with return_token_ids, or when the model has no tokenizer."
PromptLogprobs = [{/^[0-9]+$/: {logprob: number ..0, rank: integer 1.. | null,
  decoded_token: string | null}} | null] "One entry a token, by its id; null for the first."
CompletionLogprobs = {tokens: [string], token_logprobs: [number ..0 | null],
  top_logprobs: [{*: number ..0} | null], text_offset: [count]}
ChatLogprobs = {refusal: null, content: [{...token, top_logprobs: [{...token}]}]}
Probability = {...token_id, ...token, top_logprobs: [{...token_id, ...token}]}
)";

// Of completions and chats, and of Paceline's own /generate.
constexpr std::string_view kTexts = R"(
CompletionChoice = {...index, ...text, logprobs: CompletionLogprobs | null, ...finish, ...ending}
Completion = {id: /^cmpl-/, object: 'text_completion', ...head, ...warnings,
  choices: [CompletionChoice]+, usage: Usage}
CompletionChunkChoice = {...index, ...text, logprobs: CompletionLogprobs | null, ...pieces,
  ...chunk_finish, ...ending?}
CompletionChunk = {id: /^cmpl-/, object: 'text_completion', ...head, ...warnings,
  choices: [CompletionChunkChoice], ...chunk_usage}
ToolCall = {...function}
ToolCallDelta = {index: count, id?: string, type?: 'function', function: {name?: string,
  arguments: string}} "id, type and name come in the first delta of a call, arguments in pieces."
ChatChoice = {...index, message: {role: 'assistant', content: string | null "null beside tool
  calls alone.", ...reasoning, tool_calls?: [ToolCall]+, refusal: null}, logprobs: ChatLogprobs |
  null, ...chat_finish, ...ending}
ChatCompletion = {id: /^chatcmpl-/, object: 'chat.completion', ...head, ...warnings,
  choices: [ChatChoice]+, usage: Usage}
ChatChunkChoice = {...index, delta: {role?: 'assistant', content?: string, ...reasoning,
  tool_calls?: [ToolCallDelta]+}, logprobs: ChatLogprobs | null, ...pieces, finish_reason: 'stop'
  | 'length' | 'tool_calls' | null "null until the choice ends.", ...ending?}
ChatCompletionChunk = {id: /^chatcmpl-/, object: 'chat.completion.chunk', ...head, ...warnings,
  choices: [ChatChunkChoice], ...chunk_usage}
Generated = {id: /^gen-/, model: string, ...text, ...native_logprobs, ...finish,
  stop_reason: StopReason, prompt_logprobs?: PromptLogprobs, token_ids: TokenIds,
  timings?: Timings, seed: Seed, usage: Usage}
GeneratedPiece = {id: /^gen-/, ...text, ...native_logprobs, ...pieces, ...chunk_finish,
  ...ending?, usage?: Usage}
GeneratedUsage = {id: /^gen-/, object: 'text_completion', ...head, choices: [], usage: Usage}
GeneratedChunk = GeneratedPiece | GeneratedUsage "A piece of the text, or, with include_usage,
  what ends the stream."
)";

// Of the Responses API.
constexpr std::string_view kResponses = R"(
OutputItem = {id: string, type: 'message' | 'reasoning' | 'function_call' | 'custom_tool_call' |
  'compaction', role?: 'assistant', status?: 'in_progress' | 'completed' | 'incomplete',
  content?: [{type: 'output_text' | 'reasoning_text', text: string, annotations?: array,
  logprobs?: array}], summary?: [{type: 'summary_text', text: string}], encrypted_content?: string
  | null "Sealed by this server.", call_id?: string, name?: string, arguments?: string,
  input?: string}
ResponseUsage = {input_tokens: integer, output_tokens: integer, total_tokens: integer,
  input_tokens_details: {cached_tokens?: integer, cache_write_tokens?: integer},
  output_tokens_details: {reasoning_tokens?: integer}}
Response = {id: /^resp_/, object: 'response', created_at: integer, completed_at?: integer | null,
  status: 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled',
  background?: boolean, model: string, error: {code?: string, message?: string} | null,
  incomplete_details: {reason?: 'max_output_tokens'} | null, output: [OutputItem],
  usage: ResponseUsage | null, service_tier?: 'default', temperature?: number, top_p?: number,
  ...warnings, instructions?: any "This and what follows is the request's.",
  max_output_tokens?: any, max_tool_calls?: any, parallel_tool_calls?: any,
  previous_response_id?: any, prompt_cache_key?: any, prompt_cache_retention?: any,
  reasoning?: any, safety_identifier?: any, store?: any, text?: any, tool_choice?: any,
  tools?: any, top_logprobs?: any, truncation?: any, user?: any, metadata?: any}
ResponseEvent = {type: /^response\./, sequence_number: integer, response?: Response,
  item?: OutputItem, output_index?: integer, item_id?: string, content_index?: integer,
  summary_index?: integer, part?: object, delta?: string, text?: string, arguments?: string,
  input?: string, logprobs?: array}
CompactedResponse = {id: string, object: 'response.compaction', created_at: integer,
  output: [OutputItem], usage: ResponseUsage}
InputTokens = {object: 'response.input_tokens', input_tokens: integer}
ItemList = {object: 'list', data: [{id: any, ...}], first_id: string | null, last_id: string | null,
  has_more: boolean}
DeletedResponse = {id: string, object: 'response', deleted: true}
)";

// Of Anthropic's API.
constexpr std::string_view kAnthropic = R"(
AnthropicError = {type: 'error', request_id?: string, error: {type: 'invalid_request_error' |
  'authentication_error' | 'permission_error' | 'not_found_error' | 'request_too_large' |
  'rate_limit_error' | 'timeout_error' | 'api_error' | 'overloaded_error', message: text}}
AnthropicUsage = {input_tokens: count "Without those of the cache.",
  cache_creation_input_tokens: 0, cache_read_input_tokens: count, output_tokens: count,
  output_tokens_details?: {thinking_tokens: count}}
AnthropicBlock = {type: 'thinking' | 'text' | 'tool_use', text?: string, thinking?: string,
  signature?: string "The reasoning, sealed.", id?: string, name?: string, input?: object}
AnthropicMessage = {id: /^msg_/, type: 'message', role: 'assistant', model: string, ...warnings,
  content: [AnthropicBlock], ...anthropic_stop, usage: AnthropicUsage}
AnthropicEvent = {type: 'message_start' | 'content_block_start' | 'content_block_delta' |
  'content_block_stop' | 'message_delta' | 'message_stop' | 'ping', message?: AnthropicMessage,
  index?: count, content_block?: AnthropicBlock, usage?: AnthropicUsage,
  delta?: {type?: 'thinking_delta' | 'signature_delta' | 'text_delta' | 'input_json_delta',
  thinking?: string, signature?: string, text?: string, partial_json?: string,
  ...anthropic_stop?}}
AnthropicCount = {input_tokens: count}
)";

// Of llama.cpp's routes.
constexpr std::string_view kLlama = R"(
LlamaSettings = {n_ctx: integer, model: string, n_predict: integer, max_tokens: integer,
  seed: Seed, temperature: number, dynatemp_range: 0, dynatemp_exponent: 1, top_k: integer,
  top_p: number, min_p: number, xtc_probability: 0, typical_p: number, top_n_sigma: number,
  repeat_last_n: -1 "All tokens.", repeat_penalty: number, presence_penalty: number,
  frequency_penalty: number, dry_multiplier: 0, mirostat: 0, samplers: [string], stop: [string],
  ignore_eos: boolean, n_keep: 0, n_discard: 0, min_keep: 0, n_probs: count, grammar: '',
  stream: boolean, timings_per_token: false, post_sampling_probs: false,
  speculative.n_max: integer, speculative.n_min: 0} "The options in use, and further ones of
  llama.cpp with their values of off."
LlamaResult = {...index, content: string, tokens: TokenIds, id_slot: -1 "There are no slots.",
  stop: true, model: string, tokens_predicted: count, tokens_evaluated: count "Of the prompt.",
  tokens_cached: count "Of the prompt, from the cache.", generation_settings: LlamaSettings,
  prompt: string "With the special tokens that were added.", has_new_line: boolean,
  truncated: boolean "The context was full.", stop_type: 'eos' | 'limit' | 'word',
  stopping_word: string, seed: Seed, timings: Timings, prompt_logprobs?: PromptLogprobs,
  completion_probabilities?: [Probability]}
LlamaResults = LlamaResult | [LlamaResult] "One object; of several prompts or choices an array of
  them."
LlamaPiece = {...index, content: string, tokens: TokenIds, stop: false,
  completion_probabilities?: [Probability]}
LlamaChunk = LlamaPiece | LlamaResult "A piece of the text, or the result that ends it."
LlamaProps = {default_generation_settings: {n_ctx: integer, params: LlamaSettings},
  total_slots: integer "Requests computed at once (--max-num-seqs).",
  max_num_batched_tokens: integer "Tokens of a step (--max-num-batched-tokens).",
  max_step_slowdown: number "How much prompts may slow a step of running answers
  (--max-step-slowdown); 0: no limit.",
  device: string "The processor or the GPU that computes.", model_alias: string, model_path: string, chat_template: string "Empty when the model has none.", bos_token?: string,
  eos_token?: string, modalities: {vision: false, audio: false}, build_info: string}
LlamaSlots = [{id: integer, id_task: integer, n_ctx: integer, speculative: boolean "Whether the
  server has a drafter.", is_processing: boolean, next_token?: {has_next_token: boolean,
  n_remain: integer, n_decoded: integer} "While it is processing."}] "One for each request that
  can be computed at once."
)";

// Of Ollama's.
constexpr std::string_view kOllama = R"(
OllamaError = {error: text}
OllamaCalls = [{id: string, function: {index: count, name: string, arguments: object}}]+
OllamaChat = {...ollama, message: {role: 'assistant', content: string, thinking?: text,
  tool_calls?: OllamaCalls}} "One line of a stream, or all of the answer."
OllamaGenerated = {...ollama, response: string, thinking?: text, context?: [count] "The tokens of
  prompt and answer, of a chat's."} "One line of a stream, or all of the answer."
OllamaEmbeddings = {model: string, embeddings: [[number]], prompt_eval_count?: count}
OllamaEmbedding = {embedding: [number]}
OllamaDetails = {parent_model: '', format: string, family: string, families: [string],
  parameter_size: /^([0-9.]+[BM])?$/, quantization_level: string, context_length?: integer 1..,
  embedding_length?: integer 1..}
OllamaModel = {parameters?: string "What the model's files set, one a line.", template?: string
  "Jinja; empty when the model has none.", details: OllamaDetails, model_info: object,
  capabilities?: ['completion' | 'tools' | 'thinking' | 'insert' | 'embedding'],
  modified_at: string} "All of it once the model is loaded."
OllamaModels = {models: [{name: /:/, model: /:/, size: count "Bytes of the weights in memory.",
  digest: string, details: OllamaDetails, modified_at?: string "When the server started.",
  expires_at?: string, size_vram?: count, context_length?: integer 1..}]}
OllamaVersion = {version: /^[0-9]+[.][0-9]+[.][0-9]+-paceline[.]/}
)";

constexpr std::string_view kOthers = R"(
Classifications = {id: /^classify-/, object: 'list', ...head, data: [{object: 'classification',
  index: count, token_id: integer | null, token: string | null, label: string | null "The
  likeliest of the labels.", scores: [number] | null, labels?: [string] "The model's own, where
  its head classifies.", logits?: [number]}], usage: Usage}
Decisions = {answers: [{type: 'predicate' | 'choice' | 'score', name: string | null,
  probability?: number 0..1 "Of a predicate.", choice?: string | boolean "Of a choice: the
  likeliest value.", score?: number 0.. "The expected level, counted from 0.", ...confidence,
  ...evidence, probabilities?: [{label?: string "Of a level.", value: string | boolean | integer,
  probability: number 0..1}]}]+ "In the order of the questions.", model: string,
  usage: {input_tokens: integer 1.. "The input counts once, and so does every question.",
  input_tokens_details: {cached_tokens: count, cache_write_tokens: count}, output_tokens: 0,
  output_tokens_details: {reasoning_tokens: 0}, total_tokens: integer 1..}}
SystemOne = {model: string, answers: {*: {type: 'noul' | 'choice' | 'score', noul?: number 0..1
  "The probability of yes.", choice?: string, score?: number 0.., legend?: {*: string},
  ...confidence, ...evidence, probabilities?: {*: number 0..1}}} "By the names of the questions.",
  usage: {input_tokens: integer 1.., output_tokens: 0}}
Embeddings = {id: /^embd-/, object: 'list', ...head, data: [{object: 'embedding', index: count,
  embedding: [number]+ | /^[A-Za-z0-9+/]+={0,2}$/ "Numbers, or the base64 of their float32
  bytes."}], usage: Usage}
PairScores = {id: /^score-/, object: 'list', ...head, data: [{object: 'score', index: count,
  score: number}], usage: Usage}
Reranked = {id: /^rerank-/, object: 'list', ...head, results: [{index: count "Of the document.",
  relevance_score: number, document?: {text: string}}], usage: Usage}
TokenScores = {id: /^score-/, object: 'list', ...head, data: [{object: 'score', index: count,
  token_ids: [count], token_logprobs: [number ..0 | null], logprob: number ..0 "Their sum.",
  prompt_logprobs?: PromptLogprobs}], usage: Usage}
Tokens = {count: count, max_model_len: integer, tokens: [count | {...token_id, piece: string |
  [integer 0..255] "Its text, or its bytes where they are no well-formed UTF-8."}],
  token_strs?: [string]}
Text = {prompt: string, content: string}
Prompt = {prompt: string}
Model = {...model}
Models = {object: 'list', data: [Model]+}
ModelStates = {object: 'list', data: [{...model, status: {value: 'unloaded' | 'loading' | 'loaded'
  | 'unloading', failed?: true "The last load failed.", message?: string "Why it failed."},
  in_cache: true}]+}
Success = {success: true}
Requests = {object: 'list', data: [{sequence: integer, id: string "Of the answer.", choice: count,
  state: 'running' | 'waiting', prompt_tokens: integer, cached_tokens: integer,
  output_tokens: integer, max_tokens: integer, blocks: integer, preemptions: integer,
  queue_s: number, age_s: number}] "Running and waiting sequences.", engine: {step: integer,
  num_running: integer, num_waiting: integer, max_num_seqs: integer, max_queued: integer,
  max_model_len: integer, tokens_per_second: number, ttft_p50_s: number | null, ttft_p99_s: number
  | null, step_age_s: number, prefix_queries: integer, prefix_hits: integer, preemptions: integer,
  max_drafted_tokens: integer, drafted_tokens: integer, accepted_tokens: integer},
  pools: [{num_blocks: integer, block_size: integer | null, window: integer | null, blocks:
  [[integer]] "[holder, number of blocks], in their order."}], steps: [{step: integer, ms: number,
  slices: [[integer]] "[sequence, rows]", drafts?: [[integer]] "[sequence, drafted rows,
  accepted]"}] "The last steps."}
OpenApi = {openapi: string, info: object, security: array, paths: object, components: object}
Version = {version: string, commit: string}
Status = {status: 'ok'}
)";

}  // namespace

std::string_view response_schemas_json() {
  static const std::string all = [] {
    std::string text;
    for (const std::string_view part :
         {kParts, kShared, kTexts, kResponses, kAnthropic, kLlama, kOllama, kOthers}) {
      text += part;
    }
    return schemas_json(text);
  }();
  return all;
}

}  // namespace paceline
