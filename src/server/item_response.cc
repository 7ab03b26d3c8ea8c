#include "server/item_response.h"

#include <algorithm>
#include <utility>

#include "protocol/request_options.h"
#include "server/server_errors.h"
#include "server/worker_call.h"
#include "text/describe.h"
#include "text/embedding.h"

namespace paceline {
namespace {

constexpr size_t kFirstWave = 16;

// A response on its way to the worker that formats it.
struct WholeItems {
  PreparedItems prepared;
  ResponseHead head;
  ResponseUsage usage;
};

// The results of each kind of request, on a worker.
struct Collecting {
  PreparedItems& prepared;
  const TextModel& model;
  ItemAnswer& answer;

  void operator()(const ClassificationRequest& /*request*/) const {
    for (const PreparedItem& item : prepared.items) {
      answer.classified.push_back(
          {.classification = item.job->result(), .prompt_tokens = item.prompt_tokens});
    }
  }

  void operator()(const TokenScoreRequest& /*request*/) const {
    for (PreparedItem& item : prepared.items) answer.scored.push_back(std::move(item.scored));
  }

  void operator()(const EmbeddingRequest& request) const {
    for (PreparedItem& item : prepared.items) {
      answer.embeddings.push_back(
          finish_embedding(model, std::move(item.numbers), embedding_options(request, 0, {})));
    }
  }

  void operator()(const DecisionRequest& /*request*/) const {
    answer.decisions = prepared.items.front().decisions->result();
  }

  void operator()(const PairScoreRequest& /*request*/) const { collect_pairs(); }
  void operator()(const RerankRequest& /*request*/) const { collect_pairs(); }

 private:
  void collect_pairs() const {
    std::vector<std::vector<float>> results;
    for (PreparedItem& item : prepared.items) results.push_back(std::move(item.numbers));
    answer.pair_scores = prepared.pairs->scores(results);
  }
};

}  // namespace

ItemResponse::ItemResponse(CallPtr call, PreparedItems prepared)
    : call_(std::move(call)), prepared_(std::move(prepared)), wave_(kFirstWave) {
  const std::string& lora = std::visit(
      [](const auto& r) -> const std::string& { return r.common.lora; }, prepared_.call.request);
  head_ = new_head(prepared_.call.id_prefix, lora.empty() ? call_->model()->names[0] : lora);
  head_.system_fingerprint = call_->model()->fingerprint;
}

void ItemResponse::start() {
  if (!call_->reserve_response(prepared_.response_bytes)) return fail(no_response_memory());
  submit_more();
  num_added_ = 0;  // the next step may have all of them
  if (ids_.empty()) return fail(queue_full());
  is_accepted_ = true;
  call_->model()->link.keep(shared_from_this());
  ++call_->metrics().accepted;
  call_->exchange().on_close([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->client_gone();
  });
}

// Doubles it where a step computed all that it could have, and that was most of the wave.
void ItemResponse::widen_wave() {
  if (num_in_flight_ <= num_added_ && num_ended_ >= wave_ / 2) wave_ *= 2;
}

void ItemResponse::submit_more() {
  if (is_over_) return;
  // A request of many items leaves places and room in the queue for others.
  const EngineLimits& limits = call_->model()->text.engine.limits();
  const auto most = static_cast<size_t>(
      std::max<int64_t>(std::min(limits.max_num_seqs / 2, limits.max_queued / 4), 1));
  wave_ = std::min(wave_, most);
  const size_t num_before = num_in_flight_;
  while (next_.part < prepared_.items.size() && num_in_flight_ < wave_ && submit_next()) {
  }
  num_added_ = num_in_flight_ - num_before;
  num_ended_ = 0;
}

bool ItemResponse::submit_next() {
  PreparedItem& item = prepared_.items[next_.part];
  // Copied: it is submitted again later when the queue is full.
  const auto id = call_->model()->link.submit(
      shared_from_this(), next_,
      item.decisions ? item.decisions->request(next_.index) : item.requests[next_.index]);
  if (!id) return false;
  if (!item.decisions) item.requests[next_.index] = {};
  ids_.push_back(*id);
  ++num_in_flight_;
  if (++next_.index == item.num_requests()) next_ = {.part = next_.part + 1, .index = 0};
  return true;
}

void ItemResponse::take(ResponsePart which, TokenEvent& event) {
  PreparedItem& item = prepared_.items[which.part];
  if (item.job) {
    item.job->add(which.index, event);
  } else if (item.decisions) {
    item.decisions->add(which.index, event);
  } else if (event.prompt) {
    item.scored = describe(call_->model()->text, event.prompt->scored);
    item.numbers = std::move(event.prompt->pooled);
    if (item.numbers.empty()) item.numbers = std::move(event.prompt->column_logits);
  }
  // The token of a decision's row is looked at, and nobody's answer.
  if (event.token && !item.decisions) ++call_->metrics().generation_tokens;
  if (!event.ending) return;
  --num_in_flight_;
  ++num_ended_;
  const Ending& ending = *event.ending;
  call_->metrics().count_choice(ending, which.index == 0);
  if (which.index == 0) {
    item.cached_tokens = ending.stats.cached_tokens;
    call_->metrics().prompt_tokens += item.prompt_tokens - ending.stats.prompt_tokens;
  }
  if (error_) return;
  if (ending.error) {
    error_ = api_error(*ending.error);
  } else if (ending.finish.reason == FinishReason::cancelled && !is_over_) {
    error_ = ended_by_server();
  }
}

void ItemResponse::flush() {
  if (is_over_) return;
  if (error_) return fail(*error_);
  if (num_ended_ > 0) widen_wave();
  submit_more();
  if (num_in_flight_ == 0 && next_.part == prepared_.items.size()) respond();
}

void ItemResponse::fail(const ApiError& error) {
  if (std::exchange(is_over_, true)) return;
  cancel_parts();
  if (is_accepted_) ++call_->metrics().failed;
  call_->fail(error);
}

void ItemResponse::client_gone() {
  if (!std::exchange(is_over_, true)) {
    cancel_parts();
    ++call_->metrics().cancelled;
  }
  call_->end_stream(kClientClosedRequest, "client_gone");
}

void ItemResponse::cancel_parts() {
  for (const RequestId id : ids_) call_->model()->link.cancel(id);
  release_parts();
}

// Releasing a request that holds nothing has no effect.
void ItemResponse::release_parts() {
  call_->model()->link.stop_keeping(*this);
  for (const RequestId id : ids_) call_->model()->link.release(id);
}

ResponseUsage ItemResponse::usage() const {
  ResponseUsage usage{.cached_tokens = 0};
  for (const PreparedItem& item : prepared_.items) {
    usage.prompt_tokens += item.prompt_tokens;
    *usage.cached_tokens += item.cached_tokens;
  }
  return usage;
}

// On a worker: rows of logits and scored texts may be long.
void ItemResponse::respond() {
  is_over_ = true;
  release_parts();
  const ResponseUsage used = usage();
  call_->set_usage(used);
  const auto whole = std::make_shared<WholeItems>(
      WholeItems{.prepared = std::move(prepared_), .head = head_, .usage = used});
  respond_from_worker(call_, [whole, &model = *call_->model()] {
    const ItemCall& call = whole->prepared.call;
    ItemAnswer answer{.head = std::move(whole->head), .usage = whole->usage};
    std::visit(Collecting{whole->prepared, model.text, answer}, call.request);
    return call.write(call.request, std::move(answer), model.token_names);
  });
}

}  // namespace paceline
