// What a request asks of a Python child, as the messages of docs/backends.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "backends/model_child.h"
#include "engine/request.h"

namespace paceline {

// Whether results about the prompt are asked for, which a child computes first.
bool asks_for_scores(const GenerateRequest& request);

// Throws RequestError unsupported_parameter naming the first field that the child doesn't obey.
void check_child_request(const GenerateRequest& request, const ChildFacts& facts,
                         std::string_view backend);

// The message number `id`: the prompt's results, or the output of a choice.
std::string score_message(int64_t id, const GenerateRequest& request);
std::string generate_message(int64_t id, const GenerateRequest& request, int32_t choice);

}  // namespace paceline
