// GET /metrics: Prometheus text. Names that vLLM has are spelled as there, under --metrics-prefix.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/time_source.h"
#include "engine/engine_snapshot.h"
#include "engine/queue_limit.h"
#include "grammar/constraint_cache.h"
#include "server/process_stats.h"
#include "server/routes.h"

namespace paceline {
namespace {

// The samples of a metric stand together, whatever models they are of.
class MetricsWriter {
 public:
  explicit MetricsWriter(const std::string& prefix) : prefix_(prefix + ":") {}

  // That the samples from now on are of.
  void set_model(const std::string& model) { label_ = "model_name=" + json_quote(model); }

  template <class T>
  void gauge(std::string_view name, std::string_view help, T value) {
    begin(prefix_ + std::string(name), "gauge", help);
    sample(name, "", value);
  }
  template <class T>
  void counter(std::string_view name, std::string_view help, T value) {
    begin(prefix_ + std::string(name), "counter", help);
    sample(name, "", value);
  }
  // One sample for each of `counts`, with its key as the value of `label`.
  template <class Counts>
  void counters(std::string_view name, std::string_view help, std::string_view label,
                const Counts& counts) {
    begin(prefix_ + std::string(name), "counter", help);
    for (const auto& [key, count] : counts) {
      sample(name, fmt::format(",{}={}", label, json_quote(fmt::format("{}", key))), count);
    }
  }
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
    begin(prefix_ + std::string(name), "histogram", help);
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
  // A gauge whose labels say how something is configured.
  void info(std::string_view name, std::string_view help,
            std::initializer_list<std::pair<std::string_view, std::string>> labels,
            int64_t value = 1) {
    begin(prefix_ + std::string(name), "gauge", help);
    std::string text;
    for (const auto& [label, setting] : labels) {
      text += fmt::format(",{}={}", label, json_quote(setting));
    }
    sample(name, text, value);
  }
  // Of Prometheus' process_*: no prefix, no labels.
  template <class T>
  void process(std::string_view name, std::string_view type, std::string_view help, T value) {
    begin(fmt::format("process_{}", name), type, help);
    fmt::format_to(std::back_inserter(*family_), "process_{} {}\n", name, value);
  }
  std::string text() const { return fmt::format("{}", fmt::join(families_, "")); }

 private:
  void begin(const std::string& name, std::string_view type, std::string_view help) {
    const auto [found, is_new] = index_.emplace(name, families_.size());
    if (is_new) {
      families_.push_back(fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type));
    }
    family_ = &families_[found->second];
  }
  template <class T>
  void sample(std::string_view name, std::string_view labels, T value) {
    fmt::format_to(std::back_inserter(*family_), "{}{}{{{}{}}} {}\n", prefix_, name, label_, labels,
                   value);
  }

  std::string prefix_;
  std::string label_;
  std::vector<std::string> families_;  // a metric's head and samples
  std::map<std::string, size_t> index_;
  std::string* family_ = nullptr;  // of the samples that follow
};

// The names of the adapters of running or of waiting sequences, each once.
std::string adapters_of(const EngineSnapshot& snapshot, bool are_running) {
  std::set<std::string_view> names;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.is_running == are_running && !sequence.adapter.empty()) {
      names.insert(sequence.adapter);
    }
  }
  return fmt::format("{}", fmt::join(names, ","));
}

// With vLLM's labels; its value is the time in seconds.
void write_adapters(MetricsWriter& out, int64_t max_adapters, const EngineSnapshot& snapshot) {
  if (max_adapters == 0) return;
  const auto now = WallClock::now().time_since_epoch();
  out.info("lora_requests_info", "LoRA adapters of running and waiting requests.",
           {{"max_lora", std::to_string(max_adapters)},
            {"running_lora_adapters", adapters_of(snapshot, true)},
            {"waiting_lora_adapters", adapters_of(snapshot, false)}},
           std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

struct BlockCounts {
  int64_t num_blocks = 0;  // of keys and values
  double usage = 0;        // the held share of them, or of the states where it is larger
};

double share_of(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

BlockCounts count_blocks(const EngineSnapshot& snapshot) {
  BlockCounts counts;
  int64_t num_held = 0;
  for (const PoolSnapshot& pool : snapshot.pools) {
    int64_t held = 0;
    for (const auto& [holder, count] : pool.runs) {
      const bool is_held = holder != PoolSnapshot::kFree && holder != PoolSnapshot::kCached;
      held += is_held ? count : 0;
    }
    if (pool.holds_states) {
      counts.usage = std::max(counts.usage, share_of(held, pool.num_blocks));
      continue;
    }
    counts.num_blocks += pool.num_blocks;
    num_held += held;
  }
  counts.usage = std::max(counts.usage, share_of(num_held, counts.num_blocks));
  return counts;
}

void write_states(MetricsWriter& out, const EngineSnapshot& snapshot) {
  if (snapshot.states.num_blocks == 0) return;
  out.gauge("states_used", "States of layers that sequences and held prefixes use.",
            snapshot.states.num_used);
  out.gauge("states_limit", "States that the cache has room for.", snapshot.states.num_blocks);
  out.gauge("state_open_rows_used", "Sequences that hold the rows of a state's open chunk.",
            snapshot.open_rows.num_used);
  out.gauge("state_open_rows_limit",
            "Sequences whose rows of an open chunk the cache has room for.",
            snapshot.open_rows.num_blocks);
}

void write_speculation(MetricsWriter& out, const SpeculationLimits& limits,
                       const SpeculationCounters& counters) {
  const auto num_positions = static_cast<size_t>(std::max(limits.num_tokens, kPredictedTokens));
  std::vector<std::pair<size_t, int64_t>> accepted_at;
  for (size_t i = 0; i < num_positions; ++i) accepted_at.emplace_back(i, counters.accepted_at[i]);
  out.counter("spec_decode_num_drafts_total", "Drafts of speculative decoding.", counters.drafts);
  out.counter("spec_decode_num_draft_tokens_total", "Tokens drafted by speculative decoding.",
              counters.drafted_tokens);
  out.counter("spec_decode_num_accepted_tokens_total", "Drafted tokens that the model accepted.",
              counters.accepted_tokens);
  out.counters("spec_decode_num_accepted_tokens_per_pos_total",
               "Drafted tokens that the model accepted, by their position in the draft.",
               "position", accepted_at);
  out.counter("spec_decode_failures_total",
              "Sequences that continued without drafts after the drafter failed.",
              counters.failures);
}

void write_constraints(MetricsWriter& out, const ConstraintCache& cache,
                       const ConstraintEngineCounters& engine) {
  const ConstraintCounters counters = cache.counters();
  const std::pair<std::string_view, int64_t> refused[] = {{"invalid", counters.invalid},
                                                          {"unsupported", counters.unsupported},
                                                          {"over_limit", counters.exhausted},
                                                          {"error", counters.failed}};
  out.counter("constraints_compiled_total", "Constraints compiled.", counters.compiled);
  out.counter("constraint_compile_seconds_total", "Time to compile constraints.",
              counters.compile_seconds);
  out.counter("constraint_cache_hits_total", "Constraints found compiled in the cache.",
              counters.hits);
  out.counters("constraints_refused_total", "Constraints refused.", "reason", refused);
  out.counter("constraints_widened_total",
              "Requests with a schema that can't be enforced as a whole, answered with a warning.",
              counters.widened);
  out.gauge("constraint_cache_bytes", "Memory held by compiled constraints.",
            static_cast<int64_t>(counters.kept_bytes));
  out.counter("constraint_masks_total", "Steps of sequences under a constraint.",
              engine.masked_steps);
  out.counter("constraint_mask_seconds_total", "Time to compute the token masks of constraints.",
              engine.mask_seconds);
  out.counter("constraint_wait_seconds_total", "Time that the engine waited for token masks.",
              engine.wait_seconds);
  out.counter("constraint_forced_tokens_total",
              "Tokens computed ahead because a constraint allows no others.", engine.forced_tokens);
}

// What another backend says of itself.
void write_backend(MetricsWriter& out, const BackendReport& backend) {
  out.info("backend_info", "Backend that computes the model.",
           {{"backend", backend.name}, {"version", backend.version}});
  out.counter("backend_restarts_total", "Starts of the backend's process after the first.",
              backend.num_restarts);
  if (backend.memory_bytes) {
    out.gauge("backend_memory_bytes", "Memory of the backend's process, as it says.",
              *backend.memory_bytes);
  }
}

// The key/value cache, and what shares it out.
void write_cache(MetricsWriter& out, const HostedModel& model, const EngineSnapshot& snapshot) {
  const BlockCounts blocks = count_blocks(snapshot);
  const EngineLimits& limits = model.text.engine.limits();
  out.gauge("kv_cache_usage_perc", "K/V-cache usage by sequences. 1 means 100 percent usage.",
            blocks.usage);
  if (!snapshot.pools.empty()) {
    out.info("cache_config_info", "Configuration of the K/V cache.",
             {{"block_size", std::to_string(snapshot.pools[0].block_size)},
              {"num_gpu_blocks", std::to_string(blocks.num_blocks)},
              {"cache_dtype", model.cache_dtype},
              {"enable_prefix_caching", limits.prefix_cache ? "True" : "False"}});
  }
  write_states(out, snapshot);
  write_adapters(out, limits.max_adapters, snapshot);
  out.counter("num_preemptions_total", "Preemptions of sequences.", snapshot.counters.preemptions);
  out.counter("num_deferred_preemptions_total",
              "Preemptions of sequences whose clients lag, in favour of others.",
              snapshot.counters.deferred_preemptions);
  out.counter("dropped_prefix_holds_total",
              "Held prefixes released early because the cache ran out of blocks.",
              snapshot.counters.dropped_holds);
  write_speculation(out, limits.speculation, snapshot.counters.speculation);
  out.counter("engine_run_steps_total", "Engine steps that a GPU took without the CPU in between.",
              snapshot.counters.run_steps);
}

void write_engine(MetricsWriter& out, const HostedModel& model, const EngineSnapshot& snapshot) {
  int64_t num_running = 0, num_deferred = 0;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    num_running += sequence.is_running;
    num_deferred += sequence.is_deferred;
  }
  const auto num_sequences = static_cast<int64_t>(snapshot.sequences.size());
  const EngineLimits& limits = model.text.engine.limits();
  out.gauge("num_requests_running", "Sequences in the running batch.", num_running);
  out.gauge("num_requests_running_limit", "Limit of running sequences (--max-num-seqs).",
            limits.max_num_seqs);
  out.gauge("num_requests_waiting", "Sequences waiting to run.", num_sequences - num_running);
  out.gauge("num_requests_waiting_limit", "Limit of waiting requests (--max-num-queued-reqs).",
            limits.max_queued);
  out.gauge("num_requests_deferred", "Sequences of lagging clients, which give way to others.",
            num_deferred);
  out.gauge("queue_tokens", "Prompt tokens of waiting requests.",
            model.text.engine.queue().num_tokens());
  out.gauge("queue_tokens_limit", "Limit of waiting prompt tokens (--max-num-queued-tokens).",
            model.text.engine.queue().max_tokens());
  out.counter("late_cancellations_total", "Cancellations of requests that had already ended.",
              snapshot.counters.late_cancellations);
  if (snapshot.backend) {
    write_backend(out, *snapshot.backend);
  } else {
    write_cache(out, model, snapshot);
  }
  const ConstraintCache* const cache = model.text.constraints;
  if (cache != nullptr && limits.constrains) {
    write_constraints(out, *cache, snapshot.counters.constraints);
  }
  out.counter("engine_steps_total", "Engine steps.", snapshot.counters.steps);
  out.gauge("engine_step_age_seconds", "Age of the current step; 0 while the engine is idle.",
            model.step_age());
  out.histogram("iteration_tokens_total", "Tokens computed per engine step.",
                model.steps.tokens_per_step());
}

void write_requests(MetricsWriter& out, const ServerMetrics& metrics) {
  out.counter("prompt_tokens_total", "Prompt tokens processed.", metrics.prompt_tokens);
  out.counter("generation_tokens_total", "Tokens generated.", metrics.generation_tokens);
  out.counter("prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
              metrics.prompt_tokens);
  out.counter("prefix_cache_hits_total", "Prompt tokens found in the prefix cache.",
              metrics.cached_tokens);
  out.counter("requests_accepted_total", "Requests submitted to the engine.", metrics.accepted);
  out.counter("requests_completed_total", "Requests completed.", metrics.completed);
  out.counter("requests_cancelled_total", "Requests cancelled because the client disconnected.",
              metrics.cancelled);
  out.counter("requests_failed_total", "Requests failed.", metrics.failed);
  out.counter("slow_reader_total", "Streams closed because the client read too slowly.",
              metrics.slow_readers);
  out.counters("request_success_total", "Finished choices by finish reason.", "finished_reason",
               metrics.finished);
  out.counters("cancelled_total", "Cancelled choices by phase.", "phase", metrics.cancelled_in);
  out.counter("omitted_parts_total",
              "Parts of tool results left out because they aren't text (a note stands for each).",
              metrics.omitted_parts);
}

void write_request_histograms(MetricsWriter& out, const ServerMetrics& metrics) {
  out.histogram("time_to_first_token_seconds", "Time from submission to the first token.",
                metrics.time_to_first_token);
  out.histogram("inter_token_latency_seconds", "Time between two tokens of a choice.",
                metrics.inter_token_latency);
  out.histogram("time_per_output_token_seconds",
                "Time between two tokens of a choice, under vLLM's older name.",
                metrics.time_per_output_token);
  out.histogram("request_time_per_output_token_seconds",
                "Mean time between the tokens of a choice.", metrics.request_time_per_output_token);
  out.histogram("e2e_request_latency_seconds", "Time from submission to the last token.",
                metrics.e2e_latency);
  out.histogram("request_queue_time_seconds", "Time in the queue.", metrics.queue_time);
  out.histogram("request_prefill_time_seconds", "Time to compute the prompt.",
                metrics.prefill_time);
  out.histogram("request_decode_time_seconds", "Time from the first token to the last.",
                metrics.decode_time);
  out.histogram("request_inference_time_seconds", "Time running: prefill and decode.",
                metrics.inference_time);
  out.histogram("request_prompt_tokens", "Prompt tokens per request.",
                metrics.request_prompt_tokens);
  out.histogram("request_generation_tokens", "Tokens generated per choice.",
                metrics.request_generation_tokens);
  out.histogram("request_params_n", "The parameter n of requests.", metrics.params_n);
  out.histogram("request_params_max_tokens", "The parameter max_tokens of requests.",
                metrics.params_max_tokens);
}

void write_server(MetricsWriter& out, const ServerContext& context) {
  out.counters("rejected_total", "Error responses by code.", "reason", context.errors.by_code);
  out.gauge("requests_open", "In-flight requests.", context.in_flight.num_in_flight());
  out.gauge("requests_open_limit", "Limit of in-flight requests (--max-requests).",
            context.in_flight.limit());
  out.gauge("body_bytes", "Memory held by request bodies.", context.body_bytes.num_held());
  out.gauge("body_bytes_limit", "Limit of memory held by request bodies.",
            context.body_bytes.limit());
  out.gauge("response_bytes", "Memory reserved for large responses.",
            context.response_bytes.num_held());
  out.gauge("response_bytes_limit", "Limit of memory reserved for large responses.",
            context.response_bytes.limit());
  out.gauge("stored_responses", "Responses kept for later requests.",
            context.responses.num_responses());
  out.gauge("stored_responses_bytes", "Memory held by responses kept for later requests.",
            context.responses.num_bytes());
  out.gauge("memory_bytes", "Resident memory without mapped files.", context.memory.used());
  out.gauge("memory_bytes_limit",
            "Limit of resident memory (--max-resident-memory); from 98 % on requests get 503.",
            context.memory.limit());
  out.counter("unknown_fields_total", "Unknown request fields ignored (--ignore-unknown-fields).",
              context.num_unknown_fields.load());
  const LineWriter* log = context.options.log;
  out.counter("log_lines_dropped_total", "Log lines dropped because nothing read the log.",
              log == nullptr ? 0 : log->num_dropped());
}

void write_http(MetricsWriter& out, const HttpCounters& counters, const HttpLimits& limits) {
  out.gauge("connections_open", "Open connections.", counters.connections);
  out.gauge("connections_open_limit", "Limit of open connections (--max-connections).",
            limits.max_connections);
  out.gauge("connections_per_address_limit",
            "Limit of open connections of one address, loopback excepted.",
            limits.max_connections_per_address);
  out.gauge("unsent_bytes", "Response bytes that clients have not taken yet.",
            counters.unsent_bytes);
  out.gauge("unsent_bytes_limit", "Limit of response bytes not taken yet.",
            limits.max_unsent_bytes);
  out.gauge("request_body_bytes_limit", "Limit of one request body (--max-body-size).",
            limits.max_body_bytes);
  out.gauge("request_header_bytes_limit", "Limit of one request header (--max-header-size).",
            limits.max_header_bytes);
  out.gauge("header_seconds_limit", "Time allowed to send a header.", seconds(limits.header_time));
  out.gauge("body_seconds_limit", "Time allowed to send a body.", seconds(limits.body_time));
  out.gauge("keep_alive_seconds_limit", "Time a connection may be idle between requests.",
            seconds(limits.keep_alive_time));
  out.gauge("write_stall_seconds_limit", "Time a client may take none of its response.",
            seconds(limits.write_stall));
  out.gauge("min_send_rate_limit", "Minimum rate at which a client takes its response, bytes/s.",
            limits.min_send_rate);
  out.counter("connections_total", "Connections accepted.", counters.accepted);
  out.counter("http_requests_total", "Well-formed HTTP requests.", counters.requests);
  out.counter("http_malformed_total", "Malformed requests.", counters.malformed);
  out.counter("http_stalled_total", "Connections closed because the client took nothing.",
              counters.stalled);
  out.counter("http_slow_total",
              "Connections closed because the client was below the minimum rate.", counters.slow);
  out.counter("http_shed_total", "Connections closed because of the limit of unsent bytes.",
              counters.shed);
}

void write_process(MetricsWriter& out) {
  const ProcessStats stats = process_stats();
  out.process("cpu_seconds_total", "counter", "User and system CPU time spent in seconds.",
              stats.cpu_seconds);
  out.process("resident_memory_bytes", "gauge", "Resident memory size in bytes.",
              stats.resident_bytes);
  out.process("virtual_memory_bytes", "gauge", "Virtual memory size in bytes.",
              stats.virtual_bytes);
  out.process("open_fds", "gauge", "Open file descriptors.", stats.open_descriptors);
  out.process("max_fds", "gauge", "Limit of open file descriptors.", stats.max_descriptors);
  out.process("start_time_seconds", "gauge", "Start time of the process since 1970 in seconds.",
              stats.start_time);
}

}  // namespace

// What belongs to no model has the name of the first.
void show_metrics(const CallPtr& call) {
  const ModelHost& host = call->context().host;
  with_snapshots(
      call, host.loaded(), [&host](const auto& ready, const auto& models, const auto& snapshots) {
        const ServerContext& context = ready->context();
        MetricsWriter out(context.options.metrics_prefix);
        for (size_t i = 0; i < models.size(); ++i) {
          out.set_model(models[i]->names[0]);
          write_engine(out, *models[i], snapshots[i]);
        }
        for (size_t i = 0; i < host.num_models(); ++i) {
          out.set_model(host.entry(i).names[0]);
          write_requests(out, context.metrics[i]);
          write_request_histograms(out, context.metrics[i]);
          out.gauge("model_loaded", "1 while the model is loaded.",
                    host.status(i).state == ModelState::loaded ? 1 : 0);
        }
        out.set_model(host.entry(0).names[0]);
        write_server(out, context);
        write_http(out, context.http.counters(), context.options.http);
        write_process(out);
        ready->respond(
            {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = out.text()});
      });
}

}  // namespace paceline
