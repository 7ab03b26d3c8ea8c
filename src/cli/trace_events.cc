// Writes a trace in Chrome's Trace Event Format, JSON that Perfetto shows. Times in microseconds.
#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/trace_totals.h"

namespace paceline {
namespace {

constexpr int64_t kSteps = 1;  // process ids: each is a group of tracks
constexpr int64_t kSequences = 2;

class EventWriter {
 public:
  explicit EventWriter(std::string& out) : json_(out) {}

  void write(const Trace& trace, const Timeline& timeline, const TraceTotals& totals) {
    json_.begin_object().member("displayTimeUnit", "ms");
    json_.key("otherData").raw(totals_json(totals)).key("traceEvents").begin_array();
    name("process_name", kSteps, 0, "steps");
    name("process_name", kSequences, 0, "sequences");
    for (size_t i = 0; i < trace.steps.size(); ++i) add_step(trace, i, timeline.steps[i]);
    for (const Lane& lane : timeline.lanes) add_lane(lane, timeline.duration_us);
    json_.end_array().end_object();
  }

 private:
  // Begins an event and its arguments.
  JsonWriter& begin(std::string_view name, std::string_view phase, int64_t process, int64_t track,
                    Interval time) {
    json_.begin_object().member("name", name).member("ph", phase);
    json_.member("pid", process).member("tid", track).member("ts", time.begin_us);
    if (phase == "X") json_.member("dur", time.end_us - time.begin_us);
    if (phase == "i") json_.member("s", "t");
    return json_.key("args").begin_object();
  }
  void end() { json_.end_object().end_object(); }
  void name(std::string_view kind, int64_t process, int64_t track, std::string_view name) {
    begin(kind, "M", process, track, {}).member("name", name);
    end();
  }

  void add_step(const Trace& trace, size_t index, const StepTime& step) {
    const StepRecord& record = trace.steps[index];
    begin(fmt::format("step {}", step.step), "X", kSteps, 0, step.time)
        .member("rows", record.num_rows)
        .member("sequences", record.slices.size())
        .member("waiting", record.num_waiting)
        .member("plan_us", record.plan_us)
        .member("forward_us", record.forward_us);
    end();
    const int64_t drafted = step.accepted_rows + step.rejected_rows;
    begin("rows", "C", kSteps, 0, step.time)
        .member("prefill", step.prefill_rows)
        .member("decode", step.decode_rows - drafted)
        .member("accepted drafts", step.accepted_rows)
        .member("rejected drafts", step.rejected_rows);
    end();
    for (size_t i = 0; i < trace.start.groups.size(); ++i) {
      const int64_t free = record.free_blocks[i];
      begin(fmt::format("blocks of group {}", i), "C", kSteps, 0, step.time)
          .member("held", trace.start.groups[i].blocks - free)
          .member("cached", record.cached_blocks[i])
          .member("free", free - record.cached_blocks[i]);
      end();
    }
  }

  void add_lane(const Lane& lane, int64_t duration_us) {
    name("thread_name", kSequences, lane.id, fmt::format("sequence {}", lane.id));
    begin(lane.end_us ? lane.finish_reason : "not ended", "X", kSequences, lane.id,
          {lane.arrival_us, lane.end_us.value_or(duration_us)})
        .member("prompt_tokens", lane.prompt_tokens)
        .member("cached_tokens", lane.cached_tokens)
        .member("output_tokens", lane.output_tokens)
        .member("drafted_tokens", lane.drafted_tokens)
        .member("accepted_tokens", lane.accepted_tokens);
    if (lane.first_token_us) json_.member("first_token_us", *lane.first_token_us - lane.arrival_us);
    end();
    static constexpr std::string_view kKinds[] = {"prefill", "computed again", "decode"};
    for (const LaneSpan& span : lane.spans) {
      begin(kKinds[static_cast<size_t>(span.kind)], "X", kSequences, lane.id, span.time)
          .member("rows", span.tokens)
          .member("drafted", span.drafted)
          .member("accepted", span.accepted);
      end();
    }
    for (const CacheHit& hit : lane.cache_hits) {
      begin("from the prefix cache", "i", kSequences, lane.id, {hit.at_us, hit.at_us})
          .member("tokens", hit.tokens);
      end();
    }
    for (const int64_t at_us : lane.preemptions_us) {
      begin("preempted", "i", kSequences, lane.id, {at_us, at_us});
      end();
    }
  }

  JsonWriter json_;
};

}  // namespace

std::string trace_events(const Trace& trace, const Timeline& timeline, const TraceTotals& totals) {
  std::string json;
  EventWriter(json).write(trace, timeline, totals);
  return json + "\n";
}

}  // namespace paceline
