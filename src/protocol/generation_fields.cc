// The fields for the number of choices and for what is reported of them.
#include <limits>

#include "engine/request.h"
#include "protocol/request_fields.h"
#include "protocol/request_reader.h"

namespace paceline {
namespace {

constexpr FieldDef<StreamFields> kStreamOptions[] = {
    field("include_usage", kBoolean, "Send the usage in a last chunk of its own.", kOff,
          store<&StreamFields::include_usage>),
    field("continuous_usage_stats", kBoolean, "Send the usage so far in every chunk.", kOff,
          store<&StreamFields::continuous_usage>),
    field("include_accepted", kBoolean,
          "Add pieces to chunks with drafted tokens: the text, each part with accepted.", kOff,
          store<&StreamFields::include_accepted>),
};

void read_stream_options(const FieldValue& value, GenerationFields& target) {
  read_members<kStreamOptions, FieldLevel::stream_options>(value, target.streaming);
  target.streaming.has_options = true;
}

constexpr FieldDef<StreamFields> kUsageFields[] = {
    field("include", kBoolean,
          "The same as stream_options.include_usage; whole answers always have the usage.", kOff,
          [](const FieldValue& v, StreamFields& t) {
            t.include_usage = t.include_usage || v.boolean();
          }),
};

void read_return_tokens(const FieldValue& value, GenerationFields& target) {
  target.return_token_ids = target.return_token_ids || value.boolean();
}

constexpr FieldDef<GenerationFields> kGenerationFields[] = {
    field("n", kNumChoices, "Answers to each prompt; the k-th has the seed plus k.",
          {.by_default = 1}, store<&GenerationFields::n>),
    field("prompt_logprobs", kNumTopLogprobs,
          "Report the prompt's tokens, each with this many alternatives.",
          store<&GenerationFields::prompt_logprobs>),
    field("return_token_ids", kBoolean, "Add token_ids to each choice.", kOff, read_return_tokens),
    field("return_tokens", kBoolean, "llama.cpp's name of it.",
          {.by_default = false, .alias_of = "return_token_ids"}, read_return_tokens),
    field("timings", kBoolean, "Add timings to each choice: tokens, milliseconds and rates.", kOff,
          store<&GenerationFields::timings>),
    field("return_tokens_as_token_ids", kBoolean,
          "Write tokens as token_id:N where log-probabilities name them.", kOff,
          store<&GenerationFields::return_tokens_as_token_ids>),
    field("stream", kBoolean, "Answer in events as the text comes.", kOff,
          store<&GenerationFields::streaming, &StreamFields::stream>),
    field("stream_options", object_type(fields_of<kStreamOptions, FieldLevel::stream_options>),
          "What a streamed answer has besides; only allowed with stream.", read_stream_options),
    field("usage", object_type(fields_of<kUsageFields>),
          "OpenRouter's way to ask for the usage of a stream.",
          [](const FieldValue& v, GenerationFields& t) {
            read_members<kUsageFields>(v, t.streaming);
          }),
    field("spaces_between_special_tokens", kOnlyTrue, "Only true.", kOn),
    field("stream_interval", integer_type(1, kMaxOutputTokens),
          "With stream: tokens of a chunk; the first one comes alone, the last when it ends.",
          {.by_default = 1}, store<&GenerationFields::streaming, &StreamFields::interval>),
    field("use_beam_search", kOnlyFalse, "Only false.", kOff),
    ignored("cache_prompt", kBoolean, "Prompts are always cached; cache_salt keeps them apart."),
    ignored("id_slot", integer_type(-1, std::numeric_limits<int32_t>::max()),
            "There are no slots; cached prompts are found without one."),
    field("repeat_last_n", integer_type(-1, std::numeric_limits<int32_t>::max()),
          "With a penalty only -1: penalties see the whole text.",
          store<&GenerationFields::penalised_tokens>),
    refused("length_penalty"),
};

}  // namespace

FieldTable<GenerationFields> generation_fields() { return kGenerationFields; }

}  // namespace paceline
