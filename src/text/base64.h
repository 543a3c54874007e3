#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace triptych {

/// The bytes of standard base64 (RFC 4648, section 4); its padding may be left out.
/// kInvalidArgument says where the text is wrong.
Result<std::string> base64_decode(std::string_view text);

}  // namespace triptych
