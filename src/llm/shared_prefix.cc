#include "llm/shared_prefix.h"

#include <algorithm>

#include "base/error.h"
#include "engine/channel.h"

namespace paceline {
namespace {

constexpr size_t kWorthHolding = 32;  // tokens

bool begins_with(const std::vector<TokenId>& ids, const std::vector<TokenId>& prefix) {
  return ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
}

}  // namespace

SharedPrefix::~SharedPrefix() { release_prefix(); }

void SharedPrefix::release_prefix() {
  if (id_) engine_.release(*id_);
  id_.reset();
  held_.clear();
}

void SharedPrefix::see(const std::vector<TokenId>& prompt, const PrefixScope& scope,
                       const std::shared_ptr<const LoadedAdapter>& adapter) {
  if (scope != scope_ || adapter != adapter_) {
    release_prefix();
    scope_ = scope;
    adapter_ = adapter;
    last_ = prompt;
    return;
  }
  const bool finds_it = id_.has_value() && begins_with(prompt, held_);
  if (!finds_it) {
    const auto block = static_cast<size_t>(engine_.block_size());
    // The row of the last token is computed in any case.
    const size_t most = std::min(std::max<size_t>(prompt.size(), 1) - 1, last_.size());
    const auto end = prompt.begin() + static_cast<std::ptrdiff_t>(most);
    const auto common =
        static_cast<size_t>(std::mismatch(prompt.begin(), end, last_.begin()).first -
                            prompt.begin()) /
        block * block;
    if (common >= std::max(kWorthHolding, block)) {
      hold({prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(common)});
    }
  }
  last_ = prompt;
}

void SharedPrefix::hold(std::vector<TokenId> prefix) {
  GenerateRequest request{.prompt = prefix, .max_tokens = 0, .adapter = adapter_};
  request.prefix = {.scope = scope_, .write = PrefixUse::Write::while_held, .hold = true};
  try {
    const auto id = engine_.submit(std::move(request), std::make_shared<Channel>());
    if (!id) return;  // the queue is full: each prompt is computed alone
    release_prefix();
    id_ = id;
    held_ = std::move(prefix);
  } catch (const Error&) {  // the prompt's own request reports the error
  }
}

}  // namespace paceline
