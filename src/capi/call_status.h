// Runs the body of a function of the C API: errors become its status and the thread's message.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "paceline/error.h"
#include "paceline/paceline.h"

namespace paceline::capi {

paceline_status status_of(ErrorCode code);

// Keeps the message for paceline_last_error(), and returns the status.
paceline_status fail(paceline_status status, std::string message) noexcept;

template <class Body>
paceline_status guarded(const Body& body) noexcept {
  try {
    body();
    return PACELINE_OK;
  } catch (const Error& error) {
    return fail(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(PACELINE_EXHAUSTED, "the system has no memory");
  } catch (const std::exception& error) {
    return fail(PACELINE_INTERNAL, error.what());
  }
}

// Throws Error invalid for an argument that must not be NULL.
void check_given(const void* argument, const char* name);

// For where a pointer to a result goes: it is NULL until the call succeeds.
template <class Result>
void begin_result(Result** result, const char* name) {
  check_given(result, name);
  *result = nullptr;
}

// What the caller says, with the defaults of members that its library didn't know yet. Throws Error
// invalid when `size` was never set.
template <class Options>
Options complete(const Options* given, void (*init)(Options*), const char* name) {
  Options options;
  init(&options);
  if (given == nullptr) return options;
  constexpr size_t kMost = 65536;
  if (given->size < sizeof(size_t) || given->size > kMost) {
    throw Error(ErrorCode::invalid, std::string(name) + ".size: found " +
                                        std::to_string(given->size) +
                                        "; call its _init function before you fill it");
  }
  const size_t known = given->size < sizeof(Options) ? given->size : sizeof(Options);
  __builtin_memcpy(&options, given, known);
  options.size = sizeof(Options);
  return options;
}

}  // namespace paceline::capi
