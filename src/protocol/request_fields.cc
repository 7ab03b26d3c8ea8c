#include "protocol/request_fields.h"

#include <fmt/format.h>

#include "base/request_error.h"

namespace paceline {
namespace {

constexpr int64_t kLowestPriority = 1000;

constexpr FieldDef<CommonFields> kCommonFields[] = {
    field("model", kAnyText, "The model's name.", store<&CommonFields::model>),
    field("priority", integer_type(-kLowestPriority, kLowestPriority),
          "Lower ones run first; never changes the answer.", {.by_default = 0},
          store<&CommonFields::priority>),
    field("cache_salt", text_type(0, kMaxSaltBytes),
          "Requests share cached prompts only with those of the same salt.", {.by_default = ""},
          store<&CommonFields::cache_salt>),
};

}  // namespace

FieldTable<CommonFields> common_fields() { return kCommonFields; }

std::string PromptList::name(std::string_view field, size_t index) const {
  return is_array ? fmt::format("{}[{}]", field, index) : std::string(field);
}

PromptList read_prompts(const FieldValue& value) {
  if (value.json().is_string()) return {.prompts = {value.text()}};
  const Json& first = value.at().array()[0];
  if (first.is_number()) return {.prompts = {value.token_ids()}};
  PromptList list{.is_array = true};
  for (const FieldValue& item : value.items()) {
    if (first.is_string()) {
      list.prompts.emplace_back(item.text());
    } else {
      list.prompts.emplace_back(item.token_ids());
    }
  }
  return list;
}

std::optional<int32_t> num_alternatives(const GenerateOptions& options,
                                        std::optional<int32_t> num_top) {
  if (!num_top || options.logprob_token_ids.empty()) return num_top;
  return static_cast<int32_t>(options.logprob_token_ids.size());
}

SpecialTokens specials_of(const GenerateOptions& options) {
  return options.skip_special_tokens ? SpecialTokens::hidden : SpecialTokens::shown;
}

void append_generation_fields(FieldList& list) {
  append_fields(generation_fields(), list);
  append_fields(constraint_fields(), list);
  append_fields(text_fields(), list);
  append_fields(sampling_fields(), list);
}

bool has_negative_seed(const Json& body) {
  const Json* const seed = body.find_value("seed");
  return seed != nullptr && seed->is_negative();
}

void check_logprob_fields(const GenerateOptions& options, bool has_logprobs) {
  if (options.logprob_token_ids.empty() || has_logprobs) return;
  throw invalid_field("logprob_token_ids", "only allowed with logprobs");
}

void check_penalty_fields(const GenerationFields& fields, const GenerateOptions& options) {
  if (fields.penalised_tokens.value_or(-1) == -1) return;
  const bool has_penalty = options.repetition_penalty.value_or(1) != 1 ||
                           options.frequency_penalty != 0 || options.presence_penalty != 0;
  if (!has_penalty) return;
  throw RequestError(
      "repeat_last_n", ErrorReason::unsupported_parameter,
      "repeat_last_n: only -1 is supported with a penalty, which sees the whole text");
}

void check_stream_fields(const StreamFields& streaming) {
  if (streaming.has_options && !streaming.stream) {
    throw invalid_field("stream_options", "only allowed when stream is true");
  }
}

}  // namespace paceline
