// The fields for the number of choices and for what is reported of them.
#include <limits>

#include "engine/request.h"
#include "protocol/client_fields.h"
#include "protocol/request_fields.h"

namespace paceline {
namespace {

constexpr FieldDef<StreamFields> kStreamOptions[] = {
    field("include_usage", kBoolean, store<&StreamFields::include_usage>,
          "Send the usage in a last chunk of its own.", kOff),
    field("continuous_usage_stats", kBoolean, store<&StreamFields::continuous_usage>,
          "Send the usage so far in every chunk.", kOff),
    field("include_accepted", kBoolean, store<&StreamFields::include_accepted>,
          "Add pieces to chunks with drafted tokens: the text, each part with accepted.", kOff),
};

void read_stream_options(const FieldValue& value, GenerationFields& target) {
  read_members<kStreamOptions, FieldLevel::stream_options>(value, target.streaming);
  target.streaming.has_options = true;
}

constexpr FieldDef<StreamFields> kUsageFields[] = {
    field(
        "include", kBoolean,
        [](const FieldValue& v, StreamFields& t) {
          t.include_usage = t.include_usage || v.boolean();
        },
        "The same as stream_options.include_usage; whole answers always have the usage.", kOff),
};

constexpr FieldType kChoices = {
    .kind = FieldKind::integer, .min = 1, .max = kMaxChoices, .counts_choices = true};

void read_return_tokens(const FieldValue& value, GenerationFields& target) {
  target.return_token_ids = target.return_token_ids || value.boolean();
}

constexpr FieldDef<GenerationFields> kGenerationFields[] = {
    field("n", kChoices, store<&GenerationFields::n>,
          "Answers to each prompt; the k-th has the seed plus k.", {.by_default = 1}),
    field("prompt_logprobs", kNumTopLogprobs, store<&GenerationFields::prompt_logprobs>,
          "Report the prompt's tokens, each with this many alternatives."),
    field("return_token_ids", kBoolean, read_return_tokens, "Add token_ids to each choice.", kOff),
    field("return_tokens", kBoolean, read_return_tokens, "llama.cpp's name of it.",
          {.by_default = false, .alias_of = "return_token_ids"}),
    field("timings", kBoolean, store<&GenerationFields::timings>,
          "Add timings to each choice: tokens, milliseconds and rates.", kOff),
    field("return_tokens_as_token_ids", kBoolean,
          store<&GenerationFields::return_tokens_as_token_ids>,
          "Write tokens as token_id:N where log-probabilities name them.", kOff),
    field("stream", kBoolean, store<&GenerationFields::streaming, &StreamFields::stream>,
          "Answer in events as the text comes.", kOff),
    field("stream_options", object_type(fields_of<kStreamOptions, FieldLevel::stream_options>),
          read_stream_options, "What a streamed answer has besides; only allowed with stream."),
    field(
        "usage", object_type(fields_of<kUsageFields>),
        [](const FieldValue& v, GenerationFields& t) {
          read_members<kUsageFields>(v, t.streaming);
        },
        "OpenRouter's way to ask for the usage of a stream."),
    field("spaces_between_special_tokens", kOnlyTrue, "Only true.", kOn),
    field("stream_interval", integer_type(1, kMaxOutputTokens),
          store<&GenerationFields::streaming, &StreamFields::interval>,
          "With stream: tokens of a chunk; the first one comes alone, the last when it ends.",
          {.by_default = 1}),
    field("use_beam_search", kOnlyFalse, "Only false.", kOff),
    ignored("cache_prompt", kBoolean, "Prompts are always cached; cache_salt keeps them apart."),
    ignored("id_slot", integer_type(-1, std::numeric_limits<int32_t>::max()),
            "There are no slots; cached prompts are found without one."),
    field("repeat_last_n", integer_type(-1, std::numeric_limits<int32_t>::max()),
          store<&GenerationFields::penalised_tokens>,
          "With a penalty only -1: penalties see the whole text."),
    refused("length_penalty"),
};

}  // namespace

FieldTable<GenerationFields> generation_fields() { return kGenerationFields; }

}  // namespace paceline
