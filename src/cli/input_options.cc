// Options of input and output.
#include "cli/lora_source.h"
#include "cli/option_groups.h"
#include "cli/usage_error.h"

namespace paceline {
namespace {

using enum CommandId;

constexpr CommandSet kOnText =
    set_of({generate, chat, classify, decide, score, render, tokenize, verify});
constexpr CommandSet kOnIds = set_of({generate, score, embed, detokenize, verify});
constexpr CommandSet kOnItems = kOnText | kOnIds | set_of({grammar});

constexpr OptionDef kInputOptions[] = {
    // What to work on.
    option("prompt", kTo<&Settings::prompts>, "Text to work on; repeat for several texts.",
           {.aliases = "-p --text",
            .placeholder = "TEXT",
            .commands = kOnText,
            .bare_in = kOnText,
            .takes_one_bare = true}),
    elsewhere("Text to check; TEXT alone is the same. Repeat for several texts.",
              {.commands = set_of({grammar}), .bare_in = set_of({grammar})}),
    elsewhere("Text to embed; TEXT alone is the same. Repeat for several texts.",
              {.commands = set_of({embed}), .bare_in = set_of({embed})}),
    option("prompt-ids", kTo<&Settings::id_prompts>,
           "Token ids to work on, as in 1,2,3; repeat for several prompts.",
           {.aliases = "--ids",
            .placeholder = "IDS",
            .commands = kOnIds,
            .bare_in = set_of({detokenize})}),
    option("file", kTo<&Settings::file>, "Read the input from FILE; - is standard input.",
           {.aliases = "-f",
            .placeholder = "FILE",
            .default_text = "standard input, when it is piped",
            .commands = kOnItems | set_of({perplexity})}),
    elsewhere("Trace to show, as --trace wrote it; FILE alone is the same.",
              {.default_text = "standard input, when it is piped",
               .commands = set_of({trace}),
               .bare_in = set_of({trace})}),
    option("adapter", kTo<&Settings::adapter>,
           "Adapter to read, a directory or a GGUF file; PATH alone is the same.",
           {.placeholder = "PATH", .commands = set_of({adapter}), .bare_in = set_of({adapter})}),
    option("lora",
           {OptionKind::texts,
            [](Settings& s, const OptionValue& v) {
              if (as_texts(v).size() != 1) throw UsageError("--lora: fuse takes one adapter");
              const std::optional<LoraSource> source = read_lora_source(as_texts(v).front());
              if (!source) throw UsageError("--lora: found no path, expected PATH or NAME=PATH");
              s.adapter = source->path;
            }},
           "LoRA adapter to add: a directory of PEFT or mlx-lm, or a GGUF file.",
           {.placeholder = "PATH", .commands = set_of({fuse})}),
    option("input", kTo<&Settings::input>, "Requests to run, one JSON object a line.",
           {.aliases = "-i --input-file", .placeholder = "FILE", .commands = set_of({batch})}),
    option("jsonl", kTo<&Settings::jsonl>,
           "Read one JSON object per line and write one per line, in the same order.",
           {.commands = kOnItems}),
    option("no-special", kNot<&Settings::generate, &GenerateOptions::add_special_tokens>,
           "Add no special tokens (BOS, EOS) to the text.",
           {.commands = set_of({generate, classify, score, embed})}),
    option("special", kTo<&Settings::special>,
           "Add the special tokens (BOS, EOS) that the tokenizer adds to a prompt.",
           {.commands = set_of({tokenize})}),
    option("specials-as-text", kTo<&Settings::specials_as_text>,
           "Read special tokens written in the text as plain text.",
           {.commands = set_of({tokenize})}),
    option("spans", kTo<&Settings::spans>,
           "Add spans to --jsonl answers: for each id, its first byte in the text and the byte "
           "after its last.",
           {.commands = set_of({tokenize}), .needs = "jsonl"}),
    option("system", kTo<&Settings::system>, "System message that begins the conversation.",
           {.aliases = "--sys", .placeholder = "TEXT", .commands = kChatting}),
    option("system-prompt", kTo<&Settings::system_prompt_file>,
           "System message read from FILE, for conversations without one; computed once and kept.",
           {.aliases = "--system-prompt-file",
            .placeholder = "FILE",
            .commands = set_of({chat, batch}),
            .needs = "!system"}),
    option(
        "template", kTo<&Settings::template_file>, "Chat template to render, without a model.",
        {.placeholder = "FILE", .commands = set_of({render}), .excludes = "chat-template model"}),
    option("chat-template-kwargs", kTo<&Settings::chat_template_kwargs>,
           "Variables for the chat template, e.g. {\"enable_thinking\": false}.",
           {.placeholder = "JSON", .commands = kChatting}),
    option("label", kTo<&Settings::labels>, "Label to choose from; repeat for each label.",
           {.aliases = "--labels", .placeholder = "TEXT", .commands = set_of({classify})}),
    option("predicate", kTo<&Settings::predicates>,
           "Question that is answered with yes or no; repeat for each.",
           {.placeholder = "TEXT", .commands = set_of({decide})}),
    option("questions", kTo<&Settings::questions_file>,
           "Questions read from FILE, a JSON array; --help-all shows what is in it.",
           {.placeholder = "FILE", .commands = set_of({decide})}),
    option("decision-temperature", kTo<&Settings::decide_temperature>,
           "Divide the options' log-probabilities by X: above 1 answers are less certain.",
           {.limits = {0.01, 100}, .default_text = "1", .commands = set_of({decide})}),
    option("content-free-input", kTo<&Settings::content_free_input>,
           "Text that says nothing, such as N/A: what the model answers about it is subtracted.",
           {.placeholder = "TEXT", .commands = set_of({decide})}),
    option("prompt-name", kTo<&Settings::prompt_name>,
           "Put one of the model's prompts in front of each text, e.g. query.",
           {.placeholder = "NAME",
            .default_text = "the model's, if it has one",
            .commands = set_of({embed})}),
    // What comes out.
    option("dimensions", kTo<&Settings::dimensions>,
           "Elements of an embedding, of models trained for several sizes.",
           {.limits = {1, 1 << 20},
            .default_text = "the model's",
            .group = OptionGroup::output,
            .commands = set_of({embed})}),
    option("with-token-id", kTo<&Settings::with_token_id>,
           "With labels, also draw a token from the whole vocabulary.",
           {.commands = set_of({classify})}),
    option("with-logits", kTo<&Settings::with_logits>,
           "Add the raw logits of the whole vocabulary to each answer (with --jsonl).",
           {.commands = set_of({classify}), .needs = "jsonl"}),
    option("masks", kTo<&Settings::masks>,
           "Add the times of compilation and masks to each answer (with --jsonl).",
           {.commands = set_of({grammar}), .needs = "jsonl"}),
    option(
        "json", kTo<&Settings::json>, "Print the result as one JSON object.",
        {.commands = set_of({perplexity, verify, inspect, list, bench, trace, quantize, adapter}),
         .excludes = "replay to"}),
    option("replay", kTo<&Settings::replay>,
           "Run the recorded requests again, one by one, and compare the tokens.",
           {.group = OptionGroup::input, .commands = set_of({trace})}),
    option("output", kTo<&Settings::output>, "Write the events to FILE.",
           {.aliases = "-o --output-file",
            .placeholder = "FILE",
            .default_text = "standard output",
            .group = OptionGroup::output,
            .commands = set_of({trace}),
            .excludes = "replay"}),
    elsewhere("Append the results to FILE, one JSON object a line.", {.commands = set_of({batch})}),
    elsewhere(
        "Write the model to PATH: a new directory, or a GGUF file if it ends with .gguf.",
        {.aliases = "-o", .placeholder = "PATH", .commands = set_of({quantize, convert, fuse})}),
    elsewhere("Write checkpoints, metrics and the adapter or model to DIR: a new directory, or "
              "that of the run to resume.",
              {.aliases = "-o --adapter-path", .commands = set_of({train})}),
    elsewhere("Write the adapter to DIR, a new directory.",
              {.aliases = "-o", .commands = set_of({adapter})}),
    option("to", kTo<&Settings::adapter_format>,
           "Format of the adapter that is written: peft or mlx.",
           {.placeholder = "FORMAT", .choices = "peft mlx", .commands = set_of({adapter})}),
    option("dump-logits", kTo<&Settings::dump_logits>,
           "Write the logits to FILE: raw little-endian float32; row i predicts text token i.",
           {.placeholder = "FILE", .commands = set_of({perplexity})}),
};

}  // namespace

std::vector<OptionDef> input_options() {
  return section(OptionGroup::input, kEveryCommand, kInputOptions);
}

}  // namespace paceline
