// Requests of the OpenAI API: parsed by every endpoint, each either accepted or refused as invalid.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "protocol/api_error.h"
#include "protocol/chat_request.h"
#include "protocol/classification_request.h"
#include "protocol/completion_request.h"

namespace paceline {
namespace {

template <class Parse>
void try_parse(Parse&& parse, const Json& body) {
  try {
    parse(body);
  } catch (const Error& error) {
    const ApiError refusal = api_error(error);
    PL_CHECK(refusal.status == 400, "a request that is refused is the caller's fault");
    parse_json(error_json(refusal), "the error object");
  }
}

void try_every_endpoint(std::string_view text) {
  Json body;
  try {
    body = parse_json(text, "body");
  } catch (const Error&) {
    return;
  }
  try_parse(parse_completion_request, body);
  try_parse(parse_chat_request, body);
  try_parse(parse_classification_request, body);
}

}  // namespace
}  // namespace paceline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  paceline::try_every_endpoint({reinterpret_cast<const char*>(data), size});
  return 0;
}
