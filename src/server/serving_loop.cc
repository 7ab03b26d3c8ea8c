#include "server/serving_loop.h"

#include <unistd.h>

#include <utility>

#include "server/api_server.h"

namespace paceline {

void DrainOnSignal::operator()() {
  if (num_signals_.fetch_add(1) > 0) _exit(kSecondSignalExit);
  frontend_.drain();
}

std::string serve_until_drained(ServerFrontend& frontend, std::vector<ModelEntry> models,
                                const ServerOptions& options,
                                const std::function<void(std::string_view)>& say) {
  ApiServer server(frontend, std::move(models), options);
  if (server.open()) say("listening on " + frontend.url());
  return server.wait();
}

}  // namespace paceline
