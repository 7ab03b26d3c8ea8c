#include "protocol/request_fields.h"

#include <fmt/format.h>

#include "engine/request.h"
#include "protocol/api_error.h"

namespace paceline {
namespace {

constexpr auto kAnyPrompt =
    "a string, an array of strings, of token ids, or of arrays of token ids";

constexpr FieldDef<CommonFields> kCommonFields[] = {
    {.name = "model",
     .help = "The model's name.",
     .read = [](const FieldValue& v, CommonFields& t) { t.model = v.text(); }},
    {.name = "priority",
     .help = "Lower ones run first; never changes the answer.",
     .read = [](const FieldValue& v,
                CommonFields& t) { t.priority = static_cast<int32_t>(v.integer(-1000, 1000)); }},
    {.name = "cache_salt",
     .help = "Requests share cached prompts only with those of the same salt.",
     .read =
         [](const FieldValue& v, CommonFields& t) {
           if (v.text().size() > kMaxSaltBytes) v.refuse("at most 1024 bytes");
           t.cache_salt = v.text();
         }},
    {.name = "user",
     .use = FieldUse::accepted,
     .help = "The caller's own mark.",
     .read = [](const FieldValue& v, CommonFields&) { v.text(); }},
    {.name = "metadata",
     .use = FieldUse::accepted,
     .help = "The caller's own notes.",
     .read = [](const FieldValue& v, CommonFields&) { v.object(); }},
    {.name = "store",
     .use = FieldUse::accepted,
     .help = "Nothing is ever stored.",
     .read = [](const FieldValue& v, CommonFields&) { v.boolean(); }},
    {.name = "service_tier",
     .use = FieldUse::accepted,
     .help = "There is one tier.",
     .read = [](const FieldValue& v, CommonFields&) { v.text(); }},
    {.name = "safety_identifier",
     .use = FieldUse::accepted,
     .help = "The caller's own mark.",
     .read = [](const FieldValue& v, CommonFields&) { v.text(); }},
    {.name = "prompt_cache_key",
     .use = FieldUse::accepted,
     .help = "Cached prompts are found without it.",
     .read = [](const FieldValue& v, CommonFields&) { v.text(); }},
};

struct StreamOptions {
  bool include_usage = false;
};

constexpr FieldDef<StreamOptions> kStreamOptions[] = {
    {.name = "include_usage",
     .help = "Send the usage in a last chunk of its own.",
     .read = [](const FieldValue& v, StreamOptions& t) { t.include_usage = v.boolean(); }},
    {.name = "include_obfuscation",
     .use = FieldUse::accepted,
     .help = "Nothing is padded.",
     .read = [](const FieldValue& v, StreamOptions&) { v.boolean(); }},
    {.name = "continuous_usage_stats",
     .help = "Only false.",
     .read = [](const FieldValue& v, StreamOptions&) { v.only(false); }},
};

void read_stream_options(const FieldValue& value, GenerationFields& target) {
  StreamOptions options;
  RequestReader reader(value);
  reader.read<StreamOptions>(kStreamOptions, options);
  reader.finish();
  target.streaming.has_options = true;
  target.streaming.include_usage = options.include_usage;
}

std::string read_stop(const FieldValue& value) {
  const std::string& text = value.text();
  if (text.empty()) value.refuse("some text");
  if (text.size() > kMaxStopBytes) {
    throw RequestError(
        value.path(), "invalid_value",
        fmt::format("{}: {} bytes, expected at most {}", value.path(), text.size(), kMaxStopBytes));
  }
  return text;
}

void read_stops(const FieldValue& value, GenerationFields& target) {
  if (value.json().is_string()) {
    target.stop = {read_stop(value)};
    return;
  }
  if (!value.json().is_array()) value.refuse("a string or an array of strings");
  for (const FieldValue& item : value.items(kMaxStops)) target.stop.push_back(read_stop(item));
}

constexpr FieldDef<GenerationFields> kGenerationFields[] = {
    {.name = "n",
     .help = "Answers to each prompt, 1 to 128; the k-th has the seed plus k.",
     .read = [](const FieldValue& v,
                GenerationFields& t) { t.n = static_cast<int32_t>(v.integer(1, kMaxChoices)); }},
    {.name = "stop",
     .help = "Up to 4 strings of at most 256 bytes before which the text ends.",
     .read = read_stops},
    {.name = "stop_token_ids",
     .help = "Up to 128 token ids at which the text ends.",
     .read = [](const FieldValue& v,
                GenerationFields& t) { t.stop_token_ids = v.token_ids(kMaxStopTokenIds); }},
    {.name = "ignore_eos",
     .help = "Go on past the end-of-sequence tokens.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.ignore_eos = v.boolean(); }},
    {.name = "prompt_logprobs",
     .help = "Report the prompt's tokens with so many alternatives, 0 to 20.",
     .read =
         [](const FieldValue& v, GenerationFields& t) {
           t.prompt_logprobs = static_cast<int32_t>(v.integer(0, kMaxTopLogprobs));
         }},
    {.name = "return_token_ids",
     .help = "Add token_ids to each choice.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.return_token_ids = v.boolean(); }},
    {.name = "return_tokens_as_token_ids",
     .help = "Write tokens as token_id:N where log-probabilities name them.",
     .read = [](const FieldValue& v,
                GenerationFields& t) { t.return_tokens_as_token_ids = v.boolean(); }},
    {.name = "stream",
     .help = "Answer in events as the text comes.",
     .read = [](const FieldValue& v, GenerationFields& t) { t.streaming.stream = v.boolean(); }},
    {.name = "stream_options", .help = "include_usage.", .read = read_stream_options},
    {.name = "min_tokens",
     .help = "Only 0.",
     .read = [](const FieldValue& v, GenerationFields&) { v.only(int64_t{0}); }},
    {.name = "include_stop_str_in_output",
     .help = "Only false.",
     .read = [](const FieldValue& v, GenerationFields&) { v.only(false); }},
    {.name = "skip_special_tokens",
     .help = "Only true.",
     .read = [](const FieldValue& v, GenerationFields&) { v.only(true); }},
    {.name = "spaces_between_special_tokens",
     .help = "Only true.",
     .read = [](const FieldValue& v, GenerationFields&) { v.only(true); }},
    {.name = "bad_words",
     .help = "Only an empty array.",
     .read = [](const FieldValue& v, GenerationFields&) { v.only_empty(); }},
    {.name = "use_beam_search",
     .help = "Only false.",
     .read = [](const FieldValue& v, GenerationFields&) { v.only(false); }},
    {.name = "allowed_token_ids", .use = FieldUse::refused, .help = "logit_bias comes nearest"},
    {.name = "logprob_token_ids", .use = FieldUse::refused, .help = "see /v1/classify"},
    {.name = "truncate_prompt_tokens", .use = FieldUse::refused},
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

FieldTable<CommonFields> common_fields() { return kCommonFields; }
FieldTable<GenerationFields> generation_fields() { return kGenerationFields; }

void check_stream_fields(const StreamFields& streaming) {
  if (streaming.has_options && !streaming.stream) {
    throw RequestError("stream_options", "invalid_value",
                       "stream_options: only allowed when stream is true");
  }
}

std::string PromptList::name(std::string_view field, size_t index) const {
  return is_array ? fmt::format("{}[{}]", field, index) : std::string(field);
}

PromptList read_prompts(const FieldValue& value, size_t max_prompts) {
  if (value.json().is_string()) return {.prompts = {value.text()}};
  if (!value.json().is_array() || value.json().as_array("").empty()) value.refuse(kAnyPrompt);
  const Json& first = value.json().as_array("")[0];
  if (first.is_number()) {
    return {.prompts = {value.token_ids(static_cast<size_t>(kMaxOutputTokens))}};
  }
  if (!first.is_string() && !first.is_array()) {
    FieldValue(first, value.path() + "[0]").refuse("a string, a token id or an array of token ids");
  }
  PromptList list{.prompts = {}, .is_array = true};
  for (const FieldValue& item : value.items(max_prompts)) {
    if (first.is_string()) {
      list.prompts.emplace_back(item.text());
    } else {
      list.prompts.emplace_back(item.token_ids(static_cast<size_t>(kMaxOutputTokens)));
    }
  }
  return list;
}

}  // namespace paceline
