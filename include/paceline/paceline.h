/* Paceline's API in C: models that generate, chat, classify, decide, embed and score, from any
 * thread.
 *
 * Calls return a status; what went wrong is said by paceline_last_error() of the same thread. Any
 * thread may call with any model: requests of all threads are computed together, each with the bits
 * that it has alone. Strings are UTF-8 and end with a zero byte; those that are returned belong to
 * the object they are part of. Results are freed by the paceline_free_... function of their type,
 * which takes NULL too.
 *
 * Structures that the caller fills begin with their size, which paceline_..._init() sets with
 * everything else: a library that is newer than the caller sees what the caller didn't know.
 * Structures that the library fills only grow at their end. */
#ifndef PACELINE_PACELINE_H_
#define PACELINE_PACELINE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PACELINE_API __attribute__((visibility("default")))
#else
#define PACELINE_API
#endif

/* --- Versions and errors ------------------------------------------------------------------- */

/* Of the program, e.g. "0.9.0". */
PACELINE_API const char* paceline_version(void);

typedef enum paceline_status {
  PACELINE_OK = 0,
  PACELINE_INVALID = 1,     /* an argument that can't be honoured as written */
  PACELINE_NOT_FOUND = 2,   /* a file, a model, a tensor, an adapter that isn't there */
  PACELINE_UNSUPPORTED = 3, /* well formed, but nothing here implements it */
  PACELINE_EXHAUSTED = 4,   /* a limit or a resource ran out */
  PACELINE_CORRUPT = 5,     /* a file whose content contradicts itself */
  PACELINE_NUMERICAL = 6,   /* NaN, or nothing left to draw from */
  PACELINE_CANCELLED = 7,   /* the caller asked for it, or the model was closed */
  PACELINE_INTERNAL = 8     /* a bug of Paceline */
} paceline_status;

/* "not_found", ... */
PACELINE_API const char* paceline_status_name(paceline_status status);
/* The message of the last call of this thread that failed: where, what was found, what was
 * expected, and what would fix it. Valid until the thread's next call. "" before the first one. */
PACELINE_API const char* paceline_last_error(void);

/* --- Models -------------------------------------------------------------------------------- */

typedef struct paceline_model paceline_model;
/* Ends calls of other threads: see paceline_cancel(). */
typedef struct paceline_cancellation paceline_cancellation;

/* Values of optional members that are left to the model. */
#define PACELINE_DEFAULT INT64_MIN
#define PACELINE_DEFAULT_FLOAT (-1e30f)

typedef struct paceline_load_options {
  size_t size;
  const char* model;              /* a directory, a GGUF file, or org/name in the local cache */
  const char* dtype;              /* "auto", "float32", "float16", "bfloat16" */
  const char* quantize;           /* "none", "q4", "q8" */
  const char* kv_cache_dtype;     /* "auto", "float32", "float16", "bfloat16", "int8" */
  const char* device;             /* "auto", "cpu", "cuda", "cuda:1" */
  const char* chat_template;      /* a file or a name; NULL: the model's */
  const char* weights_cache;      /* a directory; NULL: none */
  const char* speculative_model;  /* drafts for it; NULL: none */
  const char* speculative_method; /* "model", "ngram"; NULL: none */
  int32_t num_threads;            /* 0: one a core */
  int32_t enable_lora;            /* room for adapters that come later */
  int64_t max_model_len;          /* context in tokens; PACELINE_DEFAULT: the model's */
  int64_t max_num_seqs;           /* sequences computed at once */
  int64_t max_num_batched_tokens; /* rows of a step; 0: the device's own */
  int64_t block_size;             /* tokens of a cache block */
  int64_t kv_cache_memory_bytes;  /* PACELINE_DEFAULT: what fits */
  int64_t memory_limit_bytes;     /* PACELINE_DEFAULT: none */
  int32_t prefix_caching;         /* 1: common prefixes are computed once */
  int32_t dummy_weights;          /* 1: random weights from config.json alone */
  /* Called by the loading thread before each tensor is read; total is 0 for dummy weights. */
  void (*progress)(uint64_t done_bytes, uint64_t total_bytes, void* user);
  void* progress_user;
  const char* backend; /* "native", "transformers", "mlx_lm": docs/backends.md; NULL: native */
  const char* python;  /* that has the backend's package; NULL: python3 */
  int64_t backend_timeout_s; /* a backend that says nothing for so long is ended */
} paceline_load_options;

PACELINE_API void paceline_load_options_init(paceline_load_options* options);

/* *model is set where the call succeeds, else it is NULL. */
PACELINE_API paceline_status paceline_load(const paceline_load_options* options,
                                           paceline_model** model);
/* Ends what runs as cancelled, waits for the calls of other threads, and frees weights and cache.
 * The handle stays valid; calls with it fail as PACELINE_INVALID. May be called twice, and not by a
 * callback. */
PACELINE_API paceline_status paceline_close(paceline_model* model);
/* Closes it, and frees the handle: no thread may use it any more. */
PACELINE_API void paceline_free_model(paceline_model* model);

typedef struct paceline_model_info {
  const char* path;
  const char* family; /* model_type */
  const char* dtype;
  const char* weight_format;
  const char* chat_template; /* its source; "" without one */
  int64_t num_layers;
  int64_t vocab_size;
  int64_t max_model_len;
  int64_t num_parameters;
  uint64_t weight_bytes;
  uint64_t kv_cache_bytes;
  int32_t has_tokenizer;
  int32_t has_chat_template;
} paceline_model_info;

PACELINE_API paceline_status paceline_get_model_info(paceline_model* model,
                                                     const paceline_model_info** info);
PACELINE_API void paceline_free_model_info(const paceline_model_info* info);

typedef struct paceline_device_info {
  const char* name;
  const char* instruction_set;
  int32_t num_threads;
  uint64_t total_memory_bytes;
  uint64_t free_memory_bytes;
} paceline_device_info;

/* Of what would compute with these options; no model is loaded. */
PACELINE_API paceline_status paceline_get_device_info(const paceline_load_options* options,
                                                      const paceline_device_info** info);
PACELINE_API void paceline_free_device_info(const paceline_device_info* info);

/* --- Memory and figures -------------------------------------------------------------------- */

typedef struct paceline_memory {
  uint64_t active_bytes;
  uint64_t peak_bytes;
  uint64_t cached_bytes;
} paceline_memory;

PACELINE_API paceline_status paceline_memory_use(paceline_model* model, paceline_memory* use);
PACELINE_API paceline_status paceline_clear_cache(paceline_model* model);
PACELINE_API paceline_status paceline_reset_peak(paceline_model* model);
/* Requests that would need more fail as PACELINE_EXHAUSTED. UINT64_MAX: no limit. The old limit
 * goes into *old_bytes unless it is NULL. */
PACELINE_API paceline_status paceline_set_memory_limit(paceline_model* model, uint64_t bytes,
                                                       uint64_t* old_bytes);
/* Freed blocks beyond it go back to the system at once. */
PACELINE_API paceline_status paceline_set_cache_limit(paceline_model* model, uint64_t bytes,
                                                      uint64_t* old_bytes);

typedef struct paceline_metrics {
  int64_t prompt_tokens;
  int64_t completion_tokens;
  int64_t cached_tokens;
  int64_t preemptions;
  int64_t drafted_tokens;
  int64_t accepted_tokens;
  double prefill_tokens_per_second;
  double decode_tokens_per_second;
  double time_to_first_token_seconds;
  uint64_t peak_memory_bytes;
} paceline_metrics;

/* Of the last call to end that computed something. */
PACELINE_API paceline_status paceline_get_metrics(paceline_model* model, paceline_metrics* metrics);

/* --- Tokens and templates ------------------------------------------------------------------ */

/* `ids` is NULL where the call fails. */
PACELINE_API paceline_status paceline_tokenize(paceline_model* model, const char* text,
                                               size_t text_size, int32_t add_special_tokens,
                                               const int32_t** ids, size_t* num_ids);
PACELINE_API void paceline_free_ids(const int32_t* ids);
/* `*text` has `*text_size` bytes and a zero byte after them; *text_size may be NULL. */
PACELINE_API paceline_status paceline_detokenize(paceline_model* model, const int32_t* ids,
                                                 size_t num_ids, int32_t skip_special_tokens,
                                                 const char** text, size_t* text_size);
/* The prompt of a chat. `messages_json` is an array of messages as OpenAI's API has them;
 * `tools_json` an array of tools, or NULL. */
PACELINE_API paceline_status paceline_apply_chat_template(paceline_model* model,
                                                          const char* messages_json,
                                                          const char* tools_json, const char** text,
                                                          size_t* text_size);
PACELINE_API void paceline_free_text(const char* text);

/* --- Adapters ------------------------------------------------------------------------------ */

/* Loads a LoRA adapter (a directory as PEFT or mlx-lm writes it, or a GGUF file) that requests
 * name; replaces one of the same name. The model was loaded with enable_lora. */
PACELINE_API paceline_status paceline_load_adapter(paceline_model* model, const char* name,
                                                   const char* path, double scale);
PACELINE_API paceline_status paceline_unload_adapter(paceline_model* model, const char* name);

/* --- Requests ------------------------------------------------------------------------------ */

PACELINE_API paceline_cancellation* paceline_new_cancellation(void);
/* Any thread. Calls that were given it end within one step: generations with what they have, the
 * others as PACELINE_CANCELLED. So do later ones. */
PACELINE_API void paceline_cancel(paceline_cancellation* cancellation);
/* Calls that were given it may go on. */
PACELINE_API void paceline_free_cancellation(paceline_cancellation* cancellation);

/* For a program with a loop of its own: it hears which generations have something to read. */
typedef struct paceline_queue paceline_queue;

PACELINE_API paceline_status paceline_new_queue(paceline_queue** queue);
/* Readable while there are tags to take: an eventfd for poll, epoll or an event loop. */
PACELINE_API int paceline_queue_descriptor(const paceline_queue* queue);
/* Takes at most `most` tags of generations that may have something, and returns their number. Of
 * each of them the caller then reads until it is PACELINE_WAITING or PACELINE_FINISHED. */
PACELINE_API size_t paceline_take_ready(paceline_queue* queue, int64_t* tags, size_t most);
/* Generations that were given it may go on. */
PACELINE_API void paceline_free_queue(paceline_queue* queue);

/* Text, or token ids where `ids` isn't NULL, which are used as they are. */
typedef struct paceline_prompt {
  const char* text;
  size_t text_size;
  const int32_t* ids;
  size_t num_ids;
} paceline_prompt;

PACELINE_API paceline_prompt paceline_text_prompt(const char* text);

typedef enum paceline_constraint {
  PACELINE_FREE = 0,
  PACELINE_JSON_OBJECT = 1, /* any JSON object */
  PACELINE_JSON_SCHEMA = 2, /* JSON that the schema accepts */
  PACELINE_REGEX = 3,       /* a whole match */
  PACELINE_GRAMMAR = 4,     /* GBNF, or Lark's notation */
  PACELINE_CHOICE = 5       /* one of the choices */
} paceline_constraint;

typedef struct paceline_generate_options {
  size_t size;
  /* PACELINE_DEFAULT, PACELINE_DEFAULT_FLOAT: as the model's generation_config.json says. */
  int64_t max_tokens;
  float temperature; /* 0 is greedy */
  float top_p;
  float min_p;
  float typical_p;
  float repetition_penalty;
  float frequency_penalty;
  float presence_penalty;
  int64_t top_k;
  int64_t min_tokens;
  int64_t seed; /* PACELINE_DEFAULT: random; the result has it */
  int32_t ignore_eos;
  int32_t skip_special_tokens;
  int32_t add_special_tokens; /* to a text prompt */
  int32_t num_top_logprobs;   /* -1: no log-probabilities; else alternatives beside each, 0 to 20 */
  int32_t prompt_logprobs;
  int32_t priority; /* smaller is served first */
  const char* const* stop;
  size_t num_stop;
  const int32_t* stop_token_ids;
  size_t num_stop_token_ids;
  const int32_t* allowed_token_ids; /* only these are drawn; none: any */
  size_t num_allowed_token_ids;
  const int32_t* biased_token_ids; /* their logits get token_biases added */
  const float* token_biases;
  size_t num_biased_tokens;
  int32_t constraint;          /* a paceline_constraint */
  const char* constraint_text; /* a schema, an expression, a grammar */
  const char* const* choices;
  size_t num_choices;
  const char* adapter;    /* NULL: none */
  const char* cache_salt; /* shares cached prefixes only with requests of the same salt */
  const paceline_cancellation* cancellation;
  const paceline_queue* queue;    /* hears of the generation; NULL: none */
  int64_t tag;                    /* its name there */
  int32_t include_stop_in_output; /* the text ends after the stop string, not before it */
  int32_t mlx_sampler_order;      /* top-p, min-p, top-k, temperature instead of the default */
} paceline_generate_options;

PACELINE_API void paceline_generate_options_init(paceline_generate_options* options);

typedef enum paceline_finish {
  PACELINE_FINISH_NONE = 0,
  PACELINE_FINISH_STOP = 1,
  PACELINE_FINISH_LENGTH = 2,
  PACELINE_FINISH_CANCELLED = 3
} paceline_finish;

typedef struct paceline_top_logprob {
  int32_t id;
  float logprob;
  const char* token;
} paceline_top_logprob;

typedef struct paceline_logprob {
  int32_t id;
  int32_t has_logprob; /* 0 of a prompt's first token */
  float logprob;
  const char* token; /* "" without a tokenizer */
  const paceline_top_logprob* top;
  size_t num_top;
} paceline_logprob;

typedef struct paceline_usage {
  int64_t prompt_tokens;
  int64_t completion_tokens;
  int64_t cached_tokens;
  int64_t drafted_tokens;
  int64_t accepted_tokens;
  int64_t reasoning_tokens;
} paceline_usage;

typedef struct paceline_tool_call {
  const char* id;
  const char* name;
  const char* arguments; /* JSON of an object */
} paceline_tool_call;

/* In a list, `status` says whether there is one; else `error` says why not. */
typedef struct paceline_completion {
  paceline_status status;
  paceline_finish finish;
  const char* error;
  const char* text; /* NULL without a tokenizer */
  size_t text_size;
  const int32_t* token_ids;
  size_t num_token_ids;
  const paceline_logprob* logprobs; /* one a token, when asked for */
  size_t num_logprobs;
  const paceline_logprob* prompt_logprobs;
  size_t num_prompt_logprobs;
  paceline_usage usage;
  double queue_seconds;
  double time_to_first_token_seconds;
  double output_seconds;
  uint64_t seed;
  int64_t stop_token;      /* that ended it; -1: none */
  const char* stop_string; /* that ended it; NULL: none */
  /* Of chats whose template writes reasoning or tool calls; else NULL and 0. */
  const char* reasoning;
  const char* content;
  const paceline_tool_call* tool_calls;
  size_t num_tool_calls;
} paceline_completion;

typedef struct paceline_completions {
  const paceline_completion* items;
  size_t count;
} paceline_completions;

PACELINE_API void paceline_free_completions(const paceline_completions* completions);

/* A generation in progress. One thread at a time, except paceline_cancel_generation(). */
typedef struct paceline_generation paceline_generation;

PACELINE_API paceline_status paceline_generate(paceline_model* model, paceline_prompt prompt,
                                               const paceline_generate_options* options,
                                               paceline_generation** generation);

typedef enum paceline_tool_choice {
  PACELINE_TOOLS_AUTO = 0,
  PACELINE_TOOLS_NONE = 1,
  PACELINE_TOOLS_REQUIRED = 2,
  PACELINE_TOOLS_NAMED = 3
} paceline_tool_choice;

typedef struct paceline_chat_options {
  size_t size;
  const char* tools_json;       /* an array as OpenAI's API has them; NULL: none */
  const char* template_json;    /* further variables of the template, an object; NULL: none */
  int32_t tool_choice;          /* a paceline_tool_choice */
  const char* tool_name;        /* of PACELINE_TOOLS_NAMED */
  int32_t parallel_tool_calls;  /* 1: any number of calls */
  const char* reasoning_effort; /* "none", "low", "medium", "high"; NULL: the template's own */
} paceline_chat_options;

PACELINE_API void paceline_chat_options_init(paceline_chat_options* options);

/* Answers a conversation: an array of messages as OpenAI's API has them. `chat` may be NULL. */
PACELINE_API paceline_status paceline_chat(paceline_model* model, const char* messages_json,
                                           const paceline_chat_options* chat,
                                           const paceline_generate_options* options,
                                           paceline_generation** generation);

/* The next piece of the text, *piece of *piece_size bytes (well-formed UTF-8, a zero byte after
 * it), valid until the generation's next call; NULL at the end. Waits for it. */
PACELINE_API paceline_status paceline_next_piece(paceline_generation* generation,
                                                 const char** piece, size_t* piece_size);
typedef enum paceline_progress {
  PACELINE_PIECE = 0,   /* *piece is the next one */
  PACELINE_WAITING = 1, /* there is none yet */
  PACELINE_FINISHED = 2
} paceline_progress;

/* The same without waiting. */
PACELINE_API paceline_status paceline_poll_piece(paceline_generation* generation,
                                                 paceline_progress* progress, const char** piece,
                                                 size_t* piece_size);
/* Runs to the end. The completion belongs to the generation. */
PACELINE_API paceline_status paceline_finish_generation(paceline_generation* generation,
                                                        const paceline_completion** completion);
/* Any thread. It ends within one step as PACELINE_FINISH_CANCELLED. */
PACELINE_API void paceline_cancel_generation(paceline_generation* generation);
/* One that hasn't ended is cancelled. */
PACELINE_API void paceline_free_generation(paceline_generation* generation);

/* Gets every piece on the calling thread; returns 0 to go on, anything else to cancel. */
typedef int (*paceline_on_piece)(const char* piece, size_t piece_size, void* user);

/* The same in one call: *completions has one. `on_piece` may be NULL. */
PACELINE_API paceline_status paceline_generate_all(paceline_model* model, paceline_prompt prompt,
                                                   const paceline_generate_options* options,
                                                   paceline_on_piece on_piece, void* user,
                                                   const paceline_completions** completions);

/* Many prompts at once, results in their order; one that fails fails alone. `options` has one
 * element for each prompt, or is NULL. */
PACELINE_API paceline_status paceline_batch_generate(
    paceline_model* model, const paceline_prompt* prompts, size_t count,
    const paceline_generate_options* const* options, const paceline_completions** completions);

/* What all requests of the calls below have in common. */
typedef struct paceline_request_options {
  size_t size;
  const char* adapter;        /* NULL: none */
  const char* cache_salt;     /* NULL: none */
  int32_t priority;           /* smaller is served first */
  int32_t add_special_tokens; /* to a text */
  const paceline_cancellation* cancellation;
} paceline_request_options;

PACELINE_API void paceline_request_options_init(paceline_request_options* options);

typedef struct paceline_classification {
  paceline_status status;
  const char* error;
  int64_t token_id;    /* the likeliest next token; -1: none was asked for */
  const char* label;   /* the best one; NULL without labels */
  const float* scores; /* of the labels, in their order */
  size_t num_scores;
  const char* const* labels; /* those of the model's head, where it classifies */
  size_t num_labels;
} paceline_classification;

typedef struct paceline_classifications {
  const paceline_classification* items;
  size_t count;
} paceline_classifications;

/* Labels continue the prompt; without any the model's head classifies, or its next token is what
 * is asked for. `options` may be NULL, as below. */
PACELINE_API paceline_status paceline_classify(paceline_model* model,
                                               const paceline_prompt* prompts, size_t count,
                                               const char* const* labels, size_t num_labels,
                                               const paceline_request_options* options,
                                               const paceline_classifications** classifications);
PACELINE_API void paceline_free_classifications(const paceline_classifications* classifications);

typedef struct paceline_vector {
  paceline_status status;
  const char* error;
  const float* values;
  size_t num_values;
  int64_t prompt_tokens;
} paceline_vector;

typedef struct paceline_vectors {
  const paceline_vector* items;
  size_t count;
} paceline_vectors;

/* One vector a text. `dimensions` 0: the model's. */
PACELINE_API paceline_status paceline_embed(paceline_model* model, const paceline_prompt* prompts,
                                            size_t count, int64_t dimensions,
                                            const paceline_request_options* options,
                                            const paceline_vectors** vectors);
/* How well each document answers the query: one vector, an element for each document. */
PACELINE_API paceline_status paceline_score_pairs(paceline_model* model, const char* query,
                                                  const char* const* documents, size_t count,
                                                  const paceline_request_options* options,
                                                  const paceline_vectors** scores);
PACELINE_API void paceline_free_vectors(const paceline_vectors* vectors);

typedef struct paceline_logprobs {
  const paceline_logprob* items;
  size_t count;
} paceline_logprobs;

/* The log-probability of each token of the prompt given those before it. */
PACELINE_API paceline_status paceline_score(paceline_model* model, paceline_prompt prompt,
                                            int32_t num_top_logprobs,
                                            const paceline_request_options* options,
                                            const paceline_logprobs** logprobs);
PACELINE_API void paceline_free_logprobs(const paceline_logprobs* logprobs);

typedef enum paceline_question_kind {
  PACELINE_PREDICATE = 0, /* whether something is true */
  PACELINE_QUESTION_CHOICE = 1,
  PACELINE_QUESTION_SCORE = 2 /* one of several levels in ascending order */
} paceline_question_kind;

typedef struct paceline_question {
  int32_t kind; /* a paceline_question_kind */
  const char* instructions;
  const char* const* values;       /* of a choice or a score; of a predicate none */
  const char* const* descriptions; /* of the values; NULL: none */
  size_t num_values;
} paceline_question;

typedef struct paceline_answer {
  const float* probabilities; /* of the values; of a predicate those of yes and of no */
  size_t num_probabilities;
  size_t best;
  float score;
  float confidence;
} paceline_answer;

typedef struct paceline_decision {
  paceline_status status;
  const char* error;
  const paceline_answer* answers; /* in the order of the questions */
  size_t num_answers;
} paceline_decision;

typedef struct paceline_decisions {
  const paceline_decision* items;
  size_t count;
} paceline_decisions;

/* The same questions about each input. */
PACELINE_API paceline_status paceline_decide(paceline_model* model, const char* const* inputs,
                                             size_t count, const paceline_question* questions,
                                             size_t num_questions, float temperature,
                                             const paceline_request_options* options,
                                             const paceline_decisions** decisions);
PACELINE_API void paceline_free_decisions(const paceline_decisions* decisions);

/* --- Sequences: continuous batching by the caller -------------------------------------------- */

/* A model and a cache of n_ctx tokens that its sequences share. One thread at a time. */
typedef struct paceline_context paceline_context;

PACELINE_API paceline_status paceline_new_context(const paceline_load_options* options,
                                                  int64_t n_ctx, paceline_context** context);
PACELINE_API void paceline_free_context(paceline_context* context);
PACELINE_API int64_t paceline_context_vocab_size(const paceline_context* context);
/* Tokens that the cache still has room for. */
PACELINE_API int64_t paceline_context_room(const paceline_context* context);

/* A rope that is stretched beyond a length has the bits of `longest` tokens; 0: of as many as a
 * sequence may get. */
PACELINE_API paceline_status paceline_new_sequence(paceline_context* context, int64_t longest,
                                                   int32_t* sequence);
/* Another sequence with the same tokens, which share their memory. */
PACELINE_API paceline_status paceline_fork_sequence(paceline_context* context, int32_t sequence,
                                                    int32_t* forked);
PACELINE_API paceline_status paceline_free_sequence(paceline_context* context, int32_t sequence);
PACELINE_API paceline_status paceline_sequence_length(paceline_context* context, int32_t sequence,
                                                      int64_t* length);

/* Appends the tokens, in steps of at most `chunk` (0: as many as fit) with the same bits. The
 * logits of the tokens at these indices of `ids`, ascending, go into `logits` [num_rows,
 * vocab_size]; with NULL for `rows` those of the last token, unless `logits` is NULL. On failure
 * the sequence is as it was; after PACELINE_NUMERICAL it can only be freed. */
PACELINE_API paceline_status paceline_prefill(paceline_context* context, int32_t sequence,
                                              const int32_t* ids, size_t num_ids, int64_t chunk,
                                              const size_t* rows, size_t num_rows, float* logits);

typedef struct paceline_decode_entry {
  int32_t sequence;
  int32_t token;
} paceline_decode_entry;

/* Appends one token to each of several different sequences, in one step. Their logits go into
 * `logits` [count, vocab_size] in the order of the entries unless it is NULL. All or none. */
PACELINE_API paceline_status paceline_decode_batch(paceline_context* context,
                                                   const paceline_decode_entry* entries,
                                                   size_t count, float* logits);

/* --- Training -------------------------------------------------------------------------------- */

typedef struct paceline_length_stage {
  int64_t length; /* tokens of a sequence, at most */
  double until;   /* this part of the run, above 0 to 1 */
} paceline_length_stage;

/* A number for the modules whose names end in `key`, a regular expression as PEFT's. */
typedef struct paceline_module_number {
  const char* key;
  double number;
} paceline_module_number;

/* The options of `paceline train`, whose help says more about each. PACELINE_DEFAULT and
 * PACELINE_DEFAULT_FLOAT stand for members without a value. */
typedef struct paceline_train_options {
  size_t size;
  const paceline_load_options* model;
  const char* output; /* the run's directory; NULL: nothing but a measured step */
  int32_t resume;     /* 1: goes on after the last checkpoint in it */

  const char* data;            /* JSON Lines, a JSON array, a plain text, or a directory */
  const char* validation_data; /* NULL: the directory's, else a part of the data */
  double validation_fraction;  /* that part */
  const char* loss_tokens;     /* "all", "completion", "assistant" */
  int64_t max_seq_length;      /* tokens of a row; longer examples are cut */
  int32_t packing;             /* 1: rows hold several examples; none sees another */
  const paceline_length_stage* sequence_lengths; /* rising */
  size_t num_sequence_lengths;
  const char* first_token; /* of each sequence of a plain text; NULL: the token before it */

  const char* fine_tune_type;        /* "lora", "full" */
  int32_t from_scratch;              /* 1: random weights; with "full" */
  const char* const* target_modules; /* by the ends of their names; none: all linear ones */
  size_t num_target_modules;
  int64_t num_layers; /* adapts the last ones; -1: all */
  int64_t rank;
  double alpha; /* the matrices' product is multiplied by alpha / rank */
  double scale; /* instead of alpha / rank */
  const paceline_module_number* rank_pattern;
  size_t num_rank_patterns;
  const paceline_module_number* alpha_pattern;
  size_t num_alpha_patterns;
  double dropout;
  int32_t use_rslora;          /* 1: alpha / sqrt(rank) */
  const char* lora_dtype;      /* "auto", "float32", "bfloat16" */
  const char* initial_adapter; /* a directory; NULL: random values */

  int64_t num_steps;
  double num_epochs;          /* instead of num_steps: passes over the data */
  int64_t batch_size;         /* rows */
  int64_t accumulation_steps; /* batches of a step */
  double learning_rate;       /* the peak */
  const char* schedule;       /* "constant", "linear", "cosine", "wsd" */
  double decay_fraction;      /* of "wsd" */
  int64_t warmup_steps;
  double warmup_init; /* the first rate of the warm-up */
  int64_t hold_steps;
  int64_t decay_steps; /* 0: to the end of the run */
  double final_learning_rate;
  const char* optimizer; /* "adamw", "muon" */
  double weight_decay;
  double muon_momentum;
  double adamw_learning_rate; /* beside "muon" */
  double adamw_weight_decay;  /* beside "muon" */
  double beta1;
  double beta2;
  double epsilon;
  double max_gradient_norm; /* 0: gradients of any length */
  int32_t checkpoints;      /* 1: activations of early layers are computed again, not kept */
  int64_t patience;         /* evaluations without a lower loss that end the run; 0: none do */

  int64_t steps_per_report;
  int64_t steps_per_evaluation;
  int64_t validation_batches; /* of an evaluation; -1: all */
  int64_t steps_per_checkpoint;
  uint64_t seed;
} paceline_train_options;

PACELINE_API void paceline_train_options_init(paceline_train_options* options);

/* A run that hasn't been taken yet. One thread at a time. */
typedef struct paceline_training paceline_training;

/* Reads the model and the data, and checks every option and example; writes nothing. */
PACELINE_API paceline_status paceline_open_training(const paceline_train_options* options,
                                                    paceline_training** training);
PACELINE_API void paceline_free_training(paceline_training* training);

typedef struct paceline_training_plan {
  const char* data_file;
  const char* data_format; /* "chats", "plain text", ... */
  int64_t num_examples;
  int64_t num_tokens;
  int64_t num_counted_tokens; /* of these, part of the loss */
  int64_t num_validation_examples;
  int64_t num_steps;
  int64_t num_modules;      /* with LoRA matrices; 0: all weights are trained */
  int64_t num_parameters;   /* that are trained */
  const char* dtype;        /* of these */
  const char* const* notes; /* what a person should read first */
  size_t num_notes;
} paceline_training_plan;

PACELINE_API paceline_status paceline_get_training_plan(paceline_training* training,
                                                        const paceline_training_plan** plan);
PACELINE_API void paceline_free_training_plan(const paceline_training_plan* plan);

typedef struct paceline_step_cost {
  double loss;
  int64_t num_tokens; /* part of the loss */
  double seconds;
  uint64_t peak_bytes;
} paceline_step_cost;

/* Takes a first step and keeps nothing of it. The run is then over. */
PACELINE_API paceline_status paceline_measure_step(paceline_training* training,
                                                   paceline_step_cost* cost);

typedef struct paceline_training_point {
  int64_t step;
  double loss;            /* since the last report; NaN: none, before the first step */
  double validation_loss; /* NaN: none was measured */
  double learning_rate;
  double gradient_norm;
  double tokens_per_second;
  int64_t num_tokens; /* trained so far */
  uint64_t peak_bytes;
} paceline_training_point;

typedef enum paceline_training_end {
  PACELINE_TRAINING_FINISHED = 0,
  PACELINE_TRAINING_OUT_OF_PATIENCE = 1,
  PACELINE_TRAINING_STOPPED = 2
} paceline_training_end;

typedef struct paceline_training_outcome {
  paceline_training_end end;
  int64_t num_steps;
  int64_t saved_step; /* of the last checkpoint */
} paceline_training_outcome;

/* Gets every report on the calling thread; returns 0 to go on, anything else to stop. */
typedef int (*paceline_on_point)(const paceline_training_point* point, void* user);

/* Takes all steps, once; `on_point` and `cancellation` may be NULL. A stop takes effect after the
 * step in progress, and saves a checkpoint. */
PACELINE_API paceline_status paceline_run_training(paceline_training* training,
                                                   paceline_on_point on_point, void* user,
                                                   const paceline_cancellation* cancellation,
                                                   paceline_training_outcome* outcome);

#ifdef __cplusplus
}
#endif

#endif /* PACELINE_PACELINE_H_ */
