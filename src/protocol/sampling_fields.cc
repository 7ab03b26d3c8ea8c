// The fields that say how a token is chosen.
#include <charconv>
#include <limits>

#include "protocol/request_fields.h"

namespace paceline {
namespace {

constexpr NumberRange kBiasRange = {.min = -100, .max = 100};
constexpr double kMaxFloat = static_cast<double>(std::numeric_limits<float>::max());

float real(const FieldValue& value, NumberRange range) {
  return static_cast<float>(value.number(range));
}

void read_repetition_penalty(const FieldValue& value, SamplingFields& target) {
  if (target.repetition_penalty) {
    value.refuse("only one of repetition_penalty and repeat_penalty");
  }
  target.repetition_penalty = real(value, {.min = 0, .max = kMaxFloat, .above_min = true});
}

int32_t id_of_key(std::string_view key, const FieldValue& entry) {
  int32_t id = -1;
  const char* const end = key.data() + key.size();
  const auto parsed = std::from_chars(key.data(), end, id);
  if (parsed.ec != std::errc() || parsed.ptr != end || id < 0) {
    entry.refuse("a token id as its key");
  }
  return id;
}

// {"ID": X}, or llama.cpp's [[ID, X]] and false.
void read_logit_bias(const FieldValue& value, SamplingFields& target) {
  if (value.json().is_bool() && !value.boolean()) return;
  if (value.json().is_array()) {
    for (const FieldValue& item : value.items(kMaxBiasEntries)) {
      const auto pair = item.items(2);
      if (pair.size() != 2) item.refuse("[token id, bias]");
      target.logit_bias.emplace_back(pair[0].token_id(), real(pair[1], kBiasRange));
    }
    return;
  }
  if (!value.json().is_object()) value.refuse("an object of token ids and biases");
  if (value.object().size() > kMaxBiasEntries) value.refuse("at most 1024 entries");
  for (const auto& [key, bias] : value.object()) {
    const FieldValue entry(bias, value.path() + "." + key);
    target.logit_bias.emplace_back(id_of_key(key, entry), real(entry, kBiasRange));
  }
}

constexpr FieldDef<SamplingFields> kSamplingFields[] = {
    {.name = "temperature",
     .help = "Randomness of the draw, 0 to 2; 0 always takes the likeliest token.",
     .read = [](const FieldValue& v,
                SamplingFields& t) { t.temperature = real(v, {.min = 0, .max = 2}); }},
    {.name = "top_p",
     .help = "Draw from the likeliest tokens that together have this probability.",
     .read = [](const FieldValue& v,
                SamplingFields& t) { t.top_p = real(v, {.min = 0, .max = 1, .above_min = true}); }},
    {.name = "top_k",
     .help = "Draw from so many likeliest tokens; 0 or -1: from all.",
     .read =
         [](const FieldValue& v, SamplingFields& t) {
           const int64_t k = v.integer(-1, std::numeric_limits<int32_t>::max());
           t.top_k = k < 0 ? 0 : static_cast<int32_t>(k);
         }},
    {.name = "min_p",
     .help = "Drop tokens less likely than this times the likeliest, 0 to 1.",
     .read = [](const FieldValue& v,
                SamplingFields& t) { t.min_p = real(v, {.min = 0, .max = 1}); }},
    {.name = "repetition_penalty",
     .help = "Above 1 makes every token of prompt and output less likely.",
     .read = read_repetition_penalty},
    {.name = "repeat_penalty",
     .help = "The same as repetition_penalty.",
     .read = read_repetition_penalty},
    {.name = "frequency_penalty",
     .help = "Subtracted from a token's logit for each time it is in the output, -2 to 2.",
     .read = [](const FieldValue& v,
                SamplingFields& t) { t.frequency_penalty = real(v, {.min = -2, .max = 2}); }},
    {.name = "presence_penalty",
     .help = "Subtracted from a token's logit when it is in the output at all, -2 to 2.",
     .read = [](const FieldValue& v,
                SamplingFields& t) { t.presence_penalty = real(v, {.min = -2, .max = 2}); }},
    {.name = "logit_bias",
     .help = "Added to the logits of token ids: {\"ID\": X} with X from -100 to 100.",
     .read = read_logit_bias},
    {.name = "sampler_order",
     .help =
         "default (temperature, min-p, top-k, top-p) or mlx (top-p, min-p, top-k, temperature).",
     .read =
         [](const FieldValue& v, SamplingFields& t) {
           if (v.text() != "default" && v.text() != "mlx") v.refuse("\"default\" or \"mlx\"");
           t.mlx_sampler_order = v.text() == "mlx";
         }},
    {.name = "seed",
     .help = "The same seed gives the same answer; a random one is told in the answer.",
     .read = [](const FieldValue& v, SamplingFields& t) { t.seed = v.seed(); }},
};

}  // namespace

FieldTable<SamplingFields> sampling_fields() { return kSamplingFields; }

}  // namespace paceline
