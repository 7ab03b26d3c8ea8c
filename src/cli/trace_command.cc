#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/model_opening.h"
#include "cli/text_file.h"
#include "cli/trace_file.h"
#include "cli/trace_totals.h"
#include "cli/usage_error.h"
#include "engine/engine.h"
#include "engine/run_alone.h"
#include "engine/step_record.h"
#include "load/loaded_model.h"
#include "paceline/options.h"

namespace paceline {
namespace {

struct Replay {
  int64_t num_requests = 0;  // that drew tokens
  int64_t num_tokens = 0;
  int64_t num_constrained = 0;           // not replayed: the trace doesn't have their constraints
  std::vector<std::string> differences;  // "request 7: token 12 of 64: 81, recorded 1034"
};

// Collects every drawn token, EOS included.
class DrawnTokens : public StepObserver {
 public:
  void on_submitted(const Sequence&, int64_t) override {}
  void on_cancelled(RequestId, int64_t) override {}
  void on_step(const StepRecord& record) override {
    for (const auto& token : record.tokens) ids.push_back(token.token);
  }
  std::vector<TokenId> ids;
};

GenerateRequest request_of(const TraceRequest& recorded, size_t num_drawn) {
  SamplingOptions sampling = recorded.sampling;
  for (const TraceBias& bias : recorded.logit_bias) {
    sampling.logit_bias.emplace_back(bias.id, bias.bias);
  }
  for (const TokenId id : recorded.never) {
    sampling.logit_bias.emplace_back(id, -std::numeric_limits<float>::infinity());
  }
  if (recorded.sampler_order == "mlx") sampling.order = SamplerOrder::mlx;
  return {.prompt = recorded.prompt_ids,
          .max_tokens = static_cast<int64_t>(num_drawn),
          .sampling = std::move(sampling),
          .allowed_token_ids = recorded.allowed_token_ids,
          .banned_sequences = recorded.banned,
          .not_first = recorded.not_first,
          .eos_tokens = recorded.eos_token_ids,
          .stop_token_ids = recorded.stop_token_ids,
          .stop_strings = recorded.stop,
          .min_tokens = std::min(recorded.min_tokens, static_cast<int64_t>(num_drawn)),
          .ignore_eos = recorded.ignore_eos,
          .specials = recorded.skip_special_tokens ? SpecialTokens::hidden : SpecialTokens::shown};
}

std::string difference(int64_t id, const std::vector<TokenId>& found,
                       const std::vector<TokenId>& recorded) {
  const auto [at, other] =
      std::mismatch(found.begin(), found.end(), recorded.begin(), recorded.end());
  const auto name = [](auto token, auto end) {
    return token == end ? std::string("nothing") : std::to_string(*token);
  };
  return fmt::format("request {}: token {} of {}: {}, recorded {}", id, at - found.begin() + 1,
                     recorded.size(), name(at, found.end()), name(other, recorded.end()));
}

// Runs each request alone, on a model loaded with `options`. A cancelled or failed request is
// compared up to its last token.
Replay replay_trace(const Trace& trace, const LoadOptions& options) {
  std::unordered_map<int64_t, std::vector<TokenId>> recorded;
  for (const StepRecord& step : trace.steps) {
    for (const StepRecord::DrawnToken& token : step.tokens)
      recorded[token.id].push_back(token.token);
  }
  const auto model = load_model(options);
  Replay replay;
  for (const TraceRequest& request : trace.requests) {
    const std::vector<TokenId>& expected = recorded[request.id];
    if (expected.empty()) continue;
    if (request.is_constrained) {
      ++replay.num_constrained;
      continue;
    }
    DrawnTokens drawn;
    model->engine->set_observer(&drawn);
    run_alone(*model->engine, request_of(request, expected.size()));
    model->engine->set_observer(nullptr);
    ++replay.num_requests;
    replay.num_tokens += static_cast<int64_t>(expected.size());
    if (drawn.ids != expected) {
      replay.differences.push_back(difference(request.id, drawn.ids, expected));
    }
  }
  return replay;
}

std::string replay_text(const Replay& replay) {
  std::string text;
  for (const std::string& line : replay.differences) text += line + "\n";
  text += fmt::format(
      "{} requests replayed one by one, {} tokens: {}\n", replay.num_requests, replay.num_tokens,
      replay.differences.empty() ? "all the same"
                                 : fmt::format("{} requests differ", replay.differences.size()));
  if (replay.num_constrained > 0) {
    text += fmt::format("{} under a constraint, which the trace doesn't have, were left out\n",
                        replay.num_constrained);
  }
  return text;
}

}  // namespace

int run_trace(const Settings& settings, Session& session) {
  if (!settings.file && session.stdin_is_terminal()) {
    throw UsageError("no input: give the FILE that --trace wrote, or pipe it in");
  }
  const Trace trace = read_trace(settings.file.value_or("-"));
  if (settings.replay) {
    Settings with_model = settings;
    if (with_model.load.model.empty()) with_model.load.model = trace.start.model;
    const Replay replay = replay_trace(trace, load_options(with_model));
    session.out().write(replay_text(replay));
    return replay.differences.empty() ? 0 : 1;
  }
  const Timeline timeline = make_timeline(trace);
  const TraceTotals totals = add_up(trace, timeline);
  if (!settings.output.empty()) {
    write_whole_file(settings.output, trace_events(trace, timeline, totals));
    session.print_note(totals_text(totals));
  }
  if (settings.json) {
    session.out().write(totals_json(totals) + "\n");
  } else if (settings.output.empty()) {
    session.out().write(trace_events(trace, timeline, totals));
  }
  return 0;
}

}  // namespace paceline
