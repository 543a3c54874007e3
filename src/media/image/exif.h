#pragma once

#include <cstddef>
#include <span>

namespace triptych {

/// Orientation 1..8 from an EXIF block (a TIFF structure; a leading "Exif\0\0" is skipped), tag
/// 0x0112 of IFD 0 as in EXIF 2.32 section 4.6.4. 1 (upright) when the block is broken, the tag is
/// missing or its value is out of range: a bad EXIF block never spoils a good picture.
int exif_orientation(std::span<const std::byte> block);

/// True for 5..8, which swap width and height.
inline bool orientation_swaps_sides(int orientation) { return orientation >= 5; }

}  // namespace triptych
