// ItemResponse is a pending answer of several inputs, each computed whole: classes, scores,
// embeddings, decisions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/dialect.h"
#include "server/api_call.h"
#include "server/request_rules.h"
#include "text/classify_job.h"
#include "text/decide_job.h"
#include "text/pair_scoring.h"

namespace paceline {

// One input.
struct PreparedItem {
  std::vector<GenerateRequest> requests;  // several with labels of several tokens
  std::optional<ClassifyJob> job;         // of a classification
  std::optional<DecideJob> decisions;     // instead of requests
  std::vector<Logprob> scored;            // of a score
  std::vector<float> numbers;             // of an embedding or a pair, as the engine made them
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;

  size_t num_requests() const { return decisions ? decisions->num_requests() : requests.size(); }
};

struct PreparedItems {
  ItemCall call;
  std::vector<PreparedItem> items;
  std::optional<PairScoring> pairs;  // of a score or a reranking of pairs
  int64_t response_bytes = 0;        // about
};

// Any thread. Throws RequestError or Error naming the field at fault.
PreparedItems prepare_items(const TextModel& model, ItemCall call, const RequestRules& rules);

class ItemResponse : public PendingResponse, public std::enable_shared_from_this<ItemResponse> {
 public:
  ItemResponse(CallPtr call, PreparedItems prepared);

  // Submits a first wave of requests, the others as these end; fails when the queue has no room.
  void start();

  const std::string& id() const override { return head_.id; }
  int64_t first_choice(size_t part) const override { return static_cast<int64_t>(part); }
  void take(ResponsePart which, TokenEvent& event) override;
  void flush() override;
  void tick() override { flush(); }
  void fail(const ApiError& error) override;

 private:
  void widen_wave();
  void submit_more();
  bool submit_next();
  void cancel_parts();
  void release_parts();
  void client_gone();
  void respond();
  ResponseUsage usage() const;

  CallPtr call_;
  PreparedItems prepared_;
  ResponseHead head_;
  std::vector<RequestId> ids_;
  ResponsePart next_;  // the first one that is not submitted
  size_t num_in_flight_ = 0;
  // What comes later from others waits behind a wave: as wide as about two steps compute.
  size_t wave_;           // most in flight
  size_t num_added_ = 0;  // by the last submit_more()
  size_t num_ended_ = 0;  // since then
  bool is_accepted_ = false;
  bool is_over_ = false;
  std::optional<ApiError> error_;
};

}  // namespace paceline
