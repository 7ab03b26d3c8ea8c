// The fields for the number of choices and for what is reported of them.
#include <limits>

#include "engine/request.h"
#include "protocol/client_fields.h"
#include "protocol/request_fields.h"

namespace paceline {
namespace {

constexpr FieldDef<StreamFields> kStreamOptions[] = {
    {.name = "include_usage",
     .type = kBoolean,
     .by_default = false,
     .help = "Send the usage in a last chunk of its own.",
     .read = [](const FieldValue& v, StreamFields& t) { t.include_usage = v.boolean(); }},
    {.name = "continuous_usage_stats",
     .type = kBoolean,
     .by_default = false,
     .help = "Send the usage so far in every chunk.",
     .read = [](const FieldValue& v, StreamFields& t) { t.continuous_usage = v.boolean(); }},
    {.name = "include_accepted",
     .type = kBoolean,
     .by_default = false,
     .help = "Add pieces to chunks with drafted tokens: the text, each part with accepted.",
     .read = [](const FieldValue& v, StreamFields& t) { t.include_accepted = v.boolean(); }},
};

FieldList stream_options() {
  FieldList list = list_fields<StreamFields>(kStreamOptions);
  append_client_fields(FieldLevel::stream_options, list);
  return list;
}

void read_stream_options(const FieldValue& value, GenerationFields& target) {
  RequestReader reader(value);
  reader.read<StreamFields>(kStreamOptions, target.streaming);
  read_client_fields(FieldLevel::stream_options, reader);
  reader.finish();
  target.streaming.has_options = true;
}

constexpr FieldDef<StreamFields> kUsageFields[] = {
    {.name = "include",
     .type = kBoolean,
     .by_default = false,
     .help = "The same as stream_options.include_usage; whole answers always have the usage.",
     .read = [](const FieldValue& v,
                StreamFields& t) { t.include_usage = t.include_usage || v.boolean(); }},
};

void read_usage_fields(const FieldValue& value, GenerationFields& target) {
  RequestReader reader(value);
  reader.read<StreamFields>(kUsageFields, target.streaming);
  reader.finish();
}

constexpr FieldType kChoices = {
    .kind = FieldKind::integer, .min = 1, .max = kMaxChoices, .counts_choices = true};

void read_return_tokens(const FieldValue& value, GenerationFields& target) {
  target.return_token_ids = target.return_token_ids || value.boolean();
}

constexpr FieldDef<GenerationFields> kGenerationFields[] = {
    {.name = "n",
     .type = kChoices,
     .by_default = int64_t{1},
     .help = "Answers to each prompt; the k-th has the seed plus k.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.n = v.small_integer(); }},
    {.name = "prompt_logprobs",
     .type = kNumTopLogprobs,
     .help = "Report the prompt's tokens, each with this many alternatives.",
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
    {.name = "usage",
     .type = object_type(fields_of<kUsageFields>),
     .help = "OpenRouter's way to ask for the usage of a stream.",
     .read = read_usage_fields},
    {.name = "spaces_between_special_tokens",
     .type = kOnlyTrue,
     .by_default = true,
     .help = "Only true."},
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
    {.name = "repeat_last_n",
     .type = integer_type(-1, std::numeric_limits<int32_t>::max()),
     .help = "With a penalty only -1: penalties see the whole text.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.penalised_tokens = v.integer(); }},
    {.name = "length_penalty", .use = FieldUse::refused},
};

}  // namespace

FieldTable<GenerationFields> generation_fields() { return kGenerationFields; }

}  // namespace paceline
