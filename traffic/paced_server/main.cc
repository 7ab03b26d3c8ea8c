// Serves like `paceline serve`, signals and exit codes included, without a model's weights.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

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
  const TextModel text = model.text_model();
  const EngineLimits& limits = text.engine.limits();
  std::vector<ModelEntry> models;
  models.push_back({.names = {"paced"},
                    .max_requests = limits.max_num_seqs + limits.max_queued,
                    .loaded = ServedModel{.names = {"paced"}, .text = text, .observer = &breaker}});
  const auto load_slowly = [&arguments](const std::atomic<bool>& cancelled) {
    const auto end = std::chrono::steady_clock::now() + arguments.load_time;
    while (!cancelled && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    auto loaded = std::make_shared<PacedModel>(arguments.model);
    ServedModel served{.names = {"slow"}, .text = loaded->text_model()};
    served.owner = std::move(loaded);
    return served;
  };
  models.push_back({.names = {"slow"}, .load = load_slowly});
  const std::string failure =
      serve_until_drained(frontend, std::move(models), arguments.server, say);
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
