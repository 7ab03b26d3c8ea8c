// Requests of every API: each dialect either accepts any bytes or refuses them as invalid, in a
// well-formed error of its own.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "protocol/dialect.h"
#include "protocol/plain_requests.h"
#include "protocol/request_reader.h"

namespace paceline {
namespace {

void check_refusal(const Error& error, const Dialect& dialect) {
  const ErrorAnswer refusal = dialect.error(api_error(error), "req_1");
  PL_CHECK(refusal.status == 400, "a request that is refused is the caller's fault");
  parse_json(refusal.body, "the error object");
}

template <class Parse>
void try_parse(const Dialect& dialect, Parse&& parse) {
  try {
    parse();
  } catch (const Error& error) {
    check_refusal(error, dialect);
  }
}

void try_every_dialect(std::string_view text) {
  Json body;
  try {
    body = parse_request_body(text);
  } catch (const Error& error) {
    for (const Dialect* dialect : all_dialects()) check_refusal(error, *dialect);
    return;
  }
  const RequestTerms strict;
  const RequestTerms lenient{.max_choices = 16, .on_unknown_field = [](const std::string&) {}};
  for (const RequestTerms* terms : {&strict, &lenient}) {
    for (const Dialect* dialect : all_dialects()) {
      try_parse(*dialect, [&] { dialect->parse(body, {.limits = *terms}); });
    }
    try_parse(kChatDialect, [&] { parse_tokenize_request(body, *terms); });
    try_parse(kChatDialect, [&] { parse_detokenize_request(body, *terms); });
    try_parse(kChatDialect, [&] { parse_template_request(body, *terms); });
  }
}

}  // namespace
}  // namespace paceline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  paceline::try_every_dialect({reinterpret_cast<const char*>(data), size});
  return 0;
}
