// Requests of the OpenAI API: every endpoint either accepts any bytes or refuses them as invalid.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "protocol/api_error.h"
#include "protocol/chat_request.h"
#include "protocol/classification_request.h"
#include "protocol/completion_request.h"
#include "protocol/generate_response.h"
#include "protocol/llama_request.h"
#include "protocol/request_body.h"
#include "protocol/text_requests.h"
#include "protocol/token_score_request.h"

namespace paceline {
namespace {

void check_refusal(const Error& error) {
  const ApiError refusal = api_error(error);
  PL_CHECK(openai_kind(refusal.reason).status == 400,
           "a request that is refused is the caller's fault");
  parse_json(error_json(refusal), "the error object");
}

template <class Parse>
void try_parse(Parse&& parse, const Json& body, const RequestTerms& terms) {
  try {
    parse(body, terms);
  } catch (const Error& error) {
    check_refusal(error);
  }
}

void try_every_endpoint(std::string_view text) {
  Json body;
  try {
    body = parse_request_body(text);
  } catch (const Error& error) {
    check_refusal(error);
    return;
  }
  const RequestTerms strict;
  const RequestTerms lenient{.max_choices = 16, .on_unknown_field = [](const std::string&) {}};
  for (const RequestTerms* terms : {&strict, &lenient}) {
    try_parse(parse_completion_request, body, *terms);
    try_parse(parse_chat_request, body, *terms);
    try_parse(parse_generate_request, body, *terms);
    try_parse(parse_llama_request, body, *terms);
    try_parse(parse_infill_request, body, *terms);
    try_parse(parse_classification_request, body, *terms);
    try_parse(parse_token_score_request, body, *terms);
    try_parse(parse_tokenize_request, body, *terms);
    try_parse(parse_detokenize_request, body, *terms);
    try_parse(parse_template_request, body, *terms);
  }
}

}  // namespace
}  // namespace paceline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  paceline::try_every_endpoint({reinterpret_cast<const char*>(data), size});
  return 0;
}
