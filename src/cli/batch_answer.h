// What a finished job of a batch is answered with.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/batch_job.h"
#include "cli/settings.h"
#include "paceline/tokenizer.h"
#include "protocol/response.h"
#include "protocol/token_names.h"

namespace paceline {

// A tokenizer of its own for the names of tokens, opened when the first answer needs it.
class BatchTokenNames {
 public:
  explicit BatchTokenNames(const Settings& settings) : settings_(settings) {}

  const TokenNames& get();

 private:
  const Settings& settings_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<TokenNames> names_;
};

struct BatchAnswer {
  std::string body;
  ResponseUsage usage;
};

// Of a job whose parts all came. `model` is what the answer calls it.
BatchAnswer answer_job(const BatchJob& job, const std::string& model, BatchTokenNames& names);

}  // namespace paceline
