// Time limits of requests: in the queue, and in total.
#pragma once

#include "server/server_context.h"

namespace paceline {

// I/O thread. Fails requests that exceed --request-timeout with 504, and requests that exceed
// --queue-timeout before their computation begins with 503: another server may have room.
void enforce_time_limits(ServerContext& context);

}  // namespace paceline
