// Reads the completions API's JSON as the server formats it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::traffic {

struct CompletionRequestText {
  std::vector<int32_t> prompt;
  int64_t max_tokens = 0;
  bool is_streamed = true;
  bool is_scripted = true;  // by token_script.h
};

// A whole HTTP request.
std::string completion_request(const CompletionRequestText& request);

// The string or number after a key, which is given as `"name":`. Nothing when it is missing or
// null. Text can't be mistaken for a key: quotes in strings are escaped.
std::optional<std::string_view> find_string(std::string_view json, std::string_view key);
std::optional<int64_t> find_integer(std::string_view json, std::string_view key);

// Calls on_token(int32_t) for each of "token_ids".
template <class OnToken>
void for_each_token(std::string_view json, OnToken&& on_token) {
  constexpr std::string_view kKey = "\"token_ids\":[";
  size_t at = json.find(kKey);
  if (at == std::string_view::npos) return;
  at += kKey.size();
  while (at < json.size() && json[at] != ']') {
    int32_t token = 0;
    for (; at < json.size() && json[at] >= '0' && json[at] <= '9'; ++at) {
      token = token * 10 + (json[at] - '0');
    }
    on_token(token);
    if (at < json.size() && json[at] != ']') ++at;  // the comma
  }
}

}  // namespace paceline::traffic
