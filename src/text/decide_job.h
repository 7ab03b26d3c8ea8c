// DecideJob turns questions about an input into engine requests, and their events into answers.
#pragma once

#include <cstddef>
#include <cstdint>
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

  // Submit them in this order: their index identifies their events.
  std::vector<GenerateRequest> take_requests() { return std::move(requests_); }

  void add(size_t request_index, TokenEvent& event);
  bool finished() const { return num_open_ == 0; }
  const std::optional<ErrorInfo>& error() const { return error_; }
  Decisions result() const;
  int64_t prompt_tokens() const { return prompt_tokens_; }
  // The requests that hold the blocks of an input; release them at the end.
  const std::vector<size_t>& hold_indices() const { return hold_indices_; }

 private:
  // A question about an input.
  struct Asked {
    LabelTrie trie;
    std::vector<LabelRow> rows;  // of the trie's nodes
  };
  struct RowPlace {
    size_t asked = 0;
    size_t node = 0;
  };

  void ask(const std::string& input, const std::string& name,
           std::span<const DecisionQuestion> questions);
  GenerateRequest request_for(std::vector<TokenId> prompt, const std::vector<TokenId>& columns,
                              const std::string& name) const;
  DecisionAnswer answer(size_t question) const;

  const TextModel& model_;
  DecideOptions options_;
  std::vector<QuestionKind> kinds_;  // of the questions
  std::vector<Asked> asked_;         // about the input, then about the content-free one
  std::vector<GenerateRequest> requests_;
  std::vector<RowPlace> places_;  // of the requests' rows
  std::vector<size_t> hold_indices_;
  size_t num_open_ = 0;
  int64_t prompt_tokens_ = 0;
  size_t num_held_tokens_ = 0;  // of all requests
  int64_t cached_tokens_ = 0;
  std::optional<ErrorInfo> error_;
};

}  // namespace paceline
