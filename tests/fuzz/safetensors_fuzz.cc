// Any bytes as a safetensors file: what is accepted lies within the file, without overlap, and has
// as many bytes as its shape says.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "weights/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span file(reinterpret_cast<const std::byte*>(data), size);
  auto parsed = triptych::parse_safetensors(file, "fuzz.safetensors");
  if (!parsed.is_ok()) {
    if (parsed.status().message().find("fuzz.safetensors") == std::string::npos) std::abort();
    return 0;
  }
  std::vector<triptych::SafetensorsEntry>& entries = *parsed;
  for (const triptych::SafetensorsEntry& e : entries) {
    if (e.offset > size || e.n_bytes > size - e.offset) std::abort();
    if (e.dtype && static_cast<uint64_t>(e.shape.n_elements() * triptych::dtype_bytes(*e.dtype)) !=
                       e.n_bytes) {
      std::abort();
    }
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.n_bytes < b.n_bytes;
  });
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].offset != entries[i - 1].offset + entries[i - 1].n_bytes) std::abort();
  }
  return 0;
}
