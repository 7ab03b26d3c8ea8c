// Overloaded is several lambdas as one function, for std::visit.
#pragma once

namespace paceline {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace paceline
