// Switched gives a variable another value while it lives.
#pragma once

#include <utility>

namespace paceline {

template <class T>
class Switched {
 public:
  Switched(T& variable, T value) : variable_(variable), before_(std::exchange(variable, value)) {}
  ~Switched() { variable_ = before_; }
  Switched(const Switched&) = delete;
  Switched& operator=(const Switched&) = delete;

 private:
  T& variable_;
  T before_;
};

}  // namespace paceline
