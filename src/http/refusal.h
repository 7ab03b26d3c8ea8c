// HttpRefusal is thrown by the parts that read a request when the client is at fault.
#pragma once

#include <stdexcept>
#include <string>

namespace paceline {

// Caught by HttpRequestReader; becomes the answer, after which the connection closes.
class HttpRefusal : public std::runtime_error {
 public:
  HttpRefusal(int status, const std::string& message)
      : std::runtime_error(message), status_(status) {}

  int status() const { return status_; }

 private:
  int status_;
};

}  // namespace paceline
