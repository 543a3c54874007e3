#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace triptych {

/// Bucket of a 256-bit id in a hash map. The id is a BLAKE3 hash, so any of its bytes spread well;
/// maps compare whole ids, and two of them that meet in a bucket stay two.
struct ContentKeyHash {
  size_t operator()(const std::array<uint8_t, 32>& key) const {
    size_t bucket = 0;
    std::memcpy(&bucket, key.data(), sizeof bucket);
    return bucket;
  }
};

}  // namespace triptych
