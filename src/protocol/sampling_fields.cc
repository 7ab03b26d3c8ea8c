// The fields that say how a token is chosen.
#include <algorithm>
#include <charconv>
#include <limits>

#include "protocol/request_fields.h"

namespace paceline {
namespace {

constexpr FieldType kPenalty = number_type({.min = -2, .max = 2});
// Beyond these the logits would leave the range of floats.
constexpr FieldType kRepetitionPenalty = number_type({.min = 0.01, .max = 100});
constexpr FieldType kShare = number_type({.min = 0, .max = 1});

constexpr FieldType kBias = number_type({.min = -100, .max = 100});
constexpr FieldType kNever = {.kind = FieldKind::boolean, .booleans = Booleans::only_false};
constexpr FieldType kBiasesOrNever[] = {kBias, kNever};
constexpr FieldType kBiasOrNever =
    one_of_type(kBiasesOrNever, "a number from -100 to 100, or false");
constexpr FieldType kIdAndBias[] = {kTokenId, kBiasOrNever};
constexpr FieldType kBiasPair = {
    .kind = FieldKind::tuple, .min = 2, .max = 2, .parts = kIdAndBias, .said = "[token id, bias]"};
constexpr FieldType kBiasOfIds = {
    .kind = FieldKind::object, .max = kMaxBiasEntries, .item = &kBiasOrNever, .keys_are_ids = true};
// OpenAI's, and llama.cpp's two.
constexpr FieldType kBiasKinds[] = {kBiasOfIds, array_type(kBiasPair, 0, kMaxBiasEntries), kNever};

constexpr std::string_view kSamplerOrders[] = {"default", "mlx"};

void read_repetition_penalty(const FieldValue& value, SamplingFields& target) {
  if (target.repetition_penalty) {
    value.refuse("only one of repetition_penalty and repeat_penalty");
  }
  target.repetition_penalty = value.number();
}

void read_seed(const FieldValue& value, SamplingFields& target) {
  target.seed = value.seed();
  target.has_negative_seed = value.is_negative();
}

int32_t id_of_key(std::string_view key) {
  int32_t id = 0;
  std::from_chars(key.data(), key.data() + key.size(), id);
  return id;
}

float bias_of(const FieldValue& value) {
  return value.json().is_bool() ? -std::numeric_limits<float>::infinity() : value.number();
}

void read_logit_bias(const FieldValue& value, SamplingFields& target) {
  if (value.json().is_bool()) return;
  if (value.json().is_array()) {
    for (const FieldValue& item : value.items()) {
      const auto pair = item.items();
      target.logit_bias.emplace_back(pair[0].small_integer(), bias_of(pair[1]));
    }
    return;
  }
  for (const auto& [key, bias] : value.object()) {
    target.logit_bias.emplace_back(id_of_key(key),
                                   bias_of(FieldValue(bias, value.path(), value.terms())));
  }
}

constexpr FieldDef<SamplingFields> kSamplingFields[] = {
    {.name = "temperature",
     .type = number_type({.min = 0, .max = 2}),
     .help = "Randomness of the draw; 0 always takes the likeliest token.",
     .read = [](const FieldValue& v, SamplingFields& t) { t.temperature = v.number(); }},
    {.name = "top_p",
     .type = number_type({.min = 0, .max = 1, .above_min = true}),
     .help = "Draw from the likeliest tokens that together have this probability.",
     .read = [](const FieldValue& v, SamplingFields& t) { t.top_p = v.number(); }},
    {.name = "top_k",
     .type = integer_type(-1, std::numeric_limits<int32_t>::max()),
     .help = "Draw from so many likeliest tokens; 0 or -1: from all.",
     .read = [](const FieldValue& v,
                SamplingFields& t) { t.top_k = std::max(v.small_integer(), 0); }},
    {.name = "min_p",
     .type = kShare,
     .help = "Drop tokens less likely than this times the likeliest.",
     .read = [](const FieldValue& v, SamplingFields& t) { t.min_p = v.number(); }},
    {.name = "repetition_penalty",
     .type = kRepetitionPenalty,
     .help = "Above 1 makes every token of prompt and output less likely.",
     .read = read_repetition_penalty},
    {.name = "repeat_penalty",
     .type = kRepetitionPenalty,
     .alias_of = "repetition_penalty",
     .help = "llama.cpp's name of it.",
     .read = read_repetition_penalty},
    {.name = "frequency_penalty",
     .type = kPenalty,
     .by_default = 0.0,
     .help = "Subtracted from a token's logit for each time it is in the output.",
     .read = [](const FieldValue& v, SamplingFields& t) { t.frequency_penalty = v.number(); }},
    {.name = "presence_penalty",
     .type = kPenalty,
     .by_default = 0.0,
     .help = "Subtracted from a token's logit when it is in the output at all.",
     .read = [](const FieldValue& v, SamplingFields& t) { t.presence_penalty = v.number(); }},
    {.name = "logit_bias",
     .type = one_of_type(kBiasKinds, "an object of token ids and biases"),
     .help =
         "Added to the logits of token ids: {\"ID\": X} or [[ID, X]]; in place of X false: never.",
     .read = read_logit_bias},
    {.name = "sampler_order",
     .type = word_type(kSamplerOrders),
     .by_default = std::string_view("default"),
     .help =
         "default (temperature, min-p, top-k, top-p) or mlx (top-p, min-p, top-k, temperature).",
     .read = [](const FieldValue& v,
                SamplingFields& t) { t.mlx_sampler_order = v.text() == "mlx"; }},
    {.name = "seed",
     .type = integer_type(std::numeric_limits<int64_t>::min(), kNoMaximum),
     .help = "The same seed gives the same answer; a random one is told in the answer.",
     .read = read_seed},
    {.name = "repeat_last_n",
     .type = integer_type(-1, std::numeric_limits<int32_t>::max()),
     .help = "With a penalty only -1: penalties see the whole text.",
     .read = [](const FieldValue& v, SamplingFields& t) { t.penalised_tokens = v.integer(); }},
};

}  // namespace

FieldTable<SamplingFields> sampling_fields() { return kSamplingFields; }

}  // namespace paceline
