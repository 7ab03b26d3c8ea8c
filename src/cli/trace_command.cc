#include "cli/command.h"
#include "cli/model_opening.h"
#include "cli/text_file.h"
#include "cli/trace_replay.h"
#include "cli/trace_svg.h"
#include "cli/usage_error.h"

namespace paceline {

int run_trace(const Settings& settings, Session& session) {
  if (!settings.file && session.stdin_is_terminal()) {
    throw UsageError("nothing to draw: give the FILE that --trace wrote, or pipe one in");
  }
  const Trace trace = read_trace(settings.file.value_or("-"));
  if (settings.replay) {
    Settings with_model = settings;
    if (with_model.load.model.empty()) with_model.load.model = trace.start.model;
    const Replay replay = replay_trace(trace, load_options(with_model));
    session.out().write(replay_text(replay));
    session.out().flush();
    return replay.differences.empty() ? 0 : 1;
  }
  const Timeline timeline = make_timeline(trace);
  const TraceTotals totals = add_up(trace, timeline);
  if (!settings.output.empty()) {
    write_whole_file(settings.output, draw_trace(trace, timeline, totals));
    if (!settings.quiet) session.say(totals_text(totals));
  }
  if (settings.json) {
    session.out().write(totals_json(totals) + "\n");
  } else if (settings.output.empty()) {
    session.out().write(draw_trace(trace, timeline, totals));
  }
  session.out().flush();
  return 0;
}

}  // namespace paceline
