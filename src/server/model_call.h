// Runs a request with the model that it names, which is loaded first where it isn't.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "server/worker_call.h"

namespace paceline {

// A request that has been read and waits for its model.
struct ModelJob {
  Continuation answer = nullptr;  // of a request that needs no model: instead of all that follows
  std::optional<std::string> model;  // its name, or an adapter's; nothing: the first model
  // What keeps a streamed answer alive meanwhile, and clients skip; empty: it isn't streamed.
  std::string_view ping = {};
  // On a worker. The call has the model until it ends.
  std::function<Continuation(HostedModel& model)> run;
};

// The member "model" of a body, if it is a name.
std::optional<std::string> named_model(const Json& body);

// Calls `read` on a worker, waits for the model, runs the job on a worker, then its continuation on
// the I/O thread. Errors become the response, as in on_worker().
void on_model(const CallPtr& call, std::function<ModelJob()> read);

// The value of a member of the request's query, decoded; nothing when it isn't there. Throws
// RequestError for one that isn't encoded well.
std::optional<std::string> query_member(const ApiCall& call, std::string_view name);

// The model that the query's member "model" names, or the first. Throws as ModelHost::choose()
// does.
size_t model_of_query(const ApiCall& call);

// The same one if it is loaded, or else none.
std::vector<ModelLease> loaded_model_of_query(const ApiCall& call);

// Calls `answer` on the I/O thread with the call's model set, the query's.
void with_model(const CallPtr& call, std::function<void(const CallPtr& call)> answer);

}  // namespace paceline
