// TokenCheck compares a stream's tokens with the expected ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace paceline::traffic {

class TokenCheck {
 public:
  explicit TokenCheck(const std::vector<int32_t>& prompt);

  void take(int32_t token);
  int64_t count() const { return count_; }
  // A description of the first wrong token; empty if there is none.
  const std::string& fault() const { return fault_; }

 private:
  std::string describe(int32_t token) const;

  int32_t last_;        // before the next one
  int32_t before_ = 0;  // before that
  int64_t position_;    // of the last one
  int64_t count_ = 0;
  std::string fault_;
};

}  // namespace paceline::traffic
