// DecideJob turns questions about an input into engine requests, and their events into answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/event.h"
#include "paceline/decisions.h"
#include "text/label_trie.h"
#include "text/text_model.h"

namespace paceline {

// Throws Error invalid naming the first question that can't be asked: "questions[3].choices: ...".
void check_questions(std::span<const DecisionQuestion> questions);

// A request for each inner node of each question's labels: a prompt to that node, of which the
// likeliest token and the log-probabilities of the next tokens of labels are reported. The first
// one of an input leaves its blocks in the prefix cache and holds them; the others find the input
// there.
class DecideJob {
 public:
  // `model` must outlive it. Throws Error naming the field at fault.
  DecideJob(const TextModel& model, const std::string& input,
            std::span<const DecisionQuestion> questions, const DecideOptions& options);

  // Submit them in this order: their index identifies their events. Each is made when it is asked
  // for, as it has the whole input, and there are up to some hundred thousand.
  size_t num_requests() const { return places_.size(); }
  GenerateRequest request(size_t index) const;

  void add(size_t request_index, TokenEvent& event);
  bool finished() const { return num_open_ == 0; }
  const std::optional<ErrorInfo>& error() const { return error_; }
  Decisions result() const;
  int64_t prompt_tokens() const { return prompt_tokens_; }
  // The requests that hold the blocks of an input; release them at the end.
  const std::vector<size_t>& hold_indices() const { return hold_indices_; }

 private:
  struct Input {
    std::string name;             // of its field
    std::vector<TokenId> tokens;  // that all prompts about it begin with
  };
  // A question about an input.
  struct Asked {
    size_t input = 0;
    std::vector<TokenId> branch;  // the tokens after the input's
    LabelTrie trie;
    std::vector<LabelRow> rows;  // of the trie's nodes
  };
  // A node of a question's trie.
  struct RowPlace {
    size_t asked = 0;
    size_t node = 0;
  };

  void ask(const std::string& input, const std::string& name,
           std::span<const DecisionQuestion> questions);
  void check_longest(size_t asked) const;
  GenerateRequest request_at(RowPlace place) const;
  DecisionAnswer answer(size_t question) const;

  const TextModel& model_;
  DecideOptions options_;
  std::shared_ptr<const LoadedAdapter> adapter_;
  PrefixScope scope_;
  std::vector<QuestionKind> kinds_;  // of the questions
  std::vector<Input> inputs_;        // the input, then the content-free one
  std::vector<Asked> asked_;         // about the one, then about the other
  std::vector<RowPlace> places_;     // of the requests' rows
  std::vector<size_t> hold_indices_;
  size_t num_open_ = 0;
  int64_t prompt_tokens_ = 0;
  int64_t cached_tokens_ = 0;
  std::optional<ErrorInfo> error_;
};

}  // namespace paceline
