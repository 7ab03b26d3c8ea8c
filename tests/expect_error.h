// expect_error: a call must throw Error with this code, and the message must name what is at fault.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "paceline/error.h"

namespace paceline {

template <class Body>
void expect_error(ErrorCode code, const std::vector<std::string>& parts, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error_code_name(error.code()), error_code_name(code)) << error.what();
    for (const std::string& part : parts) EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    return;
  }
  ADD_FAILURE() << "no Error, expected " << error_code_name(code);
}

}  // namespace paceline
