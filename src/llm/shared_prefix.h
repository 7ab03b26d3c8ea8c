// SharedPrefix holds the common prefix of many classifications' prompts while they run.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/engine.h"

namespace paceline {

// Prompts come one by one. If a prompt shares enough whole blocks with the one before it, their
// common prefix is computed once and held for later prompts. It is replaced by a shorter one when
// later prompts share only that. Nothing stays in the cache afterwards.
class SharedPrefix {
 public:
  // The engine must outlive it.
  explicit SharedPrefix(Engine& engine) : engine_(engine) {}
  ~SharedPrefix();
  SharedPrefix(const SharedPrefix&) = delete;
  SharedPrefix& operator=(const SharedPrefix&) = delete;

  // Call it before submitting a request with this prompt.
  void see(const std::vector<TokenId>& prompt, const PrefixScope& scope,
           const std::shared_ptr<const LoadedAdapter>& adapter);

 private:
  void hold(std::vector<TokenId> prefix);
  void release_prefix();

  Engine& engine_;
  std::vector<TokenId> last_;  // the previous prompt
  std::vector<TokenId> held_;
  PrefixScope scope_;  // of the prompts, as is the adapter
  std::shared_ptr<const LoadedAdapter> adapter_;
  std::optional<RequestId> id_;  // the request that holds the prefix
};

}  // namespace paceline
