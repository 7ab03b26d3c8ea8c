#include "text/chat_turns.h"

#include "tools/derive_turn_format.h"
#include "tools/told_calls.h"

namespace paceline {

std::shared_ptr<const TurnFormat> ChatTurns::format() const {
  std::call_once(derived_, [this] { derive(); });
  return format_;
}

const std::vector<std::string>& ChatTurns::special_texts() const {
  std::call_once(derived_, [this] { derive(); });
  return special_texts_;
}

void ChatTurns::derive() const {
  for (TokenId id = 0; id < tokenizer_.vocab_size(); ++id) {
    if (tokenizer_.is_special(id)) special_texts_.emplace_back(tokenizer_.token_bytes(id));
  }
  TurnFormat format = derive_turn_format(template_, tokenizer_.special_tokens());
  if (!format.calls) {
    format.calls = told_call_format();
    format.tells_calls = true;
  }
  format_ = std::make_shared<const TurnFormat>(std::move(format));
}

}  // namespace paceline
