// GET /metrics: Prometheus text, with vLLM's names under paceline:.
#include <fmt/format.h>

#include <iterator>

#include "base/json_writer.h"
#include "engine/engine_snapshot.h"
#include "engine/engine_thread.h"
#include "engine/queue_limit.h"
#include "server/routes.h"

namespace paceline {
namespace {

class MetricsWriter {
 public:
  explicit MetricsWriter(std::string model) : label_("model_name=" + json_quote(model)) {}

  template <class T>
  void gauge(std::string_view name, std::string_view help, T value) {
    begin(name, "gauge", help);
    sample(name, "", value);
  }
  void counter(std::string_view name, std::string_view help, int64_t value) {
    begin(name, "counter", help);
    sample(name, "", value);
  }
  // One sample for each of `counts`, told apart by `label`.
  void counters(std::string_view name, std::string_view help, std::string_view label,
                const std::map<std::string, int64_t>& counts) {
    begin(name, "counter", help);
    for (const auto& [key, count] : counts) {
      sample(name, fmt::format(",{}={}", label, json_quote(key)), count);
    }
  }
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
    begin(name, "histogram", help);
    int64_t below = 0;
    for (size_t i = 0; i < histogram.counts().size(); ++i) {
      below += histogram.counts()[i];
      const bool is_last = i == histogram.bounds().size();
      const std::string bound = is_last ? "+Inf" : fmt::format("{}", histogram.bounds()[i]);
      sample(fmt::format("{}_bucket", name), fmt::format(",le=\"{}\"", bound), below);
    }
    sample(fmt::format("{}_sum", name), "", histogram.sum());
    sample(fmt::format("{}_count", name), "", histogram.count());
  }
  std::string take() { return std::move(text_); }

 private:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(text_), "# HELP paceline:{} {}\n# TYPE paceline:{} {}\n",
                   name, help, name, type);
  }
  template <class T>
  void sample(std::string_view name, std::string_view labels, T value) {
    fmt::format_to(std::back_inserter(text_), "paceline:{}{{{}{}}} {}\n", name, label_, labels,
                   value);
  }

  std::string label_;
  std::string text_;
};

void write_engine(MetricsWriter& out, const ServerContext& context,
                  const EngineSnapshot& snapshot) {
  int64_t num_running = 0, num_blocks = 0, num_held = 0;
  for (const SequenceSnapshot& sequence : snapshot.sequences) num_running += sequence.is_running;
  for (const PoolSnapshot& pool : snapshot.pools) {
    num_blocks += pool.num_blocks;
    for (const auto& [holder, count] : pool.runs) {
      const bool is_held = holder != PoolSnapshot::kFree && holder != PoolSnapshot::kCached;
      num_held += is_held ? count : 0;
    }
  }
  const EngineLimits& limits = context.model.engine.limits();
  const auto num_sequences = static_cast<int64_t>(snapshot.sequences.size());
  out.gauge("num_requests_running", "Sequences that are computed.", num_running);
  out.gauge("num_requests_waiting", "Sequences that wait.", num_sequences - num_running);
  out.gauge(
      "kv_cache_usage_perc", "Share of the cache's blocks that sequences hold, 0 to 1.",
      num_blocks == 0 ? 0.0 : static_cast<double>(num_held) / static_cast<double>(num_blocks));
  out.gauge("num_requests_running_limit", "The most sequences computed at once.",
            limits.max_num_seqs);
  out.gauge("num_requests_waiting_limit", "The most requests that wait.", limits.max_queued);
  out.counter("num_preemptions_total", "Sequences that gave up their blocks and resumed.",
              snapshot.preemptions);
  out.counter("late_cancellations_total", "Cancellations of requests that had already ended.",
              snapshot.late_cancellations);
  out.counter("dropped_prefix_holds_total",
              "Held prefixes released early because the cache ran out of blocks.",
              snapshot.dropped_holds);
  out.gauge("engine_step_age_seconds", "Since the last step ended; 0 without work.",
            context.step_age());
  out.counter("engine_steps_total", "Steps of the engine.", snapshot.num_steps);
}

void write_requests(MetricsWriter& out, const ServerMetrics& metrics) {
  out.counter("prompt_tokens_total", "Tokens of prompts.", metrics.prompt_tokens);
  out.counter("generation_tokens_total", "Tokens drawn.", metrics.generation_tokens);
  out.counter("prefix_cache_queries_total", "Tokens looked for in the prefix cache.",
              metrics.prompt_tokens);
  out.counter("prefix_cache_hits_total", "Tokens found there.", metrics.cached_tokens);
  out.counter("requests_accepted_total", "Requests that the engine got.", metrics.accepted);
  out.counter("requests_completed_total", "Requests answered whole.", metrics.completed);
  out.counter("requests_cancelled_total", "Requests whose clients went.", metrics.cancelled);
  out.counter("requests_failed_total", "Requests that ended in an error.", metrics.failed);
  out.counter("slow_reader_total", "Streams cut off because nobody read.", metrics.slow_readers);
  out.counters("request_success_total", "Choices that ended.", "finished_reason", metrics.finished);
  out.counters("rejected_total", "Answers that are errors.", "reason", metrics.errors);
  out.counters("cancelled_total", "Choices that were cancelled.", "phase", metrics.cancelled_in);
  out.histogram("time_to_first_token_seconds", "From submission to the first token.",
                metrics.time_to_first_token);
  out.histogram("inter_token_latency_seconds", "Between a choice's tokens.",
                metrics.inter_token_latency);
  out.histogram("e2e_request_latency_seconds", "From submission to the end of a choice.",
                metrics.e2e_latency);
  out.histogram("request_queue_time_seconds", "Waiting.", metrics.queue_time);
  out.histogram("request_prefill_time_seconds", "Computing the prompt.", metrics.prefill_time);
  out.histogram("request_decode_time_seconds", "From the first token to the last.",
                metrics.decode_time);
}

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

void write_server(MetricsWriter& out, const ServerContext& context) {
  const HttpCounters counters = context.http.counters();
  out.gauge("requests_open", "Tickets that are taken.", context.tickets.num_taken());
  out.gauge("requests_open_limit", "Tickets that there are.", context.tickets.limit());
  out.gauge("body_bytes", "Bytes of requests that are being read.", context.body_bytes.num_taken());
  out.gauge("body_bytes_limit", "The most there may be.", context.body_bytes.limit());
  out.gauge("memory_bytes", "Resident memory, mapped files aside.", context.memory.used());
  out.gauge("memory_bytes_limit", "At 98 % of it requests are refused.", context.memory.limit());
  out.gauge("queue_tokens", "Tokens of the prompts that wait.",
            context.model.engine.queue().num_tokens());
  out.gauge("queue_tokens_limit", "The most there may be.",
            context.model.engine.queue().max_tokens());
  out.gauge("connections_open", "Connections.", counters.connections);
  out.gauge("connections_open_limit", "The most connections.",
            context.options.http.max_connections);
  const HttpLimits& limits = context.options.http;
  out.gauge("connections_per_address_limit", "The most of one address, but the loopback.",
            limits.max_connections_per_address);
  out.gauge("request_body_bytes_limit", "The most that a request's body may have.",
            limits.max_body_bytes);
  out.gauge("request_header_bytes_limit", "The most that a request's header may have.",
            limits.max_header_bytes);
  out.gauge("header_seconds_limit", "The most that a header may take.",
            seconds(limits.header_time));
  out.gauge("body_seconds_limit", "The most that a body may take.", seconds(limits.body_time));
  out.gauge("keep_alive_seconds_limit", "The most between two requests of a connection.",
            seconds(limits.keep_alive_time));
  out.gauge("write_stall_seconds_limit", "The most that a client may take nothing.",
            seconds(limits.write_stall));
  out.counter("connections_total", "Connections so far.", counters.accepted);
  out.counter("http_requests_total", "Requests that were handed on or refused.", counters.requests);
  out.counter("http_malformed_total", "Requests that were none.", counters.malformed);
  out.counter("unknown_fields_total", "Fields that were left alone (--ignore-unknown-fields).",
              context.num_unknown_fields);
  out.counter("http_stalled_total", "Connections closed because the client took nothing.",
              counters.stalled);
}

}  // namespace

void show_metrics(const CallPtr& call) {
  with_snapshot(call, [](const CallPtr& ready, const EngineSnapshot& snapshot) {
    const ServerContext& context = ready->context();
    MetricsWriter out(context.options.model_names[0]);
    write_engine(out, context, snapshot);
    write_requests(out, context.metrics);
    write_server(out, context);
    ready->respond(
        {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = out.take()});
  });
}

}  // namespace paceline
