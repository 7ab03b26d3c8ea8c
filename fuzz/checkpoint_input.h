// Inputs that are JSON with the members "config" and "tensors".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "fuzz/tensor_list.h"

namespace paceline::fuzz {

// Calls run(config, entries) for an input of that form; it may throw the errors of a bad model.
template <class Run>
void run_on_checkpoint(const uint8_t* bytes, size_t size, Run&& run) {
  std::optional<Json> input;
  try {
    input = parse_json({reinterpret_cast<const char*>(bytes), size}, "input");
  } catch (const Error&) {
    return;
  }
  const Json* const config = input->find("config");
  const Json* const tensors = input->find("tensors");
  if (config == nullptr || tensors == nullptr || !tensors->is_object()) return;
  auto entries = read_entries(*tensors);
  if (!entries) return;
  try {
    run(*config, std::move(*entries));
  } catch (const Error& error) {
    PL_CHECK(error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported ||
                 error.code() == ErrorCode::invalid,
             "an error of another kind");
    PL_CHECK(std::string_view(error.what()).starts_with("input: "), "an error without its place");
  }
}

}  // namespace paceline::fuzz
