// The fields that say how a text goes on, ends, and is reported.
#include <limits>

#include "engine/request.h"
#include "protocol/request_fields.h"

namespace paceline {
namespace {

constexpr FieldDef<StreamFields> kStreamOptions[] = {
    {.name = "include_usage",
     .type = kBoolean,
     .by_default = false,
     .help = "Send the usage in a last chunk of its own.",
     .read = [](const FieldValue& v, StreamFields& t) { t.include_usage = v.boolean(); }},
    {.name = "include_obfuscation",
     .type = kBoolean,
     .use = FieldUse::accepted,
     .help = "Nothing is padded."},
    {.name = "continuous_usage_stats",
     .type = kBoolean,
     .by_default = false,
     .help = "Send the usage so far in every chunk.",
     .read = [](const FieldValue& v, StreamFields& t) { t.continuous_usage = v.boolean(); }},
};

FieldList stream_options() { return list_fields<StreamFields>(kStreamOptions); }

void read_stream_options(const FieldValue& value, GenerationFields& target) {
  RequestReader reader(value);
  reader.read<StreamFields>(kStreamOptions, target.streaming);
  reader.finish();
  target.streaming.has_options = true;
}

constexpr FieldType kStop = text_type(1, kMaxStopBytes);
constexpr FieldType kStopKinds[] = {kStop, array_type(kStop, 0, kMaxStops)};
constexpr FieldType kBadWord = text_type(1, kMaxBadWordBytes);
constexpr FieldType kChoices = {
    .kind = FieldKind::integer, .min = 1, .max = kMaxChoices, .counts_choices = true};

std::vector<std::string> texts_of(const FieldValue& value) {
  std::vector<std::string> texts;
  for (const FieldValue& item : value.items()) texts.push_back(item.text());
  return texts;
}

void read_stops(const FieldValue& value, GenerationFields& target) {
  target.stop = value.json().is_string() ? std::vector<std::string>{value.text()} : texts_of(value);
}

void read_return_tokens(const FieldValue& value, GenerationFields& target) {
  target.return_token_ids = target.return_token_ids || value.boolean();
}

constexpr FieldDef<GenerationFields> kGenerationFields[] = {
    {.name = "n",
     .type = kChoices,
     .by_default = int64_t{1},
     .help = "Answers to each prompt; the k-th has the seed plus k.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.n = v.small_integer(); }},
    {.name = "stop",
     .type = one_of_type(kStopKinds, "a string or an array of strings"),
     .help = "Up to 4 strings of at most 256 bytes before which the text ends.",
     .read = read_stops},
    {.name = "stop_token_ids",
     .type = array_type(kTokenId, 0, kMaxStopTokenIds),
     .help = "Token ids at which the text ends.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.stop_token_ids = v.token_ids(); }},
    {.name = "ignore_eos",
     .type = kBoolean,
     .by_default = false,
     .help = "Go on past the end-of-sequence tokens.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.ignore_eos = v.boolean(); }},
    {.name = "prompt_logprobs",
     .type = kNumTopLogprobs,
     .help = "Report the prompt's tokens with so many alternatives.",
     .read = [](const FieldValue& v,
                GenerationFields& t) { t.prompt_logprobs = v.small_integer(); }},
    {.name = "return_token_ids",
     .type = kBoolean,
     .by_default = false,
     .help = "Add token_ids to each choice.",
     .read = read_return_tokens},
    {.name = "return_tokens",
     .type = kBoolean,
     .by_default = false,
     .alias_of = "return_token_ids",
     .help = "llama.cpp's name of it.",
     .read = read_return_tokens},
    {.name = "timings",
     .type = kBoolean,
     .by_default = false,
     .help = "Add timings to each choice: tokens, milliseconds and rates.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.timings = v.boolean(); }},
    {.name = "return_tokens_as_token_ids",
     .type = kBoolean,
     .by_default = false,
     .help = "Write tokens as token_id:N where log-probabilities name them.",
     .read = [](const FieldValue& v,
                GenerationFields& t) { t.return_tokens_as_token_ids = v.boolean(); }},
    {.name = "stream",
     .type = kBoolean,
     .by_default = false,
     .help = "Answer in events as the text comes.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.streaming.stream = v.boolean(); }},
    {.name = "stream_options",
     .type = object_type(stream_options),
     .help = "What a streamed answer has besides; only allowed with stream.",
     .read = read_stream_options},
    {.name = "min_tokens",
     .type = kOutputTokens,
     .by_default = int64_t{0},
     .help = "Neither the end of sequence nor stop_token_ids are drawn before so many tokens.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.min_tokens = v.integer(); }},
    {.name = "include_stop_str_in_output",
     .type = kBoolean,
     .by_default = false,
     .help = "The text ends behind the stop string instead of before it.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.includes_stop = v.boolean(); }},
    {.name = "truncate_prompt_tokens",
     .type = integer_type(1, kMaxTokenIds),
     .help = "Take only so many tokens of the prompt, its last ones; not with echo.",
     .read = [](const FieldValue& v,
                GenerationFields& t) { t.truncate_prompt_tokens = v.integer(); }},
    {.name = "skip_special_tokens",
     .type = kBoolean,
     .by_default = true,
     .help = "false: special tokens are in the text as they are spelled.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.skip_special_tokens = v.boolean(); }},
    {.name = "spaces_between_special_tokens",
     .type = kOnlyTrue,
     .by_default = true,
     .help = "Only true."},
    {.name = "bad_words",
     .type = array_type(kBadWord, 0, kMaxBadWords),
     .help = "No token is drawn that completes the tokens of one of them, alone or behind a space.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.bad_words = texts_of(v); }},
    {.name = "allowed_token_ids",
     .type = array_type(kTokenId, 1, kMaxTokenIds),
     .help = "Only these tokens are drawn; an end of sequence only if it is one of them.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.allowed_token_ids = v.token_ids(); }},
    {.name = "logprob_token_ids",
     .type = array_type(kTokenId, 0, kMaxLogprobTokenIds),
     .help = "With logprobs: these are told beside each token instead of the likeliest.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.logprob_token_ids = v.token_ids(); }},
    {.name = "stream_interval",
     .type = integer_type(1, kMaxOutputTokens),
     .by_default = int64_t{1},
     .help = "With stream: tokens of a chunk; the first one comes alone, the last when it ends.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.streaming.interval = v.integer(); }},
    {.name = "use_beam_search", .type = kOnlyFalse, .by_default = false, .help = "Only false."},
    {.name = "cache_prompt",
     .type = kBoolean,
     .use = FieldUse::accepted,
     .help = "Prompts are always cached; cache_salt keeps them apart."},
    {.name = "id_slot",
     .type = integer_type(-1, std::numeric_limits<int32_t>::max()),
     .use = FieldUse::accepted,
     .help = "There are no slots; cached prompts are found without one."},
    {.name = "length_penalty", .use = FieldUse::refused},
    {.name = "structured_outputs", .use = FieldUse::refused},
    {.name = "guided_json", .use = FieldUse::refused},
    {.name = "guided_regex", .use = FieldUse::refused},
    {.name = "guided_choice", .use = FieldUse::refused, .help = "see /v1/classify"},
    {.name = "guided_grammar", .use = FieldUse::refused},
    {.name = "json_schema", .use = FieldUse::refused},
    {.name = "grammar",
     .type = kNoText,
     .by_default = std::string_view(""),
     .help = "Only an empty string."},
};

}  // namespace

FieldTable<GenerationFields> generation_fields() { return kGenerationFields; }

}  // namespace paceline
