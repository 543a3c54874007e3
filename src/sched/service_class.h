#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace triptych {

/// How urgent a request is, from most to least. The order is the rank that policies compare.
enum class ServiceClass : uint8_t { kInteractive, kStandard, kBatch };
inline constexpr size_t kServiceClasses = 3;

/// "interactive", "standard", "batch".
constexpr std::string_view service_class_name(ServiceClass service_class) {
  switch (service_class) {
    case ServiceClass::kInteractive:
      return "interactive";
    case ServiceClass::kStandard:
      return "standard";
    case ServiceClass::kBatch:
      return "batch";
  }
  return "?";
}

}  // namespace triptych
