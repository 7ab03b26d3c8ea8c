// DatasetOptions: what of a file is learnt, and how much of it is kept in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "paceline/chat_template.h"
#include "paceline/tokenizer.h"
#include "paceline/train_options.h"

namespace paceline {

struct DatasetOptions {
  LossTokens loss_tokens = LossTokens::all;
  int64_t max_seq_length = 2048;        // tokens of an example, at least 2; the rest is cut off
  std::string template_variables = {};  // further variables of the chat template, a JSON object
  // The clock of templates that print the date, ISO 8601; the machine's if unset. Runs that must
  // have the same tokens on another day set it to DatasetReport::now of the first one.
  std::optional<std::string> now = {};
  // Stands before each example that a plain text is cut into; nothing: the token before it does.
  std::optional<int32_t> first_token = {};
  // Limits of what is kept in memory: a token takes 5 bytes, an example about 100 beside them.
  int64_t max_examples = int64_t{16} << 20;
  int64_t max_tokens = int64_t{256} << 20;
  size_t max_text_bytes = size_t{256} << 20;  // of a plain text file
};

// What turns text into tokens. All of it outlives the call that it is given to.
struct DatasetModel {
  const Tokenizer& tokenizer;
  const ChatTemplate* chat_template = nullptr;  // nullptr: the model has none
  std::optional<TokenId> eos = {};              // ends each text; see end_of_text
};

// The token that the files beside tokenizer.json name eos_token, if the vocabulary has it.
std::optional<TokenId> end_of_text(const Tokenizer& tokenizer);

}  // namespace paceline
