// Starts threads, with an error that says what to do when the system refuses one.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace paceline {

// "REASON; raise the limit of ..."
std::string thread_refusal(const std::system_error& refusal);
[[noreturn]] void throw_no_thread(const std::system_error& refusal);

// Throws Error exhausted when the system starts no further thread.
template <class Thread = std::thread, class Body>
Thread start_thread(Body body) {
  try {
    return Thread(std::move(body));
  } catch (const std::system_error& refusal) {
    throw_no_thread(refusal);
  }
}

}  // namespace paceline
