// run_alone steps an engine that no thread owns until one request has ended.
#pragma once

#include <vector>

#include "engine/event.h"

namespace paceline {

class Engine;

// All its events. Throws the request's Error when it failed, and Error cancelled when it was.
std::vector<TokenEvent> run_alone(Engine& engine, GenerateRequest request);

// Throws what an ending says, if it says that something went wrong.
void throw_if_failed(const Ending& ending);

}  // namespace paceline
