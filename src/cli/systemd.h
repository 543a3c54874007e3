#pragma once

#include <string_view>

namespace triptych::cli {

/// Tells systemd what the service is at ("READY=1", "STOPPING=1") where it has asked to be told
/// (sd_notify(3), Type=notify); elsewhere nothing happens.
void tell_systemd(std::string_view state);

}  // namespace triptych::cli
