// Special tokens that users and tools type into a conversation: found again in the rendered prompt,
// so that they are encoded as text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "paceline/chat_template.h"
#include "paceline/tokenizer.h"

namespace paceline {

enum class TypedSpecials : uint8_t {
  text,    // encoded like other text
  tokens,  // they become tokens, as in transformers
};

struct RenderedChat {
  std::string text;
  std::vector<TextSpan> typed;  // EncodeOptions::plain; empty where nothing was typed
};

// What `render` makes of the conversation; it may be called with marks in the contents. Special
// tokens count as typed in the content of messages that are neither the system's, the developer's
// nor the assistant's. Throws what `render` throws.
RenderedChat render_typed(const Tokenizer& tokenizer, const ChatInput& input,
                          const std::function<std::string(const ChatInput&)>& render);

}  // namespace paceline
