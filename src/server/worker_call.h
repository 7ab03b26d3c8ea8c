// How a route's slow part leaves the I/O thread and comes back.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/api_call.h"

namespace paceline {

// What is left to do on the I/O thread.
using Continuation = std::function<void(const std::shared_ptr<ApiCall>& call)>;

// Runs `job` on a worker and what it returns on the I/O thread, unless the client has gone by then:
// `gone`, if there is one, is called in its place, and the log says so.
// What either throws becomes the answer, and 429 does when the workers are behind. `job` must not
// hold the call, which belongs to the I/O thread.
void on_worker(std::shared_ptr<ApiCall> call, std::function<Continuation()> job,
               std::function<void()> gone = nullptr);

// Answers an accepted request with what `make_json` returns on a worker, and counts it as
// completed, failed or, when the client has gone, cancelled.
void respond_from_worker(const std::shared_ptr<ApiCall>& call,
                         std::function<std::string()> make_json);

// Calls `work`; what it throws becomes the answer.
void guarded(ApiCall& call, const std::function<void()>& work);

}  // namespace paceline
