// ClassifyJob turns one classification into engine requests, and their events into a result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/event.h"
#include "paceline/options.h"
#include "paceline/results.h"
#include "text/text_model.h"

namespace paceline {

// Without labels, or with labels of one token each, it is one request for the prompt's last row.
// Longer labels add one request each, which share the prompt's held keys and values.
class ClassifyJob {
 public:
  // `model` must outlive it. Throws Error invalid naming the field at fault.
  ClassifyJob(const TextModel& model, const Prompt& prompt, const ClassifyOptions& options);

  // Submit them in this order: their index identifies their events.
  std::vector<GenerateRequest> take_requests() { return std::move(requests_); }

  void add(size_t request_index, TokenEvent& event);
  bool finished() const { return num_open_ == 0; }
  const std::optional<ErrorInfo>& error() const { return error_; }
  // Throws Error numerical when the labels can't be compared.
  Classification result() const;
  const std::vector<TokenId>& prompt() const { return prompt_; }
  int64_t prompt_tokens() const { return static_cast<int64_t>(prompt_.size()); }
  // Found in the prefix cache, by the request for the prompt alone.
  int64_t cached_tokens() const { return cached_tokens_; }
  // The request that holds the prompt's blocks, if any; release it at the end.
  std::optional<size_t> hold_index() const { return hold_index_; }

 private:
  GenerateRequest request_for(std::vector<TokenId> prompt) const;
  void add_own_labels();
  Classification with_own_labels(Classification result) const;
  void add_label_requests(const std::vector<std::vector<TokenId>>& labels);

  const TextModel& model_;
  ClassifyOptions options_;
  SamplingOptions sampling_;
  std::string prompt_name_;
  std::vector<TokenId> prompt_;
  std::vector<GenerateRequest> requests_;
  std::optional<size_t> hold_index_;
  std::vector<std::optional<size_t>> label_of_request_;
  size_t num_open_ = 0;
  int64_t cached_tokens_ = 0;

  std::optional<TokenId> token_;
  std::vector<float> row_;
  std::vector<float>
      label_logprobs_;  // summed over a label's tokens, or logits of one-token labels
  std::optional<ErrorInfo> error_;
};

}  // namespace paceline
