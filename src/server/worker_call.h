// Runs the slow part of a handler on a worker thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/json.h"
#include "server/api_call.h"

namespace paceline {

// Runs on the I/O thread after a worker's job.
using Continuation = std::function<void(const CallPtr& call)>;

Continuation respond_with(HttpResponse response);

// Runs `job` on a worker, then the continuation that it returns on the I/O thread. If the client
// has disconnected by then, calls `gone` instead, if there is one, and logs that. An exception of
// either becomes the response; 429 when the workers' queue is full. `job` must not hold the call,
// which belongs to the I/O thread.
void on_worker(CallPtr call, std::function<Continuation()> job,
               std::function<void()> gone = nullptr);

// Responds to an accepted request with the JSON that `make_json` returns on a worker, and counts
// the request as completed, failed or (client disconnected) cancelled.
void respond_from_worker(const CallPtr& call, std::function<std::string()> make_json);

// Takes the request's body out of its exchange. The function decompresses and parses it, on a
// worker; throws RequestError for one that is malformed or too large.
std::function<Json()> take_body(ApiCall& call);

// Calls `work`; an exception becomes the response.
void guarded(ApiCall& call, const std::function<void()>& work);

}  // namespace paceline
