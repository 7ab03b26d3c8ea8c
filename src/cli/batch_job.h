// BatchJob is an in-flight request of a batch, with a part for each of its prompts; BatchResponse
// is its result.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/batch_line.h"
#include "cli/settings.h"
#include "llm/request_pool.h"
#include "paceline/tokenizer.h"
#include "protocol/dialect.h"
#include "protocol/response.h"
#include "protocol/token_names.h"

namespace paceline {

// Parses the body as the dialect's request. Throws RequestError, also for what a file can't take:
// `stream`, and prompts that a server encodes.
Call parse_batch_call(const Dialect& dialect, const Json& body);

// The number of prompts. Each becomes a request of the engine; a conversation is one prompt.
size_t num_parts(const Call& call);

struct BatchJob {
  std::string custom_id;
  size_t num_bytes = 0;  // of its line
  Call call;
  std::vector<CompletedPart> parts;
  size_t next_part = 0;           // the first one not yet submitted
  size_t num_in_flight = 0;       // parts
  std::optional<ApiError> error;  // of the first part that failed
  std::stop_source stop;          // of all of its parts

  // No part is in flight, and none will be submitted.
  bool is_finished() const { return num_in_flight == 0 && (error || next_part == parts.size()); }
};

// Submits part `index` of the job to the pool. `default_seed` is that of a request without one.
// Throws Error for a request that can never run.
void submit_part(RequestPool& pool, LLM& llm, int64_t tag, BatchJob& job, size_t index,
                 std::optional<uint64_t> default_seed);

// The texts of tokens, from a tokenizer that is opened when the first response needs it.
class BatchTokenNames {
 public:
  explicit BatchTokenNames(const Settings& settings) : settings_(settings) {}

  // Without names if they aren't needed.
  const TokenNames& get_if(bool is_needed);

 private:
  const Settings& settings_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<TokenNames> names_;
};

struct BatchResponse {
  std::string body;
  ResponseUsage usage;
};

// For a job whose parts are all done. `model` is the model's name in the response.
BatchResponse respond_to(const BatchJob& job, const std::string& model, BatchTokenNames& names);

}  // namespace paceline
