#include "cli/command.h"

#include <fmt/format.h>

#include <vector>

#include "base/suggest.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

constexpr CommandDef kCommands[] = {
    {.id = CommandId::generate,
     .name = "generate",
     .summary = "Continue a text, streaming what the model writes",
     .examples = "paceline generate -p \"It was a dark and stormy night\"\n"
                 "paceline generate -m meta-llama/Llama-3.2-1B -f story.txt -n 200 --temp 0.7\n"
                 "echo '{\"prompt\": \"Once\", \"max_tokens\": 20}' | paceline generate --jsonl",
     .notes =
         "The text is continued as it stands: no chat template is applied. On a terminal the "
         "prompt is shown before its continuation. Ctrl-C stops the output and keeps "
         "what came; the exit code is then 130.\n\n"
         "Lines of --jsonl have prompt or prompt_ids, and any of seed, logprobs and the options "
         "under Sampling and Stopping by their names with underscores (max_tokens), which win over "
         "the flags. Answers have text, token_ids, finish_reason "
         "(stop, length or cancelled), "
         "stop_reason, logprobs, usage and seed.",
     .run = run_generate},
    {.id = CommandId::chat,
     .name = "chat",
     .alias = "run",
     .summary = "Talk with the model",
     .examples =
         "paceline chat\n"
         "paceline chat -m Qwen/Qwen3-0.6B -p \"What is a paged cache?\"\n"
         "echo '{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}' | paceline chat "
         "--jsonl",
     .notes =
         "On a terminal, a conversation: /help lists its commands, Ctrl-C stops an answer, Ctrl-D "
         "leaves. With --prompt or --file each text is a conversation of one turn; piped text is "
         "one conversation, a turn a line. The model's chat template makes the prompt.\n\n"
         "Lines of --jsonl have messages, and any of tools, documents, chat_template_kwargs and "
         "the "
         "fields of generate. Answers have message beside the fields of generate's answers.",
     .run = run_chat},
    {.id = CommandId::classify,
     .name = "classify",
     .summary = "Predict one token, or choose between labels",
     .examples =
         "paceline classify -p \"The film was a bore. It was\" --label \" good\" --label \" bad\"",
     .notes = "Only the prompt is computed. Without labels the next token is drawn; with them each "
              "gets a score, and the scores add up to 1.\n\n"
              "Lines of --jsonl have text and labels. Answers have token_id, token, label, scores "
              "and, with --with-logits, logits.",
     .run = run_classify},
    {.id = CommandId::score,
     .name = "score",
     .summary = "Give the log-probability of each token of a text",
     .examples = "paceline score -p \"The quick brown fox\"",
     .notes =
         "Lines of --jsonl have text or ids. Answers have ids and logprobs, the first of which is "
         "null.",
     .run = run_score},
    {.id = CommandId::batch,
     .name = "batch",
     .summary = "Work through a file of API requests, many at once",
     .examples = "paceline batch -i requests.jsonl -o results.jsonl\n"
                 "paceline batch -m Qwen/Qwen3-0.6B -i requests.jsonl -o results.jsonl "
                 "--max-num-seqs 32",
     .notes =
         "Both files are those of OpenAI's Batch API. A line of the input has custom_id (unique), "
         "method (POST), url (/v1/completions, /v1/chat/completions or /v1/classify) and body, the "
         "request. Results come in the order in which they are done; a line has id, custom_id, "
         "response with status_code, request_id and body, and error.\n\n"
         "A request that fails has its error in response.body with a status_code other than 200. A "
         "line that is no request (no JSON, a custom_id that stands twice, a wrong url) gives "
         "response null and error with code, message and line. Neither stops the run nor changes "
         "its exit code; the summary counts them. The exit code is 1 when the run itself fails: "
         "input unreadable, disk full.\n\n"
         "A result is in the file as soon as it is done, and durable (fdatasync) 100 ms later. "
         "After a crash or an interruption the same command does the rest: what the output holds "
         "of a last line is cut off, what it has a result for, be it an error, is not done again. "
         "A line that was wrong counts as new once it is mended.",
     .run = run_batch},
    {.id = CommandId::serve,
     .name = "serve",
     .summary = "Answer OpenAI's API over HTTP, with a page to try it",
     .examples = "paceline serve\n"
                 "paceline serve -m Qwen/Qwen3-0.6B --port 9000 --api-key \"$(cat key)\"\n"
                 "paceline serve --unix-socket /run/paceline.sock",
     .notes =
         "When it is ready it says `listening on http://HOST:PORT` on standard error; the page is "
         "there. Clients of OpenAI's API use http://HOST:PORT/v1 as their base URL.\n\n"
         "Requests that compute need the media type application/json. Without a key only requests "
         "that name the loopback (or --allowed-host) in their Host header are answered, and other "
         "addresses are refused as long as --insecure doesn't say otherwise.\n\n"
         "SIGTERM or Ctrl-C lets running answers come to their end, for at most --drain-timeout; a "
         "second signal doesn't. Exit codes: 0 after a drain, 130 after a second signal, 70 when "
         "the engine has failed.",
     .run = run_serve},
    {.id = CommandId::render,
     .name = "render",
     .summary = "Show the prompt that a chat template makes",
     .examples = "paceline render -p \"Hello\"\n"
                 "paceline render --template chat_template.jinja --jsonl < conversations.jsonl",
     .notes = "Only the tokenizer's files are needed, and none of them with --template. Lines of "
              "--jsonl "
              "have messages, and any of tools, documents, kwargs, add_generation_prompt, "
              "special_tokens, "
              "now (the clock of strftime_now, ISO 8601) and template (its source). Answers have "
              "rendered, "
              "or error with the template's own message.",
     .run = run_render},
    {.id = CommandId::tokenize,
     .name = "tokenize",
     .summary = "Turn text into token ids",
     .examples = "paceline tokenize -p \"Hello, world\"\n"
                 "paceline tokenize -m Qwen/Qwen3-0.6B -f story.txt | wc -w",
     .notes =
         "Only the tokenizer's files are needed. Lines of --jsonl have text. Answers have ids and "
         "decoded, the text that the ids stand for.",
     .run = run_tokenize},
    {.id = CommandId::detokenize,
     .name = "detokenize",
     .summary = "Turn token ids into text",
     .examples = "paceline tokenize -p \"Hello, world\" | paceline detokenize",
     .notes =
         "Only the tokenizer's files are needed. Lines of --jsonl have ids. Answers have text.",
     .run = run_detokenize},
    {.id = CommandId::perplexity,
     .name = "perplexity",
     .summary = "Measure how well the model predicts a text",
     .examples = "paceline perplexity -f book.txt --json",
     .notes =
         "The text is cut into windows of the context length without overlap, each preceded by "
         "the BOS token, or <|endoftext|>, or else the EOS token; every token of the text counts "
         "once. Special tokens written in the text are recognised. Bits per byte are nats / ln 2 / "
         "bytes of the text.",
     .run = run_perplexity},
    {.id = CommandId::inspect,
     .name = "inspect",
     .summary = "Show a model's configuration, tensors and memory needs",
     .examples = "paceline inspect -m Qwen/Qwen3-0.6B -c 8192 --max-num-seqs 4",
     .notes = "Weights are not loaded. Memory is what --max-num-seqs sequences of --max-model-len "
              "tokens take; without these options, one of the model's full context.",
     .run = run_inspect},
    {.id = CommandId::bench,
     .name = "bench",
     .summary = "Measure speed, and how close it comes to what the machine can do",
     .examples =
         "paceline bench\n"
         "paceline bench --shape llama-3.2-1b -t 1,2 --formats bf16,q8,q4\n"
         "paceline bench -m Qwen/Qwen3-0.6B --tests prefill,batch --prompt-tokens 128,1024\n"
         "paceline bench --shape gemma-3-1b --formats q4 --tests classify",
     .notes =
         "With neither a model nor a shape nor tests it is a tour: the bundled model and a small "
         "shape, in less than a minute.\n\n"
         "Prefill counts two operations per weight outside the embedding and token, against the "
         "rate of the instruction that multiplies; decode counts the weights read per token, "
         "against the read bandwidth; batches whichever limit is nearer. Both are measured beside "
         "each run, in the same process. Prompts are never in the prefix cache, but for the test "
         "that says so. What needs a longer context than the model or --max-model-len has is "
         "shortened to it, and said so.",
     .run = run_bench},
    {.id = CommandId::quantize,
     .name = "quantize",
     .summary = "Write a model anew in fewer bits, as MLX does",
     .examples = "paceline quantize -m Qwen/Qwen3-0.6B -o qwen3-4bit\n"
                 "paceline quantize -m Qwen/Qwen3-0.6B -o qwen3-mixed --recipe mixed_3_6 "
                 "--check book.txt",
     .notes =
         "The directory is one that mlx_lm and this program load: config.json with `quantization`, "
         "weights in shards of at most 5 GB, the tokenizer's files. Matrices whose rows are whole "
         "groups are quantised; norms, biases and everything else stay. One tensor is in memory at "
         "a time. Nothing is overwritten, and an interrupted run leaves nothing.\n\n"
         "--check measures as `paceline perplexity` does, in windows of the same length before and "
         "after.",
     .run = run_quantize},
    {.id = CommandId::trace,
     .name = "trace",
     .summary = "Draw what a batch did over time",
     .examples = "paceline trace batch.jsonl -o batch.svg\n"
                 "paceline trace batch.jsonl --json",
     .notes = "FILE is what --trace wrote. The picture is an SVG that a browser shows: every "
              "sequence from its arrival to its end (waiting, prefilled, decoded, preempted, taken "
              "from the prefix cache), under it the rows of each step and who held the blocks of "
              "the cache. With --json the totals are printed instead, or beside a picture that "
              "--output names.",
     .run = run_trace},
    {.id = CommandId::convert,
     .name = "convert",
     .summary = "Write a GGUF file as a Hugging Face directory",
     .examples = "paceline convert -m llama-3.2-1b-q8_0.gguf -o llama-3.2-1b\n"
                 "paceline convert -m model.gguf -o model --dtype bfloat16",
     .notes =
         "The directory gets config.json, generation_config.json, the tokenizer's files with the "
         "chat template, and model.safetensors. It must not exist, and appears when it is whole. "
         "With --dtype auto the weights are the same numbers: tensors of plain numbers keep "
         "their type, quantised ones become float32, which holds their values exactly.",
     .run = run_convert},
};

}  // namespace

std::span<const CommandDef> command_table() { return kCommands; }

const CommandDef& find_command(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CommandDef& command : kCommands) {
    if (command.name == name || (!name.empty() && command.alias == name)) return command;
    names.push_back(command.name);
  }
  if (!name.empty() && name[0] == '-') {
    throw UsageError(fmt::format("{} stands before the command, expected one of {}", name,
                                 fmt::join(names, ", ")));
  }
  throw UsageError(fmt::format("unknown command {}{}", name, did_you_mean(name, names)));
}

}  // namespace paceline
