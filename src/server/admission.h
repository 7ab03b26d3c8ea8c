// Admission: decides from a request's header whether its body is read.
#pragma once

#include "server/route_table.h"
#include "server/server_context.h"

namespace paceline {

// The resources that a request holds while it is in flight.
struct AdmittedRequest {
  const Route* route = nullptr;
  std::shared_ptr<void> permit;          // of a route with a body, until its response is computed
  std::shared_ptr<void> body_bytes;      // until the body has been parsed
  std::shared_ptr<void> response_bytes;  // of a large response, until it has been sent
};

// Admits preflights of allowed origins. Checks other requests in this order: route, Host, key,
// media type, draining, memory, permit, memory for the body.
HttpGate admit(ServerContext& context, const HttpRequest& head);

}  // namespace paceline
