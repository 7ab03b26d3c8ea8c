// The options of a server.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/line_writer.h"
#include "http/http.h"
#include "protocol/response_store.h"
#include "protocol/seal.h"

namespace paceline {

class AdapterSet;
struct LoadedAdapter;

// How requests load adapters.
struct RuntimeAdapters {
  // Reads and packs one, on any thread; null: requests load none.
  std::function<std::shared_ptr<const LoadedAdapter>(const std::string& name,
                                                     const std::string& path)>
      load;
  AdapterSet* adapters = nullptr;
  std::string directory;  // they lie beneath it
  int64_t most = 0;       // beyond them the least recently used one without a request leaves
};

struct ServerOptions {
  HttpAddress address;
  HttpLimits http;
  std::vector<std::string> api_keys;                   // none: no key is asked for
  std::vector<std::string> allowed_hosts;              // beside the loopback's names
  std::vector<std::string> allowed_origins;            // of pages that may use it from a browser
  std::string reasoning_field = "reasoning_content";   // the member of messages that has it
  std::chrono::milliseconds queue_timeout{30'000};     // before its computation begins
  std::chrono::milliseconds request_timeout{600'000};  // in all
  std::chrono::milliseconds drain_timeout{30'000};
  std::chrono::milliseconds drain_delay{0};     // requests are still admitted for this long
  std::chrono::milliseconds ping_time{15'000};  // an idle stream sends a comment this often
  size_t soft_buffer_bytes = 256 << 10;    // of unread bytes: further chunks of a stream are merged
  size_t hard_buffer_bytes = 1 << 20;      // of unread bytes: the stream is closed
  int64_t max_requests = 0;                // in flight; 0: as many as the engine runs and queues
  uint64_t max_choices = 16;               // the greatest n
  bool ignore_unknown_fields = false;      // count unknown fields instead of refusing them
  bool keep_client_counters = false;       // in prompts (protocol/client_counters.h)
  int64_t max_body_bytes_held = 64 << 20;  // of all requests together
  int64_t max_response_bytes = 64 << 20;   // estimated, of one that is built whole
  int64_t max_resident_bytes = 0;          // 0: the control group's or the machine's
  bool accepts_any_model = false;          // an unknown name is the first model's
  std::chrono::milliseconds sleep_after{0};  // a model without requests is unloaded; 0: never
  Seal seal = Seal::random();                // of what clients keep
  ResponseStoreLimits stored_responses;
  std::string compaction_prompt;         // empty: the default one
  int64_t max_compaction_tokens = 4096;  // of a request that doesn't say how many
  std::string metrics_prefix = "paceline";
  LineWriter* log = nullptr;       // gets one line per request
  LineWriter* warnings = nullptr;  // gets a line about what went wrong without ending a request
  bool log_json = false;
};

}  // namespace paceline
