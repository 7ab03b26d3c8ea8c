#include "server/serving_loop.h"

#include <unistd.h>

#include "server/api_call.h"
#include "server/api_server.h"
#include "server/step_history.h"

namespace paceline {

void DrainOnSignal::operator()() {
  if (num_signals_.fetch_add(1) > 0) _exit(kSecondSignalExit);
  frontend_.drain();
}

std::string serve_until_drained(ServerFrontend& frontend, const ServedModel& model,
                                const ServerOptions& options,
                                const std::function<void(std::string_view)>& say) {
  Engine& engine = model.text.engine;
  StepHistory steps(model.observer);
  steps.on_first_draft_failure([&options](const std::string& failure) {
    if (options.warnings == nullptr) return;
    write_warning(*options.warnings, failure + "; its sequences are decoded without drafts",
                  options.log_json);
  });
  engine.set_observer(&steps);
  ApiServer server(frontend, model.text, steps, options);
  std::string failure;
  {
    const EngineThread thread(engine, model.window, [&server](const std::string& message) {
      server.engine_failed(message);
    });
    if (server.open(thread)) say("listening on " + frontend.url());
    failure = server.wait();
  }
  engine.set_observer(nullptr);
  return failure;
}

}  // namespace paceline
