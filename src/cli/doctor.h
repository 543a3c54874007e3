#pragma once

#include "base/status.h"

namespace triptych::cli {

/// `triptych doctor`: what this machine offers, what the program uses of it and what would make it
/// faster. `measure` adds the measured limits.
Status run_doctor(bool measure, bool json);

}  // namespace triptych::cli
