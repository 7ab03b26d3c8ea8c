// GET /v1/requests: running and waiting sequences, the last steps, and the holders of blocks.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/json_writer.h"
#include "engine/engine_snapshot.h"
#include "server/model_call.h"
#include "server/routes.h"

namespace paceline {
namespace {

void write_engine(JsonWriter& writer, const HostedModel& model, const EngineSnapshot& snapshot) {
  const ServerMetrics& metrics = model.metrics;
  const EngineLimits& limits = model.text.engine.limits();
  int64_t num_running = 0;
  for (const SequenceSnapshot& sequence : snapshot.sequences) num_running += sequence.is_running;
  const auto num_sequences = static_cast<int64_t>(snapshot.sequences.size());
  writer.key("engine").begin_object();
  writer.member("step", snapshot.counters.steps).member("num_running", num_running);
  writer.member("num_waiting", num_sequences - num_running);
  writer.member("max_num_seqs", limits.max_num_seqs).member("max_queued", limits.max_queued);
  writer.member("max_model_len", limits.max_model_len);
  writer.member("tokens_per_second", model.steps.tokens_per_second());
  writer.member("ttft_p50_s", metrics.time_to_first_token.quantile(0.5));
  writer.member("ttft_p99_s", metrics.time_to_first_token.quantile(0.99));
  writer.member("step_age_s", model.step_age());
  writer.member("prefix_queries", metrics.prompt_tokens);
  writer.member("prefix_hits", metrics.cached_tokens);
  writer.member("preemptions", snapshot.counters.preemptions);
  writer.member("max_drafted_tokens", limits.speculation.num_tokens);
  writer.member("drafted_tokens", snapshot.counters.speculation.drafted_tokens);
  writer.member("accepted_tokens", snapshot.counters.speculation.accepted_tokens).end_object();
}

void write_sequence(JsonWriter& writer, const EngineLink& link, const SequenceSnapshot& sequence) {
  const EngineLink::Target* target = link.find(sequence.tag);
  writer.begin_object().member("sequence", sequence.sequence);
  writer.member("id", target == nullptr ? std::string() : target->response->id());
  const int64_t first = target == nullptr ? 0 : target->response->first_choice(target->which.part);
  writer.member("choice", first + sequence.choice);
  writer.member("state", sequence.is_running ? "running" : "waiting");
  writer.member("prompt_tokens", sequence.prompt_tokens);
  writer.member("cached_tokens", sequence.cached_tokens);
  writer.member("output_tokens", sequence.output_tokens);
  writer.member("max_tokens", sequence.max_tokens).member("blocks", sequence.blocks);
  writer.member("preemptions", sequence.preemptions);
  writer.member("queue_s", sequence.queue_seconds).member("age_s", sequence.age_seconds);
  writer.end_object();
}

void write_pool(JsonWriter& writer, const PoolSnapshot& pool) {
  writer.begin_object().member("num_blocks", pool.num_blocks);
  writer.key("block_size");
  pool.holds_states ? writer.null() : writer.integer(pool.block_size);
  writer.key("window");
  pool.window == 0 ? writer.null() : writer.integer(pool.window);
  writer.key("blocks").begin_array();
  for (const auto& [holder, count] : pool.runs) {
    writer.begin_array().integer(holder).integer(count).end_array();
  }
  writer.end_array().end_object();
}

void write_drafts(JsonWriter& writer, const std::vector<StepRecord::Draft>& drafts) {
  writer.key("drafts").begin_array();
  for (const StepRecord::Draft& draft : drafts) {
    writer.begin_array().integer(draft.id).integer(draft.drafted).integer(draft.accepted);
    writer.end_array();
  }
  writer.end_array();
}

void write_steps(JsonWriter& writer, const StepHistory& steps) {
  writer.key("steps").begin_array();
  for (const StepHistory::Step& step : steps.last_steps()) {
    writer.begin_object().member("step", step.step).member("ms", 1e3 * step.seconds);
    writer.key("slices").begin_array();
    for (const auto& [sequence, rows] : step.slices) {
      writer.begin_array().integer(sequence).integer(rows).end_array();
    }
    writer.end_array();
    if (!step.drafts.empty()) write_drafts(writer, step.drafts);
    writer.end_object();
  }
  writer.end_array();
}

std::string requests_json(const HostedModel& model, const EngineSnapshot& snapshot) {
  return object_json([&](JsonWriter& writer) {
    writer.member("object", "list").key("data").begin_array();
    for (const SequenceSnapshot& one : snapshot.sequences) write_sequence(writer, model.link, one);
    writer.end_array();
    write_engine(writer, model, snapshot);
    writer.key("pools").begin_array();
    for (const PoolSnapshot& pool : snapshot.pools) write_pool(writer, pool);
    writer.end_array();
    write_steps(writer, model.steps);
  });
}

// Of a model that isn't loaded.
constexpr std::string_view kNotLoaded =
    R"({"object":"list","data":[],"engine":{"step":0,"num_running":0,"num_waiting":0,)"
    R"("max_num_seqs":0,"max_queued":0,"max_model_len":0,"tokens_per_second":0,"ttft_p50_s":null,)"
    R"("ttft_p99_s":null,"step_age_s":0,"prefix_queries":0,"prefix_hits":0,"preemptions":0,)"
    R"("max_drafted_tokens":0,"drafted_tokens":0,"accepted_tokens":0},"pools":[],"steps":[]})";

}  // namespace

void with_snapshots(const CallPtr& call, std::vector<ModelLease> models, SnapshotAnswer answer) {
  constexpr std::chrono::milliseconds kPatience{500};
  // Empty once it is answered. Engines' threads only carry it: the call lives and dies on the I/O
  // thread.
  struct Asked {
    CallPtr call;
    std::vector<ModelLease> models;
    std::vector<std::optional<EngineSnapshot>> snapshots;
    SnapshotAnswer answer;

    void finish() {
      const CallPtr taken = std::exchange(call, nullptr);
      if (taken == nullptr) return;
      const std::vector<ModelLease> of = std::exchange(models, {});
      if (!taken->is_open()) return taken->end_stream(kClientClosedRequest, "client_gone");
      std::vector<EngineSnapshot> all;
      for (size_t i = 0; i < of.size(); ++i) {
        all.push_back(snapshots[i].value_or(of[i]->last_snapshot));
      }
      guarded(*taken, [&] { answer(taken, of, all); });
    }
  };
  HttpServer& http = call->context().http;
  const auto asked =
      std::make_shared<Asked>(Asked{.call = call, .models = models, .answer = std::move(answer)});
  asked->snapshots.resize(models.size());
  if (models.empty()) return asked->finish();
  http.after(kPatience, [asked] { asked->finish(); });
  for (size_t i = 0; i < models.size(); ++i) {
    models[i]->text.engine.inspect([asked, i, &http, model = models[i]->weak_from_this()](
                                       const Engine& engine) mutable {
      auto taken = std::make_shared<EngineSnapshot>(engine.snapshot());
      http.post([asked = std::move(asked), i, taken, model = std::move(model)] {
        if (const auto same = model.lock()) same->last_snapshot = *taken;
        asked->snapshots[i] = std::move(*taken);
        const auto& all = asked->snapshots;
        if (std::all_of(all.begin(), all.end(), [](const auto& one) { return one.has_value(); })) {
          asked->finish();
        }
      });
    });
  }
}

void show_requests(const CallPtr& call) {
  const SnapshotAnswer answer = [](const auto& ready, const auto& models, const auto& snapshots) {
    const bool is_loaded = !models.empty();
    ready->respond_json(is_loaded ? requests_json(*models[0], snapshots[0])
                                  : std::string(kNotLoaded));
  };
  with_snapshots(call, loaded_model_of_query(*call), answer);
}

}  // namespace paceline
