#include "tokenizer/named_tokens.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace paceline {
namespace {

// The tokens that end a turn of chat models; some generation_config.json lack them. Only added
// tokens count, because plain text can't produce them.
constexpr std::array<std::string_view, 8> kEndOfTurn = {
    "<|im_end|>",     // ChatML, Qwen
    "<end_of_turn>",  // Gemma 1 to 3
    "<turn|>",        // Gemma 4
    "<|eot_id|>",     // Llama 3
    "<|eom_id|>",     // Llama 3, before the answer of a tool
    "<|eot|>",        // Llama 4
    "<|eom|>",
    "<|end|>",  // Phi 3
};

// In formats with channels, <|end|> ends a message, not the turn.
constexpr std::string_view kEndOfMessage = "<|end|>";
constexpr std::string_view kChannel = "<|channel|>";

}  // namespace

NamedTokens find_named_tokens(const TokenizerConfig& config, const BpeTokenizer& tokenizer) {
  NamedTokens tokens;
  const auto add_stop = [&](std::optional<TokenId> id) {
    if (id) tokens.stops.push_back(*id);
  };
  for (const auto& [name, text] : config.special_tokens) {
    const auto id = tokenizer.token_id(text);
    if (name == "bos_token") tokens.bos = id;
    if (name == "pad_token") tokens.pad = id;
    if (name == "eos_token") add_stop(id);
  }
  tokens.special = config.special_tokens;
  for (const int64_t id : config.eos_ids) {
    if (id < tokenizer.vocab_size()) add_stop(static_cast<TokenId>(id));
  }
  for (const std::string_view text : kEndOfTurn) {
    if (text == kEndOfMessage && tokenizer.added_tokens().find(kChannel) != nullptr) continue;
    if (const AddedToken* token = tokenizer.added_tokens().find(text)) add_stop(token->id);
  }
  std::sort(tokens.stops.begin(), tokens.stops.end());
  tokens.stops.erase(std::unique(tokens.stops.begin(), tokens.stops.end()), tokens.stops.end());
  return tokens;
}

}  // namespace paceline
