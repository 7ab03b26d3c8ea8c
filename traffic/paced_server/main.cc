// Serves like `paceline serve`, signals and exit codes included, without a model's weights.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/line_writer.h"
#include "cli/interrupt.h"
#include "engine/step_record.h"
#include "server/serving_loop.h"
#include "traffic/paced_server/server_arguments.h"

namespace paceline::traffic {
namespace {

// Uses one write, so that lines of several threads don't mix.
void say(std::string_view text) {
  const std::string line = fmt::format("{}\n", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// Makes the engine fail: an observer's exception isn't attributed to a request.
class Breaker : public StepObserver {
 public:
  explicit Breaker(int64_t step) : step_(step) {}
  void on_submitted(const Sequence&, int64_t) override {}
  void on_cancelled(RequestId, int64_t) override {}
  void on_step(const StepRecord& record) override {
    if (record.step == step_) throw std::runtime_error("told to fail");
  }

 private:
  int64_t step_;
};

int run(ServerArguments arguments) {
  Interrupt interrupt;
  std::signal(SIGPIPE, SIG_IGN);
  LineWriter log(STDERR_FILENO);
  if (arguments.logs_requests) arguments.server.log = &log;
  ServerFrontend frontend(arguments.server.address, arguments.server.http);
  DrainOnSignal drain(frontend);
  const Interrupt::Handler handler(interrupt, [&drain](int) { drain(); });
  PacedModel model(arguments.model);
  Breaker breaker(arguments.fail_after);
  const std::string failure = serve_until_drained(
      frontend, {.names = {"paced"}, .text = model.text_model(), .observer = &breaker},
      arguments.server, say);
  if (failure.empty()) return 0;
  say("the engine has failed: " + failure);
  return kEngineFailedExit;
}

}  // namespace
}  // namespace paceline::traffic

int main(int argc, char** argv) {
  try {
    return paceline::traffic::run(paceline::traffic::read_server_arguments(argc, argv));
  } catch (const std::exception& error) {
    paceline::traffic::say(error.what());
    return 1;
  }
}
