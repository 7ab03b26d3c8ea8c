#include "protocol/request_fields.h"

#include "base/request_error.h"
#include "protocol/field_match.h"

namespace paceline {
namespace {

constexpr int64_t kLowestPriority = 1000;

constexpr FieldDef<CommonFields> kCommonFields[] = {
    {.name = "model",
     .type = kAnyText,
     .help = "The model's name.",
     .read = [](const FieldValue& v, CommonFields& t) { t.model = v.text(); }},
    {.name = "priority",
     .type = integer_type(-kLowestPriority, kLowestPriority),
     .by_default = int64_t{0},
     .help = "Lower ones run first; never changes the answer.",
     .read = [](const FieldValue& v, CommonFields& t) { t.priority = v.small_integer(); }},
    {.name = "cache_salt",
     .type = text_type(0, kMaxSaltBytes),
     .by_default = std::string_view(""),
     .help = "Requests share cached prompts only with those of the same salt.",
     .read = [](const FieldValue& v, CommonFields& t) { t.cache_salt = v.text(); }},
};

}  // namespace

FieldTable<CommonFields> common_fields() { return kCommonFields; }

std::optional<int32_t> num_alternatives(const GenerateOptions& options,
                                        std::optional<int32_t> num_top) {
  if (!num_top || options.logprob_token_ids.empty()) return num_top;
  return static_cast<int32_t>(options.logprob_token_ids.size());
}

SpecialTokens specials_of(const GenerateOptions& options) {
  return options.skip_special_tokens ? SpecialTokens::hidden : SpecialTokens::shown;
}

bool has_negative_seed(const Json& body) {
  const Json* seed = body.find_value("seed");
  const auto value = seed == nullptr ? std::nullopt : whole_number(*seed);
  return value && value->is_negative;
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
  throw RequestError("repeat_last_n", ErrorReason::unsupported_parameter,
                     "repeat_last_n: only -1 is supported with a penalty, which sees the whole "
                     "text");
}

void check_stream_fields(const StreamFields& streaming) {
  if (streaming.has_options && !streaming.stream) {
    throw invalid_field("stream_options", "only allowed when stream is true");
  }
}

}  // namespace paceline
