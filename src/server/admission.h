// Admission decides on a request's header alone whether its body is read.
#pragma once

#include "server/route_table.h"
#include "server/server_context.h"

namespace paceline {

// What a request holds from its header to its end.
struct Admitted {
  const Route* route = nullptr;
  std::shared_ptr<void> ticket;  // of a route that computes
  std::shared_ptr<void> bytes;   // of its body, until that has been read
};

// A preflight of an allowed origin is let in. Others in this order: route, Host, key, media type,
// draining, a ticket, room for the body.
HttpGate admit(ServerContext& context, const HttpRequest& head);

}  // namespace paceline
