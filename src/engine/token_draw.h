#pragma once

#include <array>
#include <cstdint>

namespace triptych {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): 128
/// random bits that are a pure function of counter and key.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// The random number of one token, in [0, 1) with 53 bits: a function of the seed, the answer's
/// stream (its index among the n of a request) and the token's index in the answer. Nothing is
/// carried from draw to draw, so an answer that is interrupted and recomputed goes on as it would
/// have, and no other request has a part in it.
double token_uniform(uint64_t seed, uint32_t stream, uint64_t position);

/// Seeds of requests that bring none: no two alike in a process, unforeseeable between processes.
/// One thread.
class SeedSource {
 public:
  SeedSource();
  uint64_t next();

 private:
  uint64_t state_;
};

}  // namespace triptych
