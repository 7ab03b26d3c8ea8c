#include "text/infill_prompt.h"

#include <array>

namespace paceline {
namespace {

struct InfillNames {
  std::string_view prefix, suffix, middle;
};

// Qwen Coder and CodeGemma, StarCoder and Granite, DeepSeek Coder, Code Llama, GLM.
constexpr InfillNames kInfillNames[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},
};
constexpr std::array<std::string_view, 2> kRepositoryNames = {"<|repo_name|>", "<repo_name>"};
constexpr std::array<std::string_view, 2> kFileNames = {"<|file_sep|>", "<file_sep>"};
constexpr std::array<std::string_view, 3> kPadNames = {"<|fim_pad|>", "<fim_pad>", "▁<EOT>"};

template <size_t size>
std::optional<TokenId> first_of(const Tokenizer& tokenizer,
                                const std::array<std::string_view, size>& names) {
  for (const std::string_view name : names) {
    if (const auto id = tokenizer.token_id(name)) return id;
  }
  return std::nullopt;
}

// Appends the ids of a text, as text.
void append_text(const Tokenizer& tokenizer, std::string_view text, std::vector<TokenId>& ids) {
  const std::vector<TokenId> more = tokenizer.encode(text, {.specials_as_text = true});
  ids.insert(ids.end(), more.begin(), more.end());
}

void append_files(const Tokenizer& tokenizer, const InfillTokens& tokens,
                  const InfillPrompt& prompt, std::vector<TokenId>& ids) {
  const bool has_names = tokens.repository && tokens.file;
  if (has_names) {
    ids.push_back(*tokens.repository);
    append_text(tokenizer, "myproject\n", ids);
  }
  for (const auto& [name, text] : prompt.files) {
    if (has_names) {
      ids.push_back(*tokens.file);
      append_text(tokenizer, name + "\n", ids);
    }
    append_text(tokenizer, text, ids);
  }
  if (has_names) {
    ids.push_back(*tokens.file);
    append_text(tokenizer, "filename\n", ids);
  }
}

}  // namespace

std::optional<InfillTokens> find_infill_tokens(const Tokenizer& tokenizer) {
  for (const InfillNames& names : kInfillNames) {
    const auto prefix = tokenizer.token_id(names.prefix);
    const auto suffix = tokenizer.token_id(names.suffix);
    const auto middle = tokenizer.token_id(names.middle);
    if (!prefix || !suffix || !middle) continue;
    InfillTokens tokens{.prefix = *prefix,
                        .suffix = *suffix,
                        .middle = *middle,
                        .repository = first_of(tokenizer, kRepositoryNames),
                        .file = first_of(tokenizer, kFileNames),
                        .ends = {}};
    for (const auto& end : {first_of(tokenizer, kPadNames), tokens.repository, tokens.file}) {
      if (end) tokens.ends.push_back(*end);
    }
    return tokens;
  }
  return std::nullopt;
}

std::vector<TokenId> encode_infill(const Tokenizer& tokenizer, const InfillTokens& tokens,
                                   const InfillPrompt& prompt) {
  std::vector<TokenId> ids;
  const std::vector<TokenId> added = tokenizer.encode("", {.add_special = true});
  if (!added.empty() && added.front() == tokenizer.bos_token()) ids.push_back(added.front());
  if (!prompt.files.empty()) append_files(tokenizer, tokens, prompt, ids);
  ids.push_back(tokens.prefix);
  append_text(tokenizer, prompt.prefix, ids);
  ids.push_back(tokens.suffix);
  append_text(tokenizer, prompt.suffix, ids);
  ids.push_back(tokens.middle);
  append_text(tokenizer, prompt.beginning, ids);
  return ids;
}

}  // namespace paceline
