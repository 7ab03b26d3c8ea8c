// Completions and log-probabilities as structures of the C API.
#pragma once

#include <vector>

#include "capi/result_store.h"
#include "paceline/paceline.h"
#include "paceline/results.h"

namespace paceline::capi {

// What they point at is in the store, which the structure's owner keeps.
paceline_completion c_completion(const Completion& completion, ResultStore& store);
const paceline_logprob* c_logprobs(const std::vector<Logprob>& logprobs, ResultStore& store);

}  // namespace paceline::capi
