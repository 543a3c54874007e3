#include "server/remote/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace triptych {
namespace {

struct V4Range {
  uint32_t base;
  int bits;
};

constexpr uint32_t v4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

constexpr V4Range kSpecialV4[] = {
    {v4(0, 0, 0, 0), 8},      {v4(10, 0, 0, 0), 8},     {v4(100, 64, 0, 0), 10},
    {v4(127, 0, 0, 0), 8},    {v4(169, 254, 0, 0), 16}, {v4(172, 16, 0, 0), 12},
    {v4(192, 0, 0, 0), 24},   {v4(192, 0, 2, 0), 24},   {v4(192, 88, 99, 0), 24},
    {v4(192, 168, 0, 0), 16}, {v4(198, 18, 0, 0), 15},  {v4(198, 51, 100, 0), 24},
    {v4(203, 0, 113, 0), 24}, {v4(224, 0, 0, 0), 4},    {v4(240, 0, 0, 0), 4},
};

bool is_public_v4(uint32_t address) {
  return std::none_of(std::begin(kSpecialV4), std::end(kSpecialV4), [&](const V4Range& range) {
    return (address >> (32 - range.bits)) == (range.base >> (32 - range.bits));
  });
}

uint32_t v4_at(const uint8_t* bytes) { return v4(bytes[0], bytes[1], bytes[2], bytes[3]); }

bool begins_with(const std::array<uint8_t, 16>& address, std::initializer_list<uint8_t> prefix) {
  return std::equal(prefix.begin(), prefix.end(), address.begin());
}

/// Only 2000::/3 is given out; of that, what leads elsewhere or nowhere is left out.
bool is_public_v6(const std::array<uint8_t, 16>& address) {
  if ((address[0] & 0xe0) != 0x20) return false;
  if (begins_with(address, {0x20, 0x02})) return is_public_v4(v4_at(&address[2]));  // 6to4
  if (begins_with(address, {0x20, 0x01, 0x0d, 0xb8})) return false;                 // documentation
  if (begins_with(address, {0x3f, 0xff}) && address[2] < 0x10) return false;        // the same
  // 2001::/23: Teredo, benchmarks, ORCHID and other protocols' own.
  return !(begins_with(address, {0x20, 0x01}) && address[2] < 0x02);
}

}  // namespace

bool is_public_address(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof(in));
    return is_public_v4(ntohl(in.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 in{};
  std::memcpy(&in, &address, sizeof(in));
  std::array<uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
  return is_public_v6(bytes);
}

}  // namespace triptych
