#include "server/quota.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace triptych {
namespace {

constexpr double kMinuteMs = 60000;
constexpr double kOne = 1 - 1e-6;   ///< sums of parts of a second come to a little less than one
constexpr int kBusyRetryMs = 1000;  ///< when a request of the key has to end first

}  // namespace

void QuotaBook::Bucket::fill(int64_t per_min, double now_ms) {
  const auto most = static_cast<double>(per_min);
  level = begun ? std::min(most, level + (now_ms - filled_ms) * most / kMinuteMs) : most;
  filled_ms = now_ms;
  begun = true;
}

int QuotaBook::Bucket::wait_ms(double wanted, int64_t per_min) const {
  const double missing = std::max(0.0, wanted - level);
  return static_cast<int>(std::ceil(missing * kMinuteMs / static_cast<double>(per_min)));
}

QuotaBook::Entry QuotaBook::enter(const Caller& caller, double now_ms) {
  const KeyLimits& limits = caller.limits;
  const std::lock_guard lock(mutex_);
  Account& account = accounts_[caller.tenant];
  if (limits.requests_at_once > 0 && account.open >= limits.requests_at_once) {
    return {nullptr, QuotaRefusal{fmt::format("the key has {} requests in work, as many as it may",
                                              account.open),
                                  kBusyRetryMs}};
  }
  if (limits.tokens_per_min > 0) {
    account.tokens.fill(limits.tokens_per_min, now_ms);
    if (account.tokens.level < kOne) {
      return {nullptr, QuotaRefusal{fmt::format("the key's {} tokens a minute are used up",
                                                limits.tokens_per_min),
                                    account.tokens.wait_ms(1, limits.tokens_per_min)}};
    }
  }
  if (limits.requests_per_min > 0) {
    account.requests.fill(limits.requests_per_min, now_ms);
    if (account.requests.level < kOne) {
      return {nullptr, QuotaRefusal{fmt::format("the key's {} requests a minute are used up",
                                                limits.requests_per_min),
                                    account.requests.wait_ms(1, limits.requests_per_min)}};
    }
    account.requests.level -= 1;
  }
  ++account.open;
  return {std::make_shared<QuotaTicket>(*this, caller), std::nullopt};
}

QuotaTicket::~QuotaTicket() {
  const std::lock_guard lock(book_->mutex_);
  --book_->accounts_[caller_.tenant].open;
}

Status QuotaTicket::take_media(uint64_t n_bytes, double now_ms) {
  const int64_t limit = caller_.limits.media_bytes_per_min;
  if (limit == 0 || n_bytes == 0) return Status::ok();
  const auto wanted = static_cast<double>(n_bytes);
  const std::lock_guard lock(book_->mutex_);
  QuotaBook::Bucket& bucket = book_->accounts_[caller_.tenant].media_bytes;
  bucket.fill(limit, now_ms);
  if (bucket.level < wanted) {
    return resource_exhausted(fmt::format(
        "the media have {} bytes, the key has {:.0f} left of {} a minute; try again in {} ms",
        n_bytes, bucket.level, limit, bucket.wait_ms(wanted, limit)));
  }
  bucket.level -= wanted;
  return Status::ok();
}

void QuotaTicket::spend_tokens(int64_t n_tokens, double now_ms) {
  const int64_t limit = caller_.limits.tokens_per_min;
  if (limit == 0) return;
  const std::lock_guard lock(book_->mutex_);
  QuotaBook::Bucket& bucket = book_->accounts_[caller_.tenant].tokens;
  bucket.fill(limit, now_ms);
  bucket.level -= static_cast<double>(n_tokens);
}

}  // namespace triptych
