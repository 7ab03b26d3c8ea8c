// Time limits of requests: how long one may wait for its turn, and how long it may take in all.
#pragma once

#include "server/server_context.h"

namespace paceline {

// I/O thread, now and then. Ends with an error what has been here too long, 504, and what has
// waited too long without any of it being computed, 503: another server may have room.
void enforce_time_limits(ServerContext& context);

}  // namespace paceline
