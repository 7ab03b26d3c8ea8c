#include "engine/engine.h"

#include "engine/engine_core.h"

namespace paceline {

Engine::Engine(Runner& runner, Memory& memory, KvCache& cache, EngineLimits limits,
               TokenTexts token_texts, Drafter* drafter)
    : core_(std::make_unique<EngineCore>(*this, runner, memory, cache, limits,
                                         std::move(token_texts), drafter)) {}

Engine::~Engine() = default;

std::optional<RequestId> Engine::submit(GenerateRequest request, std::shared_ptr<Channel> channel,
                                        int64_t tag) {
  return core_->intake().submit(std::move(request), std::move(channel), tag);
}

void Engine::cancel(RequestId id) { core_->intake().mailbox().cancel(id); }
void Engine::release(RequestId id) { core_->intake().mailbox().release(id); }
void Engine::defer(RequestId id) { core_->intake().mailbox().change({.id = id, .begins = true}); }
void Engine::resume(RequestId id) { core_->intake().mailbox().change({.id = id, .begins = false}); }
void Engine::inspect(EngineInspection look) { core_->intake().mailbox().inspect(std::move(look)); }

bool Engine::step() { return core_->step(); }
const std::string& Engine::lost_device() const { return core_->lost_device(); }

size_t Engine::wait_for_mail(std::chrono::milliseconds timeout, size_t at_least) {
  return core_->intake().mailbox().wait(timeout, at_least);
}

void Engine::wake() { core_->intake().mailbox().wake(); }
void Engine::end_all() { core_->end_all(); }
void Engine::check(GenerateRequest& request) const { core_->intake().check(request); }

const EngineLimits& Engine::limits() const { return core_->limits(); }
int64_t Engine::vocab_size() const { return core_->vocab_size(); }
int64_t Engine::block_size() const { return core_->cache().block_size(); }

std::string_view Engine::token_bytes(TokenId id, SpecialTokens specials) const {
  return core_->token_bytes(id, specials);
}

int64_t Engine::num_running() const { return core_->requests().num_running(); }
int64_t Engine::num_waiting() const { return core_->requests().num_waiting(); }
const QueueLimit& Engine::queue() const { return core_->intake().queue(); }

const KvCache& Engine::cache() const { return core_->cache(); }
std::span<const std::unique_ptr<Sequence>> Engine::running() const {
  return core_->requests().running();
}
std::span<const std::unique_ptr<Sequence>> Engine::waiting() const {
  return core_->requests().waiting();
}

std::vector<int64_t> Engine::unstarted_tags() const {
  std::vector<int64_t> tags;
  for (const auto& sequence : core_->requests().waiting()) {
    if (!sequence->has_started) tags.push_back(sequence->shared->tag);
  }
  return tags;
}

const EngineCounters& Engine::counters() const { return core_->log().counters; }
void Engine::set_observer(StepObserver* observer) { core_->log().observer = observer; }
void Engine::check_integrity() const { core_->requests().check_integrity(); }

}  // namespace paceline
