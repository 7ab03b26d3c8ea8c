// TextModel is a loaded model as those see it who send it prompts and read text.
#pragma once

#include <cstdint>
#include <string>

#include "base/siphash.h"
#include "paceline/chat_template.h"
#include "paceline/tokenizer.h"
#include "text/generation_config.h"

namespace paceline {

class Engine;

// What it refers to must outlive it.
struct TextModel {
  std::string name;  // in messages: the model's directory
  Engine& engine;
  const Tokenizer* tokenizer = nullptr;         // nullptr: prompts are token ids
  const ChatTemplate* chat_template = nullptr;  // nullptr: `chat_problem` says why
  std::string chat_problem = {};
  GenerationConfig generation = {};  // what requests leave open
  size_t longest_token_bytes = 0;    // no token stands for more text; 0: not known
  int64_t max_position = 0;          // the context that the model was made for
  SipKey salt_key = {};              // of cache salts
};

}  // namespace paceline
