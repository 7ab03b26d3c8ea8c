// Which answer an error of reading or of preparing a request gets.
#pragma once

#include "base/error.h"
#include "protocol/api_error.h"

namespace paceline {

// For errors from before the request runs: what is too much is the request's own fault (400), since
// no other server could answer it.
ApiError fault_of_request(const Error& error);

}  // namespace paceline
