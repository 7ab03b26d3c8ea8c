// Tally counts the outcomes of one kind of request.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "traffic/load_client/samples.h"

namespace paceline::traffic {

struct Tally {
  int64_t sent = 0;
  int64_t completed = 0;                  // complete, with every token right
  int64_t refused = 0;                    // 429
  int64_t tokens = 0;                     // of completed answers
  std::map<std::string, int64_t> faults;  // wrong tokens, by kind
  std::map<std::string, int64_t> errors;  // all other failures

  // The delay from a token's scheduled tick. The schedule of a stream is the latest on which none
  // of its tokens is early. The first token counts as time to first token instead.
  Samples added_latency;
  Samples gap;          // between two tokens of a stream
  Samples first_token;  // from the moment the request was due, not sent
  Samples whole;        // likewise, to the end of a complete answer
  Samples refusal;      // likewise, to the end of a 429

  int64_t answered() const { return completed + refused + count(faults) + count(errors); }
  static int64_t count(const std::map<std::string, int64_t>& reasons) {
    int64_t sum = 0;
    for (const auto& [reason, number] : reasons) sum += number;
    return sum;
  }
};

}  // namespace paceline::traffic
