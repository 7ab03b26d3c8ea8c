// BatchJob is one request of a batch on its way through the pool, in as many parts as it has
// prompts.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/batch_line.h"
#include "llm/request_pool.h"
#include "protocol/api_error.h"
#include "protocol/api_request.h"
#include "protocol/completed_responses.h"

namespace paceline {

// The body as the URL's request. Throws RequestError, for `stream` too: a file has no listener.
ApiRequest parse_api_request(BatchUrl url, const Json& body);

struct BatchJob {
  std::string custom_id;
  size_t num_bytes = 0;  // of its line
  ApiRequest request;
  std::vector<CompletedPart> parts;
  size_t next_part = 0;           // the first that the pool hasn't got yet
  size_t num_in_flight = 0;       // parts
  std::optional<ApiError> error;  // of the first part that failed
  std::stop_source stop;          // of all of its parts

  // Nothing is to come any more.
  bool is_over() const { return num_in_flight == 0 && (error || next_part == parts.size()); }
};

// Gives part `index` of the job to the pool. `default_seed` is that of a request without one.
// Throws Error for a request that can never run.
void submit_part(RequestPool& pool, LLM& llm, int64_t tag, BatchJob& job, size_t index,
                 std::optional<uint64_t> default_seed);

}  // namespace paceline
