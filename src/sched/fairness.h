#pragma once

#include <cstdint>
#include <span>

#include "sched/snapshot.h"

namespace triptych {

/// Deficit round robin over tokens (Shreedhar and Varghese, 1995): in turn, each tenant with
/// waiting requests gets a quantum and is served while it lasts; what a request costs beyond it is
/// saved up for over several rounds.
class DeficitRoundRobin {
 public:
  DeficitRoundRobin(FairnessState state, int64_t quantum);

  /// Tenants without a waiting request lose what they saved; `tenants` in any order, repeats
  /// allowed.
  void keep(std::span<const uint32_t> tenants);

  /// A tenant and the tokens of its first request.
  struct Head {
    uint32_t tenant = 0;
    int64_t tokens = 0;
  };
  /// Whose head is served next. `heads` must not be empty; order has no meaning.
  uint32_t next(std::span<const Head> heads);
  /// The head of `tenant` was served.
  void charge(uint32_t tenant, int64_t tokens);

  const FairnessState& state() const { return state_; }

 private:
  TenantDeficit& entry(uint32_t tenant);

  FairnessState state_;
  int64_t quantum_;
};

}  // namespace triptych
