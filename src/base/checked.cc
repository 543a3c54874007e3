#include "base/checked.h"

namespace triptych {

std::optional<uint64_t> checked_product(std::initializer_list<uint64_t> factors) {
  std::optional<uint64_t> out = 1;
  for (uint64_t f : factors) {
    if (!out) return out;
    out = checked_mul(*out, f);
  }
  return out;
}

}  // namespace triptych
