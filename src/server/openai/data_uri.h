#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace triptych::openai {

/// A data URI (RFC 2397) whose content is base64.
struct DataUri {
  std::string media_type;  ///< lower case, without parameters; empty when none is named
  std::string bytes;
};

/// Whether `url` is a data URI, by its scheme in any case.
bool is_data_uri(std::string_view url);

/// kInvalidArgument for what is no data URI, is not marked as base64, or does not decode.
Result<DataUri> parse_data_uri(std::string_view url);

}  // namespace triptych::openai
