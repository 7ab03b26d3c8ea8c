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
constexpr auto kRecurrentNames =
    std::to_array<std::string_view>({"bailing_hybrid", "minimax", "plamo2", "recurrent_gemma",
                                     "rwkv", "rwkv6", "rwkv7", "xlstm", "zamba", "zamba2"});
// Beside multi-head latent attention they have parts that no family has.
constexpr auto kLatentNames =
    std::to_array<std::string_view>({"axk1", "kimi_k25", "longcat_flash", "plm"});
constexpr auto kEncoderNames =
    std::to_array<std::string_view>({"albert", "deberta", "electra", "neo-bert", "t5encoder"});
constexpr auto kCrossAttentionNames = std::to_array<std::string_view>(
    {"bart", "blenderbot", "bigbird_pegasus", "longt5", "m2m_100", "marian", "mbart", "mllama",
     "mllama_text_model", "moonshine", "mt5", "pegasus", "switch_transformers", "t5", "t5gemma",
     "t5gemma2", "umt5", "whisper"});
constexpr auto kOtherInputNames = std::to_array<std::string_view>(
    {"clip", "dinov2", "siglip", "siglip2", "vit", "wav2vec2", "wav2vec2-bert"});

// From here on names of types alone, which say little as a word in a repository's name.
constexpr auto kIndexerNames = std::to_array<std::string_view>(
    {"axk2", "deepseek_v32", "deepseek_v4", "dots3_note", "dots3_note_text", "glm_moe_dsa", "hy_v4",
     "minimax_m3_vl_text", "qwen4_exp", "qwen4_exp_text"});
constexpr auto kPositionNames =
    std::to_array<std::string_view>({"cpmant", "ctrl", "openai-gpt", "reformer", "xlnet"});
constexpr auto kEncoderTypes = std::to_array<std::string_view>(
    {"bert-generation", "big_bird", "data2vec-text", "ernie", "megatron-bert", "rembert",
     "roberta-prelayernorm", "roc_bert", "roformer", "xlm", "xlm-roberta-xl", "xmod"});
constexpr auto kReaderNames = std::to_array<std::string_view>(
    {"blenderbot-small", "blt", "gemma4_assistant", "gemma4_unified_assistant", "moshi", "musicgen",
     "musicgen_melody", "mvp", "plbart", "prophetnet", "trocr"});
constexpr auto kPictureNames = std::to_array<std::string_view>(
    {"fuyu", "git", "got_ocr2", "moss_transcribe_diarize", "phi4_multimodal"});
constexpr auto kPrunedHeadNames = std::to_array<std::string_view>({"apertus1p5_text"});
constexpr auto kOtherBlockNames = std::to_array<std::string_view>({"afmoe",
                                                                   "aria_text",
                                                                   "beam",
                                                                   "bitnet",
                                                                   "cohere2_moe",
                                                                   "cohere_compass_text",
                                                                   "dbrx",
                                                                   "diffllama",
                                                                   "doge",
                                                                   "dory",
                                                                   "emu3",
                                                                   "flint",
                                                                   "gpt_neox_japanese",
                                                                   "hrm_text",
                                                                   "hy_v3",
                                                                   "inkling2_loop_text",
                                                                   "inkling2_text",
                                                                   "inkling_text",
                                                                   "jetmoe",
                                                                   "kolibri1",
                                                                   "laguna",
                                                                   "lara_mini",
                                                                   "mimo_v2_flash",
                                                                   "modernbert-decoder",
                                                                   "zaya"});

struct RefusedKind {
  KindNames names;
  std::string_view reason;
  bool names_repositories = true;
};

constexpr auto kRefusedKinds = std::to_array<RefusedKind>({
    {kRecurrentNames,
     "some of its layers aren't attention (state space, linear attention, convolution)"},
    {kLatentNames,
     "its blocks differ from those of the families with multi-head latent attention that run"},
    {kEncoderNames, "it is an encoder, whose tokens see later ones"},
    {kCrossAttentionNames, "its decoder attends to the output of an encoder"},
    {kOtherInputNames, "its inputs are images or sound"},
    {kIndexerNames, "an indexer chooses the keys that its tokens attend to", false},
    {kPositionNames,
     "its positions are fixed vectors or biases of the scores, or its blocks differ from those of "
     "GPT-2",
     false},
    {kEncoderTypes, "it is an encoder, whose tokens see later ones", false},
    {kReaderNames, "its decoder attends to the output of another model", false},
    {kPictureNames, "its inputs are images or sound", false},
    {kPrunedHeadNames, "its head may have fewer tokens than its embedding", false},
    {kOtherBlockNames, "its blocks differ from those of the families that run", false},
});

// Methods of quantisation in names of repositories.
constexpr auto kMethodNames =
    std::to_array<std::string_view>({"exl2", "exl3", "aqlm", "eetq", "quark", "quip"});
// A small model trained on the output of one that is named.
constexpr std::string_view kDistilled = "distill";

// Words in lower case with one '-' around each: "-deepseek-v3-0324-".
std::string words_of(std::string_view name) {
  std::string words = "-";
  for (const char c : name) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_word = is_upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (is_word) {
      words += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (words.back() != '-') {
      words += '-';
    }
  }
  if (words.back() != '-') words += '-';
  return words;
}

bool names_one(std::string_view words, KindNames names) {
  return std::ranges::any_of(names, [&](std::string_view name) {
    return words.find(words_of(name)) != std::string_view::npos;
  });
}

}  // namespace

std::string unsupported_words(std::string_view name, std::string_view known) {
  for (const RefusedKind& kind : kRefusedKinds) {
    if (std::ranges::find(kind.names, name) == kind.names.end()) continue;
    return fmt::format("{} isn't supported, because {}; {} are", shown_text(name), kind.reason,
                       known);
  }
  return fmt::format("{} isn't supported; {} are", shown_text(name), known);
}

std::optional<std::string> refusal_by_name(std::string_view repository) {
  const std::string words = words_of(repository.substr(repository.find('/') + 1));
  if (names_one(words, kMethodNames)) {
    return "weights quantised in this way can't be read (the original model, a GGUF file of it or "
           "one that mlx_lm.convert quantised can)";
  }
  if (words.find(kDistilled) != std::string::npos) return std::nullopt;
  for (const RefusedKind& kind : kRefusedKinds) {
    if (!kind.names_repositories) continue;
    if (names_one(words, kind.names)) return std::string(kind.reason);
  }
  return std::nullopt;
}

}  // namespace paceline
