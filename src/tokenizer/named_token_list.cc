#include "tokenizer/named_token_list.h"

#include <algorithm>
#include <set>
#include <vector>

#include "tokenizer/tokenizer_json_parts.h"

namespace paceline {

void write_named_tokens(const TokenizerConfig& config,
                        const std::function<std::optional<int64_t>(std::string_view)>& id_of,
                        const std::function<bool(std::string_view)>& is_listed, int64_t next_id,
                        JsonWriter& writer) {
  std::vector<std::string_view> texts;
  for (const auto& [name, text] : config.special_tokens) texts.push_back(text);
  for (const std::string& text : config.more_special_tokens) texts.push_back(text);
  std::set<std::string_view> of_config;
  for (const AddedToken& token : config.added_tokens) {
    of_config.insert(token.content);
    next_id = std::max(next_id, int64_t{token.id} + 1);
  }
  std::set<std::string_view> written;
  for (const std::string_view text : texts) {
    if (text.empty() || is_listed(text) || !written.insert(text).second) continue;
    const auto id = id_of(text);
    if (!id && of_config.contains(text)) continue;
    write_added_token(id ? *id : next_id++, text, true, writer);
  }
}

}  // namespace paceline
