#include "models/refused_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/json_cursor.h"

namespace paceline {
namespace {

using KindNames = std::span<const std::string_view>;

// Some of its layers aren't attention.
constexpr auto kRecurrentNames = std::to_array<std::string_view>({"bailing_hybrid",
                                                                  "bamba",
                                                                  "falcon-h1",
                                                                  "falcon_h1",
                                                                  "falcon_mamba",
                                                                  "granitehybrid",
                                                                  "jamba",
                                                                  "kimi-linear",
                                                                  "kimi_linear",
                                                                  "lfm2",
                                                                  "lfm2_moe",
                                                                  "lfm2moe",
                                                                  "mamba",
                                                                  "mamba2",
                                                                  "minimax",
                                                                  "nemotron_h",
                                                                  "olmo_hybrid",
                                                                  "plamo2",
                                                                  "qwen35",
                                                                  "qwen35moe",
                                                                  "qwen3_5",
                                                                  "qwen3_5_moe",
                                                                  "qwen3_5_moe_text",
                                                                  "qwen3_5_text",
                                                                  "qwen3_next",
                                                                  "qwen3next",
                                                                  "recurrent_gemma",
                                                                  "rwkv",
                                                                  "rwkv6",
                                                                  "rwkv7",
                                                                  "xlstm",
                                                                  "zamba",
                                                                  "zamba2"});
// Keys and values are kept as one compressed vector.
constexpr auto kLatentNames = std::to_array<std::string_view>(
    {"deepseek2", "deepseek_v2", "deepseek_v3", "deepseek_v32", "glm4_moe_lite", "kimi_k2",
     "kimi_k25", "longcat_flash", "minicpm3", "plm", "youtu"});
constexpr auto kEncoderNames = std::to_array<std::string_view>(
    {"albert", "bert", "camembert", "deberta", "deberta-v2", "distilbert", "electra", "eurobert",
     "jina-bert-v2", "modern-bert", "modernbert", "mpnet", "neo-bert", "nomic-bert", "nomic_bert",
     "roberta", "t5encoder", "xlm-roberta"});
constexpr auto kCrossAttentionNames = std::to_array<std::string_view>(
    {"bart", "blenderbot", "bigbird_pegasus", "longt5", "m2m_100", "marian", "mbart", "mllama",
     "mllama_text_model", "moonshine", "mt5", "pegasus", "switch_transformers", "t5", "t5gemma",
     "t5gemma2", "umt5", "whisper"});
constexpr auto kOtherInputNames = std::to_array<std::string_view>(
    {"clip", "dinov2", "siglip", "siglip2", "vit", "wav2vec2", "wav2vec2-bert"});

struct RefusedKind {
  KindNames names;
  std::string_view reason;
};

constexpr std::array<RefusedKind, 5> kRefusedKinds = {{
    {kRecurrentNames,
     "some of its layers aren't attention (state space, linear attention, convolution)"},
    {kLatentNames, "its attention is multi-head latent attention"},
    {kEncoderNames, "it is an encoder, whose tokens see later ones"},
    {kCrossAttentionNames, "its decoder attends to the output of an encoder"},
    {kOtherInputNames, "its inputs are images or sound"},
}};

}  // namespace

std::string unsupported_words(std::string_view name, std::string_view known) {
  for (const RefusedKind& kind : kRefusedKinds) {
    if (std::ranges::find(kind.names, name) == kind.names.end()) continue;
    return fmt::format("{} isn't supported, because {}; {} are", shown_text(name), kind.reason,
                       known);
  }
  return fmt::format("{} isn't supported; {} are", shown_text(name), known);
}

}  // namespace paceline
