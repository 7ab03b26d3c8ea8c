// The fields that say how a text goes on, ends, and is reported.
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
    {.name = "continuous_usage_stats", .type = kOnlyFalse, .help = "Only false."},
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
constexpr FieldType kNoItems = {
    .kind = FieldKind::array, .max = 0, .is_part_of_api = true, .said = "an empty array"};
constexpr FieldType kChoices = {
    .kind = FieldKind::integer, .min = 1, .max = kMaxChoices, .counts_choices = true};

void read_stops(const FieldValue& value, GenerationFields& target) {
  if (value.json().is_string()) {
    target.stop = {value.text()};
    return;
  }
  for (const FieldValue& item : value.items()) target.stop.push_back(item.text());
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
     .read = [](const FieldValue& v, GenerationFields& t) { t.return_token_ids = v.boolean(); }},
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
    {.name = "skip_special_tokens", .type = kOnlyTrue, .by_default = true, .help = "Only true."},
    {.name = "spaces_between_special_tokens",
     .type = kOnlyTrue,
     .by_default = true,
     .help = "Only true."},
    {.name = "bad_words", .type = kNoItems, .help = "Only an empty array."},
    {.name = "use_beam_search", .type = kOnlyFalse, .by_default = false, .help = "Only false."},
    {.name = "cache_prompt",
     .type = kBoolean,
     .use = FieldUse::accepted,
     .help = "Prompts are always cached; cache_salt keeps them apart."},
    {.name = "id_slot", .use = FieldUse::refused, .help = "there are no slots"},
    {.name = "allowed_token_ids", .use = FieldUse::refused, .help = "logit_bias comes nearest"},
    {.name = "logprob_token_ids", .use = FieldUse::refused, .help = "see /v1/classify"},
    {.name = "length_penalty", .use = FieldUse::refused},
    {.name = "structured_outputs", .use = FieldUse::refused},
    {.name = "guided_json", .use = FieldUse::refused},
    {.name = "guided_regex", .use = FieldUse::refused},
    {.name = "guided_choice", .use = FieldUse::refused, .help = "see /v1/classify"},
    {.name = "guided_grammar", .use = FieldUse::refused},
    {.name = "json_schema", .use = FieldUse::refused},
    {.name = "grammar", .use = FieldUse::refused},
};

}  // namespace

FieldTable<GenerationFields> generation_fields() { return kGenerationFields; }

}  // namespace paceline
