#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace triptych {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

/// "debug", "info", "warn", "error" or "off".
Result<LogLevel> parse_log_level(std::string_view name);

/// Sets the level below which messages are dropped. Default: warnings and errors.
void set_log_level(LogLevel level);

/// Writes one line to stderr (spdlog behind it): level, time and message; colours on a terminal
/// only. Thread-safe. Callers format with fmt.
void log_message(LogLevel level, std::string_view message);

inline void log_debug(std::string_view m) { log_message(LogLevel::kDebug, m); }
inline void log_info(std::string_view m) { log_message(LogLevel::kInfo, m); }
inline void log_warning(std::string_view m) { log_message(LogLevel::kWarning, m); }
inline void log_error(std::string_view m) { log_message(LogLevel::kError, m); }

}  // namespace triptych
