#include "cli/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/suggest.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

// "hf.co/org/name:Q4_K_M", as Ollama and llama.cpp write it: the repository, and which file of it.
std::string download_command(std::string_view name) {
  for (std::string_view host : {"https://", "hf.co/", "huggingface.co/"}) {
    if (name.starts_with(host)) name.remove_prefix(host.size());
  }
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string_view repository = name.substr(0, colon);
  const std::string_view variant = name.substr(std::min(colon + 1, name.size()));
  const bool is_repository = std::count(repository.begin(), repository.end(), '/') == 1;
  if (!is_repository) return "hf download OWNER/NAME";
  if (variant.empty()) return fmt::format("hf download {}", repository);
  return fmt::format("hf download {} --include \"*{}*\"", repository, variant);
}

struct ForeignCommand {
  std::string_view name;
  std::string_view advice;
};

// Commands of Ollama that have no counterpart.
constexpr ForeignCommand kForeignCommands[] = {
    {"ps",
     "a server says what it does: curl http://127.0.0.1:8080/slots (or /v1/models, /metrics)"},
    {"stop", "Ctrl-C or SIGTERM ends `paceline serve`"},
    {"rm", "nothing is stored here: `paceline list` shows where each model lies"},
    {"cp", "nothing is stored here: `paceline list` shows where each model lies"},
    {"create", "a model needs no file here: --system, --chat-template and --lora change a run"},
    {"push", "nothing is uploaded here: `hf upload OWNER/NAME DIR` does that"}};

// What does here what Ollama's command `name` does with `argument`; nothing for an unknown name.
std::optional<std::string> foreign_command_advice(std::string_view name,
                                                  std::string_view argument) {
  if (name == "pull" || name == "download") {
    return fmt::format("{}: nothing is downloaded here; do it with: {}", name,
                       download_command(argument));
  }
  for (const ForeignCommand& command : kForeignCommands) {
    if (command.name == name) return fmt::format("{}: {}", name, command.advice);
  }
  return std::nullopt;
}

constexpr CommandDef kCommands[] = {
    {.id = CommandId::generate,
     .name = "generate",
     .summary = "Continue a text, streaming what the model writes",
     .examples = "paceline generate \"It was a dark and stormy night\"\n"
                 "paceline generate -m meta-llama/Llama-3.2-1B -f story.txt -n 200 --temp 0.7\n"
                 "paceline generate -p \"The answer is \" --choice yes,no\n"
                 "echo '{\"prompt\": \"Once\", \"max_tokens\": 20}' | paceline generate --jsonl",
     .basics = "prompt file jsonl json-schema regex grammar choice max-tokens temperature top-p "
               "stop seed model quantize max-model-len speculative-model threads",
     .notes = "The text is continued as it stands; `paceline chat` applies the chat template. "
              "Ctrl-C keeps what was written so far and exits with code 130.",
     .details = "On a terminal the prompt is shown before its continuation.\n\n"
                "Lines of --jsonl have prompt or prompt_ids, and any of seed, logprobs and the "
                "options under Sampling and Stopping by their names with underscores (max_tokens), "
                "which override the flags. They may also have one of json_schema (an object, or "
                "its text), regex, grammar, choice (an array of texts) and json_object (true: any "
                "JSON object), and perhaps strict. Answers have text, token_ids, finish_reason "
                "(stop, length or cancelled), stop_reason, logprobs, usage and seed.",
     .run = run_generate},
    {.id = CommandId::chat,
     .name = "chat",
     .alias = "run",
     .alias_takes = "model",
     .summary = "Talk with the model",
     .examples = "paceline chat\n"
                 "paceline chat \"What is a paged cache?\"\n"
                 "paceline run Qwen/Qwen3-0.6B\n"
                 "echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | paceline "
                 "chat --jsonl",
     .basics = "prompt file jsonl system json-schema max-tokens temperature top-p seed model "
               "chat-template quantize max-model-len speculative-model threads",
     .notes = "On a terminal, /help lists the commands, Ctrl-C stops an answer and Ctrl-D leaves. "
              "Piped text is one conversation, one turn a line; each --prompt or --file is a "
              "conversation of its own.",
     .details =
         "The model's chat template makes the prompt.\n\n"
         "Lines of --jsonl have messages, and any of tools, documents, chat_template_kwargs and "
         "the fields of generate. Answers have message beside the fields of generate's answers.",
     .run = run_chat},
    {.id = CommandId::classify,
     .name = "classify",
     .summary = "Choose between labels, or predict one token",
     .examples = "paceline classify -p \"The film was a bore. It was\" --label good --label bad",
     .basics = "prompt file jsonl label with-token-id model quantize max-model-len threads",
     .notes = "Each label gets a score, and the scores add up to 1. Without labels, the next token "
              "is drawn; a model with a classification head chooses between its own labels. A "
              "label that begins a new word is read with a space in front of it: \"It was\" and "
              "\"good\" make \"It was good\".",
     .details = "A label continues the prompt. It is read with a space in front if it begins with "
                "a letter or digit, the prompt ends with a letter, a digit or one of . , ; : ! ? ) "
                "] } =, and the tokenizer needs no more tokens for it with the space than without. "
                "Otherwise it is read as written.\n\n"
                "Lines of --jsonl have text and labels. Answers have token_id, token, label, "
                "scores and, with --with-logits, logits.",
     .run = run_classify},
    {.id = CommandId::decide,
     .name = "decide",
     .summary = "Answer typed questions about a text with probabilities",
     .examples =
         "paceline decide -p \"The parcel never came.\" --predicate \"Is it a complaint?\"\n"
         "paceline decide -m Qwen/Qwen3-0.6B -f mail.txt --questions questions.json\n"
         "paceline decide --questions questions.json --jsonl < inputs.jsonl",
     .basics = "prompt file jsonl predicate questions decision-temperature content-free-input "
               "model chat-template quantize max-model-len threads",
     .notes = "The text is computed once for all questions, and each question is answered as if it "
              "were the only one.",
     .details = "--questions is a JSON array of up to 400 questions, as in OpenAI's POST "
                "/v1/decisions: {\"type\": \"predicate\", \"instructions\": TEXT}, {\"type\": "
                "\"choice\", \"instructions\": TEXT, \"choices\": [{\"value\": TEXT or true or "
                "false, \"description\": TEXT}, ...]} or {\"type\": \"score\", \"instructions\": "
                "TEXT, \"levels\": [{\"label\": TEXT, \"description\": TEXT}, ...]}.\n\n"
                "Lines of --jsonl have input, and perhaps questions, temperature and "
                "content_free_input, which override the flags. Answers have answers, model and "
                "usage; label_mass is the probability that the model's answer is one of the "
                "options, argmax_is_label whether its likeliest answer is.",
     .run = run_decide},
    {.id = CommandId::score,
     .name = "score",
     .summary = "Give the log-probability of each token of a text, or score pairs of texts",
     .examples = "paceline score -p \"The quick brown fox\"\n"
                 "paceline score -m Qwen/Qwen3-Reranker-0.6B --jsonl < pairs.jsonl",
     .basics = "prompt prompt-ids file jsonl no-special model quantize max-model-len threads",
     .notes = "Each line is a log-probability, a token id and the token's text.",
     .details = "Lines of --jsonl have text or ids. Answers have ids and logprobs, the first of "
                "which is null. Lines with text_1 and text_2, and perhaps instruction, are pairs, "
                "which models that embed, rerank or have a head for one label score. Answers have "
                "score and prompt_tokens.",
     .run = run_score},
    {.id = CommandId::embed,
     .name = "embed",
     .summary = "Make a vector of each text",
     .examples =
         "paceline embed -m Qwen/Qwen3-Embedding-0.6B \"The old house\" \"by the sea\"\n"
         "paceline embed -m Qwen/Qwen3-Embedding-0.6B --prompt-name query \"where is the sea?\"\n"
         "paceline embed -m Qwen/Qwen3-Embedding-0.6B --jsonl < texts.jsonl",
     .basics = "prompt prompt-ids file jsonl prompt-name dimensions no-special model quantize "
               "max-model-len threads",
     .notes = "Pooling, prompts and dense layers come from the model's sentence-transformers "
              "files. Without such files, an embedding is the last token's state, normalised.",
     .details = "Lines of --jsonl have text or ids, and any of dimensions and prompt_name. Each "
                "answer is a line of JSON with embedding and prompt_tokens.",
     .run = run_embed},
    {.id = CommandId::batch,
     .name = "batch",
     .summary = "Run a file of API requests, many at once",
     .examples =
         "paceline batch -i requests.jsonl -o results.jsonl\n"
         "paceline batch -m Qwen/Qwen3-0.6B -i requests.jsonl -o results.jsonl --max-num-seqs 32",
     .basics = "input output model quantize chat-template system-prompt max-model-len max-num-seqs "
               "kv-cache-memory-bytes speculative-model threads",
     .notes = "Both files have the format of OpenAI's Batch API. After a crash or an interruption, "
              "run the same command again: it does the requests that have no result yet.",
     .details = "A line of the input has custom_id (unique), method (POST), url (/v1/completions, "
                "/v1/chat/completions, /v1/classify or /v1/embeddings) and body, the request. "
                "Results are written in the order in which requests finish; a line has id, "
                "custom_id, response with status_code, request_id and body, and error.\n\n"
                "A request that fails has its error in response.body and a status_code other than "
                "200. A malformed line (not JSON, a custom_id used twice, a wrong url) gets "
                "response null and error with code, message and line. Neither stops the run or "
                "changes its exit code; the summary counts them. The exit code is 1 when the run "
                "itself fails: the input can't be read, the disk is full.\n\n"
                "A result is written as soon as it is done, and is safe from a power failure "
                "(fdatasync) 100 ms later. A resumed run removes an incomplete last line of the "
                "output. It does not repeat requests that have a result, even if the result is an "
                "error. A malformed line is read again once it is fixed.",
     .run = run_batch},
    {.id = CommandId::serve,
     .name = "serve",
     .summary = "Answer OpenAI's API over HTTP, with a page to try it",
     .examples = "paceline serve\n"
                 "paceline serve Qwen/Qwen3-0.6B --port 9000 --api-key \"$(cat key)\"\n"
                 "paceline serve --unix-socket /run/paceline.sock",
     .basics = "model host port unix-socket api-key tls-cert tls-key quantize weights-cache "
               "max-model-len max-num-seqs kv-cache-memory-bytes speculative-model threads "
               "drain-timeout log-format",
     .notes = "Prints `listening on http://HOST:PORT` on standard error when it is ready. Open "
              "that address in a browser, or use http://HOST:PORT/v1 as a client's base URL. "
              "Ctrl-C finishes running answers first; a second Ctrl-C ends at once.",
     .details = "Requests that compute need the media type application/json. Without --api-key, "
                "the server answers only requests whose Host header names the loopback (or "
                "--allowed-host), and listens on other addresses only with --insecure.\n\n"
                "SIGTERM and Ctrl-C let running answers finish, for at most --drain-timeout. Exit "
                "codes: 0 after that, 130 after a second signal, 70 when the engine has failed.",
     .run = run_serve},
    {.id = CommandId::render,
     .name = "render",
     .summary = "Show the prompt that a chat template makes",
     .examples = "paceline render -p \"Hello\"\n"
                 "paceline render --template chat_template.jinja --jsonl < conversations.jsonl",
     .basics = "prompt file jsonl system template chat-template chat-template-kwargs model",
     .notes = "Reads the tokenizer's files only, and no model at all with --template.",
     .details =
         "Lines of --jsonl have messages, and any of tools, documents, kwargs, "
         "add_generation_prompt, special_tokens, now (the clock of strftime_now, ISO 8601) and "
         "template (its source). Answers have rendered, or error with the template's own message.",
     .run = run_render},
    {.id = CommandId::tokenize,
     .name = "tokenize",
     .summary = "Turn text into token ids",
     .examples = "paceline tokenize -p \"Hello, world\"\n"
                 "paceline tokenize -m Qwen/Qwen3-0.6B -f story.txt | wc -w",
     .basics = "prompt file jsonl special specials-as-text spans model",
     .notes = "Reads the tokenizer's files only.",
     .details =
         "Lines of --jsonl have text. Answers have ids, and decoded: the text that the ids make.",
     .run = run_tokenize},
    {.id = CommandId::detokenize,
     .name = "detokenize",
     .summary = "Turn token ids into text",
     .examples = "paceline tokenize -p \"Hello, world\" | paceline detokenize",
     .basics = "prompt-ids file jsonl model",
     .notes = "Reads the tokenizer's files only.",
     .details = "Lines of --jsonl have ids. Answers have text.",
     .run = run_detokenize},
    {.id = CommandId::grammar,
     .name = "grammar",
     .summary = "Check texts against a JSON Schema, a regular expression or a grammar",
     .examples = "paceline grammar --regex \"[0-9]{4}-[0-9]{2}\" 2026-11 2026-1\n"
                 "paceline grammar --json-schema person.schema.json -f person.json\n"
                 "paceline grammar --grammar arithmetic.gbnf \"1+2\" \"1+\"\n"
                 "paceline grammar --jsonl --masks < schemas.jsonl",
     .basics = "prompt file jsonl json-schema regex grammar choice strict masks model",
     .notes = "A text is accepted when a model under the constraint could write it, token by "
              "token, and end there. Reads the tokenizer's files only.",
     .details = "The texts are the arguments, or --file as one text. The exit code is 1 if one of "
                "them is rejected.\n\n"
                "Lines of --jsonl have texts and one of json_schema (an object, or its text), "
                "regex, grammar, choice (an array of texts) and json_object (true: any JSON "
                "object), and perhaps strict. Answers have accepted: for each text whether it was. "
                "With --masks they also have compile_us, first_mask_us (compilation included) and "
                "mask_us: mean, p50, p99, max and count of the times of the tokens of all texts, "
                "each to compute its mask and to go on, and all of these times.",
     .run = run_grammar},
    {.id = CommandId::perplexity,
     .name = "perplexity",
     .summary = "Measure how well the model predicts a text",
     .examples = "paceline perplexity -f book.txt --json",
     .basics = "file max-positions json model quantize activations max-model-len threads",
     .notes = "Ctrl-C prints the perplexity of what was measured so far and exits with code 130.",
     .details = "The text is cut into windows of the context length without overlap. Each window "
                "begins with the BOS token, or <|endoftext|>, or else the EOS token; every token "
                "of the text counts once. Special tokens written in the text are recognised. Bits "
                "per byte are nats / ln 2 / bytes of the text.",
     .run = run_perplexity},
    {.id = CommandId::verify,
     .name = "verify",
     .summary = "Compare the model's log-probabilities with those of transformers or mlx-lm",
     .examples = "paceline verify -m Qwen/Qwen3-0.6B --python ~/venv/bin/python\n"
                 "paceline verify -m ./my-model --against mlx_lm -f story.txt --tolerance 0.01",
     .basics = "against python tolerance prompt file max-positions json model dtype threads",
     .notes = "Both sides compute in float32 unless --dtype says otherwise. The exit code is 1 if "
              "a log-probability is further off than --tolerance.",
     .details = "The other side runs in a Python with its package. Texts are tokenised here, and "
                "cut after 512 tokens or --max-positions; without one, a few samples are compared. "
                "The last column counts the positions at which both sides find the same token "
                "likeliest. Quantised weights are dequantised by each side in its own way.",
     .run = run_verify},
    {.id = CommandId::inspect,
     .name = "inspect",
     .alias = "show",
     .summary = "Show a model's configuration, tensors and memory needs",
     .examples = "paceline inspect Qwen/Qwen3-0.6B -c 8192 --max-num-seqs 4",
     .basics = "model json dtype max-model-len max-num-seqs kv-cache-dtype speculative-model",
     .notes = "Weights are not loaded. The memory shown is for --max-num-seqs sequences of "
              "--max-model-len tokens; by default, for one sequence of the model's full context.",
     .run = run_inspect},
    {.id = CommandId::list,
     .name = "list",
     .alias = "ls",
     .summary = "Show the models on this machine, and which of them can be used",
     .examples = "paceline list",
     .basics = "json",
     .notes = "Looks into the caches of Hugging Face, llama.cpp, LM Studio and Ollama. Weights are "
              "not loaded, and nothing is downloaded: `hf download OWNER/NAME` does that.",
     .details = "The caches are HF_HUB_CACHE (or HF_HOME/hub, or ~/.cache/huggingface/hub), "
                "LLAMA_CACHE (or ~/.cache/llama.cpp), ~/.lmstudio/models and "
                "~/.cache/lm-studio/models, and OLLAMA_MODELS (or ~/.ollama/models).",
     .run = run_list},
    {.id = CommandId::bench,
     .name = "bench",
     .summary = "Measure speed, and how close it comes to what the machine can do",
     .examples =
         "paceline bench\n"
         "paceline bench --shape llama-3.2-1b -t 1,2 --formats bf16,q8,q4\n"
         "paceline bench -m Qwen/Qwen3-0.6B --tests prefill,batch --prompt-tokens 128,1024\n"
         "paceline bench --shape gemma-3-1b --formats q4 --tests classify",
     .basics = "shape tests prompt-tokens contexts sequences output-tokens formats threads "
               "repetitions roofline plan json model",
     .notes = "Without a model, a shape or tests, it measures the bundled model and a small shape "
              "in less than a minute. Ctrl-C prints the results so far and exits with code 130.",
     .details = "Prefill is compared with the rate of the instruction that multiplies, counting "
                "two operations for each token and each weight outside the embedding. Decode is "
                "compared with the read bandwidth, counting the weights, keys and values read for "
                "each token. Batches are compared with the nearer of the two limits. Both limits "
                "are measured beside each run, in the same process. Only the test `cached` finds "
                "its prompt in the prefix cache. Sizes that need a longer context than the model "
                "or --max-model-len allows are shortened, with a note.",
     .run = run_bench},
    {.id = CommandId::quantize,
     .name = "quantize",
     .summary = "Write a copy of a model in fewer bits, as MLX or llama.cpp do",
     .examples =
         "paceline quantize -m Qwen/Qwen3-0.6B -o qwen3-4bit\n"
         "paceline quantize -m Qwen/Qwen3-0.6B -o qwen3-mixed --recipe mixed_3_6 --check book.txt\n"
         "paceline quantize -m Qwen/Qwen3-0.6B -o qwen3.gguf --gguf-type q4_k_m",
     .basics = "model output bits group-size recipe gguf-type calibrate check max-model-len "
               "activations json "
               "threads",
     .notes = "Nothing is overwritten, and an interrupted run leaves nothing behind.",
     .details =
         "Both mlx_lm and this program load the result: config.json with `quantization`, "
         "weights in shards of at most 5 GB, the tokenizer's files. Matrices whose rows are "
         "whole groups are quantised; norms, biases and everything else are copied. One "
         "tensor is in memory at a time.\n\n"
         "--calibrate computes the first 65,536 tokens of a text with the model. Then weights are "
         "rounded column by column, and the later columns correct the error that each one "
         "causes on this text; the format stays the same. In a GGUF file the errors of Q4_K, Q5_K "
         "and "
         "Q6_K are weighted by the inputs.\n\n"
         "A GGUF file gets the types that llama.cpp's llama-quantize gives its tensors.\n\n"
         "--check measures as `paceline perplexity` does, in windows of the same length "
         "before and after. The model is kept if --check is interrupted.",
     .run = run_quantize},
    {.id = CommandId::trace,
     .name = "trace",
     .summary = "Show what a batch did over time",
     .examples = "paceline generate --jsonl -f prompts.jsonl --trace steps.jsonl\n"
                 "paceline trace steps.jsonl -o steps.trace.json\n"
                 "paceline trace steps.jsonl --json",
     .basics = "file output json replay model",
     .notes = "FILE is what --trace wrote. The output is Chrome's trace events, which "
              "ui.perfetto.dev and chrome://tracing show.",
     .details = "A track for each sequence, from its arrival to its end, has its prefill, decode "
                "and drafted rows, preemptions and prefix hits; another has the steps, with "
                "counters of their rows and of the blocks of the cache. --json prints the totals "
                "instead of the events; with --output the file gets the events.",
     .run = run_trace},
    {.id = CommandId::convert,
     .name = "convert",
     .summary = "Write a GGUF file as a Hugging Face directory, or a model as GGUF",
     .examples = "paceline convert -m llama-3.2-1b-q8_0.gguf -o llama-3.2-1b\n"
                 "paceline convert -m model.gguf -o model --dtype bfloat16\n"
                 "paceline convert -m Qwen/Qwen3-0.6B -o qwen3.gguf",
     .basics = "model output dtype gguf-type",
     .notes = "Nothing is overwritten, and an interrupted run leaves nothing behind.",
     .details = "The directory gets config.json, generation_config.json, the tokenizer's files "
                "with the chat template, and model.safetensors. With --dtype auto no weight "
                "changes: tensors of plain numbers keep their type, and quantised ones become "
                "float32, which holds their values exactly.\n\n"
                "With --output FILE.gguf the model, a directory or a GGUF file, is written as a "
                "GGUF file for llama.cpp. What such files can't hold is refused by name before "
                "anything is written.",
     .run = run_convert},
    {.id = CommandId::train,
     .name = "train",
     .summary = "Fine-tune a model: LoRA or all weights",
     .examples = "paceline train --data book.txt -o adapter\n"
                 "paceline train -m Qwen/Qwen3-0.6B --data chats.jsonl -o adapter --mask-prompt "
                 "--iters 500\n"
                 "paceline train -m Qwen/Qwen3-0.6B --data chats.jsonl -o adapter --resume\n"
                 "paceline train -m ./small --data book.txt -o model --fine-tune-type full",
     .basics = "data output iters batch-size learning-rate fine-tune-type lora-rank max-seq-length "
               "mask-prompt resume dry-run seed model quantize threads",
     .notes = "The output directory gets checkpoints, metrics.jsonl and, at the end, the adapter "
              "in PEFT's format, or the model. Ctrl-C saves a checkpoint and exits with code 130; "
              "--resume continues from the last checkpoint.",
     .details =
         "Data files in JSON Lines have one example a line: messages (and tools), prompt and "
         "completion, or text. Any other file is one plain text. A directory has train.jsonl and "
         "may have valid.jsonl. Every line is checked before training begins.\n\n"
         "With LoRA the weights of the model stay frozen, in any format that can be served. Full "
         "fine-tuning needs plain float32 or bfloat16 weights. Training computes the same bits as "
         "serving. A resumed run ends with the same bits as an unbroken one, for any number of "
         "threads and any --grad-accumulation-steps that give the same batch.\n\n"
         "--config FILE reads options from TOML or YAML; it also reads the files of mlx_lm.lora.",
     .run = run_train},
    {.id = CommandId::adapter,
     .name = "adapter",
     .summary = "Show a LoRA adapter, check it against a model, or convert it",
     .examples = "paceline adapter my-adapter\n"
                 "paceline adapter my-adapter -m Qwen/Qwen3-0.6B\n"
                 "paceline adapter my-adapter -m Qwen/Qwen3-0.6B --to mlx -o my-mlx-adapter",
     .basics = "adapter model to output json",
     .notes = "Reads directories of PEFT and mlx-lm, and GGUF files, which need --model. The "
              "model's weights are not loaded.",
     .details = "With --to, the adapter is written to --output instead of shown. Without --model, "
                "names and shapes aren't compared with a base, and the written names are those of "
                "a model of text alone. mlx-lm's format has one rank and one scale for all "
                "modules; an adapter with several can't be written in it. Nothing is overwritten.",
     .run = run_adapter},
    {.id = CommandId::fuse,
     .name = "fuse",
     .summary = "Write a model and a LoRA adapter as one model",
     .examples = "paceline fuse -m Qwen/Qwen3-0.6B --lora my-adapter -o my-model\n"
                 "paceline fuse -m Qwen/Qwen3-0.6B --lora my-adapter -o my-model-4bit --bits 4\n"
                 "paceline fuse -m qwen3-4bit --lora my-adapter -o my-model --dtype bfloat16",
     .basics = "model lora output dtype bits group-size threads",
     .notes = "Nothing is overwritten, and an interrupted run leaves nothing behind.",
     .details = "The base is a directory, plain or quantised by MLX, or a GGUF file; the result is "
                "a directory. Fused matrices are computed in float32 and rounded once.\n\n"
                "With --dtype auto plain weights keep their type, and quantised matrices that the "
                "adapter changes become bfloat16. Other matrices that MLX packed stay packed, "
                "unless --dtype is given without --bits: then the whole model is plain. With "
                "--bits the matrices are quantised from their float32 values, and --dtype is the "
                "type of scales, norms and whatever stays plain.",
     .run = run_fuse},
};

}  // namespace

std::span<const CommandDef> command_table() { return kCommands; }

const CommandDef& find_command(std::string_view name, std::string_view argument) {
  constexpr std::string_view kGlobalOptions[] = {"--help", "--version"};
  std::vector<std::string_view> names;
  for (const CommandDef& command : kCommands) {
    if (command.name == name || (!name.empty() && command.alias == name)) return command;
    names.push_back(command.name);
  }
  if (const auto advice = foreign_command_advice(name, argument)) throw UsageError(*advice);
  if (!name.empty() && name[0] == '-') {
    const std::string nearest = did_you_mean(name, kGlobalOptions);
    if (!nearest.empty()) throw UsageError("unknown option {}{}", name, nearest);
    throw UsageError("found {} before the command, expected one of {} first", name,
                     fmt::join(names, ", "));
  }
  throw UsageError("unknown command {}{}", name, did_you_mean(name, names));
}

}  // namespace paceline
