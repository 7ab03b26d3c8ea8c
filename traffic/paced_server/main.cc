// Serves like `paceline serve`, signals and exit codes included, without a model's weights.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "cli/interrupt.h"
#include "engine/engine_thread.h"
#include "server/api_server.h"
#include "server/server_door.h"
#include "traffic/paced_server/server_arguments.h"

namespace paceline::traffic {
namespace {

constexpr int kEngineFailed = 70;
constexpr int kSecondSignal = 130;

// In one write: lines of several threads don't mix.
void say(std::string_view text) {
  const std::string line = fmt::format("{}\n", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// Ends the engine: what an observer throws is nobody's request's fault.
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

// What a failure of the engine said, else nothing.
std::string serve(ServerDoor& door, const ServerArguments& arguments) {
  PacedModel model(arguments.model);
  const TextModel text = model.text_model();
  Breaker breaker(arguments.fail_after);
  StepHistory steps(&breaker);
  model.engine().set_observer(&steps);
  ApiServer server(door, text, steps, arguments.server);
  std::string failure;
  {
    const EngineThread thread(model.engine(), {}, [&server](const std::string& message) {
      server.engine_failed(message);
    });
    if (server.open(thread)) say("listening on " + door.url());
    failure = server.wait();
  }
  model.engine().set_observer(nullptr);
  return failure;
}

int run(ServerArguments arguments) {
  Interrupt interrupt;
  std::signal(SIGPIPE, SIG_IGN);
  if (arguments.logs_requests) arguments.server.log = say;
  ServerDoor door(arguments.server.address, arguments.server.http);
  std::atomic<int> num_signals = 0;
  const Interrupt::Handler handler(interrupt, [&](int) {
    if (num_signals.fetch_add(1) > 0) _exit(kSecondSignal);
    door.drain();
  });
  const std::string failure = serve(door, arguments);
  if (failure.empty()) return 0;
  say("the engine has failed: " + failure);
  return kEngineFailed;
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
