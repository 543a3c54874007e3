#include "sched/fairness.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"

namespace triptych {

DeficitRoundRobin::DeficitRoundRobin(FairnessState state, int64_t quantum)
    : state_(std::move(state)), quantum_(quantum) {}

void DeficitRoundRobin::keep(std::span<const uint32_t> tenants) {
  std::erase_if(state_.deficits, [&](const TenantDeficit& d) {
    return std::find(tenants.begin(), tenants.end(), d.tenant) == tenants.end();
  });
}

TenantDeficit& DeficitRoundRobin::entry(uint32_t tenant) {
  const auto at =
      std::lower_bound(state_.deficits.begin(), state_.deficits.end(), tenant,
                       [](const TenantDeficit& d, uint32_t number) { return d.tenant < number; });
  if (at != state_.deficits.end() && at->tenant == tenant) return *at;
  return *state_.deficits.insert(at, TenantDeficit{tenant, 0});
}

uint32_t DeficitRoundRobin::next(std::span<const Head> heads) {
  std::vector<Head> order(heads.begin(), heads.end());
  std::sort(order.begin(), order.end(),
            [](const Head& a, const Head& b) { return a.tenant < b.tenant; });
  // Rounds that no tenant can be served in are taken at once.
  int64_t rounds = INT64_MAX;
  for (const Head& head : order) {
    const int64_t missing = std::max<int64_t>(head.tokens - entry(head.tenant).tokens, 0);
    rounds = std::min(rounds, ceil_div(missing, quantum_));
  }
  if (rounds > 1) {
    for (const Head& head : order) entry(head.tenant).tokens += (rounds - 1) * quantum_;
  }
  // The tenant whose turn it is goes on while its deficit lasts; then each gets its quantum.
  auto turn = std::find_if(order.begin(), order.end(),
                           [&](const Head& head) { return head.tenant >= state_.turn; });
  if (turn == order.end()) turn = order.begin();
  bool fresh = turn->tenant != state_.turn;
  while (true) {
    TenantDeficit& deficit = entry(turn->tenant);
    if (fresh) deficit.tokens += quantum_;
    if (deficit.tokens >= turn->tokens) break;
    if (++turn == order.end()) turn = order.begin();
    fresh = true;
  }
  state_.turn = turn->tenant;
  return turn->tenant;
}

void DeficitRoundRobin::charge(uint32_t tenant, int64_t tokens) { entry(tenant).tokens -= tokens; }

}  // namespace triptych
