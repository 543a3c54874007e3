#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "media/image/probe.h"

namespace triptych {

/// The format that the first bytes spell, or nothing when it is none that we decode.
std::optional<ImageFormat> sniff_image_format(std::span<const std::byte> bytes);

/// Name of a format that we know but do not decode ("HEIC", "MP4", "SVG", "gzip data", ...), or an
/// empty string for bytes that we cannot name.
std::string_view name_refused_format(std::span<const std::byte> bytes);

}  // namespace triptych
