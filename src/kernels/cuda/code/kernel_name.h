// KernelName is a kernel's name that is put together of parts.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

namespace paceline::cuda {

class KernelName {
 public:
  constexpr KernelName(std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) {
      for (const char letter : part) letters_[size_++] = letter;
    }
  }
  constexpr std::string_view text() const { return {letters_, size_}; }

 private:
  static constexpr size_t kMostLetters = 64;
  char letters_[kMostLetters] = {};
  size_t size_ = 0;
};

}  // namespace paceline::cuda
