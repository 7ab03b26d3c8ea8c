// DecisionPrompt writes questions about an input as prompts: the input first, which all questions
// share, then a branch for each question. docs/decisions.md shows them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "paceline/decisions.h"
#include "paceline/tokenizer.h"

namespace paceline {

struct TextModel;

// The question with its options, each after its label.
std::string question_text(const DecisionQuestion& question);
// What the model answers with, of the options in their order: Yes and No; a score's levels counted
// from 0; a choice's letters, or from 27 options on numbers from 1 with leading zeros. None is the
// beginning of another.
std::vector<std::string> option_labels(const DecisionQuestion& question);

class DecisionPrompt {
 public:
  // `model` must outlive it. The prompt is a message of a user in the model's chat template, with
  // reasoning switched off, else plain text. Special tokens in texts are text, as in chats. Throws
  // Error not_found when the model has no tokenizer, and what rendering and encode_prompt throw
  // under `name`.
  DecisionPrompt(const TextModel& model, const std::string& input, const std::string& name);

  // The beginning of every prompt.
  const std::vector<TokenId>& shared() const { return shared_; }
  // A question's tokens after it, to where the answer begins.
  std::vector<TokenId> branch(const DecisionQuestion& question) const;
  // The tokens of option_labels() after branch().
  std::vector<std::vector<TokenId>> labels(const DecisionQuestion& question) const;

 private:
  bool set_chat(const std::string& input, const std::string& name);
  void set_plain_text(const std::string& input, const std::string& name);

  const TextModel& model_;
  std::vector<TokenId> shared_;
  std::string tail_;  // after a question
  mutable std::map<std::string, std::vector<TokenId>> known_labels_;
};

}  // namespace paceline
