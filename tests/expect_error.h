// Expected errors: a call must throw Error with this code, and the message must name the cause.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "paceline/error.h"

namespace paceline {

// The Error that `body` throws, if it does.
template <class Body>
std::optional<Error> thrown_error(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// The message of the Error that `body` must throw.
template <class Body>
std::string error_message(ErrorCode code, Body&& body) {
  const std::optional<Error> error = thrown_error(body);
  if (!error) {
    ADD_FAILURE() << "no Error, expected " << error_code_name(code);
    return "no error";
  }
  EXPECT_EQ(error_code_name(error->code()), error_code_name(code)) << error->what();
  return error->what();
}

template <class Body>
void expect_error(ErrorCode code, const std::vector<std::string>& parts, Body&& body) {
  const std::string message = error_message(code, body);
  for (const std::string& part : parts) EXPECT_THAT(message, ::testing::HasSubstr(part));
}

// "code: message" of the Error that `body` throws; empty when it throws none.
template <class Body>
std::string error_text(Body&& body) {
  const std::optional<Error> error = thrown_error(body);
  return error ? std::string(error_code_name(error->code())) + ": " + error->what() : "";
}

}  // namespace paceline
