#include "backends/cpu/cpu_isa.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace triptych {
namespace {

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

/// All zero when the processor has no such leaf.
Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) == 0) return {};
  return r;
}

constexpr bool bit(uint32_t value, int index) { return ((value >> index) & 1) != 0; }

/// Register state that the operating system saves (XCR0), 0 without XSAVE.
uint64_t saved_state() {
  if (!bit(cpuid(1, 0).c, 27)) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

constexpr uint64_t kYmmState = 0x6;       // SSE and AVX registers
constexpr uint64_t kZmmState = 0xe6;      // and the AVX-512 masks and upper halves
constexpr uint64_t kTileState = 0x60000;  // AMX configuration and tiles

bool has_avx2() {
  const Registers one = cpuid(1, 0);
  return (saved_state() & kYmmState) == kYmmState && bit(one.c, 28) && bit(one.c, 12) &&
         bit(one.c, 29) && bit(cpuid(7, 0).b, 5);
}

bool has_avx512() {
  const uint32_t b = cpuid(7, 0).b;
  return has_avx2() && (saved_state() & kZmmState) == kZmmState && bit(b, 16) && bit(b, 17) &&
         bit(b, 30) && bit(b, 31);
}

bool has_avx512_bf16() { return has_avx512() && bit(cpuid(7, 1).a, 5); }

/// Linux gives tile state (feature 18) only to processes that ask, because it grows their signal
/// frames: Documentation/arch/x86/xstate.rst.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_amx() {
  const uint32_t d = cpuid(7, 0).d;
  return has_avx512_bf16() && (saved_state() & kTileState) == kTileState && bit(d, 22) &&
         bit(d, 24) && request_tiles();
}

constexpr std::array kAllLevels = {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512,
                                   CpuIsa::kAvx512Bf16, CpuIsa::kAmx};

}  // namespace

std::string_view cpu_isa_name(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kPortable:
      return "portable";
    case CpuIsa::kAvx2:
      return "avx2";
    case CpuIsa::kAvx512:
      return "avx512";
    case CpuIsa::kAvx512Bf16:
      return "avx512_bf16";
    case CpuIsa::kAmx:
      return "amx";
  }
  return "unknown";
}

bool cpu_supports(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kPortable:
      return true;
    case CpuIsa::kAvx2:
      return has_avx2();
    case CpuIsa::kAvx512:
      return has_avx512();
    case CpuIsa::kAvx512Bf16:
      return has_avx512_bf16();
    case CpuIsa::kAmx:
      return has_amx();
  }
  return false;
}

std::vector<CpuIsa> available_cpu_isas() {
  std::vector<CpuIsa> out;
  for (const CpuIsa isa : kAllLevels) {
    if (cpu_supports(isa)) out.push_back(isa);
  }
  return out;
}

bool cpu_has_slow_bf16_pairs() {
  const Registers vendor = cpuid(0, 0);
  const bool intel = vendor.b == 0x756e6547 && vendor.d == 0x49656e69 && vendor.c == 0x6c65746e;
  // Cooper Lake (family 6, model 85) was built for bf16 and has no AMX to hide.
  const uint32_t signature = cpuid(1, 0).a;
  const uint32_t model = (signature >> 4 & 0xf) | (signature >> 12 & 0xf0);
  return intel && has_avx512_bf16() && model != 85;
}

CpuIsa fastest_cpu_isa(const std::vector<CpuIsa>& available, bool slow_bf16_pairs) {
  const CpuIsa highest = available.back();
  return highest == CpuIsa::kAvx512Bf16 && slow_bf16_pairs ? CpuIsa::kAvx512 : highest;
}

Result<CpuIsa> resolve_cpu_isa(std::string_view setting) {
  const std::vector<CpuIsa> available = available_cpu_isas();
  if (setting == "auto") return fastest_cpu_isa(available, cpu_has_slow_bf16_pairs());
  std::string names = "auto";
  for (const CpuIsa isa : kAllLevels) {
    names += fmt::format(", {}", cpu_isa_name(isa));
    if (setting != cpu_isa_name(isa)) continue;
    if (cpu_supports(isa)) return isa;
    return unsupported(
        fmt::format("cpu_isa (TRIPTYCH_CPU_ISA) is '{}', but this machine only has '{}' and below",
                    setting, cpu_isa_name(available.back())));
  }
  return invalid_argument(
      fmt::format("cpu_isa (TRIPTYCH_CPU_ISA) is '{}'; known are: {}", setting, names));
}

bool cpu_has_vnni() { return has_avx512() && bit(cpuid(7, 0).c, 11); }

std::string cpu_brand() {
  std::array<char, 49> text{};
  for (uint32_t i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002u + i, 0);
    const std::array<uint32_t, 4> words = {r.a, r.b, r.c, r.d};
    std::memcpy(text.data() + i * sizeof(words), words.data(), sizeof(words));
  }
  const std::string_view name = text.data();
  const size_t first = name.find_first_not_of(' ');
  if (first == std::string_view::npos) return "unknown";
  return std::string(name.substr(first, name.find_last_not_of(' ') - first + 1));
}

}  // namespace triptych
