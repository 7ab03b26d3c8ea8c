// What a server is started with.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http.h"

namespace paceline {

struct ServerOptions {
  HttpAddress address;
  HttpLimits http;
  std::vector<std::string> model_names;      // what requests may call the model, never none; the
                                             // first is its name
  std::vector<std::string> api_keys;         // none: no key is asked for
  std::vector<std::string> allowed_hosts;    // beside the loopback's names
  std::vector<std::string> allowed_origins;  // of pages that may use it from a browser
  std::string system_fingerprint;            // of answers; empty: not told
  std::chrono::milliseconds queue_timeout{30'000};     // without being begun
  std::chrono::milliseconds request_timeout{600'000};  // in all
  std::chrono::milliseconds drain_timeout{30'000};
  std::chrono::milliseconds drain_delay{0};     // so long requests are still taken
  std::chrono::milliseconds ping_time{15'000};  // a stream that has said nothing gets a comment
  size_t soft_buffer_bytes = 256 << 10;    // of a stream's unread bytes: pieces are put together
  size_t hard_buffer_bytes = 1 << 20;      // the stream is cut off
  int64_t max_requests = 0;                // at once; 0: as many as the engine runs and lets wait
  uint64_t max_choices = 16;               // the greatest n
  bool ignore_unknown_fields = false;      // of requests: they are counted instead of refused
  int64_t max_body_bytes_held = 64 << 20;  // of all requests that are being read
  int64_t max_resident_bytes = 0;  // near it requests are refused; 0: the cgroup's or the machine's
  // One line per request; called on the I/O thread.
  std::function<void(std::string_view line)> log;
  bool log_json = false;
};

}  // namespace paceline
