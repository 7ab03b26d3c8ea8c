#include "engine/mailbox.h"

#include <utility>

namespace paceline {

void Mail::clear() {
  submitted.clear();
  cancelled.clear();
  released.clear();
  deferrals.clear();
  inspections.clear();
}

void Mailbox::submit(std::unique_ptr<Sequence> sequence) {
  {
    const std::lock_guard lock(mutex_);
    mail_.submitted.push_back(std::move(sequence));
  }
  came_.notify_one();
}

void Mailbox::cancel(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    mail_.cancelled.push_back(id);
  }
  came_.notify_one();
}

void Mailbox::release(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    mail_.released.push_back(id);
  }
  came_.notify_one();
}

void Mailbox::change(Deferral deferral) {
  {
    const std::lock_guard lock(mutex_);
    mail_.deferrals.push_back(deferral);
  }
  came_.notify_one();
}

void Mailbox::inspect(EngineInspection look) {
  {
    const std::lock_guard lock(mutex_);
    mail_.inspections.push_back(std::move(look));
  }
  came_.notify_one();
}

void Mailbox::take(Mail& mail) {
  mail.clear();
  const std::lock_guard lock(mutex_);
  std::swap(mail, mail_);
  woken_ = false;
}

size_t Mailbox::wait(std::chrono::milliseconds timeout, size_t at_least) {
  std::unique_lock lock(mutex_);
  came_.wait_for(lock, timeout, [&] {
    return woken_ || mail_.submitted.size() >= at_least ||
           (mail_.submitted.empty() && !mail_.empty());
  });
  return mail_.submitted.size();
}

void Mailbox::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  came_.notify_all();
}

}  // namespace paceline
